"""SQLite behind the `Driver` contract, and its errors as ours.

Text that no database takes (lone surrogates, from broken JSON) is stored with U+FFFD in its place; it is whole in the
raw layer. After an input or output error the connection is not used again: what SQLite has in memory may not be what
is on the disk.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import apsw

from everturn.errors import Busy, EverturnError, NoSpace, NotAnArchive
from everturn.store.driver import Row

_SENTENCES: tuple[tuple[type[apsw.Error], str], ...] = (
    (apsw.CantOpenError, "it cannot be opened; check that its folder is there and may be written"),
    (apsw.ReadOnlyError, "it may not be written; check its permissions and those of its folder"),
    (apsw.PermissionsError, "it may not be used; check its permissions"),
    (apsw.NoMemError, "there is not enough memory; close other programs and run it again"),
    (apsw.IOError, "reading or writing it failed; check the disk, then run `everturn verify`"),
)


class SqliteDriver:
    """One connection. The methods are those of `driver.Driver`."""

    name = "sqlite"

    def __init__(self, connection: apsw.Connection, url: str) -> None:
        self.connection = connection
        self.url = url
        self.unusable = ""  # why, once it is
        self.sentences = _ErrorTranslation(self)
        self._writing = False
        self._reading = False

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Every row."""
        with self.sentences:
            return self._execute(sql, params).fetchall()

    def one(self, sql: str, params: Sequence[Any] = ()) -> Row | None:
        """The first row, or None."""
        with self.sentences:
            return self._execute(sql, params).fetchone()

    def each(self, sql: str, params: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows one by one."""
        with self.sentences:
            yield from self._execute(sql, params)

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        """How many rows the statement changed."""
        with self.sentences:
            self._execute(sql, params)
            return self.connection.changes()

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Once for each row."""
        rest = iter(rows)
        row: Sequence[Any] = ()

        def noting() -> Iterator[Sequence[Any]]:
            nonlocal row
            for row in rest:  # noqa: UP028 -- the row is looked at when it cannot be bound
                yield row

        with self.sentences:
            while True:
                try:
                    self.connection.executemany(sql, noting())
                    return
                except UnicodeEncodeError:
                    self.connection.execute(sql, _storable(row))

    def insert(self, sql: str, params: Sequence[Any]) -> int:
        """The id of the new row."""
        with self.sentences:
            self._execute(sql, params)
            return self.connection.last_insert_rowid()

    @contextmanager
    def write(self) -> Iterator[None]:
        """One transaction, begun with the write lock. A block inside another joins it."""
        if self._writing:
            yield
            return
        self.run("BEGIN IMMEDIATE")
        self._writing = True
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One view of the database for the whole block."""
        if self._writing or self._reading:
            yield
            return
        self.run("BEGIN")
        self._reading = True
        try:
            yield
        finally:
            self._reading = False
            self._roll_back()

    def close(self) -> None:
        """Let go. A second time does nothing."""
        self.unusable = self.unusable or "it is closed"
        self.connection.close(True)

    def _execute(self, sql: str, params: Sequence[Any]) -> apsw.Cursor:
        try:
            return self.connection.execute(sql, params)
        except UnicodeEncodeError:
            return self.connection.execute(sql, _storable(params))

    def _roll_back(self) -> None:
        """Some errors, a full disk among them, have rolled back already."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except apsw.Error:
            self.unusable = self.unusable or "a failed write could not be undone"


class _ErrorTranslation:
    """`with` this, what SQLite raises becomes our errors. One object, entered for every statement, so it is cheap."""

    def __init__(self, driver: SqliteDriver) -> None:
        self._driver = driver

    def __enter__(self) -> None:
        if self._driver.unusable:
            raise EverturnError(f"{self._driver.url} cannot be used any more: {self._driver.unusable}; run it again")

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, at: TracebackType | None
    ) -> None:
        if isinstance(failure, apsw.Error):
            driver = self._driver
            ours = explain_sqlite_error(failure, driver.url, driver.connection)
            if isinstance(failure, apsw.IOError):
                driver.unusable = "reading or writing it failed"
            raise ours from failure


def explain_sqlite_error(failure: apsw.Error, url: str, connection: apsw.Connection | None = None) -> EverturnError:
    """One sentence for what SQLite says."""
    if isinstance(failure, apsw.BusyError | apsw.LockedError):
        return Busy(url)
    if isinstance(failure, apsw.FullError) or (isinstance(failure, apsw.IOError) and _is_no_space(connection)):
        return NoSpace(url)
    if isinstance(failure, apsw.NotADBError):
        return NotAnArchive(url, "it is not a database")
    if isinstance(failure, apsw.CorruptError):
        return NotAnArchive(url, "it is damaged")
    for kind, sentence in _SENTENCES:
        if isinstance(failure, kind):
            return EverturnError(f"{url}: {sentence}")
    return EverturnError(f"{url}: the database refused ({failure}); run `everturn doctor`")


def _is_no_space(connection: apsw.Connection | None) -> bool:
    return connection is not None and connection.system_errno in (errno.ENOSPC, errno.EDQUOT)


def _storable(params: Sequence[Any]) -> list[Any]:
    return [
        value.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if isinstance(value, str) else value
        for value in params
    ]
