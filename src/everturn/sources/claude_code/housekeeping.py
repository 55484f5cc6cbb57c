"""What the client does with its own files: how long it keeps them, and how a session is taken up again."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from everturn.sources import Retention

_DEFAULT_DAYS = 30
_KEY = "cleanupPeriodDays"
_FILES = ("settings.local.json", "settings.json")


class _Settings(Struct):
    cleanup_period_days: int | None = msgspec.field(default=None, name=_KEY)


def retention(root: Path) -> Retention:
    """After how many days the client deletes a transcript that nobody went on with."""
    folder = root.parent if root.name == "projects" else root
    for name in _FILES:
        days = _days(folder / name)
        if days is not None and days >= 0:
            return Retention(days, f"{folder / name}: {_KEY}")
    return Retention(_DEFAULT_DAYS, "default")


def resume_command(native_id: str) -> list[str]:
    """The command that goes on with a session. A subagent's cannot be; it leads to the session it hangs on."""
    return ["claude", "--resume", native_id.partition("/")[0]]


def _days(path: Path) -> int | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Settings).cleanup_period_days
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
