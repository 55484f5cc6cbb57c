"""Find out how large the screen was. Most recordings say it at their start, and few say when it changed.

The size of a screen shows in where a program writes: a full-screen program paints every row after a change of size. A change
is looked for where programs clear the screen or ask for its size (`find_changes`).

Timing files of the older form have no place for changes either (`follow_sizes`). A program that draws a rule over the whole width and
wipes what it drew row by row shows how large it takes the screen to be: no rule is longer than a row, nobody goes up more rows than
there are, and who wipes the whole screen row by row tells how many there are. A screen that is too large does little harm; one that
is too small folds and loses lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from everturn.sources.terminal.screen import LARGEST, SMALLEST, TerminalScreen
from everturn.sources.terminal.transcript import OutputChunk, TerminalRecording

#: What terminals have when nobody says otherwise.
DEFAULT: Final = (80, 24)

Size = tuple[int, int]  # columns and rows

_LOOKED_AT = 512 << 10  # bytes that are looked at for a guess
_FIRST_SCREENS = 128 << 10  # a program that fills the screen does so at once
_REPAINT = 24 << 10  # bytes after a change of size in which everything is painted
_LEAST = 400  # bytes in which nothing is painted anew
_TALLEST, _WIDEST = 300, 600  # cells: more is a way to say "the very last one"
_ROW = re.compile(rb"\x1b\[(\d{1,4})(?:;\d{0,4})?[Hfd]|\x1b\[\d*;(\d{1,4})r|\x1b\[(\d{1,4})A")
_PLACE = re.compile(rb"\x1b\[(\d{1,4})(?:;(\d{1,4}))?[Hf]|\x1b\[(\d{1,4})d")
_ENTER, _LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
_MAY_CHANGE = re.compile(rb"\x1b\[2J|\x1b\[14t|\x1b\[(?:1;1)?H\x1b\[0?J")
_FEWEST_ROWS, _FEWEST_COLUMNS = 8, 30
_PAINTED = 0.75  # of the rows
_SPARE = 2  # cells
_RULE = re.compile(rb"[\n\rGmK](?:\xe2\x94\x80){20,1000}(?=[\r\n\x1b])")
_WIPED = re.compile(rb"(?:\x1b\[2K\x1b\[1A){4,1000}")
_SCREEN = re.compile(rb"\x1b\[H((?:\x1b\[2K\x1b\[1B){5,1000})\x1b\[H")
_SCREEN_BEGINS = b"\x1b[H\x1b[2K\x1b[1B"
_RULE_SIGN, _WIPED_ROW = 3, 8  # bytes


def sensible_size(columns: int | str, rows: int | str) -> Size | None:
    """Return both as numbers when a terminal can have them."""
    try:
        width, height = int(columns), int(rows)
    except ValueError:
        return None
    return (width, height) if SMALLEST <= width <= LARGEST and SMALLEST <= height <= LARGEST else None


def guess_size(data: bytes) -> Size:
    """Return columns and rows: as far right and down as anything was written.

    A program that fills the screen comes first: what the shell before it printed says nothing of the screen's size.
    """
    begin = data.find(_ENTER)
    looked_at = data[:_LOOKED_AT] if begin < 0 else data[begin : begin + _FIRST_SCREENS]
    ruler = _Ruler(_WIDEST, _rows(looked_at))
    ruler.feed(looked_at)
    return max(ruler.widest, DEFAULT[0]), ruler.rows


def find_changes(data: bytes, size: Size) -> list[tuple[int, Size]]:
    """Return the offsets at which a full-screen program found itself in a screen of another size, and that size."""
    found: list[tuple[int, Size]] = []
    fills = False  # the program paints its screen to the edges: what it does not paint is not there
    for start, end in _stretches(data):
        measured = _measure(data, start, end) if end - start >= _LEAST else None
        if measured is None:
            continue
        if _is_like(measured, size):
            fills = True
        elif fills or measured[0] > size[0] or measured[1] > size[1]:
            size, fills = measured, True
            found.append((start, size))
    return found


def _is_like(measured: Size, size: Size) -> bool:
    """Return whether a size is the known one, of which a program left the last column or row empty."""
    return 0 <= size[0] - measured[0] <= _SPARE and 0 <= size[1] - measured[1] <= _SPARE


def with_changes(chunks: Iterable[OutputChunk], changes: list[tuple[int, Size]]) -> Iterator[OutputChunk]:
    """Pass the chunks on, cut where the size changes."""
    pending = list(changes)
    for chunk in chunks:
        while pending and chunk.end - chunk.start == len(chunk.data) and pending[0][0] < chunk.end:
            place, size = pending.pop(0)
            cut = max(0, place - chunk.start)
            if cut:
                yield chunk._replace(data=chunk.data[:cut], end=chunk.start + cut)
            chunk = chunk._replace(data=chunk.data[cut:], start=chunk.start + cut, size=size)
        yield chunk


def _stretches(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the stretches of output on the alternate screen in which the size stayed the same."""
    begin = data.find(_ENTER)
    while begin >= 0:
        leave = data.find(_LEAVE, begin)
        end = leave if leave >= 0 else len(data)
        places = [*(match.start() for match in _MAY_CHANGE.finditer(data, begin, end)), end]
        yield from pairwise(places)
        begin = data.find(_ENTER, end)


