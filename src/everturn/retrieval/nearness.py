"""How near messages are to a query: cosines of their vectors, and the mixture of these with the scores of words.

Both vectors are seen from the centre of the archive, the mean of its vectors: what all texts have in common then tells
nothing, and the cosine of a message that has nothing to do with the query is about 0. While there are few vectors the
centre is drawn towards 0, as the mean of a handful of messages is one of them.

The mixed score of a hit is its share of the best score by words plus its weighted cosine. The cosine of a short text counts
less. A hit without a vector, such as a call or its output, takes the best cosine of the messages beside it. Fusing ranks instead of scores makes results worse: a weak list must not outvote a strong one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from operator import mul
from typing import Any

from msgspec.structs import replace

from everturn.store.contract import IndexHit
from everturn.store.vector_file import FULL_TRUST, numpy_or_none, record_type, trust_of, unpack_vector

MessageKey = tuple[int, int]  # session, seq

#: Hits by words that are reordered, and messages that meaning adds to them.
TOP = 100
NEAREST = 50
#: Vectors compared with one query, the newest first.
MOST_SCANNED = 400_000
#: Messages on each side of one without a vector that tell its meaning.
BESIDE = 3
#: Vectors that count for a centre of 0.
_STILL = 50
_AT_ONCE = 1_000  # vectors, so that they stay in the cache of the processor


class Nearness:
    """The direction of a query, seen from the centre of an archive."""

    def __init__(self, query: Sequence[float], n: int, total: Sequence[float]) -> None:
        """`total` is the sum of the `n` vectors of the archive."""
        length = sqrt(sum(map(mul, query, query)))
        self.centre = [number / (n + _STILL) for number in total] if len(total) == len(query) else [0.0] * len(query)
        moved = [number / length - middle for number, middle in zip(query, self.centre, strict=True)] if length else []
        far = sqrt(sum(map(mul, moved, moved)))
        self.direction = [number / far for number in moved] if far else []
        self.shift = sum(map(mul, self.centre, self.direction))
        self.spread = sum(map(mul, self.centre, self.centre))

    def cosine(self, packed: bytes) -> float:
        """Return the cosine of a packed vector times its trust; 0 if a vector is null, or their dimensions differ."""
        vector = unpack_vector(packed)
        if len(vector) != len(self.direction) or not any(vector):
            return 0.0
        moved = [number - middle for number, middle in zip(vector, self.centre, strict=True)]
        far = sqrt(sum(map(mul, moved, moved)))
        return trust_of(packed) * sum(map(mul, moved, self.direction)) / far if far > 1e-6 else 0.0


class NearnessScan:
    """The cosines of all vectors in some blocks. Needs numpy."""

    def __init__(self, nearness: Nearness, blocks: Iterable[tuple[int, bytes]]) -> None:
        self._numpy = numpy = numpy_or_none()
        self._record = record_type(len(nearness.direction))
        self._nearness = nearness
        # float32 and two columns: the product is one call of BLAS, and both columns cost hardly more than one.
        self._columns = numpy.array([nearness.direction, nearness.centre], numpy.float32).T.copy()
        parts, waiting, size, self.scanned = [], [], 0, 0
        for session, data in blocks:
            waiting.append((session, data))
            size += len(data)
            if size >= _AT_ONCE * self._record.itemsize:
                parts.append(self._compare(waiting))
                waiting, size = [], 0
                self.scanned += len(parts[-1][0])
                if self.scanned >= MOST_SCANNED:
                    break
        parts.append(self._compare(waiting))
        self._sessions, self._seqs, self._cosines = (numpy.concatenate(some) for some in zip(*parts, strict=True))

    def nearest(self, most: int) -> list[tuple[MessageKey, float]]:
        """Return the nearest messages, the nearest first; equals in the order of their keys."""
        numpy, cosines = self._numpy, self._cosines
        places = numpy.argpartition(-cosines, most)[:most] if len(cosines) > most else numpy.arange(len(cosines))
        rows = zip(self._sessions[places].tolist(), self._seqs[places].tolist(), cosines[places].tolist(), strict=True)
        found = [((session, seq), cosine) for session, seq, cosine in rows if cosine > 0]
        return sorted(found, key=lambda one: (-one[1], one[0]))

    def cosines(self, keys: Iterable[MessageKey]) -> dict[MessageKey, float]:
        """Return the cosines of those messages that have a vector here."""
        by_session: dict[int, set[int]] = {}
        for session, seq in keys:
            by_session.setdefault(session, set()).add(seq)
        places = self._numpy.flatnonzero(self._numpy.isin(self._sessions, list(by_session)))
        rows = zip(
            self._sessions[places].tolist(), self._seqs[places].tolist(), self._cosines[places].tolist(), strict=True
        )
        return {(session, seq): cosine for session, seq, cosine in rows if seq in by_session[session]}

    def _compare(self, blocks: Sequence[tuple[int, bytes]]) -> tuple[Any, Any, Any]:
        """Return the sessions, seqs and cosines of the vectors of some blocks."""
        numpy, nearness, size = self._numpy, self._nearness, self._record.itemsize
        fitting = [(session, data) for session, data in blocks if data and len(data) % size == 0]
        records = numpy.frombuffer(b"".join([data for _, data in fitting]), self._record)
        sessions = numpy.repeat(
            numpy.array([session for session, _ in fitting], numpy.int64), [len(data) // size for _, data in fitting]
        )
        scale = records["scale"]
        products = records["numbers"].astype(numpy.float32) @ self._columns
        along = (scale * products[:, 0] - nearness.shift) * (records["trust"] / numpy.float32(FULL_TRUST))
        far = numpy.sqrt(numpy.maximum(1 - 2 * scale * products[:, 1] + nearness.spread, 0))
        is_known = (scale > 0) & (far > 1e-3)
        cosines = numpy.divide(along, far, out=numpy.zeros_like(along), where=is_known)
        return sessions, records["seq"].astype(numpy.int64), cosines


def keys_beside(key: MessageKey) -> list[MessageKey]:
    """Return the messages before and after one."""
    session, seq = key
    return [(session, one) for one in range(max(seq - BESIDE, 0), seq + BESIDE + 1) if one != seq]


def borrow_cosines(keys: Iterable[MessageKey], cosines: Mapping[MessageKey, float]) -> dict[MessageKey, float]:
    """Return the cosines of messages, of one without a vector the best of those beside it."""
    found: dict[MessageKey, float] = {}
    for key in keys:
        if key in cosines:
            found[key] = cosines[key]
        elif near := [cosines[one] for one in keys_beside(key) if one in cosines]:
            found[key] = max(near)
    return found


def mix_scores(
    hits: Sequence[IndexHit], cosines: Mapping[MessageKey, float], nearest: Sequence[MessageKey], weight: float
) -> list[IndexHit]:
    """Order the first hits and the nearest messages by their mixed scores; the other hits follow.

    The scores of the result never rise from hit to hit, and are in the scale of the scores by words.
    """
    best = hits[0].score if hits else 0.0
    if best <= 0:
        return list(hits)
    first = {(hit.session, hit.seq): hit for hit in hits[:TOP]}
    others = {(hit.session, hit.seq): hit for hit in hits[TOP:]}
    for key in nearest:
        if key not in first:
            first[key] = others.pop(key, IndexHit(*key, 0.0))
    mixed = {key: hit.score + best * weight * cosines.get(key, 0.0) for key, hit in first.items()}
    ordered = [replace(first[key], score=mixed[key]) for key in sorted(first, key=lambda key: -mixed[key])]
    least = ordered[-1].score
    return [*ordered, *(replace(hit, score=min(hit.score, least)) for hit in others.values())]
