"""Times as people write and read them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.errors import UsageError
from everturn.text.times import ago, duration, iso, parse_when

NOW = 1_769_817_600_000 + 45_296_789  # 2026-01-31T12:34:56.789Z
DAY = 86_400_000


def test_a_time_is_shown_as_rfc_3339_in_utc() -> None:
    assert iso(NOW) == "2026-01-31T12:34:56.789Z"
    assert iso(NOW - 789) == "2026-01-31T12:34:56Z"
    assert iso(0) == "1970-01-01T00:00:00Z"
    assert iso(-1) == "1969-12-31T23:59:59.999Z"


def test_no_time_and_an_impossible_time_are_shown_as_nothing() -> None:
    assert iso(None) == iso(10**18) == ""


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31", "2026-01-31T00:00:00Z"),
        ("2026-01", "2026-01-01T00:00:00Z"),
        ("2026-01-31T10:00", "2026-01-31T10:00:00Z"),
        ("2026-01-31 10:00:05", "2026-01-31T10:00:05Z"),
        ("2026-01-31T10:00:00.250Z", "2026-01-31T10:00:00.250Z"),
        ("2026-01-31t10:00z", "2026-01-31T10:00:00Z"),
        ("2026-01-31T10:00+02:00", "2026-01-31T08:00:00Z"),
        ("7d", "2026-01-24T12:34:56.789Z"),
        ("12h", "2026-01-31T00:34:56.789Z"),
        ("30m", "2026-01-31T12:04:56.789Z"),
        ("2w", "2026-01-17T12:34:56.789Z"),
        ("3 days ago", "2026-01-28T12:34:56.789Z"),
        ("1y", "2025-01-31T12:34:56.789Z"),
        ("now", "2026-01-31T12:34:56.789Z"),
        (" Today ", "2026-01-31T00:00:00Z"),
        ("yesterday", "2026-01-30T00:00:00Z"),
        ("last  week", "2026-01-24T00:00:00Z"),
        ("Monday", "2026-01-26T00:00:00Z"),
        ("last Saturday", "2026-01-24T00:00:00Z"),
        ("3 May", "2025-05-03T00:00:00Z"),
        ("31.01.2026", "2026-01-31T00:00:00Z"),
        ("march", "2025-03-01T00:00:00Z"),
    ],
)
def test_a_moment_can_be_given_in_many_ways(text: str, moment: str) -> None:
    assert iso(parse_when(text, NOW)) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "d",
        "-7d",
        "7x",
        "2026-13-01",
        "2026-02-30T10:00",
        "2026-01-31T25:00",
        "31.13.2026",
        "before monday",
        "monday or so",
        "two weeks ago",
        "１d",
        "9" * 40 + "d",
    ],
)
def test_what_is_no_time_is_answered_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a time; try 2026-01-31.*7d.*yesterday"):
        parse_when(text, NOW)


@settings(deadline=None)
@given(st.integers(-(10**13), 10**14))
def test_what_is_shown_can_be_read_back(ms: int) -> None:
    assert parse_when(iso(ms), NOW) == ms


@settings(deadline=None)
@given(st.text(max_size=30))
def test_any_other_text_is_a_time_or_a_usage_error(text: str) -> None:
    try:
        assert isinstance(parse_when(text, NOW), int)
    except UsageError as error:
        assert "is not a time" in str(error)


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (0, "just now"), (59_999, "just now"), (60_000, "1 minute ago"), (3 * 3_600_000, "3 hours ago"), (DAY, "1 day ago"), (3 * DAY, "3 days ago"),
        (8 * DAY, "1 week ago"), (65 * DAY, "2 months ago"), (800 * DAY, "2 years ago"), (-10_000, "just now"), (-2 * DAY, "in 2 days"),
    ],
)  # fmt: skip
def test_how_long_ago_is_told_in_the_largest_unit(distance: int, words: str) -> None:
    assert ago(NOW - distance, NOW) == words
    assert ago(None, NOW) == ""


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (None, ""),
        (-5, "0ms"),
        (340, "340ms"),
        (1_999, "1s"),
        (72_000, "1m 12s"),
        (60_000, "1m"),
        (7_500_000, "2h 5m"),
        (DAY + 3_600_000, "1d 1h"),
        (DAY, "1d"),
    ],
)
def test_how_long_it_took_is_told_in_two_units(ms: int | None, words: str) -> None:
    assert duration(ms) == words
