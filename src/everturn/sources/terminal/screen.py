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

Which sequence is which control function.

`action_of` looks a sequence up with its numbers already made out, so that one that comes a second time costs a
dictionary look-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from everturn.sources.terminal.controls import ControlledGrid, MarkHook
from everturn.sources.terminal.grid import JOINER, NO_INK, UNCHANGED, ScrollHook, foreground
from everturn.sources.terminal.sequences import (
    CHARSET,
    COMMAND,
    CONTROLS,
    CSI_AND_TEXT,
    ESCAPE,
    LINE_DRAWING,
    TEXT,
    TOKEN,
    StringSkipper,
    read_irregular,
    whole_characters,
)

#: What a sequence does, and with which arguments; None when it does nothing that shows.
Action = tuple[Callable[..., None] | None, tuple[Any, ...]]

NOTHING: Final[Action] = (None, ())

#: Control characters by their code.
CHARACTERS: Final[dict[int, Callable[[Any], None]]] = {
    0x08: ControlledGrid.backspace,
    0x09: ControlledGrid.tab,
    0x0A: ControlledGrid.line_feed,
    0x0B: ControlledGrid.line_feed,
    0x0C: ControlledGrid.line_feed,
    0x0D: ControlledGrid.carriage_return,
    0x0E: lambda screen: screen.shift(True),
    0x0F: lambda screen: screen.shift(False),
}

#: Escapes by what follows the escape character.
ESCAPES: Final[dict[bytes, Callable[[Any], None]]] = {
    b"7": ControlledGrid.save_cursor,
    b"8": ControlledGrid.restore_cursor,
    b"D": ControlledGrid.line_feed,
    b"E": ControlledGrid.new_line,
    b"H": ControlledGrid.set_tab,
    b"M": ControlledGrid.reverse_index,
    b"c": ControlledGrid.reset,
    b"#8": ControlledGrid.alignment_test,
}

#: Functions by final byte, with the value of each number that is missing; numbers below it count as it.
_FUNCTIONS: dict[bytes, tuple[Callable[..., None], tuple[int, ...]]] = {
    b"@": (ControlledGrid.insert_cells, (1,)),
    b"A": (ControlledGrid.up, (1,)),
    b"B": (ControlledGrid.down, (1,)),
    b"C": (ControlledGrid.right, (1,)),
    b"D": (ControlledGrid.left, (1,)),
    b"E": (ControlledGrid.next_line, (1,)),
    b"F": (ControlledGrid.previous_line, (1,)),
    b"G": (ControlledGrid.move_to_column, (1,)),
    b"H": (ControlledGrid.move_to, (1, 1)),
    b"I": (ControlledGrid.tab, (1,)),
    b"J": (ControlledGrid.erase_in_display, (0,)),
    b"K": (ControlledGrid.erase_in_line, (0,)),
    b"L": (ControlledGrid.insert_lines, (1,)),
    b"M": (ControlledGrid.delete_lines, (1,)),
    b"P": (ControlledGrid.delete_cells, (1,)),
    b"S": (ControlledGrid.scroll_up, (1,)),
    b"T": (ControlledGrid.scroll_down, (1,)),
    b"X": (ControlledGrid.erase_characters, (1,)),
    b"Z": (ControlledGrid.back_tab, (1,)),
    b"`": (ControlledGrid.move_to_column, (1,)),
    b"a": (ControlledGrid.right, (1,)),
    b"b": (ControlledGrid.repeat, (1,)),
    b"d": (ControlledGrid.move_to_row, (1,)),
    b"e": (ControlledGrid.down, (1,)),
    b"f": (ControlledGrid.move_to, (1, 1)),
    b"g": (ControlledGrid.clear_tab, (0,)),
    b"r": (ControlledGrid.set_region, (0, 0)),
    b"s": (ControlledGrid.save_cursor, ()),
    b"u": (ControlledGrid.restore_cursor, ()),
    b"!p": (ControlledGrid.soft_reset, ()),
}
_SWITCHES: dict[bytes, tuple[Callable[..., None], bool]] = {
    b"h": (ControlledGrid.set_mode, True),
    b"l": (ControlledGrid.set_mode, False),
    b"?h": (ControlledGrid.set_private_mode, True),
    b"?l": (ControlledGrid.set_private_mode, False),
}
_SHAPE = re.compile(rb"([<-?]?)([0-9;:]*)([ -/]*[@-~])")
_LARGEST = 99_999
_LONGEST = 128  # bytes of numbers that are looked at
_MOST_KNOWN = 50_000
#: Sequences made out before.
known_actions: Final[dict[bytes, Action]] = {}


def action_of(sequence: bytes) -> Action:
    """Return the action of `CSI sequence`."""
    known = known_actions.get(sequence)
    if known is None:
        if len(known_actions) >= _MOST_KNOWN:
            known_actions.clear()
        known = known_actions[sequence] = _parse_action(sequence)
    return known


def _parse_action(sequence: bytes) -> Action:
    shape = _SHAPE.fullmatch(sequence)
    if shape is None:
        return NOTHING
    prefix, written, final = shape.groups()
    if prefix + final == b"m":
        colour = foreground(written.decode())
        return NOTHING if colour == UNCHANGED else (ControlledGrid.colour, (colour,))
    if b":" in written:
        return NOTHING
    numbers = tuple(min(int(number), _LARGEST) if number else -1 for number in written[:_LONGEST].split(b";"))
    if prefix + final in _SWITCHES:
        switch, on = _SWITCHES[prefix + final]
        return switch, (numbers, on)
    function, defaults = _FUNCTIONS.get(prefix + final, (None, ()))
    given = numbers + (-1,) * len(defaults)
    return function, tuple(max(number, default) for number, default in zip(given, defaults, strict=False))


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

    def feed(self, data: bytes) -> None:
        """Take in the next bytes."""
        if self._held:
            data = self._held + data
        end = whole_characters(data)
        taken = self._take(data[:end] if end < len(data) else data)
        self._held = data[taken:]
        self.range, self.token = (self.began, self.position), None
        self.fed += taken

    def close(self) -> None:
        """Nothing more comes: a character or a sequence that was begun is never shown."""
        self.fed += len(self._held)
        self._held = b""
        self.range, self.token = (self.fed, self.fed), None

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
        known = known_actions
        for token in TOKEN.finditer(data, place):
            kind = token.lastindex
            if kind == CSI_AND_TEXT:
                sequence, text = token.group(1, 2)
                action, arguments = known.get(sequence) or action_of(sequence)
                if action is not None:
                    self.token = token
                    action(self, *arguments)
                if text:
                    self.print(text)
            elif kind == TEXT:
                self.print(token[TEXT])
            elif kind == CONTROLS:
                self._control(token[CONTROLS])
            else:
                self.token = token
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
        self.range, self.token = (self.fed + start, self.fed + end), None
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
