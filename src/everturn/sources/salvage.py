"""A JSON object whose end is missing, closed where it breaks off.

The last string may be cut in the middle; anything else that is not complete is left out. Nothing is added but the
brackets and the quote that were lost.
"""

from __future__ import annotations

import re
from typing import Any

from everturn.sources.jsonl import FORGIVING, storable

#: A whole string, a bracket or a comma; or a quote whose string never ends.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],]|"', re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_PAIR = {"{": "}", "[": "]"}

#: How many values at the end may be given up until the rest makes sense.
_TRIES = 8
_LONGEST = 8 << 20


def close_json(raw: bytes) -> dict[str, Any] | None:
    """What there is of the object that starts here; None where there is none, or it did not break off but is damaged."""
    if len(raw) > _LONGEST:
        return None
    text = raw.decode("utf-8", "ignore").lstrip("\ufeff \t\r\n").rstrip("\r\n\0")
    if not text.startswith('{"') or "\0" in text:
        return None
    ends = _ends(text)
    for end in reversed(ends[-_TRIES:]):
        try:
            value = FORGIVING.decode(end)
        except (ValueError, RecursionError):
            continue
        return storable(value) if isinstance(value, dict) and value else None
    return None


def _ends(text: str) -> list[str]:
    """Ways to close it, the one that keeps most last. Empty when it is closed, or its brackets do not fit."""
    open_: list[str] = []
    stops: list[tuple[int, str]] = []
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign == '"':  # never closed
            whole = _HALF_ESCAPE.sub("", text)
            return [*_closings(text, stops), whole + '"' + _closers(open_)]
        if sign == ",":
            stops.append((token.start(), _closers(open_)))
        elif sign in _PAIR:
            open_.append(_PAIR[sign])
        elif sign in ("}", "]") and (not open_ or open_.pop() != sign or not open_):
            return []
    return [*_closings(text, stops), text + _closers(open_)]


def _closings(text: str, stops: list[tuple[int, str]]) -> list[str]:
    return [text[:place] + closers for place, closers in stops[-_TRIES:]]


def _closers(open_: list[str]) -> str:
    return "".join(reversed(open_))
