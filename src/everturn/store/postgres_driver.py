"""psycopg 3 behind the `Driver` contract: one connection, our value types both ways, server errors as ours.

Text that PostgreSQL cannot store (NUL, lone surrogates) is stored with U+FFFD instead of being refused. Sums come back as
integers. No message contains a password.

No setting outlives a transaction, so a connection pooler may give every transaction to another server process. A statement
of its own is a transaction of its own, sent together with its settings: one round trip. Inside `reading()` statements are
sent in a pipeline, so the settings travel with the first query.

Writers take turns. A writer that stops in the middle (a suspended laptop) cannot keep the others waiting: the server is stopping
a transaction that is idle for STALLED_SECONDS, and a waiting writer ends one that has waited as long for data of its client.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, count
from typing import Any

import psycopg
from psycopg import errors
from psycopg.abc import Buffer
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper, NumericBinaryLoader, NumericLoader
from psycopg.types.string import StrDumperUnknown

from everturn.errors import Busy, EverturnError, NoSpace, NotAnArchive
from everturn.store.sql import Row

#: How long a writer waits for the others before it raises Busy.
LOCK_SECONDS = 90.0
#: After this time a writer whose client sends nothing loses its transaction.
STALLED_SECONDS = 30.0
_PAGE = 1000  # rows of a stream

#: For libpq, unless the URL has others: a client that lost its server notices within a minute.
_KEEPALIVE = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}

#: A stricter level would fix the snapshot of a writer before it waits for its turn.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
#: Compiling a plan takes longer than running it.
_SETTINGS = "SELECT set_config('search_path',?,true),set_config('jit','off',true)"
_READER_SETTINGS = f"{_SETTINGS},set_config('everturn.person',?,true),set_config('role',?,true)"
#: How many rows a word has decides the plan, so that no plan is good for all words.
_INDEX_ONLY = """
    SELECT set_config('enable_seqscan','off',true),set_config('enable_mergejoin','off',true),
    set_config('plan_cache_mode','force_custom_plan',true)
"""
_WRITER_SETTINGS = """
    SELECT set_config('search_path',?,true),set_config('enable_seqscan','off',true),set_config('lock_timeout',?,true),
    set_config('idle_in_transaction_session_timeout',?,true),
    CASE WHEN ? THEN set_config('synchronous_commit','on',true) END,pg_advisory_xact_lock(?)
"""
#: Ends the holder of the lock if it has waited for its client that long, in a transaction or in the middle of a COPY.
_END_STALLED = """
    SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid=l.pid
    WHERE l.locktype='advisory' AND l.granted AND l.objsubid=1 AND (l.classid::bigint << 32 | l.objid::bigint)=?
    AND a.wait_event='ClientRead' AND a.state_change < clock_timestamp() - ? * interval '1 second'
