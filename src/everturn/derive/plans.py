"""What a call says about a plan: items that are open, being done, done or dropped.

Agents write plans in shapes of their own. They are told by shape, not by name: a list of items with a status replaces the
plan, a single item is added, an id with a status changes one, and text with check boxes is a list too. Never raises.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from everturn.derive.printable import one_line
from everturn.model.conversation import CallStart

#: What can be said of an item.
STATUSES = ("open", "doing", "done", "dropped")

_LONGEST_ITEM = 200
_MOST = 200
_LISTS = ("todos", "plan", "items", "tasks", "steps", "todo_list", "todoList")
_TEXTS = ("content", "step", "subject", "description", "title", "text", "task", "name", "todo")
_IDS = ("taskId", "task_id", "id")
_STATUS = {
    **dict.fromkeys(("pending", "open", "todo", "not_started", "not-started", "queued", "blocked", "unchecked", " "), "open"),
    **dict.fromkeys(("in_progress", "in-progress", "inprogress", "active", "doing", "started", "current", "running"), "doing"),
    **dict.fromkeys(("completed", "complete", "done", "finished", "closed", "checked", "x"), "done"),
    **dict.fromkeys(("cancelled", "canceled", "deleted", "dropped", "skipped", "removed", "abandoned"), "dropped"),
}  # fmt: skip
_BOX = re.compile(r"^[ \t]{0,40}(?:(?:[-*+]|\d{1,3}[.)])[ \t]{1,9})?\[(.)\][ \t]+(\S.{0,1000})$", re.MULTILINE)
_NUMBER = re.compile(r"#(\d{1,6})\b")


class PlanChange(Struct, frozen=True):
    """An item and what became of it; `id` as the agent numbers it, "" when it does not."""

    text: str
    status: str
    id: str = ""


class PlanUpdate(Struct, frozen=True):
    """What one call says: the whole plan anew, or changes to the one there is."""

    changes: tuple[PlanChange, ...]
    whole: bool = True


def find_plan(start: CallStart, output: str = "") -> PlanUpdate | None:
    """What a call that went well says about the plan; None when it says nothing."""
    given = start.input
    if start.kind != "plan":
        # Some agents report progress in an argument of any call.
        progress = given.get("task_progress") if isinstance(given, dict) else None
        return _plan_of_boxes(progress) if isinstance(progress, str) else None
    if isinstance(given, str):
        return _plan_of_boxes(given)
    if not isinstance(given, dict):
        return _plan_of_list(given) if isinstance(given, list) else None
    return _plan_of_arguments(given, output)


def _plan_of_arguments(given: dict[str, Any], output: str) -> PlanUpdate | None:
    listed = next((given[name] for name in _LISTS if isinstance(given.get(name), list)), None)
    if listed is not None:
        return _plan_of_list(listed)
    if any(name in given for name in _IDS):
        return _plan_of_change(given)
    if isinstance(given.get("subject"), str):
        number = _NUMBER.search(output[:500])
        return PlanUpdate((PlanChange(_item_text(given), "open", number[1] if number else ""),), whole=False)
    boxes = [value for value in given.values() if isinstance(value, str) and _BOX.search(value)]
    return _plan_of_boxes(boxes[0]) if boxes else None


def _plan_of_list(items: list[Any]) -> PlanUpdate:
    changes = [_read_change(item) for item in items[:_MOST]]
    return PlanUpdate(tuple(change for change in changes if change.text))


def _read_change(item: Any) -> PlanChange:
    if isinstance(item, str):
        return PlanChange(one_line(item, _LONGEST_ITEM), "open")
    if not isinstance(item, dict):
        return PlanChange("", "open")
    return PlanChange(_item_text(item), _status(item) or "open", _id(item))


def _plan_of_change(given: dict[str, Any]) -> PlanUpdate | None:
    text, status = _item_text(given), _status(given)
    return PlanUpdate((PlanChange(text, status, _id(given)),), whole=False) if text or status else None


def _plan_of_boxes(text: str) -> PlanUpdate | None:
    found = [
        PlanChange(one_line(body, _LONGEST_ITEM), _box_status(sign))
        for sign, body in _BOX.findall(text[:100_000])[:_MOST]
    ]
    return PlanUpdate(tuple(found)) if found else None


def _box_status(sign: str) -> str:
    return _STATUS.get(sign.lower(), "done" if sign in "✓✔☑" else "doing")


def _item_text(item: dict[str, Any]) -> str:
    return next((one_line(item[name], _LONGEST_ITEM) for name in _TEXTS if isinstance(item.get(name), str)), "")


def _id(item: dict[str, Any]) -> str:
    return next((str(item[name])[:40] for name in _IDS if isinstance(item.get(name), str | int)), "")


def _status(item: dict[str, Any]) -> str:
    for name in ("status", "state"):
        if isinstance(item.get(name), str):
            return _STATUS.get(item[name].lower().strip(), "open")
    for name in ("done", "completed", "checked"):
        if isinstance(item.get(name), bool):
            return "done" if item[name] else "open"
    return ""
