"""Rows of a screen and the little that every reader of screens asks of them: colours, widths, text put back together.

Passwords typed at a prompt are taken out here, before any reader sees them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from everturn.sources.terminal.talk import DrawnSaying
from everturn.sources.terminal.transcript import Colour, TranscriptLine, TranscriptSegment

#: A prompt for a secret; whatever follows it in the same row was typed and is nobody's business. Programs that draw the
#: whole screen echo what a child's prompt asked for into their own input field.
_SECRET = re.compile(
    r"(\[sudo\][^:\n]{0,80}:"
    r"|\bEnter pass(?:word|phrase)\b[^:\n]{0,120}:"
    r"|\S+@\S+'s password:"
    r"|^(?:Password|Passphrase|PIN)(?: for [^:\n]{1,80})?:)(?=.*\S).*$"
)
#: Beginnings of lines that nobody would have joined to the one before.
_OWN_LINE = re.compile(r"\s|[-*+•>|#]\s|#{2,6}\s|\d{1,3}[.)]\s|```|~~~|\$ ")


class TranscriptRow(Struct, frozen=True):
    """A line of the clean transcript and its number there."""

    index: int
    text: str
    line: TranscriptLine


def rows_of(segment: TranscriptSegment, base: int) -> list[TranscriptRow]:
    """The rows of a segment whose first line has number `base`."""
    return [TranscriptRow(base + n, without_secret(line.text), line) for n, line in enumerate(segment.lines)]


def without_secret(text: str) -> str:
    """The row without what was typed at a password prompt."""
    return _SECRET.sub(r"\1", text) if ":" in text else text


def colour_at(row: TranscriptRow, cell: int) -> Colour:
    """The colour of the character in a cell."""
    return next((run.colour for run in row.line.runs if run.start <= cell < run.end), None)


def indent(text: str) -> int:
    """How many blanks it begins with."""
    return len(text) - len(text.lstrip(" "))


def width(text: str) -> int:
    """How many cells it fills."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def cut(text: str, cells: int) -> tuple[str, str]:
    """What stands in the first `cells` cells, and the rest."""
    if text.isascii() or len(text) <= cells // 2:
        return text[:cells], text[cells:]
    filled = 0
    for at, char in enumerate(text):
        filled += _cells(char)
        if filled > cells:
            return text[:at], text[at:]
    return text, ""


def _cells(char: str) -> int:
    if char < "\u0300":
        return 1
    if unicodedata.combining(char) or char in "\u200b\u200d\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def trim_rows(lines: Sequence[str]) -> list[str]:
    """Without empty lines at either end, and without blanks at the ends of lines."""
    kept = [line.rstrip() for line in lines]
    first = next((n for n, line in enumerate(kept) if line), len(kept))
    last = next((n for n in range(len(kept), first, -1) if kept[n - 1]), first)
    return kept[first:last]


def dedent_rows(lines: Sequence[str], most: int) -> list[str]:
    """Without the blanks that all lines begin with, `most` of them at most."""
    common = min((indent(line) for line in lines if line.strip()), default=0)
    return [line[min(common, most) :] for line in lines]


def rejoin_rows(lines: Sequence[str], room: int, glue: str = "") -> str:
    """Word-wrapped text with its lines put together again, where it is sure that the client broke them.

    A line was broken by the client when the next word would not have fitted into `room` cells. After one of the `glue`
    characters it cannot be told whether a blank stood there, so the break stays.
    """
    text = ""
    before = ""
    for n, line in enumerate(lines):
        word = line.split(" ", 1)[0]
        wrapped = n and before and word and width(before) <= room < width(before) + 1 + width(word)
        if wrapped and not _OWN_LINE.match(line) and before[-1] not in glue and " " in before.strip():
            text += f" {line}"
        else:
            text += f"\n{line}" if n else line
        before = line
    return text


def is_red(colour: Colour) -> bool:
    """A colour clients draw failures in."""
    if colour is None:
        return False
    red, green, blue = colour >> 16 & 255, colour >> 8 & 255, colour & 255
    return red >= 160 and red - green > 60 and red - blue > 40


def place_saying(rows: Sequence[TranscriptRow], **fields: Any) -> DrawnSaying:
    """An item with its place: the lines it stands in and the part of the recording in which they were drawn."""
    first, last = min(row.line.first for row in rows), max(row.line.last for row in rows)
    return DrawnSaying(**fields, lines=(rows[0].index, rows[-1].index), bytes=(first, last))
