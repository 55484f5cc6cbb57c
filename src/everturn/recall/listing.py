"""Lists of sessions, newest first, each under the title a person gave it where there is one."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import Session, SessionText
from everturn.recall import ResultPage
from everturn.recall.marks import NONE, marks_by_session
from everturn.recall.sessions import short_ids
from everturn.store import SessionFilter, Store


class SessionListing(Struct, frozen=True):
    """One line of a list of sessions."""

    session: Session
    text: SessionText
    short: str  # enough of its id to tell it from the others of the list
    star: bool = False


def list_sessions(store: Store, wanted: SessionFilter, limit: int = 50, after: str = "") -> ResultPage[SessionListing]:
    """A page of sessions, newest first."""
    rows, cursor = store.sessions(wanted, limit, after)
    shorts = short_ids((session for session, _ in rows), store)
    marked = marks_by_session(store)
    lines = []
    for session, text in rows:
        marks = marked.get((session.agent, session.native_id), NONE)
        shown = replace(text, title=marks.title or text.title)
        lines.append(SessionListing(session, shown, shorts[session.id], marks.star))
    return ResultPage(lines, cursor)
