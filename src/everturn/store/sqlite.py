"""The archive in one SQLite file (or in memory): opening it, its driver, and what only SQLite can do.

    archive.db, sqlite:archive.db     a file: write-ahead log, many readers and one writer at a time
    memory:                           the same engine without a file, for tests and trials

A new file is readable by its owner alone. A database of another program, of a newer everturn, or with an unknown schema
is refused and not changed. Before an older archive is migrated, a copy is saved beside it.

`durable` syncs the log at every commit. Without it a power failure can lose the last transactions, which can be read
again from their sources; the database stays consistent either way.

An encrypted file is opened with the configured key (`store.cipher`), and its copies are encrypted like it.

Text that no database accepts (lone surrogates, from broken JSON) is stored with U+FFFD; the raw layer has it unchanged.
After an I/O error the connection is not used again: what SQLite has in memory may differ from the disk.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from operator import length_hint
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any

import apsw

from everturn.clock import Clock, now
from everturn.errors import Busy, EverturnError, NoArchive, NoSpace, NotAnArchive, OlderArchive, UsageError
from everturn.store import sql_store
from everturn.store.cipher import ArchiveKey, keys_for, open_connection
from everturn.store.contract import StoreHealth
from everturn.store.sql import Row
from everturn.store.sql_store import Applied, Migration, SqlStore
from everturn.store.sqlite_index import SqliteIndex

APPLICATION_ID = 0x45564552  # "EVER"
BUSY_MS = 10_000
CACHE_KB = 16_000
CHECKPOINT_PAGES = 8000  # a page changed several times is copied once: measured 10 % of the cost of a row
_ROWS = 4096  # bound at a time
LOG_LIMIT = 64 * 1024 * 1024  # the write-ahead log is cut back to this after a big transaction
_NOTES = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL
    ) STRICT
"""
_MOST_PROBLEMS = 20  # listed of a damaged database
_SENTENCES: tuple[tuple[type[apsw.Error], str], ...] = (
    (apsw.CantOpenError, "it cannot be opened; check that its folder is there and may be written"),
    (apsw.ReadOnlyError, "it may not be written; check its permissions and those of its folder"),
    (apsw.PermissionsError, "it may not be used; check its permissions"),
    (apsw.NoMemError, "there is not enough memory; close other programs and run it again"),
    (apsw.IOError, "reading or writing it failed; check the disk, then run `everturn verify`"),
)


def open_sqlite(
    url: str, create: bool = True, clock: Clock = now, durable: bool = False, upgrade: bool = True
) -> SqliteStore:
    """Open an archive, create it if `create` is set, and migrate it."""
    if url == "memory:":
        return SqliteStore(url, open_memory(url, clock), None)
    path = Path(url.removeprefix("sqlite:").removeprefix("//"))
    return SqliteStore(url, open_file(path, url, create, clock, durable, upgrade), path)


