"""The times a question speaks of: `spoken_of("what broke on 8 May 2023", now)` gives the span of that day.

    8 May 2023, May 8th, 2023, 2023-05-08, 8 May      a day; without a year the last one that has been
    May 2023, in May, last month                      a month
    yesterday, today, last week, this week            by what time it is now; UTC, as all times here
    2023                                              a year

Not a filter: what is said in that span, or soon after, is what is more likely meant. Spans are milliseconds UTC, the
end not included. A number or a `may` that stands alone speaks of no time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

Span = tuple[int, int]

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    "oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_YEAR = "(?P<year>19[89][0-9]|20[0-9]{2})"
_DAY = "(?P<day>[12][0-9]|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_FORMS = [
    re.compile(form, re.I)
    for form in (
        rf"\b{_YEAR}-(?P<number>0[1-9]|1[0-2])-(?P<day>[0-3][0-9])\b",
        rf"\b{_DAY}(?: of)? {_MONTH}\b\.?,?(?: {_YEAR}\b)?",
        rf"\b{_MONTH}\.? {_DAY}\b,?(?: {_YEAR}\b)?",
        rf"\b{_MONTH},? {_YEAR}\b",
        rf"\b(?:in|during|since|until|of|by|last|this|early|late|mid|around) {_MONTH}\b",
        rf"\b(?:in|during|since|of|by|year) {_YEAR}\b",
    )
]
_RELATIVE = {"today": (0, 1), "yesterday": (1, 1), "this week": (7, 8), "last week": (14, 14), "last month": (62, 62)}


def times_spoken_of(text: str, now: int | None = None) -> tuple[Span, ...]:
    """The spans, in the order in which they are found; each part of the text speaks of one at most."""
    spans: list[Span] = []
    for form in _FORMS:
        text = form.sub(lambda match: _note_span(match, now, spans), text)
    if now is not None:
        spans += _relative_spans(text.lower(), now)
    return tuple(dict.fromkeys(spans))


def _note_span(match: re.Match[str], now: int | None, spans: list[Span]) -> str:
    found = _time_span(match.groupdict(), now)
    if found is None:
        return match[0]
    spans.append(found)
    return " , "


def _time_span(given: dict[str, str | None], now: int | None) -> Span | None:
    named = given.get("month")
    number = _MONTHS.index(named[:3].lower()) + 1 if named else int(given.get("number") or 0)
    day, year = int(given.get("day") or 0), int(given.get("year") or 0)
    try:
        if year:
            return _date_span(year, number, day)
        if now is None:
            return None
        latest = datetime.fromtimestamp(now / 1000, UTC)
        this = _date_span(latest.year, number, day)
        return this if this[0] <= now else _date_span(latest.year - 1, number, day)
    except (ValueError, OverflowError):  # 31 June
        return None


def _date_span(year: int, month: int, day: int) -> Span:
    start = datetime(year, month or 1, day or 1, tzinfo=UTC)
    if day:
        end = start + timedelta(days=1)
    elif month:
        end = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    else:
        end = datetime(year + 1, 1, 1, tzinfo=UTC)
    return _as_milliseconds(start), _as_milliseconds(end)


def _relative_spans(text: str, now: int) -> Iterator[Span]:
    midnight = datetime.fromtimestamp(now / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for words, (ago, length) in _RELATIVE.items():
        if re.search(rf"\b{words}\b", text):
            start = midnight - timedelta(days=ago)
            yield _as_milliseconds(start), _as_milliseconds(start + timedelta(days=length))


def _as_milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)
