"""When a screen is complete, and what it shows then.

A recording is one long stream; a person saw a series of screens. A screen is taken

- at the end of a synchronized update,
- when the cursor is shown again after it was hidden,
- before the cursor jumps up by more than two rows, and where output pauses,

the better mark winning: a program that marks its updates is not looked at in the middle of them. Always taken is what
stands there before the screen is cleared, before the alternate screen comes or goes, and in the end. Between them come
the rows that scroll off the main screen. Only one screen is kept at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from operator import is_
from typing import Final, NamedTuple

from everturn.sources.terminal.chunks import OutputChunk, TerminalRecording
from everturn.sources.terminal.grid import NO_INK
from everturn.sources.terminal.screen import TerminalScreen

#: Output that pauses for longer shows a finished screen.
_PAUSE = 0.01  # seconds

#: How well a mark tells that a screen is complete; those without a rank are always taken.
_RANKS: Final = {"jump": 1, "pause": 1, "show": 2, "sync": 3}

#: After this much output without a better mark, lesser ones count again.
_TRUST = 128 << 10  # bytes

_MOST_KNOWN = 2_000  # rows remembered by how they look


class PaintedRow:
    """A row as it stands on the screen. Rows that did not change are the same object in the next frame."""

    __slots__ = ("cells", "inks", "left", "text")

    def __init__(self, text: str, cells: str, inks: str) -> None:
        self.text = text  # without trailing blanks
        self.cells = cells
        self.inks = inks
        self.left: PaintedRow | None = None  # this row without a sidebar, once somebody asked


class Shift(NamedTuple):
    """Rows `top` to `bottom` were moved up (or down, when negative) by the terminal itself."""

    top: int
    bottom: int
    distance: int


class ScreenFrame(NamedTuple):
    """A complete screen. Offsets are places in the recording file."""

    rows: Sequence[PaintedRow]
    why: str
    alternate: bool
    start: int  # after the frame before it
    end: int
    at: int | None  # milliseconds, UTC
    shift: Shift | None = None  # since the frame before, when it was one


class ScrolledRow(NamedTuple):
    """A row that left the main screen at the top."""

    row: PaintedRow
    end: int
    at: int | None


class Frames:
    """Replays a recording. Going through it gives frames and scrolled rows in the order they came."""

    def __init__(self, recording: TerminalRecording) -> None:
        self._recording = recording
        self.screen = TerminalScreen(recording.columns, recording.rows, on_mark=self._mark, on_scroll=self._scroll)
        self._known: dict[str, PaintedRow] = {}
        self._events: deque[ScreenFrame | ScrolledRow] = deque()
        self._rows: list[PaintedRow] = [self._paint_row(" ", NO_INK)] * recording.rows
        self._chunk = OutputChunk(b"", 0, 0)
        self._fed = 0  # bytes before the chunk at work
        self._taken = 0  # end of the last frame
        self._trusted = (0, 0)  # rank of the best mark lately, and where it was
        self.elapsed: float | None = None

    def __iter__(self) -> Iterator[ScreenFrame | ScrolledRow]:
        for chunk in self._recording.chunks():
            self._begin(chunk)
            self.screen.feed(chunk.data)
            self._fed += len(chunk.data)
            while self._events:
                yield self._events.popleft()
        self.screen.close()
        self._take("end", self._chunk.end)
        yield from self._events
        self._events.clear()

    def _begin(self, chunk: OutputChunk) -> None:
        if chunk.elapsed is not None:
            if self.elapsed is not None and chunk.elapsed - self.elapsed > _PAUSE:
                self._take_mark("pause", self._chunk.end)
            self.elapsed = chunk.elapsed
        self._chunk = chunk
        if chunk.size is not None and chunk.size != (self.screen.columns, self.screen.rows):
            self._take("resize", chunk.start)
            self.screen.resize(*chunk.size)

    # what the screen reports ----------------------------------------------------------------------------------------
    def _mark(self, what: str, position: int) -> None:
        self._take_mark(what, self._place(position))

    def _take_mark(self, what: str, place: int) -> None:
        rank = _RANKS.get(what)
        if rank is not None and not self._is_trusted(rank, place):
            return
        if what in ("enter", "leave"):
            self._trusted = (0, place)
        self._take(what, place)

    def _is_trusted(self, rank: int, place: int) -> bool:
        best, seen = self._trusted
        if self.screen.synchronized or (rank < best and place - seen < _TRUST):
            return False
        self._trusted = (rank, place)
        return True

    def _scroll(self, cells: str, inks: str) -> None:
        place = self._place(self.screen.position)
        self._events.append(ScrolledRow(self._paint_row(cells, inks), place, self._moment()))

    def _take(self, why: str, place: int) -> None:
        rows = self._changed_rows()
        if rows is self._rows and why in _RANKS:
            return
        self._rows = rows
        frame = ScreenFrame(rows, why, self.screen.alternate, self._taken, place, self._moment(), self._shift())
        self._events.append(frame)
        self._taken = place

    def _shift(self) -> Shift | None:
        """How the screen was scrolled, if it was one region by one distance."""
        shifts = [Shift(top, bottom, distance) for (top, bottom), distance in self.screen.shifts.items() if distance]
        self.screen.shifts.clear()
        return shifts[0] if len(shifts) == 1 else None

    def _changed_rows(self) -> list[PaintedRow]:
        """The rows of the screen; the same list as before when nothing changed."""
        screen, before = self.screen, self._rows
        rows = [
            row if row.cells is cells and row.inks is inks else self._repaint_row(row, cells, inks)
            for row, cells, inks in zip(before, screen.cells, screen.inks, strict=False)
        ]
        rows += [
            self._paint_row(screen.cells[y], screen.inks[y]) for y in range(len(rows), len(screen.cells))
        ]  # after a resize
        return before if len(rows) == len(before) and all(map(is_, rows, before)) else rows

    def _repaint_row(self, row: PaintedRow, cells: str, inks: str) -> PaintedRow:
        if row.cells == cells and row.inks == inks:
            row.cells, row.inks = cells, inks  # painted over with the same: known at a glance the next time
            return row
        return self._paint_row(cells, inks)

    def _paint_row(self, cells: str, inks: str) -> PaintedRow:
        """A row; the same object when it looked like this before, as rows do that scroll or go through a cycle."""
        known = self._known.get(cells)
        if known is None or known.inks != inks:
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            known = PaintedRow(self.screen.alphabet.characters(cells).rstrip(), cells, inks)
            self._known[cells] = known
        return known

    # where and when -------------------------------------------------------------------------------------------------
    def _place(self, position: int) -> int:
        """The offset in the file of a position in the stream of output."""
        chunk = self._chunk
        if chunk.end - chunk.start != len(chunk.data):
            return chunk.end  # the file holds it in another form
        return min(max(chunk.start + position - self._fed, chunk.start), chunk.end)

    def _moment(self) -> int | None:
        if self._recording.started is None or self.elapsed is None:
            return None
        return self._recording.started + round(self.elapsed * 1000)
