"""A complete document without a model: the state of a session, section by section, each statement with its evidence.

`build_document` reads the session once and states only what its records say. A summary that a client wrote is a labelled
source, not a fact. `MAKERS` has one function for each key of `SECTIONS` and `FACTS`. Weights decide what a budget has
room for: first the goal and what still fails, then open plan items, constraints and the last requests, changed files,
then commits and decisions, files only read, fixed errors, older requests, commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.checks import only_looks
from everturn.derive.file_book import REPORT, UNRECORDED, FileState
from everturn.derive.key_names import KeyName, NameSetting, rank_names
from everturn.derive.open_failures import SERVICE, OpenFailure, still_failing, unconfirmed_reports
from everturn.derive.plans import PlanItem, find_current, is_task
from everturn.derive.session_state import FailureState, SessionState, advance_state, uncommitted_files
from everturn.derive.turn_facts import TurnFacts
from everturn.derive.version_control import CommitState
from everturn.model.archive import Session, is_live
from everturn.restore.budget import NAMES
from everturn.restore.decisions import constraints, key_decisions
from everturn.restore.document import FACTS, SECTIONS, Document, DocumentSection, Statement
from everturn.restore.evidence import (
    DraftStatement,
    Proofs,
    StatementMaterial,
    check_document,
    fact_statement,
    find_evidence,
    proven_statement,
    rank_latest,
    safe_excerpt,
    saying_statement,
    weigh_by_mention,
    weigh_by_use,
    weight_by_rank,
)
from everturn.restore.goal import high_level_goal, primary_task, requests, session_name
from everturn.restore.loose_ends import left_before, next_steps, open_questions
from everturn.sessions.messages import Sources, has_words
from everturn.sessions.state import initial_state, session_facts
from everturn.store.contract import Store
from everturn.text.printable import one_line, plural

#: Called with (turns done, turns to do).
Progress = Callable[[int, int], None]

#: The most statements of a document, more than a useful budget has room for. Proving one means reading a message.
MOST_STATEMENTS = 300


class SessionMaterial(Struct, frozen=True):
    """The result of reading a session once: its state, and the facts of each turn on request."""

    state: SessionState
    facts: tuple[TurnFacts, ...] = ()


def build_document(
    store: Store,
    sources: Sources,
    session: Session,
    last: int | None = None,
    progress: Progress = lambda done, total: None,
) -> Document:
    """Return the document of a session, or of its turns up to `last` (0-based)."""
    gathered = read_material(store, sources, session, last, progress)
    return document_from_state(store, sources, session, gathered.state)


def read_material(
    store: Store,
    sources: Sources,
    session: Session,
    last: int | None = None,
    progress: Progress = lambda done, total: None,
    keep_facts: bool = False,
) -> SessionMaterial:
    total = session.n_turns if last is None else min(session.n_turns, last + 1)
    state, kept = initial_state(store, session), []
    for facts in session_facts(store, sources, session, 0, last):
        state = advance_state(state, facts)
        if keep_facts:
            kept.append(facts)
        progress(facts.turn + 1, total)
    return SessionMaterial(state, tuple(kept))


def document_from_state(
    store: Store, sources: Sources, session: Session, state: SessionState, most: int = MOST_STATEMENTS
) -> Document:
    """Return the document of a session's state, with at most `most` statements."""
    text = store.session(session.id)[1]
    rows = list(store.messages(session.id, 0, state.covers)) if state.covers >= 0 else []
    summaries = tuple(row for row in rows if row.kind == "summary" and is_live(row, state.covers))
    taken_back = sum(not is_live(row, state.covers) and row.origin in ("human", "model") for row in rows)
    material = StatementMaterial(state, Proofs(store, sources, session), _map_results(store, session), text, summaries)
    made = _build_sections({key: list(make(material)) for key, make in MAKERS.items()}, most)
    sections, doubtful = _check_sections(store, sources, made, material.proofs)
    notes = [] if has_words(session) else [f"the text of this session was not stored (capture mode {session.mode})"]
    if state.turn_count < session.n_turns:
        notes.append(f"covers turns 1 to {state.turn_count} of {session.n_turns}")
    if taken_back:
        notes.append(f"leaves out {plural(taken_back, 'message')} that the person took back")
    if state.unnamed:
        notes.append(
            f"{plural(state.unnamed, 'edit')} in the transcript {'name' if state.unnamed > 1 else 'names'} no file"
        )
    return Document(
        session=session.id,
        native_id=session.native_id,
        agent=session.agent,
        workspace=text.workspace,
        repository=state.repository,
        branch=state.branch or text.branch,
        agent_model=state.model or session.model,
        started=session.started,
        ended=session.ended,
        turns=state.turn_count,
        last_seq=state.covers,
        sections=tuple(sections[key] for key in SECTIONS),
        facts=tuple(sections[key] for key in FACTS),
        unverified=doubtful,
        notes=tuple(notes),
    )


