"""How vectors of messages are packed: as one signed byte per number, many of them in one block.

A packed vector is its scale, its trust and its numbers. Scale times numbers has the length 1. The trust, one byte, is the
share of its cosine that counts, as the vector of a short text is rather accidental. A block is a row of records of equal
length: the seq of the message (4 bytes), then its packed vector. `numpy` does the work where it is installed. Without it
the same is computed more slowly.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import sqrt
from operator import mul
from typing import Any

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
