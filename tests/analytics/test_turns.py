"""Turns: one by one, newest first, and by the shape they share."""

from __future__ import annotations

from everturn.analytics.counts import TrailHandle, family_ids
from everturn.analytics.turns import TurnFilter, list_shape_rows, list_turn_rows, read_pattern
from everturn.store.contract import AnalyticsScope, SessionFilter, Store
from tests.analytics.histories import START, Made, MadeSession, chain, fill, session

HOUR = 3_600_000


def test_a_turn_says_how_long_it_took_and_what_it_used(store: Store) -> None:
    batches = [[Made("Read"), Made("Read"), Made("Grep")], [Made("Edit", "stale", 300)], [Made("Edit")]]
    fill(store, [session("a", batches)])
    (one,) = list_turn_rows(store, AnalyticsScope(), TurnFilter())
    assert (one.session, one.turn, one.calls, one.batches, one.errors, one.parallel) == ("a", 1, 5, 3, 1, 3)
    assert (one.shape, one.tools) == ("Read{2+} → Grep → Edit{2+}", ("Read", "Grep", "Edit"))
    assert (one.started, one.duration_ms) == (START, 20 + 300 + 20 + 3 * 1000)


def test_the_newest_turn_comes_first(store: Store) -> None:
    old = MadeSession("old", [chain("Read"), chain("Edit")])
    new = MadeSession("new", [chain("Bash"), chain("Glob")], started=START + HOUR)
    fill(store, [old, new])
    assert [(one.session, one.turn) for one in list_turn_rows(store, AnalyticsScope(), TurnFilter())] == [
        ("new", 2),
        ("new", 1),
        ("old", 2),
        ("old", 1),
    ]
    assert [one.session for one in list_turn_rows(store, AnalyticsScope(), TurnFilter(), 1)] == ["new"]


def test_turns_can_be_chosen(store: Store) -> None:
    fill(
        store,
        [
            session("a", chain("Read", "Edit"), chain("Read", "Bash!exit_status", "Edit", "Edit"), []),
            session("a/agent-1", chain("Glob"), kind="subagent", parent="a"),
        ],
    )

    def chosen(scope: AnalyticsScope | None = None, **wanted: object) -> list[tuple[str, int]]:
        options = TurnFilter(**wanted)  # type: ignore[arg-type]
        return sorted((one.session, one.turn) for one in list_turn_rows(store, scope or AnalyticsScope(), options))

    assert chosen() == [("a", 1), ("a", 2), ("a/agent-1", 1)]
    assert chosen(min_length=0) == [("a", 1), ("a", 2), ("a", 3), ("a/agent-1", 1)]
    assert chosen(min_length=3) == [("a", 2)]
    assert chosen(failed=True) == [("a", 2)]
    assert chosen(pattern=read_pattern("Read → Edit")) == [("a", 1)]
    assert chosen(pattern=read_pattern("Read → … → Edit{1+}")) == [("a", 1), ("a", 2)]
    assert chosen(AnalyticsScope(subagents=False)) == [("a", 1), ("a", 2)]
    assert chosen(AnalyticsScope(SessionFilter(agent="other"))) == []
    assert chosen(AnalyticsScope(only=())) == []


def test_shapes_are_counted_with_examples(store: Store) -> None:
    fill(store, [session(f"s{n}", chain("Read", "Read", "Edit!stale")) for n in range(4)])
    fill(store, [session("t", chain("Read", "Read", "Read", "Edit"), chain("Bash"))])
    found, different, total = list_shape_rows(store, AnalyticsScope(), TurnFilter())
    first = found[0]
    assert (first.shape, first.n, first.sessions, different, total) == ("Read{2+} → Edit", 5, 5, 2, 6)
    assert (first.calls, first.failed, first.tool_ms) == (3.2, 0.8, 60)
    assert first.evidence == tuple(TrailHandle(name, 1, "maker") for name in ("s0", "s1", "s2"))
    assert [one.shape for one in list_shape_rows(store, AnalyticsScope(), TurnFilter(min_length=4))[0]] == [
        "Read{2+} → Edit"
    ]


def test_a_session_is_asked_for_with_its_subagents_or_without(store: Store) -> None:
    fill(store, [session("a", chain("Read")), session("b", chain("Bash"))])
    fill(store, [session("a/agent-1", chain("Glob"), kind="subagent", parent="a")])
    from everturn.model.archive import LinkRow
    from tests.analytics.histories import growth_of

    (child,) = store.sessions_of("maker", "a/agent-1")
    growth = growth_of(child.id, session("a/agent-1"))
    growth.links.append(LinkRow(child.id, "subagent_of", "a"))
    with store.write():
        store.append(child.id, growth)
    (parent,) = store.sessions_of("maker", "a")
    assert family_ids(store, parent, False) == (parent.id,)
    assert family_ids(store, parent, True) == (parent.id, child.id)
