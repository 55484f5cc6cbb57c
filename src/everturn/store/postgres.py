"""The archive in PostgreSQL, version 15 or newer: for teams, and for many machines into one archive.

    postgresql://user@host/database?schema=everturn

All tables are in one schema, `everturn` by default, so that archives can share a database. Raw bytes are `bytea`. In text
of the derived tables, U+FFFD replaces what PostgreSQL cannot store (NUL, lone surrogates); the raw layer has it unchanged.

Writers of one archive take turns: a write transaction holds an advisory lock named after the schema until it ends. So
what the shared code has read inside `write()` is still true at the commit. Readers never wait.

An archive of one person is migrated by the everturn that opens it. A shared one (setting `shared`) is migrated by
`everturn admin migrate` only: otherwise the newest laptop of a team would lock out all the others.

Backups are up to the server: `pg_dump --schema=everturn`. After `forget`, `scrub` rewrites the tables. Deleted data may
remain in the server's write-ahead log until that is recycled, and in earlier backups and replicas.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from everturn.clock import Clock, now
from everturn.errors import EverturnError, MigrationNeeded, NoArchive, NotAnArchive, OlderArchive, UsageError
from everturn.store import sql_store
from everturn.store.contract import StoreHealth
from everturn.store.sql_store import SqlStore

if TYPE_CHECKING:
    from everturn.store.postgres_driver import PostgresDriver

OLDEST = 15
SCHEMA = "everturn"


class PostgresAddress(NamedTuple):
    """The parts of a URL."""

    conninfo: str  # what libpq understands
    shown: str  # without a password
    schema: str


def open_postgres(
    url: str,
    create: bool = True,
    clock: Clock = now,
    upgrade: bool = True,
    durable: bool = False,
    upgrade_shared: bool = False,
) -> PostgresStore:
    """Open an archive on a server, create it if `create` is set, and migrate it; a shared one with `upgrade_shared` only.

    With `durable`, the server syncs its log at every commit, whatever its default.
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
        _Migrator(driver, create, upgrade, upgrade_shared).migrate(clock)
        driver.durable = durable
    except BaseException:
        driver.close()
        raise
    return PostgresStore(driver.url, driver, PostgresIndex(driver))


class PostgresStore(SqlStore):
    driver: PostgresDriver

    def check(self, quick: bool = False) -> StoreHealth:
        """Check that every table, index and chunk is present and valid."""
        applied = _applied_migrations(self.driver)
        undone = sql_store.pending_migrations(self.url, sql_store.known_migrations("postgres"), applied)
        problems = [f"schema step {step.number} ({step.name}) is missing" for step in undone]
        problems += [f"index {name} is not valid" for (name,) in self.driver.all(_INVALID, [self.driver.schema])]
        if not quick:
            problems += [f"chunk {digest.hex()[:16]} is missing" for (digest,) in self.driver.all(_MISSING)]
        return StoreHealth("postgres", max((number for number, _, _ in applied), default=0), problems)

    def backup(self, path: str) -> None:
        """Raise UsageError that names the server's own tool."""
        command = f"pg_dump --format=custom --schema={self.driver.schema} --file={path} URL"
        raise UsageError(f"an archive in PostgreSQL is backed up by its own tools; run: {command}")

    def sizes(self) -> dict[str, int]:
        by_table = {name: int(size) for name, size in self.driver.all(_SIZES, [self.driver.schema])}
        raw, total = by_table["blob"] + by_table["chunk"], sum(by_table.values())
        index = sum(by_table[name] for name in _INDEX_TABLES)
        return {"raw": raw, "index": index, "rest": total - raw - index, "total": total}

    def server_time(self) -> int | None:
        row = self.driver.one("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)")
        return int(row[0]) if row else None

    def scrub(self) -> None:
        """Rewrite every table without deleted rows, and refresh the planner's statistics."""
        for (name,) in self.driver.all(_TABLES, [self.driver.schema]):
            self.driver.script(f'VACUUM (FULL, ANALYZE) "{self.driver.schema}"."{name}"')


_INDEX_TABLES = ("entry_text", "word_segment", "word_list", "word_list_rest", "unlisted_entry")
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
    """Split off `schema=`, which is ours, and hide the password."""
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


# --- the schema ---
def _check_server(driver: PostgresDriver) -> None:
    if driver.server_number < OLDEST * 10_000:
        raise EverturnError(f"{driver.url} is PostgreSQL {driver.server}; everturn needs version {OLDEST} or newer")
    encoding = driver.all("SHOW server_encoding")[0][0]
    if encoding != "UTF8":
        raise EverturnError(
            f"{driver.url} stores text as {encoding}; make a database with ENCODING 'UTF8' for everturn"
        )


class _Migrator(NamedTuple):
    """What the caller allows to be done to the schema."""

    driver: PostgresDriver
    create: bool
    upgrade: bool
    upgrade_shared: bool

    def migrate(self, clock: Clock) -> None:
        """Apply the missing steps in one transaction: others see the old archive or the new one."""
        from everturn.store.postgres_index import PostgresIndex

        driver = self.driver
        if not self._missing_steps(_applied_so_far(driver)):
            return
        with driver.write():
            # Asked again under the lock: another process may have been faster.
            for step in self._missing_steps(_applied_migrations(driver)):
                driver.run(f'CREATE SCHEMA IF NOT EXISTS "{driver.schema}"')
                driver.run(_NOTES)
                driver.script(step.sql)
                driver.run(sql_store.NOTE, [step.number, step.name, step.checksum, clock()])
                if step.number == _LISTED_SINCE:
                    PostgresIndex(driver).lists.list_all()

    def _missing_steps(self, applied: sql_store.Applied) -> list[sql_store.Migration]:
        """Return the steps to apply. Raises NoArchive, OlderArchive or MigrationNeeded if that is not allowed."""
        driver, known = self.driver, sql_store.known_migrations("postgres")
        undone = sql_store.pending_migrations(driver.url, known, applied)
        if not applied and not self.create:
            raise NoArchive(f"{driver.url} (schema {driver.schema})")
        if applied and undone and not self.upgrade_shared:
            if driver.one(_SHARED) is not None:
                raise MigrationNeeded(driver.url, applied[-1][0], known[-1].number)
            if not self.upgrade:
                raise OlderArchive(driver.url)
        return undone


def _applied_so_far(driver: PostgresDriver) -> sql_store.Applied:
    """Return the applied steps, read without the writers' lock unless another process is creating the archive.

    A commit makes rows visible first and invalidates the caches of other connections a moment later. In between,
    `pg_tables` lists a new table, but a connection that has looked for its schema before still considers it missing.
    The lock is released after both.
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


_LISTED_SINCE = 20  # the step that leaves what is there already to be listed
_SHARED = """SELECT 1 FROM "setting" WHERE "key"='shared' AND "value"<>''"""
_NOTES = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        number bigint PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL
    )
"""
