"""Open failures: checks whose last run failed, and what a person reported, until a run or the person says it is over.

`advance_failures` folds the calls, edits and prompts of a turn, in order,
into the list of `OpenFailure`s. A failed run opens one, a later success of the same or a wider run closes it; a narrower
success closes it when the runs together cover every file that the failed run named. Wrong calls, probes, missing programs,
denials, interrupts and time limits neither open nor close anything. Pure; the list is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from posixpath import basename

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.call_results import EDITOR, CheckResult
from everturn.derive.changed_files import CHANGES
from everturn.derive.checks import CheckRun, covers, holds_target, is_related
from everturn.derive.failures import Complaint
from everturn.derive.intent import is_other_topic
from everturn.derive.paths import local_path
from everturn.derive.turn_facts import TurnFacts
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.stance_words import CLAIMS_PASS, UNSURE
from everturn.text.trouble_words import AGAIN

_MOST_OPEN = 100
_MOST_CHANGED = 5
_NAME = lazy_pattern(r"\b(?:[A-Za-z]\w{0,40}_\w{1,40}|[a-z]\w{0,40}[a-z][A-Z]\w{1,40})\b", re.ASCII)
_ORDERS = lazy_pattern(
    r"\b(?:can|could|would|will) (?:you|we)\b|\bplease\b|\bkannst du\b|\bpeux-tu\b|\bpuedes\b|能否|可以帮|してください",
    re.IGNORECASE,
)
_LAST_SAID = 3  # reports of the same trouble that are kept besides the first and the last
_COMMON_TERMS = 2
_SOON = 3  # turns within which one common term is enough
#: Turns without a repetition after which what was changed since counts as accepted.
_TACIT = {"reported": 12, "program": 5}
_TACIT_PROGRAM = 3  # of a program after whose failure files were changed
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


_CLAIMED = {"b": "build", "c": "build", "l": "lint", "e": "lint"}


def claimed_kinds(answer: str) -> tuple[str, ...]:
    """Return the kinds of checks that an answer says pass, without reservation."""
    found = (one for one in CLAIMS_PASS.finditer(answer) if not UNSURE.search(_sentence_at(answer, one)))
    words = ((one[1] or one[2] or one[3]).lower() for one in found)
    return tuple(dict.fromkeys(_CLAIMED.get(word[0], "test" if word.startswith("te") else "types") for word in words))


def _sentence_at(text: str, found: re.Match[str]) -> str:
    first = max(text.rfind(sign, 0, found.start()) for sign in ".\n!")
    ends = [at for sign in (". ", "\n", "!") if (at := text.find(sign, found.end())) >= 0]
    return text[first + 1 : min(ends, default=len(text))]


def failure_events(facts: TurnFacts, workspace: str) -> list[FailureEvent]:
    """Return the calls, edits and complaints of a turn in order; a call that edits comes before its edits."""
    events = [FailureEvent(seq, confirms=True) for seq in facts.confirmed]  # what works comes before what does not
    complaints = {seq: complaint for complaint, seq in facts.complaints}
    events += [FailureEvent(one.seq, complaint=complaints.pop(one.seq, None), said=one.text) for one in facts.requests]
    events += [FailureEvent(seq, complaint=complaint) for seq, complaint in complaints.items()]
    runs = (call for call in facts.deeds if call.checks or call.ran)
    events += [FailureEvent(call.seq, call.what, call.error, call.checks, call.ran) for call in runs]
    edits = [(one.seq, local_path(one.path, workspace)) for one in facts.files if one.action != "read"]
    named = {seq for seq, _ in edits}
    made = (call.seq for call in facts.deeds if call.kind in CHANGES and not call.outcome)
    edits += [(seq, "") for seq in dict.fromkeys(made) if seq not in named]
    events += [FailureEvent(seq, changed=(path,)) for seq, path in edits]
    seen = {one.run.kind for call in facts.deeds for one in call.checks}
    claims = set(claimed_kinds(facts.answer.text)) - seen if facts.answer else set()
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
    if event.complaint is None and _builds_on(event.said, one):
        return replace(one, passed_over=_OTHER_TOPICS + 1)
    about = " ".join((one.what, *one.complaint.terms))
    return replace(one, passed_over=one.passed_over + 1) if is_other_topic(event.said, about) else one


def _builds_on(said: str, one: OpenFailure) -> bool:
    """Whether a request uses a name of the error as something that exists."""
    is_asked = said.rstrip().endswith(("?", "？")) and not _ORDERS.search(said)
    if is_asked or AGAIN.search(said):
        return False
    return not set(_NAME.findall(said)).isdisjoint(_NAME.findall(f"{one.what} {one.text}"))


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
    common = len(set(new.terms) & set(old.terms))
    return new.again or common >= _COMMON_TERMS or (common > 0 and turns <= _SOON)
