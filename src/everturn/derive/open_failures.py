"""Open failures: checks whose last run failed, and what a person reported, until a run or the person says it is over.

`advance_failures` folds the calls, edits and prompts of a turn, in order,
into the list of `OpenFailure`s. A failed run opens one, a later success of the same or a wider run closes it; a narrower
success closes it when the runs together cover every file that the failed run named. Wrong calls, probes, missing programs,
denials, interrupts and time limits neither open nor close anything. Pure; the list is bounded.

`still_failing` is what a session leaves broken when it ends. To the checks and the reports it adds calls of the last turns that failed and that
nothing after them went past, a shell that answers every command with the same error, a permission that was missing, and a
service that stopped the work. `unconfirmed_reports` are older, and nobody knows whether they still hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from posixpath import basename
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.call_results import EDITOR, CheckResult, claimed_kinds, is_about_call, lets_be, names_call
from everturn.derive.changed_files import CHANGES
from everturn.derive.check_lines import (
    LACKS,
    LOCKED_OUT,
    NOT_GRANTED,
    PASSES,
    RAISED,
    SAYS_TROUBLE,
    STATES_FAILURE,
)
from everturn.derive.checks import (
    CheckRun,
    command_words,
    covers,
    find_checks,
    holds_target,
    is_no_failure,
    is_related,
    only_looks,
    tries_code,
)
from everturn.derive.failures import Complaint, builds_on
from everturn.derive.intent import is_other_topic
from everturn.derive.paths import local_path
from everturn.derive.turn_facts import TurnFacts
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.stance_words import NOT_VERIFIED
from everturn.text.trouble_words import TAKES_EFFECT, WORD

if TYPE_CHECKING:  # the state is folded with what stands here
    from everturn.derive.session_state import CommandState, FailureState, SessionState, TurnRequest

_MOST_OPEN, _MOST_CHANGED = 100, 5
_LAST_SAID = 3  # reports of the same trouble that are kept besides the first and the last
_COMMON_TERMS = 2
_SOON = 3  # turns within which one common term is enough
#: Turns without a repetition after which what was changed since counts as accepted.
_TACIT = {"reported": 12, "program": 12}
_TACIT_PROGRAM = 8  # of a program after whose failure files were changed
_COMMITTED = CheckRun("commit", "vcs", "git commit")  # by whoever: what could not be committed before now is
_SPEAKS_FOR_FIX = frozenset(("test", "build", "types", "check"))
_LONG_AGO = 40  # the same for any other check
_OTHER_TOPICS = 2  # messages about other things after which a report counts as settled; one more if nothing was changed


class EarlierReport(Struct, frozen=True):
    """What the person reported before they reported it again, or before a check failed with it."""

    text: str
    turn: int
    seq: int


class OpenFailure(Struct, frozen=True):
    """A check whose last run failed (`run`), or what a person reported (`complaint`)."""

    what: str  # the command as run, or the words of the person
    text: str  # the last line of the output that says so
    turn: int
    seq: int
    last_turn: int
    last_seq: int
    times: int = 1
    count: int = 0  # failures in the last run
    most: int = 0  # failures when `run` ran last
    edits: int = 0  # changes of files since
    checked: bool = False  # a check went well after one of them
    changed: tuple[str, ...] = ()  # the last files changed since
    names: tuple[str, ...] = ()
    run: CheckRun | None = None
    complaint: Complaint | None = None
    passed_over: int = 0  # later messages of the person that turn to something else
    earlier: tuple[EarlierReport, ...] = ()  # what the person said of it before: first, and last
    tool: str = ""  # as in FailureState
    session: str = ""  # of the evidence, if it is inherited

    @property
    def kind(self) -> str:
        """The kind of the check, or `reported`."""
        return self.run.kind if self.run is not None else "reported"


# --- many calls ---
class FailureEvent(Struct, frozen=True):
    """The events of one message: results of checks, commands that went well, changed files, words of a person."""

    seq: int
    what: str = ""
    error: str = ""
    results: tuple[CheckResult, ...] = ()
    ran: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    complaint: Complaint | None = None
    confirms: bool = False
    said: str = ""  # the beginning of what a person wrote
    claims: tuple[str, ...] = ()  # kinds of checks that an answer says pass


def failure_events(facts: TurnFacts, workspace: str) -> list[FailureEvent]:
    """Return the calls, edits and complaints of a turn in order; a call that edits comes before its edits."""
    events = [FailureEvent(seq, confirms=True) for seq in facts.confirmed]  # what works comes before what does not
    complaints = {seq: complaint for complaint, seq in facts.complaints}
    events += [FailureEvent(one.seq, complaint=complaints.pop(one.seq, None), said=one.text) for one in facts.requests]
    events += [FailureEvent(seq, complaint=complaint) for seq, complaint in complaints.items()]
    runs = (call for call in facts.deeds if call.checks or call.ran)
    events += [FailureEvent(call.seq, call.what, call.error, call.checks, call.ran) for call in runs]
    events += [
        FailureEvent(seq, results=(CheckResult(_COMMITTED, "passed"),)) for one, seq in facts.commits if one.hash
    ]
    edits = [(one.seq, local_path(one.path, workspace)) for one in facts.files if one.action != "read"]
    named = {seq for seq, _ in edits}
    made = (call.seq for call in facts.deeds if call.kind in CHANGES and not call.outcome)
    edits += [(seq, "") for seq in dict.fromkeys(made) if seq not in named]
    events += [FailureEvent(seq, changed=(path,)) for seq, path in edits]
    seen = {one.run.kind for call in facts.deeds for one in call.checks}
    is_left = any(lets_be(one.text) for one in facts.admitted)  # an answer that lets a failure be does not mean it
    claims = set(claimed_kinds(facts.answer.text)) - seen if facts.answer and not is_left else set()
    events += [FailureEvent(facts.answer.seq, claims=tuple(sorted(claims)))] if facts.answer and claims else []
    return sorted(events, key=lambda event: event.seq)


def advance_failures(
    known: tuple[OpenFailure, ...], events: Iterable[FailureEvent], turn: int
) -> tuple[OpenFailure, ...]:
    """Return what still fails after the events of one more turn."""
    items = list(known)
    for event in events:
        items = _hear(items, event, turn)
        if items and event.ran:
            items = [one for one in items if not _is_shown(one, event.ran)]
        for result in event.results:
            items = _apply_result(items, event, result, turn)
        if event.changed:
            items = [_note_edits(one, event.changed) for one in items if not _is_saved_again(one, event)]
    return tuple(one for one in items if not _is_left(one, turn))[-_MOST_OPEN:]


def _hear(items: list[OpenFailure], event: FailureEvent, turn: int) -> list[OpenFailure]:
    """Take what the person and the answer say."""
    if event.confirms:
        items = [one for one in items if one.complaint is None]
    if event.claims:
        items = [one for one in items if one.kind not in event.claims or not one.edits]
    if event.complaint is not None:
        _add_complaint(items, event, event.complaint, turn)
    return [_pass_over(one, event) for one in items] if event.said else items


def _is_saved_again(one: OpenFailure, event: FailureEvent) -> bool:
    """Whether a file in which the editor found errors was saved later without any."""
    if one.kind != EDITOR or one.last_seq >= event.seq:
        return False
    return any(
        holds_target(path, name) or holds_target(name, path)
        for path in filter(None, event.changed)
        for name in one.names
    )


def _is_left(one: OpenFailure, turn: int) -> bool:
    """Whether the work has gone on: the program was not run again; the person did not complain again and wants other things."""
    turns = _TACIT.get(one.kind, _LONG_AGO if one.edits else None)
    turns = _TACIT_PROGRAM if one.kind == "program" and one.edits else turns
    if one.complaint is not None and not one.complaint.sure and (one.edits or turn > one.last_turn):
        return True
    if one.complaint is not None and one.passed_over >= (_OTHER_TOPICS if one.edits else _OTHER_TOPICS + 1):
        return True
    return turns is not None and turn - one.last_turn >= turns


def _pass_over(one: OpenFailure, event: FailureEvent) -> OpenFailure:
    """Note whether a message of the person turns to something else than what they reported."""
    if one.complaint is None or one.last_seq >= event.seq:
        return one
    if (
        event.complaint is not None and event.complaint.sure and one.edits
    ):  # a different one: who finds it has seen that the other is gone
        return replace(one, passed_over=_OTHER_TOPICS + 1)
    if event.complaint is None and builds_on(event.said, f"{one.what} {one.text}"):
        return replace(one, passed_over=_OTHER_TOPICS + 1)
    about = " ".join((one.what, *one.complaint.terms))
    return replace(one, passed_over=one.passed_over + 1) if is_other_topic(event.said, about) else one


def _apply_result(items: list[OpenFailure], event: FailureEvent, result: CheckResult, turn: int) -> list[OpenFailure]:
    if result.verdict == "failed":
        said = [one for one in items if one.complaint is not None and result.run.kind in one.complaint.kinds]
        _add_failed(items, event, result, turn, _remember(*said))
        return [one for one in items if one not in said]
    if result.verdict == "clean":  # it speaks for the very same check only, and where a failure was seen in the output
        return [one for one in items if one.run is None or not one.text or not _is_same(one.run, result.run)]
    kept = (_close(one, result.run) for one in items)
    return [one for one in kept if one is not None]


def _remember(*reports: OpenFailure) -> tuple[EarlierReport, ...]:
    """Return what was said in some reports: the first time and the last times."""
    known = [said for one in reports for said in (*one.earlier, EarlierReport(one.what, one.last_turn, one.last_seq))]
    return (*known[:1], *known[1:][-_LAST_SAID:])


def _add_failed(
    items: list[OpenFailure], event: FailureEvent, result: CheckResult, turn: int, said: tuple[EarlierReport, ...] = ()
) -> None:
    """Open a failure, and continue those that this run is part of or includes. It takes over what the person said of it."""
    run, count, names = result.run, result.count, result.names
    first, times = (turn, event.seq), 1
    most = count
    for one in [one for one in items if one.run is not None and _overlaps(one.run, result.run)]:
        items.remove(one)
        first, times, said = min(first, (one.turn, one.seq)), times + one.times, (*one.earlier, *said)
        # A narrower run with as many failures has found them all.
        if one.run is not None and not covers(run, one.run) and not 0 < one.most <= count:
            known = tuple(dict.fromkeys((*one.names, *names)))
            run, most, names = (
                one.run,
                one.most,
                known if one.names else (),
            )  # what the wider run did not name is not known
    items.append(
        OpenFailure(
            event.what, result.line or event.error, *first, turn, event.seq, times, count, most, names=names, run=run, earlier=said
        )
    )  # fmt: skip


def _overlaps(one: CheckRun, other: CheckRun) -> bool:
    return covers(one, other) or covers(other, one)


def _is_same(one: CheckRun, other: CheckRun) -> bool:
    return covers(one, other) and covers(other, one)


def _close(one: OpenFailure, passed: CheckRun) -> OpenFailure | None:
    """Return what is left of a failure after a run passed."""
    if one.complaint is not None:
        return _close_complaint(one, one.complaint, passed)
    if (
        one.run is None
        or covers(passed, one.run)
        or (_is_conflict(one) and passed.tool in ("git commit", "git push", "git merge"))
        or (one.kind == EDITOR and passed.kind in ("lint", "types", "build"))
    ):
        return None
    if (passed.kind, one.kind) == ("test", "build") and not one.names and is_related(passed, one.run):
        return None  # tests of a compiled language build what they need
    selects = any(part.startswith("-") and part not in one.run.scope for part in passed.scope)
    if not passed.scope or selects or not one.names or not is_related(passed, one.run):
        return one
    left = tuple(name for name in one.names if not any(holds_target(target, name) for target in passed.scope))
    return replace(one, names=left) if left else None


def _is_conflict(one: OpenFailure) -> bool:
    """Whether a failure is over once its changes are committed."""
    return one.kind == "merge" and one.text.startswith(("CONFLICT ", "error: ", "fatal: You have not concluded"))


def _close_complaint(one: OpenFailure, complaint: Complaint, passed: CheckRun) -> OpenFailure | None:
    if passed.kind not in complaint.kinds:
        return replace(one, checked=True) if one.edits and passed.kind in _SPEAKS_FOR_FIX else one
    left = tuple(kind for kind in complaint.kinds if kind != passed.kind)
    return replace(one, complaint=replace(complaint, kinds=left)) if left else None


def _is_shown(one: OpenFailure, ran: tuple[str, ...]) -> bool:
    """Whether a command that a complaint names went well."""
    for command in one.complaint.commands if one.complaint is not None else ():
        first, _, rest = command.partition(" ")
        named = f"{basename(first)} {rest}"
        if any(done == named or done.startswith(f"{named} ") for done in ran):
            return True
    return False


def _note_edits(one: OpenFailure, paths: tuple[str, ...]) -> OpenFailure:
    changed = tuple(dict.fromkeys(filter(None, (*one.changed, *paths))))[-_MOST_CHANGED:]
    return replace(one, edits=one.edits + len(paths), changed=changed)


def _add_complaint(items: list[OpenFailure], event: FailureEvent, new: Complaint, turn: int) -> None:
    """Open a complaint, or continue the one that it repeats."""
    for number in range(len(items) - 1, -1, -1):
        one = items[number]
        if one.complaint is None or not _repeats(new, one.complaint, turn - one.last_turn):
            continue
        merged = replace(
            new, sure=True, kinds=new.kinds or one.complaint.kinds, commands=new.commands or one.complaint.commands,
            terms=tuple(dict.fromkeys((*new.terms, *one.complaint.terms))),
        )  # fmt: skip
        items.pop(number)
        items.append(
            replace(
                one, what=new.text, text=new.detail, last_turn=turn, last_seq=event.seq, times=one.times + 1, edits=0, checked=False, changed=(), complaint=merged, passed_over=0, earlier=_remember(one)
            )
        )  # fmt: skip
        return
    items.append(OpenFailure(new.text, new.detail, turn, event.seq, turn, event.seq, complaint=new))


def _repeats(new: Complaint, old: Complaint, turns: int) -> bool:
    """Whether a report is about the same as an earlier one; output that is pasted after work on a report shows what became of it."""
    common = len(set(new.terms) & set(old.terms))
    is_shown = new.pasted and not old.pasted and turns == 1
    return new.again or is_shown or common >= _COMMON_TERMS or (common > 0 and turns <= _SOON)


# --- what a session leaves broken when it ends ---
SERVICE = "service"  # the kind of a failure of the service that the agent itself needs
_JUDGED = frozenset(("test", "build", "lint", "types", "check"))  # kinds of checks whose outputs tell how they ended
_NEW_WORDS, _LAST_TURNS = 4, 2  # of a sentence that says more than its call; in which a failed call may be left behind
_ERRORS = ("failed", "probe")
_SAME_ERRORS = 3  # calls with one error from which on it is no error of theirs
_OTHER_RUN = CheckRun("program", "any")
_DOCUMENT = lazy_pattern(r"(?i)\.(?:md|txt|rst)$")


def still_failing(state: SessionState) -> list[OpenFailure]:
    """Return what fails at the end of a session, the latest last."""
    open_ones = (one for one in state.failing if not _is_loose(state, one))
    listed = [
        one if one.earlier or one.run is None else replace(one, earlier=_admissions(state, one, _NEW_WORDS))
        for one in open_ones
    ]
    return sorted((*_left_failures(state), *_find_stop(state), *listed), key=lambda one: one.last_seq)


def unconfirmed_reports(state: SessionState) -> list[OpenFailure]:
    """Return what the person reported earlier and never confirmed as fixed, the latest last."""
    return [one for one in state.failing if _is_loose(state, one)]


# --- calls ---
def _left_failures(state: SessionState) -> Iterable[OpenFailure]:
    """Return the calls that failed, besides those known as checks, if somebody is left with the failure.

    Of several tries of a program, the last counts.
    """
    known = {one.last_seq for one in state.failing}
    found: dict[str, OpenFailure] = {}
    for one in _recent_failures(state):
        said = () if one.tool else _admissions(state, one, 0) or _namings(state, one)
        is_left = _leaves_tool(state, one) if one.tool else _leaves_command(state, one, bool(said))
        if is_left and one.last_seq not in known:
            program = " ".join(" ".join(command_words(one.what)[-1:]).split()[:2])
            found[one.tool or program] = _as_open(one, said)
    broken = _find_broken_shell(state)
    return (*found.values(), *(one for one in broken if one.last_seq not in {left.last_seq for left in found.values()}))


def _recent_failures(state: SessionState) -> Iterator[FailureState]:
    failed = (one for one in state.errors if one.outcome == "failed" and one.resolved_by is None)
    return (one for one in failed if state.turn_count - 1 - one.last_turn < _LAST_TURNS)


def _as_open(one: FailureState, said: tuple[EarlierReport, ...] = ()) -> OpenFailure:
    return OpenFailure(
        one.what, one.text, one.turn, one.seq, one.last_turn, one.last_seq, one.times, run=_OTHER_RUN, earlier=said
    )


def _leaves_tool(state: SessionState, one: FailureState) -> bool:
    """Whether the failed call of another tool ended the work: nobody let it in, or nothing came after it."""
    if one.last_turn < state.turn_count - 1:
        return False
    is_refused = LOCKED_OUT.match(one.text) or NOT_GRANTED.match(one.text)
    is_last = state.ending is not None and state.ending.seq == one.last_seq
    is_unreported = is_last or (one.changes and _is_unreported(state, one) and _is_last_work(state, one))
    return bool(is_refused) or (is_unreported and SAYS_TROUBLE.search(one.text) is not None)


def _leaves_command(state: SessionState, one: FailureState, is_told: bool) -> bool:
    """Whether a failed command is left: the answer tells of it, or the turn ended with it."""
    if only_looks(one.what) or any(run.kind in _JUDGED for run in find_checks(one.what)):
        return False
    is_last = one.last_turn == state.turn_count - 1
    if is_no_failure(one.text) and not RAISED.match(one.text):
        return is_told and _is_last_work(state, one) and bool(LACKS.search(one.text) or NOT_GRANTED.match(one.text))
    if tries_code(one.what):
        return is_last and is_told and _is_last_work(state, one)
    is_apart = state.answer is None or state.answer.seq != one.last_seq  # else what the answer followed is not known
    if one.text and (is_told or (is_last and is_apart and _is_unreported(state, one))):
        return True
    return is_last and bool(STATES_FAILURE.match(one.text)) and _is_last_work(state, one)


def _is_unreported(state: SessionState, one: FailureState) -> bool:
    """Whether no answer reports on the turn in which a call failed."""
    has_answer = state.answer is not None and state.answer.turn == one.last_turn
    return state.waiting or state.begun is not None or not has_answer


def _is_last_work(state: SessionState, one: FailureState) -> bool:
    """Whether nothing was changed and no command did anything after a call failed."""
    if any(file.seq > one.last_seq and file.action != "read" for file in state.files.values()):
        return False
    for command in takewhile(lambda command: command.seq >= one.last_seq, reversed(state.commands)):
        if _has_worked(command):
            return False
        if command.command == one.what:  # some clients keep a turn as one message
            break
    return True


def _has_worked(command: CommandState) -> bool:
    failed = command.status != "ok" or command.exit_status or command.ended.startswith(("failed", "exit "))
    return not failed and not only_looks(command.command)


def _find_broken_shell(state: SessionState) -> Iterator[OpenFailure]:
    """Yield the last command of a session if it and those right before it failed with one error: the shell is broken, not the command."""
    failed = [
        one for one in state.errors if one.outcome in _ERRORS and one.resolved_by is None and one.text and not one.tool
    ]
    errors = {seq: one.text for one in failed for seq in (one.seq, one.last_seq)}
    said = [errors.get(command.seq, "") for command in state.commands[-_SAME_ERRORS:]]
    if len(said) == _SAME_ERRORS and len(set(said)) == 1 and said[0] and not said[0].startswith("+ "):
        yield from (_as_open(one) for one in failed if one.last_seq == state.commands[-1].seq)


def _admissions(state: SessionState, one: FailureState | OpenFailure, new_words: int) -> tuple[EarlierReport, ...]:
    """Return the sentence with which the answer of the same turn says that a call failed, if it has so many new words."""
    said = (told for told in state.admitted if told.turn == one.last_turn and told.seq > one.last_seq)
    found = (told for told in said if is_about_call(told.text, one.what, one.text) or _lets_be(state, one, told))
    known = set(WORD.findall(f"{one.what} {one.text}".lower()))
    more = (told for told in found if len(set(WORD.findall(told.text.lower())) - known) >= new_words)
    return tuple(EarlierReport(told.text, told.turn, told.seq) for told in islice(more, 1))


def _lets_be(state: SessionState, one: FailureState | OpenFailure, told: TurnRequest) -> bool:
    """Whether words leave a failure as it is: they come right after the call, before another one fails."""
    between = (command for command in state.commands if one.last_seq < command.seq < told.seq)
    return lets_be(told.text) and all(_has_worked(one) or only_looks(one.command) for one in between)


def _namings(state: SessionState, one: FailureState) -> tuple[EarlierReport, ...]:
    """Return the sentence with which the answer of the same turn names what failed, in any language, if nothing came after it."""
    said = (told for told in state.admitted if told.turn == one.last_turn and told.seq > one.last_seq)
    found = (told for told in said if names_call(told.text, one.what, one.text))
    return tuple(EarlierReport(told.text, told.turn, told.seq) for told in islice(found, _is_last_work(state, one)))


def _find_stop(state: SessionState) -> Iterator[OpenFailure]:
    """Yield the words with which the service of the model stopped the work, if no answer came after them and waiting is no remedy."""
    end = state.ending
    if end is not None and end.kind == SERVICE and not PASSES.search(end.text):
        turn = max((one.turn for one in state.requests if one.seq < end.seq), default=state.turn_count - 1)
        yield OpenFailure(end.text, "", turn, end.seq, turn, end.seq, run=CheckRun(SERVICE, "any"))


# --- reports ---
def _is_loose(state: SessionState, one: OpenFailure) -> bool:
    """Whether a report is older than the last turns.

    Without a change of files since, the turn before the last one counts too, and after a change if the last turn ended without an answer.
    A change that the answer reports as done is not failing if a check speaks for it, or if it is the first attempt.
    """
    if one.complaint is None:
        return False
    ago = state.turn_count - 1 - one.last_turn
    is_left = not one.edits or _leaves_unfixed(state)
    is_tried = one.times == 1 and not one.complaint.again and any(not _DOCUMENT.search(path) for path in one.changed)
    return ago > is_left or ((one.checked or is_tried) and not is_left)


def _leaves_unfixed(state: SessionState) -> bool:
    """Whether the last turn ended without an answer that reports the work as done."""
    if state.waiting or state.interrupted or state.begun is not None or state.answer is None:
        return True
    is_pending = any(told.seq == state.answer.seq and TAKES_EFFECT.search(told.text) for told in state.admitted)
    return state.answer.turn < state.turn_count - 1 or is_pending or bool(NOT_VERIFIED.search(state.answer.text))
