"""Parse and format times, and reckon days, weeks and months back. The archive stores milliseconds since 1970, UTC.

A time without a zone is UTC, as is every time shown: the same input means the same on every machine.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from everturn.errors import UsageError
from everturn.model.archive import Turn

_SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
_UNITS = {"s": _SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY, "y": 365 * DAY}
_WORDS = {"now": 0, "today": 0, "yesterday": 1, "last week": 7, "last month": 30, "last year": 365}  # days back
_NAMED = (
    (365 * DAY, "year"), (30 * DAY, "month"), (7 * DAY, "week"), (DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"),
)  # fmt: skip
_TWO_UNITS = ((DAY, "d", HOUR, "h"), (HOUR, "h", MINUTE, "m"), (MINUTE, "m", _SECOND, "s"))
_SPAN = re.compile(
    r"(\d{1,6}) ?(?:(s)(?:ec(?:ond)?s?)?|(m)(?:in(?:ute)?s?)?|(h)(?:ours?)?|(d)(?:ays?)?|(w)(?:eeks?)?|(y)(?:ears?)?)(?: ago)?",
    re.ASCII,
)
_MONTH = re.compile(r"\d{4}-\d{2}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T].+)?", re.ASCII | re.IGNORECASE)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(ms: int | None) -> str:
    """Format as RFC 3339 in UTC, with milliseconds only if there are some; empty for no time."""
    if ms is None:
        return ""
    try:
        at = EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return ""
    return at.isoformat(timespec="milliseconds" if ms % _SECOND else "seconds").replace("+00:00", "Z")


def minute(ms: int | None) -> str:
    """Format as `2026-01-31 10:00` in UTC; empty for no time."""
    return iso(ms)[:16].replace("T", " ")


def parse_when(text: str, now_ms: int) -> int:
    """Parse a time typed by a person: a date, a date and time, a span back from now, or a word such as `monday`."""
    words = " ".join(text.split())
    lower = words.lower()
    if lower in _WORDS:
        return now_ms if lower == "now" else now_ms - now_ms % DAY - _WORDS[lower] * DAY
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
    from everturn.text.time_phrases import find_times

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


_SHORT_UNITS = {"minute": "m", "hour": "h", "day": "d", "week": "w", "month": "mo", "year": "y"}


def short_ago(ms: int | None, now_ms: int) -> str:
    """Format the distance to now in few characters: `3d`, `5mo`, `now`."""
    words = ago(ms, now_ms).split()
    if len(words) < 3:
        return "now" if words else ""
    number, name = (words[0], words[1]) if words[-1] == "ago" else (f"+{words[1]}", words[2])
    return f"{number}{_SHORT_UNITS.get(name.rstrip('s'), name)}"


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
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - EPOCH) // timedelta(milliseconds=1)


# --- spans and the calendar ---

#: The open ends of `before` and `after`: the years 1 and 9999.
EARLIEST, LATEST = -62_135_596_800_000, 253_402_300_799_000


def describe_span(first: int, last: int, zone: tzinfo = UTC) -> str:
    """Format a span for a person: `3 May 2026`, `1–7 November 2026`, `since 3 May 2026`."""
    if first <= EARLIEST:
        return f"before {_describe_moment(last, zone)}"
    if last >= LATEST:
        return f"since {_describe_moment(first, zone)}"
    begin, end = _moment(first, zone), _moment(max(first, last - 1), zone)
    if last - first < DAY - HOUR:  # a day may have 23 hours
        return f"{_describe_moment(first, zone)}, {begin:%H:%M}–{_moment(last, zone):%H:%M}"
    if begin.date() == end.date():
        return _date_text(begin)
    if (begin.year, begin.month) == (end.year, end.month):
        return f"{begin.day}–{_date_text(end)}"
    return f"{_date_text(begin)} – {_date_text(end)}"


def _describe_moment(ms: int, zone: tzinfo) -> str:
    return _date_text(_moment(ms, zone))


def _date_text(at: datetime) -> str:
    return f"{at.day} {_MONTH_NAMES[at.month - 1]} {at.year}"


_MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def _moment(ms: int, zone: tzinfo) -> datetime:
    try:
        return (EPOCH + timedelta(milliseconds=ms)).astimezone(zone)
    except (OverflowError, ValueError):
        return datetime.min.replace(tzinfo=UTC) if ms < 0 else datetime.max.replace(tzinfo=UTC)


def milliseconds(at: datetime) -> int:
    """Return a moment as milliseconds since 1970."""
    return (at - EPOCH) // timedelta(milliseconds=1)


class SpokenCalendar:
    """Days, weeks, months and years around now. Raises ValueError without now and OverflowError beyond the calendar."""

    def __init__(self, now: int | None, zone: tzinfo) -> None:
        self._now, self.zone = now, zone

    @property
    def now(self) -> datetime:
        if self._now is None:
            raise ValueError("no time is known")
        return (EPOCH + timedelta(milliseconds=self._now)).astimezone(self.zone)

    @property
    def today(self) -> date:
        return self.now.date()

    def at(self, day: date, hour: int = 0) -> int:
        """Return an hour of a day; hour 29 is 5 o'clock of the next day."""
        day += timedelta(days=hour // 24)
        return milliseconds(datetime.combine(day, time(hour % 24), self.zone))

    def days(self, first: date, count: int = 1) -> tuple[int, int]:
        return self.at(first), self.at(first + timedelta(days=count))

    def day_back(self, count: int) -> date:
        return self.today - timedelta(days=count)

    def month_back(self, count: int) -> date:
        """Return the same day some months ago, or the last of that month."""
        months = self.today.year * 12 + self.today.month - 1 - count
        first = date(months // 12, months % 12 + 1, 1)
        return min(first.replace(day=1) + timedelta(days=self.today.day - 1), _next_month(first) - timedelta(days=1))

    def unit(self, unit: str, back: int) -> tuple[int, int]:
        """Return a whole day, week, month or year."""
        if unit == "day":
            return self.days(self.day_back(back))
        if unit == "week":
            return self.days(self.day_back(self.today.weekday() + 7 * back), 7)
        if unit == "month":
            first = self.month_back(back).replace(day=1)
            return self.at(first), self.at(_next_month(first))
        return self.at(date(self.today.year - back, 1, 1)), self.at(date(self.today.year - back + 1, 1, 1))

    def latest(self, month: int, day: int) -> tuple[int, int]:
        """Return the last such day or month (day 0) that has begun. 29 February is the last leap day."""
        for year in range(self.today.year, self.today.year - 9, -1):
            try:
                span = self.date_span(year, month, day)
            except ValueError:
                continue
            if span[0] <= milliseconds(self.now):
                return span
        raise ValueError("there is no such day")

    def date_span(self, year: int, month: int, day: int) -> tuple[int, int]:
        first = date(year, month or 1, day or 1)
        if day:
            return self.days(first)
        return self.at(first), self.at(_next_month(first) if month else date(year + 1, 1, 1))


def _next_month(first: date) -> date:
    return date(first.year + first.month // 12, first.month % 12 + 1, 1)
