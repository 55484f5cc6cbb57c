"""Screens of Codex."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.sources.terminal.frames import PaintedRow
from everturn.sources.terminal.layouts import ScreenLayout
from everturn.sources.terminal.rows import TranscriptRow
from everturn.sources.terminal.transcript import DrawnSaying


def find_layout(rows: Sequence[PaintedRow]) -> ScreenLayout | None:
    """Divide a frame; None for one that this program did not draw."""
    return None


def looks_like_codex(rows: Sequence[TranscriptRow]) -> int:
    """Return how many rows look like those of Codex."""
    return 0


def read_codex(rows: Sequence[TranscriptRow], columns: int) -> list[list[DrawnSaying]]:
    """Return what was said in the rows of one segment, conversation by conversation."""
    return []
