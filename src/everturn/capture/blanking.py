"""Which bytes of a file go when some of its messages are forgotten.

A fork copies whole stretches of another session, records that are not messages (progress, snapshots) among them. So a
forgotten message takes with it everything up to the next message that stays. Bytes become blanks, line ends stay: every
other byte range keeps its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_BLANK = bytes(10 if code == 10 else 32 for code in range(256))

#: (start, is it forgotten?) of a message.
Mark = tuple[int, bool]


def forgotten_ranges(marks: Iterable[Mark], end: int, begun: int | None = None) -> Iterator[tuple[int, int]]:
    """From each forgotten message to the next one that stays, or to `end`; `begun` if one began before."""
    first = begun
    for start, forgotten in sorted(marks):
        if forgotten:
            first = start if first is None else first
        elif first is not None:
            yield first, start
            first = None
    if first is not None:
        yield first, end


def blank(data: bytearray, first: int, last: int) -> int:
    """Blank a stretch, as far as it lies inside the data; how many bytes that were."""
    first, last = max(first, 0), min(last, len(data))
    if first < last:
        data[first:last] = data[first:last].translate(_BLANK)
    return max(last - first, 0)
