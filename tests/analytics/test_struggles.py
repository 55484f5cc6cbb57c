"""Struggles: what is one, what is none, and how each ended."""

from __future__ import annotations

import pytest

from everturn.analytics.counts import TrailHandle
from everturn.analytics.struggles import Struggle, find_struggles, group_kinds
from everturn.store.contract import AnalyticsScope, Store
from tests.analytics.histories import Made, chain, fill, session

FAIL = "Bash!exit_status"


def found_in(store: Store, *turns: list[list[Made]], least: int = 3) -> list[Struggle]:
    fill(store, [session("a", *turns)])
    return list(find_struggles(store, AnalyticsScope(), least))


def test_three_failures_in_a_row_are_a_struggle_and_two_are_none(store: Store) -> None:
    assert found_in(store, chain(FAIL, FAIL, "Bash", FAIL)) == []
    fill(store, [session("b", chain(FAIL, FAIL, FAIL, "Bash"))])
    (one,) = find_struggles(store, AnalyticsScope())
    assert (one.tool, one.error_class, one.failures, one.turn, one.ending) == ("Bash", "exit_status", 3, 0, "worked")
    assert (one.recovery, one.calls, one.lost_ms) == (("Bash",), 4, 60)


def test_other_tools_in_between_do_not_end_it_and_are_told_as_the_way_out(store: Store) -> None:
    (one,) = found_in(store, chain(FAIL, "Read", FAIL, "Grep", FAIL, "Read", "Edit", "Bash"))
    assert (one.failures, one.ending, one.recovery) == (3, "worked", ("Read", "Edit", "Bash"))


def test_another_class_of_error_is_another_struggle(store: Store) -> None:
    (one,) = found_in(store, chain(*["Edit!stale"] * 3, *["Edit!not_found"] * 2))
    assert (one.error_class, one.failures, one.ending) == ("stale", 3, "another error")


@pytest.mark.parametrize("by", ["rejected", "interrupted", "cancelled"])
def test_what_a_human_stopped_is_no_failure_of_the_agent(store: Store, by: str) -> None:
    assert found_in(store, chain(*[f"Bash!{by}"] * 5)) == []
    fill(store, [session("b", chain(FAIL, FAIL, f"Bash!{by}", FAIL))])
    assert [one.failures for one in find_struggles(store, AnalyticsScope())] == [3]


def test_how_it_ended(store: Store) -> None:
    three = [FAIL] * 3
    endings = {
        "next turn": [chain(*three), chain("Read", "Bash")],
        "another way": [chain(*three, "Write", "Edit")],
        "given up": [chain(*three)],
    }
    for number, turns in enumerate(endings.values()):
        fill(store, [session(f"s{number}", *turns)])
    assert [one.ending for one in find_struggles(store, AnalyticsScope())] == list(endings)
    ways = {one.ending: one.recovery for one in find_struggles(store, AnalyticsScope())}
    assert ways == {"next turn": ("Bash",), "another way": ("Write", "Edit"), "given up": ()}


def test_it_may_go_over_several_turns(store: Store) -> None:
    (one,) = found_in(store, chain(FAIL), chain(FAIL, FAIL), chain("Bash"))
    assert (one.failures, one.turns, one.ending) == (3, 2, "next turn")


def test_calls_of_one_batch_count_one_by_one(store: Store) -> None:
    (one,) = found_in(store, [[Made("Read", "not_found")] * 4])
    assert (one.failures, one.ending) == (4, "given up")


def test_kinds_sum_up_with_the_longest_as_evidence(store: Store) -> None:
    fill(store, [session("a", chain(*[FAIL] * 3, "Read", "Bash")), session("b", chain(*[FAIL] * 5, "Read", "Bash"))])
    fill(store, [session("c", chain("Glob"), chain(*["Edit!stale"] * 3))])
    first, second = group_kinds(store, find_struggles(store, AnalyticsScope()))
    assert (first.tool, first.n, first.sessions, first.failures, first.longest) == ("Bash", 2, 2, 8, 5)
    assert (first.endings, first.recoveries) == ({"worked": 2}, [("Read → Bash", 2)])
    assert first.evidence == (TrailHandle("b", 1, "maker"), TrailHandle("a", 1, "maker"))
    assert (second.tool, second.evidence, second.endings) == ("Edit", (TrailHandle("c", 2, "maker"),), {"given up": 1})


def test_a_turn_with_two_struggles_is_one_place_to_look_at(store: Store) -> None:
    fill(store, [session("a", chain(FAIL, FAIL, FAIL, "Bash", FAIL, FAIL, FAIL, "Bash"))])
    (kind,) = group_kinds(store, find_struggles(store, AnalyticsScope()))
    assert (kind.n, kind.evidence) == (2, (TrailHandle("a", 1, "maker"),))


def test_the_least_can_be_set(store: Store) -> None:
    assert [one.failures for one in found_in(store, chain(FAIL, FAIL, "Bash"), least=2)] == [2]
