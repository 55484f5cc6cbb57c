"""Find the session a person means, list sessions, and read and write marks. Plain functions that take the store first.

A session is named by its native id, by a unique prefix of it, by the part after the last `/` for sessions that belong to
another, by the short name that its agent gave it (`slug`), or by age: `@last`, `@-2`. Ids come from foreign files and are only compared, never used as a path. Several
versions of one native id count as one session: the current one, or the fullest. A mark belongs to (agent, native id), so
it is found whichever version of the session is read; it is in the kept layer, which no rebuild touches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import AmbiguousSession, NothingFound, UnknownSession, UsageError
from everturn.model.archive import KeptRow, Session, SessionText
from everturn.store.contract import SessionFilter, Store

#: More candidates than any useful prefix has.
_CANDIDATES = 2000
_LENGTHS = (8, 13, 18, 23, 28)  # a UUID is cut at its hyphens
_LONGER = (18, 23, 28)  # for ids that share a first word
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
_BY_AGE = re.compile(r"@(?:last|-([1-9][0-9]{0,5}))")


def resolve_session(store: Store, name: str) -> Session:
    """Return the session that `name` means. Raises AmbiguousSession, UnknownSession."""
    stripped = name.strip()
    by_age = _BY_AGE.fullmatch(stripped)
    if by_age:
        return _find_by_age(store, int(by_age[1] or 1), name)
    if not stripped or stripped.startswith("@"):
        raise UnknownSession(name)
    matches = _likeliest_sessions(store.sessions_like(stripped, _CANDIDATES), stripped)
    if not matches:
        matches = _sessions_with_slug(store, stripped)
    if not matches:
        raise UnknownSession(name)
    if len(matches) > 1:
        raise AmbiguousSession(name, sorted(one.native_id for one in matches))
    return matches[0]


def _sessions_with_slug(store: Store, slug: str) -> list[Session]:
    """Return the sessions that their agent calls so. A session that goes on with the plan of another has its slug."""
    if not _SLUG.fullmatch(slug):
        return []
    rows, _ = store.sessions(SessionFilter(text=slug), _CANDIDATES)
    return [session for session, text in rows if text.slug == slug]


def session_edition(store: Store, session: Session, number: int) -> Session:
    """Return the session as it was in version `number` of its file. Raises NothingFound with the existing numbers."""
    by_number: dict[int, list[Session]] = {}
    for one in store.sessions_of(session.agent, session.native_id):
        by_number.setdefault(store.version(one.version).number, []).append(one)
    if number not in by_number:
        listed = ", ".join(map(str, sorted(by_number)))
        raise NothingFound(f"session {session.native_id} has no version {number}; there are: {listed}")
    return best_match(by_number[number])


def best_match(versions: list[Session]) -> Session:
    """Return the version of a session that is meant: the current one, or the fullest."""
    return max(versions, key=lambda one: (one.state == "current", one.n_messages, one.id))


def short_ids(sessions: Iterable[Session], store: Store | None = None) -> dict[int, str]:
    """Return a prefix of each session's id, of 8 characters or more, that is unique among these sessions.

    With `store`, also among the main sessions of the same agent in the archive: some ids begin with a date. For sessions
    that belong to another a longer prefix is enough; should it be ambiguous, `resolve_session` lists the full ids.
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
    """Return the nearest ids in the archive: a prefix that they do not share is unique."""
    return store.neighbours(session.agent, session.native_id) if store is not None and session.kind == "main" else ()


def iterate_sessions(store: Store, session_filter: SessionFilter, portion: int = 200) -> Iterator[Session]:
    """Yield the sessions of a filter, newest first, read a portion at a time."""
    cursor = ""
    while True:
        rows, cursor = store.sessions(session_filter, portion, cursor)
        yield from (session for session, _ in rows)
        if not cursor:
            return


def _find_by_age(store: Store, number: int, name: str) -> Session:
    cursor = ""
    while True:
        rows, cursor = store.sessions(SessionFilter(), min(number, 500), cursor)
        if number <= len(rows):
            return rows[number - 1][0]
        number -= len(rows)
        if not cursor or not rows:
            raise UnknownSession(name)


def _typed_id(session: Session) -> str:
    """Return the id people type: after the last `/` for sessions that belong to another."""
    name = session.native_id
    return name if session.kind == "main" else name.rpartition("/")[2] or name


def _likeliest_sessions(candidates: list[Session], name: str) -> list[Session]:
    """Return one version per session, of the best rank only: an exact id, a main session, one that belongs to another."""
    ranks: dict[int, dict[tuple[str, str], list[Session]]] = {}
    for one in candidates:
        versions = ranks.setdefault(_match_rank(one, name), {})
        versions.setdefault((one.agent, one.native_id), []).append(one)
    return [best_match(versions) for versions in ranks[min(ranks)].values()] if ranks else []


def _match_rank(session: Session, name: str) -> int:
    if session.native_id == name:
        return 0
    return {"main": 1, "subagent": 2, "sidechain": 2}.get(session.kind, 3)


# --- marks ---

KIND = "mark"
LONGEST_TITLE = 300
LONGEST_NOTE = 20_000


class Marks(Struct, frozen=True):
    """Title, star and note that a person gave a session."""

    title: str = ""
    star: bool = False
    note: str = ""


NONE = Marks()
Key = tuple[str, str]  # agent, native id


def marks_of(store: Store, session: Session) -> Marks:
    return marks_by_session(store, session.native_id).get((session.agent, session.native_id), NONE)


def marks_by_session(store: Store, subject: str | None = None) -> dict[Key, Marks]:
    """Return the marks of all marked sessions, or of one native id."""
    return {(row.agent, row.subject): _decode_marks(row) for row in store.kept(KIND, subject)}


def put_marks(
    store: Store,
    session: Session,
    now: int,
    title: str | None = None,
    star: bool | None = None,
    note: str | None = None,
) -> Marks:
    """Change the given marks; None leaves one as it is, an empty text removes it. Raises UsageError, Busy."""
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
    """Return the sessions with a star, newest first."""
    starred = (store.sessions_of(*key) for key, marks in marks_by_session(store).items() if marks.star)
    pairs = [store.session(best_match(versions).id) for versions in starred if versions]
    return sorted(pairs, key=lambda pair: (pair[0].ended or 0, pair[0].id), reverse=True)


def _decode_marks(row: KeptRow) -> Marks:
    try:
        return msgspec.json.decode(row.value, type=Marks)
    except msgspec.DecodeError:
        return NONE


# --- lists ---

T = TypeVar("T")


class ResultPage(Struct, Generic[T], frozen=True):
    """One page of results and the cursor of the next ("" at the end)."""

    items: list[T]
    next: str = ""
    note: str = ""  # a remark about these results, or ""


class SessionListing(Struct, frozen=True):
    """One row of a list of sessions, under the title a person gave it if there is one."""

    session: Session
    text: SessionText
    short: str  # a unique prefix of its id
    star: bool = False


def list_sessions(store: Store, filters: SessionFilter, limit: int = 50, after: str = "") -> ResultPage[SessionListing]:
    """Return a page of sessions, newest first."""
    rows, cursor = store.sessions(filters, limit, after)
    shorts = short_ids((session for session, _ in rows), store)
    marked = marks_by_session(store)
    lines = []
    for session, text in rows:
        marks = marked.get((session.agent, session.native_id), NONE)
        shown = replace(text, title=marks.title or text.title)
        lines.append(SessionListing(session, shown, shorts[session.id], marks.star))
    return ResultPage(lines, cursor)
