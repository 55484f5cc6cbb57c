"""Find the times that a text mentions, as spans of milliseconds.

    3 days ago, two weeks ago, in the last 2 hours       back from now
    yesterday morning, last week, this month, last year  by the calendar; a week starts on Monday
    last Tuesday, on Friday, Tuesday last week           the last one before today
    3 May, May 3 2025, in March, 2026-01-31, in 2025     without a year the last one that has been
    between 3 May and June, since Monday, until March    joined, or open to one side
    recently, the other day                              soft: `is_definite` is false

A form of a time is a pattern and a function that resolves a match with a `SpokenCalendar`. The patterns are for text in
lower case with single spaces. They are compiled when a text has one of the words that the form needs. The tables in
`text.time_words` add German, French, Spanish, Japanese and Chinese. A number, a `may` or a `march` alone is not a time,
nor is a date inside a name or a path. A weekday without a word before it is soft. Days begin at midnight of the time
zone that is passed in. Without `now` only dates with a year are found. Runs of white space and the case do not matter;
nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, timedelta, tzinfo
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from everturn.text import time_words as words
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.times import DAY, EARLIEST, EPOCH, HOUR, LATEST, MINUTE, SpokenCalendar, milliseconds

# --- times without the words around them ---


class TimeAtom(NamedTuple):
    first: int
    last: int
    start: int
    end: int
    slack: int
    needs: str  # month | year | weekday: the kind of word that must stand before it; "" for none
    is_definite: bool
    is_date: bool


class _Meaning(NamedTuple):
    span: tuple[int, int]
    slack: int = DAY
    needs: str = ""
    is_definite: bool = True
    is_date: bool = False


_Match = re.Match[str]
_HIDDEN = "\0"


def find_atoms(text: str, calendar: SpokenCalendar) -> Iterator[TimeAtom]:
    """Yield the times in a text in lower case, the longest forms first; no character counts twice."""
    tokens = _find_tokens(text)
    is_french = "hier" in tokens and not tokens.isdisjoint(_FRENCH_WORDS)
    for rule in (_FRENCH_RULE, *_RULES) if is_french else _RULES:
        for match in list(rule.pattern.finditer(text)) if rule.applies(text, tokens) else ():
            try:
                meant = rule.resolve(match, calendar)
            except (ValueError, OverflowError):  # 31 June; 9999 years ago
                continue
            start, end = match.span()
            text = text[:start] + _HIDDEN * (end - start) + text[end:]
            yield TimeAtom(*meant.span, start, end, meant.slack, meant.needs, meant.is_definite, meant.is_date)


def either(alternatives: str) -> str:
    """Return a pattern for words of a table, the longest first: `a few` before `a`."""
    return "|".join(re.escape(one) for one in sorted(alternatives.split("|"), key=len, reverse=True))


def _one_of(table: Mapping[Any, str], name: str) -> str:
    return f"(?P<{name}>{either('|'.join(table.values()))})"


T = TypeVar("T")


def _key_of(tables: tuple[Mapping[T, str], ...], word: str) -> T:
    """Return the key of the entry with a word."""
    for table in tables:
        for key, alternatives in table.items():
            if word in alternatives.split("|"):
                return key
    raise ValueError("the word is in no table")


def _resolve_ago(match: _Match, calendar: SpokenCalendar) -> _Meaning:
    """Return the time around a number of units back: the larger the unit, the less exact."""
    least, most = _number(match["number"])
    unit = _key_of((words.UNITS, words.CJK_UNITS), match["unit"])
    if unit in _CLOCK_UNITS:
        size = _CLOCK_UNITS[unit]
        spread = max(10 * MINUTE if size <= MINUTE else HOUR // 2, most * size // 4)
        now = milliseconds(calendar.now)
        return _Meaning((now - most * size - spread, min(now - least * size + spread, now)), max(2 * spread, HOUR))
    if unit == "day":
        return _Meaning(calendar.days(calendar.day_back(most), most - least + 1))
    if unit == "week":
        return _Meaning(calendar.days(calendar.day_back(7 * most + 3), 7 * (most - least) + 7))
    per_unit, spread = (1, 15) if unit == "month" else (12, 45)
    first = calendar.month_back(most * per_unit) - timedelta(days=spread)
    last = calendar.month_back(least * per_unit) + timedelta(days=spread + 1)
    return _Meaning((calendar.at(first), calendar.at(last)), 3 * DAY)


def _resolve_past(match: _Match, calendar: SpokenCalendar) -> _Meaning:
    """Return the last so many units, up to now."""
    _, most = _number(match.groupdict().get("number") or "1")
    unit = _key_of((words.UNITS, words.CJK_UNITS), match["unit"])
    now = milliseconds(calendar.now)
    if unit in _CLOCK_UNITS:
        return _Meaning((now - most * _CLOCK_UNITS[unit], now), HOUR)
    if unit in ("month", "year"):
        return _Meaning((calendar.at(calendar.month_back(most * (12 if unit == "year" else 1))), now))
    return _Meaning((calendar.at(calendar.day_back(most * (7 if unit == "week" else 1))), now))


_CLOCK_UNITS = {"second": 1000, "minute": MINUTE, "hour": HOUR}


def _number(word: str) -> tuple[int, int]:
    if word.isdecimal():
        return int(word), int(word)
    return _key_of((words.NUMBERS,), word)


def _resolve_named_day(match: _Match, calendar: SpokenCalendar) -> _Meaning:
    day = calendar.day_back(_key_of((words.NAMED_DAYS, words.CJK_NAMED_DAYS, words.FRENCH_YESTERDAY), match["day"]))
    return _Meaning(_part_of_day(match["part"], day, calendar))


def _part_of_day(part: str | None, day: date, calendar: SpokenCalendar) -> tuple[int, int]:
    if not part:
        return calendar.days(day)
    first, last = _key_of((words.DAY_PARTS, words.CJK_DAY_PARTS), part)
    return calendar.at(day, first), calendar.at(day, last)


def _resolve_day_part(match: _Match, calendar: SpokenCalendar) -> _Meaning:
    """Return this morning, tonight, or last night."""
    if match.groupdict().get("last"):
        return _Meaning((calendar.at(calendar.day_back(1), 18), calendar.at(calendar.today, 6)))
    return _Meaning(_part_of_day(match.groupdict().get("part") or "evening", calendar.today, calendar))


def _resolve_weekday(match: _Match, calendar: SpokenCalendar) -> _Meaning:
    given = match.groupdict()
    weekday = _key_of((words.WEEKDAYS, words.SHORT_WEEKDAYS, words.CJK_WEEKDAYS), match["weekday"])
    monday = calendar.day_back(calendar.today.weekday())
    day = monday + timedelta(days=weekday)
    is_over = day < calendar.today or bool(given.get("this") and day == calendar.today)
    if given.get("before") or not is_over:
        day -= timedelta(days=7)
    named = any(given.get(name) for name in ("before", "this", "part", "last"))
    return _Meaning(_part_of_day(given.get("part"), day, calendar), needs="" if named else "weekday")


def _resolve_calendar(match: _Match, calendar: SpokenCalendar) -> _Meaning:
    """Return this or the last week, month or year."""
    given = match.groupdict()
    back = 2 if given.get("two") else 0 if given.get("this") else 1
    return _Meaning(calendar.unit(_key_of((words.UNITS,), match["unit"]), back))


def _resolve_cjk_calendar(match: _Match, calendar: SpokenCalendar) -> _Meaning:
    return _Meaning(calendar.unit(*_key_of((words.CJK_CALENDAR,), match[0])))


def _resolve_weekend(match: _Match, calendar: SpokenCalendar) -> _Meaning:
    """Return the last weekend; from Saturday on, `last` is the one before."""
    saturday = calendar.day_back((calendar.today.weekday() + 2) % 7)
    if match["last"] and calendar.today.weekday() > _FRIDAY:
        saturday -= timedelta(days=7)
    return _Meaning(calendar.days(saturday, 2))


_FRIDAY = 4


def _resolve_date(match: _Match, calendar: SpokenCalendar) -> _Meaning:
    """Return a day, a month or a year. Without a year it is the last one that has been."""
    given = match.groupdict()
    name = given.get("name") or ""
    month = _key_of((words.MONTHS,), name) if name else int(given.get("month") or 0)
    day, year = int(given.get("day") or 0), int(given.get("year") or 0)
    to_day = int(given.get("to_day") or 0)
    span = calendar.date_span(year, month, day) if year else calendar.latest(month, day)
    if given.get("last") and span[1] > milliseconds(calendar.now):
        span = calendar.date_span(calendar.today.year - 1, month, day)
    if to_day:
        # In the year of the first day; an order like `5-3 May` has no meaning.
        begin = (EPOCH + timedelta(milliseconds=span[0])).astimezone(calendar.zone)
        span = span[0], max(calendar.date_span(begin.year, month, to_day)[1], span[1])
    return _Meaning(span, needs=_needed_before(given, name, year), is_date=True)


def _needed_before(given: dict[str, str | None], name: str, year: int) -> str:
    if not name:
        return "year" if not given.get("month") else ""
    if year or given.get("last") or given.get("ordinal"):
        return ""
    is_common_word = len(name) <= _SHORT_NAME or name == "march"
    return "month" if is_common_word or not given.get("day") else ""


_SHORT_NAME = 3


def _resolve_vague(match: _Match, calendar: SpokenCalendar) -> _Meaning:
    first, last = _key_of((words.VAGUE, words.CJK_VAGUE), match[0])
    return _Meaning(calendar.days(calendar.day_back(first), first - last + 1), is_definite=False)


# --- the forms ---

_LEFT, _RIGHT = r"(?<![\w/.@#:\\-])", r"(?![\w/@#\\-]|[.:]\w)"
_NUMBER = rf"(?P<number>[0-9]{{1,4}}|{either('|'.join(words.NUMBERS.values()))})"
_UNIT, _CJK_UNIT = _one_of(words.UNITS, "unit"), _one_of(words.CJK_UNITS, "unit")
_CALENDAR_UNIT = _one_of({unit: words.UNITS[unit] for unit in ("week", "month", "year")}, "unit")
_PART = rf"(?: {_one_of(words.DAY_PARTS, 'part')})?"
_CJK_PART = f"{_one_of(words.CJK_DAY_PARTS, 'part')}?"
_WEEKDAY = _one_of(words.WEEKDAYS, "weekday")
_NAME, _YEAR = _one_of(words.MONTHS, "name"), "(?P<year>19[89][0-9]|20[0-9]{2})"
_DAY, _TO_DAY = (f"(?P<{name}>[12][0-9]|3[01]|0?[1-9])" for name in ("day", "to_day"))
_OF = r"(?: of| de)?"
_THEN_YEAR = rf"\b\.?,?(?: (?:de |del )?{_YEAR})?"


def _last_words(*tables: Mapping[Any, str] | str) -> frozenset[str]:
    """Return the last word of every alternative: a text without any of them has no such time."""
    lists = [table if isinstance(table, str) else "|".join(table.values()) for table in tables]
    return frozenset(_WORD.findall(one)[-1] for alternatives in lists for one in alternatives.split("|"))


_Resolve = Callable[[_Match, SpokenCalendar], _Meaning]
_WORD = re.compile(r"[^\W_]+")


class _Rule(NamedTuple):
    """A form of a time. It is tried, and compiled, only for a text with one of its words."""

    words: frozenset[str]
    pattern: re.Pattern[str]
    resolve: _Resolve
    is_cjk: bool = False

    def applies(self, text: str, tokens: set[str]) -> bool:
        return any(sign in text for sign in self.words) if self.is_cjk else not self.words.isdisjoint(tokens)


def _word_rule(hints: frozenset[str] | str, pattern: str, resolve: _Resolve) -> _Rule:
    """Return a rule for words of Latin script. They are not part of a longer name: `2026-01-31-plan.md`."""
    some = frozenset(hints.split()) if isinstance(hints, str) else hints
    return _Rule(some, lazy_pattern(rf"{_LEFT}(?:{pattern})(?:['’]s)?{_RIGHT}"), resolve)


def _cjk_rule(signs: str, pattern: str, resolve: _Resolve) -> _Rule:
    return _Rule(frozenset(signs), lazy_pattern(pattern), resolve, is_cjk=True)


_MONTH_WORDS, _WEEKDAY_WORDS = _last_words(words.MONTHS), _last_words(words.WEEKDAYS)
_HAS_YEAR = "#"  # stands for a number like 2026 among the words of a text

_RULES: tuple[_Rule, ...] = (
    # dates
    _word_rule(_HAS_YEAR, rf"{_YEAR}([-/])(?P<month>0[1-9]|1[0-2])\2(?P<day>[0-3][0-9])(?:[t ](?:[01]\d|2[0-3]):[0-5]\d(?::\d\d)?z?)?", _resolve_date),
    _word_rule(_HAS_YEAR, rf"{_DAY}\.(?P<month>0?[1-9]|1[0-2])\.{_YEAR}", _resolve_date),
    _word_rule(_MONTH_WORDS, rf"{_DAY}(?:st|nd|rd|th|\.)?(?: ?[-–] ?| and | to | bis ){_TO_DAY}(?P<ordinal>st|nd|rd|th|\.)?{_OF} {_NAME}{_THEN_YEAR}", _resolve_date),
    _word_rule(_MONTH_WORDS, rf"{_DAY}(?P<ordinal>(?:st|nd|rd|th|er|\.|º)?(?: of| de)|st|nd|rd|th|er|\.|º)? {_NAME}{_THEN_YEAR}", _resolve_date),
    _word_rule(_MONTH_WORDS, rf"{_NAME}\.? {_DAY}(?P<ordinal>st|nd|rd|th)?,?(?: {_YEAR})?", _resolve_date),
    _word_rule(_MONTH_WORDS, rf"{_NAME}\.?,? (?:of |de |del )?{_YEAR}", _resolve_date),
    _word_rule(_MONTH_WORDS, rf"(?P<last>last|letzten|letzter) {_NAME}", _resolve_date),
    _word_rule(_MONTH_WORDS, rf"{_NAME} (?P<last>{either(words.LAST_AFTER)})", _resolve_date),
    _cjk_rule("月", rf"(?:{_YEAR}年|(?<!\d))(?P<month>1[0-2]|0?[1-9])月(?:{_DAY}[日号])?", _resolve_date),
    _cjk_rule("年", rf"(?<!\d){_YEAR}年(?!前)", _resolve_date),
    # back from now
    _word_rule("ago back", rf"(?:about |around |some )?{_NUMBER} {_UNIT}(?: or so)? (?:ago|back)", _resolve_ago),
    _word_rule("vor il hace", rf"(?:vor|il y a|hace)(?: etwa| environ)? {_NUMBER} {_UNIT}", _resolve_ago),
    _cjk_rule("前", rf"(?<!\d){_NUMBER}{_CJK_UNIT}前", _resolve_ago),
    _word_rule("last past previous", rf"(?:(?:in|over|during|within|for) )?(?:the )?(?:last|past|previous) {_NUMBER} {_UNIT}", _resolve_past),
    _word_rule("letzten vergangenen", rf"(?:in den |die )?(?:letzten|vergangenen) {_NUMBER} {_UNIT}", _resolve_past),
    _word_rule("past", rf"(?:in |over )?(?:the )?past {_UNIT}", _resolve_past),
    # weekdays
    _word_rule(_WEEKDAY_WORDS, rf"{_WEEKDAY}{_PART}(?: of)? (?P<before>last week|der letzten woche)", _resolve_weekday),
    _word_rule(_WEEKDAY_WORDS, rf"(?P<before>last week|letzte woche)(?: on)? {_WEEKDAY}{_PART}", _resolve_weekday),
    _word_rule(_WEEKDAY_WORDS, rf"(?:(?P<this>this|diesen)|(?P<last>{either(words.LAST)}|past)) {_WEEKDAY}{_PART}", _resolve_weekday),
    _word_rule(_WEEKDAY_WORDS, rf"(?:le |el )?{_WEEKDAY} (?P<last>{either(words.LAST_AFTER)})", _resolve_weekday),
    _word_rule(_last_words(words.SHORT_WEEKDAYS), rf"(?P<last>last|on) {_one_of(words.SHORT_WEEKDAYS, 'weekday')}", _resolve_weekday),
    _word_rule(_WEEKDAY_WORDS, rf"{_WEEKDAY}{_PART}", _resolve_weekday),
    _cjk_rule("曜", rf"(?P<before>先週の)?(?P<weekday>[月火水木金土日])(?P<last>曜日?){_CJK_PART}", _resolve_weekday),
    _cjk_rule("周期拜", rf"(?P<before>上个?)?(?P<last>周|星期|礼拜)(?P<weekday>[一二三四五六日天]){_CJK_PART}", _resolve_weekday),
    # the calendar
    _word_rule(_last_words(words.NAMED_DAYS), rf"{_one_of(words.NAMED_DAYS, 'day')}{_PART}", _resolve_named_day),
    _cjk_rule("今昨前お", rf"{_one_of(words.CJK_NAMED_DAYS, 'day')}{_CJK_PART}", _resolve_named_day),
    _word_rule("morning afternoon evening night", rf"this {_one_of(words.DAY_PARTS, 'part')}", _resolve_day_part),
    _word_rule("tonight night", "tonight|(?P<last>last night)", _resolve_day_part),
    _word_rule("weekend", "(?:the )?(?:(?P<last>last|past) |this )?weekend", _resolve_weekend),
    _word_rule("before", "(?:the )?(?P<unit>week|month|year) (?P<two>before last)", _resolve_calendar),
    _word_rule(_last_words(words.THIS, words.LAST), rf"(?:(?P<this>{either(words.THIS)})|(?:the )?(?:{either(words.LAST)})) {_CALENDAR_UNIT}", _resolve_calendar),
    _word_rule(_last_words(words.LAST_AFTER), rf"(?:{either(words.ARTICLES)}){_CALENDAR_UNIT} (?:{either(words.LAST_AFTER)})", _resolve_calendar),
    _cjk_rule("今这本先上去昨", _one_of(words.CJK_CALENDAR, "unit"), _resolve_cjk_calendar),
    # the rest
    _word_rule(_last_words(words.VAGUE), _one_of(words.VAGUE, "vague"), _resolve_vague),
    _cjk_rule("最先前", _one_of(words.CJK_VAGUE, "vague"), _resolve_vague),
    _word_rule(_MONTH_WORDS, _NAME, _resolve_date),
    _word_rule(_HAS_YEAR, _YEAR, _resolve_date),
)  # fmt: skip
_FRENCH_RULE = _word_rule("hier", rf"{_one_of(words.FRENCH_YESTERDAY, 'day')}{_PART}", _resolve_named_day)
_FRENCH_WORDS = frozenset(words.FRENCH_WORDS.split("|"))
_IS_YEAR = re.compile("(?:19[89]|20[0-9])[0-9]")


def _find_tokens(text: str) -> set[str]:
    tokens = set(_WORD.findall(text))
    return tokens | {_HAS_YEAR} if any(_IS_YEAR.fullmatch(token) for token in tokens) else tokens


# --- the words around a time ---

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
