"""The state of an archived session: its turns read one by one and folded.

Turns that a fork inherited are part of its file and so of its state. Files changed by subagents count in the turn of the
call that started them, with a mark. A pin on the session is a constraint that no view leaves out. What a session inherited
from those it continues is kept when it begins (`keep_inheritance`): a later change of a parent does not change the child.
Memory holds the facts of one turn and the state; no text longer than an excerpt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.decision_states import DecisionState
from everturn.derive.inheritance import inherit_state
from everturn.derive.session_state import InheritedState, SessionState, advance_state
from everturn.derive.turn_facts import Touch, TurnFacts, turn_facts
from everturn.model.archive import Artifact, KeptRow, Session
from everturn.model.conversation import prepared
from everturn.sessions.lineage import Relative, lineage
from everturn.sessions.messages import Records, Sources, live_part, read_turns
from everturn.store.contract import Store
from everturn.text.printable import one_line

#: Kind of kept row that pins a text to a session: value is a JSON string, or a `Pin`.
PIN = "pin"
#: Kind of the kept row with what a session inherited: an `InheritedState` as JSON.
INHERITED = "inherited"
_LONGEST = 200
_GENERATIONS = 5
_NEWEST = 100  # requests, answers, commands and resolved errors of a bounded state


class Pin(Struct, frozen=True, omit_defaults=True):
    """A pinned text, and the session and turn (0-based) in which it was pinned."""

    text: str = ""
    turn: int = 0
    session: str = ""  # "": the session itself


def session_state(store: Store, sources: Sources, session: Session, last: int | None = None) -> SessionState:
    """Return the state at the end of the session, or of turn `last` (0-based)."""
    state = initial_state(store, session)
    for facts in session_facts(store, sources, session, 0, last):
        state = advance_state(state, facts)
    return state


def initial_state(store: Store, session: Session) -> SessionState:
    """Return the state before the first turn: the pins, and what was inherited."""
    pins = tuple(
        DecisionState(one_line(pin.text, _LONGEST), pin.turn, -1, PIN, pinned=True, session=pin.session)
        for pin in read_pins(store, session)
    )
    workspace = store.session(session.id)[1].workspace
    return SessionState(session.native_id, workspace, constraints=pins, inherited=_read_inheritance(store, session))


def read_pins(store: Store, session: Session) -> list[Pin]:
    """Return the pins of a session, the oldest first."""
    rows = [row for row in store.kept(PIN, session.native_id) if row.agent in ("", session.agent)]
    return [pin for row in sorted(rows, key=lambda row: row.at) if (pin := _read_pin(row.value)).text]


def keep_inheritance(
    store: Store, agent: str, native_id: str, parents: Sequence[tuple[Session, SessionState]], at: int
) -> None:
    """Keep what a new session inherits from those it continues. The caller holds the transaction."""
    inherited = inherit_state([state for _, state in parents])
    if inherited != InheritedState():
        value = msgspec.json.encode(inherited).decode()
        store.keep(KeptRow(INHERITED, agent, native_id, "", value, at))
    pins = [
        replace(pin, session=pin.session or parent.native_id)
        for parent, _ in parents
        for pin in read_pins(store, parent)
    ]
    for number, pin in enumerate(pins):
        value = msgspec.json.encode(pin).decode()
        store.keep(KeptRow(PIN, agent, native_id, f"{at}-{number}", value, at + number - len(pins)))


def continue_state(store: Store, sources: Sources, session: Session, state: SessionState) -> SessionState:
    """Bring an earlier state up to date; rebuild it if the last turn it knows has grown, or turns were taken back."""
    turns = store.turns(session.id, max(0, state.turn_count - 1))
    is_shorter = any(row.taken_back > state.covers for row in store.messages(session.id, 0, state.covers))
    if not turns or state.covers < 0 or turns[0].last_seq != state.covers or is_shorter:
        return session_state(store, sources, session)
    for facts in session_facts(store, sources, session, state.turn_count):
        state = advance_state(state, facts)
    return state


def bound_state(state: SessionState) -> SessionState:
    """Return the state of a long session for a program that holds it: of what grows with every turn, the newest.

    What is in force is kept whole. `session_state` has all of it, at any time.
    """
    resolved = [one for one in state.errors if one.resolved_by is not None or one.outcome != "failed"][-_NEWEST:]
    return replace(
        state,
        requests=state.requests[-_NEWEST:],
        answers=state.answers[-_NEWEST:],
        choices=state.choices[-_NEWEST:],
        commands=state.commands[-_NEWEST:],
        questions=tuple(one for one in state.questions if one.answered_by is None) or state.questions[-1:],
        errors=tuple(one for one in state.errors if one in resolved or one.resolved_by is None),
    )


def session_facts(
    store: Store, sources: Sources, session: Session, first: int = 0, last: int | None = None
) -> Iterator[TurnFacts]:
    """Yield the facts of each turn, in order. What was taken back by then is left out."""
    workspace = store.session(session.id)[1].workspace
    records = Records(store, sources, session)
    until = _last_message(store, session, last)
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
    for whole in read_turns(store, session, first, last):
        if (view := live_part(whole, until)) is None:
            continue
        messages = ((row, records.message(row)) for row in view.rows)
        seqs = {row.seq for row in view.rows}
        own = [one for one in artifacts.get(view.turn.idx, []) if one.seq in seqs]
        facts = turn_facts(view.turn, messages, map(records.with_status, view.calls), view.steps, own, workspace)
        more = by_subagents.get(view.turn.idx)
        yield replace(facts, files=(*facts.files, *more)) if more else facts


def _last_message(store: Store, session: Session, last: int | None) -> int | None:
    """Return the last message of turn `last`; None for the end of the session."""
    turns = store.turns(session.id, last, last) if last is not None else []
    return turns[0].last_seq if turns else None


def _read_inheritance(store: Store, session: Session) -> InheritedState:
    """Return what was kept; an unreadable row counts as none."""
    for row in store.kept(INHERITED, session.native_id):
        if row.agent == session.agent:
            try:
                return msgspec.json.decode(row.value, type=prepared(InheritedState))
            except msgspec.DecodeError:
                break
    return InheritedState()


def _read_pin(value: str) -> Pin:
    try:
        found = msgspec.json.decode(value)
    except msgspec.DecodeError:
        return Pin(value)
    try:
        return Pin(found) if isinstance(found, str) else msgspec.convert(found, prepared(Pin))
    except msgspec.ValidationError:
        return Pin()


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
