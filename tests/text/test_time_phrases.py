"""Times that a text mentions, at a fixed moment."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.text.time_phrases import SpokenTime, find_times
from everturn.text.times import DAY, EARLIEST, LATEST, describe_span

NOW = datetime(2026, 11, 18, 15, 30, tzinfo=UTC)  # a Wednesday
_OPEN = {"-": EARLIEST, "+": LATEST}


def ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def moment(text: str, zone: tzinfo = UTC) -> int:
    """Parse `2026-11-18`, `2026-11-18 05:00`, `-` or `+`."""
    return _OPEN[text] if text in _OPEN else ms(datetime.fromisoformat(text).replace(tzinfo=zone))


def one_time(text: str, now: datetime = NOW, zone: tzinfo = UTC) -> SpokenTime:
    [found] = find_times(text, ms(now), zone)
    return found


TABLE = [
    # back from now
    ("3 days ago", "2026-11-15", "2026-11-16"),
    ("what did we do 1 day ago", "2026-11-17", "2026-11-18"),
    ("a day ago", "2026-11-17", "2026-11-18"),
    ("ten days ago", "2026-11-08", "2026-11-09"),
    ("a couple of days ago", "2026-11-16", "2026-11-17"),
    ("a few days ago", "2026-11-12", "2026-11-17"),
    ("a week ago", "2026-11-08", "2026-11-15"),
    ("two weeks ago", "2026-11-01", "2026-11-08"),
    ("about 3 weeks ago", "2026-10-25", "2026-11-01"),
    ("a month ago", "2026-10-03", "2026-11-03"),
    ("6 months ago", "2026-05-03", "2026-06-03"),
    ("a year ago", "2025-10-04", "2026-01-03"),
    ("20 minutes ago", "2026-11-18 15:00", "2026-11-18 15:20"),
    ("an hour ago", "2026-11-18 14:00", "2026-11-18 15:00"),
    ("8 hours ago", "2026-11-18 05:30", "2026-11-18 09:30"),
    ("in the last 3 days", "2026-11-15", "2026-11-18 15:30"),
    ("over the past two weeks", "2026-11-04", "2026-11-18 15:30"),
    ("the last 2 hours", "2026-11-18 13:30", "2026-11-18 15:30"),
    ("the last 2 months", "2026-09-18", "2026-11-18 15:30"),
    ("the past week", "2026-11-11", "2026-11-18 15:30"),
    # by the calendar
    ("today", "2026-11-18", "2026-11-19"),
    ("yesterday", "2026-11-17", "2026-11-18"),
    ("yesterday's build", "2026-11-17", "2026-11-18"),
    ("the day before yesterday", "2026-11-16", "2026-11-17"),
    ("yesterday morning", "2026-11-17 05:00", "2026-11-17 12:00"),
    ("yesterday afternoon", "2026-11-17 12:00", "2026-11-17 18:00"),
    ("yesterday night", "2026-11-17 20:00", "2026-11-18 05:00"),
    ("this morning", "2026-11-18 05:00", "2026-11-18 12:00"),
    ("tonight", "2026-11-18 17:00", "2026-11-19"),
    ("last night", "2026-11-17 18:00", "2026-11-18 06:00"),
    ("this week", "2026-11-16", "2026-11-23"),
    ("last week", "2026-11-09", "2026-11-16"),
    ("the week before last", "2026-11-02", "2026-11-09"),
    ("this month", "2026-11-01", "2026-12-01"),
    ("last month", "2026-10-01", "2026-11-01"),
    ("this year", "2026-01-01", "2027-01-01"),
    ("last year", "2025-01-01", "2026-01-01"),
    ("last weekend", "2026-11-14", "2026-11-16"),
    # weekdays
    ("last Tuesday", "2026-11-17", "2026-11-18"),
    ("last Wednesday", "2026-11-11", "2026-11-12"),
    ("on Wednesday", "2026-11-11", "2026-11-12"),
    ("this Wednesday", "2026-11-18", "2026-11-19"),
    ("on Friday", "2026-11-13", "2026-11-14"),
    ("on Friday afternoon", "2026-11-13 12:00", "2026-11-13 18:00"),
    ("Tuesday morning", "2026-11-17 05:00", "2026-11-17 12:00"),
    ("Tuesday last week", "2026-11-10", "2026-11-11"),
    ("last week on Friday", "2026-11-13", "2026-11-14"),
    ("last fri", "2026-11-13", "2026-11-14"),
    # dates
    ("on 3 May", "2026-05-03", "2026-05-04"),
    ("on 3 December", "2025-12-03", "2025-12-04"),
    ("May 3rd", "2026-05-03", "2026-05-04"),
    ("on the 3rd of May", "2026-05-03", "2026-05-04"),
    ("8 May 2023", "2023-05-08", "2023-05-09"),
    ("May 8, 2023", "2023-05-08", "2023-05-09"),
    ("the 8th of May 2023", "2023-05-08", "2023-05-09"),
    ("8 may, 2023?", "2023-05-08", "2023-05-09"),
    ("2026-01-31", "2026-01-31", "2026-02-01"),
    ("2026-01-31T10:00Z", "2026-01-31", "2026-02-01"),
    ("31.01.2026", "2026-01-31", "2026-02-01"),
    ("29 February", "2024-02-29", "2024-03-01"),
    ("in March", "2026-03-01", "2026-04-01"),
    ("in December", "2025-12-01", "2026-01-01"),
    ("in November", "2026-11-01", "2026-12-01"),
    ("last November", "2025-11-01", "2025-12-01"),
    ("in March 2025", "2025-03-01", "2025-04-01"),
    ("early december, 2023", "2023-12-01", "2024-01-01"),
    ("31 June 2023", "2023-06-01", "2023-07-01"),
    ("in 2025", "2025-01-01", "2026-01-01"),
    # joined, and open to one side
    ("between 3 May and 5 June", "2026-05-03", "2026-06-06"),
    ("between March and May", "2026-03-01", "2026-06-01"),
    ("between 3 and 5 May", "2026-05-03", "2026-05-06"),
    ("3-5 May 2025", "2025-05-03", "2025-05-06"),
    ("from Monday to Wednesday", "2026-11-16", "2026-11-19"),
    ("from 2026-01-01 until 2026-01-31", "2026-01-01", "2026-02-01"),
    ("between 8 May 2023 and June 2023", "2023-05-08", "2023-07-01"),
    ("before March", "-", "2026-03-01"),
    ("before yesterday", "-", "2026-11-17"),
    ("until last week", "-", "2026-11-16"),
    ("by March", "-", "2026-04-01"),
    ("after 3 May", "2026-05-04", "+"),
    ("since Monday", "2026-11-16", "+"),
    ("since 3 days ago", "2026-11-15", "+"),
    ("since 2025", "2025-01-01", "+"),
    # other languages
    ("vor 3 Tagen", "2026-11-15", "2026-11-16"),
    ("vor einer Woche", "2026-11-08", "2026-11-15"),
    ("gestern Abend", "2026-11-17 17:00", "2026-11-18"),
    ("vorgestern", "2026-11-16", "2026-11-17"),
    ("letzte Woche", "2026-11-09", "2026-11-16"),
    ("letzten Montag", "2026-11-16", "2026-11-17"),
    ("am Freitag", "2026-11-13", "2026-11-14"),
    ("im März", "2026-03-01", "2026-04-01"),
    ("8. Mai 2023", "2023-05-08", "2023-05-09"),
    ("seit Montag", "2026-11-16", "+"),
    ("vor dem 3. Mai", "-", "2026-05-03"),
    ("il y a deux jours", "2026-11-16", "2026-11-17"),
    ("qu'ai-je dit hier", "2026-11-17", "2026-11-18"),
    ("avant-hier", "2026-11-16", "2026-11-17"),
    ("la semaine dernière", "2026-11-09", "2026-11-16"),
    ("lundi dernier", "2026-11-16", "2026-11-17"),
    ("le 8 mai 2023", "2023-05-08", "2023-05-09"),
    ("hace tres días", "2026-11-15", "2026-11-16"),
    ("ayer", "2026-11-17", "2026-11-18"),
    ("el mes pasado", "2026-10-01", "2026-11-01"),
    ("el 8 de mayo de 2023", "2023-05-08", "2023-05-09"),
    ("昨日", "2026-11-17", "2026-11-18"),
    ("3日前の変更", "2026-11-15", "2026-11-16"),
    ("先週の金曜日", "2026-11-13", "2026-11-14"),
    ("昨日から", "2026-11-17", "+"),
    ("2026年5月3日", "2026-05-03", "2026-05-04"),
    ("昨天", "2026-11-17", "2026-11-18"),
    ("三天前", "2026-11-15", "2026-11-16"),
    ("上周五", "2026-11-13", "2026-11-14"),
    ("上个月", "2026-10-01", "2026-11-01"),
    ("两周前", "2026-11-01", "2026-11-08"),
]


@pytest.mark.parametrize(("text", "first", "last"), TABLE)
def test_an_expression_means_a_span(text: str, first: str, last: str) -> None:
    found = one_time(text)
    assert found.span == (moment(first), moment(last))
    assert found.is_definite


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("recently", "2026-11-04", "2026-11-19"),
        ("the other day", "2026-11-11", "2026-11-18"),
        ("neulich", "2026-11-04", "2026-11-19"),
        ("the Friday deploy", "2026-11-13", "2026-11-14"),  # perhaps a name
    ],
)
def test_what_is_not_exact_is_soft(text: str, first: str, last: str) -> None:
    found = one_time(text)
    assert (found.span, found.is_definite) == ((moment(first), moment(last)), False)


@pytest.mark.parametrize(
    ("now", "text", "first", "last"),
    [
        ("2026-03-31", "a month ago", "2026-02-13", "2026-03-16"),  # no 31 February
        ("2026-03-31", "last month", "2026-02-01", "2026-03-01"),
        ("2026-01-01", "yesterday", "2025-12-31", "2026-01-01"),
        ("2026-01-01", "last month", "2025-12-01", "2026-01-01"),
        ("2024-03-01", "yesterday", "2024-02-29", "2024-03-01"),
        ("2024-02-29", "a year ago", "2023-01-14", "2023-04-15"),
        ("2025-03-01", "on 29 February", "2024-02-29", "2024-03-01"),
        ("2026-11-16", "last week", "2026-11-09", "2026-11-16"),  # a Monday
        ("2026-11-15", "this week", "2026-11-09", "2026-11-16"),  # a Sunday
        ("2026-11-17", "last Tuesday", "2026-11-10", "2026-11-11"),  # a Tuesday
        ("2026-11-17", "on Tuesday", "2026-11-10", "2026-11-11"),
        ("2026-11-15", "last weekend", "2026-11-07", "2026-11-09"),
        ("2026-11-15", "this weekend", "2026-11-14", "2026-11-16"),
        ("2026-12-31", "in December", "2026-12-01", "2027-01-01"),
        ("2026-03-10", "last March", "2025-03-01", "2025-04-01"),
    ],
)
def test_the_ends_of_months_weeks_and_years(now: str, text: str, first: str, last: str) -> None:
    assert one_time(text, datetime.fromisoformat(f"{now} 12:00+00:00")).span == (moment(first), moment(last))


@pytest.mark.parametrize(
    ("now", "text", "first", "last"),
    [
        ("2026-03-29 12:00", "today", "2026-03-29", "2026-03-30"),  # 23 hours
        ("2026-10-26 12:00", "yesterday", "2026-10-25", "2026-10-26"),  # 25 hours
        ("2026-11-18 00:30", "yesterday", "2026-11-17", "2026-11-18"),
        ("2026-03-30 09:00", "yesterday morning", "2026-03-29 05:00", "2026-03-29 12:00"),
    ],
)
def test_days_begin_at_midnight_of_the_time_zone(now: str, text: str, first: str, last: str) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    asked = datetime.fromisoformat(now).replace(tzinfo=berlin)
    assert one_time(text, asked, berlin).span == (moment(first, berlin), moment(last, berlin))


@pytest.mark.parametrize(
    "text",
    ["", "it may fail", "may 2 threads wait", "3 may fail", "march on", "version 3.11.2", "port 2023 error 1999", "sat down",
     "before 2000 requests", "report-2026-01-31.md", "logs/2026-01-31/today.txt", "was habe ich hier gesagt", "31 June",
     "9999 years ago", "99 of 2026-13-41", "the last error", "this function", "today_total"],
)  # fmt: skip
def test_what_is_no_time_is_none(text: str) -> None:
    assert find_times(text, ms(NOW)) == ()


def test_without_now_only_dates_with_a_year_are_times() -> None:
    assert find_times("yesterday, last week, on 8 May, 3 days ago") == ()
    assert [time.span for time in find_times("in May 2023")] == [(moment("2023-05-01"), moment("2023-06-01"))]


def test_several_times_are_found_in_the_order_of_the_text() -> None:
    found = find_times("the error of yesterday and the one in March 2025", ms(NOW))
    assert [time.span[0] for time in found] == [moment("2026-11-17"), moment("2025-03-01")]


def test_the_words_of_a_time_and_those_before_it_are_marked() -> None:
    text = "what broke  since\tlast Tuesday again"
    found = one_time(text)
    assert " ".join(text.split())[found.start : found.end] == "since last Tuesday"


def test_the_words_of_a_date_are_kept_because_texts_contain_them() -> None:
    assert [one_time(text).date for text in ("on 8 May 2023", "yesterday", "in March")] == ["8 may 2023", "", ""]


def test_the_farther_back_the_less_exact_a_time_is() -> None:
    slack = [one_time(text).slack for text in ("20 minutes ago", "3 days ago", "6 months ago")]
    assert slack == sorted(slack) and len(set(slack)) == len(slack)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("yesterday", "17 November 2026"),
        ("two weeks ago", "1–7 November 2026"),
        ("between 3 May and 5 June", "3 May 2026 – 5 June 2026"),
        ("yesterday morning", "17 November 2026, 05:00–12:00"),
        ("since Monday", "since 16 November 2026"),
        ("before March", "before 1 March 2026"),
    ],
)
def test_a_span_is_described_for_people(text: str, words: str) -> None:
    assert describe_span(*one_time(text).span) == words


# --- properties ---

PHRASES = [text for text, _, _ in TABLE]
phrases = st.sampled_from(PHRASES)
fillers = st.lists(
    st.sampled_from("the build cache of parser and why broke json 会话 : ? (x) 7 2026".split()), max_size=5
)
moments = st.integers(0, 4_102_444_800_000)


def spans(text: str, now: int) -> list[tuple[int, int, bool]]:
    return [(*time.span, time.is_definite) for time in find_times(text, now)]


@settings(deadline=None)
@given(st.text(), moments)
def test_no_text_raises_and_every_span_has_an_order(text: str, now: int) -> None:
    for time in find_times(text, now):
        assert time.first <= time.last
        assert 0 <= time.start < time.end <= len(" ".join(text.split()))
        assert describe_span(time.first, time.last)


@settings(deadline=None)
@given(
    st.lists(phrases | st.from_regex(r"[0-9]{1,4} (days|weeks|months|years) ago", fullmatch=True), max_size=4), moments
)
def test_every_span_has_an_order_at_any_time(some: list[str], now: int) -> None:
    found = find_times(" ".join(some), now)
    assert all(time.first <= time.last for time in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


@settings(deadline=None)
@given(phrases, fillers, st.randoms(use_true_random=False))
def test_white_space_and_case_do_not_matter(phrase: str, words: list[str], random: Random) -> None:
    text = " ".join([*words, phrase])
    other = "".join(random.choice((one.lower(), one.upper())) if one.isascii() else one for one in text)
    other = f"\t {other.replace(' ', '  ')}\n"
    assert spans(other, ms(NOW)) == spans(text, ms(NOW))


@settings(deadline=None)
@given(phrases, fillers, fillers)
def test_more_words_never_remove_the_time(phrase: str, before: list[str], after: list[str]) -> None:
    assert find_times(" ".join([*before, phrase, *after]), ms(NOW))


def test_a_tolerance_of_a_day_is_usual() -> None:
    assert {one_time(text).slack for text in ("yesterday", "last week", "on 3 May", "in March")} == {DAY}
