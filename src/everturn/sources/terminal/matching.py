"""Where the rows of a screen stand in what was read before.

Lines that occur once on either side are anchors. Those that keep their order make blocks of equal distance; several
blocks mean that lines came in, or went away, between them. Where no line is rare enough, all equal lines vote for a
distance, each the less the more often it occurs.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]")
_ENOUGH_VOTES = 1.5
_MOST_PLACES = 6  # a line that stands in more places has no vote
_FEWEST_ROWS = 3  # that overlap
_NEAR = 3  # a lone anchor may be this far from its neighbours


class RowBlock(NamedTuple):
    """Rows `first` to `last` stand at `first + distance` to `last + distance`."""

    first: int
    last: int
    distance: int


def is_telling(text: str) -> bool:
    """Whether a line has something in it that frames, rules and blanks have not."""
    return _WORD.search(text) is not None


def blocks(lines: Sequence[str], places: Iterable[int], rows: Sequence[str]) -> list[RowBlock]:
    """Blocks of rows that stand in `lines`, looked for at `places`; in order, and as large as can be."""
    where = _places_of_lines(lines, places)
    seen = Counter(row for row in rows if row)
    anchors = [
        (number, where[row][0]) for number, row in enumerate(rows) if seen[row] == 1 and len(where.get(row, ())) == 1
    ]
    found = _strong_blocks(_longest_rising(anchors)) or _vote_blocks(where, rows, seen)
    return _grow_blocks(found, lines, rows)


def overlap(old: Sequence[str], new: Sequence[str]) -> RowBlock | None:
    """The smallest step by which one screen becomes the next, for text in which no line is rare.

    All rows have to agree but the last of the old screen, which may have grown meanwhile.
    """
    for step in range(1, len(old) - _FEWEST_ROWS):
        common = len(old) - step - 1
        if old[step:-1] == new[:common] and sum(map(is_telling, new[:common])) >= _FEWEST_ROWS:
            return RowBlock(0, common - 1, step)
        if old[:common] == new[step : step + common] and sum(map(is_telling, old[:common])) >= _FEWEST_ROWS:
            return RowBlock(step, step + common - 1, -step)
    return None


def _places_of_lines(lines: Sequence[str], places: Iterable[int]) -> dict[str, list[int]]:
    where: dict[str, list[int]] = {}
    for place in places:
        line = lines[place]
        if line:
            where.setdefault(line, []).append(place)
    return where


def _longest_rising(anchors: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of anchors whose places rise as their rows do."""
    ends: list[int] = []  # smallest last place of a run of each length
    last: list[int] = []  # and its anchor
    before: list[int] = []
    for number, (_, place) in enumerate(anchors):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            last.append(number)
        else:
            ends[length], last[length] = place, number
    run = []
    number = last[-1] if last else -1
    while number >= 0:
        run.append(anchors[number])
        number = before[number]
    return run[::-1]


def _strong_blocks(anchors: list[tuple[int, int]]) -> list[RowBlock]:
    """Anchors of equal distance together; a lone one far from the others is chance."""
    found: list[list[int]] = []  # first, last, distance, how many
    for row, place in anchors:
        if found and found[-1][2] == place - row:
            found[-1][1] = row
            found[-1][3] += 1
        else:
            found.append([row, row, place - row, 1])
    if len(found) > 1:
        main = max(found, key=lambda block: block[3])[2]
        found = [block for block in found if block[3] > 1 or abs(block[2] - main) <= _NEAR]
    return [RowBlock(first, last, distance) for first, last, distance, _ in found]


def _vote_blocks(where: dict[str, list[int]], rows: Sequence[str], seen: Counter[str]) -> list[RowBlock]:
    votes: dict[int, float] = {}
    for number, row in enumerate(rows):
        places = where.get(row, ()) if row else ()
        if 0 < len(places) <= _MOST_PLACES and is_telling(row):
            for place in places:
                votes[place - number] = votes.get(place - number, 0.0) + 1 / (len(places) * seen[row])
    if not votes:
        return []
    best, second = [*sorted(votes.values(), reverse=True), 0.0][:2]
    if best < _ENOUGH_VOTES or best == second:
        return []
    distance = max(votes, key=lambda key: votes[key])
    matched = [number for number, row in enumerate(rows) if number + distance in where.get(row, ())]
    return [RowBlock(matched[0], matched[-1], distance)]


def _grow_blocks(found: list[RowBlock], lines: Sequence[str], rows: Sequence[str]) -> list[RowBlock]:
    """Blocks with the equal lines next to them, without overlapping."""
    grown: list[RowBlock] = []
    for number, (first, last, distance) in enumerate(found):
        floor = grown[-1].last + 1 if grown else 0
        lowest = grown[-1].last + grown[-1].distance + 1 if grown else 0
        ceiling = found[number + 1].first if number + 1 < len(found) else len(rows)
        highest = ceiling + found[number + 1].distance if number + 1 < len(found) else len(lines)
        while first > floor and first - 1 + distance >= lowest and rows[first - 1] == lines[first - 1 + distance]:
            first -= 1
        while last + 1 < ceiling and last + 1 + distance < highest and rows[last + 1] == lines[last + 1 + distance]:
            last += 1
        grown.append(RowBlock(first, last, distance))
    return grown
