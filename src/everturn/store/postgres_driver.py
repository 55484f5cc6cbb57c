"""psycopg 3 behind the `Driver` contract: one connection, our value types both ways, server errors as ours.

Text that PostgreSQL cannot store (NUL, lone surrogates) is stored with U+FFFD instead of being refused. Sums come back as
integers. No message contains a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, count
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.abc import Buffer
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper, NumericBinaryLoader, NumericLoader
from psycopg.types.string import StrDumperUnknown

from everturn.errors import Busy, EverturnError, NoSpace, NotAnArchive
from everturn.store.sql import Row

#: How long a writer waits for the others before it raises Busy.
LOCK_SECONDS = 30

_PLAIN_INSERT = re.compile(r'INSERT INTO ("\w+" \([^)]*\)) VALUES \(\?(?:,\?)*\)')


class PostgresDriver:
    """One connection to one archive. Implements `store.sql.Driver`."""

    name = "postgres"

    def __init__(self, connection: psycopg.Connection[Row], url: str, schema: str) -> None:
        self.connection = connection
        self.url = url
        self.schema = schema
        self.server_number = connection.info.server_version
        self.server = str(connection.info.parameter_status("server_version"))
        self._lock = int.from_bytes(blake2b(f"everturn {schema}".encode(), digest_size=8).digest(), "big", signed=True)
        self._writing = False
        self._reading = False
        self._names = count(1)

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        with self.translated_errors():
            return self._execute(sql, params).fetchall()

    def one(self, sql: str, params: Sequence[Any] = ()) -> Row | None:
        with self.translated_errors():
            return self._execute(sql, params).fetchone()

    def each(self, sql: str, params: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows, fetched in pages."""
        # WITH HOLD: reading may continue after the transaction that ran the query.
        name = f"each_{next(self._names)}"
        with self.translated_errors(), psycopg.RawServerCursor(self.connection, name, withhold=True) as cursor:
            cursor.itersize = 1000
            yield from cursor.execute(number_parameters(sql), params, binary=True)

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        with self.translated_errors():
            return max(self._execute(sql, params).rowcount, 0)

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row: a plain INSERT by COPY, anything else in a pipeline."""
        rows = iter(rows)
        if (first := next(rows, None)) is None:
            return
        rows = chain((first,), rows)
        if plain := _PLAIN_INSERT.fullmatch(sql):
            self.copy(plain[1], rows)
            return
        with self.translated_errors(), self.connection.cursor() as cursor:
            cursor.executemany(number_parameters(sql), rows)

    def copy(self, target: str, rows: Iterable[Sequence[Any]]) -> None:
        """Stream rows into `table (columns)`."""
        with (
            self.translated_errors(),
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY {target} FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(row)

    def insert(self, sql: str, params: Sequence[Any]) -> int:
        with self.translated_errors():
            return int(self._execute(f'{sql} RETURNING "id"', params).fetchall()[0][0])

    @contextmanager
    def write(self) -> Iterator[None]:
        """Run one transaction, as the only writer of this archive."""
        if self._writing:
            yield
            return
        with self.translated_errors(), self.connection.transaction():
            self._writing = True
            try:
                self._execute("SELECT pg_advisory_xact_lock(?)", [self._lock])
                yield
            finally:
                self._writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        if self._writing or self._reading:
            yield
            return
        with self.translated_errors(), self.connection.transaction():
            self._reading = True
            try:
                self._execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
                yield
            finally:
                self._reading = False

    def script(self, sql: str) -> None:
        """Run several statements without parameters."""
        with self.translated_errors():
            self.connection.execute(sql)

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Turn errors of the server into ours. A mistake in our own SQL is raised unchanged."""
        try:
            yield
        except psycopg.Error as error:
            raise (translate_error(self.url, error) or error) from error

    def _execute(self, sql: str, params: Sequence[Any]) -> psycopg.Cursor[Row]:
        return self.connection.execute(number_parameters(sql), params, binary=True)


