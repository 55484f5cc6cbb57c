"""Vectors in a small database beside the archive, which can be deleted at any time and computed again.

The vectors of a session belong to one generation (see `retrieval.meaning`). Reading with another generation returns
none, and the first vectors of a new generation replace all old ones. Deleted vectors are overwritten in the file. Beside
`archive.db` the file is `archive.vectors.db`; an archive on a server has one in the data folder of every machine that
computes vectors.

Vectors are stored in blocks of one session: new ones are added to its last block until it is full.
For each model the file keeps the sum of its vectors, from which searches take their centre. Writing or deleting a block
changes the sum in the same transaction. Beside each block it keeps a sketch, the signs of its vectors, one bit each, and their trust: where
there are many vectors, a search compares the sketches and reads only the blocks that hold the most similar vectors.

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
from msgspec import Struct

from everturn.errors import BadVectors, EncryptedArchive, NotAnArchive, WrongKey
from everturn.store.cipher import keys_for
from everturn.store.sql import query_in_lists, query_pairs
from everturn.store.sqlite import SqliteDriver, connect

ENDING = ".vectors.db"

#: Vectors of a block.
FULL = 256
#: The most sessions whose blocks are queried one by one; for more of them all blocks are read.
_ONE_BY_ONE = 200
#: Vectors of a model up to which a search reads all of them.
FEW_VECTORS = 50_000
#: Sketches compared with one query, the newest first.
MOST_SKETCHES = 400_000

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
    CREATE TABLE IF NOT EXISTS sketch (
        model TEXT NOT NULL, session INTEGER NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (model, session, number)
    ) STRICT, WITHOUT ROWID;
"""
_MAPPED = 1 << 30  # bytes of the file that are read without a copy in the page cache
_WITH_SKETCHES = 1  # user_version of a file whose blocks all have a sketch
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


class NearVectors(Struct, frozen=True):
    """A request for the vectors most like a query."""

    model: str  # the generation without its last part
    direction: Sequence[float]  # of the query
    most: int  # vectors to choose
    sessions: Collection[int] | None = None  # to choose from; None: all
    always: Collection[int] = ()  # sessions whose vectors are wanted in any case


