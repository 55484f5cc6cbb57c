"""A complete document without a model: the state of a session, section by section, each statement with its evidence.

`build_document` reads the session once and says only what stands in its records. What is still failing is told apart from
what was fixed; a summary that a client wrote is a labelled source and not a fact; where a session says nothing the section
is empty. Each statement has a weight by which a budget is filled (`restore.fitting`).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.session_state import SessionState, advance_state
from everturn.derive.turn_facts import TurnFacts
from everturn.model.archive import MessageRow, Session
from everturn.restore.check import check_document
from everturn.restore.document import FACTS, SECTIONS, Document, DocumentSection, Statement
from everturn.restore.evidence import DraftStatement, Proofs, StatementMaterial, proven_statement
from everturn.restore.sections import MAKERS
from everturn.sessions.messages import Sources, has_words
from everturn.sessions.state import initial_state, session_facts
from everturn.store.contract import Store

#: Called with (turns done, turns to do).
Progress = Callable[[int, int], None]

#: Statements of a document: more than any budget worth having has room for. Proving one means reading a message.
MOST_STATEMENTS = 600


class SessionMaterial(Struct, frozen=True):
    """What one reading of a session gives: its state, and the facts of each turn when they were asked for."""

    state: SessionState
    facts: tuple[TurnFacts, ...] = ()


def build_document(
    store: Store,
    sources: Sources,
    session: Session,
    last: int | None = None,
    progress: Progress = lambda done, total: None,
) -> Document:
    """The document of a session, or of its turns up to `last` (0-based)."""
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
    """Read a session turn by turn."""
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
    """The document of a state that was made of this session, with at most so many statements."""
    text = store.session(session.id)[1]
    summaries = _client_summaries(store, session, state.covers)
    material = StatementMaterial(state, Proofs(store, sources, session), _map_results(store, session), text, summaries)
    made = _build_sections({key: list(make(material)) for key, make in MAKERS.items()}, most)
    sections, doubtful = _check_sections(store, sources, made)
    notes = [] if has_words(session) else [f"the words of this session were not kept (mode {session.mode})"]
    if state.turn_count < session.n_turns:
        notes.append(f"covers turns 1 to {state.turn_count} of {session.n_turns}")
    return Document(
        session=session.id,
        native_id=session.native_id,
        agent=session.agent,
        workspace=text.workspace,
        turns=state.turn_count,
        last_seq=state.covers,
        sections=tuple(sections[key] for key in SECTIONS),
        facts=tuple(sections[key] for key in FACTS),
        unverified=doubtful,
        notes=tuple(notes),
    )


def _build_sections(drafts: dict[str, list[DraftStatement]], most: int) -> dict[str, DocumentSection]:
    """The weightiest drafts, proven; the others are counted."""
    weights = sorted((one.weight for made in drafts.values() for one in made), reverse=True)
    least = weights[most - 1] if len(weights) > most else 0.0
    sections = {}
    for key, made in drafts.items():
        kept = [one for one in made if one.weight >= least]
        sections[key] = DocumentSection(key, tuple(map(proven_statement, kept)), len(made) - len(kept))
    return sections


def _check_sections(
    store: Store, sources: Sources, sections: dict[str, DocumentSection]
) -> tuple[dict[str, DocumentSection], tuple[Statement, ...]]:
    """Each statement held against the records; what does not hold, a defect of ours, stands apart."""
    doubtful: list[Statement] = []
    found: dict[str, DocumentSection] = {}
    for key, section in sections.items():
        checked = check_document(store, sources, (one for one in section.statements if one.evidence))
        bare = tuple(one for one in section.statements if not one.evidence)  # a title; it says so itself
        doubtful += (one.statement for one in checked if not one.holds)
        found[key] = replace(section, statements=(*bare, *(one.statement for one in checked if one.holds)))
    return found, tuple(doubtful)


def _client_summaries(store: Store, session: Session, covers: int) -> tuple[MessageRow, ...]:
    """What the client wrote to go on with after a compaction."""
    rows = store.messages(session.id, 0, covers) if covers >= 0 else iter(())
    return tuple(row for row in rows if row.kind == "summary")


def _map_results(store: Store, session: Session) -> dict[int, int]:
    """By message that holds one call only: the message with its result."""
    found: dict[int, int] = {}
    several: set[int] = set()
    for call in store.calls(session.id):
        if call.seq in found:
            several.add(call.seq)
        elif call.result_seq is not None:
            found[call.seq] = call.result_seq
    return {seq: result for seq, result in found.items() if seq not in several}
