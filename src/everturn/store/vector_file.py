"""Vectors in a small database beside the archive: can be thrown away at any time and made again.

Those of a session belong to one generation (see `recall.vectors`); asked for by another they are not there, and the first
ones of a new generation take the place of all old ones. What is erased is overwritten in the file. Beside `archive.db` the
file is `archive.vectors.db`; an archive on a server has one in the data folder of every machine that makes vectors.
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
_BUSY_MS = 10_000


def vectors_place(url: str, data: Path, archive: str) -> Path | None:
    """Where the vectors of an archive are kept. `archive` is the id of one that is no file; without it, or in memory: None."""
    scheme = url.partition(":")[0]
    if scheme == "memory":
        return None
    if scheme in ("postgresql", "postgres"):
        return data / f"{archive}{ENDING}" if archive else None
    path = Path(url.removeprefix("sqlite:"))
    return path.with_name(f"{path.stem if path.suffix == '.db' else path.name}{ENDING}")


class VectorFile:
    """The vectors of one archive. The methods are those of `recall.vectors.Vectors`. Not shared between threads."""

    def __init__(self, path: Path, create: bool = True) -> None:
        """Open the file; with `create` it is made for its owner alone. Raises BadVectors, Busy, NoSpace."""
        if create:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self.path = path
        try:
            self._driver = _open_driver(path, create)
        except NotAnArchive as error:
            raise BadVectors(str(path)) from error

    def close(self) -> None:
        """Let go of the file."""
        self._driver.close()

    def get(self, session: int, generation: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """The vectors of some messages, by seq."""
        if not seqs or self._known(session)[0] != generation:
            return {}
        sql = "SELECT seq, data FROM vector WHERE session=? AND seq IN ({})"
        return dict(query_in_lists(self._driver.all, sql, list(seqs), [session]))

    def upto(self, session: int, generation: str) -> int:
        """How many messages of the session were looked at."""
        known, upto, _ = self._known(session)
        return upto if known == generation else 0

    def put(self, session: int, generation: str, rows: Iterable[tuple[int, bytes]], upto: int) -> None:
        """Add vectors by seq; those of another generation go."""
        new = {seq: (session, seq, data) for seq, data in rows}
        with self._driver.write():
            known, before, made = self._known(session)
            if known != generation:
                self._driver.run("DELETE FROM vector WHERE session=?", (session,))
                before = made = 0
            made += len(new) - len(self._seqs(session, list(new)))
            self._driver.many("INSERT OR REPLACE INTO vector (session, seq, data) VALUES (?,?,?)", new.values())
            # Of two that make the same vectors at the same time, the slower one must not lead back.
            self._driver.run(
                "INSERT OR REPLACE INTO embedded (session, generation, upto, made) VALUES (?,?,?,?)",
                (session, generation, max(upto, before), made),
            )

    def held(self) -> dict[int, tuple[str, int, int]]:
        """Of each session its generation, how many messages were looked at, and how many vectors there are."""
        rows = self._driver.all("SELECT session, generation, upto, made FROM embedded")
        return {int(session): (str(generation), int(upto), int(made)) for session, generation, upto, made in rows}

    def forget(self, session: int) -> None:
        """Erase all of a session."""
        with self._driver.write():
            self._driver.run("DELETE FROM vector WHERE session=?", (session,))
            self._driver.run("DELETE FROM embedded WHERE session=?", (session,))

    def _seqs(self, session: int, seqs: Sequence[int]) -> list[int]:
        """Those that have a vector."""
        sql = "SELECT seq FROM vector WHERE session=? AND seq IN ({})"
        return [seq for (seq,) in query_in_lists(self._driver.all, sql, seqs, [session])]

    def _known(self, session: int) -> tuple[str, int, int]:
        row = self._driver.one("SELECT generation, upto, made FROM embedded WHERE session=?", (session,))
        return (str(row[0]), int(row[1]), int(row[2])) if row else ("", 0, 0)


def _open_driver(path: Path, create: bool) -> SqliteDriver:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    driver = SqliteDriver(connection, str(path))
    try:
        with driver.sentences:
            connection.set_busy_timeout(_BUSY_MS)
            # Overwritten, not only marked as free; a log that is cut to nothing after each write holds no copies either.
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
