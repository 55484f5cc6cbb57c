"""Paths are found where there are any, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing

import pytest

from everturn.analytics.counts import catch_up
from everturn.analytics.path_counts import is_surprising
from everturn.analytics.paths import Paths, find_paths, list_positions
from everturn.store.contract import AnalyticsScope, SessionFilter, Store, open_store
from tests.analytics.histories import PLANTED, START, Made, MadeSession, chain, fill, history, session, shuffled

SEEDS = (1, 2)
MORE_SEEDS = tuple(range(3, 7))
SESSIONS = 120
MANY = 1000


def found_in(sessions: Iterator[MadeSession]) -> Paths:
    with closing(open_store("memory:")) as store:
        fill(store, sessions)
        return find_paths(store, AnalyticsScope(), MANY)


def missed(seed: int, store: Store) -> set[tuple[str, ...]]:
    """Planted paths that are not found, in all sessions or in the first half of them."""
    fill(store, history(seed, SESSIONS))
    half = AnalyticsScope(SessionFilter(until=START + SESSIONS // 2 * 3_600_000))
    everywhere, among_some = find_paths(store, AnalyticsScope(), MANY), find_paths(store, half, MANY)
    assert among_some.sessions < everywhere.sessions
    return {*PLANTED} - {one.tools for one in everywhere.items} | {*PLANTED} - {one.tools for one in among_some.items}


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_planted_paths_are_all_found(seed: int, store: Store) -> None:
    assert missed(seed, store) == set()


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_found_when_the_same_calls_are_shuffled(seed: int) -> None:
    assert [one.path for one in found_in(shuffled(history(seed, SESSIONS), seed)).items] == []


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_found_where_every_session_only_has_its_likings(seed: int) -> None:
    assert [one.path for one in found_in(history(seed, SESSIONS, planted=())).items] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_the_same_holds_for_other_histories(seed: int, store: Store) -> None:
    assert missed(seed, store) == set()
    assert [one.path for one in found_in(shuffled(history(seed, SESSIONS), seed)).items] == []


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_two_tools_that_only_some_sessions_have_do_not_belong_together(seed: int) -> None:
    """In all sessions together they would seem to: chance is reckoned in each session."""
    dice = random.Random(seed)
    pairs = (("Read", "Edit", "Bash"), ("Fetch", "Search", "Ask"))
    made = (
        session(f"s{number}", *[chain(*dice.choices(pairs[number % 2], k=12)) for _ in range(5)])
        for number in range(60)
    )
    assert [one.path for one in found_in(made).items] == []


def test_a_path_is_surprising_from_five_times_and_one_and_a_half_times_chance_on() -> None:
    assert is_surprising(5, 0.001, 1) and not is_surprising(4, 0.001, 1)
    assert is_surprising(1_500_000, 1_000_000, 1) and not is_surprising(1_499_999, 1_000_000, 1)
    assert not is_surprising(6, 4, 1), "chance explains it, although it was seen often enough"


def test_a_path_says_how_often_where_and_how_far_beyond_chance(store: Store) -> None:
    dice = random.Random(7)
    fill(
        store, (session(f"s{n}", chain("Plan", "Move", *dice.choices(["Read", "Bash", "Ask"], k=6))) for n in range(40))
    )
    (one,) = [one for one in find_paths(store, AnalyticsScope()).items if one.tools == ("Plan", "Move")]
    assert (one.path, one.n, one.sessions, one.position, one.errors) == ("Plan → Move", 40, 40, 1.0, 0)
    assert one.lift == pytest.approx(one.n / one.by_chance, rel=0.01) and one.lift > 3


def test_a_step_that_is_mostly_repeated_says_so(store: Store) -> None:
    dice = random.Random(7)
    turns = [
        chain("Glob", "Read", "Read", "Read", *dice.choices(["Edit", "Bash", "Ask", "List"], k=5)) for _ in range(30)
    ]
    fill(store, (session(f"s{n}", turn) for n, turn in enumerate(turns)))
    assert "Glob → Read{2+}" in [one.path for one in find_paths(store, AnalyticsScope()).items]


def test_parts_of_a_path_are_not_told_beside_it(store: Store) -> None:
    dice = random.Random(3)
    rest = ["Read", "Bash", "Ask", "List"]
    fill(
        store,
        (
            session(f"s{n}", chain(*dice.choices(rest, k=4), "Glob", "Move", "Plan", *dice.choices(rest, k=4)))
            for n in range(60)
        ),
    )
    assert [one.tools for one in find_paths(store, AnalyticsScope()).items] == [("Glob", "Move", "Plan")]


def test_all_shows_what_chance_explains_as_well(store: Store) -> None:
    fill(store, shuffled(history(1, 60), 1))
    assert find_paths(store, AnalyticsScope()).items == []
    every = find_paths(store, AnalyticsScope(), 10, by_chance_too=True).items
    assert len(every) == 10 and [one.n for one in every] == sorted((one.n for one in every), reverse=True)
    assert all(0.6 < one.lift < 1.6 for one in every)


def test_subagents_count_only_when_they_are_asked_for(store: Store) -> None:
    made = [session(f"s{n}", chain("Read", "Bash")) for n in range(6)]
    made += [session(f"s{n}/agent-1", chain("Glob", "Move"), kind="subagent", parent=f"s{n}") for n in range(6)]
    fill(store, made)
    tools = {one.tool for one in list_positions(store, AnalyticsScope(subagents=False))}
    assert tools == {"Read", "Bash"}
    assert {one.tool for one in list_positions(store, AnalyticsScope())} == {"Read", "Bash", "Glob", "Move"}


def test_places_say_where_in_a_turn_a_tool_stands(store: Store) -> None:
    fill(store, [session("a", chain("Read", "Edit", "Bash"), [[Made("Read"), Made("Read")], [Made("Bash")]])])
    by_tool = {one.tool: one for one in list_positions(store, AnalyticsScope())}
    read, bash = by_tool["Read"], by_tool["Bash"]
    assert (read.calls, read.turns, read.first, read.last, read.position) == (3, 2, 1.0, 0.0, 1.0)
    assert (bash.calls, bash.first, bash.last, bash.position, bash.parallel) == (2, 0.0, 1.0, 2.5, 0.0)
    assert read.parallel == pytest.approx(2 / 3, abs=0.001)


def test_an_empty_archive_has_no_paths(store: Store) -> None:
    assert (
        find_paths(store, AnalyticsScope()).items == []
        and list_positions(store, AnalyticsScope()) == []
        and catch_up(store) == 0
    )
