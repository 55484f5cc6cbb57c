"""Sessions as lines of a list: what the home page, the list, the search and the graph show of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from everturn.model.archive import Session, SessionText
from everturn.sessions.lookup import NONE, Marks, marks_by_session, short_ids
from everturn.web.request import WebRequest

_LIVE_MS = 5 * 60_000
_PREPARED = 160


class SessionLine(Struct, frozen=True):
    """One session, fit to be shown."""

    number: int
    short: str
    title: str
    agent: str  # as people call it
    folder: str
    workspace: str
    started: int | None
    ended: int | None
    turns: int
    calls: int
    errors: int
    model: str
    sort: str = ""  # what it is, where it is no current main session
    star: bool = False
    note: str = ""
    live: bool = False  # something was written a moment ago


def session_lines(asked: WebRequest, pairs: Sequence[tuple[Session, SessionText]]) -> list[SessionLine]:
    """The sessions of a page."""
    shorts = short_ids((session for session, _ in pairs), asked.store)
    marked = marks_by_session(asked.store)
    return [
        session_line(asked, session, text, marked.get((session.agent, session.native_id), NONE), shorts[session.id])
        for session, text in pairs
    ]


def session_line(
    asked: WebRequest, session: Session, text: SessionText, marks: Marks = NONE, short: str = ""
) -> SessionLine:
    """One session."""
    workspace = asked.line(text.workspace, 400)
    return SessionLine(
        number=session.id,
        short=asked.line(short or session.native_id, 40),
        title=title_of(asked, session, text, marks),
        agent=asked.line(asked.site.titles.get(session.agent, session.agent), 40),
        folder=short_folder(workspace),
        workspace=workspace,
        started=session.started,
        ended=session.ended,
        turns=session.n_turns,
        calls=session.n_calls,
        errors=session.n_errors,
        model=asked.line(session.model, 60),
        sort=sort_of(session),
        star=marks.star,
        note=asked.line(marks.note, 200),
        live=session.ended is not None and 0 <= asked.now - session.ended < _LIVE_MS,
    )


def title_of(asked: WebRequest, session: Session, text: SessionText, marks: Marks = NONE) -> str:
    """What people know a session by."""
    about = marks.title or text.title or text.first_prompt or text.summary
    if not about:
        return "(only its structure was kept)" if session.mode == "structure" else "(no words)"
    return asked.line(about, _PREPARED)


def sort_of(session: Session) -> str:
    """What a session is, where it is no current main one."""
    words = [] if session.kind == "main" else [session.kind]
    return ", ".join((*words, *(["older edition"] if session.state != "current" else [])))


def short_folder(workspace: str) -> str:
    """The last two parts of a path, which is what people know their projects by."""
    return "/".join([part for part in workspace.replace("\\", "/").split("/") if part][-2:])


def archived_agents(asked: WebRequest, names: Iterable[str]) -> list[tuple[str, str]]:
    """Those agents that have sessions in the archive, with what people call them. Looked up once in a while."""
    from everturn.model.vocabulary import SESSION_KINDS
    from everturn.store.contract import SessionFilter

    def look() -> list[tuple[str, str]]:
        there = (name for name in names if asked.store.sessions(SessionFilter(agent=name, kinds=SESSION_KINDS), 1)[0])
        return [(name, asked.site.titles.get(name, name)) for name in there]

    return asked.site.for_a_while("agents", look)
