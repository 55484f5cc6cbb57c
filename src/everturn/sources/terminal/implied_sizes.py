"""Changes of the screen's size that a recording does not mention but its output implies.

Timing files of the older form have no place for them. A program that draws a rule over the whole width and wipes what it drew
row by row shows how large it takes the screen to be: no rule is longer than a row, nobody goes up more rows than there are,
and who wipes the whole screen row by row tells how many there are. A screen that is too large does little harm; one that is
too small folds and loses lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from everturn.sources.terminal.transcript import OutputChunk, TerminalRecording

_RULE = re.compile(rb"[\n\rGmK](?:\xe2\x94\x80){20,1000}(?=[\r\n\x1b])")
_WIPED = re.compile(rb"(?:\x1b\[2K\x1b\[1A){4,1000}")
_SCREEN = re.compile(rb"\x1b\[H((?:\x1b\[2K\x1b\[1B){5,1000})\x1b\[H")
_SCREEN_BEGINS = b"\x1b[H\x1b[2K\x1b[1B"
_WIDEST, _TALLEST = 600, 300
_RULE_SIGN, _WIPED_ROW = 3, 8  # bytes


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
        wide, tall = _measure(chunk.data)
        if exact := _measure_screen(chunk.data):
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


def _measure_screen(data: bytes) -> int:
    """Return how many rows the screen has, where all of them are wiped one by one from the top; 0 where they are not."""
    found = _SCREEN.search(data) if _SCREEN_BEGINS in data else None
    rows = len(found[1]) // _WIPED_ROW if found else 0
    return rows if rows <= _TALLEST else 0


def _measure(data: bytes) -> tuple[int, int]:
    """Return the length of the longest rule and the height of the tallest part that was wiped."""
    rules = [len(found) - 1 for found in _RULE.findall(data)] if b"\xe2\x94\x80" * 20 in data else []
    wiped = [len(found) for found in _WIPED.findall(data)] if b"\x1b[2K\x1b[1A" in data else []
    wide, tall = max(rules, default=0) // _RULE_SIGN, max(wiped, default=0) // _WIPED_ROW + 1
    return (wide if wide <= _WIDEST else 0), (tall if tall <= _TALLEST else 0)
