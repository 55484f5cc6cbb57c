"""The list of sessions: newest first, filtered while the user types, updated while it is open."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from everturn.model.archive import Session, SessionText
from everturn.sessions.lookup import starred_sessions, typed_filter
from everturn.store.contract import SessionFilter
from everturn.text.folders import folder_filter
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import archived_agents, session_rows

LINES = 50
_FILTERS = ("q", "agent", "workspace", "since", "until", "all", "starred")


def draw(request: WebRequest) -> PageReply:
    filters = {name: request.word(name) for name in _FILTERS}
    given = {name: value for name, value in filters.items() if value}
    if request.word("starred"):
        starred = (pair for pair in starred_sessions(request.store) if _is_match(pair, filter_of(request)))
        matching = list(starred)
        pairs, following, total = matching[:LINES], "", len(matching)
    else:
        pairs, following = request.store.sessions(filter_of(request), LINES, request.word("after"))
        total = request.store.count_sessions(filter_of(request)) if following else len(pairs)
    values: dict[str, Any] = {
        "rows": session_rows(request, pairs),
        "next": f"/sessions?{urlencode({**given, 'after': following}, errors='replace')}" if following else "",
        "total": total,
        "filters": filters,
        "is_narrowed": bool(given),
        "first": not request.word("after"),
        "agents": [] if request.is_part else archived_agents(request, request.sources),
    }
    return PageReply("sessions", values, "Sessions")


def _is_match(pair: tuple[Session, SessionText], session_filter: SessionFilter) -> bool:
    """Return whether a starred session matches; there are few, so the database is not needed."""
    session, text = pair
    words = "\n".join((text.title, text.first_prompt, text.summary)).casefold()
    return (
        session_filter.agent in ("", session.agent)
        and (not session_filter.workspace or folder_filter(session_filter.workspace).matches(text.workspace))
        and session_filter.text.casefold() in words
        and (session_filter.since is None or (session.ended or 0) >= session_filter.since)
        and (session_filter.until is None or (session.started or 0) < session_filter.until)
    )


def filter_of(request: WebRequest) -> SessionFilter:
    """Return the filter of the request. Raises UsageError for an invalid time."""
    given = {name: request.word(name) for name in ("agent", "workspace", "since", "until")}
    return typed_filter({**given, "text": request.word("q")}, request.now, bool(request.word("all")))
