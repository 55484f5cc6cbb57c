"""Clock times and spans as screens draw them."""

from __future__ import annotations

from datetime import date

import pytest

from everturn.sources.terminal.rows import clock, date_sayings, milliseconds
from everturn.sources.terminal.transcript import DrawnSaying, TerminalTranscript

NOON = 1_766_404_800_000  # 2025-12-22 12:00 UTC
MINUTE = 60_000


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("12:00 AM", (None, 0)),
        ("12:59 PM", (None, 779)),
        ("1:05 PM", (None, 785)),
        ("02 Jan 2006 03:04 PM", (date(2006, 1, 2), 904)),
        ("31 Feb 2006 03:04 PM", None),
        ("02 Foo 2006 03:04 PM", None),
        ("13:00 PM", None),
        ("02:60 PM", None),
        ("noon", None),
    ],
)
def test_a_time_is_a_minute_of_a_day(text: str, found: tuple[date | None, int] | None) -> None:
    assert clock(text) == found


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("157ms", 157),
        ("36.1s", 36_100),
        ("1m 5s", 65_000),
        ("2h 3m", 7_380_000),
        ("3m", 180_000),
        ("1d 2h", 93_600_000),
    ],
)
def test_a_span_is_read_in_all_its_units(text: str, ms: int) -> None:
    assert milliseconds(text) == ms


@pytest.mark.parametrize("text", ["", "s", "m", "1x", "one"])
def test_what_is_no_span_has_no_length(text: str) -> None:
    assert milliseconds(text) is None


def test_a_prompt_drawn_at_a_known_moment_tells_the_zone() -> None:
    said = [
        DrawnSaying("user", time_text="09:20 AM"),
        DrawnSaying("user", time_text="05:31 PM"),
        DrawnSaying("user", time_text="05:31 PM"),
    ]
    # India: five and a half hours east. The first was drawn long after it had been sent.
    seen = [NOON, NOON + 60_000, NOON + 90_000]
    found = date_sayings(said, seen, TerminalTranscript((), 80, 24, NOON))
    assert [(item.at or 0) - NOON for item in found] == [(-8 * 60 - 10) * MINUTE, MINUTE, MINUTE]


def test_without_a_time_on_the_screen_it_is_the_moment_of_drawing() -> None:
    (found,) = date_sayings([DrawnSaying("user")], [NOON + 1], TerminalTranscript((), 80, 24))
    assert (found.at, found.precision) == (NOON + 1, "s")


def test_without_any_clock_nothing_is_made_up() -> None:
    (found,) = date_sayings([DrawnSaying("user", time_text="05:31 PM")], [None], TerminalTranscript((), 80, 24))
    assert (found.at, found.precision) == (None, "")
