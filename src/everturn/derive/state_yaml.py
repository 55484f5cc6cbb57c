"""The state of a session as a short YAML text for a model, always within its budget.

`prune_state` keeps the last 20 files, 10 decisions and 5 resolved errors, the last 20 constraints, and everything pinned;
what is inherited from earlier sessions comes first. `as_yaml` writes exactly the keys session, files_touched,
key_decisions, current_focus and errors_resolved. Archived text becomes quoted strings on one line, without control
characters: it cannot become keys. If the text exceeds the budget, the oldest entries go first, then long ones are cut,
constraints last of all; a comment at the end says how many are not shown. Turns are shown 1-based.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.inheritance import evidence_mark, in_force
from everturn.derive.marker_lines import ACTIVE
from everturn.derive.session_state import FailureState, SessionState
from everturn.text.printable import one_line, printable
from everturn.text.tokens import fits_tokens

FILES = 20
DECISIONS = 10
CONSTRAINTS = 20
ERRORS = 5
BUDGET = 1000  # tokens
_WIDTHS = (200, 120, 60, 30)
STATE_KEYS = ("session", "files_touched", "key_decisions", "current_focus", "errors_resolved")
_SESSION = ("id", "workspace", "model", "turn_count", "total_tokens")


class StateView(Struct, frozen=True):
    """The part of a state that is shown."""

    session: dict[str, Any]
    files_touched: list[dict[str, Any]]
    key_decisions: list[str]
    current_focus: str
    errors_resolved: list[str]
    pins: int = 0  # number of pinned decisions, which come first
    binding: int = 0  # number of pins and constraints together: constraints come second
    files: int = 0  # numbers in the whole state
    decisions: int = 0
    errors: int = 0


def prune_state(state: SessionState) -> StateView:
    """Return the latest of everything, and all that is pinned."""
    constraints, decisions = in_force(state)
    pinned = [one for one in constraints if one.pinned]
    binding = [one for one in constraints if not one.pinned]
    more = [(one.text, one.turn, one.session) for one in decisions] + [
        (f"{one.kind.upper()}: {one.text}", one.turn, one.session)
        for one in (*state.inherited.entries, *state.entries)
        if one.status == ACTIVE and one.kind not in ("decision", "constraint")
    ]
    shown = [(one.text, one.turn, one.session) for one in (*pinned, *binding[-CONSTRAINTS:])]
    written = [one for one in state.files.values() if one.action != "read"]
    failed = (*state.inherited.errors, *state.errors)
    resolved = [one for one in failed if one.outcome == "failed" and one.resolved_by is not None]
    resolved.sort(key=lambda one: one.resolved_seq or 0)
    return StateView(
        session={name: getattr(state, name) for name in _SESSION},
        files_touched=[{"path": one.path, "action": one.effect, "turn": one.turn + 1} for one in written[-FILES:]],
        key_decisions=[f"{text} {evidence_mark(turn, of)}" for text, turn, of in (*shown, *more[-DECISIONS:])],
        current_focus=state.current_focus,
        errors_resolved=[_error_line(one) for one in resolved[-ERRORS:]],
        pins=len(pinned),
        binding=len(shown),
        files=len(written),
        decisions=len(constraints) + len(more),
        errors=len(resolved),
    )


def as_yaml(view: StateView, budget: int = BUDGET) -> str:
    """Return the view as YAML within a budget of tokens; empty if not even the session fits."""
    shown = view
    for width in _WIDTHS:
        shown = _thin_view(_narrow_view(view, width), budget)
        if fits_tokens(_view_yaml(shown), budget):
            return _view_yaml(shown)
    while shown.key_decisions:  # pins and constraints alone exceed the budget
        oldest = view.pins if len(shown.key_decisions) > view.pins else 0
        rest = [*shown.key_decisions[:oldest], *shown.key_decisions[oldest + 1 :]]
        shown = replace(shown, key_decisions=rest)
        if fits_tokens(_view_yaml(shown), budget):
            return _view_yaml(shown)
    return ""


def _narrow_view(view: StateView, width: int) -> StateView:
    return replace(
        view,
        session={name: _narrow_value(value, 2 * width) for name, value in view.session.items()},
        files_touched=[
            {name: _narrow_value(value, 2 * width) for name, value in one.items()} for one in view.files_touched
        ],
        key_decisions=[_narrow_value(one, width) for one in view.key_decisions],
        current_focus=one_line(view.current_focus, 100),
        errors_resolved=[_narrow_value(one, width) for one in view.errors_resolved],
    )


def _thin_view(view: StateView, budget: int) -> StateView:
    """Drop the oldest entries, from the longest list first, until it fits; pins and constraints stay."""
    files, decisions, errors = list(view.files_touched), list(view.key_decisions), list(view.errors_resolved)
    while True:
        shown = replace(view, files_touched=files, key_decisions=decisions, errors_resolved=errors)
        free = len(decisions) - view.binding
        if not (files or errors or free > 0) or fits_tokens(_view_yaml(shown), budget):
            return shown
        if len(files) >= max(free, len(errors)):
            files.pop(0)
        elif free >= len(errors):
            decisions.pop(view.binding)
        else:
            errors.pop(0)


# --- lines ---
def _error_line(one: FailureState) -> str:
    """Return what failed, its error, and the files changed before it succeeded."""
    error = f": {one_line(one.text, 80)}" if one.text and one.text not in one.what else ""
    fixed = f"fixed by changing {one_line(', '.join(one.between[-2:]), 80)}" if one.between else "went well later"
    return f"{one_line(one.what, 80)}{error} — {fixed} (turn {(one.resolved_by or 0) + 1})"


def _narrow_value(value: Any, width: int) -> Any:
    """Cut a text to one line, but keep the turn at its end."""
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
    hidden = {
        "files": view.files - len(view.files_touched),
        "decisions": view.decisions - len(view.key_decisions),
        "errors": view.errors - len(view.errors_resolved),
    }
    told = ", ".join(f"{n} {name}" for name, n in hidden.items() if n > 0)
    lines += [f"# Not shown: {told}; the archive has them."] if told else []
    return "\n".join(lines).rstrip("\n") + "\n"


def _list_lines(name: str, entries: list[list[str]]) -> list[str]:
    if not entries:
        return [f"{name}: []", ""]
    lines = [f"{name}:"]
    for first, *rest in entries:
        lines += [f"  - {first}", *(f"    {line}" for line in rest)]
    return [*lines, ""]


def _scalar(value: Any) -> str:
    """Return a number, or a double-quoted string, which JSON and YAML write alike."""
    if isinstance(value, int):
        return str(value)
    return json.dumps(printable(str(value), keep=""), ensure_ascii=False)
