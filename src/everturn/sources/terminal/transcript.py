"""What a terminal recording comes down to: lines of text in the order a reader would meet them, with their evidence.

`screen` replays bytes, `recordings` takes the container formats apart, `frames` says when a screen is complete, `stitch`
joins scrolled screens into one `TerminalTranscript`; the readers of screens (`boxes`, `panels`, `prompts` …) make turns of it.
"""

from __future__ import annotations

from msgspec import Struct

#: A colour as 0xRRGGBB; palette colours 0–255 are turned into their usual RGB; None is the terminal's default.
Colour = int | None


class Run(Struct, frozen=True):
    """A stretch of a line in one foreground colour."""

    start: int  # cells
    end: int
    colour: Colour


class TranscriptLine(Struct, frozen=True):
    """One line of the clean transcript. Byte offsets count from the start of the recording file."""

    text: str  # without trailing blanks
    runs: tuple[Run, ...] = ()  # only coloured stretches, in order
    first: int = 0  # byte offset from which on it was drawn
    last: int = 0  # byte offset after which it did not change any more
    at: int | None = None  # milliseconds, UTC, when the recording has times


class TranscriptSegment(Struct, frozen=True):
    """Lines that were seen to follow each other. A new one starts where nothing joins two screens: `/new`, a gap, a menu."""

    lines: tuple[TranscriptLine, ...]
    alternate: bool = True  # drawn on the alternate screen (full-screen program) or scrolled on the main one
    cut_top: bool = False  # what stood above was never drawn
    title: str = ""  # chrome rows at the top, joined (session title, tokens), last state
    footer: str = ""  # chrome rows at the bottom, joined, last state


class TerminalTranscript(Struct, frozen=True):
    """A whole recording."""

    segments: tuple[TranscriptSegment, ...]
    columns: int
    rows: int
    started: int | None = None  # milliseconds, UTC
    ended: int | None = None
    command: str = ""  # what was recorded, when the header says so
    exit_status: int | None = None
    zone: int | None = None  # minutes east of UTC its clock stood at, when the header says so