class SqliteStore(SqlStore):
    driver: SqliteDriver
    index: SqliteIndex

    def __init__(self, url: str, driver: SqliteDriver, path: Path | None) -> None:
        super().__init__(url, driver, SqliteIndex(driver))
        self._path = path

    def check(self, quick: bool = False) -> StoreHealth:
        """Check pages, indexes, full text and foreign keys."""
        kind = "quick_check" if quick else "integrity_check"
        problems: list[str] = []
        try:
            problems += [str(row[0]) for row in self.driver.all(f"PRAGMA {kind}({_MOST_PROBLEMS})") if row[0] != "ok"]
            broken = self.driver.all("PRAGMA foreign_key_check")
            problems += [
                f"a row of {row[0]} names a row of {row[2]} that is not there" for row in broken[:_MOST_PROBLEMS]
            ]
        except NotAnArchive as failure:
            problems.append(str(failure))
        return StoreHealth("sqlite", self._schema_number(), problems)

    def backup(self, path: str) -> None:
        place = Path(path)
        if place.exists():
            raise UsageError(f"{path} exists already; name a file that does not")
        copy_into(self.driver, place)

    def sizes(self) -> dict[str, int]:
        """Return the bytes of raw chunks, index entries, the rest, and the whole file."""
        raw = self._number('SELECT SUM(LENGTH("data")) FROM "blob"')
        index = self._number("SELECT SUM(LENGTH(block)) FROM fts_data")
        index += self._number("SELECT SUM(LENGTH(sz)) FROM fts_docsize")
        total = self._number("PRAGMA page_count") * self._number("PRAGMA page_size")
        return {"raw": raw, "index": index, "rest": total - raw - index, "total": total}

    def scrub(self) -> None:
        """Remove deleted bytes from the file and its log, and the copies made before migrations."""
        with self.write():
            self.index.optimize()
        # Its temporary file is encrypted like the database. Others of an encrypted database stay in memory.
        self.driver.run("PRAGMA temp_store=FILE")
        self.driver.run("VACUUM")
        self.driver.run(f"PRAGMA temp_store={_temporary_place(self.driver)}")
        if self._path is None:
            return
        if (log := self.driver.one("PRAGMA wal_checkpoint(TRUNCATE)")) is None or log[0]:
            raise Busy(self.url)
        if self._number("PRAGMA freelist_count"):
            raise EverturnError(f"{self.url} still has free pages with old content; run it again")
        for copy in migration_copies(self._path):
            copy.unlink(missing_ok=True)

    def _schema_number(self) -> int:
        with suppress(EverturnError):
            return self._number("PRAGMA user_version")
        return 0

    def _number(self, sql: str) -> int:
        return int(row[0] or 0) if (row := self.driver.one(sql)) else 0


# --- the driver ---
class SqliteDriver:
    """One connection. Implements `store.sql.Driver`."""

    name = "sqlite"

    def __init__(self, connection: apsw.Connection, url: str, key: ArchiveKey | None = None) -> None:
        self.connection = connection
        self.url = url
        self.key = key  # of an encrypted file
        self.unusable = ""  # why, once it is
        self.error_translation = _ErrorTranslation(self)
        self._writing = False
        self._reading = False

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        try:
            return self._execute(sql, params).fetchall()
        except apsw.Error as failure:
            raise self.explain(failure) from failure

    def one(self, sql: str, params: Sequence[Any] = ()) -> Row | None:
        try:
            return self._execute(sql, params).fetchone()
        except apsw.Error as failure:
            raise self.explain(failure) from failure

    def each(self, sql: str, params: Sequence[Any] = ()) -> Iterator[Row]:
        with self.error_translation:
            yield from self._execute(sql, params)

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        try:
            self._execute(sql, params)
            return self.connection.changes()
        except apsw.Error as failure:
            raise self.explain(failure) from failure

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        if not rows:  # many lists are empty
            return
        every = iter(rows)
        with self.error_translation:
            while portion := list(islice(every, _ROWS)):
                self._run_portion(sql, portion)

    def _run_portion(self, sql: str, rows: list[Sequence[Any]]) -> None:
        rest = iter(rows)
        while True:
            try:
                self.connection.executemany(sql, rest)
                return
            except UnicodeEncodeError:  # of the row that was taken last
                self.connection.execute(sql, _storable(rows[len(rows) - length_hint(rest) - 1]))

    def insert(self, sql: str, params: Sequence[Any]) -> int:
        try:
            self._execute(sql, params)
            return self.connection.last_insert_rowid()
        except apsw.Error as failure:
            raise self.explain(failure) from failure

    @property
    def is_writing(self) -> bool:
        return self._writing

    @contextmanager
    def write(self) -> Iterator[None]:
        """Run one transaction that begins with the write lock. A nested block joins the outer one."""
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
        self.unusable = self.unusable or "it is closed"
        self.connection.close(True)

    def check_usable(self) -> None:
        """Raise EverturnError if the connection may not be used any more."""
        if self.unusable:
            raise EverturnError(f"{self.url} cannot be used any more: {self.unusable}; run it again")

    def explain(self, failure: apsw.Error) -> EverturnError:
        """Return our error for one of SQLite's. After an I/O error the connection is not used again."""
        ours = explain_sqlite_error(failure, self.url, self.connection)
        if isinstance(failure, apsw.IOError):
            self.unusable = "reading or writing it failed"
        return ours

    def _execute(self, sql: str, params: Sequence[Any]) -> apsw.Cursor:
        if self.unusable:
            self.check_usable()
        try:
            return self.connection.execute(sql, params)
        except UnicodeEncodeError:
            return self.connection.execute(sql, _storable(params))

    def _roll_back(self) -> None:
        """Roll back, unless the error (such as a full disk) has done so already."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except apsw.Error:
            self.unusable = self.unusable or "a failed write could not be undone"


class _ErrorTranslation:
    """A context that turns SQLite's errors into ours."""

    def __init__(self, driver: SqliteDriver) -> None:
        self._driver = driver

    def __enter__(self) -> None:
        self._driver.check_usable()

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, at: TracebackType | None
    ) -> None:
        if isinstance(failure, apsw.Error):
            raise self._driver.explain(failure) from failure


