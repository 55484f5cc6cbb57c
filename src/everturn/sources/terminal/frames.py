"""When a screen is complete, and what it shows then.

A recording is one long stream; a person saw a series of screens. A screen is taken

- at the end of a synchronized update,
- when the cursor is shown again after it was hidden,
- before the cursor jumps up by more than two rows, and where output pauses,

the better mark winning: a program that marks its updates is not looked at in the middle of them. Always taken is what
stands there before the screen is cleared, before the alternate screen comes or goes, and in the end. Between them come
the rows that scroll off the main screen. Only one screen is kept at a time.

Where the rows of a screen stand in what was read before.

Lines that occur once on either side are anchors. Those that keep their order make blocks of equal distance; several
blocks mean that lines came in, or went away, between them. Where no line is rare enough, all equal lines vote for a
distance, each the less the more often it occurs.

How one program divides its screen: the conversation, the input field, and what is drawn around and over them.

A reader of screens that knows the program's screen says so with a `ScreenLayout`. Where no reader does, `chrome` works the
division out from what stays while the rest scrolls.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from operator import is_
from typing import Final, NamedTuple

from everturn.sources.terminal.grid import NO_INK
from everturn.sources.terminal.rows import cut, width
from everturn.sources.terminal.screen import TerminalScreen
from everturn.sources.terminal.transcript import OutputChunk, TerminalRecording

#: Output that pauses for longer shows a finished screen.
_PAUSE = 0.01  # seconds

#: How well a mark tells that a screen is complete; those without a rank are always taken.
_RANKS: Final = {"jump": 1, "pause": 1, "show": 2, "sync": 3}

#: After this much output without a better mark, lesser ones count again.
_TRUST = 128 << 10  # bytes

_MOST_KNOWN = 2_000  # rows remembered by how they look


class PaintedRow:
    """A row as it stands on the screen. Rows that did not change are the same object in the next frame."""

    __slots__ = ("cells", "covered", "inks", "left", "text")

    def __init__(self, text: str, cells: str, inks: str, covered: bool = False) -> None:
        self.text = text  # without trailing blanks
        self.covered = covered  # something hides the row from where the text ends
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


_WORD = re.compile(r"[^\W_]")
_ENOUGH_VOTES = 1.5
_MOST_PLACES = 6  # a line that stands in more places has no vote
_FEWEST_ROWS = 3  # that overlap
_NEAR = 3  # a lone anchor may be this far from its neighbours


class RowBlock(NamedTuple):
    """Rows `first` to `last` stand at `first + distance` to `last + distance`."""

    first: int
    last: int
    distance: int


def is_telling(text: str) -> bool:
    """Whether a line has something in it that frames, rules and blanks have not."""
    return _WORD.search(text) is not None


def blocks(lines: Sequence[str], places: Iterable[int], rows: Sequence[str]) -> list[RowBlock]:
    """Blocks of rows that stand in `lines`, looked for at `places`; in order, and as large as can be."""
    where = _places_of_lines(lines, places)
    seen = Counter(row for row in rows if row)
    anchors = [
        (number, where[row][0]) for number, row in enumerate(rows) if seen[row] == 1 and len(where.get(row, ())) == 1
    ]
    found = _strong_blocks(_longest_rising(anchors)) or _vote_blocks(where, rows, seen)
    return _grow_blocks(found, lines, rows)


def overlap(old: Sequence[str], new: Sequence[str]) -> RowBlock | None:
    """The smallest step by which one screen becomes the next, for text in which no line is rare.

    All rows have to agree but the last of the old screen, which may have grown meanwhile.
    """
    for step in range(1, len(old) - _FEWEST_ROWS):
        common = len(old) - step - 1
        if old[step:-1] == new[:common] and sum(map(is_telling, new[:common])) >= _FEWEST_ROWS:
            return RowBlock(0, common - 1, step)
        if old[:common] == new[step : step + common] and sum(map(is_telling, old[:common])) >= _FEWEST_ROWS:
            return RowBlock(step, step + common - 1, -step)
    return None


def _places_of_lines(lines: Sequence[str], places: Iterable[int]) -> dict[str, list[int]]:
    where: dict[str, list[int]] = {}
    for place in places:
        line = lines[place]
        if line:
            where.setdefault(line, []).append(place)
    return where


def _longest_rising(anchors: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of anchors whose places rise as their rows do."""
    ends: list[int] = []  # smallest last place of a run of each length
    last: list[int] = []  # and its anchor
    before: list[int] = []
    for number, (_, place) in enumerate(anchors):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            last.append(number)
        else:
            ends[length], last[length] = place, number
    run = []
    number = last[-1] if last else -1
    while number >= 0:
        run.append(anchors[number])
        number = before[number]
    return run[::-1]


