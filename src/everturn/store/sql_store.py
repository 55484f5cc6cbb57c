"""A store over any SQL database: the parts by subject combined over a `Driver` and an `Index`, the queries about sessions
and their rows, and the schema migrations.

An engine opens the database and adds what only it can do (`check`, `backup`, `sizes`, `scrub`).

Migrations only go forward, and none is half applied. Each engine has a folder `migrations/ENGINE` of `NNNN_name.sql`.
Applied ones are recorded in `schema_migrations` with a checksum: a file that changed after it was applied, or an unknown
number, means that this everturn must not touch the archive.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from everturn.errors import NewerArchive, NotAnArchive, UnknownSession, UsageError
from everturn.model.analytics import COUNTED_KINDS
from everturn.model.archive import (
    FILE,
    Artifact,
    Call,
    CensusRow,
    FrameworkData,
    LinkRow,
    MessageRow,
    ProblemRow,
    Session,
    SessionText,
    Step,
    Turn,
)
from everturn.store.checkpoints import CheckpointStore
from everturn.store.contract import ListedSession, SessionFilter
from everturn.store.derived import DerivedStore
from everturn.store.index import Index
from everturn.store.index_search import IndexSearch
from everturn.store.kept import HookEventStore, KeptStore, ListStore
from everturn.store.raw import Packer, RawStore
from everturn.store.sql import (
    ARTIFACTS,
    CALLS,
    CENSUS,
    ENDED,
    IS_NO_COPY,
    LINKS,
    MESSAGES,
    PROBLEMS,
    SESSIONS,
    STEPS,
    TEXTS,
    TURNS,
    Conditions,
    Driver,
    Row,
    add_sessions,
    prefix_pattern,
    query_in_lists,
    query_pairs,
)

#: Rows `(number, name, checksum)` of `schema_migrations`, in order.
Applied = Sequence[tuple[int, str, str]]

NOTE = "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)"
NOTED = "SELECT number, name, checksum FROM schema_migrations ORDER BY number"


class Migration(Struct, frozen=True):
    """One step of the schema."""

    number: int
    name: str
    sql: str
    checksum: str


@cache
def known_migrations(engine: str) -> tuple[Migration, ...]:
    """Return the schema steps of an engine that this version knows, in order."""
    # Not importlib.resources: it takes 8 ms to load, at the start of every command.
    files = sorted(Path(__file__).with_name("migrations").joinpath(engine).glob("*.sql"))
    return tuple(_migration(file.name, file.read_text(encoding="utf-8")) for file in files)


def pending_migrations(url: str, steps: Sequence[Migration], applied: Applied) -> list[Migration]:
    """Return the steps still to be applied. Raises NewerArchive or NotAnArchive before anything is changed."""
    newest = max((number for number, _, _ in applied), default=0)
    if newest > steps[-1].number:
        raise NewerArchive(url, newest, steps[-1].number)
    for (number, name, checksum), step in zip(applied, steps, strict=False):
        if (number, checksum) != (step.number, step.checksum):
            raise NotAnArchive(url, f"its schema step {number} ({name}) is not the one this everturn knows")
    return list(steps[len(applied) :])


def _migration(name: str, sql: str) -> Migration:
    number, _, rest = name.removesuffix(".sql").partition("_")
    return Migration(int(number), rest, sql, sha256(sql.replace("\r\n", "\n").encode()).hexdigest())


# --- sessions: a page costs what is on it ---

_PAGE = 1000
_LAST = 1 << 62

_SESSIONS_AND_TEXTS = f'SELECT {SESSIONS.fields("s")},{TEXTS.fields("x")} FROM "session" s LEFT JOIN "session_text" x ON x."session"=s."id"'
_ENTRIES = f"""
    SELECT {MESSAGES.fields("m")},{SESSIONS.fields("s")},{TEXTS.fields("x")} FROM (VALUES {{}}) AS k
    JOIN "session" s ON s."id"=k.column1 LEFT JOIN "session_text" x ON x."session"=s."id"
    LEFT JOIN "message" m ON m."session"=k.column1 AND m."seq"=k.column2
"""
_WITHIN_TURN = """
    BETWEEN (SELECT "first_seq" FROM "turn" WHERE "session"=? AND "idx"=?)
    AND (SELECT "last_seq" FROM "turn" WHERE "session"=? AND "idx"=?)
