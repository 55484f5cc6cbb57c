"""Sessions as lines of a list, for the home page, the list, the search and the lineage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from everturn.model.archive import Session, SessionText
from everturn.sessions.lookup import NONE, Marks, marks_by_session, short_ids
from everturn.text.printable import short_folder
from everturn.web.request import WebRequest

_LIVE_MS = 5 * 60_000
_PREPARED = 160


class SessionLine(Struct, frozen=True):
    """A session, cleaned for a page."""

    number: int
    short: str
    title: str
    agent: str  # its title
    folder: str
    workspace: str
    started: int | None
    ended: int | None
    turns: int
    calls: int
    errors: int
    model: str
    sort: str = ""  # the kind, where it is not a current main session
    star: bool = False
    note: str = ""
    live: bool = False  # written to a moment ago


def session_lines(request: WebRequest, pairs: Sequence[tuple[Session, SessionText]]) -> list[SessionLine]:
    shorts = short_ids((session for session, _ in pairs), request.store)
    marked = marks_by_session(request.store)
    return [
        session_line(request, session, text, marked.get((session.agent, session.native_id), NONE), shorts[session.id])
        for session, text in pairs
    ]


def session_line(
    request: WebRequest, session: Session, text: SessionText, marks: Marks = NONE, short: str = ""
) -> SessionLine:
    workspace = request.line(text.workspace, 400)
    return SessionLine(
        number=session.id,
        short=request.line(short or session.native_id, 40),
        title=title_of(request, session, text, marks),
        agent=request.line(request.site.titles.get(session.agent, session.agent), 40),
        folder=short_folder(workspace),
        workspace=workspace,
        started=session.started,
        ended=session.ended,
        turns=session.n_turns,
        calls=session.n_calls,
        errors=session.n_errors,
        model=request.line(session.model, 60),
        sort=sort_of(session),
        star=marks.star,
        note=request.line(marks.note, 200),
        live=session.ended is not None and 0 <= request.now - session.ended < _LIVE_MS,
    )


def title_of(request: WebRequest, session: Session, text: SessionText, marks: Marks = NONE) -> str:
    """Return the title of a session: the user's, its own, or its first prompt or summary."""
    about = marks.title or text.title or text.first_prompt or text.summary
    if not about:
        return "(only its structure was kept)" if session.mode == "structure" else "(no words)"
    return request.line(about, _PREPARED)


def sort_of(session: Session) -> str:
    """Return the kind of a session that is not a current main one."""
    words = [] if session.kind == "main" else [session.kind]
    return ", ".join((*words, *(["older edition"] if session.state != "current" else [])))


def archived_agents(request: WebRequest, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the agents with sessions in the archive, name and title. Cached."""
    from everturn.model.vocabulary import SESSION_KINDS
    from everturn.store.contract import SessionFilter

    def look() -> list[tuple[str, str]]:
        there = (name for name in names if request.store.sessions(SessionFilter(agent=name, kinds=SESSION_KINDS), 1)[0])
        return [(name, request.site.titles.get(name, name)) for name in there]

    return request.site.for_a_while("agents", look)
