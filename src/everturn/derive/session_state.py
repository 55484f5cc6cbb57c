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
from everturn.derive.choices import ChoicePassage
from everturn.derive.commits import on_branch
from everturn.derive.decision_states import (
    DecisionState,
    advance_choices,
    advance_constraints,
    advance_decisions,
    change_statuses,
    find_reply,
)
from everturn.derive.file_book import UNRECORDED, FileBook, FileState
from everturn.derive.intent import asks_question, is_thanks, says_nothing_new, steers_client
from everturn.derive.key_names import KeyName, advance_names
from everturn.derive.loose_ends import Ending, LooseEnd, find_ending, fold_loose_ends, leaves_steps
from everturn.derive.marker_lines import MarkedEntry, advance_entries
from everturn.derive.offers import Offer
from everturn.derive.open_failures import FailureEvent, OpenFailure, advance_failures, failure_events
from everturn.derive.open_items import Question, advance_questions
from everturn.derive.paths import local_path
from everturn.derive.plans import PlanItem, fold_plan
from everturn.derive.pointers import Referent
from everturn.derive.turn_facts import CallFact, Saying, TurnFacts
from everturn.derive.version_control import (
    CommitState,
    advance_commits,
    commit_folder,
    is_tracked,
    may_have_settled,
    may_settle,
)

_NAMES = 2_000  # mentioned files that are remembered
_MOST_ADMITTED = 40  # sentences of answers that are remembered
_UNREPORTED = 12  # requests without a report that are remembered
_BETWEEN = 5  # files listed that changed between a failure and its success


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
    changes: bool = False  # it was to change a file
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
    ended: str = ""  # how it ended, in words; "" if nothing is recorded


class FileMention(Struct, frozen=True):
    """A mentioned file, how often, and where last; `said` if a person or an answer names it, and not only an output."""

    path: str
    count: int
    turn: int
    seq: int
    said: bool = True


class TurnRequest(Struct, frozen=True):
    text: str
    turn: int
    seq: int
    starter: str = "human"
    wants: str = ""  # what it asks for if its beginning does not say so
    about: str = ""  # the question of the agent that it answers
    meant: Referent | None = None  # what it refers to if it does not say it


class SessionState(Struct, frozen=True):
    """Everything known of a session up to the message `covers`."""

    id: str = ""
    workspace: str = ""
    model: str = ""
    branch: str = ""  # and repository: that version control named last
    repository: str = ""
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
    names: dict[str, KeyName] = {}  # in the order of their first use; those used least are dropped
    decisions: tuple[DecisionState, ...] = ()
    constraints: tuple[DecisionState, ...] = ()
    choices: tuple[DecisionState, ...] = ()  # what turns say was chosen
    proposed: tuple[ChoicePassage, ...] = ()  # what the last answer proposes
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
    unreported: tuple[TurnRequest, ...] = ()  # the requests on which no answer reports, since the last that one did
    answer: TurnRequest | None = None  # the last answer
    admitted: tuple[TurnRequest, ...] = ()  # what the last answer says failed
    answers: tuple[TurnRequest, ...] = ()  # the beginning of the last answer of each turn
    offer: Offer | None = None  # what the last answer put to the person
    recap: TurnRequest | None = None  # what the client noted last as the state of the work
    interrupted: bool = False  # the human stopped the last turn
    ending: Ending | None = None  # what came after the last answer
    covers: int = -1


