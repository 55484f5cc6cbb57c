"""The archive in PostgreSQL, version 15 or newer: for teams, and for many machines into one archive.

    postgresql://user@host/database?schema=everturn

All tables live in one schema, `everturn` if none is named, so that an archive can share a database with others. Raw
bytes are `bytea`; text that PostgreSQL cannot hold (NUL, lone surrogates) has U+FFFD in its place in the derived tables,
and is whole in the raw layer.

Writers of one archive take turns: a write transaction holds an advisory lock named after the schema until it ends. That
is the simplest thing that keeps what the shared code relies on: what it has read inside `write()` is still true at the
commit. Readers never wait.

Backups are the server's: `pg_dump --schema=everturn`. After `forget`, `scrub` rewrites the tables; what was deleted may
still be in the server's write-ahead log until that is recycled, and in backups and replicas made before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from everturn.clock import Clock, now
from everturn.errors import EverturnError, NoArchive, NotAnArchive, OlderArchive, UsageError
from everturn.store import sql_store
from everturn.store.contract import StoreHealth
from everturn.store.sql_store import SqlStore

if TYPE_CHECKING:
    from everturn.store.postgres_driver import PostgresDriver

OLDEST = 15
SCHEMA = "everturn"


class PostgresAddress(NamedTuple):
    """A URL taken apart."""

    conninfo: str  # what libpq understands
    shown: str  # without a password
    schema: str


def open_postgres(
    url: str, create: bool = True, clock: Clock = now, upgrade: bool = True, durable: bool = False
) -> PostgresStore:
    """Open an archive on a server; make it if it is not there and `create` is set; bring it up to date.

    `durable` asks the server to sync its log at every commit, whatever it does by default.
    """
    try:
        from everturn.store.postgres_driver import connect
        from everturn.store.postgres_index import PostgresIndex
    except ImportError as error:
        if not (error.name or "psycopg").startswith("psycopg"):
            raise
        raise EverturnError(
            "an archive in PostgreSQL needs the driver psycopg, which is not installed; run: pip install 'everturn[postgres]'"
        ) from error
    driver = connect(*parse_address(url))
    try:
        _check_server(driver)
        _bring_up_to_date(driver, create, clock, upgrade)
        if durable:
            driver.run("SET synchronous_commit TO on")
    except BaseException:
        driver.close()
        raise
    return PostgresStore(driver.url, driver, PostgresIndex(driver))


class PostgresStore(SqlStore):
    """What only PostgreSQL can do."""

    driver: PostgresDriver

    def check(self, quick: bool = False) -> StoreHealth:
        """Is every table and index there and usable, and every chunk of bytes?"""
        applied = _applied_migrations(self.driver)
        undone = sql_store.pending_migrations(self.url, sql_store.known_migrations("postgres"), applied)
        problems = [f"schema step {step.number} ({step.name}) is missing" for step in undone]
        problems += [f"index {name} is not valid" for (name,) in self.driver.all(_INVALID, [self.driver.schema])]
        if not quick:
            problems += [f"chunk {digest.hex()[:16]} is missing" for (digest,) in self.driver.all(_MISSING)]
        return StoreHealth("postgres", max((number for number, _, _ in applied), default=0), problems)

    def backup(self, path: str) -> None:
        """Not offered: the server has a better way."""
        command = f"pg_dump --format=custom --schema={self.driver.schema} --file={path} URL"
        raise UsageError(f"an archive in PostgreSQL is backed up by its own tools; run: {command}")

    def sizes(self) -> dict[str, int]:
        """Bytes by part."""
        by_table = {name: int(size) for name, size in self.driver.all(_SIZES, [self.driver.schema])}
        raw, index, total = by_table["blob"] + by_table["chunk"], by_table["search_row"], sum(by_table.values())
        return {"raw": raw, "index": index, "rest": total - raw - index, "total": total}

    def scrub(self) -> None:
        """Write every table anew, without what was deleted, and take the planner's samples again."""
        for (name,) in self.driver.all(_TABLES, [self.driver.schema]):
            self.driver.run(f'VACUUM (FULL, ANALYZE) "{name}"')


