"""Suggestions: each kind is found where it was planted, with evidence that holds, and nothing is made up."""

from __future__ import annotations

import random

import pytest

from everturn.analytics.counts import TrailHandle
from everturn.analytics.suggest import Suggestion, find_suggestions, nearest_tool
from everturn.store.contract import AnalyticsScope, SessionFilter, Store
from tests.analytics.histories import Made, MadeSession, chain, fill, history, session, shuffled

REST = ("Read", "Bash", "Ask", "List")


def by_kind(found: list[Suggestion], kind: str) -> list[Suggestion]:
    return [one for one in found if one.kind == kind]


def noise(seed: int, n: int = 6) -> list[str]:
    return random.Random(seed).choices(REST, k=n)


def holds(store: Store, handle: TrailHandle, tools: tuple[str, ...]) -> bool:
    (row,) = store.sessions_of("maker", handle.session)
    names = [call.name for call in store.calls(row.id, handle.turn - 1)]
    return any(tuple(names[start : start + len(tools)]) == tools for start in range(len(names)))


def test_a_sequence_worth_one_command_is_found_with_turns_that_show_it(store: Store) -> None:
    fill(store, (session(f"s{n}", chain(*noise(n), "Glob", "Move", "Plan", *noise(-n - 1))) for n in range(40)))
    (one,) = by_kind(find_suggestions(store, AnalyticsScope()), "sequence")
    assert (one.tools, one.n, one.sessions, one.saved_calls) == (("Glob", "Move", "Plan"), 40, 40, 80)
    assert len(one.evidence) == 3 and all(holds(store, handle, one.tools) for handle in one.evidence)


def test_two_tools_that_always_go_together_are_a_pair(store: Store) -> None:
    fill(store, (session(f"s{n}", chain(*noise(n), "Glob", "Move", *noise(-n - 1))) for n in range(40)))
    (one,) = by_kind(find_suggestions(store, AnalyticsScope()), "pair")
    assert (one.tools, one.share, one.saved_calls) == (("Glob", "Move"), 1.0, 40) and one.lift > 3


def test_a_tool_whose_first_call_fails_is_told_with_what_then_works(store: Store) -> None:
    failing = Made("Edit", "stale", 500)
    fill(
        store,
        (
            MadeSession(f"s{n}", [[[Made("Bash")], [failing], [Made("Read")], [Made("Edit")]], chain("Edit", "Edit")])
            for n in range(10)
        ),
    )
    (one,) = by_kind(find_suggestions(store, AnalyticsScope()), "fails first")
    assert (one.tools, one.n, one.sessions, one.instead, one.share) == (("Edit",), 10, 10, "Read", 1.0)
    assert (one.saved_calls, one.saved_ms) == (10, 5000)
    assert one.evidence[0] == TrailHandle("s0", 1, "maker")


def test_a_tool_that_fails_later_does_not_fail_first(store: Store) -> None:
    fill(store, (session(f"s{n}", chain("Edit", "Edit!stale", "Edit!stale")) for n in range(10)))
    fill(store, (session(f"r{n}", chain("Bash!rejected", "Bash")) for n in range(10)))
    assert by_kind(find_suggestions(store, AnalyticsScope()), "fails first") == []


def test_a_tool_that_does_not_exist_is_told_with_the_one_that_was_meant(store: Store) -> None:
    fill(store, [session("a", chain("read_file!unknown_tool", "ReadFile")), session("b", chain("Bash", "ReadFile"))])
    (one,) = by_kind(find_suggestions(store, AnalyticsScope()), "unknown tool")
    assert (one.tools, one.n, one.instead, one.evidence) == (
        ("read_file",),
        1,
        "ReadFile",
        (TrailHandle("a", 1, "maker"),),
    )


def test_a_tool_that_works_elsewhere_is_no_invention(store: Store) -> None:
    fill(store, [session("a", chain("Skill!unknown_tool")), session("b", chain("Skill"))])
    assert by_kind(find_suggestions(store, AnalyticsScope()), "unknown tool") == []


@pytest.mark.slow
def test_nothing_is_suggested_of_shuffled_calls(store: Store) -> None:
    fill(store, shuffled(history(3, 120), 3))
    assert find_suggestions(store, AnalyticsScope()) == []


def test_a_choice_of_sessions_has_suggestions_of_its_own(store: Store) -> None:
    fill(store, [session("a", chain("Reed!unknown_tool", "Read"))])
    assert find_suggestions(store, AnalyticsScope(SessionFilter(agent="nobody"))) == []
    assert len(find_suggestions(store, AnalyticsScope(SessionFilter(agent="maker")))) == 1


def test_going_round_is_no_command(store: Store) -> None:
    fill(store, (session(f"s{n}", chain(*noise(n), *["Grep", "Glob"] * 3, *noise(-n - 1))) for n in range(40)))
    assert all(len(set(one.tools)) > 2 or len(one.tools) < 4 for one in find_suggestions(store, AnalyticsScope()))


def test_the_nearest_name_is_near() -> None:
    known = ["Read", "ReadFile", "mcp__shop__price", "Bash"]
    assert nearest_tool("read-file", known) == "ReadFile"
    assert nearest_tool("shop_price", known) == "mcp__shop__price"
    assert nearest_tool("Teleport", known) == ""
    assert nearest_tool("x", []) == ""
