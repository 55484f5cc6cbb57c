"""Times that a question speaks of."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from everturn.retrieval.index_query import times_spoken_of

DAY = 86_400_000
NOW = int(datetime(2024, 3, 10, 15, tzinfo=UTC).timestamp() * 1000)


def at(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    "text", ["on 8 May 2023", "May 8, 2023", "the 8th of May 2023", "at 2023-05-08", "may 8th, 2023 it", "8 may, 2023?"]
)
def test_a_day_is_a_span_of_one_day(text: str) -> None:
    assert times_spoken_of(text) == ((at(2023, 5, 8), at(2023, 5, 9)),)


@pytest.mark.parametrize("text", ["in December 2023", "Dec 2023", "early december, 2023"])
def test_a_month_is_a_span_of_one_month(text: str) -> None:
    assert times_spoken_of(text) == ((at(2023, 12, 1), at(2024, 1, 1)),)


def test_without_a_year_the_last_one_is_meant() -> None:
    assert times_spoken_of("on 8 May", NOW) == ((at(2023, 5, 8), at(2023, 5, 9)),)
    assert times_spoken_of("in February", NOW) == ((at(2024, 2, 1), at(2024, 3, 1)),)
    assert times_spoken_of("on 8 May") == ()


def test_what_is_told_from_today_needs_today() -> None:
    assert times_spoken_of("the bug of yesterday", NOW) == ((at(2024, 3, 9), at(2024, 3, 10)),)
    assert times_spoken_of("the bug of yesterday") == ()
    start, end = times_spoken_of("what did we do last week", NOW)[0]
    assert start == at(2024, 2, 25) and end == at(2024, 3, 10)


def test_a_year_needs_a_word_before_it() -> None:
    assert times_spoken_of("in 2023") == ((at(2023, 1, 1), at(2024, 1, 1)),)
    assert times_spoken_of("port 2023 error 1999") == ()


@pytest.mark.parametrize("text", ["it may fail", "march on", "version 3.11.2", "", "may 2"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert times_spoken_of(text) == ()


def test_of_a_day_that_never_was_the_month_is_left() -> None:
    assert times_spoken_of("31 June 2023") == ((at(2023, 6, 1), at(2023, 7, 1)),)


def test_several_times_are_several_spans() -> None:
    assert len(times_spoken_of("between 8 May 2023 and June 2023")) == 2
