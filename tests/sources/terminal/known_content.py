"""How well a transcript agrees with what a program is known to have shown."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import NamedTuple

from everturn.sources.terminal.transcript import TerminalTranscript
from everturn.sources.terminal.views import transcribe
from tests.sources.terminal.redrawing import Played, Style


class Agreement(NamedTuple):
    """Lines in common, of all that were shown and of all that were read."""

    recall: float
    precision: float


def typescript(style: Style, output: bytes) -> bytes:
    """The output as `script` writes it down."""
    size = f'COMMAND="agent" TERM="xterm" COLUMNS="{style.columns}" LINES="{style.rows}"'
    return f"Script started on 2025-12-22 14:19:12-06:00 [{size}]\n".encode() + output


def timing(played: Played, delay: float = 0.05) -> bytes:
    """The timing file beside it."""
    return b"".join(b"%.6f %d\n" % (delay, len(write)) for write in played.writes)


def read(style: Style, played: Played, timed: bool = False) -> TerminalTranscript:
    """The transcript of a recording of it."""
    return transcribe(typescript(style, played.data), "typescript", timing(played) if timed else None)


def text(transcript: TerminalTranscript, style: Style) -> list[str]:
    """Lines of the full-screen program; the home screen is a segment of its own and left out."""
    segments = [segment for segment in transcript.segments if segment.alternate][style.home :]
    return [line.text for segment in segments for line in segment.lines if line.text]


def agreement(truth: list[str], seen: list[str]) -> Agreement:
    """Recall and precision of lines, in order."""
    blocks = SequenceMatcher(None, truth, seen, autojunk=False).get_matching_blocks()
    common = sum(block.size for block in blocks)
    return Agreement(common / max(1, len(truth)), common / max(1, len(seen)))
