"""How full the window is, and what was spent."""

from __future__ import annotations

from everturn.chat.setup import Meter, SessionTokens, TokenTotals, report, short
from everturn.llm.protocol import ReplyTokens


def test_tokens_are_said_as_people_say_them() -> None:
    assert [short(n) for n in (0, 999, 2345, 999_949, 70_600_000)] == ["0", "999", "2.3K", "999.9K", "70.6M"]


def test_running_totals_are_taken_by_differences_and_one_that_falls_has_begun_anew() -> None:
    counter = TokenTotals()
    assert [counter.since(*given) for given in ((100, 10), (250, 30), (250, 30), (80, 5))] == [
        (100, 10), (150, 20), (0, 0), (80, 5),
    ]  # fmt: skip


def test_the_providers_count_goes_before_the_estimate_and_estimates_are_marked() -> None:
    meter = Meter(10_000)
    meter.record_estimate(4_000)
    assert meter.describe() == "40% full (~4.0K of 10.0K tokens)"
    meter.record_usage(ReplyTokens(3_000, 100, cache_read=2_000))
    assert meter.describe() == "51% full (5.1K of 10.0K tokens)"
    meter.record_usage(ReplyTokens(6_000, 0, source="estimate"))
    assert meter.describe() == "60% full (~6.0K of 10.0K tokens)"
    assert Meter().describe().endswith("of 128.0K tokens, assumed)")


def test_each_threshold_is_told_once_until_there_is_room_again() -> None:
    meter = Meter(100)
    told = []
    for used in (79, 80, 85, 92, 96, 99, 20, 81):
        meter.record_usage(ReplyTokens(used))
        told.append(bool(meter.suggestion()))
    assert told == [False, True, False, True, True, False, False, True]


def test_the_report_keeps_restoring_apart() -> None:
    assert report(SessionTokens(156, 89, 67, 1234), 3) == (
        "Total Queries: 3\nRestoration: 156 tokens (in: 89, out: 67)\nSession Tokens: 1,234 tokens\n"
        "Combined Total: 1,390 tokens"
    )