class VectorFile:
    """The vectors of one archive. Not shared between threads."""

    def __init__(self, path: Path, create: bool = True) -> None:
        """Open the file, with `create` readable by its owner alone. Raises BadVectors, Busy, NoSpace."""
        if create:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self.path = path
        self._loaded: LoadedSketches | None = None
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
        self._loaded = None
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
        sql = "SELECT session, data FROM block WHERE session IN ({}) ORDER BY session DESC, number DESC"
        yield from query_in_lists(self._driver.all, sql, sorted(sessions, reverse=True))

    def blocks_near(self, near: NearVectors) -> Iterator[tuple[int, bytes]]:
        """Yield all blocks in question if there are few vectors, else those with the vectors that are most like the query."""
        if self.centre(near.model)[0] <= FEW_VECTORS or numpy_or_none() is None:
            known = {session for session, one in self.held().items() if one[0].rpartition("/")[0] == near.model}
            yield from self.blocks(known if near.sessions is None else known.intersection(near.sessions))
            return
        always = set(near.always)
        yield from self.blocks(always)
        found = self._sketches(near.model).most_similar(near)
        sql = "SELECT session, data FROM block WHERE (session, number) IN (VALUES {})"
        yield from query_pairs(self._driver.all, sql, [block for block in found if block[0] not in always])

    def _sketches(self, model: str) -> LoadedSketches:
        """Return the newest sketches of a model; they stay in memory until the file changes."""
        row = self._driver.one("PRAGMA data_version")
        version = int(row[0]) if row else 0
        if self._loaded is None or (self._loaded.model, self._loaded.version) != (model, version):
            sql = "SELECT session, number, data FROM sketch WHERE model=? ORDER BY session DESC, number DESC"
            self._loaded = load_sketches(model, version, self._driver.each(sql, (model,)))
        return self._loaded

    def centre(self, model: str) -> tuple[int, list[float]]:
        """Return the number of vectors of a model (the generation without its last part), and their sum."""
        row = self._driver.one("SELECT n, total FROM centre WHERE model=?", (model,))
        return (int(row[0]), array("d", row[1]).tolist()) if row else (0, [])

    def held(self) -> dict[int, tuple[str, int, int]]:
        """Return session → (generation, messages processed, number of vectors)."""
        rows = self._driver.all("SELECT session, generation, upto, made FROM embedded")
        return {int(session): (str(generation), int(upto), int(made)) for session, generation, upto, made in rows}

    def forget(self, session: int) -> None:
        self._loaded = None
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
                dimensions = len(portion[0][1]) - FRONT.size
                self._driver.run(
                    "INSERT OR REPLACE INTO sketch (model, session, number, data) VALUES (?,?,?,?)",
                    (generation.rpartition("/")[0], session, number, sketch_block(data + new, dimensions)),
                )
                self._move_centre(generation, new, dimensions)
            number, n, data = number + 1, 0, b""

    def _delete_blocks(self, session: int, generation: str) -> None:
        for n, data in self._driver.all("SELECT n, data FROM block WHERE session=?", (session,)):
            self._move_centre(generation, data, len(data) // n - HEAD, is_gone=True)
        self._driver.run("DELETE FROM block WHERE session=?", (session,))
        model = generation.rpartition("/")[0]
        self._driver.run("DELETE FROM sketch WHERE model=? AND session=?", (model, session))

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
            connection.execute(f"PRAGMA mmap_size={_MAPPED}")
            if create:
                connection.execute(_SCHEMA)
            _check_tables(connection, path)
            if connection.execute(_IS_OUTDATED).fetchone():
                connection.execute(f"BEGIN IMMEDIATE; {_OUTDATED}; {_SCHEMA}; COMMIT")
            _add_sketches(connection)
    except BaseException:
        connection.close(True)
        raise
    return driver


def _add_sketches(connection: apsw.Connection) -> None:
    """Sketch the blocks of a file from before there were sketches."""
    if connection.execute("PRAGMA user_version").get == _WITH_SKETCHES:
        return
    with connection:
        connection.execute(_SCHEMA)
        sql = "SELECT generation, session, number, n, data FROM block JOIN embedded USING (session)"
        rows: Iterable[tuple[Any, ...]] = connection.execute(sql)  # one after another: the file may be large
        for generation, session, number, n, data in rows:
            row = generation.rpartition("/")[0], session, number, sketch_block(data, len(data) // n - HEAD)
            connection.execute("INSERT OR REPLACE INTO sketch (model, session, number, data) VALUES (?,?,?,?)", row)
        connection.execute(f"PRAGMA user_version={_WITH_SKETCHES}")


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


# --- sketches ---

_WORD = 8  # bytes: signs are compared word by word
#: Shares of the dimensions, those with the largest numbers of the query: each share counts once more.
_TELLING = (0.75, 0.375)
_COARSE = 2  # bits by which likeness is rounded to choose the best


def sign_bits(are_set: Sequence[bool]) -> bytes:
    """Return one bit for each dimension, in whole words."""
    size = _sketch_size(len(are_set))
    bits = "".join("1" if one else "0" for one in are_set)
    return int(bits.ljust(8 * size, "0") or "0", 2).to_bytes(size, "big")


def sketch_block(block: bytes, dimensions: int) -> bytes:
    """Return the signs of the vectors of a block, one vector after another, then their trusts."""
    numpy = numpy_or_none()
    if numpy is None:
        packed = [one for _, one in read_block(block, dimensions)]
        signs = [sign_bits([number > 0 for number in memoryview(one)[FRONT.size :].cast("b")]) for one in packed]
        return b"".join(signs) + bytes(FRONT.unpack_from(one)[1] for one in packed)
    records = numpy.frombuffer(block, record_type(dimensions))
    bits = numpy.packbits(records["numbers"] > 0, axis=1)
    padded = numpy.zeros((len(records), _sketch_size(dimensions)), numpy.uint8)
    padded[:, : bits.shape[1]] = bits
    return bytes(padded.tobytes() + records["trust"].tobytes())


def _sketch_size(dimensions: int) -> int:
    return -(-dimensions // (8 * _WORD)) * _WORD


def _telling_dimensions(direction: Sequence[float], share: float) -> list[bool]:
    ordered = sorted(range(len(direction)), key=lambda at: -abs(direction[at]))
    chosen = set(ordered[: round(share * len(direction))])
    return [at in chosen for at in range(len(direction))]


class LoadedSketches(Struct, frozen=True):
    """The sketches of a model in memory, for one state of the file."""

    model: str
    version: int  # of the file
    blocks: list[tuple[int, int]]  # session and number
    sessions: Any  # of each block
    sizes: Any  # vectors of each block
    words: list[Any]  # the signs, by word
    trusts: Any

    def most_similar(self, near: NearVectors) -> list[tuple[int, int]]:
        """Return the blocks that hold the vectors whose signs are most like those of the query, each once."""
        numpy = numpy_or_none()
        if not self.blocks or _sketch_size(len(near.direction)) != _WORD * len(self.words):
            return []
        likeness = self._likeness(near.direction)
        if near.sessions is not None:
            likeness[numpy.repeat(~numpy.isin(self.sessions, list(near.sessions)), self.sizes)] = 0
        least = _nth_largest(numpy, likeness, near.most)
        above, equal = numpy.flatnonzero(likeness > least), numpy.flatnonzero(likeness == least)
        found = numpy.concatenate([above, equal[: max(near.most - len(above), 0)]])  # the newest of equals
        rows = numpy.searchsorted(numpy.cumsum(self.sizes), found[likeness[found] > 0], side="right")
        return [self.blocks[row] for row in numpy.unique(rows)]

    def _likeness(self, direction: Sequence[float]) -> Any:
        """Return how many signs agree beyond chance, times the trust; 0 for fewer."""
        numpy = numpy_or_none()
        shares = [_telling_dimensions(direction, share) for share in _TELLING]
        query, *masks = (
            numpy.frombuffer(sign_bits(bits), numpy.uint64) for bits in ([one > 0 for one in direction], *shares)
        )
        differing = numpy.zeros(len(self.trusts), numpy.uint16)
        for at, word in enumerate(self.words):
            other = word ^ query[at]
            for mask in masks:
                differing += numpy.bitwise_count(other & mask[at])
        half = sum(map(sum, shares)) // 2
        agreeing = half - numpy.minimum(differing, half).astype(numpy.int32)
        return (agreeing * self.trusts) >> _COARSE


def _nth_largest(numpy: Any, numbers: Any, n: int) -> int:
    """Return the `n`th largest of small numbers, or the smallest where there are fewer."""
    counts = numpy.cumsum(numpy.bincount(numbers)[::-1])
    return int(max(len(counts) - 1 - numpy.searchsorted(counts, n), 0))


def load_sketches(model: str, version: int, rows: Iterable[tuple[Any, ...]]) -> LoadedSketches:
    """Load sketches by session and number, up to MOST_SKETCHES."""
    numpy, size, seen = numpy_or_none(), _sketch_size(int(model.rpartition("/")[2])), 0
    blocks: list[tuple[int, int]] = []
    signs: list[bytes] = []
    trusts: list[bytes] = []
    for session, number, data in rows:
        n = len(data) // (size + 1)
        blocks.append((session, number))
        signs.append(data[: n * size])
        trusts.append(data[n * size : n * (size + 1)])
        seen += n
        if seen >= MOST_SKETCHES:
            break
    table = numpy.frombuffer(b"".join(signs), numpy.uint64).reshape(-1, size // _WORD)
    return LoadedSketches(
        model,
        version,
        blocks,
        numpy.array([session for session, _ in blocks], numpy.int64),
        numpy.array(list(map(len, trusts)), numpy.int64),
        [table[:, column].copy() for column in range(size // _WORD)],
        numpy.frombuffer(b"".join(trusts), numpy.uint8).astype(numpy.int32),
    )


def record_type(dimensions: int) -> Any:
    """Return the layout of a record for numpy."""
    numpy = numpy_or_none()
    return numpy.dtype([("seq", "<u4"), ("scale", "<f4"), ("trust", "u1"), ("numbers", "i1", (dimensions,))])
