"""The inheritance of the next session: constraints, decisions, open entries and failures that are still in force.

`inherit_state` takes the states of the sessions that a new one continues. Each item keeps its words, its status and the
session, turn and seq of its evidence, at any depth. What is over (superseded, rejected, resolved) is not inherited.
`inherited_lines` are the lines that the new session begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from everturn.derive.decision_states import DecisionState
from everturn.derive.decisions import likeness
from everturn.derive.marker_lines import ACTIVE, MarkedEntry
from everturn.derive.open_failures import OpenFailure
from everturn.derive.session_state import FailureState, InheritedState, SessionState
from everturn.text.printable import one_line

_MOST = 200  # of each list
_SHORT_ID = 8

_Item = TypeVar("_Item", DecisionState, FailureState, OpenFailure, MarkedEntry)


def inherit_state(states: Sequence[SessionState]) -> InheritedState:
    """Return what sessions leave to one that continues them."""
    constraints, decisions, errors, failing, entries = [], [], [], [], []
    for state in states:
        old = state.inherited
        own = [one for one in state.constraints if one.kind != "pin"]  # pins are inherited as pins
        constraints += [*old.constraints, *_sign_items(own, state.id)]
        decisions += [*old.decisions, *_sign_items([one for one in state.decisions if one.kind != "commit"], state.id)]
        errors += [*old.errors, *_sign_items(state.errors, state.id)]
        failing += [*old.failing, *_sign_items(state.failing, state.id)]
        entries += [*old.entries, *_sign_items(state.entries, state.id)]
    open_errors = [one for one in errors if one.outcome == "failed" and one.resolved_by is None]
    return InheritedState(
        _distinct((one for one in constraints if one.status == ACTIVE), lambda one: one.text),
        _distinct((one for one in decisions if one.status == ACTIVE), lambda one: one.text),
        _distinct(open_errors, lambda one: one.what),
        _distinct(failing, lambda one: one.what),
        _distinct((one for one in entries if one.status == ACTIVE), lambda one: f"{one.kind} {one.text}"),
    )


def in_force(state: SessionState) -> tuple[list[DecisionState], list[DecisionState]]:
    """Return the constraints and the decisions in force, inherited ones first, each once."""
    constraints = [*state.inherited.constraints, *sorted(state.constraints, key=lambda one: one.seq)]
    decisions = [*state.inherited.decisions, *sorted(state.decisions, key=lambda one: one.seq)]
    ended = {likeness(one.text) for one in (*constraints, *decisions) if one.status != ACTIVE}
    seen: set[str] = set()

    def keep(items: list[DecisionState]) -> list[DecisionState]:
        kept = []
        for one in items:
            if (key := likeness(one.text)) not in seen and key not in ended:
                seen.add(key)
                kept.append(one)
        return kept

    return keep(constraints), keep(decisions)


def evidence_mark(turn: int, session: str = "") -> str:
    """Return the evidence of an item as it is shown, such as `(turn 3)` or `(turn 3 of 3f2a9c12)`."""
    return f"(turn {turn + 1}{f' of {session[:_SHORT_ID]}' if session else ''})"


def inherited_lines(inherited: InheritedState, pins: Iterable[DecisionState] = ()) -> list[str]:
    """Return what is inherited, one item per line with its evidence, the most binding first."""
    named = [
        *(("Pinned", one.text, one.turn, one.session) for one in pins),
        *(("Constraint", one.text, one.turn, one.session) for one in inherited.constraints if one.status == ACTIVE),
        *(("Decision", one.text, one.turn, one.session) for one in inherited.decisions if one.status == ACTIVE),
        *(
            (one.kind.capitalize(), one.text, one.turn, one.session)
            for one in inherited.entries
            if one.status == ACTIVE and one.kind not in ("decision", "constraint")
        ),
        *(("Still fails", _failure_text(one), one.last_turn, one.session) for one in inherited.failing),
    ]
    return [f"{name}: {text} {evidence_mark(turn, session)}" for name, text, turn, session in named]


def _failure_text(one: OpenFailure) -> str:
    error = f": {one_line(one.text, 120)}" if one.text and one.text not in one.what else ""
    return f"{one_line(one.what, 120)}{error}"


def _sign_items(items: Iterable[_Item], session: str) -> list[_Item]:
    return [one if one.session else replace(one, session=session) for one in items]


def _distinct(items: Iterable[_Item], text: Callable[[_Item], str]) -> tuple[_Item, ...]:
    """Return each item once, the newest of too many."""
    found: dict[str, _Item] = {}
    for one in items:
        found.setdefault(likeness(text(one)), one)
    return tuple(found.values())[-_MOST:]
