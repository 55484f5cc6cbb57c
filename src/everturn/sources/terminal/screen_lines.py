"""A line of the text that a screen shows, and whether two drawings are the same line.

A line is superseded only by its own later drawing: one that went on, was taken back a little, or of which something hides
the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from everturn.sources.terminal.frames import PaintedRow, is_telling

_FRAME = " ┃│|║"
_GAP = "   "  # blank rows that a full screen does not have


class ScreenTextLine:
    """A line of the text, with its evidence."""

    __slots__ = ("at", "born", "first", "gone", "last", "row", "seen")

    def __init__(self, row: PaintedRow, first: int, last: int, at: int | None, born: int = 0) -> None:
        self.row, self.first, self.last, self.at = row, first, last, at
        self.born = born  # where the frame that added it below known lines ends; 0 for a line above them
        self.seen = last  # where the last frame that showed it ends
        self.gone: list[list[ScreenTextLine]] | None = None  # lines that followed it and vanished, group by group

    def lose(self, lines: list[ScreenTextLine]) -> None:
        """Remember lines that vanished below it; those that vanish again and again are remembered once."""
        self.gone = self.gone or []
        if not self.gone or [line.row for line in self.gone[-1]] != [line.row for line in lines]:
            self.gone.append(lines)

    def is_left_over(self, row: PaintedRow) -> bool:
        """Return whether a row is another leftover of the same line, which was written over from the left edge.

        Carriage returns in a prompt do that, in another way each time; what was seen first stays.
        """
        before, after = self.row.text, row.text
        both = self.row.covered and row.covered and before[:1].strip() and after[:1].strip()
        return bool(both) and not goes_on(before, after)

    def write(self, row: PaintedRow, first: int, last: int, at: int | None) -> None:
        """Show another row from now on. A line that grows stays the line it was."""
        before, after = self.row.text, row.text
        self.seen = last
        if row.covered and before.startswith(after):
            return
        if before != after:
            self.last = last
            if not goes_on(before, after):
                self.first, self.at = first, at
        self.row = row


def is_lost(line: ScreenTextLine, alive: set[str]) -> bool:
    """Return whether a line says something that none of those `alive` does."""
    return is_telling(line.row.text) and line.row.text not in alive


def count_filled(rows: Sequence[PaintedRow]) -> int:
    """Return how many rows there are up to the last that is not blank."""
    height = len(rows)
    while height and not rows[height - 1].text:
        height -= 1
    return height


def is_full(rows: Sequence[PaintedRow]) -> bool:
    """Return whether the text reaches down to the end of the view."""
    return any(row.text for row in rows[-2:])


def has_gap(rows: Sequence[PaintedRow]) -> bool:
    """Whether there is room between the text and what stands at the bottom."""
    filled = "".join("x" if row.text else " " for row in rows)
    return _GAP in filled


def begins(part: str, whole: str) -> bool:
    """Return whether a line is the beginning of another one."""
    return whole.startswith(part)


def keeps_words(before: str, row: PaintedRow) -> bool:
    """Return whether a drawing still holds the words of the one before it: it went on, or words came around them."""
    if row.covered and before.startswith(row.text):
        return True
    return before.strip(_FRAME).casefold() in row.text.casefold() or goes_on(before, row.text)


def goes_on(before: str, after: str) -> bool:
    """Whether a line went on, or was taken back a little; the frame of a box behind it does not count."""
    old, new = before.rstrip(_FRAME), after.rstrip(_FRAME)
    shorter, longer = sorted((old, new), key=len)
    return is_telling(shorter) and longer.startswith(shorter)


def strip_frame(text: str) -> str:
    """Return a line without the frame of a box around it."""
    return text.strip(_FRAME)
