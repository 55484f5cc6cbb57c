"""What people put on sessions: a title of their own, a star, a note. In the kept layer, where no rebuild touches it.

A mark belongs to (agent, native id), so it is found again whichever edition of the session is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import UsageError
from everturn.model.archive import KeptRow, Session, SessionText
from everturn.recall.sessions import best_match
from everturn.store import Store

KIND = "mark"
LONGEST_TITLE = 300
LONGEST_NOTE = 20_000


class Marks(Struct, frozen=True):
    """What was put on one session."""

    title: str = ""
    star: bool = False
    note: str = ""


NONE = Marks()
Key = tuple[str, str]  # agent, native id


def marks_of(store: Store, session: Session) -> Marks:
    """What is on a session."""
    return marks_by_session(store, session.native_id).get((session.agent, session.native_id), NONE)


def marks_by_session(store: Store, subject: str | None = None) -> dict[Key, Marks]:
    """Every session that has something on it: as many as people have marked."""
    return {(row.agent, row.subject): _read(row) for row in store.kept(KIND, subject)}


def put_marks(
    store: Store,
    session: Session,
    now: int,
    title: str | None = None,
    star: bool | None = None,
    note: str | None = None,
) -> Marks:
    """Change what is given; what is None stays. An empty title or note is taken away. Raises Usage, Busy."""
    for name, value, longest in (("title", title, LONGEST_TITLE), ("note", note, LONGEST_NOTE)):
        if value is not None and len(value) > longest:
            raise UsageError(f"a {name} has at most {longest:,} characters, this one has {len(value):,}; shorten it")
    with store.write():
        marks = marks_of(store, session)
        marks = replace(
            marks,
            title=marks.title if title is None else " ".join(title.split()),
            star=marks.star if star is None else star,
            note=marks.note if note is None else note.strip(),
        )
        if marks == NONE:
            store.drop_kept(session.agent, session.native_id, (KIND,))
        else:
            value = msgspec.json.encode(marks).decode()
            store.keep(KeptRow(KIND, session.agent, session.native_id, "", value, now))
    return marks


def starred_sessions(store: Store) -> list[tuple[Session, SessionText]]:
    """The sessions with a star, newest first."""
    found: Iterable[list[Session]] = (
        store.sessions_of(*key) for key, marks in marks_by_session(store).items() if marks.star
    )
    pairs = [store.session(best_match(editions).id) for editions in found if editions]
    return sorted(pairs, key=lambda pair: (pair[0].ended or 0, pair[0].id), reverse=True)


def _read(row: KeptRow) -> Marks:
    try:
        return msgspec.json.decode(row.value, type=Marks)
    except msgspec.DecodeError:
        return NONE
