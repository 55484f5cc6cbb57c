"""Vectors in a small database beside the archive, which can be deleted at any time and computed again.

The vectors of a session belong to one generation (see `retrieval.meaning`). Reading with another generation returns
none, and the first vectors of a new generation replace all old ones. Deleted vectors are overwritten in the file. Beside
`archive.db` the file is `archive.vectors.db`; an archive on a server has one in the data folder of every machine that
computes vectors.

Vectors are stored in blocks of one session: new ones are added to its last block until it is full.
For each model the file keeps the sum of its vectors, from which searches take their centre. Writing or deleting a block
changes the sum in the same transaction.

A packed vector is its scale, its trust and its numbers, one signed byte each. Scale times numbers has the length 1. The
trust, one byte, is the share of its cosine that counts, as the vector of a short text is rather accidental. A block is a row
of records of equal length: the seq of the message (4 bytes), then its packed vector. `numpy` does the work where it is
installed. Without it the same is computed more slowly.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from math import sqrt
from operator import add, mul, sub
from pathlib import Path
from typing import Any

import apsw

from everturn.errors import BadVectors, EncryptedArchive, NotAnArchive, WrongKey
from everturn.store.cipher import keys_for
from everturn.store.sqlite import SqliteDriver, connect

ENDING = ".vectors.db"

#: Vectors of a block.
FULL = 256
#: The most sessions whose blocks are queried one by one; for more of them all blocks are read.
_ONE_BY_ONE = 200

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS embedded (
        session INTEGER PRIMARY KEY, generation TEXT NOT NULL, upto INTEGER NOT NULL, made INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS block (
        session INTEGER NOT NULL, number INTEGER NOT NULL, n INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (session, number)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS centre (
        model TEXT PRIMARY KEY, n INTEGER NOT NULL, total BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
"""
#: Removes the vectors of an older layout. They are computed again.
_OUTDATED = "DROP TABLE vector; DELETE FROM embedded"
_IS_OUTDATED = "SELECT 1 FROM sqlite_schema WHERE type='table' AND name='vector'"
_LOOK = "SELECT generation, upto, made FROM embedded LIMIT 0"


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
        except (NotAnArchive, EncryptedArchive, WrongKey) as error:
            raise BadVectors(str(path)) from error

    def close(self) -> None:
        self._driver.close()

    def get(self, session: int, generation: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return the packed vectors of some messages, by seq."""
        if not seqs or self._progress(session)[0] != generation:
            return {}
        wanted = set(seqs)
        return {seq: packed for block in self._blocks(session) for seq, packed in block if seq in wanted}

    def upto(self, session: int, generation: str) -> int:
        """Return how many messages of the session were processed."""
        current, upto, _ = self._progress(session)
        return upto if current == generation else 0

    def put(self, session: int, generation: str, rows: Iterable[tuple[int, bytes]], upto: int) -> None:
        """Add packed vectors by seq, in order; delete those of another generation."""
        with self._driver.write():
            current, before, made = self._progress(session)
            if current != generation:
                self._delete_blocks(session, current)
                before = made = 0
            # Of two processes that compute the same vectors, the slower one adds nothing and does not set `upto` back.
            new = [(seq, packed) for seq, packed in rows if seq >= before]
            self._add_blocks(session, generation, new)
            self._driver.run(
                "INSERT OR REPLACE INTO embedded (session, generation, upto, made) VALUES (?,?,?,?)",
                (session, generation, max(upto, before), made + len(new)),
            )

    def blocks(self, sessions: Collection[int]) -> Iterator[tuple[int, bytes]]:
        """Yield the blocks of sessions, the newest first."""
        if len(sessions) > _ONE_BY_ONE:
            wanted = frozenset(sessions)
            rows = self._driver.each("SELECT session, data FROM block ORDER BY session DESC, number DESC")
            yield from ((session, data) for session, data in rows if session in wanted)
            return
        for session in sorted(sessions, reverse=True):
            sql = "SELECT session, data FROM block WHERE session=? ORDER BY number DESC"
            yield from self._driver.all(sql, (session,))

    def centre(self, model: str) -> tuple[int, list[float]]:
        """Return the number of vectors of a model (the generation without its last part), and their sum."""
        row = self._driver.one("SELECT n, total FROM centre WHERE model=?", (model,))
        return (int(row[0]), array("d", row[1]).tolist()) if row else (0, [])

    def held(self) -> dict[int, tuple[str, int, int]]:
        """Return session → (generation, messages processed, number of vectors)."""
        rows = self._driver.all("SELECT session, generation, upto, made FROM embedded")
        return {int(session): (str(generation), int(upto), int(made)) for session, generation, upto, made in rows}

    def forget(self, session: int) -> None:
        with self._driver.write():
            self._delete_blocks(session, self._progress(session)[0])
            self._driver.run("DELETE FROM embedded WHERE session=?", (session,))

    def _progress(self, session: int) -> tuple[str, int, int]:
        row = self._driver.one("SELECT generation, upto, made FROM embedded WHERE session=?", (session,))
        return (str(row[0]), int(row[1]), int(row[2])) if row else ("", 0, 0)

    def _blocks(self, session: int) -> Iterator[Iterator[tuple[int, bytes]]]:
        for n, data in self._driver.all("SELECT n, data FROM block WHERE session=? ORDER BY number", (session,)):
            yield read_block(data, len(data) // n - HEAD)

    def _add_blocks(self, session: int, generation: str, rows: list[tuple[int, bytes]]) -> None:
        """Fill the last block of the session, then add new ones."""
        sql = "SELECT number, n, data FROM block WHERE session=? ORDER BY number DESC LIMIT 1"
        number, n, data = self._driver.one(sql, (session,)) or (0, 0, b"")
        while rows:
            room = max(FULL - n, 0)
            portion, rows = rows[:room], rows[room:]
            if portion:
                new = make_block(portion)
                self._driver.run(
                    "INSERT OR REPLACE INTO block (session, number, n, data) VALUES (?,?,?,?)",
                    (session, number, n + len(portion), data + new),
                )
                self._move_centre(generation, new, len(portion[0][1]) - FRONT.size)
            number, n, data = number + 1, 0, b""

    def _delete_blocks(self, session: int, generation: str) -> None:
        for n, data in self._driver.all("SELECT n, data FROM block WHERE session=?", (session,)):
            self._move_centre(generation, data, len(data) // n - HEAD, is_gone=True)
        self._driver.run("DELETE FROM block WHERE session=?", (session,))

    def _move_centre(self, generation: str, block: bytes, dimensions: int, is_gone: bool = False) -> None:
        """Add the vectors of a block to the sum of their model, or take them out."""
        model = generation.rpartition("/")[0]
        before, total = self.centre(model)
        n, more = sum_of_block(block, dimensions)
        after = max(before - n, 0) if is_gone else before + n
        if not after:
            self._driver.run("DELETE FROM centre WHERE model=?", (model,))
            return
        moved = map(sub if is_gone else add, total or [0.0] * dimensions, more)
        sql = "INSERT OR REPLACE INTO centre (model, n, total) VALUES (?,?,?)"
        self._driver.run(sql, (model, after, array("d", moved).tobytes()))


def _open_driver(path: Path, create: bool) -> SqliteDriver:
    driver = connect(str(path), str(path), apsw.SQLITE_OPEN_READWRITE, keys_for(path))
    connection = driver.connection
    try:
        with driver.error_translation:
            # Overwrite deleted bytes, not only mark them as free. A truncated journal holds no copies either.
            connection.execute("PRAGMA secure_delete=ON; PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=NORMAL")
            if create:
                connection.execute(_SCHEMA)
            _check_tables(connection, path)
            if connection.execute(_IS_OUTDATED).fetchone():
                connection.execute(f"BEGIN IMMEDIATE; {_OUTDATED}; {_SCHEMA}; COMMIT")
    except BaseException:
        connection.close(True)
        raise
    return driver


def _check_tables(connection: apsw.Connection, path: Path) -> None:
    try:
        connection.execute(_LOOK)
    except apsw.SQLError as error:  # tables of something else
        raise NotAnArchive(str(path), "it holds something else") from error


# --- packed vectors ---

SEQ = struct.Struct("<I")
FRONT = struct.Struct("<fB")  # scale and trust
HEAD = SEQ.size + FRONT.size
FULL_TRUST = 255


@cache
def numpy_or_none() -> Any:
    """Return the module numpy, or None where it is not installed."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def pack_vectors(vectors: Sequence[Sequence[float]], shares: Sequence[float] = ()) -> list[bytes]:
    """Pack vectors; their lengths are lost. `shares` of their cosines count: from 0 to 1, without any 1."""
    numpy = numpy_or_none()
    trusts = [round(share * FULL_TRUST) for share in shares] or [FULL_TRUST] * len(vectors)
    if numpy is None or not vectors:
        return [_pack_vector(vector, trust) for vector, trust in zip(vectors, trusts, strict=True)]
    given = numpy.asarray(vectors, numpy.float64)
    most = numpy.abs(given).max(axis=1, keepdims=True)
    numbers = numpy.rint(given / numpy.where(most > 0, most, 1) * 127).astype(numpy.int8)
    lengths = numpy.sqrt((numbers.astype(numpy.float64) ** 2).sum(1))
    scales = numpy.divide(1, lengths, out=numpy.zeros_like(lengths), where=lengths > 0)
    rows = zip(scales.tolist(), trusts, numbers, strict=True)
    return [FRONT.pack(scale, trust) + row.tobytes() for scale, trust, row in rows]


def _pack_vector(vector: Sequence[float], trust: int) -> bytes:
    most = max(map(abs, vector), default=0.0)
    if not most:
        return FRONT.pack(0.0, trust) + bytes(len(vector))
    numbers = array("b", (round(number / most * 127) for number in vector))
    return FRONT.pack(1 / sqrt(sum(map(mul, numbers, numbers))), trust) + numbers.tobytes()


def unpack_vector(packed: bytes) -> list[float]:
    """Return a packed vector, with length 1 (or 0)."""
    scale, _ = FRONT.unpack_from(packed)
    return [scale * number for number in memoryview(packed)[FRONT.size :].cast("b")]


def trust_of(packed: bytes) -> float:
    """Return the share of the cosine of a packed vector that counts."""
    return float(FRONT.unpack_from(packed)[1] / FULL_TRUST)


def make_block(rows: Iterable[tuple[int, bytes]]) -> bytes:
    """Return packed vectors by seq as a block."""
    return b"".join(part for seq, packed in rows for part in (SEQ.pack(seq), packed))


def read_block(block: bytes, dimensions: int) -> Iterator[tuple[int, bytes]]:
    """Yield the packed vectors of a block by seq."""
    size = HEAD + dimensions
    for start in range(0, len(block) - size + 1, size):
        yield SEQ.unpack_from(block, start)[0], block[start + SEQ.size : start + size]


def sum_of_block(block: bytes, dimensions: int) -> tuple[int, list[float]]:
    """Return the number of vectors in a block, and their sum."""
    numpy = numpy_or_none()
    if numpy is not None:
        records = numpy.frombuffer(block, record_type(dimensions))
        numbers = records["numbers"].astype(numpy.float64)
        return len(records), (records["scale"].astype(numpy.float64) @ numbers).tolist()
    vectors = [unpack_vector(packed) for _, packed in read_block(block, dimensions)]
    return len(vectors), [sum(numbers) for numbers in zip(*vectors, strict=True)] or [0.0] * dimensions


def record_type(dimensions: int) -> Any:
    """Return the layout of a record for numpy."""
    numpy = numpy_or_none()
    return numpy.dtype([("seq", "<u4"), ("scale", "<f4"), ("trust", "u1"), ("numbers", "i1", (dimensions,))])
