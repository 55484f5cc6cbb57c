"""The transcript of a terminal recording: lines of text in the order a reader would meet them, with their evidence.

`screen` replays bytes, `recordings` takes the container formats apart, `frames` says when a screen is complete, `stitch`
joins scrolled screens into one `TerminalTranscript`; the readers of screens (`boxes`, `panels`, `prompts` …) make turns of it.

What a reader of screens makes of a recording: who said what, in order, and where on the screen it stood.

A `ScreenTalk` is one conversation. Each of its items stands for one thing that was drawn: a prompt, a stretch of an answer, a
tool call, a notice. Nothing is added that was not on a screen: what was cut off is `partial`, and the result of a tool is
always so, because clients draw only its first lines.

What every kind of recording comes down to: pieces of output in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

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
    covered: bool = False  # something hid its end as long as it was on the screen


class TranscriptSegment(Struct, frozen=True):
    """Lines that were seen to follow each other. A new one starts where nothing joins two screens: `/new`, a gap, a menu."""

    lines: tuple[TranscriptLine, ...]
    alternate: bool = True  # drawn on the alternate screen (full-screen program) or scrolled on the main one
    cut_top: bool = False  # what stood above was never drawn
    title: str = ""  # chrome rows at the top, joined (session title, tokens), last state
    footer: str = ""  # chrome rows at the bottom, joined, last state
    program: str = ""  # the dialect, where a layout knew the program
    follows: bool = False  # the program went on: it was neither at its home screen nor away since the segment before
    gone: bool = False  # lines of the segment before that vanished and were not drawn again


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
    emptied: tuple[int, ...] = ()  # the bytes up to which a text had left the input field


#: First and last, both included: lines of the clean transcript (counted over all segments) or bytes of the recording.
Span = tuple[int, int]


class DrawnCall(Struct, frozen=True):
    """A tool call as its title and what was drawn below it tell."""

    name: str  # the client's own name of the tool where the title gives it away, else the title's first word
    kind: str = "other"  # of CALL_KINDS
    title: str = ""  # as drawn
    path: str = ""
    command: str = ""
    pattern: str = ""  # what a search looked for
    prompt: str = ""  # what a task is about
    agent: str = ""  # who was given the task
    arguments: dict[str, str] = {}  # what else the title says, such as limit=20
    status: str = "ok"  # open: it was still waiting or running when last seen; ok; error
    error_class: str = ""  # of ERROR_CLASSES
    action: str = ""  # of ACTIONS, when it went well
    output: str = ""
    fidelity: str = "partial"  # of the output
    steps: tuple[str, ...] = ()  # titles of the calls a subagent made
    diagnostics: tuple[str, ...] = ()  # what the language server complained about
    lines: Span = (0, 0)


class DrawnSaying(Struct, frozen=True):
    """One thing that was drawn."""

    role: str  # of ROLES
    kind: str = "text"  # of MESSAGE_KINDS
    text: str = ""
    thinking: str = ""
    calls: tuple[DrawnCall, ...] = ()
    author: str = ""  # the human's name, where the screen shows it
    mode: str = ""  # the agent that answered: Plan, Build …
    model: str = ""
    time_text: str = ""  # as drawn
    at: int | None = None  # milliseconds, UTC
    precision: str = ""  # of PRECISIONS
    duration_ms: int | None = None  # of the whole turn, where its last item says so
    attached: tuple[str, ...] = ()  # names of files sent along
    step: int = -1  # which response of the model it belongs to, counted within the talk
    starts_turn: bool = False
    queued: bool = False  # was sent while the agent worked
    aborted: bool = False  # the request was stopped by the human or refused
    interrupted: bool = False  # what is here had not come to its end
    lines: Span = (0, 0)
    bytes: Span = (0, 0)
    fidelity: str = "rendered"  # partial: a part of it was never drawn


class ScreenTalk(Struct, frozen=True):
    """One conversation of a recording."""

    dialect: str  # boxes | panels | prompts | codex | gemini | plain
    said: tuple[DrawnSaying, ...] = ()
    titles: tuple[str, ...] = ()  # every title it had, the last is the one it kept
    native_id: str = ""  # when the client printed one
    client: str = ""  # version of the client
    workspace: str = ""
    tokens: int | None = None  # context in use when last shown, rounded as drawn
    percent: int | None = None
    working: bool = False  # the agent was still at work when last seen
    cut_top: bool = False  # it began before the recording


#: Output without times is handed on in pieces of this size.
PIECE = 64 << 10


class OutputChunk(NamedTuple):
    """Bytes sent to the screen, and where in the file they come from."""

    data: bytes
    start: int
    end: int
    elapsed: float | None = None  # seconds since the recording began
    size: tuple[int, int] | None = None  # columns and rows from here on


class TerminalRecording(NamedTuple):
    """A recording, taken apart. `chunks` can be gone through as often as wanted."""

    kind: str
    columns: int
    rows: int
    chunks: Callable[[], Iterator[OutputChunk]]
    started: int | None = None  # milliseconds, UTC; None also when only the local time is known
    ended: int | None = None
    command: str = ""
    exit_status: int | None = None
    zone: int | None = None  # minutes east of UTC


def cut_chunks(data: bytes, start: int, end: int) -> Iterator[OutputChunk]:
    """A stretch of the file as it is."""
    for place in range(start, end, PIECE):
        stop = min(place + PIECE, end)
        yield OutputChunk(data[place:stop], place, stop)
