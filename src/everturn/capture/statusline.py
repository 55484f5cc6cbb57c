"""One line for an agent's status line: whether its session is archived, its tokens, the last sync.

It reads what the last drain has made ready and opens no archive; `everturn-hook --statusline` is the quick way to it.
"""

import json
import os

from everturn.capture.context import STATUS, read_prepared

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would take as long as all the rest
    from typing import Any


def read_status(data: bytes, folder: str) -> "dict[str, Any]":
    """What is known of the session that an agent describes in JSON. `waiting` are bytes not archived yet, if known."""
    about = _read_object(data)
    known = _last_status(str(about.get("session_id") or ""), folder)
    waiting = _waiting_bytes(str(about.get("transcript_path") or ""), known)
    return {
        **known,
        "tokens": known.get("tokens") or _context_tokens(about),
        "archived": bool(known),
        "waiting": waiting,
    }


def status_line(found: "dict[str, Any]", now: int) -> str:
    """The same in words."""
    pieces = [_archived_text(found)]
    pieces += [f"{found['tokens']:,} tokens"] if found["tokens"] else []
    pieces += [f"synced {_age_text(now - found['at'])}"] if "at" in found else []
    return "everturn: " + " · ".join(pieces)


def _read_object(data: bytes) -> "dict[str, Any]":
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _last_status(session: str, folder: str) -> "dict[str, Any]":
    """What the last drain said of the session."""
    try:
        return _read_object(read_prepared(folder, session, STATUS))
    except OSError:
        return {}


def _waiting_bytes(transcript: str, known: "dict[str, Any]") -> "int | None":
    """Bytes of the transcript that are not in the archive yet; None where nobody knows."""
    try:
        return max(0, os.stat(transcript).st_size - int(known["size"]))
    except (OSError, KeyError, ValueError):
        return None


def _context_tokens(about: "dict[str, Any]") -> int:
    window = about.get("context_window")
    window = window if isinstance(window, dict) else {}
    given = (window.get(key) for key in ("total_input_tokens", "total_output_tokens"))
    return sum(number for number in given if isinstance(number, int))


def _archived_text(found: "dict[str, Any]") -> str:
    if not found["archived"]:
        return "not archived yet"
    waiting = found["waiting"]
    return "archived" if not waiting else f"archived but for {max(1, round(waiting / 1000)):,} kB"


def _age_text(milliseconds: int) -> str:
    seconds = max(0, milliseconds // 1000)
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {word} ago"
    return "now" if seconds < 5 else f"{seconds} s ago"
