"""A terminal: bytes in, screens out. Text and foreground colours, the alternate screen, scrollback by a hook.

`feed` takes any bytes in pieces of any size and never raises; the screen after the last piece does not depend on how
the bytes were split. `on_mark` is called at the moments that matter for reading a recording, always while the screen
still (or already) shows what a person would have seen:

    enter, leave    before the alternate screen comes and goes
    clear           before the whole screen is cleared
    forget          the program clears the scrollback
    jump            before the cursor jumps up by more than two rows: a repaint begins
    show            the cursor is shown again after it was hidden
    sync            a synchronized update ends

Clipboard contents and all other strings sent to the terminal are swallowed; only titles come out, by `on_title`.
"""

from __future__ import annotations

from collections.abc import Callable

from everturn.sources.terminal.actions import CHARACTERS, ESCAPES, action_of, known_actions
from everturn.sources.terminal.charsets import LINE_DRAWING
from everturn.sources.terminal.controls import ControlledGrid, MarkHook
from everturn.sources.terminal.grid import NO_INK, ScrollHook
from everturn.sources.terminal.sequences import (
    CHARSET,
    COMMAND,
    CONTROLS,
    CSI_AND_TEXT,
    ESCAPE,
    TEXT,
    TOKEN,
    StringSkipper,
    read_irregular,
    whole_characters,
)
from everturn.sources.terminal.widths import JOINER

SMALLEST, LARGEST = 2, 2_000  # columns or rows


