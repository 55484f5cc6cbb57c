"""Screens of Gemini CLI."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.sources.terminal.rows import TranscriptRow
from everturn.sources.terminal.transcript import DrawnSaying


def looks_like_gemini(rows: Sequence[TranscriptRow]) -> int:
    """Return how many rows look like those of Gemini CLI."""
    return 0


def read_gemini(rows: Sequence[TranscriptRow], columns: int) -> list[list[DrawnSaying]]:
    """Return what was said in the rows of one segment, conversation by conversation."""
    return []
