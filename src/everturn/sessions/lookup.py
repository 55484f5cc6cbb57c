"""Which session is meant, and the list to choose from.

A session is named by its native id, by any unique beginning of it, by the part after the last `/` for those that hang
on another, or by age: `@last`, `@-2`. Ids come from foreign files and are only ever compared, never used as a path.
Several editions of one native id (a rewritten file, a merged archive) count as one session: the current one is meant,
or the fullest.

What people put on sessions: a title of their own, a star, a note. In the kept layer, where no rebuild touches it.

A mark belongs to (agent, native id), so it is found again whichever edition of the session is looked at.

Reading the archive: which session is meant, what it hangs on, what was said in it, where a word stands.

Plain functions that take the store first. Nothing here writes. Cost follows the page or the turns asked for.

Lists of sessions, newest first, each under the title a person gave it where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import AmbiguousSession, NothingFound, UnknownSession, UsageError
from everturn.model.archive import KeptRow, Session, SessionText
from everturn.store.contract import SessionFilter, Store

#: More candidates than any id worth typing has; a beginning that fits more is ambiguous anyway.
_CANDIDATES = 2000
_LENGTHS = (8, 13, 18, 23, 28)  # a UUID is cut where it has its hyphens
_LONGER = (18, 23, 28)  # ids that begin with a word they all have
_BY_AGE = re.compile(r"@(?:last|-([1-9][0-9]{0,5}))")


def resolve_session(store: Store, wanted: str) -> Session:
    """The one session that `wanted` names. Raises AmbiguousSession, UnknownSession."""
    name = wanted.strip()
    by_age = _BY_AGE.fullmatch(name)
    if by_age:
        return _find_by_age(store, int(by_age[1] or 1), wanted)
    if not name or name.startswith("@"):
        raise UnknownSession(wanted)
    fitting = _likeliest_sessions(store.sessions_like(name, _CANDIDATES), name)
    if not fitting:
        raise UnknownSession(wanted)
    if len(fitting) > 1:
        raise AmbiguousSession(wanted, sorted(one.native_id for one in fitting))
    return fitting[0]


def session_edition(store: Store, session: Session, number: int) -> Session:
    """The same session as it was in version `number` of its file. Raises NothingFound and says which there are."""
    by_number: dict[int, list[Session]] = {}
    for one in store.sessions_of(session.agent, session.native_id):
        by_number.setdefault(store.version(one.version).number, []).append(one)
    if number not in by_number:
        listed = ", ".join(map(str, sorted(by_number)))
        raise NothingFound(f"session {session.native_id} has no version {number}; there are: {listed}")
    return best_match(by_number[number])


def best_match(editions: list[Session]) -> Session:
    """Of several editions of one session the one that is meant."""
    return max(editions, key=lambda one: (one.state == "current", one.n_messages, one.id))


def short_ids(sessions: Iterable[Session], store: Store | None = None) -> dict[int, str]:
    """By session: a beginning of its id, of 8 characters or more, that tells it from the others given.

    With `store` also from every main session of the same agent in the archive: some ids begin with a date, or alike for
    a whole day. Those that hang on another are told apart by enough characters. A short id that is ambiguous after all
    is told so by `resolve_session`, with the full ones.
    """
    given = {session.id: session for session in sessions}
    names = {number: _typed_id(session) for number, session in given.items()}
    shorts = {}
    for number, name in names.items():
        others = {*names.values(), *_neighbour_ids(store, given[number])} - {name}
        lengths = _LENGTHS if given[number].kind == "main" else _LONGER
        beginnings = (name[:length].rstrip("-") for length in lengths)
        shorts[number] = next((one for one in beginnings if not any(o.startswith(one) for o in others)), name)
    return shorts


def _neighbour_ids(store: Store | None, session: Session) -> tuple[str, ...]:
    """Whose ids begin most like it: no other session of the archive can begin like it where these do not."""
    return store.beside(session.agent, session.native_id) if store is not None and session.kind == "main" else ()


def _find_by_age(store: Store, number: int, wanted: str) -> Session:
    cursor = ""
    while True:
        rows, cursor = store.sessions(SessionFilter(), min(number, 500), cursor)
        if number <= len(rows):
            return rows[number - 1][0]
        number -= len(rows)
        if not cursor or not rows:
            raise UnknownSession(wanted)


def _typed_id(session: Session) -> str:
    """What people type: those that hang on another go by the part after the last `/`."""
    name = session.native_id
    return name if session.kind == "main" else name.rpartition("/")[2] or name


def _likeliest_sessions(candidates: list[Session], name: str) -> list[Session]:
    """One edition per session, of the most likely sort only: a full id, a main session, one that hangs on another."""
    sorts: dict[int, dict[tuple[str, str], list[Session]]] = {}
    for one in candidates:
        editions = sorts.setdefault(_id_sort(one, name), {})
        editions.setdefault((one.agent, one.native_id), []).append(one)
    return [best_match(editions) for editions in sorts[min(sorts)].values()] if sorts else []


def _id_sort(session: Session, name: str) -> int:
    if session.native_id == name:
        return 0
    return {"main": 1, "subagent": 2, "sidechain": 2}.get(session.kind, 3)


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


T = TypeVar("T")


class ResultPage(Struct, Generic[T], frozen=True):
    """Some of the answers and the cursor for the next ones ("" at the end)."""

    items: list[T]
    next: str = ""
    note: str = ""  # what a reader must know about these answers, "" when nothing


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
