"""Find the times that a text mentions, as spans of milliseconds.

    3 days ago, two weeks ago, in the last 2 hours       back from now
    yesterday morning, last week, this month, last year  by the calendar; a week starts on Monday
    last Tuesday, on Friday, Tuesday last week           the last one before today
    3 May, May 3 2025, in March, 2026-01-31, in 2025     without a year the last one that has been
    between 3 May and June, since Monday, until March    joined, or open to one side
    recently, the other day                              soft: `is_definite` is false

`text.time_rules` has the forms, and the tables in `text.time_words` add German, French, Spanish, Japanese and Chinese. A number, a `may` or a `march` alone
is not a time, nor is a date inside a name or a path. A weekday without a word before it is soft. Days begin at midnight of
the time zone that is passed in. Without `now` only dates with a year are found. Runs of white space and the case do not
matter; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from everturn.text import time_words as words
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.time_rules import DAY, EPOCH, HOUR, SpokenCalendar, TimeAtom, either, find_atoms

#: The open ends of `before` and `after`: the years 1 and 9999.
EARLIEST, LATEST = -62_135_596_800_000, 253_402_300_799_000
_MOST = 16  # times in one text


class SpokenTime(Struct, frozen=True):
    """A time that a text mentions: from `first`, up to but not including `last`."""

    first: int
    last: int
    start: int  # of the words, in the text with single spaces
    end: int
    slack: int = DAY  # so near before and after it is still likely
    is_definite: bool = True
    date: str = ""  # the words, if they are a date: texts contain such words too
    is_dated: bool = False  # a day, month or year by its name, not counted back from now
    named: tuple[int, int] | None = None  # the time itself, if it is one end of an open span: `before March`

    @property
    def span(self) -> tuple[int, int]:
        return self.first, self.last


def find_times(text: str, now: int | None = None, zone: tzinfo = UTC) -> tuple[SpokenTime, ...]:
    """Return the times in the order of the text. They do not overlap."""
    text = lower_case(" ".join(text.split()))
    found = sorted(islice(find_atoms(text, SpokenCalendar(now, zone)), _MOST), key=lambda atom: atom.start)
    bounds = [0, *(atom.end for atom in found)]
    joined = _join_times(text, [_read_lead(text, atom, bound) for atom, bound in zip(found, bounds, strict=False)])
    return tuple(_close_span(one) for one in joined if _is_time(one))


def lower_case(text: str) -> str:
    """Lower the case and keep the positions: the lower case of one letter may be two characters."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


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


# --- the words before and after ---


class _LedTime(Struct, frozen=True):
    """A time with the words that lead to it."""

    time: SpokenTime
    atom: TimeAtom
    relation: str = ""  # since | after | before | until | between
    leads: frozenset[str] = frozenset()  # the kinds of time that the words before it may lead to


_RELATIONS = {
    "since": words.SINCE, "after": words.AFTER, "before": words.BEFORE, "until": words.UNTIL, "between": words.BETWEEN,
}  # fmt: skip
_LEAD = lazy_pattern(
    rf"(?<![\w/.@#:-])(?:{'|'.join(f'(?P<{name}>{either(table)})' for name, table in _RELATIONS.items())}"
    rf"|(?P<lead>{either(words.LEADING)})|(?P<fill>{either(words.FILLING)})) $"
)
_TRAIL = lazy_pattern(
    rf"(?:(?P<since>{words.CJK_SINCE})|(?P<before>{words.CJK_BEFORE})|(?P<until>{words.CJK_UNTIL}))?(?:{words.CJK_FILLING})?"
)
_JOINTS, _AND_JOINTS = frozenset(words.JOINTS.split("|")), frozenset(words.AND_JOINTS.split("|"))
_YEAR_LEADS = frozenset(words.YEAR_LEADING.split("|"))
_LONGEST_LEAD = 24  # characters
_MOST_LEADS = 4


def _read_lead(text: str, atom: TimeAtom, bound: int) -> _LedTime:
    """Return the time with the words before it, back to one that sets its relation, or to the end of the time before."""
    start, relation, leads = atom.start, "", set[str]()
    for _ in range(_MOST_LEADS):
        match = _LEAD.search(text, max(bound, start - _LONGEST_LEAD), start)
        if not match:
            break
        start = match.start()
        leads |= _kinds_led_to(match)
        relation = match.lastgroup or ""
        if relation not in ("lead", "fill"):
            break
        relation = ""
    end, trailing = atom.end, _TRAIL.match(text, atom.end) if _is_cjk(text[atom.end - 1]) else None
    if trailing:
        end, relation = trailing.end(), trailing.lastgroup or relation
    phrase = text[atom.start : atom.end] if atom.is_date else ""
    phrase = phrase if any(map(str.isdigit, phrase)) else ""  # a month alone says too little
    time = SpokenTime(atom.first, atom.last, start, end, atom.slack, atom.is_definite, phrase, atom.is_date)
    return _LedTime(time, atom, relation, frozenset(leads))


def _kinds_led_to(match: re.Match[str]) -> set[str]:
    kinds = {"year"} if match[0].strip() in _YEAR_LEADS else set()
    return kinds if match["fill"] else kinds | {"month", "weekday"}


def _is_cjk(sign: str) -> bool:
    return ord(sign) >= 0x2E80


def _is_time(led: _LedTime) -> bool:
    """Whether it is a time by itself, or by the words before it."""
    needs = led.atom.needs
    return needs in ("", "weekday") or needs in led.leads


def _join_times(text: str, found: list[_LedTime]) -> Iterator[_LedTime]:
    """Yield the times, with two joined by `between … and` or `to` as one."""
    number = 0
    while number < len(found):
        one = found[number]
        following = found[number + 1] if number + 1 < len(found) else None
        if following and _is_range(text, one, following):
            yield _make_range(one, following)
            number += 2
        else:
            yield one
            number += 1


def _is_range(text: str, one: _LedTime, following: _LedTime) -> bool:
    if one.relation not in ("", "between", "since") or (one.relation == "" and not _is_time(one)):
        return False
    between = text[one.time.end : following.time.start]
    if following.relation == "until" and not between.strip():
        return True
    if following.relation:
        return False
    joint = between.strip()
    return joint in _JOINTS or (one.relation == "between" and joint in _AND_JOINTS)


def _make_range(one: _LedTime, following: _LedTime) -> _LedTime:
    a, b = one.time, following.time
    if b.last <= a.first and following.atom.needs == "weekday":  # from Monday to Wednesday, asked on a Wednesday
        b = replace(b, first=b.first + 7 * DAY, last=b.last + 7 * DAY)
    time = replace(a, first=min(a.first, b.first), last=max(a.last, b.last), end=b.end, slack=max(a.slack, b.slack))
    return _LedTime(replace(time, is_definite=True, date=""), one.atom._replace(needs=""))


def _close_span(led: _LedTime) -> SpokenTime:
    """Return the time with its relation applied, and soft if only a weekday was named."""
    time = led.time
    if led.relation == "before":
        return replace(time, first=min(EARLIEST, time.first), last=time.first, named=time.span)
    if led.relation == "until":
        return replace(time, first=min(EARLIEST, time.first), named=time.span)
    if led.relation in ("since", "after"):
        first = time.first if led.relation == "since" else time.last
        return replace(time, first=first, last=LATEST, named=time.span)
    is_bare = led.atom.needs == "weekday" and not led.leads
    return replace(time, is_definite=time.is_definite and not is_bare)
