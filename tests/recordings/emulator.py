"""A terminal that knows text only: what is on the screen after some output, and which rows have left it at the top.

It is the score's own witness of what a recording shows, and shares no code with everturn's reader. Colours, titles and
modes that do not move text are skipped. A screen that becomes smaller or larger keeps its upper left part: programs draw
themselves anew after a resize.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from wcwidth import wcwidth

_TOKEN = re.compile(
    r"\x1b\[(?P<given>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b(?P<escape>[0-OQ-WYZ\\`-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x1f\x7f]+)",
    re.S,
)


class Emulator:
    """A screen of some size."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.rows = [_blank(width) for _ in range(height)]
        self.left: list[str] = []  # rows that scrolled off the main screen, until they are taken
        self._x = self._y = 0
        self._top, self._bottom = 0, height - 1
        self._saved = (0, 0)
        self._other: list[list[str]] | None = None  # the main screen while the alternate one is shown
        self._last, self._rest = " ", ""
        self._csi: dict[str, Callable[[list[int]], None]] = {
            "A": lambda n: self._go(self._x, self._y - n[0]),
            "B": lambda n: self._go(self._x, self._y + n[0]),
            "C": lambda n: self._go(self._x + n[0], self._y),
            "D": lambda n: self._go(self._x - n[0], self._y),
            "E": lambda n: self._go(0, self._y + n[0]),
            "F": lambda n: self._go(0, self._y - n[0]),
            "G": lambda n: self._go(n[0] - 1, self._y),
            "d": lambda n: self._go(self._x, n[0] - 1),
            "H": lambda n: self._go([*n, 1][1] - 1, n[0] - 1),
            "f": lambda n: self._go([*n, 1][1] - 1, n[0] - 1),
            "L": lambda n: self._shift(self._y, -n[0]),
            "M": lambda n: self._shift(self._y, n[0]),
            "S": lambda n: self._shift(self._top, n[0]),
            "T": lambda n: self._shift(self._top, -n[0]),
            "P": self._delete_characters,
            "@": self._insert_characters,
            "X": lambda n: self._blank_cells(self._x, self._x + n[0]),
            "b": lambda n: self._print(self._last * n[0]),
            "r": self._set_region,
            "s": lambda n: self._save(),
            "u": lambda n: self._go(*self._saved),
        }

    @property
    def text(self) -> str:
        """The screen, row by row."""
        return "\n".join("".join(row) for row in self.rows)

    def take_left(self) -> str:
        """The rows that have scrolled off since this was last asked."""
        rows, self.left = self.left, []
        return "\n".join(rows)

    def resize(self, width: int, height: int) -> None:
        """Another size."""
        self.rows = [(row + _blank(width))[:width] for row in self.rows][:height]
        self.rows += [_blank(width) for _ in range(height - len(self.rows))]
        self.width, self.height, self._top, self._bottom = width, height, 0, height - 1
        self._go(self._x, self._y)

    def feed(self, output: str) -> None:
        """Take some output. A sequence may be cut anywhere."""
        output, self._rest = self._rest + output, ""
        end = 0
        for token in _TOKEN.finditer(output):
            if token.start() != end:
                break
            end = token.end()
            self._take(token)
        if len(output) - end < 4096:  # else it is no sequence that anything will complete
            self._rest = output[end:]

    def _take(self, token: re.Match[str]) -> None:
        if text := token["text"]:
            self._print(text)
        elif control := token["control"]:
            self._control(control)
        elif final := token["final"]:
            self._sequence(token["given"], final)
        elif escape := token["escape"]:
            self._escape(escape)

    # text -------------------------------------------------------------------------------------------------------------
    def _print(self, text: str) -> None:
        for character in text:
            width = 1 if character.isascii() else wcwidth(character)
            if width <= 0:
                self._combine(character)
                continue
            if self._x + width > self.width:
                self._x = 0
                self._feed_line()
            row = self.rows[self._y]
            row[self._x] = character
            if width == 2:
                row[self._x + 1] = ""
            self._x += width
            self._last = character

    def _combine(self, character: str) -> None:
        if self._x:
            self.rows[self._y][self._x - 1] += character

    def _control(self, control: str) -> None:
        if control in "\n\x0b\x0c":
            self._feed_line()
        elif control == "\r":
            self._x = 0
        elif control == "\b":
            self._x = max(0, min(self._x, self.width - 1) - 1)
        elif control == "\t":
            self._x = min(self.width - 1, (self._x // 8 + 1) * 8)

    def _feed_line(self) -> None:
        if self._y == self._bottom:
            self._shift(self._top, 1)
        else:
            self._y = min(self._y + 1, self.height - 1)

    # sequences --------------------------------------------------------------------------------------------------------
    def _sequence(self, given: str, final: str) -> None:
        if final in "hl":
            if given in ("?1049", "?47", "?1047"):
                self._alternate(final == "h")
            return
        if given[:1] in ("?", ">", "<", "="):
            return
        numbers = [int(word) if word.isdigit() else 0 for word in given.split(";")]
        if final == "J":
            self._erase_screen(numbers[0])
        elif final == "K":
            self._erase_row(numbers[0])
        elif final in self._csi:
            self._csi[final]([max(number, 1) for number in numbers])

    def _escape(self, escape: str) -> None:
        if escape == "7":
            self._save()
        elif escape == "8":
            self._go(*self._saved)
        elif escape == "D":
            self._feed_line()
        elif escape == "E":
            self._x = 0
            self._feed_line()
        elif escape == "M":
            if self._y == self._top:
                self._shift(self._top, -1)
            else:
                self._y = max(0, self._y - 1)

    def _go(self, x: int, y: int) -> None:
        self._x, self._y = max(0, min(x, self.width - 1)), max(0, min(y, self.height - 1))

    def _save(self) -> None:
        self._saved = (self._x, self._y)

    def _set_region(self, numbers: list[int]) -> None:
        top, bottom = numbers[0], numbers[1] if len(numbers) > 1 else self.height
        self._top, self._bottom = (top - 1, min(bottom, self.height) - 1) if top < bottom else (0, self.height - 1)
        self._go(0, 0)

    def _shift(self, top: int, count: int) -> None:
        """Move the rows from `top` to the end of the region up, or down when negative."""
        if not top <= self._bottom:
            return
        for _ in range(min(abs(count), self.height)):
            if count > 0:
                row = self.rows.pop(top)
                self.rows.insert(self._bottom, _blank(self.width))
                if top == 0 and self._other is None:
                    self.left.append("".join(row))
            else:
                self.rows.pop(self._bottom)
                self.rows.insert(top, _blank(self.width))

    def _blank_cells(self, start: int, end: int) -> None:
        row = self.rows[self._y]
        for x in range(max(0, start), min(end, self.width)):
            row[x] = " "

    def _delete_characters(self, numbers: list[int]) -> None:
        row = self.rows[self._y]
        self.rows[self._y] = (row[: self._x] + row[self._x + numbers[0] :] + _blank(self.width))[: self.width]

    def _insert_characters(self, numbers: list[int]) -> None:
        row = self.rows[self._y]
        self.rows[self._y] = (row[: self._x] + [" "] * numbers[0] + row[self._x :])[: self.width]

    def _erase_row(self, how: int) -> None:
        self._blank_cells(0 if how else self._x, self._x + 1 if how == 1 else self.width)

    def _erase_screen(self, how: int) -> None:
        first, last = (self._y + 1, self.height) if how == 0 else (0, self._y) if how == 1 else (0, self.height)
        if how < 2:
            self._erase_row(how)
        for y in range(first, last):
            self.rows[y] = _blank(self.width)

    def _alternate(self, on: bool) -> None:
        if on and self._other is None:
            self._other, self.rows = self.rows, [_blank(self.width) for _ in range(self.height)]
        elif not on and self._other is not None:
            self.rows, self._other = self._other, None
            self.resize(self.width, self.height)


def _blank(width: int) -> list[str]:
    return [" "] * width
