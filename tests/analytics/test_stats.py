"""Work and cost over time."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.analytics.cost import Prices, load_prices
from everturn.analytics.stats import count_stats, periods_between
from everturn.store.contract import AnalyticsScope, SessionFilter, Store
from tests.analytics.histories import START, MadeSession, chain, fill

DAY = 86_400_000
OWN = """
[[price]]
names = ["model-1"]
input = 1.0
output = 10.0
cache_read = 0.1
cache_write = 2.0
"""


@pytest.fixture
def prices(tmp_path: Path) -> Prices:
    (tmp_path / "prices.toml").write_text(OWN)
    return load_prices(tmp_path / "prices.toml")


@pytest.fixture
def filled(store: Store) -> Store:
    """2026-01-05 is a Monday: two sessions in one week, one of a subagent, one in the next month."""
    fill(
        store,
        [
            MadeSession("a", [chain("Read", "Edit!stale"), chain("Bash")]),
            MadeSession("b", [chain("Read")], agent="other", model="model-9", started=START + 2 * DAY),
            MadeSession("c", [chain("Read", "Read")], started=START + 30 * DAY),
            MadeSession("c/agent-1", [chain("Glob")], "subagent", "c", started=START + 30 * DAY),
        ],
    )
    return store


def test_work_is_counted_by_period(filled: Store, prices: Prices) -> None:
    months = count_stats(filled, AnalyticsScope(), prices).items
    assert [(one.period, one.sessions, one.turns, one.calls, one.errors) for one in months] == [
        ("2026-01", 2, 3, 4, 1),
        ("2026-02", 1, 2, 3, 0),  # the subagent is no session; its work counts
    ]
    weeks = count_stats(filled, AnalyticsScope(), prices, "week").items
    assert [(one.period, one.calls) for one in weeks] == [("2026-W02", 4), ("2026-W06", 3)]
    days = count_stats(filled, AnalyticsScope(), prices, "day").items
    assert [one.period for one in days] == ["2026-01-05", "2026-01-07", "2026-02-04"]


def test_tokens_and_money_are_those_of_the_responses(filled: Store, prices: Prices) -> None:
    """Each response: 1,000 in, 200 out, 5,000 read from the cache, 10 written to it: 3,520 micro-dollars."""
    found = count_stats(filled, AnalyticsScope(), prices)
    january, february = found.items
    assert (january.responses, january.tokens_in, january.tokens_out) == (4, 4000, 800)
    assert (february.tokens_cache_read, february.tokens_cache_write) == (15_000, 30)
    assert february.cost.micro_dollars == 3 * 3520
    assert (january.cost.micro_dollars, january.cost.unknown_models) == (3 * 3520, ("model-9",))
    assert found.total.cost.micro_dollars == 6 * 3520
    assert found.subagents.micro_dollars == 3520
    assert count_stats(filled, AnalyticsScope(subagents=False), prices).total.cost.micro_dollars == 5 * 3520


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("agent", {"maker": 6, "other": 1}),
        ("model", {"model-1": 6, "model-9": 1}),
        ("workspace", {"": 7}),
    ],
)
def test_it_can_be_grouped(filled: Store, prices: Prices, by: str, expected: dict[str, int]) -> None:
    counted: dict[str, int] = {}
    for one in count_stats(filled, AnalyticsScope(), prices, "month", by).items:
        counted[one.key] = counted.get(one.key, 0) + one.calls
    assert counted == expected


def test_since_leaves_out_what_was_before(filled: Store, prices: Prices) -> None:
    found = count_stats(filled, AnalyticsScope(SessionFilter(since=START + 20 * DAY)), prices)
    assert [one.period for one in found.items] == ["2026-02"] and found.total.calls == 3


def test_tools_and_errors_are_named(filled: Store, prices: Prices) -> None:
    found = count_stats(filled, AnalyticsScope(), prices)
    assert [(one.name, one.n) for one in found.tools[:1]] == [("Read", 4)]
    assert [(one.name, one.n) for one in found.errors] == [("stale", 1)]


def test_an_empty_archive_has_a_total_of_nothing(store: Store, prices: Prices) -> None:
    found = count_stats(store, AnalyticsScope(), prices)
    assert (found.total.sessions, found.total.calls, found.total.cost.micro_dollars) == (0, 0, 0)


def test_periods_without_work_have_names_too() -> None:
    assert periods_between("2025-11", "2026-02", "month") == ["2025-11", "2025-12", "2026-01", "2026-02"]
    assert periods_between("2025-W52", "2026-W02", "week") == ["2025-W52", "2026-W01", "2026-W02"]
    assert periods_between("2026-02-27", "2026-03-01", "day") == ["2026-02-27", "2026-02-28", "2026-03-01"]
    assert periods_between("2026-01", "2026-01", "month") == ["2026-01"]