def explain_sqlite_error(failure: apsw.Error, url: str, connection: apsw.Connection | None = None) -> EverturnError:
    """Return our error for one of SQLite's."""
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


# --- opening and copying a file ---
def open_file(path: Path, url: str, create: bool, clock: Clock, durable: bool, upgrade: bool = True) -> SqliteDriver:
    """Connect to an archive file and migrate it. Raises OlderArchive without `upgrade`."""
    if not (size := _size(path, url)) and not create:
        raise NoArchive(url)
    if size is None:
        _make_file(path, url)
    has_log = path.with_name(f"{path.name}-wal").exists()
    driver = connect(str(path), url, apsw.SQLITE_OPEN_READWRITE, keys_for(path))
    try:
        if size and driver.one("PRAGMA page_count") == (0,):
            size = _size(path, url)  # opening has undone a first write that was interrupted
        if size:
            _inspect_archive(driver, has_log, upgrade)
        _prepare_connection(driver, durable)
        _migrate(driver, clock, path)
    except BaseException:
        driver.close()
        raise
    return driver


def open_memory(url: str, clock: Clock) -> SqliteDriver:
    """Create an archive that lives as long as its connection."""
    driver = connect(":memory:", url, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, [None])
    _prepare_connection(driver, durable=False)
    _migrate(driver, clock, None)
    return driver


def copy_into(driver: SqliteDriver, path: Path) -> None:
    """Copy the database into a new file readable by its owner alone, and check the copy."""
    _make_file(path, str(path))
    try:
        copy = connect(str(path), str(path), apsw.SQLITE_OPEN_READWRITE, [driver.key])
        try:
            with copy.error_translation, copy.connection.backup("main", driver.connection, "main") as work:
                work.step(-1)  # all pages: a copy in steps restarts whenever somebody writes
            if copy.all("PRAGMA integrity_check(1)") != [("ok",)]:
                raise NotAnArchive(str(path), "the copy is not whole")
        finally:
            copy.close()
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def migration_copies(path: Path) -> list[Path]:
    from glob import escape

    return sorted(path.parent.glob(f"{escape(path.name)}.before-*"))


def _size(path: Path, url: str) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise EverturnError(f"{url} cannot be opened: {failure.strerror}; check the path") from failure


def _make_file(path: Path, url: str) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600))
    except FileExistsError:
        return  # another process was faster
    except OSError as failure:
        raise EverturnError(f"{url} cannot be made: {failure.strerror}; name another place with --db") from failure


def connect(name: str, url: str, flags: int, keys: list[ArchiveKey | None]) -> SqliteDriver:
    """Open a database with the first key that fits."""
    try:
        connection, key = open_connection(name, flags, keys, BUSY_MS)
    except apsw.Error as failure:
        raise explain_sqlite_error(failure, url) from failure
    return SqliteDriver(connection, url, key)


def _temporary_place(driver: SqliteDriver) -> str:
    return "FILE" if driver.key is None else "MEMORY"