def _build_sections(drafts: dict[str, list[DraftStatement]], most: int) -> dict[str, DocumentSection]:
    """Prove the heaviest drafts and count the others."""
    weights = sorted((one.weight for made in drafts.values() for one in made), reverse=True)
    least = weights[most - 1] if len(weights) > most else 0.0
    sections = {}
    for key, made in drafts.items():
        kept = [one for one in made if one.weight >= least][: _MOST_NOISE.get(key)]
        sections[key] = DocumentSection(key, tuple(map(proven_statement, kept)), len(made) - len(kept))
    return sections


def _check_sections(
    store: Store, sources: Sources, sections: dict[str, DocumentSection], proofs: Proofs
) -> tuple[dict[str, DocumentSection], tuple[Statement, ...]]:
    """Check every statement. One that does not hold is a defect of ours and is returned apart."""
    doubtful: list[Statement] = []
    found: dict[str, DocumentSection] = {}
    cited = (one for section in sections.values() for one in section.statements if one.evidence)
    checked = iter(
        check_document(store, sources, cited, proofs)
    )  # at once: statements of several sections cite the same message
    for key, section in sections.items():
        here = [next(checked) for one in section.statements if one.evidence]
        bare = tuple(one for one in section.statements if not one.evidence)  # a title, which is labelled as one
        doubtful += (one.statement for one in here if not one.holds)
        found[key] = replace(section, statements=(*bare, *(one.statement for one in here if one.holds)))
    return found, tuple(doubtful)


def _map_results(store: Store, session: Session) -> dict[int, int]:
    """Map each message with a single call to the message with its result."""
    found: dict[int, int] = {}
    several: set[int] = set()
    for call in store.calls(session.id):
        if call.seq in found:
            several.add(call.seq)
        elif call.result_seq is not None:
            found[call.seq] = call.result_seq
    return {seq: result for seq, result in found.items() if seq not in several}


_COMMAND = 110
_COMPLAINT = 120
_REPORTED = 300
_EARLIER = 120
_SUMMARY = 1200
_MOST_NOISE = {"mentioned": 16, "commands": 16}  # statements that are proven of what is shown last
_MOST_NAMES = 80
_SUBJECT, _SHORT_SUBJECT, _SUBJECTS = 100, 32, 1_000  # cells of a subject, at most and at least, and of all of them
_TASK_WORDS, _TASKS = 100, 600  # cells of a task of a file, and of all of them
_UNCOMMITTED = 6  # files that are named
_JUDGED = 100  # commands of which it is asked whether they only show text
_NEXT_ITEMS, _LATER_ITEM = 8, 12.0  # plan items that matter now; the weight of later ones
_SIGNS = {"open": "[ ]", "doing": "[~]", "done": "[x]", "dropped": "[-]"}


