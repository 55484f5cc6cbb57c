"""The cells of a terminal and what can be done to them: print, erase, insert, delete, scroll.

Where terminals disagree the behaviour is tmux's, which the tests compare with. The column may be one past the last:
then the next character goes to the next line (a wrap that is still due).

How text falls into cells: wide characters, combining marks and joined emoji.

A row of the screen is a string with exactly one character for each cell, which makes drawing, comparing and keeping
rows cheap. A wide character is followed by `FILLER`. A cell of several characters (a letter with its accents, a family
of emoji) is one character of plane 16 that stands for them; `Alphabet` knows which.

Foreground colours: what a Select Graphic Rendition sequence does to them, as 0xRRGGBB.

Only the foreground is followed. Screens of full-screen programs are told apart by it (the border of a box), while
backgrounds and attributes say nothing a transcript needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from wcwidth import wcwidth

from everturn.sources.terminal.transcript import Colour

#: The second half of a wide character. Never printed: a NUL in the input is a control character.
FILLER: Final = "\0"

#: Makes one character of its neighbours.
JOINER: Final = "\u200d"


_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
_SHORTHAND = 0x100000
_MOST_SHORTHANDS = 65_000
_STANDS_FOR_ELSE = re.compile("[\0\U00100000-\U0010ffff]")
#: What most text consists of: letters, frames and blocks, braille, all of one cell each.
_NARROW = re.compile("[ -~\xb7\xc0-\u02af\u2022\u2026\u2190-\u2193\u2500-\u259f\u2800-\u28ff]+")
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
        if _NARROW.fullmatch(text) or (all(width_of(char) == 1 for char in set(text)) and max(text) < "\U00100000"):
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


#: One row that leaves the main screen at the top: its cells and its inks.
ScrollHook = Callable[[str, str], None]

#: Ink of cells in the default colour.
NO_INK = "\0"
_MOST_INKS = 0x10FFFF
_MOST_SHIFTS = 8


class Inks:
    """Colours as single characters, so that the colours of a row are a string like its cells."""

    def __init__(self) -> None:
        self.characters: dict[Colour, str] = {None: NO_INK}
        self._colours: list[Colour] = [None]

    def ink(self, colour: Colour) -> str:
        """The character that stands for a colour."""
        known = self.characters.get(colour)
        if known is None:
            if len(self._colours) > _MOST_INKS:
                return NO_INK
            known = self.characters[colour] = chr(len(self._colours))
            self._colours.append(colour)
        return known

    def colour(self, ink: str) -> Colour:
        """Return the colour that `ink` made a character of."""
        return self._colours[ord(ink)]


class Grid:
    """Rows of cells with a cursor. `cells[y]` and `inks[y]` are strings of `columns` characters."""

    def __init__(self, columns: int, rows: int, on_scroll: ScrollHook | None = None) -> None:
        self.columns, self.rows = columns, rows
        self.alphabet, self.palette = Alphabet(), Inks()
        self.on_scroll = on_scroll
        self.x = self.y = 0
        self.top, self.bottom = 0, rows - 1  # the scroll region
        self.ink = NO_INK
        self.wraps, self.inserts, self.alternate = True, False, False
        self.printed = ""  # cells, for REP
        self.shifts: dict[tuple[int, int], int] = {}  # regions of the alternate screen and how far they scrolled lately
        self.joiner = False  # the last run of text ended with one
        self.clean()

    def clean(self) -> None:
        """Blank every cell."""
        self.blank, self.no_inks = " " * self.columns, NO_INK * self.columns
        self.cells = [self.blank] * self.rows
        self.inks = [self.no_inks] * self.rows
        self.wrapped = [False] * self.rows  # the text goes on in the next row

    # printing -------------------------------------------------------------------------------------------------------
    def put(self, cells: str) -> None:
        """Print cells at the cursor."""
        x, y = self.x, self.y
        count = len(cells)
        end = x + count
        if end > self.columns:
            self._put_wrapping(cells)
            return
        row = self.cells[y]
        if row[x] == FILLER or (end < self.columns and row[end] == FILLER):
            self._free(x, end)
            row = self.cells[y]
        inks, ink = self.inks[y], self.ink
        self.cells[y] = row[:x] + cells + row[end:]
        if ink != NO_INK or inks is not self.no_inks:
            self.inks[y] = inks[:x] + ink * count + inks[end:]
        self.x = end
        self.printed = cells

    def repeat(self, count: int) -> None:
        """REP: the last character again, up to the end of the line."""
        cell = self.printed[-2:] if self.printed.endswith(FILLER) else self.printed[-1:]
        cells = cell * min(count, (self.columns - self.x) // max(1, len(cell)))
        if not self.wraps or self.inserts:
            self.put_singly(cells)
        elif cells:
            self.put(cells)

    def _put_wrapping(self, cells: str) -> None:
        while cells:
            room = self.columns - self.x
            if cells[room : room + 1] == FILLER:
                room -= 1
            if room <= 0:
                self.wrapped[self.y] = True
                self.line_feed()
                self.x = 0
                continue
            self.put(cells[:room])
            cells = cells[room:]

    def put_singly(self, text: str) -> None:
        """Print in insert mode or without wrapping, where every character has an effect of its own."""
        for char in text:
            lead, cell, joiner = self.alphabet.layout(JOINER + char if self.joiner else char)
            self.joiner = joiner
            if cell:
                self._put_one(cell)
            elif lead:
                self.combine(lead)

    def _put_one(self, cell: str) -> None:
        width, last = len(cell), self.columns - len(cell)
        if not self.wraps and width > 1 and self.x != self.columns and self.x > last:
            return
        if self.inserts:
            self.insert_cells(width)
        if self.wraps and self.x > last:
            self.wrapped[self.y] = True
            self.line_feed()
            self.x = 0
        if self.x <= last:
            self.put(cell)
            if not self.wraps:
                self.x = min(self.x, self.columns - 1)

    def combine(self, marks: str) -> None:
        """Put marks on the cell before the cursor."""
        row, place = self.cells[self.y], self.x - 1
        while place >= 0 and row[place] == FILLER:
            place -= 1
        if place >= 0:
            self.cells[self.y] = row[:place] + self.alphabet.join_marks(row[place], marks) + row[place + 1 :]

    def _free(self, start: int, end: int) -> None:
        """Blank the halves of wide characters that printing from `start` to `end` would leave behind."""
        row = self.cells[self.y]
        first, last = start, end
        if row[first] == FILLER:
            while first > 0 and row[first] == FILLER:
                first -= 1
        while last < self.columns and row[last] == FILLER:
            last += 1
        self._blank(self.y, first, start)
        self._blank(self.y, end, last)

    # erasing --------------------------------------------------------------------------------------------------------
    def _blank(self, y: int, start: int, end: int) -> None:
        if start < end:
            self.cells[y] = self.cells[y][:start] + self.blank[start:end] + self.cells[y][end:]
            self.inks[y] = self.inks[y][:start] + self.no_inks[start:end] + self.inks[y][end:]

    def blank_rows(self, start: int, end: int) -> None:
        """Blank whole rows."""
        for y in range(start, end):
            self.cells[y], self.inks[y], self.wrapped[y] = self.blank, self.no_inks, False
        if start > 0:
            self.wrapped[start - 1] = False

    def erase_in_line(self, how: int) -> None:
        """EL: to the end, from the start, or all of it."""
        if how == 0 and self.x > 0:
            self._blank(self.y, self.x, self.columns)
        elif how == 1 and self.x < self.columns - 1:
            self._blank(self.y, 0, self.x + 1)
        elif how <= 2:
            self.blank_rows(self.y, self.y + 1)

    def erase_characters(self, count: int) -> None:
        """ECH."""
        self._blank(self.y, self.x, min(self.x + count, self.columns))

    def insert_cells(self, count: int) -> None:
        """ICH: blanks come in at the cursor, the rest moves right."""
        y, x = self.y, self.x
        count = min(count, self.columns - x)
        if count > 0:
            kept = self.columns - count
            self.cells[y] = self.cells[y][:x] + " " * count + self.cells[y][x:kept]
            self.inks[y] = self.inks[y][:x] + NO_INK * count + self.inks[y][x:kept]

    def delete_cells(self, count: int) -> None:
        """DCH: the rest moves left, blanks come in at the end."""
        y, x = self.y, self.x
        count = min(count, self.columns - x)
        if count > 0:
            self.cells[y] = self.cells[y][:x] + self.cells[y][x + count :] + " " * count
            self.inks[y] = self.inks[y][:x] + self.inks[y][x + count :] + NO_INK * count

    # scrolling ------------------------------------------------------------------------------------------------------
    def line_feed(self) -> None:
        """One row down; at the bottom of the region it scrolls."""
        if self.y == self.bottom:
            self.scroll_up(1)
        elif self.y < self.rows - 1:
            self.y += 1

    def scroll_up(self, count: int) -> None:
        """SU: rows leave at the top of the region."""
        if self.alternate:
            self._note_shift(count)
        elif self.top == 0 and self.on_scroll is not None:
            for y in range(min(count, self.bottom + 1)):
                self.on_scroll(self.cells[y], self.inks[y])
        self.delete_rows(self.top, self.bottom, count)

    def scroll_down(self, count: int) -> None:
        """SD: rows leave at the bottom of the region."""
        if self.alternate:
            self._note_shift(-count)
        self.insert_rows(self.top, self.bottom, count)

    def _note_shift(self, count: int) -> None:
        region = (self.top, self.bottom)
        self.shifts[region] = self.shifts.get(region, 0) + count if len(self.shifts) < _MOST_SHIFTS else 0

    def delete_rows(self, start: int, end: int, count: int) -> None:
        """Rows from `start` on go away, those up to `end` move up."""
        count = min(count, end - start + 1)
        after = end + 1 - count
        for lines, empty in self._layers():
            del lines[start : start + count]
            lines[after:after] = [empty] * count

    def insert_rows(self, start: int, end: int, count: int) -> None:
        """Blank rows come in at `start`, those up to `end` move down."""
        count = min(count, end - start + 1)
        for lines, empty in self._layers():
            del lines[end + 1 - count : end + 1]
            lines[start:start] = [empty] * count
        if start > 0:
            self.wrapped[start - 1] = False

    def _layers(self) -> tuple[tuple[list[Any], Any], ...]:
        """All that is kept of each row, with what a blank row has."""
        return (self.cells, self.blank), (self.inks, self.no_inks), (self.wrapped, False)


#: The sixteen named colours, as xterm shows them.
_NAMED = (
    *(0x000000, 0xCD0000, 0x00CD00, 0xCDCD00, 0x0000EE, 0xCD00CD, 0x00CDCD, 0xE5E5E5),
    *(0x7F7F7F, 0xFF0000, 0x00FF00, 0xFFFF00, 0x5C5CFF, 0xFF00FF, 0x00FFFF, 0xFFFFFF),
)
_LEVELS = (0, 95, 135, 175, 215, 255)

#: RGB of the 256 palette colours.
PALETTE: Final = (
    *_NAMED,
    *(red << 16 | green << 8 | blue for red in _LEVELS for green in _LEVELS for blue in _LEVELS),
    *(level * 0x10101 for level in range(8, 248, 10)),
)

#: The sequence leaves the foreground alone.
UNCHANGED: Final = -1

_FOREGROUND, _DEFAULT = 38, 39
_INDEXED, _DIRECT = 5, 2
_WITH_ARGUMENTS = (38, 48, 58)


def foreground(parameters: str) -> Colour:
    """The colour that `CSI parameters m` sets; None for the default one, `UNCHANGED` when it says nothing of it."""
    colour: Colour = UNCHANGED
    fields = parameters.split(";")
    place = 0
    while place < len(fields):
        code, *parts = [int(part[:9]) if part else 0 for part in fields[place].split(":")]
        place += 1
        if code in _WITH_ARGUMENTS and not parts:
            parts, place = _arguments(fields, place)
        colour = _apply_code(colour, code, parts)
    return colour


def _arguments(fields: list[str], place: int) -> tuple[list[int], int]:
    """`5;n` or `2;r;g;b` behind a 38 written with semicolons, and where to go on."""
    kind = fields[place] if place < len(fields) else ""
    length = {"5": 2, "2": 4}.get(kind, 1)
    taken = fields[place : place + length]
    return [int(part[:9]) if part.isdigit() else 0 for part in taken], place + length


def _apply_code(colour: Colour, code: int, parts: list[int]) -> Colour:
    if code in (0, _DEFAULT):
        return None
    if 30 <= code <= 37:
        return PALETTE[code - 30]
    if 90 <= code <= 97:
        return PALETTE[code - 82]
    if code == _FOREGROUND and parts:
        chosen = _extended_colour(parts)
        return colour if chosen is None else chosen
    return colour


def _extended_colour(parts: list[int]) -> int | None:
    """Of `5:n`, `2:r:g:b` and `2:space:r:g:b`; None when out of range."""
    kind, *values = parts
    if kind == _INDEXED and values and values[0] < len(PALETTE):
        return PALETTE[values[0]]
    if kind == _DIRECT and len(values) >= 3:
        red, green, blue = values[-3:] if len(values) == 3 else values[1:4]
        if max(red, green, blue) < 256:
            return red << 16 | green << 8 | blue
    return None
