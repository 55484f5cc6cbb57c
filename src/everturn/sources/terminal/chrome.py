"""The rows that are not part of the conversation: title, input box, status line.

They are known by what happens when the rest scrolls: they stay. Rows at the top and the bottom edge of the screen gather
such evidence; a line that was seen at another row before is never one of them, however long it stays. Spinners, counters
and clocks are masked before rows are compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from everturn.sources.terminal.frames import Painted
from everturn.sources.terminal.matching import is_telling

#: At most so many rows at either edge.
DEEPEST = 8

_MOVING = re.compile(r"[\d⠀-⣿◐◓◑◒◴◷◶◵◜◝◞◟■□⬝▪▫·✢✳✶✻✽*|/\\-]+")
_MOST_MOVES = 0.15
_MOST_CHANGES = 0.1
_FORGETTING = 0.98
_OFTEN = 2.5
_FEWEST_MOVED = 2
_FEWEST_FRAMES = 5
_MOST_TEXTS = 50_000


def masked(text: str) -> str:
    """A row without what moves in it by itself."""
    return _MOVING.sub("#", text)


class Edge:
    """Rows counted from one edge of the screen."""

    def __init__(self) -> None:
        self._stayed = [0.0] * DEEPEST  # and could not have come from elsewhere
        self._moved = [0.0] * DEEPEST
        self._same = [0.0] * DEEPEST  # shows the same, wherever it came from
        self._other = [0.0] * DEEPEST

    def note(self, stayed: list[bool], moved: list[bool]) -> None:
        """What the rows did while the screen scrolled."""
        for depth, (stay, move) in enumerate(zip(stayed, moved, strict=True)):
            _count(self._same, self._other, depth, stay)
            if stay != move:
                _count(self._stayed, self._moved, depth, stay)

    def depth(self, may_be: list[bool]) -> int:
        """How many rows do not belong to what scrolls."""
        deepest = 0
        for depth, may in enumerate(may_be):
            stayed, moved = self._stayed[depth], self._moved[depth]
            if moved > _MOST_MOVES * (stayed + moved):
                break
            if may and (stayed > 0 or self._is_constant(depth)):
                deepest = depth + 1
        return deepest

    def _is_constant(self, depth: int) -> bool:
        """A row of a frame, which looks like those that scroll, and yet is always there."""
        return self._same[depth] > _OFTEN and self._other[depth] <= _MOST_MOVES * self._same[depth]


def _count(yes: list[float], no: list[float], place: int, which: bool) -> None:
    yes[place] = yes[place] * _FORGETTING + which
    no[place] = no[place] * _FORGETTING + (not which)


class Chrome:
    """What is known about the edges of one view. `top` and `bottom` are the numbers of rows."""

    def __init__(self) -> None:
        self.top = self.bottom = 0
        self._edges = (Edge(), Edge())
        self._row_of: dict[str, int] = {}
        self._wandering: set[str] = set()
        self._changes = [0] * DEEPEST
        self._frames = 0

    def look(self, old: Sequence[Painted], new: Sequence[Painted]) -> None:
        """Take note of a frame: which lines are seen at more than one row, which rows at the bottom change."""
        self._frames += 1
        if len(self._row_of) > _MOST_TEXTS:
            self._row_of.clear()
        for number, row in enumerate(new):
            if row is not old[number] and row.text and self._row_of.setdefault(row.text, number) != number:
                self._wandering.add(row.text)
        for depth in range(min(DEEPEST, len(new))):
            before, after = old[-1 - depth], new[-1 - depth]
            if before is not after and masked(before.text) != masked(after.text):
                self._changes[depth] += 1

    def scrolled(self, old: Sequence[Painted], new: Sequence[Painted]) -> bool:
        """Compare two frames; whether the content moved up and the edges now tell more."""
        distance, _ = moved_up(old, new)
        if distance == 0:
            return False
        for edge, rows in zip(self._edges, _edges(len(new)), strict=True):
            stayed, moved = [], []
            for number in rows:
                before, after = old[number].text, new[number].text
                stayed.append(bool(before) and masked(before) == masked(after))
                moved.append(_goes_along(old, new, number, distance))
            edge.note(stayed, moved)
        depths = [
            edge.depth([not self._wanders(new[number].text) for number in rows])
            for edge, rows in zip(self._edges, _edges(len(new)), strict=True)
        ]
        changed = depths != [self.top, self.bottom]
        self.top, self.bottom = depths
        return changed

    def still(self, rows: Sequence[Painted]) -> int:
        """For a view that never scrolled: rows of the last block at the bottom, if they hardly ever changed."""
        if self._frames < _FEWEST_FRAMES:
            return 0
        depth = 0
        while depth < min(DEEPEST, len(rows)) and not rows[-1 - depth].text:
            depth += 1
        begin = depth
        while depth < min(DEEPEST, len(rows)) and rows[-1 - depth].text:
            depth += 1
        if depth in (DEEPEST, begin):
            return 0
        changes = self._changes[begin:depth]
        return depth if max(changes) <= _MOST_CHANGES * self._frames else 0

    def _wanders(self, text: str) -> bool:
        return text in self._wandering and is_telling(text)


def _edges(height: int) -> tuple[range, range]:
    """Row numbers at the top and at the bottom, from the edge inwards. They do not overlap."""
    depth = min(DEEPEST, height // 2)
    return range(depth), range(height - 1, height - 1 - depth, -1)


def moved_up(old: Sequence[Painted], new: Sequence[Painted]) -> tuple[int, int]:
    """By how many rows most of the content moved up, and how many did; 0 when it did not, or not as a whole."""
    if len(old) != len(new):
        return 0, 0
    places = Counter(row.text for row in old)
    row_of = {row.text: number for number, row in enumerate(old) if row.text and places[row.text] == 1}
    votes: Counter[int] = Counter()
    middle = 0
    for number, row in enumerate(new):
        before = row_of.get(row.text)
        if before is None:
            continue
        votes[before - number] += 1
        middle += before == number and DEEPEST <= number < len(new) - DEEPEST
    upwards = [(count, -distance) for distance, count in votes.items() if distance > 0]
    count, distance = max(upwards, default=(0, 0))
    downwards = max((count for distance, count in votes.items() if distance < 0), default=0)
    moved = count >= _FEWEST_MOVED and count > downwards and 4 * middle <= count
    return (-distance, count) if moved else (0, 0)


def _goes_along(old: Sequence[Painted], new: Sequence[Painted], number: int, distance: int) -> bool:
    """Whether a row moved as the rest did: it went up, or the row now here came from below."""
    went = bool(old[number].text) and number >= distance and new[number - distance].text == old[number].text
    below = number + distance
    came = bool(new[number].text) and below < len(old) and old[below].text == new[number].text
    return went or came
