"""Two copies of one file put together: what the newer one has, and in their old places the records it has lost.

Records are the same when their bytes are. Many may be alike, so they are told apart by where they stand: what both copies
begin and end with belongs together, and between that each record that both have once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

from everturn.sources.checking import CheckedRecord


def merge_copies(older: Sequence[CheckedRecord], newer: Sequence[CheckedRecord]) -> list[CheckedRecord]:
    """The newer records, and behind each those that once stood there and no longer do."""
    names, there = _record_digests(older), _record_digests(newer)
    pairs = dict(_pair_records(names, there))
    moved = Counter(there) - Counter(names[place] for place in pairs)
    lost: dict[int, list[CheckedRecord]] = {}
    anchor = -1
    for place, name in enumerate(names):
        if place in pairs:
            anchor = pairs[place]
        elif moved[name] > 0:
            moved[name] -= 1  # it stands elsewhere now
        elif not older[place].is_torn:
            lost.setdefault(anchor, []).append(older[place])
    found = lost.get(-1, [])
    for place, piece in enumerate(newer):
        found += [piece, *lost.get(place, ())]
    return found


def _record_digests(pieces: Sequence[CheckedRecord]) -> list[bytes]:
    return [blake2b(piece.raw, digest_size=16).digest() for piece in pieces]


def _pair_records(older: Sequence[bytes], newer: Sequence[bytes]) -> list[tuple[int, int]]:
    """Places in the older and the newer copy that are the same record, both rising."""
    least = min(len(older), len(newer))
    first = next((n for n in range(least) if older[n] != newer[n]), least)
    left = least - first
    last = next((n for n in range(left) if older[-1 - n] != newer[-1 - n]), left)
    begin = [(n, n) for n in range(first)]
    end = [(len(older) - n, len(newer) - n) for n in range(last, 0, -1)]
    return begin + _longest_rising(older, newer, first, last) + end


def _longest_rising(older: Sequence[bytes], newer: Sequence[bytes], first: int, last: int) -> list[tuple[int, int]]:
    """Of the records between, those that each copy has once: the most of them that stand in the same order."""
    counts = Counter(older[first : len(older) - last]), Counter(newer[first : len(newer) - last])
    places = {newer[n]: n for n in range(first, len(newer) - last) if counts[1][newer[n]] == 1}
    single = [
        (n, places[older[n]])
        for n in range(first, len(older) - last)
        if counts[0][older[n]] == 1 and older[n] in places
    ]
    ends: list[int] = []  # by length of a rising row: the place where the best of that length ends
    rows: list[int] = []  # the number in `single` of that end
    before: list[int] = []
    for number, (_, place) in enumerate(single):
        length = bisect_left(ends, place)
        before.append(rows[length - 1] if length else -1)
        ends[length:], rows[length:] = [place, *ends[length + 1 :]], [number, *rows[length + 1 :]]
    found, number = [], rows[-1] if rows else -1
    while number >= 0:
        found.append(single[number])
        number = before[number]
    return found[::-1]