def _strong_blocks(anchors: list[tuple[int, int]]) -> list[RowBlock]:
    """Anchors of equal distance together; a lone one far from the others is chance."""
    found: list[list[int]] = []  # first, last, distance, how many
    for row, place in anchors:
        if found and found[-1][2] == place - row:
            found[-1][1] = row
            found[-1][3] += 1
        else:
            found.append([row, row, place - row, 1])
    if len(found) > 1:
        main = max(found, key=lambda block: block[3])[2]
        found = [block for block in found if block[3] > 1 or abs(block[2] - main) <= _NEAR]
    return [RowBlock(first, last, distance) for first, last, distance, _ in found]


def _vote_blocks(where: dict[str, list[int]], rows: Sequence[str], seen: Counter[str]) -> list[RowBlock]:
    votes: dict[int, float] = {}
    for number, row in enumerate(rows):
        places = where.get(row, ()) if row else ()
        if 0 < len(places) <= _MOST_PLACES and is_telling(row):
            for place in places:
                votes[place - number] = votes.get(place - number, 0.0) + 1 / (len(places) * seen[row])
    if not votes:
        return []
    best, second = [*sorted(votes.values(), reverse=True), 0.0][:2]
    if best < _ENOUGH_VOTES or best == second:
        return []
    distance = max(votes, key=lambda key: votes[key])
    matched = [number for number, row in enumerate(rows) if number + distance in where.get(row, ())]
    return [RowBlock(matched[0], matched[-1], distance)]


def _grow_blocks(found: list[RowBlock], lines: Sequence[str], rows: Sequence[str]) -> list[RowBlock]:
    """Blocks with the equal lines next to them, without overlapping."""
    grown: list[RowBlock] = []
    for number, (first, last, distance) in enumerate(found):
        floor = grown[-1].last + 1 if grown else 0
        lowest = grown[-1].last + grown[-1].distance + 1 if grown else 0
        ceiling = found[number + 1].first if number + 1 < len(found) else len(rows)
        highest = ceiling + found[number + 1].distance if number + 1 < len(found) else len(lines)
        while first > floor and first - 1 + distance >= lowest and rows[first - 1] == lines[first - 1 + distance]:
            first -= 1
        while last + 1 < ceiling and last + 1 + distance < highest and rows[last + 1] == lines[last + 1 + distance]:
            last += 1
        grown.append(RowBlock(first, last, distance))
    return grown


# --- how one program divides its screen ---
BAR = "┃"
_LEFTMOST = 8  # cells: a toast begins further right
_LOGO = re.compile(r" {2,}[█▀▄░]{2,}[█▀▄░ ]*[█▀▄░]{2,}")
_ROWS_OF_LOGO = 2


class ScreenLayout(NamedTuple):
    """One frame of a known program, divided."""

    program: str  # the dialect: boxes | panels | codex
    rows: Sequence[PaintedRow] = ()  # of the conversation, as high as its part of the screen
    state: str = "talk"  # talk; home: no conversation is open; covered: a menu or a dialog hides the conversation
    title: str = ""
    footer: str = ""
    typed: str | None = None  # the text in the input field; None where the field is not shown
    top: int = 0  # rows of the screen above those of the conversation


def shows_logo(rows: Sequence[PaintedRow]) -> bool:
    """Return whether rows show the name of a program in big letters, as its home screen does, on a screen of any width."""
    return sum(row.text[:2] == "  " and _LOGO.match(row.text) is not None for row in rows) >= _ROWS_OF_LOGO


def uncover(rows: Sequence[PaintedRow], first: int, right: int) -> list[PaintedRow]:
    """Take toasts off: boxes at the right edge, near row `first` or below one another. `right` is the width of the rows.

    Rows that are covered already may lie between those of a toast.
    """
    edges = [_edges(row.text, right) for row in rows]
    kept = list(rows)
    may_begin = first
    start = 0
    while start < min(may_begin + 1, len(rows)):
        end = start
        while end < len(rows) and edges[start] and (edges[end] == edges[start] or rows[end].covered):
            end += 1
        if end - start > 1:
            for number in range(start, end):
                if (edge := edges[number]) is not None:
                    kept[number] = cut_row(rows[number], edge[0])
            may_begin = end + 1
        may_begin += rows[start].covered
        start = max(end, start + 1)
    return kept


def uncover_all(rows: Sequence[PaintedRow], right: int) -> list[PaintedRow]:
    """Take toasts off a program of which nothing else ends with a bar at cell `right`: also single rows that are left of one."""
    edges = [_edges(row.text, right) for row in rows]
    return [row if edge is None else cut_row(row, edge[0]) for row, edge in zip(rows, edges, strict=True)]


def cut_row(row: PaintedRow, cell: int) -> PaintedRow:
    """Return a row of which everything from a cell on is hidden."""
    return PaintedRow(cut(row.text, cell)[0].rstrip(), row.cells[:cell], row.inks[:cell], covered=True)


def _edges(text: str, right: int) -> tuple[int, int] | None:
    """Return the cells of the last two bars of a row that ends with one at cell `right`."""
    if not text.endswith(BAR) or width(text) != right:
        return None
    left = width(text[: text.rfind(BAR, 0, -1)])
    return (left, right) if left > _LEFTMOST else None
