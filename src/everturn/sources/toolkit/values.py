"""Values of foreign records: times, strings, numbers, and JSON that is not quite JSON.

Nothing here raises on content. Every result can be stored in any database.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from everturn.sources.toolkit.json_lines import FORGIVING, storable

S = TypeVar("S")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_USUAL_LENGTH = len("2026-01-31T12:34:56.789Z")

#: Numbers above this are milliseconds, not seconds: as seconds it would be the year 5138.
_SECONDS_END = 100_000_000_000
_MILLISECONDS_END = 253_402_300_800_000  # the year 10000

_PLAIN = re.compile(r"[A-Za-z0-9_./-]{1,64}")
_MOST = 1 << 53


def milliseconds(at: Any) -> tuple[int | None, str]:
    """Return milliseconds UTC and the precision of a number or an ISO text; (None, "") when it is no time.

    A text without a zone counts as UTC, because nothing says where it was written.
    """
    if isinstance(at, str):
        if len(at) == _USUAL_LENGTH and at[19] == "." and at[23] == "Z":
            minute, rest = _parse_minute(at[:17]), at[17:19] + at[20:23]
            if minute is not None and rest.isdecimal() and rest < "60":
                return minute + int(rest), "ms"
        return _parse_time(at)
    if isinstance(at, bool) or not isinstance(at, int | float):
        return None, ""
    return _convert_number(at)


def decode_value(raw: bytes) -> Any:
    """Decode JSON, even with lone surrogates or control characters; None when it is not JSON."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return storable(FORGIVING.decode(raw.decode("utf-8", "replace").strip()))
    except (ValueError, RecursionError):
        return None


def state_of(packed: bytes, kind: type[S]) -> S:
    """Decode a packed reader state; a new one for no bytes, and for bytes that are no such state."""
    try:
        return msgspec.msgpack.decode(packed, type=kind) if packed else kind()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return kind()


def strings(value: Any, *without: str) -> list[str]:
    """Return every string in a value, in order, without keys and without the values of the keys in `without`."""
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
    """Return a string without NUL, which no database takes; "" for anything else."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else ""


def count(value: Any) -> int | None:
    """Return a number as an int; None if it is negative, too large to be stored, or no number."""
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, int | float)):
        return None
    return int(value) if 0 <= value < _MOST else None


def exit_code(value: Any) -> int | None:
    """Return an exit status of 32 bits; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31 else None


def plain(text: Any) -> str:
    """Return a type or version fit to be counted; "?" for anything that could be content."""
    return text if isinstance(text, str) and _PLAIN.fullmatch(text) else "?"


def digest(*texts: str) -> str:
    """Return a short stable id for some texts."""
    return blake2b("\0".join(texts).encode("utf-8", "replace"), digest_size=8).hexdigest()


@lru_cache(maxsize=4096)
def _parse_minute(start: str) -> int | None:
    """Return milliseconds at the start of a minute. Records come in runs, so most are cached."""
    try:
        moment = datetime.fromisoformat(f"{start}00+00:00")
    except ValueError:
        return None
    return (moment - _EPOCH) // _MILLISECOND


def _parse_time(at: str) -> tuple[int | None, str]:
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


def _convert_number(at: int | float) -> tuple[int | None, str]:
    if not -_MILLISECONDS_END < at < _MILLISECONDS_END:  # also false for NaN
        return None, ""
    if abs(at) >= _SECONDS_END:
        return int(at), "ms"
    return round(at * 1000), "s" if isinstance(at, int) else "ms"