_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname=? ORDER BY tablename"
_SIZES = """
    SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid=c.relnamespace
    WHERE n.nspname=? AND c.relkind='r'
"""
_INVALID = """
    SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid=i.indexrelid JOIN pg_namespace n ON n.oid=c.relnamespace
    WHERE n.nspname=? AND NOT i.indisvalid ORDER BY c.relname
"""
_MISSING = """
    SELECT DISTINCT "digest" FROM "chunk" c WHERE NOT EXISTS (SELECT 1 FROM "blob" b WHERE b."digest"=c."digest") LIMIT 100
"""


def parse_address(url: str) -> PostgresAddress:
    """Split off what is ours (`schema=`), hide what is secret."""
    base, _, query = url.partition("?")
    pairs = [pair for pair in query.split("&") if pair]
    named = [unquote(pair.partition("=")[2]) for pair in pairs if pair.startswith("schema=")]
    rest = [pair for pair in pairs if not pair.startswith("schema=")]
    shown = [pair for pair in pairs if not pair.startswith(("password=", "sslpassword="))]
    schema = named[-1] if named else SCHEMA
    if not _NAME.fullmatch(schema):
        raise UsageError(
            f"{schema!r} cannot be the schema of an archive; use letters, digits and _, at most 63 of them"
        )
    return PostgresAddress(_join_parameters(base, rest), _join_parameters(_without_password(base), shown), schema)


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


def _join_parameters(base: str, pairs: list[str]) -> str:
    return f"{base}?{'&'.join(pairs)}" if pairs else base


def _without_password(base: str) -> str:
    start, slashes, rest = base.partition("//")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    return f"{start}{slashes}{user.partition(':')[0]}{at}{host}{slash}{path}"


# the schema -------------------------------------------------------------------------------------------------------


def _check_server(driver: PostgresDriver) -> None:
    if driver.server_number < OLDEST * 10_000:
        raise EverturnError(f"{driver.url} is PostgreSQL {driver.server}; everturn needs version {OLDEST} or newer")
    encoding = driver.all("SHOW server_encoding")[0][0]
    if encoding != "UTF8":
        raise EverturnError(
            f"{driver.url} stores text as {encoding}; make a database with ENCODING 'UTF8' for everturn"
        )


def _bring_up_to_date(driver: PostgresDriver, create: bool, clock: Clock, upgrade: bool) -> None:
    """Apply what is missing in one transaction: others see the archive of before or the whole new one."""
    if not _undone(driver, _applied_so_far(driver), create, upgrade):
        return
    with driver.write():
        for step in _undone(
            driver, _applied_migrations(driver), create, upgrade
        ):  # another process may have been faster
            driver.run(f'CREATE SCHEMA IF NOT EXISTS "{driver.schema}"')
            driver.run(_NOTES)
            driver.script(step.sql)
            driver.run(sql_store.NOTE, [step.number, step.name, step.checksum, clock()])


def _undone(
    driver: PostgresDriver, applied: sql_store.Applied, create: bool, upgrade: bool
) -> list[sql_store.Migration]:
    """The steps to apply. Raises when the caller does not want them applied."""
    undone = sql_store.pending_migrations(driver.url, sql_store.known_migrations("postgres"), applied)
    if not applied and not create:
        raise NoArchive(f"{driver.url} (schema {driver.schema})")
    if applied and undone and not upgrade:
        raise OlderArchive(driver.url)
    return undone


def _applied_so_far(driver: PostgresDriver) -> sql_store.Applied:
    """What `_applied_migrations` says, read without the lock of the writers unless another process creates the archive right now.

    A commit makes rows visible first and tells other connections to drop their caches a moment later. In between
    `pg_tables` lists a new table, but a connection that has looked for its schema before still takes it as missing. The
    lock is released after both.
    """
    try:
        return _applied_migrations(driver)
    except NotAnArchive:
        with driver.write():
            return _applied_migrations(driver)


def _applied_migrations(driver: PostgresDriver) -> sql_store.Applied:
    sql = "SELECT 1 FROM pg_tables WHERE schemaname=? AND tablename='schema_migrations'"
    if driver.one(sql, [driver.schema]) is None:
        return []
    return [(int(number), str(name), str(checksum)) for number, name, checksum in driver.all(sql_store.NOTED)]


_NOTES = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        number bigint PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL
    )
"""
