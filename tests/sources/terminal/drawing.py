"""Draws a conversation as a full-screen client does: frame by frame, as the bytes a terminal would get.

`Painter` sends only what changed since the last frame, moves the cursor about, repeats blanks with REP and shifts lines
with scroll regions. `Client` has the viewport and the steps of a script; `screens` lays conversations out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

Span = tuple[str, int | None]  # text and its colour
Row = list[Span]

BLUE, PURPLE, DARK, RED, ORANGE = 0x5C9CF5, 0x9D7CD8, 0x141414, 0xE06C75, 0xF5A742
BLACK, MUTED, TEXT = 0x0A0A0A, 0x808080, 0xEEEEEE


@dataclass
class Expected:
    """What a reader must make of one thing that was drawn."""

    role: str
    text: str = ""
    kind: str = "text"
    author: str = ""
    time_text: str = ""
    mode: str = ""
    model: str = ""
    queued: bool = False
    aborted: bool = False
    thinking: str = ""
    duration_ms: int | None = None
    call: dict[str, object] = field(default_factory=dict)


@dataclass
class Block:
    """A part of the conversation: its rows, drawn up to `shown`."""

    rows: list[Row]
    shown: int | None = None
    expected: Expected | None = None

    def visible(self) -> list[Row]:
        """The rows that are there so far."""
        return self.rows if self.shown is None else self.rows[: self.shown]


def plain(row: Row) -> str:
    """A row's text."""
    return "".join(text for text, _ in row)


def fold(text: str, room: int) -> list[str]:
    """Word-wrapped as the clients do it: at blanks only, line breaks kept."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines += textwrap.wrap(line, room, break_long_words=True, break_on_hyphens=False) or [""]
    return lines


class Painter:
    """A terminal's input, frame by frame."""

    def __init__(self, columns: int, rows: int, sync: bool) -> None:
        self.columns, self.rows, self.sync = columns, rows, sync
        self.grid: list[Row] = [[] for _ in range(rows)]
        self.out = bytearray()

    def enter(self) -> None:
        """Switch to the alternate screen."""
        self.send("\x1b[?1049h\x1b[2J\x1b[H\x1b[?25l\x1b]11;?\x07")
        self.grid = [[] for _ in range(self.rows)]

    def leave(self) -> None:
        """Back to the main screen."""
        self.send("\x1b[?1049l\x1b[?25h\x1b[0m")

    def send(self, text: str) -> None:
        """Bytes as they are."""
        self.out += text.encode()

    def frame(self, rows: Sequence[Row], scrolled: tuple[int, int, int] = (0, 0, 0)) -> None:
        """Show these rows. `scrolled` says that the lines top…bottom moved up by n (down when negative)."""
        assert len(rows) == self.rows, (len(rows), self.rows)
        self.send("\x1b[?2026h" if self.sync else "\x1b[?25l")
        if scrolled[2]:
            self._shift(*scrolled)
        for y, row in enumerate(rows):
            if row != self.grid[y]:
                self._row(y, row)
                self.grid[y] = row
        self.send("\x1b[?2026l" if self.sync else "\x1b[?25h")

    def _shift(self, top: int, bottom: int, n: int) -> None:
        region = self.grid[top : bottom + 1]
        count = min(abs(n), len(region))
        if n > 0:
            self.send(f"\x1b[{top + 1};{bottom + 1}r\x1b[{count}S\x1b[r")
            region = [*region[count:], *([] for _ in range(count))]
        else:
            self.send(f"\x1b[{top + 1};{bottom + 1}r\x1b[{top + 1};1H" + "\x1bM" * count + "\x1b[r")
            region = [*([] for _ in range(count)), *region[: len(region) - count]]
        self.grid[top : bottom + 1] = region

    def _row(self, y: int, row: Row) -> None:
        self.send(f"\x1b[{y + 1}d\x1b[1`" if y % 2 else f"\x1b[{y + 1};1H")
        for text, colour in row:
            rgb = "39" if colour is None else f"38;2;{colour >> 16};{colour >> 8 & 255};{colour & 255}"
            self.send(f"\x1b[{rgb}m{_repeated(text)}")
        self.send("\x1b[0m\x1b[K")