def _inspect_archive(driver: SqliteDriver, has_log: bool, upgrade: bool) -> None:
    """Raise if this is not an archive we can use, before anything is changed.

    The last connection that closes copies the log into the database. That must not happen to a foreign database.
    """
    with driver.error_translation:
        driver.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(has_log))
    if driver.one("PRAGMA application_id") != (APPLICATION_ID,):
        raise NotAnArchive(driver.url, "it is a database of another program")
    applied = _applied_migrations(driver)
    if sql_store.pending_migrations(driver.url, sql_store.known_migrations("sqlite"), applied) and not upgrade:
        raise OlderArchive(driver.url) if applied else NoArchive(driver.url)
    with driver.error_translation:
        driver.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


def _prepare_connection(driver: SqliteDriver, durable: bool) -> None:
    """Apply the settings of the connection, and of a new database."""
    if driver.one("PRAGMA application_id") == (0,):
        # Before anything else: a file that we began and did not finish must be recognised as ours.
        driver.run(f"PRAGMA application_id={APPLICATION_ID}")
    _use_log(driver)
    for setting in (
        f"synchronous={'FULL' if durable else 'NORMAL'}",
        "foreign_keys=ON",
        f"cache_size=-{CACHE_KB}",
        f"temp_store={_temporary_place(driver)}",
        f"journal_size_limit={LOG_LIMIT}",
        # Deleted bytes may stay in free pages until `scrub`, which rewrites the whole file anyway.
        "secure_delete=OFF",
        f"wal_autocheckpoint={CHECKPOINT_PAGES}",
    ):
        driver.one(f"PRAGMA {setting}")
    with driver.error_translation:
        # Without this, a statement is compiled again for every value in a condition: several times the cost of running it.
        driver.connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        # SQLite itself lowercases ASCII only.
        driver.connection.create_scalar_function("lower", _lower_text, 1, deterministic=True)


def _use_log(driver: SqliteDriver) -> None:
    """Switch to the write-ahead log. SQLite does not wait for this lock by itself, so another process may be in the way."""
    until = monotonic() + BUSY_MS / 1000
    while True:
        try:
            driver.one("PRAGMA journal_mode=WAL")
            return
        except Busy:
            if monotonic() > until:
                raise
            sleep(0.01)


def _lower_text(*values: Any) -> Any:
    return values[0].lower() if isinstance(values[0], str) else values[0]


def _applied_migrations(driver: SqliteDriver) -> Applied:
    if driver.one("SELECT 1 FROM sqlite_schema WHERE name='schema_migrations'") is None:
        return []
    return [(int(number), str(name), str(checksum)) for number, name, checksum in driver.all(sql_store.NOTED)]


def _migrate(driver: SqliteDriver, clock: Clock, path: Path | None) -> None:
    steps, applied = sql_store.known_migrations("sqlite"), _applied_migrations(driver)
    to_copy = path if applied else None
    for step in sql_store.pending_migrations(driver.url, steps, applied):
        with driver.write(), driver.error_translation:
            driver.connection.execute(_NOTES)
            if step not in sql_store.pending_migrations(driver.url, steps, _applied_migrations(driver)):
                continue  # another process was faster
            if to_copy is not None:
                _copy_aside(to_copy, driver.url, step, driver.key)
                to_copy = None
            driver.connection.execute(step.sql)
            driver.run(sql_store.NOTE, (step.number, step.name, step.checksum, clock()))
            driver.run(f"PRAGMA user_version={step.number}")


def _copy_aside(path: Path, url: str, step: Migration, key: ArchiveKey | None) -> None:
    """Copy the archive as it was before the step, through another connection while nobody can write."""
    import shutil

    size = path.stat().st_size
    if shutil.disk_usage(path.parent).free < 2 * size:  # once for the copy, once for what the step writes
        megabytes = 2 * size // 1_000_000 + 1
        raise NoSpace(url, f"bringing it up to date needs {megabytes} MB of free space beside it")
    target = path.with_name(f"{path.name}.before-{step.number:04d}")
    half = target.with_name(f"{target.name}.part")
    half.unlink(missing_ok=True)
    reader = connect(str(path), url, apsw.SQLITE_OPEN_READONLY, [key])
    try:
        copy_into(reader, half)
    finally:
        reader.close()
    os.replace(half, target)
