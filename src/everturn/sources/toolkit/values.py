"""What values in foreign records say: times, words, numbers, and JSON that is not quite JSON.

Shared by the formats. Nothing here raises on content; what comes out may be kept in any database.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from everturn.sources.toolkit.json_lines import FORGIVING, storable

S = TypeVar("S")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

#: Numbers above this are milliseconds, not seconds: as seconds it would be the year 5138.
_SECONDS_END = 100_000_000_000
_MILLISECONDS_END = 253_402_300_800_000  # the year 10000

_PLAIN = re.compile(r"[A-Za-z0-9_./-]{1,64}")
_MOST = 1 << 53


def milliseconds(at: Any) -> tuple[int | None, str]:
    """Milliseconds UTC and the precision of a number or an ISO text; (None, "") when it is no time.

    A text without a zone is taken as UTC: nothing says where it was written.
    """
    if isinstance(at, bool) or not isinstance(at, str | int | float):
        return None, ""
    return _text(at) if isinstance(at, str) else _number(at)


def decode_value(raw: bytes) -> Any:
    """The value of a piece of JSON, also where it has lone surrogates or control characters; None when it is none."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return storable(FORGIVING.decode(raw.decode("utf-8", "replace").strip()))
    except (ValueError, RecursionError):
        return None


def state_of(packed: bytes, kind: type[S]) -> S:
    """What a reader packed for the next one; the beginning for nothing, and for what is not a state of ours."""
    try:
        return msgspec.msgpack.decode(packed, type=kind) if packed else kind()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return kind()


def strings(value: Any, *without: str) -> list[str]:
    """Every string in a value, in order; keys are left out, and what stands under the keys named."""
    found: list[str] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if item:
                found.append(item)
        elif isinstance(item, dict):
            stack.extend(reversed([inside for key, inside in item.items() if key not in without]))
        elif isinstance(item, list):
            stack.extend(reversed(item))
    return found


def word(value: Any) -> str:
    """A string without NUL, which no database takes; "" for what is no string."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else ""


def count(value: Any) -> int | None:
    """A number that is not negative and not too large to be kept; None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < _MOST else None


def plain(text: Any) -> str:
    """A type or a version fit to be counted: never a piece of content."""
    return text if isinstance(text, str) and _PLAIN.fullmatch(text) else "?"


def digest(*texts: str) -> str:
    """A short name for some words: the same for the same words, always."""
    return blake2b("\0".join(texts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _text(at: str) -> tuple[int | None, str]:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None, ""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    precision = "day" if len(at) <= len("2026-01-31") else "ms" if "." in at or "," in at else "s"
    try:
        return (moment - _EPOCH) // _MILLISECOND, precision
    except OverflowError:
        return None, ""


def _number(at: int | float) -> tuple[int | None, str]:
    if not -_MILLISECONDS_END < at < _MILLISECONDS_END:  # also what is not a number
        return None, ""
    if abs(at) >= _SECONDS_END:
        return int(at), "ms"
    return round(at * 1000), "s" if isinstance(at, int) else "ms"
