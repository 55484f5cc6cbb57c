"""The main screen: the lines that scrolled off its top, followed by what it showed in the end.

Programs that draw there repaint the lower part again and again; only its last state comes out. What the screen showed when
it was cleared is kept, unless it was drawn once more: some programs clear everything and print it all anew.
"""

from __future__ import annotations

from collections import Counter

from everturn.sources.terminal.frames import PaintedRow, ScreenFrame, ScrolledRow, is_telling
from everturn.sources.terminal.grid import NO_INK
from everturn.sources.terminal.screen_text import ScreenTextLine

_DRAWN_AGAIN = 0.6  # of the telling lines
_MOST_BLANKS = 100  # lines in a row that are kept


class Scrollback:
    """The lines of the main screen since the last `take`."""

    def __init__(self) -> None:
        self._firm: list[ScreenTextLine] = []  # above the last clearing of the screen
        self._doubtful: list[ScreenTextLine] = []  # was cleared away, and may be drawn again
        self._lines: list[ScreenTextLine] = []  # scrolled off since then
        self._screen: list[ScreenTextLine] = []  # rows of the screen
        self._given = 0  # rows of the screen that came out before
        self._blanks = 0  # scrolled off in a row
        self._place = 0  # in the recording: where the last row was complete

    def scroll(self, event: ScrolledRow) -> None:
        """A row left the screen."""
        line = self._screen.pop(0) if self._screen else ScreenTextLine(event.row, self._place, event.end, event.at)
        line.write(event.row, self._place, event.end, event.at)
        self._place = event.end
        if self._given:
            self._given -= 1
        elif not self._is_void(event):
            line.row = _slim_row(line.row)
            self._lines.append(line)

    def _is_void(self, event: ScrolledRow) -> bool:
        """Whether it is one blank too many: a program can scroll a whole screen away with four bytes."""
        self._blanks = 0 if event.row.text else self._blanks + 1
        return self._blanks > _MOST_BLANKS

    def see(self, frame: ScreenFrame) -> None:
        """The screen as it is at a mark."""
        for row, line in zip(frame.rows, self._screen, strict=False):
            line.write(row, frame.start, frame.end, frame.at)
        for row in frame.rows[len(self._screen) :]:
            self._screen.append(ScreenTextLine(row, frame.start, frame.end, frame.at))
        del self._screen[len(frame.rows) :]
        self._place = frame.end
        if frame.why == "clear":
            self._clear()
        elif frame.why == "forget":
            self._forget()

    def take(self) -> list[ScreenTextLine]:
        """All lines so far; they do not come again."""
        self._decide()
        lines = self._firm + self._lines + self._shown()
        self._firm, self._lines = [], []
        self._given = self._height()
        return lines

    def _clear(self) -> None:
        self._decide()
        self._firm += self._lines
        self._doubtful = self._shown()
        self._lines, self._screen, self._given = [], [], 0

    def _forget(self) -> None:
        if self._firm:
            self._firm += self._doubtful
            self._doubtful, self._firm = self._firm, []
        self._doubtful += self._lines
        self._lines = []

    def _decide(self) -> None:
        """Whether what was cleared away has come back since."""
        cleared = Counter(line.row.text for line in self._doubtful if is_telling(line.row.text))
        if cleared:
            since = Counter(line.row.text for line in self._lines + self._shown())
            if (cleared & since).total() < _DRAWN_AGAIN * cleared.total():
                self._firm += self._doubtful
        self._doubtful = []

    def _shown(self) -> list[ScreenTextLine]:
        return self._screen[self._given : self._height()]

    def _height(self) -> int:
        height = len(self._screen)
        while height and not self._screen[height - 1].row.text:
            height -= 1
        return height


def _slim_row(row: PaintedRow) -> PaintedRow:
    """A row that will not change any more, without the cells it does not need: long logs have many."""
    return row if row.inks.strip(NO_INK) else PaintedRow(row.text, row.text, "")