def _repeated(text: str) -> str:
    """Runs of blanks as one blank and how often it is repeated."""
    parts = []
    while text:
        words = text.lstrip(" ")
        blanks = len(text) - len(words)
        parts.append(f" \x1b[{blanks - 1}b" if blanks > 4 else " " * blanks)
        end = words.find("     ")
        end = len(words) if end < 0 else end
        parts.append(words[:end])
        text = words[end:]
    return "".join(parts)


class Client:
    """What both generations have in common: a viewport over blocks, and the script's steps."""

    top, bottom = 0, 0  # rows of the client's frame above and below the viewport
    sync = False

    def __init__(self, columns: int = 100, rows: int = 30) -> None:
        self.columns, self.height = columns, rows
        self.painter = Painter(columns, rows, self.sync)
        self.blocks: list[Block] = []
        self.truth: list[list[Expected]] = [[]]
        self.title = "New session"
        self.typed = ""
        self.working = False
        self.offset: int | None = None  # None: at the end
        self.ticks = 0
        self.painter.enter()

    # layout, by generation ------------------------------------------------------------------------------------------
    def header(self) -> list[Row]:
        """Rows above the viewport."""
        raise NotImplementedError

    def footer(self) -> list[Row]:
        """Rows below the viewport."""
        raise NotImplementedError

    def draw(self) -> None:
        """One frame."""
        self.ticks += 1
        room = self.height - self.top - self.bottom
        content = [row for block in self.blocks for row in [*block.visible(), []]]
        last = max(0, len(content) - room)
        offset = last if self.offset is None else min(self.offset, last)
        view = content[offset : offset + room]
        moved = offset - getattr(self, "drawn_offset", 0)
        self.drawn_offset = offset
        rows = [*self.header(), *view, *([[]] * (room - len(view))), *self.footer()]
        self.frame(rows, (self.top, self.top + room - 1, moved if abs(moved) < room // 2 else 0))

    def frame(self, rows: list[Row], scrolled: tuple[int, int, int]) -> None:
        """Send a frame to the terminal."""
        self.painter.frame(rows, scrolled)

    # the script -----------------------------------------------------------------------------------------------------
    def type(self, text: str) -> None:
        """Write into the input field, some letters at a time."""
        for end in range(0, len(text) + 1, max(1, len(text) // 3)):
            self.typed = text[:end]
            self.draw()

    def show(self, block: Block, frames: int = 1, before: Block | None = None) -> None:
        """Add a block, let it grow, and note what it says."""
        place = len(self.blocks) if before is None else self.blocks.index(before)
        self.blocks.insert(place, block)
        for n in range(1, frames + 1):
            block.shown = None if n == frames else max(1, len(block.rows) * n // frames)
            self.draw()
        if block.expected is not None:
            self.truth[-1].append(block.expected)

    def scroll(self, lines: int) -> None:
        """The human looks further up (negative) or down; at the end the view follows again."""
        room = self.height - self.top - self.bottom
        content = sum(len(block.visible()) + 1 for block in self.blocks)
        last = max(0, content - room)
        target = (last if self.offset is None else self.offset) + lines
        step = 3 if lines > 0 else -3
        now = last if self.offset is None else self.offset
        while now != max(0, min(last, target)):
            now = min(now + step, target, last) if step > 0 else max(now + step, target, 0)
            self.offset = now
            self.draw()
        if self.offset is not None and self.offset >= last:
            self.offset = None
        self.draw()

    def rename(self, title: str) -> None:
        """The session gets another title."""
        self.title = title
        self.draw()

    def new(self) -> None:
        """`/new`: the conversation is gone, another one begins."""
        self.type("/new")
        self.typed = ""
        self.blocks, self.offset, self.title = [], None, "New session"
        self.draw()
        self.truth.append([])

    def close(self) -> bytes:
        """The whole recording."""
        self.draw()
        self.painter.leave()
        return bytes(self.painter.out)
