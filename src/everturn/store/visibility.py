"""Whose eyes an archive is read with: the one place that limits a connection to what a person may see.

`restrict(store, name)` limits all reads of a connection to the source files of a person and those shared with the person's
projects, and everything derived from them. Nothing above the store filters, so nothing above it can forget to. Writing is
refused.

In PostgreSQL every transaction of the connection runs as a role that has no right to write and that row-level security
limits (`migrations/postgres/0011_team.sql`). In SQLite temporary views hide the tables; what cannot be limited (the counts of
words, analytics) is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from everturn.errors import EverturnError
from everturn.store.contract import Store

if TYPE_CHECKING:
    from everturn.store.postgres_driver import PostgresDriver
    from everturn.store.sql import Driver
    from everturn.store.sql_store import SqlStore

_FILES = """
    SELECT f."id" FROM main."source_file" f JOIN main."person" p ON p."name"=f."owner"
    WHERE p."ended_at"=0 AND p."name"=(SELECT "name" FROM temp."reader")
    UNION SELECT s."source" FROM main."file_share" s JOIN main."project_member" m ON m."project"=s."project"
    JOIN main."person" p ON p."id"=m."person" WHERE p."ended_at"=0 AND p."name"=(SELECT "name" FROM temp."reader")
"""
_VERSIONS = f'SELECT "id" FROM main."version" WHERE "source" IN ({_FILES})'
_SESSIONS = f'SELECT "id" FROM main."session" WHERE "version" IN ({_VERSIONS})'
#: Tables of which a person sees the rows of visible sessions.
OF_SESSION = (
    *("session_text", "turn", "step", "call", "message", "artifact", "edit", "link", "message_text", "reported"),
    *("entry_text", "unlisted_entry"),
)
#: Tables that a reading connection may name, and of which it sees nothing.
EMPTY = ("kept", "hooked", "tombstone")
_READABLE = (
    *(
        "source_file",
        "version",
        "session",
        "chunk",
        "blob",
        "problem",
        "census",
        "setting",
        "file_project",
        "file_share",
    ),
    *OF_SESSION,
    *EMPTY,
)


def restrict(store: Store, person: str) -> None:
    """Limit a connection to what a person may see, until `release`. Raises EverturnError if the server has no role for it."""
    made = cast("SqlStore", store)
    if made.driver.name == "postgres":
        cast("PostgresDriver", made.driver).read_as(person, reader_role(made.driver))
    else:
        _hide_tables(made.driver, person)
    made.is_restricted = True


def release(store: Store) -> bool:
    """Lift the limits of a connection that is about to serve somebody else; return whether that is possible."""
    made = cast("SqlStore", store)
    if made.driver.name != "postgres":
        return not made.is_restricted  # views cannot be taken back while statements use them
    cast("PostgresDriver", made.driver).read_as("", "")
    made.is_restricted = False
    return True


def prepare_readers(store: Store) -> None:
    """Make the role that reads for people, and give it its rights. Raises EverturnError if that is not allowed."""
    driver = cast("SqlStore", store).driver
    if driver.name != "postgres":
        return
    role, schema = reader_role(driver), cast("PostgresDriver", driver).schema
    exists = driver.one("SELECT 1 FROM pg_roles WHERE rolname=?", [role]) is not None
    tables = ", ".join(f'"{schema}"."{name}"' for name in _READABLE)
    statements = [
        f'GRANT "{role}" TO CURRENT_USER',
        f'GRANT USAGE ON SCHEMA "{schema}" TO "{role}"',
        f'GRANT SELECT ON {tables} TO "{role}"',
        f'GRANT EXECUTE ON FUNCTION "{schema}"."read_visible_lists"(text[], text[], bigint, bigint) TO "{role}"',
        f'GRANT EXECUTE ON FUNCTION "{schema}"."read_visible_stems"(bigint[]) TO "{role}"',
    ]
    statements = [*([] if exists else [f'CREATE ROLE "{role}" NOLOGIN']), *statements]
    try:
        for statement in statements:
            driver.run(statement)
    except EverturnError as refused:
        commands = "; ".join(statements)
        raise EverturnError(f"{refused}; or let a superuser of the server run: {commands}") from refused


def reader_role(driver: Driver) -> str:
    """Return the name of the role that reads for people."""
    return f"{cast('PostgresDriver', driver).schema}_reader"[:63]


def _hide_tables(driver: Driver, person: str) -> None:
    driver.run('CREATE TEMP TABLE "reader" ("name" TEXT)')
    driver.run('INSERT INTO temp."reader" VALUES (?)', [person])
    wanted = {
        "source_file": f'"id" IN ({_FILES})',
        **dict.fromkeys(("version", "file_project"), f'"source" IN ({_FILES})'),
        "session": f'"version" IN ({_VERSIONS})',
        **dict.fromkeys(("chunk", "problem", "census"), f'"version" IN ({_VERSIONS})'),
        "blob": f'"digest" IN (SELECT "digest" FROM main."chunk" WHERE "version" IN ({_VERSIONS}))',
        "setting": "\"key\" IN ('redaction_key','edit key','raw place')",
        **dict.fromkeys(OF_SESSION, f'"session" IN ({_SESSIONS})'),
    }
    names = driver.all("SELECT name FROM main.sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite_%'")
    for (name,) in names:
        if name not in ("schema_migrations",) and not name.startswith("fts"):
            driver.run(f'CREATE TEMP VIEW "{name}" AS SELECT * FROM main."{name}" WHERE {wanted.get(name, "0")}')
    driver.run("PRAGMA query_only=1")
