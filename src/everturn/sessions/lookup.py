"""Find the session a person means, list sessions, and read and write marks. Plain functions that take the store first.

Every surface lists sessions by the same rows (`session_row`): the same fields, in the same order, in the same words. A
screen has room for some of the fields only; `lay_out_rows` decides which.

A session is named by its native id, by a unique prefix of it, by the part after the last `/` for sessions that belong to
another, by the short name that its agent gave it (`slug`), or by age: `@last`, `@-2`. Ids come from foreign files and are only compared, never used as a path. Several
versions of one native id count as one session: the current one, or the fullest. A mark belongs to (agent, native id), so
it is found whichever version of the session is read; it is in the kept layer, which no rebuild touches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import AmbiguousSession, NothingFound, UnknownSession, UsageError
from everturn.model.archive import KeptRow, Session, SessionText
from everturn.model.conversation import prepared
from everturn.model.vocabulary import SESSION_KINDS
from everturn.store.contract import SessionFilter, Store
from everturn.text.folders import resolve_folder
from everturn.text.printable import Clean, count_cells, cut_cells, one_line, short_folder, short_path
from everturn.text.times import parse_when, short_ago

if TYPE_CHECKING:
    from everturn.sources.contract import Source

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


def typed_filter(given: Mapping[str, str], now: int, everything: bool = False, **folders: str) -> SessionFilter:
    """Return the filter that a person typed: fields of `SessionFilter` as text. Raises UsageError for an invalid time.

    `folders` are those of `resolve_folder`. With `everything`, it has sessions of all kinds and older versions too.
    """
    fields: dict[str, Any] = {name: value for name, value in given.items() if name not in ("since", "until")}
    fields |= {name: parse_when(given[name], now) for name in ("since", "until") if given.get(name)}
    fields["workspace"] = resolve_folder(given.get("workspace", ""), **folders)
    if everything:
        fields |= {"kinds": SESSION_KINDS, "states": ("current", "superseded")}
    return SessionFilter(**fields)


def iterate_sessions(store: Store, session_filter: SessionFilter, portion: int = 200) -> Iterator[Session]:
    """Yield the sessions of a filter, newest first, read a portion at a time."""
    cursor = ""
    while True:
        rows, cursor = store.sessions(session_filter, portion, cursor)
        yield from (session for session, _ in rows)
        if not cursor:
            return


def _find_by_age(store: Store, number: int, name: str) -> Session:
    newest = iterate_sessions(store, SessionFilter(), min(number, 500))
    found = next(islice(newest, number - 1, None), None)
    if found is None:
        raise UnknownSession(name)
    return found


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
        return msgspec.json.decode(row.value, type=prepared(Marks))
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
    """A session in a list, under the title a person gave it if there is one."""

    session: Session
    text: SessionText
    short: str  # a unique prefix of its id
    star: bool = False
    note: str = ""


def list_sessions(store: Store, filters: SessionFilter, limit: int = 50, after: str = "") -> ResultPage[SessionListing]:
    """Return a page of sessions, newest first."""
    rows, cursor = store.sessions(filters, limit, after)
    return ResultPage(session_listings(store, rows), cursor)


def session_listings(store: Store, pairs: Sequence[tuple[Session, SessionText]]) -> list[SessionListing]:
    """Return sessions with their marks and short ids."""
    shorts = short_ids((session for session, _ in pairs), store)
    marked = marks_by_session(store)
    listed = []
    for session, text in pairs:
        marks = marked.get((session.agent, session.native_id), NONE)
        shown = replace(text, title=marks.title or text.title)
        listed.append(SessionListing(session, shown, shorts[session.id], marks.star, marks.note))
    return listed


# --- rows ---

#: A session that was written to within this time is running.
RUNNING = 5 * 60_000
LONGEST_ROW_TITLE = 240  # cells: wider than screens are
_FOLDER = 26  # cells


class SessionRow(Struct, frozen=True):
    """A session as every surface lists it, without secrets and control characters. `ROW_COLUMNS` are shown."""

    title: str
    folder: str  # the last two parts of the path, shortened in the middle
    agent: str
    kind: str
    turns: str
    calls: str
    failed: str  # "" without failed calls
    active: str  # `running`, or how long ago it was
    short: str
    number: int
    workspace: str
    ended: int | None
    note: str
    is_running: bool


class RowColumn(Struct, frozen=True):
    """A column of a list of sessions: its heading and its most cells."""

    name: str
    heading: str
    most: int
    is_number: bool = False


#: The columns in the order shown. The title gets the cells that the others leave.
ROW_COLUMNS = (
    RowColumn("title", "Title", LONGEST_ROW_TITLE),
    RowColumn("folder", "Folder", _FOLDER),
    RowColumn("agent", "Agent", 14),
    RowColumn("kind", "Kind", 16),
    RowColumn("turns", "Turns", 9, is_number=True),
    RowColumn("calls", "Calls", 9, is_number=True),
    RowColumn("failed", "Failed", 9, is_number=True),
    RowColumn("active", "Active", 9, is_number=True),
    RowColumn("short", "Session", 60),
)
_GAP = 2
_NARROW, _NARROW_FOLDER = 100, 14  # on a screen that is narrower a folder gets fewer cells
_LEFT_OUT = ("calls", "failed", "turns", "folder", "agent")  # in this order, until the title has enough room
_ENOUGH, _LEAST, _PIPE = 32, 12, 100  # cells of a title: as much as it needs, at least, in a pipe


def session_title(session: Session, text: SessionText) -> str:
    """Return what a session is called: its title, or its first prompt or summary. It is not cleaned."""
    about = text.title or text.first_prompt or text.summary
    return about or ("(only its structure was kept)" if session.mode == "structure" else "(no text)")


def session_kind(session: Session) -> str:
    """Return the kind of a session that is not a current main one, else ""."""
    if session.state == "current":
        return "" if session.kind == "main" else session.kind
    return "older version" if session.kind == "main" else f"{session.kind}, older"


def session_row(item: SessionListing, sources: Mapping[str, Source], now: int, clean: Clean) -> SessionRow:
    """Return the row of a session. `clean` masks secrets; it gets whole texts, as half a secret is not recognized."""
    session, text = item.session, item.text
    workspace = one_line(clean(text.workspace), 400)
    is_running = session.ended is not None and 0 <= now - session.ended < RUNNING
    title = one_line(clean(session_title(session, text)), LONGEST_ROW_TITLE)
    source = sources.get(session.agent)
    return SessionRow(
        title=f"★ {title}" if item.star else title,
        folder=short_path(short_folder(workspace), _FOLDER),
        agent=one_line(clean(source.title if source is not None else session.agent), 40),
        kind=session_kind(session),
        turns=f"{session.n_turns:,}",
        calls=f"{session.n_calls:,}",
        failed=f"{session.n_errors:,}" if session.n_errors else "",
        active="running" if is_running else short_ago(session.ended, now),
        short=one_line(clean(item.short), 60),
        number=session.id,
        workspace=workspace,
        ended=session.ended,
        note=one_line(clean(item.note), 200),
        is_running=is_running,
    )


class RowLayout(Struct, frozen=True):
    """The columns of a list that fit on a screen, with their widths in cells."""

    columns: tuple[tuple[RowColumn, int], ...]

    def headings(self) -> list[str]:
        """Return the headings, padded to the widths of their columns."""
        return [_pad(column.heading.upper(), column, width) for column, width in self.columns]

    def cells(self, row: SessionRow) -> list[str]:
        """Return the fields of a row that have a column, cut and padded; a path is cut in its middle."""
        return [_pad(_fit(getattr(row, column.name), column, width), column, width) for column, width in self.columns]


def lay_out_rows(rows: Sequence[SessionRow], width: int = 0) -> RowLayout:
    """Return the columns for a screen of `width` cells; 0 is a pipe, which gets every column.

    The kind has a column if a row is not a current main session. An id is never cut: it would be useless.
    """
    widths = {column.name: _column_width(column, rows, width) for column in ROW_COLUMNS}
    if not any(row.kind for row in rows):
        del widths["kind"]
    if not width:
        widths["title"] = min(widths["title"], _PIPE)
        return RowLayout(tuple((column, widths[column.name]) for column in ROW_COLUMNS if column.name in widths))
    left_out = iter(_LEFT_OUT)
    while True:
        room = width - sum(cells + _GAP for name, cells in widths.items() if name != "title")
        if room >= _ENOUGH or (name := next(left_out, None)) is None:
            break
        del widths[name]
    widths["title"] = max(room, _LEAST)
    return RowLayout(tuple((column, widths[column.name]) for column in ROW_COLUMNS if column.name in widths))


def _column_width(column: RowColumn, rows: Sequence[SessionRow], width: int) -> int:
    most = _NARROW_FOLDER if column.name == "folder" and 0 < width < _NARROW else column.most
    widest = max((count_cells(getattr(row, column.name)) for row in rows), default=0)
    return max(len(column.heading), min(most, widest))


def _fit(cell: str, column: RowColumn, width: int) -> str:
    return short_path(cell, width) if column.name == "folder" else cut_cells(cell, width)


def _pad(cell: str, column: RowColumn, width: int) -> str:
    gap = " " * (width - count_cells(cell))
    return gap + cell if column.is_number else cell + gap