def connect(conninfo: str, shown: str, schema: str) -> PostgresDriver:
    """Connect to a server. `shown` is the URL for messages, without a password."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(conninfo)
        connection = psycopg.Connection[Row].connect(
            conninfo, autocommit=True, cursor_factory=psycopg.RawCursor, client_encoding="utf8",
            application_name=str(given.get("application_name") or "everturn"),
            connect_timeout=str(given.get("connect_timeout") or 10),
        )  # fmt: skip
    except psycopg.Error as error:
        raise EverturnError(
            f"cannot open {shown}: {_error_line(error)}; check the address and that the server runs"
        ) from error
    _register_adapters(connection)
    driver = PostgresDriver(connection, shown, schema)
    with driver.translated_errors():
        # Our schema first: it has its own `lower`.
        connection.execute(sql.SQL("SET search_path TO {}, pg_catalog").format(sql.Identifier(schema)))
        connection.execute(sql.SQL("SET lock_timeout TO {}").format(LOCK_SECONDS * 1000))
        # A stricter level would fix the snapshot of a writer before it waits for its turn.
        connection.execute("SET default_transaction_isolation TO 'read committed'")
    return driver


def translate_error(url: str, error: psycopg.Error) -> EverturnError | None:
    """Return our error for one of the server's, or None for a mistake in our own SQL."""
    for kinds, ours in _ERRORS_BY_CLASS:
        if isinstance(error, kinds):
            return ours(url, _error_line(error))
    return None


_NOT_OURS = (
    errors.UndefinedTable, errors.UndefinedColumn, errors.DuplicateTable, errors.DataCorrupted, errors.IndexCorrupted,
)  # fmt: skip
_ERRORS_BY_CLASS: tuple[tuple[tuple[type[psycopg.Error], ...], Callable[[str, str], EverturnError]], ...] = (
    ((errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure), lambda url, _: Busy(url)),
    ((errors.DiskFull,), lambda url, _: NoSpace(url)),
    (_NOT_OURS, NotAnArchive),
    (
        (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction),
        lambda url, why: EverturnError(f"{url} does not let us: {why}; ask its owner for the right to write"),
    ),
    (
        (errors.ProgramLimitExceeded,),
        lambda url, why: EverturnError(f"{url}: a name is too long for it ({why}); leave that file out or use SQLite"),
    ),
    (
        (psycopg.OperationalError,),
        lambda url, why: EverturnError(
            f"{url}: {why}; nothing half-written was kept: check the server and run it again"
        ),
    ),
)


@lru_cache(1024)
def number_parameters(statement: str) -> str:
    """Replace `?` by `$1`, `$2` …, the server's own syntax, in which `%` needs no escaping."""
    parts = statement.split("?")
    return "".join(f"{part}${number}" for number, part in enumerate(parts[:-1], 1)) + parts[-1]


def _error_line(error: psycopg.Error) -> str:
    if error.diag.message_primary:  # the rest refers to our SQL
        return error.diag.message_primary
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip().removeprefix("FATAL:").removeprefix("ERROR:").strip()


class _TextDumper(StrDumperUnknown):
    """Dumps any text; U+FFFD replaces what the server cannot store."""

    def dump(self, obj: str) -> Buffer | None:
        if "\0" in obj:
            obj = obj.replace("\0", "\ufffd")
        try:
            return obj.encode()
        except UnicodeEncodeError:
            return obj.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()


class _WholeNumberLoader(NumericLoader):
    """Loads a numeric, such as `sum(bigint)`, as an int or float."""

    def load(self, data: Buffer) -> Any:
        return _int_or_float(super().load(data))


class _WholeNumberBinaryLoader(NumericBinaryLoader):
    """The same for binary results."""

    def load(self, data: Buffer) -> Any:
        return _int_or_float(super().load(data))


def _int_or_float(value: Any) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _register_adapters(connection: psycopg.Connection[Row]) -> None:
    adapters = connection.adapters
    adapters.register_dumper(str, _TextDumper)
    # Always 64 bits: by default the type depends on the value, and each mix of types would be prepared separately.
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_loader("numeric", _WholeNumberLoader)
    adapters.register_loader("numeric", _WholeNumberBinaryLoader)
