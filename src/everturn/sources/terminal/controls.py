"""The control functions of a terminal: the cursor, tab stops, modes, the alternate screen, resets.

`actions` says which sequence is which function.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from everturn.sources.terminal.grid import NO_INK, Grid, ScrollHook
from everturn.sources.terminal.transcript import Colour

#: Called with what happens and where in the stream: see `screen`.
MarkHook = Callable[[str, int], None]

_FAR_UP = 2  # rows: a jump by more than this begins a repaint
_TAB = 8


class _SavedCursor(NamedTuple):
    """A cursor put aside."""

    x: int = 0
    y: int = 0
    ink: str = NO_INK
    sets: tuple[bool, bool] = (False, False)
    shifted: bool = False
    origin: bool = False


class ControlledGrid(Grid):
    """A grid that obeys control functions."""

    def __init__(
        self, columns: int, rows: int, on_mark: MarkHook | None = None, on_scroll: ScrollHook | None = None
    ) -> None:
        super().__init__(columns, rows, on_scroll)
        self.on_mark = on_mark
        self.fed = 0  # bytes of the stream before what is at work now
        self.token: re.Match[bytes] | None = None  # the sequence at work, in what was fed
        self.range = 0, 0  # where in the stream it starts and ends, if it is no token
        self.hidden = self.synchronized = False
        self._main: tuple[list[str], list[str], list[bool]] | None = None  # put aside while the other screen is shown
        self._outside: tuple[int, int] | None = None  # the cursor, while the other screen is shown
        self._ink_outside = NO_INK
        self.forget_state()

    def forget_state(self) -> None:
        """Everything but the cells as it is when a terminal is switched on."""
        self.top, self.bottom = 0, self.rows - 1
        self.wraps, self.inserts, self.origin = True, False, False
        self.ink = NO_INK
        self.sets, self.shifted = (False, False), False  # line drawing in G0 and G1; which one is in use
        self.tabs = set(range(_TAB, self.columns, _TAB))
        self._saved = _SavedCursor()

    @property
    def began(self) -> int:
        """Where in the stream the sequence at work starts."""
        return self.range[0] if self.token is None else self.fed + self.token.start()

    @property
    def position(self) -> int:
        """Where in the stream the sequence at work ends; text behind it is not part of it."""
        if self.token is None:
            return self.range[1]
        return self.fed + (self.token.end(1) if self.token[1] else self.token.end())

    def mark(self, what: str, after: bool = False) -> None:
        if self.on_mark is not None:
            self.on_mark(what, self.position if after else self.began)

    # cursor ---------------------------------------------------------------------------------------------------------
    def _go(self, x: int, y: int) -> None:
        y = min(max(y, 0), self.rows - 1)
        if y < self.y - _FAR_UP:
            self.mark("jump")
        self.x, self.y = min(max(x, 0), self.columns - 1), y

    def move_to(self, row: int, column: int) -> None:
        y = self._row(row) if self.origin else row - 1
        if y >= self.rows:
            y = self.rows - 1
        if y < self.y - _FAR_UP:
            self.mark("jump")
        self.x = column - 1 if column < self.columns else self.columns - 1
        self.y = y

    def move_to_row(self, row: int) -> None:
        y = self._row(row)
        if y < self.y - _FAR_UP:
            self.mark("jump")
        self.y = y

    def _row(self, row: int) -> int:
        y = row - 1
        if self.origin:
            y = self.bottom if y > self.bottom - self.top else y + self.top
        return min(y, self.rows - 1)

    def move_to_column(self, column: int) -> None:
        self.x = min(column, self.columns) - 1

    def up(self, count: int) -> None:
        limit = self.top if self.y >= self.top else 0
        self._go(self.x, max(self.y - count, limit))

    def down(self, count: int) -> None:
        limit = self.bottom if self.y <= self.bottom else self.rows - 1
        self._go(self.x, min(self.y + count, limit))

    def right(self, count: int) -> None:
        self.x = min(self.x + count, self.columns - 1)

    def left(self, count: int) -> None:
        self.x = max(self.x - count, 0)

    def next_line(self, count: int) -> None:
        self.x = 0
        self.down(count)

    def previous_line(self, count: int) -> None:
        self.x = 0
        self.up(count)

    def carriage_return(self) -> None:
        self.x = 0

    def new_line(self) -> None:
        self.x = 0
        self.line_feed()

    def backspace(self) -> None:
        if self.x > 0:
            self.x -= 1
        elif self.y > 0 and self.wrapped[self.y - 1]:
            self.x, self.y = self.columns - 1, self.y - 1

    def reverse_index(self) -> None:
        if self.y == self.top:
            self.scroll_down(1)
        elif self.y > 0:
            self.y -= 1

    def save_cursor(self) -> None:
        self._saved = _SavedCursor(self.x, self.y, self.ink, self.sets, self.shifted, self.origin)

    def restore_cursor(self) -> None:
        x, y, self.ink, self.sets, self.shifted, self.origin = self._saved
        self._go(x, y)

    # tabs -----------------------------------------------------------------------------------------------------------
    def tab(self, count: int = 1) -> None:
        last = self.columns - 1
        for _ in range(min(count, self.columns)):
            if self.x < last:
                self.x = min((stop for stop in self.tabs if stop > self.x), default=last)
        self.x = min(self.x, self.columns)

    def back_tab(self, count: int) -> None:
        self.x = min(self.x, self.columns - 1)
        for _ in range(min(count, self.columns)):
            self.x = max((stop for stop in self.tabs if stop < self.x), default=0)

    def set_tab(self) -> None:
        if self.x < self.columns:
            self.tabs.add(self.x)

    def clear_tab(self, which: int) -> None:
        if which == 0:
            self.tabs.discard(self.x)
        elif which == 3:
            self.tabs.clear()

    # erasing and scrolling ------------------------------------------------------------------------------------------
    def erase_in_display(self, how: int) -> None:
        if how == 2 or (how == 0 and self.x == self.y == 0):
            self.mark("clear")
            self.blank_rows(0, self.rows)
        elif how == 0:
            self.erase_in_line(0)
            self.blank_rows(self.y + 1, self.rows)
        elif how == 1:
            self.erase_in_line(1)
            self.blank_rows(0, self.y)
        elif how == 3:
            self.mark("forget")

    def insert_lines(self, count: int) -> None:
        if self.top <= self.y <= self.bottom:
            self.insert_rows(self.y, self.bottom, count)

    def delete_lines(self, count: int) -> None:
        if self.top <= self.y <= self.bottom:
            self.delete_rows(self.y, self.bottom, count)

    def set_region(self, first: int, last: int) -> None:
        top, bottom = min(first or 1, self.rows) - 1, min(last or self.rows, self.rows) - 1
        if top < bottom:
            self.top, self.bottom = top, bottom
            self._go(0, 0)

    def alignment_test(self) -> None:
        self.cells = ["E" * self.columns] * self.rows
        self.inks = [self.no_inks] * self.rows
        self.top, self.bottom, self.x, self.y = 0, self.rows - 1, 0, 0

    # modes ----------------------------------------------------------------------------------------------------------
    def colour(self, colour: Colour) -> None:
        self.ink = self.palette.characters.get(colour) or self.palette.ink(colour)

    def shift(self, shifted: bool) -> None:
        self.shifted = shifted

    def set_mode(self, modes: tuple[int, ...], on: bool) -> None:
        if 4 in modes:
            self.inserts = on

    def set_private_mode(self, modes: tuple[int, ...], on: bool) -> None:
        for mode in modes:
            switch = _PRIVATE_MODES.get(mode)
            if switch is not None:
                switch(self, on)

    def _set_columns(self, _on: bool) -> None:
        self._go(0, self._row(1))
        self.mark("clear")
        self.blank_rows(0, self.rows)

    def _set_origin(self, on: bool) -> None:
        self.origin = on
        self._go(0, self._row(1))

    def _set_wrapping(self, on: bool) -> None:
        self.wraps = on

    def _set_cursor_shown(self, on: bool) -> None:
        if on and self.hidden:
            self.mark("show", after=True)
        self.hidden = not on

    def _set_synchronized(self, on: bool) -> None:
        ends = self.synchronized and not on
        self.synchronized = on
        if ends:
            self.mark("sync", after=True)

    def _set_alternate(self, on: bool) -> None:
        if on and self._main is None:
            self.mark("enter")
            self._main = self.cells, self.inks, self.wrapped
            self._ink_outside = self.ink
            self.alternate = True
            self.clean()
        elif not on:
            self.x = min(self.x, self.columns - 1)
            if self._main is not None:
                self.mark("leave")
                self.cells, self.inks, self.wrapped = self._main
                self._main, self.alternate, self.synchronized = None, False, False

    def _set_alternate_and_cursor(self, on: bool) -> None:
        if on and self._main is None:
            self._outside = self.x, self.y
        self._set_alternate(on)
        if not on and self._outside is not None:
            x, y = self._outside
            self.x, self.y, self.ink = min(x, self.columns - 1), min(y, self.rows - 1), self._ink_outside

    def soft_reset(self) -> None:
        x, y, tabs = self.x, self.y, self.tabs
        self.forget_state()
        self.x, self.y, self.tabs, self.hidden = x, y, tabs, False

    def reset(self) -> None:
        self._set_alternate(False)
        self.mark("clear")
        self.forget_state()
        self.clean()
        self.x = self.y = 0
        self.hidden = self.synchronized = False


_PRIVATE_MODES: dict[int, Callable[[Any, bool], None]] = {
    3: ControlledGrid._set_columns,
    6: ControlledGrid._set_origin,
    7: ControlledGrid._set_wrapping,
    25: ControlledGrid._set_cursor_shown,
    47: ControlledGrid._set_alternate,
    1047: ControlledGrid._set_alternate,
    1049: ControlledGrid._set_alternate_and_cursor,
    2026: ControlledGrid._set_synchronized,
}
