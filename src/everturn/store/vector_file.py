"""Vectors in a small database beside the archive, which can be deleted at any time and computed again.

The vectors of a session belong to one generation (see `retrieval.meaning`). Reading with another generation returns
none, and the first vectors of a new generation replace all old ones. Deleted vectors are overwritten in the file. Beside
`archive.db` the file is `archive.vectors.db`; an archive on a server has one in the data folder of every machine that
computes vectors.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import apsw

from everturn.errors import BadVectors, NotAnArchive
from everturn.store.sql import query_in_lists
from everturn.store.sqlite import SqliteDriver

ENDING = ".vectors.db"

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS embedded (
        session INTEGER PRIMARY KEY, generation TEXT NOT NULL, upto INTEGER NOT NULL, made INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS vector (
        session INTEGER NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (session, seq)
    ) STRICT, WITHOUT ROWID;
"""
_LOOK = "SELECT generation, upto, made FROM embedded LIMIT 0"
_THERE = "SELECT seq FROM vector WHERE session=? AND seq IN ({})"
_BUSY_MS = 10_000


def vectors_place(url: str, data: Path, archive: str) -> Path | None:
    """Return the path of an archive's vectors, or None in memory. `archive` is the id of an archive on a server."""
    scheme = url.partition(":")[0]
    if scheme == "memory":
        return None
    if scheme in ("postgresql", "postgres"):
        return data / f"{archive}{ENDING}" if archive else None
    path = Path(url.removeprefix("sqlite:"))
    return path.with_name(f"{path.stem if path.suffix == '.db' else path.name}{ENDING}")


class VectorFile:
    """The vectors of one archive. Not shared between threads."""

    def __init__(self, path: Path, create: bool = True) -> None:
        """Open the file, with `create` readable by its owner alone. Raises BadVectors, Busy, NoSpace."""
        if create:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self.path = path
        try:
            self._driver = _open_driver(path, create)
        except NotAnArchive as error:
            raise BadVectors(str(path)) from error

    def close(self) -> None:
        self._driver.close()

    def get(self, session: int, generation: str, seqs: Sequence[int]) -> dict[int, bytes]:
        if not seqs or self._progress(session)[0] != generation:
            return {}
        sql = "SELECT seq, data FROM vector WHERE session=? AND seq IN ({})"
        return dict(query_in_lists(self._driver.all, sql, list(seqs), [session]))

    def upto(self, session: int, generation: str) -> int:
        """Return how many messages of the session were processed."""
        current, upto, _ = self._progress(session)
        return upto if current == generation else 0

    def put(self, session: int, generation: str, rows: Iterable[tuple[int, bytes]], upto: int) -> None:
        """Add vectors by seq; delete those of another generation."""
        new = {seq: (session, seq, data) for seq, data in rows}
        with self._driver.write():
            current, before, made = self._progress(session)
            if current != generation:
                self._driver.run("DELETE FROM vector WHERE session=?", (session,))
                before = made = 0
            there = query_in_lists(self._driver.all, _THERE, list(new), [session])
            made += len(new) - sum(1 for _ in there)
            self._driver.many("INSERT OR REPLACE INTO vector (session, seq, data) VALUES (?,?,?)", new.values())
            # Of two processes that compute the same vectors, the slower one must not set `upto` back.
            self._driver.run(
                "INSERT OR REPLACE INTO embedded (session, generation, upto, made) VALUES (?,?,?,?)",
                (session, generation, max(upto, before), made),
            )

    def held(self) -> dict[int, tuple[str, int, int]]:
        """Return session → (generation, messages processed, number of vectors)."""
        rows = self._driver.all("SELECT session, generation, upto, made FROM embedded")
        return {int(session): (str(generation), int(upto), int(made)) for session, generation, upto, made in rows}

    def forget(self, session: int) -> None:
        with self._driver.write():
            self._driver.run("DELETE FROM vector WHERE session=?", (session,))
            self._driver.run("DELETE FROM embedded WHERE session=?", (session,))

    def _progress(self, session: int) -> tuple[str, int, int]:
        row = self._driver.one("SELECT generation, upto, made FROM embedded WHERE session=?", (session,))
        return (str(row[0]), int(row[1]), int(row[2])) if row else ("", 0, 0)


def _open_driver(path: Path, create: bool) -> SqliteDriver:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    driver = SqliteDriver(connection, str(path))
    try:
        with driver.error_translation:
            connection.set_busy_timeout(_BUSY_MS)
            # Overwrite deleted bytes, not only mark them as free. A truncated journal holds no copies either.
            connection.execute("PRAGMA secure_delete=ON; PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=NORMAL")
            if create:
                connection.execute(_SCHEMA)
            _check_tables(connection, path)
    except BaseException:
        connection.close(True)
        raise
    return driver


def _check_tables(connection: apsw.Connection, path: Path) -> None:
    try:
        connection.execute(_LOOK)
    except apsw.SQLError as error:  # tables of something else
        raise NotAnArchive(str(path), "it holds something else") from error
