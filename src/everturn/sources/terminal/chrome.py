"""The rows that are not part of the conversation: title, input box, status line.

They are known by what happens when the rest scrolls: they stay. Rows at the top and the bottom edge of the screen gather
such evidence; a line that was seen at another row before is never one of them, however long it stays. Spinners, counters
and clocks are masked before rows are compared.

A column at the right that stays while the rest scrolls.

With one, no row ever looks the same after scrolling, so it has to be found before rows can be compared: behind a gutter
that is blank in nearly all rows, its rows stay while those before the gutter move. It is given up when the gutter is
written over.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from everturn.sources.terminal.frames import PaintedRow, is_telling

#: At most so many rows at either edge.
DEEPEST = 8

_MOVING = re.compile(r"[\d⠀-⣿◐◓◑◒◴◷◶◵◜◝◞◟■□⬝▪▫·✢✳✶✻✽*|/\\-]+")
_MOST_MOVES = 0.15
_MOST_CHANGES = 0.1
_FORGETTING = 0.98
_OFTEN = 2.5
_FEWEST_MOVED = 2
_NEARLY_ALL = 0.8
_FEWEST_FRAMES = 5
_FEWEST_COUNTED = 3
_TITLE = 3  # rows
_MOST_TEXTS = 50_000


@lru_cache(8192)
def mask_row(text: str) -> str:
    """A row without what moves in it by itself."""
    return _MOVING.sub("#", text)


class Alike:
    """Tells whether a row shows the same as before but for what moves in it by itself.

    Lines of a series (a numbered list, a log) are masked to the same text and are different lines all the same: what is
    masked counts only where no other row of the frame looks like it.
    """

    def __init__(self, rows: Sequence[PaintedRow]) -> None:
        self._rows = rows
        self._masks: Counter[str] | None = None

    def __call__(self, old: str, new: str) -> bool:
        if old == new:
            return True
        mask = mask_row(new)
        if mask_row(old) != mask:
            return False
        if self._masks is None:
            self._masks = Counter(mask_row(row.text) for row in self._rows)
        return self._masks[mask] <= 1


class ScreenEdge:
    """Rows counted from one edge of the screen."""

    def __init__(self) -> None:
        self._stayed = [0.0] * DEEPEST  # and could not have come from elsewhere
        self._moved = [0.0] * DEEPEST
        self._same = [0.0] * DEEPEST  # shows the same, wherever it came from
        self._other = [0.0] * DEEPEST

    def note(self, same: list[bool], moved: list[bool], blank: list[bool]) -> None:
        """Note how the rows moved while the screen scrolled."""
        for depth, stays in enumerate(same):
            _count(self._same, self._other, depth, stays)
            if not blank[depth] and stays != moved[depth]:
                _count(self._stayed, self._moved, depth, stays)

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
        """A row that looks like those that scroll (part of a frame, a blank) and yet is always the same."""
        return self._same[depth] > _OFTEN and self._other[depth] <= _MOST_MOVES * self._same[depth]


def _count(yes: list[float], no: list[float], place: int, which: bool) -> None:
    yes[place] = yes[place] * _FORGETTING + which
    no[place] = no[place] * _FORGETTING + (not which)


class Chrome:
    """The edges of one view, as far as known. `top` and `bottom` are the numbers of rows."""

    def __init__(self) -> None:
        self.top = self.bottom = 0
        self._edges = (ScreenEdge(), ScreenEdge())
        self._row_of: dict[str, int] = {}
        self._wandering: set[str] = set()
        self._changes = [0] * DEEPEST  # of rows from the bottom
        self._counted = [0] * DEEPEST  # of rows from the top: another number, else the same
        self._frames = 0

    def look(self, old: Sequence[PaintedRow], new: Sequence[PaintedRow]) -> None:
        """Take note of a frame: which lines are seen at more than one row, which rows at the bottom change."""
        self._frames += 1
        if len(self._row_of) > _MOST_TEXTS:
            self._row_of.clear()
        for number, row in enumerate(new):
            if row is old[number]:
                continue
            before, text = old[number].text, row.text
            if text and self._row_of.setdefault(text, number) != number:
                self._wandering.add(text)
            if number < DEEPEST:
                self._counted[number] += before != text and mask_row(before) == mask_row(text)
            if number >= len(new) - DEEPEST:
                self._changes[len(new) - 1 - number] += mask_row(before) != mask_row(text)

    def note_scroll(self, old: Sequence[PaintedRow], new: Sequence[PaintedRow]) -> bool:
        """Compare two frames; whether the content moved up and the edges now tell more."""
        distance, _ = rows_moved_up(old, new)
        if distance == 0:
            return False
        alike = Alike(new)
        for edge, rows in zip(self._edges, _edges(len(new)), strict=True):
            edge.note(
                same=[alike(old[number].text, new[number].text) for number in rows],
                moved=[_goes_along(old, new, number, distance) for number in rows],
                blank=[not old[number].text and not new[number].text for number in rows],
            )
        depths = [
            edge.depth([not self._is_wandering(new[number].text) for number in rows])
            for edge, rows in zip(self._edges, _edges(len(new)), strict=True)
        ]
        changed = depths != [self.top, self.bottom]
        self.top, self.bottom = depths
        return changed

    def still_edges(self, rows: Sequence[PaintedRow]) -> tuple[int, int]:
        """Rows at the top and the bottom, for a view that never scrolled.

        At the bottom, the last block of rows if its first row and most others hardly ever changed (what is typed does
        change); at the top, rows down to one in which something is counted.
        """
        if self._frames < _FEWEST_FRAMES:
            return 0, 0
        most = max(1, _MOST_CHANGES * self._frames)
        counted = [depth for depth, times in enumerate(self._counted[:_TITLE]) if times >= _FEWEST_COUNTED]
        begin, end = _last_block(rows)
        changes = self._changes[begin:end]
        quiet = sum(times <= most for times in changes)
        is_still = bool(changes) and end < DEEPEST and changes[-1] <= most and 2 * quiet >= len(changes)
        return counted[-1] + 1 if counted else 0, end if is_still else 0

    def _is_wandering(self, text: str) -> bool:
        return text in self._wandering and is_telling(text)


def _edges(height: int) -> tuple[range, range]:
    """Row numbers at the top and at the bottom, from the edge inwards. They do not overlap."""
    depth = min(DEEPEST, height // 2)
    return range(depth), range(height - 1, height - 1 - depth, -1)


def _last_block(rows: Sequence[PaintedRow]) -> tuple[int, int]:
    """Where the last rows that are not blank begin and end, counted from the bottom."""
    begin = 0
    while begin < min(DEEPEST, len(rows)) and not rows[-1 - begin].text:
        begin += 1
    end = begin
    while end < min(DEEPEST, len(rows)) and rows[-1 - end].text:
        end += 1
    return begin, end


def rows_moved_up(old: Sequence[PaintedRow], new: Sequence[PaintedRow]) -> tuple[int, int]:
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
    if max(count, downwards, middle) < _FEWEST_MOVED:
        return _one_step_up(old, new)
    moved = count > downwards and 4 * middle <= count
    return (-distance, count) if moved else (0, 0)


def _one_step_up(old: Sequence[PaintedRow], new: Sequence[PaintedRow]) -> tuple[int, int]:
    """Where every line occurs more than once: the step with which most telling rows agree, if they are nearly all."""
    telling = sum(is_telling(row.text) for row in new[: len(new) - DEEPEST // 2])
    best = (0, 0)
    for step in range(1, len(new) // 2):
        agreeing = [row for row, before in zip(new, old[step:], strict=False) if row.text == before.text]
        count = sum(is_telling(row.text) for row in agreeing)
        if count > best[1]:
            best = (step, count)
    return best if best[1] >= max(_FEWEST_MOVED, _NEARLY_ALL * telling) else (0, 0)


def _goes_along(old: Sequence[PaintedRow], new: Sequence[PaintedRow], number: int, distance: int) -> bool:
    """Whether a row moved as the rest did: it went up, or the row now here came from below."""
    went = bool(old[number].text) and number >= distance and new[number - distance].text == old[number].text
    below = number + distance
    came = bool(new[number].text) and below < len(old) and old[below].text == new[number].text
    return went or came


_GUTTER = 2  # columns
_NARROWEST = 12
_LEFTMOST = 0.4  # of the width
_CROSSING = 0.08  # of the rows may go across the gutter: a rule, a status line
_FEWEST_ROWS = 3
_STAYING = 0.6
_CANDIDATES = 6
_NEARLY = 0.75
_TRIES, _LATER = 64, 16  # tried at each of the first changes, then at one in so many


class Sidebar:
    """Knows whether there is one, and takes it off."""

    def __init__(self, text_of: Callable[[str], str]) -> None:
        self.column = 0  # where it begins; 0 without one
        self._text_of = text_of
        self._tries = 0

    def without(self, rows: Sequence[PaintedRow]) -> Sequence[PaintedRow]:
        """The rows up to the gutter."""
        if self.column and self._is_crossed(rows):
            self.column = 0
        return [self.left(row) for row in rows] if self.column else rows

    def left(self, row: PaintedRow) -> PaintedRow:
        """One row up to the gutter, the same object each time."""
        if row.left is None or len(row.left.cells) != self.column:
            row.left = self._cut(row, self.column)
        return row.left

    def text(self, rows: Sequence[PaintedRow]) -> list[str]:
        """The text in it."""
        return [self._text_of(row.cells[self.column :]).strip() for row in rows] if self.column else []

    def find(self, old: Sequence[PaintedRow], new: Sequence[PaintedRow]) -> bool:
        """Look for one in two frames that differ; whether there is one now."""
        self._tries += 1
        if self.column or len(old) != len(new) or (self._tries > _TRIES and self._tries % _LATER):
            return False
        moved = {
            column: rows_moved_up(self._left_parts(old, column), self._left_parts(new, column))[1]
            for column in _gutter_columns([*old, *new])[-_CANDIDATES:]
            if self._stays(old, new, column)
        }
        most = max(moved.values(), default=0)
        if most:  # further left a little more may agree by chance: lines that grow at their end
            self.column = max(column for column, count in moved.items() if count >= _NEARLY * most)
        return most > 0

    def find_still(self, old: Sequence[PaintedRow], new: Sequence[PaintedRow]) -> bool:
        """Look for one in the first and the last frame of a view that never scrolled."""
        if self.column or len(old) != len(new):
            return False
        for column in reversed(_gutter_columns([*old, *new])):
            before = {row.text for row in self._left_parts(old, column)}
            grown = sum(is_telling(row.text) and row.text not in before for row in self._left_parts(new, column))
            if grown >= _FEWEST_ROWS and self._stays(old, new, column):
                self.column = column
                return True
        return False

    def _is_crossed(self, rows: Sequence[PaintedRow]) -> bool:
        start, end = self.column - _GUTTER, self.column
        crossing = sum(not row.cells[start:end].isspace() for row in rows)
        return crossing > max(2, _CROSSING * len(rows))

    def _cut(self, row: PaintedRow, column: int) -> PaintedRow:
        cells = row.cells[:column]
        return PaintedRow(self._text_of(cells).rstrip(), cells, row.inks[:column])

    def _left_parts(self, rows: Sequence[PaintedRow], column: int) -> list[PaintedRow]:
        return [self._cut(row, column) for row in rows]

    def _stays(self, old: Sequence[PaintedRow], new: Sequence[PaintedRow], column: int) -> bool:
        """Whether there is text behind the column that stays; the frame of an input box below is not enough."""
        height = len(old) - DEEPEST
        pairs = [(row.cells[column:], new[number].cells[column:]) for number, row in enumerate(old[:height])]
        written = [pair for pair in pairs if not (pair[0].isspace() and pair[1].isspace())]
        stay = [before for before, after in written if mask_row(before) == mask_row(after)]
        return sum(map(is_telling, stay)) >= _FEWEST_ROWS and len(stay) >= _STAYING * len(written)


def _gutter_columns(rows: Sequence[PaintedRow]) -> list[int]:
    """Columns that begin behind a gutter, in the right part of the screen."""
    width = len(rows[0].cells)
    most = max(2, _CROSSING * len(rows))
    free = [len(column) - column.count(" ") <= most for column in zip(*(row.cells for row in rows), strict=False)]
    begins = range(max(_GUTTER, int(_LEFTMOST * width)), min(len(free), width - _NARROWEST))
    return [column for column in begins if not free[column] and all(free[column - _GUTTER : column])]
