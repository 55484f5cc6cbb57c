"""Data with parts left out, and where each byte of the rest stood.

For patterns that are to look at some of the data only, or through what stands in between.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate


class CutBytes:
    """The given parts of some data, in order, with `between` between them."""

    def __init__(self, data: bytes, parts: list[tuple[int, int]], between: bytes = b"") -> None:
        self.data = between.join(data[start:end] for start, end in parts)
        self._parts = parts
        sizes = (end - start + len(between) for start, end in parts)
        self._starts = list(accumulate(sizes, initial=0))[:-1]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of the cutting stood; what was left out within it belongs to it."""
        first = bisect_right(self._starts, start) - 1
        last = max(first, bisect_left(self._starts, end) - 1)
        return self._at(first, start), min(self._at(last, end), self._parts[last][1])

    def _at(self, part: int, offset: int) -> int:
        return self._parts[part][0] + offset - self._starts[part]
