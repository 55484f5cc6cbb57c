"""Markdown as the editor exports it: a title, a line that says when and by which version, and what was said in turns.

    # Title
    _Exported on 5/19/2025 at 11:13:55 EDT from Cursor (0.50.4)_
    ---
    **User**
    …
    ---
    **Cursor**
    …

Tools are not in it, and the only time is that of the export, written the way of the country.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from everturn.model.conversation import Block, Message
from everturn.sources.foreign import milliseconds

#: Where the next speaker begins.
TURN = re.compile(rb"^---[ \t]*\r?\n\s*\*\*(?:User|Cursor)\*\*[ \t]*\r?$", re.MULTILINE)
_SPEAKER = re.compile(r"\s*---\s*\*\*(User|Cursor)\*\*[ \t]*\n?")
_HEAD = re.compile(r"\s*# ([^\n]*)\n+_Exported on ([^\n]{1,200}?) from Cursor(?: \(([^()\n]{1,40})\))?_")
_NUMBERS = re.compile(r"\d+")
_ZONE = re.compile(r"(?:GMT|UTC)([+-]\d{1,2})(?::?(\d\d))?|\b([A-Z]{3,4})\b(?!T[+-])")
_ZONES = {
    "UTC": 0, "GMT": 0, "EDT": -4, "EST": -5, "CDT": -5, "CST": -6, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8, "BST": 1,
    "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11,
}  # fmt: skip


class CursorExportHead(NamedTuple):
    """What the first lines say."""

    title: str
    client: str
    at: int | None
    precision: str


def head_of(text: str) -> CursorExportHead | None:
    """The head of an export."""
    found = _HEAD.match(text.removeprefix("\ufeff"))
    return CursorExportHead(found[1].strip(), found[3] or "", *moment(found[2])) if found else None


def export_message(text: str) -> Message:
    """The message of one stretch: the head, or what one side said."""
    found = _SPEAKER.match(text)
    if found is None:
        head = head_of(text)
        at = (head.at, head.precision) if head else (None, "")
        return Message("system", "system", "context", *at, blocks=_block(text, "meta"), fidelity="rendered")
    words = text[found.end() :]
    if found[1] == "User":
        return Message("user", "human", "text", blocks=_block(words, "prompt"), starts_turn=True, fidelity="rendered")
    return Message("assistant", "model", "text", blocks=_block(words, "answer"), fidelity="rendered")


def moment(text: str) -> tuple[int | None, str]:
    """A moment as the editor writes it in many countries; (None, "") where day and month could be either."""
    numbers = [int(number) for number in _NUMBERS.findall(text)][:6]
    if len(numbers) < 3:
        return None, ""
    date = _date(*numbers[:3])
    if date is None:
        return None, ""
    zone = _zone(text)
    if len(numbers) < 6 or zone is None:
        return milliseconds(date)
    hour, minute, second = numbers[3:]
    hour = hour % 12 + 12 if re.search(r"\bPM\b|오후|下午", text) else hour % 12 if re.search(r"\bAM\b", text) else hour
    return milliseconds(f"{date}T{hour:02d}:{minute:02d}:{second:02d}{zone}")


def _date(first: int, second: int, third: int) -> str | None:
    if first > 31:
        year, month, day = first, second, third
    elif first > 12:
        day, month, year = first, second, third
    elif second > 12:
        month, day, year = first, second, third
    elif first == second:
        month = day = first
        year = third
    else:
        return None
    return f"{year:04d}-{month:02d}-{day:02d}"


def _zone(text: str) -> str | None:
    for found in _ZONE.finditer(text):
        if found[1]:
            return f"{int(found[1]):+03d}:{found[2] or '00'}"
        if found[3] in _ZONES:
            return f"{_ZONES[found[3]]:+03d}:00"
    return None


def _block(words: str, field: str) -> tuple[Block, ...]:
    return (Block("text", words.strip(), field),) if words.strip() else ()
