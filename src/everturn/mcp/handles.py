"""How sessions and their turns are named to clients.

    everturn://session/ID                 a session: its latest turns
    everturn://session/ID/turns/3-5       some turns of it, counted from 1

An id is taken as the archive has it, so it may hold a `/`: in a handle it is written %2F.
"""

from __future__ import annotations

import re

from everturn.errors import NothingFound

SESSION = "everturn://session/{id}"
TURNS = "everturn://session/{id}/turns/{first}-{last}"

_HANDLE = re.compile(r"everturn://session/(?P<id>[^/]+)(?:/turns/(?P<first>[0-9]{1,9})-(?P<last>[0-9]{1,9}))?/?")


def session_handle(native_id: str) -> str:
    """The handle of a session."""
    from urllib.parse import quote

    return f"everturn://session/{quote(native_id, safe='', errors='replace')}"


def parse_handle(uri: str) -> tuple[str, int | None, int | None]:
    """The session of a handle, and the first and last of its turns, from 1. Raises NothingFound."""
    from urllib.parse import unquote

    found = _HANDLE.fullmatch(uri)
    if found is None:
        raise NothingFound(f"{uri[:200]!r} names nothing here; handles look like {SESSION} or {TURNS}")
    first, last = found["first"], found["last"]
    return unquote(found["id"]), int(first) if first else None, int(last) if last else None


def session_name(text: str) -> str:
    """What a model gives for a session: an id or its beginning, @last, or a handle."""
    return parse_handle(text)[0] if text.startswith("everturn://") else text
