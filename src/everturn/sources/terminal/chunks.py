"""What every kind of recording comes down to: pieces of output in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

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
