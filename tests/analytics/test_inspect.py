"""One tool: the numbers are exactly those that were made up."""

from __future__ import annotations

import pytest

from everturn.analytics.inspect import Inspection, inspect_tools, similar_tools
from everturn.store.contract import AnalyticsScope, Store
from tests.analytics.histories import Made, chain, fill, session


@pytest.fixture
def told(store: Store) -> Inspection:
    fill(
        store,
        [
            session(
                "a",
                [[Made("Read")], [Made("Edit", "stale", 10)], [Made("Read")], [Made("Edit", ms=30)]],
                [[Made("Edit", ms=20), Made("Edit", ms=20), Made("Bash")], [Made("Bash")]],
            ),
            session("b", chain("Bash", "Edit!not_found")),
        ],
    )
    found = inspect_tools(store, AnalyticsScope(), "Edit")
    assert found is not None
    return found


def test_calls_failures_and_durations_are_counted(told: Inspection) -> None:
    assert (told.tools, told.n, told.sessions, told.turns, told.errors) == (("Edit",), 5, 2, 3, 2)
    assert told.error_rate == 0.4 and told.share == pytest.approx(5 / 10, abs=0.001)
    assert (told.p50_ms, told.p95_ms, told.timed) == (20, 30, 5)
    assert {one.error_class: one.n for one in told.failures} == {"stale": 1, "not_found": 1}
    assert (told.retries, told.parallel) == (1, 0.4)


def test_what_stands_before_and_after_is_told(told: Inspection) -> None:
    assert {one.tool: one.n for one in told.before} == {"Read": 2, "Bash": 1, "": 1}
    assert {one.tool: one.n for one in told.after} == {"Read": 1, "Bash": 1, "": 2}
    assert sum(one.share for one in told.before) == pytest.approx(1, abs=0.01)
    assert {one.tool: one.n for one in told.after_failure} == {"Read": 1, "": 1}


def test_the_same_tool_twice_in_one_batch_stands_beside_itself(told: Inspection) -> None:
    assert {one.tool: one.n for one in told.beside} == {"Edit": 1, "Bash": 2}


def test_errors_are_told_by_position(told: Inspection) -> None:
    assert [(one.position, one.n, one.errors) for one in told.positions] == [(1, 2, 0), (2, 2, 2), (4, 1, 0)]


def test_wildcards_sum_up_and_a_name_as_it_stands_comes_first(store: Store) -> None:
    fill(store, [session("a", chain("mcp__x__get", "mcp__x__put", "mcp__y__get", "mcp__*"))])
    for wanted, n in (("mcp__x__*", 2), ("*GET", 2), ("mcp__x__get", 1), ("mcp__*", 1), ("*", 4)):
        found = inspect_tools(store, AnalyticsScope(), wanted)
        assert found is not None and found.n == n, wanted


def test_an_unknown_tool_is_none_and_those_near_it_are_named(store: Store) -> None:
    fill(store, [session("a", chain("Bash", "Read"))])
    assert inspect_tools(store, AnalyticsScope(), "bsh") is None
    assert similar_tools(store, AnalyticsScope(), "bsh") == ["Bash"]
