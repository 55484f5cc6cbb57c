"""The list of sessions: newest first, narrowed by what is typed, brought up to date while it is open."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from everturn.model.archive import Session, SessionText
from everturn.model.vocabulary import SESSION_KINDS
from everturn.sessions.lookup import starred_sessions
from everturn.store.contract import SessionFilter
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import archived_agents, session_lines

LINES = 50
_FILTERS = ("q", "agent", "workspace", "since", "until", "all", "starred")


def draw(asked: WebRequest) -> PageReply:
    """A page of the list."""
    filters = {name: asked.word(name) for name in _FILTERS}
    given = {name: value for name, value in filters.items() if value}
    if asked.word("starred"):
        pairs, following = (
            [pair for pair in starred_sessions(asked.store) if _is_match(pair, filter_of(asked))][:LINES],
            "",
        )
    else:
        pairs, following = asked.store.sessions(filter_of(asked), LINES, asked.word("after"))
    values: dict[str, Any] = {
        "lines": session_lines(asked, pairs),
        "next": f"/sessions?{urlencode({**given, 'after': following}, errors='replace')}" if following else "",
        "filters": filters,
        "is_narrowed": bool(given),
        "first": not asked.word("after"),
        "agents": [] if asked.is_part else archived_agents(asked, asked.sources),
    }
    return PageReply("sessions", values, "Sessions")


def _is_match(pair: tuple[Session, SessionText], wanted: SessionFilter) -> bool:
    """Whether a session with a star is one of those that are wanted: there are few, and they are at hand."""
    session, text = pair
    words = "\n".join((text.title, text.first_prompt, text.summary)).casefold()
    return (
        wanted.agent in ("", session.agent)
        and wanted.workspace in text.workspace
        and wanted.text.casefold() in words
        and (wanted.since is None or (session.ended or 0) >= wanted.since)
        and (wanted.until is None or (session.started or 0) < wanted.until)
    )


def filter_of(asked: WebRequest) -> SessionFilter:
    """What was typed, as a filter. Raises Usage for a time that is none."""
    everything = bool(asked.word("all"))
    return SessionFilter(
        agent=asked.word("agent"),
        workspace=asked.word("workspace"),
        since=asked.when("since"),
        until=asked.when("until"),
        text=asked.word("q"),
        kinds=SESSION_KINDS if everything else ("main",),
        states=("current", "superseded") if everything else ("current",),
    )
