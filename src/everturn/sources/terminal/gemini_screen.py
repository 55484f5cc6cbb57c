"""Screens of Gemini CLI."""

from __future__ import annotations

import re
from collections.abc import Sequence

from everturn.sources.terminal.rows import TranscriptRow
from everturn.sources.terminal.transcript import DrawnSaying

_RULE = re.compile(r"[─━]{20,}$")
_INPUT = re.compile(r" [>*!$](?: |$)|\(r:\)")
_STATUS = re.compile(r".{0,400}(?:\(esc to cancel\b|\? for shortcuts$)")
_ASKED = re.compile(r"│ \? {1,2}\S")
_BELOW_RULE = 5  # rows among which the input field is


def find_live_part(texts: Sequence[str]) -> int | None:
    """Return the first row at the bottom that is no part of the conversation; None where no input field is shown.

    That is the status line, the rule and the input field below it, or a box that asks for permission.
    """
    for number in range(len(texts) - 1, -1, -1):
        if _RULE.match(texts[number]) and any(map(_INPUT.match, texts[number + 1 : number + 1 + _BELOW_RULE])):
            while number and (not texts[number - 1] or _STATUS.match(texts[number - 1])):
                number -= 1
            return number
        if texts[number].startswith("╭─") and number + 1 < len(texts) and _ASKED.match(texts[number + 1]):
            return number
    return None


def looks_like_gemini(rows: Sequence[TranscriptRow]) -> int:
    """Return how many rows look like those of Gemini CLI."""
    return 0


def read_gemini(rows: Sequence[TranscriptRow], columns: int) -> list[list[DrawnSaying]]:
    """Return what was said in the rows of one segment, conversation by conversation."""
    return []
