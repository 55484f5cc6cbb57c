"""What the extension notes about a task: `task_metadata.json`."""

from __future__ import annotations

from typing import Any

from everturn.model.conversation import Block, Message
from everturn.sources.foreign import milliseconds, word
from everturn.sources.wholefile import entries, record

_DATES = ("cline_edit_date", "user_edit_date", "cline_read_date", "roo_edit_date", "roo_read_date")


def noted_file(element: dict[str, Any]) -> Message:
    """A file that the task had to do with."""
    times = [milliseconds(element.get(key)) for key in _DATES]
    at, precision = max((one for one in times if one[0] is not None), default=(None, ""))
    path = word(element.get("path"))
    blocks = (Block("text", path, "meta"),) if path else ()
    return Message("system", "system", "context", at, precision, blocks=blocks)


def is_noted_file(element: dict[str, Any]) -> bool:
    """Whether an element is of that kind."""
    return "path" in element and "record_state" in element


def version_in(key: str, value: Any) -> str:
    """The version of the extension that a value of the outer object names last."""
    if key != "environment_history":
        return ""
    versions = [word(record(one).get("cline_version")) for one in entries(value)]
    return next((version for version in reversed(versions) if version), "")
