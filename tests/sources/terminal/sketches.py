"""Screens written down as lines of text: as painted rows for a layout, as rows of a transcript for a reader.

A line is its text, or its text and the colours of single cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everturn.sources.terminal.frames import PaintedRow
from everturn.sources.terminal.grid import NO_INK
from everturn.sources.terminal.rows import TranscriptRow
from everturn.sources.terminal.transcript import Run, TranscriptLine

Line = str | tuple[str, Mapping[int, int]]


def paint_rows(lines: Sequence[Line], columns: int = 80) -> list[PaintedRow]:
    """Lines as rows of a frame; any colour is one ink."""
    return [_paint(*_split(line), columns) for line in lines]


def transcribe_rows(lines: Sequence[Line]) -> list[TranscriptRow]:
    """Lines as rows of a transcript, all drawn in one frame."""
    rows = []
    for number, line in enumerate(lines):
        text, colours = _split(line)
        runs = tuple(Run(cell, cell + 1, colour) for cell, colour in sorted(colours.items()))
        rows.append(TranscriptRow(number, text, TranscriptLine(text, runs, 0, number * 10 + 9)))
    return rows


def _split(line: Line) -> tuple[str, Mapping[int, int]]:
    return (line, {}) if isinstance(line, str) else line


def _paint(text: str, colours: Mapping[int, int], columns: int) -> PaintedRow:
    inks = "".join("a" if cell in colours else NO_INK for cell in range(columns))
    return PaintedRow(text.rstrip(), text.ljust(columns), inks)