def advance_state(state: SessionState, facts: TurnFacts) -> SessionState:
    """Return the state after one more turn."""
    reply = find_reply(state.offer, state.interrupted, facts)
    about = {reply.seq: reply.about} if reply else {}
    requests = tuple(
        TurnRequest(
            one.text, facts.turn, one.seq, facts.starter, one.wants, about.get(one.seq, ""), _meant(state, one, reply)
        )
        for one in facts.requests
    )
    goal = state.goal or next((one for one in requests if one.starter == "human"), None)
    answer = TurnRequest(facts.answer.text, facts.turn, facts.answer.seq, "model") if facts.answer else None
    sources = (state.token_source, facts.token_source)
    source = "estimate" if "estimate" in sources else facts.token_source or state.token_source
    events = failure_events(facts, state.workspace)
    if facts.trees and not any(one.count for one in state.files.values()):
        state = replace(state, before=advance_before(facts, _tree_before(state)))
    files, ran = _update_files(state, facts)
    is_idle = not (
        facts.requests or facts.deeds or facts.answer or facts.interrupted or facts.stopped
    )  # the client's own commands
    return replace(
        state,
        model=facts.model or state.model,
        branch=facts.branch or state.branch,
        repository=facts.repository or state.repository,
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
        decisions=advance_decisions(state.decisions, facts, reply),
        constraints=advance_constraints(state.constraints, facts),
        choices=advance_choices(state.choices, state.proposed, facts, reply),
        proposed=facts.proposed,
        entries=advance_entries(state.entries, facts.lines, facts.turn),
        inherited=_update_inherited(state.inherited, facts, events),
        errors=_update_failures(state, facts),
        failing=advance_failures(state.failing, events, facts.turn),
        commands=state.commands + _new_commands(facts),
        ran=ran,
        commits=_update_commits(state, facts),
        plan=fold_plan(
            state.plan,
            facts.plans,
            facts.turn,
            (one.what for one in facts.deeds),
            {one.path: one.seq for one in facts.files if one.action != "read"},
        ),
        questions=_update_questions(state, facts),
        next_steps=_update_steps(state, facts),
        loose=fold_loose_ends(state.loose, facts),
        begun=state.begun if is_idle or _goes_on(facts) else _begun(facts),
        waiting=state.waiting if is_idle else _is_waiting(facts),
        unreported=state.unreported
        if is_idle
        else (*state.unreported, *requests)[-_UNREPORTED:]
        if _is_waiting(facts)
        else (),
        answer=answer or state.answer,
        admitted=(
            *state.admitted[-_MOST_ADMITTED:],
            *(TurnRequest(one.text, facts.turn, one.seq, "model") for one in facts.admitted),
        ),
        answers=(*state.answers, answer) if answer else state.answers,
        offer=facts.offer,
        recap=TurnRequest(facts.recap.text, facts.turn, facts.recap.seq, "client") if facts.recap else state.recap,
        interrupted=state.interrupted if is_idle else facts.interrupted,
        ending=state.ending if is_idle or _is_still_stopped(state, facts) else find_ending(facts),
        covers=max(state.covers, facts.last_seq),
    )


def _meant(state: SessionState, request: Saying, reply: DecisionState | None) -> Referent | None:
    """Return what a request refers to: the option that it picks, else what its turn says."""
    if reply is not None and reply.seq == request.seq and reply.text != request.text:
        return Referent(reply.text.removeprefix(request.text).lstrip(": "), reply.about_seq, "option")
    is_later = request.meant is not None and request.meant.kind == "answer" and state.answers  # it goes on with them
    return None if is_later else request.meant


def _goes_on(facts: TurnFacts) -> bool:
    """Whether the person only told the agent to go on, and nothing came of it."""
    return not facts.deeds and facts.answer is None and all(says_nothing_new(one.text) for one in facts.requests)


def _begun(facts: TurnFacts) -> TurnRequest | None:
    """Return the work that the last answer of a turn announced and that was cut off."""
    return TurnRequest(facts.begun.text, facts.turn, facts.begun.seq, "model") if facts.begun else None


def _is_still_stopped(state: SessionState, facts: TurnFacts) -> bool:
    """Whether a service had stopped the work before a turn, and nothing was done or answered in it."""
    is_stopped = state.ending is not None and state.ending.kind == "service" and facts.stopped is None
    return is_stopped and not facts.deeds and facts.answer is None


def _is_waiting(facts: TurnFacts) -> bool:
    """Whether no answer reports on the last request."""
    if facts.starter != "human" or not facts.requests or is_thanks(facts.requests[-1].text):
        return False
    return facts.cut_off or not (facts.answer or facts.deeds) or facts.is_progress


def unresolved_failures(state: SessionState) -> list[FailureState]:
    """Return all calls that failed and have not succeeded since, the latest last."""
    return [one for one in state.errors if one.outcome == "failed" and one.resolved_by is None]


def uncommitted_files(state: SessionState) -> list[FileState]:
    """Return the files that were certainly changed after the last commit and that nothing has committed, put away or discarded since.

    Only of a session that commits in its own workspace, and where nobody else can have committed: no subagent, and no person who speaks of it.
    """
    made = [one for one in state.commits if not one.url]
    if not made or state.delegated or made[-1].by or not state.workspace:
        return []
    last = max(one.seq for one in made)
    settled = max((one.seq for one in state.commands if one.seq > last and may_settle(one.command)), default=last)
    settled = max((settled, *(one.seq for one in state.requests if may_have_settled(one.text))))
    folder = next((commit_folder(one.command) for one in state.commands if one.seq == last), "")
    if folder is None:
        return []
    root = local_path(f"{folder}/x", state.workspace).removesuffix("x") if folder else ""
    changed = (one for one in state.files.values() if one.action != "read" and one.seq > settled and not one.by)
    return [one for one in changed if one.path.startswith(root) and is_tracked(one.path)]