def _measure(data: bytes, start: int, end: int) -> Size | None:
    """Return the size of the screen that a stretch painted; None when it was not painted as a whole."""
    ruler = _Ruler(_WIDEST, _TALLEST)
    ruler.feed(data[start : min(end, start + _REPAINT)])
    rows, columns = ruler.lowest + 1, ruler.widest
    written = {place[0] for place in _PLACE.finditer(data, start, end)}  # the same ones come again and again
    for row, column, alone in _PLACE.findall(b"".join(written)):
        rows = max(rows, int(row or alone))
        columns = max(columns, int(column or 0))
    if rows > _TALLEST or rows < _FEWEST_ROWS or columns < _FEWEST_COLUMNS:
        return None
    return sensible_size(columns, rows) if len(ruler.painted) >= _PAINTED * rows else None


def _rows(data: bytes) -> int:
    rows = DEFAULT[1]
    for absolute, region, upward in _ROW.findall(data):
        row = int(absolute or region or 0) or int(upward or 0) + 1
        if rows < row <= _TALLEST:
            rows = row
    return rows


# what the output implies -----------------------------------------------------------------------------------------------
def follow_sizes(recording: TerminalRecording) -> TerminalRecording:
    """Return the recording with a size wherever its output needs a larger screen than it had so far."""
    chunks = list(_needed_sizes(recording))
    if not chunks:
        return recording
    sizes = dict(chunks)

    def follow() -> Iterator[OutputChunk]:
        for number, chunk in enumerate(_split_chunks(recording)):
            yield chunk._replace(size=sizes[number]) if number in sizes else chunk

    return recording._replace(chunks=follow)


def _needed_sizes(recording: TerminalRecording) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the numbers of chunks from which on the screen has another size, and which; none where sizes are recorded."""
    columns, rows = recording.columns, recording.rows
    spans = [[0, columns, rows]]  # first chunk, columns, rows
    wiped: int | None = None  # chunk in which the screen was wiped, until the next rule
    for number, chunk in enumerate(_split_chunks(recording)):
        if chunk.size is not None and number:
            return
        wide, tall = _measure_parts(chunk.data)
        if exact := _count_wiped_rows(chunk.data):
            wiped = number
            if exact != rows:
                rows = exact
                spans.append([number, columns, rows])
        if wide > columns:
            columns = wide
            spans.append([number if wiped is None else wiped, columns, rows])
        wiped = None if wide else wiped
        spans[-1][2] = max(spans[-1][2], tall)
    if spans != [[0, recording.columns, recording.rows]]:
        for first, width, height in spans:
            yield first, (width, height)


def _split_chunks(recording: TerminalRecording) -> Iterator[OutputChunk]:
    """Yield the chunks of a recording, cut where the screen is wiped: there its size may have changed."""
    for chunk in recording.chunks():
        places = [found.start() for found in _SCREEN.finditer(chunk.data)] if _SCREEN_BEGINS in chunk.data else []
        if not places or chunk.end - chunk.start != len(chunk.data):
            yield chunk
            continue
        for start, end in pairwise(dict.fromkeys((0, *places, len(chunk.data)))):
            yield chunk._replace(data=chunk.data[start:end], start=chunk.start + start, end=chunk.start + end)


def _count_wiped_rows(data: bytes) -> int:
    """Return how many rows the screen has, where all of them are wiped one by one from the top; 0 where they are not."""
    found = _SCREEN.search(data) if _SCREEN_BEGINS in data else None
    rows = len(found[1]) // _WIPED_ROW if found else 0
    return rows if rows <= _TALLEST else 0


def _measure_parts(data: bytes) -> tuple[int, int]:
    """Return the length of the longest rule and the height of the tallest part that was wiped."""
    rules = [len(found) - 1 for found in _RULE.findall(data)] if b"\xe2\x94\x80" * 20 in data else []
    wiped = [len(found) for found in _WIPED.findall(data)] if b"\x1b[2K\x1b[1A" in data else []
    wide, tall = max(rules, default=0) // _RULE_SIGN, max(wiped, default=0) // _WIPED_ROW + 1
    return (wide if wide <= _WIDEST else 0), (tall if tall <= _TALLEST else 0)


class _Ruler(TerminalScreen):
    """A very large terminal that remembers how far right and down it was written, but not what."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__(columns, rows)
        self.widest = self.lowest = 0
        self.painted: set[int] = set()

    def put(self, cells: str) -> None:
        end = self.x + len(cells)
        if end > self.columns:
            self._put_wrapping(cells)
            return
        self.x, self.printed = end, cells
        if end > self.widest:
            self.widest = end
        if self.y not in self.painted:
            self.painted.add(self.y)
            self.lowest = max(self.lowest, self.y)

    def _blank(self, y: int, start: int, end: int) -> None:
        """Nothing is kept that could be erased."""

    def blank_rows(self, start: int, end: int) -> None:
        """Nothing is kept that could be erased."""