"""
_LISTED = f"""SELECT s."id", s."agent", s."native_id", s."kind", (s."state"='current' AND {IS_NO_COPY.format(s="s")})
    FROM "session" s WHERE s."kind" IN ({",".join(f"'{kind}'" for kind in COUNTED_KINDS)})"""
_SAME_SESSION = '(s."agent", s."native_id") IN (SELECT "agent", "native_id" FROM "session" WHERE "id" IN ({}))'
_CURRENT_CENSUS = """
    SELECT 0, c."type", c."client", c."disposition", CAST(SUM(c."n") AS BIGINT)
    FROM "census" c JOIN "source_file" f ON f."version"=c."version"
    GROUP BY c."type", c."client", c."disposition" ORDER BY c."type", c."client", c."disposition"
"""


class SessionQueries:
    """The part of a store that answers questions about sessions."""

    driver: Driver

    # --- sessions ---
    def sessions(
        self, session_filter: SessionFilter, limit: int = 50, after: str = ""
    ) -> tuple[list[tuple[Session, SessionText]], str]:
        conditions = Conditions()
        add_sessions(conditions, session_filter)
        ended = ENDED.format("s")
        if after:
            at, last = _read_cursor(after)
            conditions.add(f'{ended}<=? AND ({ended}<? OR s."id"<?)', at, at, last)
        sql = f'{_SESSIONS_AND_TEXTS}{conditions.where()} ORDER BY {ended} DESC, s."id" DESC LIMIT ?'
        found = [_session_and_text(row) for row in self.driver.all(sql, [*conditions.params, limit + 1])]
        if len(found) <= limit:
            return found, ""
        last_shown = found[limit - 1][0] if limit else Session(ended=_LAST)
        return found[:limit], f"{last_shown.ended or 0}.{last_shown.id}"

    def count_sessions(self, session_filter: SessionFilter) -> int:
        conditions = Conditions()
        add_sessions(conditions, session_filter)
        sql = 'SELECT COUNT(*) FROM "session" s LEFT JOIN "session_text" x ON x."session"=s."id"'
        row = self.driver.one(sql + conditions.where(), conditions.params)
        return int(row[0]) if row else 0

    def listed_sessions(self, ids: Sequence[int] = ()) -> dict[int, ListedSession]:
        rows = (
            query_in_lists(self.driver.all, f"{_LISTED} AND {_SAME_SESSION}", ids) if ids else self.driver.all(_LISTED)
        )
        families: dict[tuple[str, str, str], dict[int, bool]] = {}
        for row, agent, native_id, kind, is_listed in rows:
            families.setdefault((agent, native_id, kind), {})[int(row)] = bool(is_listed)
        found = {}
        for (_, _, kind), family in families.items():
            listed = [row for row in sorted(family) if family[row]]
            for row in family if listed else ():
                found[row] = ListedSession(row if family[row] else listed[-1], kind, min(family))
        return found

    def session(self, session: int) -> tuple[Session, SessionText]:
        if (row := self.driver.one(f'{_SESSIONS_AND_TEXTS} WHERE s."id"=?', (session,))) is None:
            raise UnknownSession(str(session))
        return _session_and_text(row)

    def sessions_at(self, ids: Sequence[int]) -> list[tuple[Session, SessionText]]:
        rows = query_in_lists(self.driver.all, f'{_SESSIONS_AND_TEXTS} WHERE s."id" IN ({{}})', ids)
        return [_session_and_text(row) for row in rows]

    def sessions_like(self, prefix: str, limit: int = 20) -> list[Session]:
        start = prefix_pattern(prefix)
        sql = f"""{SESSIONS.select} WHERE "native_id" LIKE ? ESCAPE '\\' OR "native_id" LIKE ? ESCAPE '\\' ORDER BY "id" DESC"""
        # LIKE differs in case sensitivity between engines and does not know the last `/`: checked again here.
        found: list[Session] = []
        for session in SESSIONS.read(self.driver.all(sql, (start, f"%/{start}"))):
            name = session.native_id
            if len(found) < limit and (name.startswith(prefix) or name.rpartition("/")[2].startswith(prefix)):
                found.append(session)
        return found

    def neighbours(self, agent: str, native_id: str) -> tuple[str, str]:
        sql = """SELECT "native_id" FROM "session" WHERE "agent"=? AND "kind"='main' AND "native_id"{} LIMIT 1"""
        before = self.driver.one(sql.format('<? ORDER BY "native_id" DESC'), (agent, native_id))
        after = self.driver.one(sql.format('>? ORDER BY "native_id"'), (agent, native_id))
        return str(before[0]) if before else "", str(after[0]) if after else ""

    def sessions_of(self, agent: str, native_id: str) -> list[Session]:
        """Return every session with this native id, oldest first."""
        sql = f'{SESSIONS.select} WHERE "agent"=? AND "native_id"=? ORDER BY "id"'
        return SESSIONS.read(self.driver.all(sql, (agent, native_id)))

    def sessions_in(self, version: int) -> list[Session]:
        return SESSIONS.read(self.driver.all(f'{SESSIONS.select} WHERE "version"=? ORDER BY "id"', (version,)))

    # --- inside a session ---
    def turns(self, session: int, first: int = 0, last: int | None = None) -> list[Turn]:
        """Return turns by number, both ends included."""
        sql = f'{TURNS.select} WHERE "session"=? AND "idx" BETWEEN ? AND ? ORDER BY "idx"'
        return TURNS.read(self.driver.all(sql, (session, first, _LAST if last is None else last)))

    def steps(self, session: int, turn: int | None = None) -> list[Step]:
        if turn is None:
            return STEPS.read(self.driver.all(f'{STEPS.select} WHERE "session"=? ORDER BY "idx"', (session,)))
        sql = f'{STEPS.select} WHERE "session"=? AND "first_seq" {_WITHIN_TURN} AND "turn"=? ORDER BY "idx"'
        return STEPS.read(self.driver.all(sql, (session, session, turn, session, turn, turn)))

    def messages(self, session: int, first: int = 0, last: int | None = None) -> Iterator[MessageRow]:
        """Yield messages by seq, both ends included. Read in pages: no cursor stays open between two messages."""
        sql = f'{MESSAGES.select} WHERE "session"=? AND "seq" BETWEEN ? AND ? ORDER BY "seq" LIMIT ?'
        end = _LAST if last is None else last
        while rows := self.driver.all(sql, (session, first, end, _PAGE)):
            yield from MESSAGES.read(rows)
            first = rows[-1][1] + 1
            if len(rows) < _PAGE:
                return

    def messages_at(self, keys: Sequence[tuple[int, int]]) -> list[MessageRow]:
        """Return the messages with these sessions and seqs."""
        sql = f'{MESSAGES.select} WHERE ("session","seq") IN (VALUES {{}})'
        return MESSAGES.read(query_pairs(self.driver.all, sql, keys))

    def project_of(self, version: int) -> str:
        sql = 'SELECT p."name" FROM "version" v JOIN "file_project" p ON p."source"=v."source" WHERE v."id"=?'
        row = self.driver.one(sql, (version,))
        return str(row[0]) if row else ""

    def set_project_of(self, source: int, name: str) -> None:
        sql = 'INSERT INTO "file_project" ("source","name") VALUES (?,?) ON CONFLICT ("source") DO UPDATE SET "name"=excluded."name"'
        self.driver.run(sql, (source, name))

    def entries_at(self, keys: Sequence[tuple[int, int]]) -> list[tuple[Session, SessionText, MessageRow | None]]:
        width = len(MESSAGES.columns)
        rows = query_pairs(self.driver.all, _ENTRIES, keys)
        return [
            (*_session_and_text(row[width:]), MessageRow(*row[:width]) if row[0] is not None else None) for row in rows
        ]

    def calls(self, session: int, turn: int | None = None) -> list[Call]:
        if turn is None:
            return CALLS.read(self.driver.all(f'{CALLS.select} WHERE "session"=? ORDER BY "seq","idx"', (session,)))
        sql = f'{CALLS.select} WHERE "session"=? AND "seq" {_WITHIN_TURN} AND "turn"=? ORDER BY "seq","idx"'
        return CALLS.read(self.driver.all(sql, (session, session, turn, session, turn, turn)))

    def work(self, session: int) -> list[tuple[int, str, int]]:
        sql = (
            'SELECT "turn","kind",COUNT(*) FROM "call" WHERE "session"=? GROUP BY "turn","kind" ORDER BY "turn","kind"'
        )
        return [(int(turn), str(kind), int(n)) for turn, kind, n in self.driver.all(sql, (session,))]

    def artifacts(self, session: int) -> list[Artifact]:
        sql = f'{ARTIFACTS.select} WHERE "session"=? ORDER BY "seq","idx","n"'
        return ARTIFACTS.read(self.driver.all(sql, (session,)))

    def links(self, session: int) -> list[LinkRow]:
        sql = f'{LINKS.select} WHERE "session"=? ORDER BY "relation","native_id","call_id","hint"'
        return LINKS.read(self.driver.all(sql, (session,)))

    def links_to(self, native_id: str) -> list[LinkRow]:
        sql = f'{LINKS.select} WHERE "native_id"=? ORDER BY "session","relation","call_id","hint"'
        return LINKS.read(self.driver.all(sql, (native_id,)))

    # --- health of sources ---
    def problems(self, version: int | None = None, limit: int = 1000) -> list[ProblemRow]:
        """Return what could not be read, of one version or of all."""
        where, params = ("", ()) if version is None else (' WHERE "version"=?', (version,))
        sql = f'{PROBLEMS.select}{where} ORDER BY "version","start" LIMIT ?'
        return PROBLEMS.read(self.driver.all(sql, (*params, limit)))

    def census(self, version: int | None = None) -> list[CensusRow]:
        if version is None:
            return CENSUS.read(self.driver.all(_CURRENT_CENSUS))
        sql = f'{CENSUS.select} WHERE "version"=? ORDER BY "type","client","disposition"'
        return CENSUS.read(self.driver.all(sql, (version,)))


def _session_and_text(row: Row) -> tuple[Session, SessionText]:
    width = len(SESSIONS.columns)
    session = Session(*row[:width])
    return session, SessionText(session.id) if row[width] is None else SessionText(*row[width:])


def _read_cursor(after: str) -> tuple[int, int]:
    ended, _, last = after.partition(".")
    try:
        return int(ended), int(last)
    except ValueError:
        raise UsageError(f"{after!r} is not a place in the list of sessions; start again from the first page") from None


# --- the store ---


class SqlStore(
    RawStore, DerivedStore, ListStore, SessionQueries, IndexSearch, KeptStore, CheckpointStore, HookEventStore
):
    """One archive in one SQL database. Not shared between threads."""

    def __init__(self, url: str, driver: Driver, index: Index) -> None:
        self.url = url
        self.driver = driver
        self.index = index
        self.is_restricted = False  # to what one person may see (`store.visibility`)
        self.packer = Packer()
        self._recent = OrderedDict()

    def close(self) -> None:
        self.driver.close()

    def reading(self) -> AbstractContextManager[None]:
        return self.driver.reading()

    @contextmanager
    def write(self) -> Iterator[None]:
        if self.driver.is_writing:
            yield
            return
        self._has_released, self._is_place_known = False, bool(self._place[0])
        with self.driver.write():
            try:
                yield
            except BaseException:
                self.index.finish_write(failed=True)
                raise
            self.index.finish_write(failed=False)
        if self._has_released:
            with self.driver.write():
                self.sweep_place()

    def erase_framework_data(self, data: FrameworkData) -> None:
        if not data.family:
            self.delete_thread(data.owner)
        elif data.family == FILE:
            if (found := self.file("", data.owner)) is not None:
                self.delete_file(found[0].id)
        elif data.key:
            for item in self.items_by_key(data.family, data.owner, [data.key]).values():
                self.delete_items(data.family, data.owner, item.n, item.n)
        else:
            self.delete_items(data.family, data.owner)
            self.delete_item_owner(data.family, data.owner)

    def server_time(self) -> int | None:
        return None

    def empty_file(self, source: int) -> None:
        for version in self._empty_versions(source):
            self.set_version(version, size=0)

    def delete_file(self, source: int) -> None:
        """Delete a source file: all versions, chunks no other version uses, derived rows and sessions.

        Sessions of other files that inherited from these take over, and their versions are marked to be derived again,
        because the index has no text for them (see `OwnershipStore`).
        """
        self._empty_versions(source)
        self.drop_lists(self.file_by_id(source)[0].path)
        for table in ("version", "file_project"):
            self.driver.run(f'DELETE FROM "{table}" WHERE "source"=?', (source,))
        self.driver.run('DELETE FROM "source_file" WHERE "id"=?', (source,))

    def _empty_versions(self, source: int) -> list[int]:
        """Delete sessions, derived rows and bytes of all versions of a file; return these."""
        versions = [version.id for version in reversed(self.versions(source))]
        for version in versions:
            self.drop_derived(version)
        for version in versions:
            self.driver.run('DELETE FROM "session" WHERE "version"=?', (version,))
            self.delete_chunks(version)
        return versions