def unanswered_questions(state: SessionState) -> list[Question]:
    """Return the questions to which no human replied. Who asks something else instead, and gets no answer, has not replied."""
    asked = {
        one.turn for one in state.unreported if not one.about and (asks_question(one.text) or steers_client(one.text))
    }
    return [one for one in state.questions if one.answered_by is None or one.answered_by in asked]


# --- files and commands ---
def _update_files(state: SessionState, facts: TurnFacts) -> tuple[dict[str, FileState], RanBefore]:
    undone = {one.hash[:7] for one, _ in facts.commits if one.undone}
    if not (undone or facts.files or facts.trees or facts.folders or any("*" in one.what for one in facts.deeds)):
        return state.files, state.ran
    tree, known = _tree_before(state), state.files
    if undone:
        known = FileBook(known, state.workspace)
        for one in state.commits:
            if one.hash[:7] in undone:
                known.undo(one.turn, one.seq)
    return advance_files(known, facts, tree), tree.ran


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
        count, is_said = (before.count, before.said) if before else (0, False)
        named[path] = FileMention(path, one.count + count, facts.turn, one.seq, one.said or is_said)
    for path in list(named)[: max(0, len(named) - _NAMES)]:
        del named[path]
    return named


def _new_commands(facts: TurnFacts) -> tuple[CommandState, ...]:
    shell = (call for call in facts.deeds if call.kind == "shell")
    return tuple(CommandState(one.what, one.exit_status, one.status, facts.turn, one.seq, one.ended) for one in shell)


def _update_commits(state: SessionState, facts: TurnFacts) -> tuple[CommitState, ...]:
    """Return the commits after one more turn. What names no branch is on the one that version control named last."""
    commits = state.commits
    if facts.commits or facts.rewrites or facts.logged:
        changes = [(replace(one, branch=one.branch or state.branch), seq) for one, seq in facts.rewrites]
        made = [(on_branch(one, state.branch), seq) for one, seq in facts.commits]
        commits = advance_commits(commits, made, changes, facts.turn, facts.logged)
    if any(one.by == UNRECORDED for one in state.commits):  # only begun, and the session goes on
        commits = tuple(one for one in commits if one.by != UNRECORDED or one.hash or one.turn == facts.turn)
    return commits


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
        change_statuses(known.constraints, facts),
        change_statuses(known.decisions, facts),
        tuple(errors),
        tuple(one for one in advance_failures(known.failing, events, facts.turn) if one.session),
        advance_entries(known.entries, facts.lines, facts.turn, new=False),
    )


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
            needs=call.keys, keys=call.keys, tool=call.tool, changes=call.kind in CHANGES,
        )
    )  # fmt: skip


def _resolve_failures(errors: list[FailureState], call: CallFact, turn: int) -> None:
    for number, error in enumerate(errors):
        if error.resolved_by is None and any(key in call.keys for key in error.needs):
            needs = tuple(key for key in error.needs if key not in call.keys)
            done = {} if needs else {"resolved_by": turn, "resolved_seq": call.seq}
            errors[number] = replace(error, needs=needs, **done)


# --- what is open ---
def _update_steps(state: SessionState, facts: TurnFacts) -> tuple[TurnRequest, ...]:
    """Return what is to do after a turn: the steps its answer names, else those of the answer before if it leaves them open."""
    reply = facts.requests[-1].text if facts.requests and facts.starter == "human" else ""
    steps = tuple(TurnRequest(one.text, facts.turn, one.seq, "model") for one in facts.steps)
    is_cut = facts.cut_off or facts.interrupted or not facts.answer
    return steps or (
        state.next_steps
        if leaves_steps(reply, is_cut, bool(facts.deeds or facts.asked), bool(facts.complaints))
        else ()
    )


def _update_questions(state: SessionState, facts: TurnFacts) -> tuple[Question, ...]:
    written = [one.seq for one in facts.requests] if facts.starter == "human" else []
    return advance_questions(state.questions, [(one.text, one.seq) for one in facts.asked], written, facts.turn)