"""

_BINARY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_BINARY_END = b"\xff\xff"
_BUFFERED = 1 << 17  # bytes
_PLAIN_INSERT = re.compile(r'INSERT INTO ("\w+" \([^)]*\)) VALUES \(\?(?:,\?)*\)')


class PostgresDriver:
    """One connection to one archive. Implements `store.sql.Driver`."""

    name = "postgres"

    def __init__(self, connection: psycopg.Connection[Row], url: str, schema: str) -> None:
        self.connection = connection
        self.url = url
        self.schema = schema
        self.durable = False  # whether every commit waits for the disk, whatever the server's default
        self.server_number = connection.info.server_version
        self.server = str(connection.info.parameter_status("server_version"))
        self._path = f'"{schema}", pg_catalog'  # our schema first: it has its own `lower`
        self._lock = int.from_bytes(blake2b(f"everturn {schema}".encode(), digest_size=8).digest(), "big", signed=True)
        self._writing = False
        self._reading = False
        self._names = count(1)
        self._streams: list[_RowStream] = []
        self._reader: tuple[str, ...] = ()

    def read_as(self, person: str, role: str) -> None:
        """Let every transaction from now on run as a role, for a person, and refuse to write; without a role, no longer."""
        self._reader = (person, role) if role else ()

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        with self.translated_errors():
            return self._execute(sql, params).fetchall()

    def all_by_index(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query that must not scan a whole table, as the planner may prefer with a small limit."""
        with self.translated_errors():
            if self.connection.info.transaction_status != _IDLE or self._reading:
                self._send(_INDEX_ONLY, ())
                return self._send(sql, params).fetchall()
            with self._single_transaction():
                self._send(_INDEX_ONLY, ())
                cursor = self._send(sql, params)
            return cursor.fetchall()

    def one(self, sql: str, params: Sequence[Any] = ()) -> Row | None:
        with self.translated_errors():
            return self._execute(sql, params).fetchone()

    def each(self, sql: str, params: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows, fetched in pages as long as the transaction lasts; what is left at its end is read then."""
        with ExitStack() as stack:
            if not self._writing and not self._reading:
                self._settle_streams()
                stack.enter_context(self._single_transaction())
            stream = _RowStream(self, f"each_{next(self._names)}", stack.pop_all())
        with self.translated_errors():
            stream.open(sql, params)
        self._streams.append(stream)
        try:
            while stream.fill():
                yield stream.rows.popleft()
        finally:
            stream.close()

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

    def copy_packed(self, target: str, rows: Iterable[bytes]) -> None:
        """Stream rows that are in the server's binary form already."""
        rows = iter(rows)
        if (first := next(rows, None)) is None:
            return
        with (
            self.translated_errors(),
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY {target} FROM STDIN (FORMAT binary)") as copy,
        ):
            buffer = bytearray(_BINARY_HEADER + first)
            for row in rows:
                buffer += row
                if len(buffer) > _BUFFERED:
                    copy.write(bytes(buffer))
                    buffer.clear()
            copy.write(bytes(buffer + _BINARY_END))

    def insert(self, sql: str, params: Sequence[Any]) -> int:
        with self.translated_errors():
            return int(self._execute(f'{sql} RETURNING "id"', params).fetchall()[0][0])

    @contextmanager
    def write(self) -> Iterator[None]:
        """Run one transaction, as the only writer of this archive."""
        if self._writing:
            yield
            return
        if self._reader:
            raise EverturnError(f"{self.url} is read for {self._reader[0]} on this connection; nothing can be written")
        self._settle_streams()
        with self.translated_errors():
            self._take_turn()
            self._writing = True
            try:
                with self._rolled_back_on_error():
                    yield
                    self._settle_streams()
                    self._send("COMMIT", ())
            finally:
                self._writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        if self._writing or self._reading:
            yield
            return
        self._settle_streams()
        with self.translated_errors(), self._single_transaction(_SNAPSHOT):
            self._reading = True
            try:
                yield
                self._settle_streams()
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

    @property
    def is_writing(self) -> bool:
        return self._writing

    @property
    def is_limited(self) -> bool:
        """Whether the connection reads for a person."""
        return bool(self._reader)

    # --- transactions ---
    def _execute(self, sql: str, params: Sequence[Any]) -> psycopg.Cursor[Row]:
        if self.connection.info.transaction_status != _IDLE or self._reading:
            return self._send(sql, params)
        with self._single_transaction():
            return self._send(sql, params)

    def _send(self, sql: str, params: Sequence[Any]) -> psycopg.Cursor[Row]:
        return self.connection.execute(number_parameters(sql), params, binary=True)

    @contextmanager
    def _single_transaction(self, begin: str = _BEGIN) -> Iterator[None]:
        """Send the statements of a transaction, with its settings, in a pipeline."""
        with self._rolled_back_on_error(), self.connection.pipeline():
            self._send(begin, ())
            self._send(_READER_SETTINGS if self._reader else _SETTINGS, [self._path, *self._reader])
            yield
            self._send("COMMIT", ())

    @contextmanager
    def _rolled_back_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if not self.connection.closed and self.connection.info.transaction_status != _IDLE:
                self.connection.rollback()
            raise

    def _take_turn(self) -> None:
        """Begin a transaction with the lock of writers. Raises Busy after LOCK_SECONDS."""
        wait, waited = min(STALLED_SECONDS, LOCK_SECONDS), 0.0
        given = (self._path, f"{wait * 1000:.0f}", f"{STALLED_SECONDS * 1000:.0f}", self.durable, self._lock)
        while True:
            try:
                with self._rolled_back_on_error(), self.connection.pipeline():
                    self._send(_BEGIN, ())
                    self._send(_WRITER_SETTINGS, given)
            except errors.LockNotAvailable as refused:
                waited += wait
                if waited >= LOCK_SECONDS:
                    raise Busy(self.url) from refused
                self.all(_END_STALLED, [self._lock, STALLED_SECONDS])
            else:
                return

    def _settle_streams(self) -> None:
        """Read what is left of every stream: its transaction ends."""
        for stream in list(self._streams):
            stream.settle()


class _RowStream:
    """The rows of a query, in pages from a cursor of the server. `transaction` is the stream's own, if it has one."""

    def __init__(self, driver: PostgresDriver, name: str, transaction: ExitStack) -> None:
        self._driver, self._name, self._transaction = driver, name, transaction
        self._is_open = False
        self.rows: deque[Row] = deque()

    def open(self, sql: str, params: Sequence[Any]) -> None:
        try:
            self._driver._send(f"DECLARE {self._name} NO SCROLL CURSOR FOR {sql}", params)
        except BaseException:
            self._transaction.__exit__(*sys.exc_info())
            raise
        self._is_open = True

    def fill(self) -> bool:
        """Fetch a page if no row is at hand; return whether there is one."""
        if not self.rows and self._is_open:
            with self._driver.translated_errors():
                self.rows.extend(self._driver._send(f"FETCH {_PAGE} FROM {self._name}", ()).fetchall())
            if len(self.rows) < _PAGE:
                self._end()
        return bool(self.rows)

    def settle(self) -> None:
        """Read all that is left and end the cursor."""
        if self._is_open:
            with self._driver.translated_errors():
                self.rows.extend(self._driver._send(f"FETCH ALL FROM {self._name}", ()).fetchall())
            self._end()

    def close(self) -> None:
        """End the cursor and drop what is left."""
        if self._is_open and not self._driver.connection.closed:
            self._end()
        self._is_open = False

    def _end(self) -> None:
        self._is_open = False
        self._driver._streams.remove(self)
        if self._driver.connection.info.transaction_status == _ACTIVE:
            self._driver._send(f"CLOSE {self._name}", ())
        self._transaction.close()


_IDLE = psycopg.pq.TransactionStatus.IDLE
_ACTIVE = psycopg.pq.TransactionStatus.INTRANS


def connect(conninfo: str, shown: str, schema: str) -> PostgresDriver:
    """Connect to a server. `shown` is the URL for messages, without a password."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(conninfo)
        keepalive: dict[str, Any] = {name: str(given.get(name) or value) for name, value in _KEEPALIVE.items()}
        connection = psycopg.Connection[Row].connect(
            conninfo, autocommit=True, cursor_factory=psycopg.RawCursor, client_encoding="utf8",
            application_name=str(given.get("application_name") or "everturn"),
            connect_timeout=str(given.get("connect_timeout") or 10),
            **keepalive,
        )  # fmt: skip
    except psycopg.Error as error:
        raise EverturnError(
            f"cannot open {shown}: {_error_line(error)}; check the address and that the server runs"
        ) from error
    _register_adapters(connection)
    return PostgresDriver(connection, shown, schema)


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


def number_names(sql: str, names: dict[str, Any]) -> tuple[str, list[Any]]:
    """Replace `:name` by `?`, and return the parameters in their order. `::type` stays."""
    parts = sql.replace("::", "\0").split(":")
    made, params = [parts[0]], []
    for part in parts[1:]:
        size = next((n for n, sign in enumerate(part) if not (sign.isalnum() or sign == "_")), len(part))
        params.append(names[part[:size]])
        made.append(part[size:])
    return "?".join(made).replace("\0", "::"), params


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