# --- sections of files and facts; those of what was said are in restore.goal, decisions and loose_ends ---
def artifacts(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Files that were changed. The latest and the most often changed weigh most."""
    for weight, one in weigh_by_use([one for one in material.state.files.values() if one.action != "read"]):
        yield _draft_file(material, one, 50 + 38 * weight)


def failing_commands(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Checks whose last run failed, and what the person reported in the last turns, until a run or the person says that it is over."""
    for rank, one in rank_latest(still_failing(material.state)):
        refs = [
            (one.last_seq, one.what),
            (material.results.get(one.last_seq, one.last_seq if one.run else -1), one.text),
        ]
        refs += [(said.seq, said.text) for said in one.earlier]
        yield fact_statement(material, weight_by_rank(94, rank, 40), _failing_text(material, one), refs)


def errors_fixed(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Calls that failed and succeeded later, and the files changed in between."""
    fixed = [one for one in material.state.errors if one.outcome == "failed" and one.resolved_by is not None]
    for rank, one in rank_latest(fixed):
        refs = [(one.seq, _failed_words(one)), (-1 if one.resolved_seq is None else one.resolved_seq, "")]
        yield fact_statement(material, weight_by_rank(44, rank, 12), _fixed_text(material, one), refs)


def loose_ends(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Earlier reports that nobody confirmed as fixed, and what earlier answers offered or put off and nobody took up."""
    for rank, one in rank_latest(unconfirmed_reports(material.state)):
        refs = [(one.last_seq, one.what)]
        yield fact_statement(material, weight_by_rank(72, rank, 40), _failing_text(material, one), refs)
    yield from left_before(material)


def key_names(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Return the names that a successor looks for first, one by one: a list shows those that stand nowhere else."""
    state = material.state
    for rank, one in enumerate(rank_names(state.names.values(), name_setting(state), _MOST_NAMES)):
        yield DraftStatement(weight_by_rank(60, rank, 20, 0.98), partial(_make_name, material, one))


def _make_name(material: StatementMaterial, one: KeyName) -> Statement:
    evidence = find_evidence(material, [(one.seq, one.text)])
    around = material.proofs.around(one.seq, one.text)
    return Statement(f"`{one.text}`", evidence, True if evidence else None, around=around)


def name_setting(state: SessionState) -> NameSetting:
    """Return what the rank of a name depends on besides its own uses."""
    changed = {one.path for one in state.files.values() if one.action != "read"}
    prompt = next((one.seq for one in state.requests if one.starter == "human"), -1)
    answer = state.answer.seq if state.answer is not None else -1
    names = frozenset(changed | {path.rpartition("/")[2] for path in changed})
    spaced = (one for one in (state.workspace, *state.files) if " " in one)
    pieces = frozenset(piece for one in spaced for piece in one.split(" "))
    return NameSetting(max(1, state.covers + 1), len(state.names), prompt, answer, names, pieces)


def plan_open(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Plan items that are not done; the tasks of a file in one entry."""
    left = find_current(material.state.plan, material.state.turn_count - 1)
    tasks = [one for one in left if is_task(one)]
    for rank, one in enumerate(one for one in left if not is_task(one)):
        yield _draft_item(material, one, weight_by_rank(92, rank, 60) if rank < _NEXT_ITEMS else _LATER_ITEM)
    if tasks:
        text = " · ".join(one_line(one.text, _TASK_WORDS) for one in tasks)
        yield saying_statement(material, 88, (tasks[0].seq, text), f"{_SIGNS['open']} ", width=_TASKS)


def plan_done(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Plan items that are done or were dropped."""
    for rank, one in rank_latest([one for one in material.state.plan if one.status in ("done", "dropped")]):
        yield _draft_item(material, one, weight_by_rank(38, rank, 14))


def commits(material: StatementMaterial) -> Iterator[DraftStatement]:
    """What was changed and not committed, then commits, the latest first; of many, less of their subjects."""
    if left := uncommitted_files(material.state):
        shown = left[-_UNCOMMITTED:]
        more = f" and {len(left) - len(shown)} more" if len(left) > len(shown) else ""
        note = f"not committed, changed since the last commit: {', '.join(f'`{one.path}`' for one in shown)}{more}"
        yield fact_statement(material, 90, lambda: note, [(one.seq, one.path) for one in shown])
    width = min(_SUBJECT, max(_SHORT_SUBJECT, _SUBJECTS // max(1, len(material.state.commits))))
    for rank, one in rank_latest(material.state.commits):
        words = (one.seq, one.subject)
        weight = weight_by_rank(76, rank, 64)
        if one.hash:
            where = one.shown if one.shown >= 0 else material.results.get(one.seq, one.seq)
            text = _commit_text(material, one, words, width)
            yield fact_statement(material, weight, text, [(where, one.hash)], _LABELS.get(one.by, one.by))
        else:
            where = material.results.get(one.seq, one.seq) if one.url else one.seq
            label = _LABELS.get(one.by, one.by)
            yield saying_statement(
                material, weight, (where, one.subject), label=label, width=2 * _SUBJECT if one.url else width
            )


def files(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Files that were only read."""
    for weight, one in weigh_by_use([one for one in material.state.files.values() if one.action == "read"]):
        yield _draft_file(material, one, 20 + 48 * weight)


def mentioned_files(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Files that a person or an answer named and nothing touched. Late and often named ones weigh most."""
    known = {*material.state.files, *material.state.named}
    ends = {end for path in known for end in _path_endings(path)}
    touched = {end for path in material.state.files for end in (path.replace("\\", "/"), *_path_endings(path))}
    said = [(one, one.path.replace("\\", "/")) for one in material.state.named.values() if one.said]
    whole = {path for path in material.state.files if "/" in path}
    left = [one for one, path in said if path not in ends | touched and whole.isdisjoint(_path_endings(path))]
    for weight, one in weigh_by_mention(left):
        yield fact_statement(material, 1 + 15 * weight, partial("`{}`".format, one.path), [(one.seq, one.path)])


def commands(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Commands and how each ended the last time, the latest first; those that only show or search text come last."""
    last_runs = {one.command: one for one in material.state.commands}
    latest = sorted(last_runs.values(), key=lambda one: one.seq, reverse=True)
    latest[:_JUDGED] = sorted(latest[:_JUDGED], key=lambda one: only_looks(one.command))
    for rank, one in enumerate(latest):
        ended = (
            f" → {safe_excerpt(material, (material.results.get(one.seq, one.seq), one.ended), _COMPLAINT)}"
            if one.ended
            else ""
        )
        yield saying_statement(
            material, weight_by_rank(18, rank, 2), (one.seq, one.command), lead="`", tail=f"`{ended}", width=_COMMAND
        )


def client_summaries(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Summaries the client wrote, the latest first."""
    for rank, row in rank_latest(material.summaries):
        words = material.proofs.excerpt(row.seq, "summary", _SUMMARY if not rank else 200)
        if words:
            yield saying_statement(
                material, weight_by_rank(58, rank, 5, 0.5), (row.seq, words), label="compaction summary", width=_SUMMARY
            )


MAKERS: dict[str, Callable[[StatementMaterial], Iterable[DraftStatement]]] = {
    "session_name": session_name,
    "high_level_goal": high_level_goal,
    "primary_task": primary_task,
    "key_decisions": key_decisions,
    "constraints": constraints,
    "artifacts": artifacts,
    "open_questions": open_questions,
    "next_steps": next_steps,
    "still_failing": failing_commands,
    "errors_fixed": errors_fixed,
    "loose_ends": loose_ends,
    "plan_open": plan_open,
    "plan_done": plan_done,
    "commits": commits,
    NAMES: key_names,
    "requests": requests,
    "files": files,
    "mentioned": mentioned_files,
    "commands": commands,
    "summaries": client_summaries,
}


# --- texts ---
def _path_endings(path: str) -> Iterator[str]:
    """Yield the shorter names of a path."""
    rest = path.replace("\\", "/")
    while "/" in rest:
        rest = rest.partition("/")[2]
        yield rest


#: Who says so, if no call does.
_LABELS = {REPORT: "by the agent's report", UNRECORDED: "its result is not recorded"}
#: What became of a file, by its last action and whether the session made it.
_ENDS = {
    ("deleted", True): "created, then deleted",
    **dict.fromkeys((("untracked", True), ("untracked", False)), "taken out of version control"),
}


def _draft_file(material: StatementMaterial, one: FileState, weight: float) -> DraftStatement:
    is_made = one.effect == "created"
    count = (one.count or one.reads) - is_made
    times = f" ×{count}" if count > 1 and one.action != "deleted" else ""
    edits = f", edited{times}" if count else ""
    done = _ENDS.get((one.action, one.made)) or (f"created{edits}" if is_made else f"{one.effect}{times}")
    return fact_statement(
        material, weight, lambda: f"`{one.path}` {done}", [(one.seq, one.path)], _LABELS.get(one.by, one.by)
    )


def _draft_item(material: StatementMaterial, one: PlanItem, weight: float) -> DraftStatement:
    return saying_statement(material, weight, (one.seq, one.text), f"{_SIGNS.get(one.status, '[ ]')} ", width=160)


def _failed_words(one: FailureState) -> str:
    """Return the part of a failure's description that occurs in its message."""
    return one.what.removeprefix(one.tool).strip()


def _failing_text(material: StatementMaterial, one: OpenFailure) -> Callable[[], str]:
    times = f" {one.times} times, last" if one.times > 1 else ""
    ago = material.state.turn_count - 1 - one.last_turn
    age = f", {ago} turn{'s' if ago > 1 else ''} ago" if ago else ""

    def text() -> str:
        what = safe_excerpt(material, (one.last_seq, one.what), _COMMAND if one.run else _REPORTED)
        if one.run is None:
            detail = safe_excerpt(material, (one.last_seq, one.text), _COMPLAINT)
            words = f"{what} {detail}".strip()
            first = _earlier_text(material, one)
            return f"reported{times} in turn {one.last_turn + 1}{age}: {words}{first}; not confirmed as fixed{_edits_text(one)}"
        if one.kind == SERVICE:
            words = safe_excerpt(material, (one.last_seq, one.what), _REPORTED)
            return f"the service stopped the work in turn {one.last_turn + 1}{age}: {words}"
        count = f" ({one.count} failure{'s' if one.count > 1 else ''})" if one.count else ""
        return f"`{what}` failed{times} in turn {one.last_turn + 1}{age}{count}{_complaint_text(material, one)}{_earlier_text(material, one)}{_rerun_text(one)}"

    return text


def _earlier_text(material: StatementMaterial, one: OpenFailure) -> str:
    """Return what the person said of a failure before: a repeated report often says no more than "still"."""
    told = {one.what: None, **{said.text: said for said in one.earlier}}
    said = [
        f"turn {one.turn + 1}: {safe_excerpt(material, (one.seq, one.text), _EARLIER)}" for one in told.values() if one
    ]
    return f" ({'said' if one.run else 'before,'} in {'; '.join(said)})" if said else ""


def _rerun_text(one: OpenFailure) -> str:
    return f"; not run again{_edits_text(one)}" if one.edits else ""


def _edits_text(one: OpenFailure) -> str:
    if not one.edits:
        return ""
    names = f" ({one_line(', '.join(one.changed[-2:]), 120)})" if one.changed else ""
    return f" since {one.edits} edit{'s' if one.edits > 1 else ''}{names}"


def _fixed_text(material: StatementMaterial, one: FailureState) -> Callable[[], str]:
    by = f", after changing {one_line(', '.join(one.between[-2:]), 120)}" if one.between else ""

    def text() -> str:
        what = safe_excerpt(material, (one.seq, one.what), _COMMAND)
        return f"`{what}` failed{_complaint_text(material, one)}; succeeded in turn {(one.resolved_by or 0) + 1}{by}"

    return text


def _complaint_text(material: StatementMaterial, one: FailureState | OpenFailure) -> str:
    if not one.text or one.text in one.what:
        return ""
    return f": {safe_excerpt(material, (material.results.get(one.last_seq, one.last_seq), one.text), _COMPLAINT)}"


def _commit_text(
    material: StatementMaterial, one: CommitState, words: tuple[int, str], width: int
) -> Callable[[], str]:
    mark = f" ({one.ended or 'replaced by a later commit'})" if one.replaced else ""
    return lambda: f"`{one.hash}` {safe_excerpt(material, words, width)}".rstrip() + mark
