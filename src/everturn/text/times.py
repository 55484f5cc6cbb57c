"""Parse and format times. The archive stores milliseconds since 1970, UTC.

A time without a zone is UTC, as is every time shown: the same input means the same on every machine.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from everturn.errors import UsageError
from everturn.model.archive import Turn

_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_UNITS = {"s": _SECOND, "m": _MINUTE, "h": _HOUR, "d": _DAY, "w": 7 * _DAY, "y": 365 * _DAY}
_WORDS = {"now": 0, "today": 0, "yesterday": 1, "last week": 7, "last month": 30, "last year": 365}  # days back
_NAMED = (
    (365 * _DAY, "year"), (30 * _DAY, "month"), (7 * _DAY, "week"), (_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"),
)  # fmt: skip
_TWO_UNITS = ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "m"), (_MINUTE, "m", _SECOND, "s"))
_SPAN = re.compile(
    r"(\d{1,6}) ?(?:(s)(?:ec(?:ond)?s?)?|(m)(?:in(?:ute)?s?)?|(h)(?:ours?)?|(d)(?:ays?)?|(w)(?:eeks?)?|(y)(?:ears?)?)(?: ago)?",
    re.ASCII,
)
_MONTH = re.compile(r"\d{4}-\d{2}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T].+)?", re.ASCII | re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(ms: int | None) -> str:
    """Format as RFC 3339 in UTC, with milliseconds only if there are some; empty for no time."""
    if ms is None:
        return ""
    try:
        at = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return ""
    return at.isoformat(timespec="milliseconds" if ms % _SECOND else "seconds").replace("+00:00", "Z")


def parse_when(text: str, now_ms: int) -> int:
    """Parse a time typed by a person: a date, a date and time, a span back from now, or a word such as `monday`."""
    words = " ".join(text.split())
    lower = words.lower()
    if lower in _WORDS:
        return now_ms if lower == "now" else now_ms - now_ms % _DAY - _WORDS[lower] * _DAY
    if span := _SPAN.fullmatch(lower):
        return now_ms - int(span[1]) * _UNITS[next(filter(None, span.groups()[1:]))]
    if _MONTH.fullmatch(words):
        words += "-01"
    if _DATE.fullmatch(words):
        try:
            return _as_milliseconds(datetime.fromisoformat(words.upper()))
        except (ValueError, OverflowError):
            pass
    if (spoken := _spoken_start(lower, now_ms)) is not None:
        return spoken
    raise UsageError(
        f"{text!r} is not a time; try 2026-01-31, 2026-01-31T10:00, 2026-01-31T10:00+02:00, 7d, 12h, 30m, 2w, today, "
        "yesterday, last week, monday or 3 May"
    )


def _spoken_start(words: str, now_ms: int) -> int | None:
    """Return the beginning of a weekday, a month or a date as people say it; None for anything else."""
    if words.endswith("ago"):  # a span around that time: too vague for a limit
        return None
    from everturn.text.time_phrases import EARLIEST, find_times

    text = f"in {words}"
    found = find_times(text, now_ms)
    is_whole = len(found) == 1 and (found[0].start, found[0].end) == (0, len(text))
    return found[0].first if is_whole and found[0].first > EARLIEST else None


def ago(ms: int | None, now_ms: int) -> str:
    """Format the distance to now in its largest unit: `3 days ago`."""
    if ms is None:
        return ""
    distance = abs(now_ms - ms)
    for size, name in _NAMED:
        if distance >= size:
            n = distance // size
            words = f"{n} {name}{'' if n == 1 else 's'}"
            return f"{words} ago" if now_ms > ms else f"in {words}"
    return "just now"


def duration(ms: int | None) -> str:
    """Format a duration in its two largest units: `1m 12s`."""
    if ms is None:
        return ""
    if ms < _SECOND:
        return f"{max(ms, 0)}ms"
    for size, name, next_size, next_name in _TWO_UNITS:
        if ms >= size:
            rest = ms % size // next_size
            return f"{ms // size}{name} {rest}{next_name}" if rest else f"{ms // size}{name}"
    return f"{ms // _SECOND}s"


def turn_ms(turn: Turn) -> int | None:
    """Return the duration of a turn: as the client reported it, else from its first message to its last."""
    if turn.reported_ms is not None:
        return turn.reported_ms
    return None if turn.started is None or turn.ended is None else max(0, turn.ended - turn.started)


def _as_milliseconds(at: datetime) -> int:
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
