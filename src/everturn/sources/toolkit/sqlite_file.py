"""SQLite files of agents: copied while in use, read without a trace.

The only module in `sources/` that uses a database driver. A copy is consistent even while the agent writes: a database at
rest is copied byte for byte under a read lock, one with a log by SQLite's own backup. The original is opened read-only and
never changed. `is_sqlite`, `beginnings` and `stamp` look at
files without opening them as databases: while a database is in use, new content is in its log, and a young one may have all
its tables there and nowhere else.

A database may be made to do harm. Its views are not evaluated, as one may go on forever; a value may have `LARGEST_VALUE` bytes, and not more
than the file; and a query that yields more than the file can hold, as columns that are computed may, ends with a problem.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from everturn.sources.contract import PartlyUnread, SourceCandidate

Row = dict[str, Any]

#: The largest value of a row.
LARGEST_VALUE = 32 << 20
_TIMES, _SPARE = 2, 1 << 20  # of a file's size, and more, that one query may yield


def snapshot(path: Path, target: Path, private: tuple[str, ...] = ()) -> None:
    """Copy a database that may be in use, without what the statements in `private` delete. Raises OSError.

    Agents keep access tokens beside their sessions; an archive must not hold those. Where the statements delete rows, or a
    name in them occurs in the file (deleted rows stay in it for a while), the copy is written anew by the database engine.
    Any other database at rest is copied byte for byte.
    """
    try:
        original = apsw.Connection(
            f"file:{_quote_path(path)}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        copy = apsw.Connection(str(target))
        try:
            original.set_busy_timeout(5000)
            if not _copy_bytes(original, path, target, private):
                with copy.backup("main", original, "main") as backup:
                    while not backup.done:
                        backup.step(1000)
                _delete_private(copy, private)
        finally:
            copy.close()
            original.close()
    except apsw.Error as failure:
        raise OSError(None, f"the database cannot be copied: {failure}", str(path)) from failure


def _copy_bytes(original: apsw.Connection, path: Path, target: Path, private: tuple[str, ...]) -> bool:
    """Copy a database at rest as it is; return False if a log holds a part of it, or if it may hold something private."""
    original.execute("BEGIN")
    try:
        original.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()  # takes the read lock
        if any(os.path.exists(f"{path}{log}") and os.path.getsize(f"{path}{log}") for log in (_LOG, "-journal")):
            return False
        if private and _mentions(path, private):
            return False
        shutil.copyfile(path, target)
        return True
    finally:
        original.execute("COMMIT")


def _mentions(path: Path, private: tuple[str, ...]) -> bool:
    """Return whether a file may hold what the statements delete: it holds a name that they quote, in any case.

    A statement without a quoted name deletes a whole table: only the database engine can say whether that has, or had, rows.
    """
    quoted = [re.findall(r"'([^']+)'", statement) for statement in private]
    if not all(quoted):
        return True
    names = {name.strip("%").lower().encode() for some in quoted for name in some}
    overlap, rest = max(map(len, names)), b""
    with path.open("rb") as file:
        while data := file.read(1 << 20).lower():
            if any(name in rest + data for name in names):
                return True
            rest = data[-overlap:]
    return False


def _delete_private(copy: apsw.Connection, private: tuple[str, ...]) -> None:
    for statement in private:
        try:
            copy.execute(statement)
        except apsw.SQLError:  # no such table in this version of the agent
            continue
    if private:
        copy.execute("VACUUM")


@contextmanager
def open_snapshot(path: Path) -> Iterator[DatabaseSnapshot]:
    """Open a copy for reading: `with open_snapshot(path) as database: database.rows("SELECT …")`."""
    connection = apsw.Connection(
        f"file:{_quote_path(path)}?mode=ro&immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    try:
        size = path.stat().st_size
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, min(LARGEST_VALUE, size + _SPARE))
        connection.authorizer = _refuse_views
        yield DatabaseSnapshot(connection, _TIMES * size + _SPARE)
    finally:
        connection.close()


@contextmanager
def unpacked_snapshot(path: Path) -> Iterator[DatabaseSnapshot]:
    """Open a copy to unpack it. Raises PartlyUnread at the end if something in it could not be read."""
    with open_snapshot(path) as database:
        yield database
        if database.problems:
            raise PartlyUnread(database.problems)


def _refuse_views(action: int, first: str | None, second: str | None, database: str | None, view: str | None) -> int:
    is_refused = view is not None or action == apsw.SQLITE_RECURSIVE
    return apsw.SQLITE_DENY if is_refused else apsw.SQLITE_OK


class DatabaseSnapshot:
    """A read-only database. A missing or damaged table has no rows; `problems` lists what could not be read."""

    def __init__(self, connection: apsw.Connection, most: int) -> None:
        self._connection = connection
        self._most = most  # bytes of one query
        self.problems: list[str] = []

    def tables(self) -> set[str]:
        return {row["name"] for row in self.rows("SELECT name FROM sqlite_schema WHERE type='table'")}

    def columns(self, table: str) -> list[str]:
        return [row["name"] for row in self.rows("SELECT name FROM pragma_table_info(?)", table)]

    def rows(self, sql: str, *params: Any) -> Iterator[Row]:
        """Yield the rows of a query as dicts."""
        size = 0
        try:
            cursor = self._connection.execute(sql, params)
            for row in cursor:
                size += sum(len(value) for value in row if isinstance(value, str | bytes))
                if size > self._most:
                    self.problems.append(
                        "a table of the database yields more than the file can hold; the rest is not read"
                    )
                    return
                yield dict(zip((column[0] for column in cursor.get_description()), row, strict=True))
        except apsw.ExecutionCompleteError:
            return
        except (apsw.Error, UnicodeDecodeError) as failure:  # invalid text ends the rows too
            self.problems.append(f"{type(failure).__name__}: a part of the database could not be read")


def _quote_path(path: Path) -> str:
    from urllib.parse import quote

    return quote(str(path.absolute()))


_MAGIC = b"SQLite format 3\0"
_LOG = "-wal"
_LOOKED_AT = 256 << 10


def is_sqlite(head: bytes) -> bool:
    """Return whether a file with these first bytes is a SQLite database."""
    return head.startswith(_MAGIC)


def sniff_database(path: Path, head: bytes, *parts: bytes) -> SourceCandidate | None:
    """Return the candidate for a database whose tables are described with all these parts."""
    schema = beginnings(path, head) if is_sqlite(head) else b""
    is_own = bool(schema) and all(part in schema for part in parts)
    return SourceCandidate(path, "container", stamp=stamp(path)) if is_own else None


def select_list(names: Iterable[str], numbers: Collection[str] = ()) -> str:
    """Return SQL that selects texts as bytes: SQLite would refuse a text that is not UTF-8."""
    return ",".join(name if name in numbers else f"CAST({name} AS BLOB) AS {name}" for name in names)


def decode_text(value: Any) -> Any:
    """Return a value that `select_list` has selected as bytes as a text, and any other as it is."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def beginnings(path: Path, head: bytes) -> bytes:
    """Return the first bytes of a database and of its log: they hold the names of its tables and columns."""
    try:
        with open(f"{path}{_LOG}", "rb") as log:
            return head + log.read(_LOOKED_AT)
    except OSError:
        return head


def stamp(path: Path) -> int:
    """Return the time of the newest change of a database or its log, in nanoseconds."""
    times = []
    for name in (str(path), f"{path}{_LOG}"):
        try:
            times.append(os.stat(name).st_mtime_ns)
        except OSError:
            continue
    return max(times, default=0)
