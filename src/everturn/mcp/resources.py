"""Sessions as resources: newest first in the list, each read as text by its handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everturn.errors import NoArchive
from everturn.mcp.archive import McpArchive
from everturn.mcp.handles import SESSION, TURNS, parse_handle, session_handle

if TYPE_CHECKING:
    from everturn.recall.framing import Clean
    from everturn.recall.listing import SessionListing
    from everturn.store import Store

MIME = "text/plain"
TEMPLATES: list[dict[str, Any]] = [
    {
        "uriTemplate": SESSION,
        "name": "session",
        "title": "A past session",
        "description": "The latest turns of a session; its id may be shortened as long as it is unique.",
        "mimeType": MIME,
    },
    {
        "uriTemplate": TURNS,
        "name": "turns",
        "title": "Turns of a past session",
        "description": "The turns from first to last, counted from 1.",
        "mimeType": MIME,
    },
]

_PER_PAGE = 50
_RESOURCE_TURNS = 20  # turns


def list_resources(archive: McpArchive, cursor: str) -> dict[str, Any]:
    """A page of sessions. Before the first sync there are none, which is not an error of whoever lists them."""
    from everturn.recall.listing import list_sessions
    from everturn.recall.secrets import archive_cleaner
    from everturn.store import SessionFilter

    def found(store: Store) -> dict[str, Any]:
        page, clean = list_sessions(store, SessionFilter(), _PER_PAGE, cursor), archive_cleaner(store)
        resources = {"resources": [_resource_facts(item, clean) for item in page.items]}
        return resources | ({"nextCursor": page.next} if page.next else {})

    try:
        return archive.ask(found)
    except NoArchive:
        return {"resources": []}


def read_resource(archive: McpArchive, uri: str) -> dict[str, Any]:
    """What a handle names. Raises NothingFound."""
    name, first, last = parse_handle(uri)
    text = archive.ask(lambda store: _session_text(archive, store, name, first, last))
    return {"contents": [{"uri": uri, "mimeType": MIME, "text": text}]}


def _session_text(archive: McpArchive, store: Store, name: str, first: int | None, last: int | None) -> str:
    from everturn.mcp.pages import read_page
    from everturn.mcp.tools import MOST_TOKENS
    from everturn.recall.sessions import resolve_session

    session = resolve_session(store, name)
    start = first or max(session.n_turns - _RESOURCE_TURNS + 1, 1)
    return read_page(archive, store, session, start, last or session.n_turns, MOST_TOKENS).text


def _resource_facts(item: SessionListing, clean: Clean) -> dict[str, Any]:
    from everturn.derive.times import iso
    from everturn.recall.framing import safe_line

    session, text = item.session, item.text
    about = safe_line(text.title or text.first_prompt or text.summary, clean, 120)
    ended = iso(session.ended)[:16].replace("T", " ")
    folder = safe_line(text.workspace, clean, 120)
    return {
        "uri": session_handle(session.native_id),
        "name": safe_line(item.short, clean, 100),
        "title": about or f"session {safe_line(item.short, clean, 100)}",
        "description": " · ".join(filter(None, (ended, session.agent, f"{session.n_turns:,} turns", folder))),
        "mimeType": MIME,
    }
