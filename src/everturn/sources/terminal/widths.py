"""How text falls into cells: wide characters, combining marks and joined emoji.

A row of the screen is a string with exactly one character for each cell, which makes drawing, comparing and keeping
rows cheap. A wide character is followed by `FILLER`. A cell of several characters (a letter with its accents, a family
of emoji) is one character of plane 16 that stands for them; `Alphabet` knows which.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from wcwidth import wcwidth

#: The second half of a wide character. Never printed: a NUL in the input is a control character.
FILLER: Final = "\0"

#: Makes one character of its neighbours.
JOINER: Final = "\u200d"


_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
_SHORTHAND = 0x100000
_MOST_SHORTHANDS = 65_000
_STANDS_FOR_ELSE = re.compile("[\0\U00100000-\U0010ffff]")
_LONGEST_CELL = 21  # bytes of UTF-8, as in tmux: text with a hundred accents on a letter stays harmless
_MOST_LAYOUTS = 20_000
_LONGEST_KNOWN = 512  # characters: longer runs do not come twice


class Layout(NamedTuple):
    """A run of text as cells."""

    lead: str  # belongs to the cell before the run
    cells: str
    joiner: bool  # the run ends with a joiner: what comes next belongs to its last cell


class Alphabet:
    """The cells of one screen: layouts already made, and what stands for which characters."""

    def __init__(self) -> None:
        self._shorthands: dict[str, str] = {}
        self._meaning: dict[int, str] = {ord(FILLER): ""}
        self._layouts: dict[str, Layout] = {}

    def layout(self, text: str) -> Layout:
        """Cells of a run of text without control characters."""
        known = self._layouts.get(text)
        if known is None:
            known = self._lay_out(text)
            if len(text) <= _LONGEST_KNOWN:
                if len(self._layouts) >= _MOST_LAYOUTS:
                    self._layouts.clear()
                self._layouts[text] = known
        return known

    def join_marks(self, cell: str, more: str) -> str:
        """A cell with marks put on it, as far as there is room."""
        characters = self.characters(cell)
        for mark in more:
            if len((characters + mark).encode()) <= _LONGEST_CELL:
                characters += mark
        return self._shorthand(characters)

    def characters(self, cells: str) -> str:
        """The text that cells show."""
        return cells.translate(self._meaning) if _STANDS_FOR_ELSE.search(cells) else cells

    def _lay_out(self, text: str) -> Layout:
        if all(width_of(char) == 1 for char in set(text)) and max(text) < "\U00100000":
            return Layout("", text, False)
        lead, cells, joiner = "", [], False
        for char in text:
            if joiner and not char.isascii():
                marks, joiner = JOINER + char, False
            elif char == JOINER:
                joiner = True
                continue
            elif width := width_of(char):
                joiner = False
                cells.append(self._shorthand(char) if char >= "\U00100000" else char)
                cells.extend(FILLER * (width - 1))
                continue
            else:
                marks = char
            if cells:
                place = -2 if cells[-1] == FILLER else -1
                cells[place] = self.join_marks(cells[place], marks)
            else:
                lead += marks
        return Layout(lead, "".join(cells), joiner)

    def _shorthand(self, characters: str) -> str:
        if len(characters) == 1 and characters < "\U00100000":
            return characters
        known = self._shorthands.get(characters)
        if known is None:
            if len(self._shorthands) >= _MOST_SHORTHANDS:
                return characters[0] if characters < "\U00100000" else "\ufffd"
            number = _SHORTHAND + len(self._shorthands)
            known = self._shorthands[characters] = chr(number)
            self._meaning[number] = characters
        return known


@lru_cache(65_536)
def width_of(char: str) -> int:
    """0, 1 or 2 cells. Letters of flags take one each, so that a flag takes two as it does on terminals."""
    if ord(char) in _FLAG_LETTERS:
        return 1
    return max(0, wcwidth(char))
