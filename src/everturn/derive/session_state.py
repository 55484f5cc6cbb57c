"""The state of a session: its goal, what was done, what failed and still fails, what is open. No model.

`advance_state(state, facts)` folds one turn into the state. It is pure, so a state can be kept as JSON and continued
(`covers` is the last message it knows). Everything is kept, each item with its evidence (turn, seq); views leave out
(`derive.state_yaml`). An error is resolved only when the same attempt succeeds later, see `derive.failures`. A question is
answered when a human writes after it. Turns are 0-based here and shown 1-based.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.changed_files import (
    CHANGES,
    NEVER,
    RanBefore,
    TreeBefore,
    advance_before,
    advance_files,
    advance_ran,
    count_unnamed,
    first_task,
)
from everturn.derive.decisions import DecisionMark, likeness
from everturn.derive.file_book import FileState
from everturn.derive.intent import LooseEnd, Offer, advance_loose_ends, is_choice, is_thanks, join_reply, revised_status
from everturn.derive.marker_lines import ACTIVE, MarkedEntry, advance_entries, changed_status
from everturn.derive.open_failures import FailureEvent, OpenFailure, advance_failures, claimed_kinds
from everturn.derive.open_items import PlanItem, Question, advance_plan, advance_questions, tick_run_steps
from everturn.derive.paths import local_path
from everturn.derive.turn_facts import CallFact, CodeName, Saying, TurnFacts, advance_names
from everturn.text.stance_words import NOT_VERIFIED

_NAMES = 2_000  # mentioned files that are remembered
_BETWEEN = 5  # files listed that changed between a failure and its success


class CommitState(Struct, frozen=True):
    """A commit; `replaced` if a later one took its place: amended, or rebased with the same subject."""

    hash: str
    subject: str
    turn: int
    seq: int
    replaced: bool = False
    url: str = ""  # of a pull request or an issue
    by: str = ""  # "subagent" if the report of a subagent states it


class DecisionState(Struct, frozen=True):
    """A decision or a constraint, in its original words."""

    text: str
    turn: int
    seq: int
    kind: str  # marker | imperative | list | choice | answer | commit | pin
    pinned: bool = False
    about: str = ""  # the question or proposal of the agent that it answers
    about_seq: int = -1
    by: str = "person"  # or agent
    status: str = ACTIVE  # of decisions.STATUSES
    session: str = ""  # of the evidence, if it is inherited


class FailureState(Struct, frozen=True):
    """A call that did not succeed. It still fails unless `resolved_by` is the turn in which it succeeded."""

    what: str
    text: str
    turn: int
    seq: int
    outcome: str = "failed"  # of failures.OUTCOMES
    times: int = 1
    last_turn: int = 0
    last_seq: int = 0
    resolved_by: int | None = None
    resolved_seq: int | None = None
    between: tuple[str, ...] = ()  # files changed before it succeeded
    needs: tuple[str, ...] = ()  # keys not yet proven
    keys: tuple[str, ...] = ()
    tool: str = ""  # its name if `what` begins with it
    session: str = ""  # of the evidence, if it is inherited


class InheritedState(Struct, frozen=True):
    """The items of earlier sessions that are still in force. Each item has the session, turn and seq of its evidence."""

    constraints: tuple[DecisionState, ...] = ()
    decisions: tuple[DecisionState, ...] = ()
    errors: tuple[FailureState, ...] = ()
    failing: tuple[OpenFailure, ...] = ()
    entries: tuple[MarkedEntry, ...] = ()


class CommandState(Struct, frozen=True):
    command: str
    exit_status: int | None
    status: str
    turn: int
    seq: int
    failed: bool = False  # its output says so


class FileMention(Struct, frozen=True):
    """A mentioned file, how often, and where last."""

    path: str
    count: int
    turn: int
    seq: int


class TurnRequest(Struct, frozen=True):
    text: str
    turn: int
    seq: int
    starter: str = "human"
    wants: str = ""  # what it asks for if its beginning does not say so
    about: str = ""  # the question of the agent that it answers


class SessionState(Struct, frozen=True):
    """Everything known of a session up to the message `covers`."""

    id: str = ""
    workspace: str = ""
    model: str = ""
    turn_count: int = 0
    total_tokens: int = 0
    token_source: str = ""  # api | tokenizer | estimate: of its worst part
    goal: TurnRequest | None = None
    current_focus: str = ""
    requests: tuple[TurnRequest, ...] = ()
    files: dict[str, FileState] = {}
    before: tuple[str, ...] = ()  # files that were changed already when the agent began
    delegated: bool = False  # a subagent has worked, and the client did not note what it changed
    unnamed: int = 0  # edits of files that neither the calls nor an answer name
    ran: RanBefore = RanBefore()
    named: dict[str, FileMention] = {}  # mentioned files, the latest last; the oldest are dropped
    names: dict[str, CodeName] = {}  # names of code, the latest last; the oldest are dropped
    decisions: tuple[DecisionState, ...] = ()
    constraints: tuple[DecisionState, ...] = ()
    choices: tuple[DecisionState, ...] = ()  # what turns say was chosen
    proposed: tuple[Saying, ...] = ()  # what the last answer proposes
    entries: tuple[MarkedEntry, ...] = ()  # marker lines, see derive.decisions
    inherited: InheritedState = InheritedState()
    errors: tuple[FailureState, ...] = ()
    failing: tuple[OpenFailure, ...] = ()  # checks and complaints that are not over, see derive.open_failures
    commands: tuple[CommandState, ...] = ()
    commits: tuple[CommitState, ...] = ()
    plan: tuple[PlanItem, ...] = ()
    questions: tuple[Question, ...] = ()
    next_steps: tuple[TurnRequest, ...] = ()  # of the last answer that ended a turn
    loose: tuple[LooseEnd, ...] = ()  # what was offered or put off and nobody has taken up
    begun: TurnRequest | None = None  # work announced in the last turn that was cut off
    waiting: bool = False  # no answer reports on the last request
    answer: TurnRequest | None = None  # the last answer
    answers: tuple[TurnRequest, ...] = ()  # the beginning of the last answer of each turn
    offer: Offer | None = None  # what the last answer put to the person
    recap: TurnRequest | None = None  # what the client noted last as the state of the work
    interrupted: bool = False  # the human stopped the last turn
    covers: int = -1


def advance_state(state: SessionState, facts: TurnFacts) -> SessionState:
    """Return the state after one more turn."""
    reply = _find_reply(state, facts)
    about = {reply.seq: reply.about} if reply else {}
    requests = tuple(
        TurnRequest(one.text, facts.turn, one.seq, facts.starter, one.wants, about.get(one.seq, ""))
        for one in facts.requests
    )
    goal = state.goal or next((one for one in requests if one.starter == "human"), None)
    decisions, constraints = _update_decisions(state, facts, reply)
    answer = TurnRequest(facts.answer.text, facts.turn, facts.answer.seq, "model") if facts.answer else None
    agreed = state.proposed if reply is not None and reply.kind == "agreement" else ()
    new = [DecisionState(one.text, facts.turn, one.seq, "choice", by="agent") for one in (*agreed, *facts.choices)]
    steps = tuple(TurnRequest(one.text, facts.turn, one.seq, "model") for one in facts.steps)
    sources = (state.token_source, facts.token_source)
    source = "estimate" if "estimate" in sources else facts.token_source or state.token_source
    events = _failure_events(state, facts)
    if facts.trees and not any(one.count for one in state.files.values()):
        state = replace(state, before=advance_before(facts, _tree_before(state)))
    files, ran = _update_files(state, facts)
    return replace(
        state,
        model=facts.model or state.model,
        turn_count=max(state.turn_count, facts.turn + 1),
        total_tokens=state.total_tokens + facts.tokens,
        token_source=source,
        goal=goal,
        current_focus=facts.focus or state.current_focus,
        requests=state.requests + requests,
        files=files,
        delegated=state.delegated or _has_delegated(facts),
        unnamed=state.unnamed + (count_unnamed(facts) if any(one.kind in CHANGES for one in facts.deeds) else 0),
        named=_update_mentions(state, facts),
        names=advance_names(state.names, facts.names),
        decisions=decisions,
        constraints=constraints,
        choices=_change_statuses(_add_decisions(state.choices, new), facts),
        proposed=facts.proposed,
        entries=advance_entries(state.entries, facts.lines, facts.turn),
        inherited=_update_inherited(state.inherited, facts, events),
        errors=_update_failures(state, facts),
        failing=advance_failures(state.failing, events, facts.turn),
        commands=state.commands + _new_commands(facts),
        ran=ran,
        commits=_update_commits(state.commits, facts),
        plan=tick_run_steps(advance_plan(state.plan, facts.plans, facts.turn), (one.what for one in facts.deeds)),
        questions=_update_questions(state, facts),
        next_steps=steps if facts.answer and (steps or not facts.cut_off) else state.next_steps,
        loose=_update_loose_ends(state, facts),
        begun=TurnRequest(facts.begun.text, facts.turn, facts.begun.seq, "model") if facts.begun else None,
        waiting=_is_waiting(facts),
        answer=answer or state.answer,
        answers=(*state.answers, answer) if answer else state.answers,
        offer=facts.offer,
        recap=TurnRequest(facts.recap.text, facts.turn, facts.recap.seq, "client") if facts.recap else state.recap,
        interrupted=facts.interrupted,
        covers=max(state.covers, facts.last_seq),
    )


def _is_waiting(facts: TurnFacts) -> bool:
    """Whether no answer reports on the last request."""
    if facts.starter != "human" or not facts.requests or is_thanks(facts.requests[-1].text):
        return False
    return facts.cut_off or not (facts.answer or facts.deeds)


def still_failing(state: SessionState) -> list[OpenFailure]:
    """Return the checks whose last run failed and what the person reported in the last turns, the latest last."""
    return [one for one in state.failing if not _is_loose(state, one)]


def unconfirmed_reports(state: SessionState) -> list[OpenFailure]:
    """Return what the person reported earlier and never confirmed as fixed, the latest last."""
    return [one for one in state.failing if _is_loose(state, one)]


def _is_loose(state: SessionState, one: OpenFailure) -> bool:
    """Whether a report is older than the turn before, or files were changed for it and no answer says that this did not help."""
    ago = state.turn_count - 1 - one.last_turn
    if one.complaint is None or not one.edits:
        return one.complaint is not None and ago > 1
    return ago > 0 or not _leaves_unfixed(state)


def _leaves_unfixed(state: SessionState) -> bool:
    """Whether the last turn ended without an answer that reports the work as done."""
    if state.waiting or state.interrupted or state.begun is not None or state.answer is None:
        return True
    return state.answer.turn < state.turn_count - 1 or bool(NOT_VERIFIED.search(state.answer.text))


def unresolved_failures(state: SessionState) -> list[FailureState]:
    """Return all calls that failed and have not succeeded since, the latest last."""
    return [one for one in state.errors if one.outcome == "failed" and one.resolved_by is None]


def unanswered_questions(state: SessionState) -> list[Question]:
    """Return the questions without a later human message."""
    return [one for one in state.questions if one.answered_by is None]


# --- files and commands ---
def _update_files(state: SessionState, facts: TurnFacts) -> tuple[dict[str, FileState], RanBefore]:
    if not (facts.files or facts.trees or facts.folders or any("*" in one.what for one in facts.deeds)):
        return state.files, state.ran
    tree = _tree_before(state)
    return advance_files(state.files, facts, tree), tree.ran


def _tree_before(state: SessionState) -> TreeBefore:
    """Return what is known of the working tree before a turn."""
    new = [one.command for one in state.commands[state.ran.read :] if one.status == "ok" and not one.exit_status]
    ran = advance_ran(state.ran, new, len(state.commands))
    return TreeBefore(state.workspace, state.before, state.delegated, state.unnamed > 0, ran, state.named)


def _has_delegated(facts: TurnFacts) -> bool:
    return any(call.kind == "task" for call in facts.deeds) and first_task(facts) < NEVER


def _update_mentions(state: SessionState, facts: TurnFacts) -> dict[str, FileMention]:
    if not facts.mentions:
        return state.named
    named = dict(state.named)
    for one in facts.mentions:
        path = local_path(one.path, state.workspace)
        before = named.pop(path, None)
        named[path] = FileMention(path, one.count + (before.count if before else 0), facts.turn, one.seq)
    for path in list(named)[: max(0, len(named) - _NAMES)]:
        del named[path]
    return named


def _new_commands(facts: TurnFacts) -> tuple[CommandState, ...]:
    shell = (call for call in facts.deeds if call.kind == "shell")
    told = ((call, any(one.verdict == "failed" for one in call.checks)) for call in shell)
    return tuple(CommandState(one.what, one.exit_status, one.status, facts.turn, one.seq, fails) for one, fails in told)


def _update_commits(known: tuple[CommitState, ...], facts: TurnFacts) -> tuple[CommitState, ...]:
    """Return the commits after one more turn; those that a later one replaces are marked."""
    commits = list(known)
    for one, seq in facts.commits:
        if one.undone:
            commits = [old for old in commits if old.hash[:7] != one.hash[:7]]
            continue
        hashes = (old.hash[:7] for old in commits if old.hash)
        if (one.hash and any(map(one.hash.startswith, hashes))) or (
            one.url and any(old.url == one.url for old in commits)
        ):
            continue  # printed again
        standing = [number for number, old in enumerate(commits) if not old.replaced and not old.url]
        if one.amends:
            ended = standing[-1:]
        else:
            ended = [number for number in standing if one.rebased and commits[number].subject == one.subject]
        for number in ended:
            commits[number] = replace(commits[number], replaced=True)
        commits.append(CommitState(one.hash, one.subject, facts.turn, seq, url=one.url, by=one.by))
    return tuple(commits)


# --- failures ---
def _update_failures(state: SessionState, facts: TurnFacts) -> tuple[FailureState, ...]:
    """Fold the calls in order: a success may resolve failures before it, never after it."""
    if not facts.deeds:
        return state.errors
    errors = list(state.errors)
    changed: dict[int, list[str]] = {}
    for touch in facts.files:
        if touch.action != "read":
            changed.setdefault(touch.seq, []).append(local_path(touch.path, state.workspace))
    for call in facts.deeds:
        if call.outcome:
            _add_failure(errors, call, facts.turn)
        elif call.keys:
            _resolve_failures(errors, call, facts.turn)
        _note_changes_between(errors, changed.pop(call.seq, []))
    return tuple(errors)


def _update_inherited(known: InheritedState, facts: TurnFacts, events: list[FailureEvent]) -> InheritedState:
    """Fold a turn into what was inherited: it may resolve failures and end decisions, and adds nothing."""
    if known == InheritedState():
        return known
    errors = list(known.errors)
    for call in facts.deeds:
        if not call.outcome and call.keys:
            _resolve_failures(errors, call, facts.turn)
    return InheritedState(
        _change_statuses(known.constraints, facts),
        _change_statuses(known.decisions, facts),
        tuple(errors),
        tuple(one for one in advance_failures(known.failing, events, facts.turn) if one.session),
        advance_entries(known.entries, facts.lines, facts.turn, new=False),
    )


def _failure_events(state: SessionState, facts: TurnFacts) -> list[FailureEvent]:
    """Return the calls, edits and complaints of a turn in order; a call that edits comes before its edits."""
    events = [FailureEvent(seq, confirms=True) for seq in facts.confirmed]  # what works comes before what does not
    complaints = {seq: complaint for complaint, seq in facts.complaints}
    events += [FailureEvent(one.seq, complaint=complaints.pop(one.seq, None), said=one.text) for one in facts.requests]
    events += [FailureEvent(seq, complaint=complaint) for seq, complaint in complaints.items()]
    runs = (call for call in facts.deeds if call.checks or call.ran)
    events += [FailureEvent(call.seq, call.what, call.error, call.checks, call.ran) for call in runs]
    edits = [(one.seq, local_path(one.path, state.workspace)) for one in facts.files if one.action != "read"]
    named = {seq for seq, _ in edits}
    made = (call.seq for call in facts.deeds if call.kind in CHANGES and not call.outcome)
    edits += [(seq, "") for seq in dict.fromkeys(made) if seq not in named]
    events += [FailureEvent(seq, changed=(path,)) for seq, path in edits]
    seen = {one.run.kind for call in facts.deeds for one in call.checks}
    claims = set(claimed_kinds(facts.answer.text)) - seen if facts.answer else set()
    events += [FailureEvent(facts.answer.seq, claims=tuple(sorted(claims)))] if facts.answer and claims else []
    return sorted(events, key=lambda event: event.seq)


def _note_changes_between(errors: list[FailureState], paths: list[str]) -> None:
    if not paths:
        return
    for number, error in enumerate(errors):
        if error.resolved_by is None and error.outcome == "failed":
            between = dict.fromkeys((*error.between, *paths))
            errors[number] = replace(error, between=tuple(between)[-_BETWEEN:])


def _add_failure(errors: list[FailureState], call: CallFact, turn: int) -> None:
    for number, error in enumerate(errors):
        if error.resolved_by is None and error.keys == call.keys and error.outcome == call.outcome:
            errors[number] = replace(
                error, times=error.times + 1, last_turn=turn, last_seq=call.seq, text=call.error or error.text,
                needs=call.keys,
            )  # fmt: skip
            return
    errors.append(
        FailureState(
            call.what, call.error, turn, call.seq, call.outcome, 1, turn, call.seq,
            needs=call.keys, keys=call.keys, tool=call.tool,
        )
    )  # fmt: skip


def _resolve_failures(errors: list[FailureState], call: CallFact, turn: int) -> None:
    for number, error in enumerate(errors):
        if error.resolved_by is None and any(key in call.keys for key in error.needs):
            needs = tuple(key for key in error.needs if key not in call.keys)
            done = {} if needs else {"resolved_by": turn, "resolved_seq": call.seq}
            errors[number] = replace(error, needs=needs, **done)


# --- decisions and questions ---
def _update_decisions(
    state: SessionState, facts: TurnFacts, reply: DecisionState | None
) -> tuple[tuple[DecisionState, ...], tuple[DecisionState, ...]]:
    decisions = [_decision_state(mark, facts.turn, seq) for mark, seq in facts.marks if not mark.binds]
    if reply is not None:
        decisions = [one for one in decisions if one.seq != reply.seq] + [reply]
    decisions += [
        DecisionState(" ".join(filter(None, ("commit", one.hash, one.subject))), facts.turn, seq, "commit")
        for one, seq in facts.commits
        if not one.url
    ]
    constraints = [_decision_state(mark, facts.turn, seq) for mark, seq in facts.marks if mark.binds]
    decisions.sort(key=lambda one: one.seq)
    return (
        _change_statuses(_add_decisions(state.decisions, decisions), facts),
        _change_statuses(_add_decisions(state.constraints, constraints), facts),
    )


def _change_statuses(known: tuple[DecisionState, ...], facts: TurnFacts) -> tuple[DecisionState, ...]:
    """Apply the sentences and lines that say what became of an earlier decision."""
    if facts.revisions:
        known = tuple(_revise(one, facts) for one in known)
    if not any(line.kind in ("status", "decision", "constraint") for line, _, _ in facts.lines):
        return known
    return tuple(
        replace(one, status=changed_status(one.text, one.status, (one.turn, one.seq), facts.lines, facts.turn))
        for one in known
    )


def _revise(one: DecisionState, facts: TurnFacts) -> DecisionState:
    later = [revision for revision, seq in facts.revisions if seq > one.seq]
    status = "" if one.pinned or one.kind == "commit" else revised_status(one.text, later)
    return replace(one, status=status) if status and one.status == ACTIVE else one


def _decision_state(mark: DecisionMark, turn: int, seq: int) -> DecisionState:
    by = "agent" if mark.kind == "choice" else "person"
    return DecisionState(mark.text, turn, seq, mark.kind, mark.pinned, by=by)


def _find_reply(state: SessionState, facts: TurnFacts) -> DecisionState | None:
    """Return the decision in the first words of a turn if they answer what the agent put to the person."""
    if state.offer is None or facts.starter != "human" or not facts.requests or state.interrupted:
        return None
    first = facts.requests[0]
    joined = join_reply(first.text, state.offer)
    if joined is None or not is_choice(joined):
        return None
    kind = "agreement" if joined.agrees else "answer"
    return DecisionState(joined.answer, facts.turn, first.seq, kind, False, joined.question, state.offer.seq)


def _update_loose_ends(state: SessionState, facts: TurnFacts) -> tuple[LooseEnd, ...]:
    said = [words for one in facts.requests for words in (one.text, one.wants)]
    said += [one.text for one in facts.choices] + [one.subject for one, _ in facts.commits]
    said += [facts.answer.text] if facts.answer else []
    done = [call.what for call in facts.deeds if call.kind == "shell" and call.status == "ok" and not call.exit_status]
    deeds = {"push"} if any("git push" in one for one in done) else set()
    deeds |= {"pr" if one.url else "commit" for one, _ in facts.commits}
    reply = facts.requests[0].text if facts.requests and facts.starter == "human" else ""
    left = advance_loose_ends(state.loose, facts.turn, reply, [*said, *done], frozenset(deeds))
    noted = facts.recap.seq if facts.recap else -1
    left = tuple(one for one in left if noted < 0 or not one.is_note)  # a note replaces the one before
    return (*left, *(LooseEnd(one.text, facts.turn, one.seq, one.seq == noted) for one in facts.lasting))


def _add_decisions(known: tuple[DecisionState, ...], new: list[DecisionState]) -> tuple[DecisionState, ...]:
    """Add new decisions; a repeated one keeps its first position."""
    if not new:
        return known
    by_words = {likeness(one.text): one for one in known}
    for one in new:
        by_words.setdefault(likeness(one.text), one)
    return tuple(by_words.values())


def _update_questions(state: SessionState, facts: TurnFacts) -> tuple[Question, ...]:
    written = [one.seq for one in facts.requests] if facts.starter == "human" else []
    return advance_questions(state.questions, [(one.text, one.seq) for one in facts.asked], written, facts.turn)
