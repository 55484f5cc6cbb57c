"""A column at the right that stays while the rest scrolls.

With one, no row ever looks the same after scrolling, so it has to be found before rows can be compared: behind a gutter
that is blank in nearly all rows, its rows stay while those before the gutter move. It is given up when the gutter is
written over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everturn.sources.terminal.chrome import DEEPEST, mask_row, rows_moved_up
from everturn.sources.terminal.frames import PaintedRow
from everturn.sources.terminal.matching import is_telling

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
        """What stands in it."""
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
