"""The state of a session as a model gets it: a short YAML text, always within its budget.

`prune_state` leaves out all but the last 20 files, 10 decisions and 5 resolved errors; what is pinned stays. `as_yaml` writes
exactly the keys session, files_touched, key_decisions, current_focus and errors_resolved. Words of a transcript are quoted
strings on one line, without control characters: they cannot become keys. Where the text would be longer than the budget,
the oldest entries go first, then long ones are cut. Turns are shown 1-based.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.session_state import DecisionState, FailureState, SessionState
from everturn.text.printable import one_line, printable
from everturn.text.tokens import fits_tokens

FILES = 20
DECISIONS = 10
ERRORS = 5
BUDGET = 1000  # tokens
_WIDTHS = (200, 120, 60, 30)


class StateView(Struct, frozen=True):
    """What is shown of a state."""

    session: dict[str, Any]
    files_touched: list[dict[str, Any]]
    key_decisions: list[str]
    current_focus: str
    errors_resolved: list[str]
    pins: int = 0  # the first so many decisions are pinned


def prune_state(state: SessionState) -> StateView:
    """The latest of everything, and all that is pinned."""
    said = sorted((*state.constraints, *state.decisions), key=lambda one: one.seq)
    pinned = [one for one in said if one.pinned]
    latest = [one for one in said if not one.pinned][-DECISIONS:]
    written = [one for one in state.files.values() if one.action != "read"][-FILES:]
    resolved = [one for one in state.errors if one.outcome == "failed" and one.resolved_by is not None]
    resolved.sort(key=lambda one: one.resolved_seq or 0)
    return StateView(
        session={
            "id": state.id,
            "workspace": state.workspace,
            "model": state.model,
            "turn_count": state.turn_count,
            "total_tokens": state.total_tokens,
        },
        files_touched=[{"path": one.path, "action": one.action, "turn": one.turn + 1} for one in written],
        key_decisions=[_decision_line(one) for one in (*pinned, *latest)],
        current_focus=state.current_focus,
        errors_resolved=[_error_line(one) for one in resolved[-ERRORS:]],
        pins=len(pinned),
    )


def as_yaml(view: StateView, budget: int = BUDGET) -> str:
    """The view as YAML of at most so many tokens; nothing when not even the session fits."""
    shown = view
    for width in _WIDTHS:
        shown = _thin_view(_narrow_view(view, width), budget)
        if fits_tokens(_view_yaml(shown), budget):
            return _view_yaml(shown)
    while shown.key_decisions:  # more is pinned than there is room for, however short
        shown = replace(shown, key_decisions=shown.key_decisions[1:])
        if fits_tokens(_view_yaml(shown), budget):
            return _view_yaml(shown)
    return ""


def _narrow_view(view: StateView, width: int) -> StateView:
    return StateView(
        {name: _narrow_value(value, 2 * width) for name, value in view.session.items()},
        [{name: _narrow_value(value, 2 * width) for name, value in one.items()} for one in view.files_touched],
        [_narrow_value(one, width) for one in view.key_decisions],
        one_line(view.current_focus, 100),
        [_narrow_value(one, width) for one in view.errors_resolved],
        view.pins,
    )


def _thin_view(view: StateView, budget: int) -> StateView:
    """Without its oldest entries, from the longest list first, as far as that is needed; what is pinned stays."""
    files, decisions, errors = list(view.files_touched), list(view.key_decisions), list(view.errors_resolved)
    while True:
        shown = replace(view, files_touched=files, key_decisions=decisions, errors_resolved=errors)
        free = len(decisions) - view.pins
        if not (files or errors or free > 0) or fits_tokens(_view_yaml(shown), budget):
            return shown
        if len(files) >= max(free, len(errors)):
            files.pop(0)
        elif free >= len(errors):
            decisions.pop(view.pins)
        else:
            errors.pop(0)


# words ----------------------------------------------------------------------------------------------------------------
def _decision_line(one: DecisionState) -> str:
    return f"{one.text} (turn {one.turn + 1})"


def _error_line(one: FailureState) -> str:
    """What failed, what it said, and what was changed before it went well."""
    said = f": {one_line(one.text, 80)}" if one.text and one.text not in one.what else ""
    fixed = f"fixed by changing {one_line(', '.join(one.between[-2:]), 80)}" if one.between else "went well later"
    return f"{one_line(one.what, 80)}{said} — {fixed} (turn {(one.resolved_by or 0) + 1})"


def _narrow_value(value: Any, width: int) -> Any:
    """A text on one line; the end of it, which says where it comes from, is kept."""
    if not isinstance(value, str):
        return value
    text = one_line(value, 10_000)
    if len(text) <= width:
        return text
    head, mark, turn = text.rpartition(" (turn ")
    return f"{one_line(head, width)}{mark}{turn}" if mark else one_line(text, width)


def _view_yaml(view: StateView) -> str:
    lines = ["session:", *(f"  {name}: {_scalar(value)}" for name, value in view.session.items()), ""]
    lines += _list_lines(
        "files_touched", [[f"{name}: {_scalar(one[name])}" for name in one] for one in view.files_touched]
    )
    lines += _list_lines("key_decisions", [[_scalar(one)] for one in view.key_decisions])
    lines += [f"current_focus: {_scalar(view.current_focus)}", ""]
    lines += _list_lines("errors_resolved", [[_scalar(one)] for one in view.errors_resolved])
    return "\n".join(lines).rstrip("\n") + "\n"


def _list_lines(name: str, entries: list[list[str]]) -> list[str]:
    if not entries:
        return [f"{name}: []", ""]
    lines = [f"{name}:"]
    for first, *rest in entries:
        lines += [f"  - {first}", *(f"    {line}" for line in rest)]
    return [*lines, ""]


def _scalar(value: Any) -> str:
    """A number, or a double-quoted string, which JSON writes as YAML reads it."""
    if isinstance(value, int):
        return str(value)
    return json.dumps(printable(str(value), keep=""), ensure_ascii=False)
