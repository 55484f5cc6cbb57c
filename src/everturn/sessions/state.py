"""The state of an archived session: its turns read one by one and folded.

Turns that a fork inherited are part of its file and so of its state. Files changed by subagents count in the turn of the
call that started them, with a mark. A pin on the session is a constraint that no view leaves out. Memory holds the facts
of one turn and the state; no text longer than an excerpt.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from everturn.derive.session_state import DecisionState, SessionState, advance_state
from everturn.derive.turn_facts import Touch, TurnFacts, turn_facts
from everturn.model.archive import Artifact, Session
from everturn.sessions.lineage import Relative, lineage
from everturn.sessions.messages import Records, Sources, read_turns
from everturn.store.contract import Store
from everturn.text.printable import one_line

#: Kind of kept row that pins a text to a session: value is a JSON string, or an object with one under `text`.
PIN = "pin"
_LONGEST = 200
_GENERATIONS = 5


def session_state(store: Store, sources: Sources, session: Session, last: int | None = None) -> SessionState:
    """Return the state at the end of the session, or of turn `last` (0-based)."""
    state = initial_state(store, session)
    for facts in session_facts(store, sources, session, 0, last):
        state = advance_state(state, facts)
    return state


def initial_state(store: Store, session: Session) -> SessionState:
    """Return the state before the first turn: the pins."""
    pins = tuple(
        DecisionState(one_line(words, _LONGEST), 0, -1, PIN, pinned=True)
        for row in store.kept(PIN, session.native_id)
        if row.agent in ("", session.agent) and (words := _pin_text(row.value))
    )
    return SessionState(session.native_id, store.session(session.id)[1].workspace, constraints=pins)


def continue_state(store: Store, sources: Sources, session: Session, state: SessionState) -> SessionState:
    """Bring an earlier state up to date; rebuild it if the last turn it knows has grown since."""
    turns = store.turns(session.id, max(0, state.turn_count - 1))
    if not turns or state.covers < 0 or turns[0].last_seq != state.covers:
        return session_state(store, sources, session)
    for facts in session_facts(store, sources, session, state.turn_count):
        state = advance_state(state, facts)
    return state


def session_facts(
    store: Store, sources: Sources, session: Session, first: int = 0, last: int | None = None
) -> Iterator[TurnFacts]:
    """Yield the facts of each turn, in order."""
    workspace = store.session(session.id)[1].workspace
    records = Records(store, sources, session)
    artifacts = _artifacts_by_turn(store.artifacts(session.id))
    by_subagents: dict[int, list[Touch]] = {}  # by the turn that started them; files they only read do not count
    for child in lineage(store, session).children:
        if child.call is None:
            continue
        touches = [
            Touch(one.path, one.action, child.call.seq, "subagent")
            for one in _artifacts(store, child, {session.id}, _GENERATIONS)
            if one.action != "read"
        ]
        if touches:
            by_subagents.setdefault(child.call.turn, []).extend(touches)
    for view in read_turns(store, session, first, last):
        messages = ((row, records.message(row)) for row in view.rows)
        own = artifacts.get(view.turn.idx, [])
        facts = turn_facts(view.turn, messages, view.calls, view.steps, own, workspace)
        more = by_subagents.get(view.turn.idx)
        yield replace(facts, files=(*facts.files, *more)) if more else facts


def _pin_text(value: str) -> str:
    try:
        found = msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value
    found = found.get("text") if isinstance(found, dict) else found
    return found if isinstance(found, str) else ""


def _artifacts_by_turn(artifacts: list[Artifact]) -> dict[int, list[Artifact]]:
    found: dict[int, list[Artifact]] = {}
    for one in artifacts:
        found.setdefault(one.turn, []).append(one)
    return found


def _artifacts(store: Store, child: Relative, seen: set[int], generations: int) -> Iterator[Artifact]:
    """Yield the artifacts of a subagent and of those it started."""
    if child.session is None or child.session.id in seen or not generations:
        return
    seen.add(child.session.id)
    yield from store.artifacts(child.session.id)
    for grandchild in lineage(store, child.session).children:
        yield from _artifacts(store, grandchild, seen, generations - 1)