class TerminalScreen(ControlledGrid):
    """A terminal of a given size."""

    def __init__(
        self,
        columns: int = 80,
        rows: int = 24,
        *,
        on_mark: MarkHook | None = None,
        on_scroll: ScrollHook | None = None,
        on_title: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(_clamp_size(columns), _clamp_size(rows), on_mark, on_scroll)
        self.on_title = on_title
        self._held = b""  # not complete yet
        self._string: StringSkipper | None = None
        self._fed = 0  # bytes of the stream before what is at work now

    def feed(self, data: bytes) -> None:
        """Take in the next bytes."""
        if self._held:
            data = self._held + data
        end = whole_characters(data)
        taken = self._take(data[:end] if end < len(data) else data)
        self._held = data[taken:]
        self._fed += taken

    def close(self) -> None:
        """Nothing more comes: a character that was begun is shown as a broken one."""
        if self._held and self._held[0] >= 0x80 and self._string is None:
            self.print(self._held)
        self._fed += len(self._held)
        self._held = b""
        self.began = self.position = self._fed

    def resize(self, columns: int, rows: int) -> None:
        """Another size; what does not fit at the top of the main screen is scrolled off, as if more had been printed."""
        columns, rows = _clamp_size(columns), _clamp_size(rows)
        while self.rows > rows:
            self._lose_row()
        spare = rows - self.rows
        if columns != self.columns or spare:
            self.blank, self.no_inks = " " * columns, NO_INK * columns
            for cells, inks, wrapped in filter(None, ((self.cells, self.inks, self.wrapped), self._main)):
                cells[:] = [row[:columns].ljust(columns) for row in cells] + [self.blank] * spare
                inks[:] = [row[:columns].ljust(columns, NO_INK) for row in inks] + [self.no_inks] * spare
                wrapped += [False] * spare
        self.columns, self.rows = columns, rows
        self.top, self.bottom = 0, rows - 1
        self.x, self.y = min(self.x, columns - 1), min(self.y, rows - 1)

    def lines(self) -> list[str]:
        """The text of every row, without trailing blanks."""
        return [self.alphabet.characters(row).rstrip() for row in self.cells]

    def colours(self) -> list[list[int | None]]:
        """The foreground colour of every cell."""
        return [[self.palette.colour(ink) for ink in row] for row in self.inks]

    # reading the stream ---------------------------------------------------------------------------------------------
    def _take(self, data: bytes) -> int:
        """Act on `data` as far as it is complete; how far that is."""
        place = 0
        while place < len(data):
            if self._string is not None:
                place = self._string.skip(data, place)
                if not self._string.done:
                    return place
                self._string = None
            place, more = self._take_regular(data, place)
            if more:
                return place
        return place

    def _take_regular(self, data: bytes, place: int) -> tuple[int, bool]:
        """Up to the next irregular stretch and over it; whether the rest has to wait."""
        known, fed = known_actions, self._fed
        for token in TOKEN.finditer(data, place):
            kind = token.lastindex
            if kind == CSI_AND_TEXT:
                sequence, text = token.groups()[:2]
                action, arguments = known.get(sequence) or action_of(sequence)
                if action is not None:
                    self.began, self.position = fed + token.start(), fed + token.end(1)
                    action(self, *arguments)
                if text:
                    self.print(text)
            elif kind == TEXT:
                self.print(token[TEXT])
            elif kind == CONTROLS:
                self._control(token[CONTROLS])
            else:
                self.began, self.position = fed + token.start(), fed + token.end()
                if not self._escape(kind or 0, token[0]):
                    return self._take_irregular(data, token.start())
        return len(data), False

    def _control(self, characters: bytes) -> None:
        for character in characters:
            act = CHARACTERS.get(character)
            if act is not None:
                act(self)

    def _escape(self, kind: int, token: bytes) -> bool:
        """Whether it was one of the regular escapes."""
        if kind == ESCAPE:
            act = ESCAPES.get(token[1:])
            if act is not None:
                act(self)
        elif kind == CHARSET:
            drawing = token[2:] == b"0"
            self.sets = (drawing, self.sets[1]) if token[1:2] == b"(" else (self.sets[0], drawing)
        elif kind == COMMAND:
            if self.on_title is not None and token[2:4] in (b"0;", b"2;"):
                self.on_title(token[4:].rstrip(b"\x07\x1b\\").decode("utf-8", "replace"))
        else:
            return False
        return True

    def _take_irregular(self, data: bytes, start: int) -> tuple[int, bool]:
        end, controls, sequence, string = read_irregular(data, start)
        if end < 0:
            return start, True
        self.position = self._fed + end
        self._control(controls)
        if string is not None:
            self._string = StringSkipper(string)
        elif sequence[:1] == b"\x1b":
            ESCAPES.get(sequence[1:], lambda _: None)(self)
        elif sequence:
            action, arguments = action_of(sequence)
            if action is not None:
                action(self, *arguments)
        return end, False

    def print(self, text: bytes) -> None:
        """Show a run of text without control characters."""
        if text.isascii():
            cells = text.decode("ascii")
            self.joiner = False
            if self.sets[self.shifted]:
                cells = cells.translate(LINE_DRAWING)
            if self.wraps and not self.inserts:
                self.put(cells)
            else:
                self.put_singly(cells)
        else:
            self._print_wide(text.decode("utf-8", "replace"))

    def _print_wide(self, characters: str) -> None:
        if self.sets[self.shifted]:
            characters = characters.translate(LINE_DRAWING)
        if not self.wraps or self.inserts:
            self.put_singly(characters)
            return
        if self.joiner:
            characters = JOINER + characters
        lead, cells, self.joiner = self.alphabet.layout(characters)
        if lead:
            self.combine(lead)
        if cells:
            self.put(cells)

    def _lose_row(self) -> None:
        """Make the screen one row smaller: blank rows at the bottom go first."""
        last = self.rows - 1
        shown = self.cells, self.inks, self.wrapped
        for cells, inks, wrapped in filter(None, (shown, self._main)):
            is_shown = cells is self.cells
            gone = last if cells[last] == self.blank and (self.y < last or not is_shown) else 0
            if gone == 0 and self.on_scroll is not None and not (is_shown and self.alternate):
                self.on_scroll(cells[0], inks[0])
            del cells[gone], inks[gone], wrapped[gone]
            if gone == 0 and is_shown:
                self.y = max(0, self.y - 1)
        self.rows = last


def _clamp_size(size: int) -> int:
    return min(max(size, SMALLEST), LARGEST)
