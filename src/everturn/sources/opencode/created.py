"""When a session began, from its id and a date as some machine writes it.

A rendered transcript has dates in the writer's language and zone: `5/9/2026, 9:08:30 AM`, `31/07/2026, 20:37:39`,
`04.04.2026, 17:46:01`. The id holds the exact millisecond, but only the rest of it after division by some 795 days. Each
says what the other does not.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

_HOUR, _DAY = 3_600_000, 86_400_000
_SPAN = 1 << 36
_BITS = (1 << 48) - 1
_SESSION_ID = re.compile(r"ses_([0-9a-f]{12})")
_DIGITS = re.compile(r"\d{1,4}", re.ASCII)


def created_at(session: str, written: str) -> tuple[int | None, str]:
    """Milliseconds UTC and their precision: exact when id and date agree, else the day; (None, "") without a date."""
    days = _days(written)
    found = _SESSION_ID.match(session)
    if found is not None:
        rest = (~int(found[1], 16) & _BITS) >> 12  # ids of sessions count down, so that the newest sorts first
        for day in days:
            exact = rest + round((day - rest) / _SPAN) * _SPAN
            if -15 * _HOUR <= exact - day <= _DAY + 15 * _HOUR:
                return exact, "ms"
    return (days[0], "day") if days else (None, "")


def _days(written: str) -> list[int]:
    """The days that may be meant, the likeliest first, as milliseconds at their beginning."""
    numbers = [int(digits) for digits in _DIGITS.findall(written)[:3]]
    if len(numbers) < 3:
        return []
    if numbers[0] > 31:
        orders = [tuple(numbers)]
    else:
        first, second, year = numbers
        orders = [(year, second, first), (year, first, second)]
        if "AM" in written or "PM" in written:  # as Americans write it
            orders.reverse()
    return [moment for order in orders if (moment := _day(*order)) is not None]


def _day(year: int, month: int, day: int) -> int | None:
    try:
        date(year, month, day)
        return int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1000) if year > 1970 else None
    except ValueError:
        return None
