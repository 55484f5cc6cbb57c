"""Archives that are copied, not made: the steps that make one take longer than most tests.

A copy has the rows and pages that the steps of `store/migrations` give, and the time of whoever asked for it. The tests
of the store itself, and of what goes wrong on the way, make theirs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from threading import Lock

import apsw
import psycopg
import pytest

from everturn.clock import Clock
from everturn.store import sql_store, sqlite
from everturn.store.contract import open_store

_make = sqlite._migrate
_one_at_a_time = Lock()


def copy_new_archives(patch: pytest.MonkeyPatch) -> None:
    """From now on, a new archive of SQLite is a copy."""
    patch.setattr(sqlite, "_migrate", _copy)


@cache
def _made() -> tuple[sqlite.SqliteDriver, list[sql_store.Migration]]:
    steps = list(sql_store.known_migrations("sqlite"))
    driver = sqlite.SqliteDriver(apsw.Connection(":memory:"), "memory:")
    driver.run(f"PRAGMA application_id={sqlite.APPLICATION_ID}")
    _make(driver, lambda: 0, None)
    return driver, steps


def _copy(driver: sqlite.SqliteDriver, clock: Clock, path: Path | None) -> None:
    with _one_at_a_time:
        made, steps = _made()
        if (
            list(sql_store.known_migrations("sqlite")) == steps
            and driver.key is None
            and not sqlite._applied_migrations(driver)
        ):
            with driver.connection.backup("main", made.connection, "main") as copying:
                copying.step()
            driver.run("UPDATE schema_migrations SET applied_at=?", [clock()])
    _make(driver, clock, path)


# PostgreSQL -----------------------------------------------------------------------------------------------------------
class ServerArchives:
    """Archives on one server: each is emptied after a test and given to the next."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._free: list[str] = []
        self._numbers = count(1)
        self._connection: psycopg.Connection | None = None  # one for all: a new one learns every table anew

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @contextmanager
    def one(self) -> Iterator[str]:
        """The URL of an empty archive."""
        known = self._free.pop() if self._free else None
        schema = known or f"ready_{os.getpid()}_{next(self._numbers)}"
        url = f"{self._server}{'&' if '?' in self._server else '?'}schema={schema}"
        if known is None:
            open_store(url).close()
        if self._connection is None or self._connection.broken or self._connection.closed:
            self._connection = psycopg.connect(self._server, autocommit=True)
        connection = self._connection
        began = connection.execute(_SHAPE, {"schema": schema}).fetchall()
        yield url
        if connection.broken:  # the test ended the server's processes
            connection = self._connection = psycopg.connect(self._server, autocommit=True)
        if connection.execute(_SHAPE, {"schema": schema}).fetchall() == began:
            connection.execute(_EMPTY.replace("SCHEMA", schema).encode())
            self._free.append(schema)
        else:  # the test changed more than rows
            connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE'.encode())


_SHAPE = """
    SELECT relname, relkind, relhastriggers, relnatts FROM pg_class WHERE relnamespace = to_regnamespace(%(schema)s)
    ORDER BY 1
"""
_EMPTY = """
    DO $$ DECLARE name text; filled boolean; BEGIN
        SET LOCAL session_replication_role = replica; -- in any order
        FOR name IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
            WHERE schemaname = 'SCHEMA' AND tablename <> 'schema_migrations'
        LOOP
            EXECUTE 'SELECT EXISTS (SELECT 1 FROM ' || name || ')' INTO filled;
            IF filled THEN EXECUTE 'DELETE FROM ' || name; END IF;
        END LOOP;
        FOR name IN SELECT format('%I.%I', schemaname, sequencename) FROM pg_sequences
            WHERE schemaname = 'SCHEMA' AND last_value IS NOT NULL
        LOOP
            EXECUTE 'ALTER SEQUENCE ' || name || ' RESTART';
        END LOOP;
    END $$
"""
