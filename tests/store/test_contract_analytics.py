"""The analytics plane on every engine: the views other programs read, the counts, and that they follow the sessions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everturn.model.analytics import PLANE
from everturn.model.conversation import Message
from everturn.store.contract import AnalyticsScope, SessionFilter, Store
from tests.store.building import NOON, answer, new_session, new_version, prompt, result, tell

#: Tables of the plane beside `PLANE`.
OF_PLANE = ("plane_session", "plane_stale", "turn_key", "call_retry", "usage", "activity")


def view(store: Store, name: str, *columns: str) -> list[tuple[Any, ...]]:
    (table,) = (one for one in PLANE if one.name == name)
    places = [list(table.columns).index(column) for column in columns]
    return [tuple(row[place] for place in places) for row in store.plane_rows(table)]


def count(store: Store) -> None:
    with store.write():
        store.recount([session for session, _ in store.stale_sessions()])


def test_the_view_of_invocations_has_each_call_once_and_no_content(store: Store) -> None:
    first, fork = new_session(store, "first"), new_session(store, "fork", kind="subagent")
    shared = [prompt("secret", 1), answer("secret", 2, "c1"), result("c1", "secret", 3, failed=True)]
    tell(store, first, *shared, result("c0", "secret"))
    tell(store, fork, *shared, answer("", 4, "c2", provider_id="r"), answer("", 5, "c3", provider_id="r"))
    columns = (
        "session_id", "tool_use_id", "turn_sequence", "parallel_group", "parallel_index", "batch_size", "is_error",
        "is_subagent", "duration_ms", "retry_of",
    )  # fmt: skip
    untold = [row[2:4] for row in view(store, "invocations", *columns)]
    assert untold == [(None, None)] * 3
    count(store)
    assert view(store, "invocations", *columns) == [
        ("first", "c1", 0, 0, 0, 1, 1, 0, 0, None),
        ("fork", "c2", 1, 1, 0, 2, 0, 1, None, f"{fork}-1-1"),
        ("fork", "c3", 1, 2, 1, 2, 0, 1, None, None),
    ]
    assert "secret" not in repr([list(store.plane_rows(table)) for table in PLANE])


def test_every_table_has_the_columns_that_are_promised_with_their_types(store: Store) -> None:
    tell(store, new_session(store), prompt("a", 1), answer("b", 2, "c", tokens=5), result("c", failed=True))
    count(store)
    kinds = {"text": str, "integer": int}
    for table in PLANE:
        (row, *_) = store.plane_rows(table)
        wrong = [
            name
            for (name, kind), value in zip(table.columns.items(), row, strict=True)
            if value is not None and type(value) is not kinds[kind]
        ]
        assert wrong == [], table.name


def test_turns_have_a_stable_id_and_their_numbers(store: Store) -> None:
    session = new_session(store)
    tell(store, session, prompt("a"), answer("", None, "c1"), result("c1", failed=True, at=NOON + 700))
    tell(store, session, prompt("b", at=NOON + 900), answer("b", at=NOON + 1000))
    count(store)
    rows = view(store, "turns", "id", "turn_index", "started_at", "duration_ms", "tool_count", "error_count")
    assert [row[1:] for row in rows] == [
        (0, "2023-11-14T22:13:20.000+00:00", 700, 1, 1),
        (1, "2023-11-14T22:13:20.900+00:00", 100, 0, 0),
    ]
    assert rows[0][0] == "12328cd7d126902f" and len(rows[1][0]) == 16
    (of_call,) = view(store, "invocations", "turn_id")
    assert of_call == (rows[0][0],)


def test_a_session_is_stale_when_it_grew_was_emptied_or_became_another_kind(store: Store) -> None:
    session = new_session(store)
    assert store.stale_sessions() == []
    tell(store, session, prompt("a"), answer("", None, "c1"))
    assert store.stale_sessions() == [(session, 1)]
    count(store)
    assert store.stale_sessions() == []
    with store.write():
        store.set_session(session, kind="subagent")
    assert store.stale_sessions() == [(session, 1)]
    count(store)
    with store.write():
        store.drop_derived(store.session(session)[0].version)
    assert store.stale_sessions() == [(session, 0)]
    count(store)
    assert store.totals("tool_total") == {} and store.usage() == [] and list(store.trails()) == []


def test_an_older_version_of_a_file_keeps_what_it_owns(store: Store) -> None:
    """A rewritten file has two sessions: each call is counted in the one that had it first."""
    old = new_session(store, "one", new_version(store, "/one"))
    shared = [prompt("a", 1), answer("", 2, "c1", tokens=3), result("c1", fingerprint=3)]
    tell(store, old, *shared, answer("", 4, "c2", tokens=3))
    new = new_session(store, "one", new_version(store, "/one"))
    tell(store, new, *shared, answer("", 5, "c3", tokens=3))
    count(store)
    assert store.totals("tool_total")["Bash",][0] == 3
    assert sum(row.responses for row in store.usage() if not row.inherited) == 3
    assert [row.session for row in store.usage() if row.inherited] == [new]


def test_rows_can_be_had_for_a_choice_of_sessions(store: Store) -> None:
    sessions = [new_session(store, f"s{n}", kind="main" if n % 2 else "subagent", agent=f"a{n // 2}") for n in range(6)]
    for session in sessions:
        tell(store, session, prompt("a"), answer("", None, "c1", tokens=1))
    count(store)
    of_a1 = AnalyticsScope(SessionFilter(agent="a1"))
    assert [session for session, _ in store.trails()] == sessions
    assert list(store.trails(AnalyticsScope(only=()))) == []
    assert [session for session, _ in store.trails(AnalyticsScope(only=tuple(sessions[4:1:-1])))] == sessions[2:5]
    assert [session for session, _ in store.trails(of_a1)] == sessions[2:4]
    assert [row.session for row in store.usage(msgspec.structs.replace(of_a1, subagents=False))] == [sessions[3]]
    assert [row.session for row in store.activity(msgspec.structs.replace(of_a1, only=tuple(sessions[:3])))] == [
        sessions[2]
    ]
    assert [row.calls for row in store.activity()] == [1] * 6


def test_counts_made_by_other_rules_are_dropped_and_made_anew(store: Store) -> None:
    session = new_session(store)
    tell(store, session, prompt("a"), answer("", None, "c1"))
    assert not store.check_rules()  # nobody has counted by these rules yet
    count(store)
    assert store.check_rules() and store.totals("tool_total")
    with store.write():
        store.set_setting("plane rules", "of another version")
    assert not store.check_rules()
    assert store.totals("tool_total") == {} and store.stale_sessions() == [(session, 1)]
    assert store.check_rules()


def test_totals_leave_out_what_is_rare_in_both_kinds_of_session_together(store: Store) -> None:
    for n in range(3):
        session = new_session(store, f"s{n}", kind="main" if n else "subagent")
        tell(store, session, prompt("a"), answer("", None, "c1"))
    count(store)
    for least, found in ((1, 1), (3, 1), (4, 0)):
        assert len(store.totals("tool_path", least=least)) == found
    assert len(store.totals("tool_path", subagents=False, least=3)) == 0


@pytest.mark.few(9)
@pytest.mark.parametrize("table", [table.name for table in PLANE])
def test_a_table_is_given_in_order(store: Store, table: str) -> None:
    for n in (3, 1, 2):
        calls = answer("", None, "c2", tokens=n), answer("", None, "c1"), result("c1", failed=True), result("c2")
        tell(store, new_session(store, f"s{n}"), prompt("a"), *calls)
    count(store)
    (one,) = (found for found in PLANE if found.name == table)
    places = [list(one.columns).index(name) for name in one.order]
    keys = [tuple(row[place] for place in places) for row in store.plane_rows(one)]
    assert keys == sorted(keys) and keys


def test_reported_work_counts_once_and_only_while_the_subagent_is_unknown(store: Store) -> None:
    first, fork = new_session(store, "first"), new_session(store, "fork")

    def told(call: str, child: str, at: int) -> Message:
        message = result(call, "done", at)
        (block,) = message.blocks
        assert block.result is not None
        end = msgspec.structs.replace(block.result, child=child, reported_tokens=900, reported_calls=7)
        return msgspec.structs.replace(message, blocks=(msgspec.structs.replace(block, result=end),))

    shared = [
        prompt("go", 1),
        answer("", 2, "c1"),
        told("c1", "unknown", 3),
        answer("", 8, "c2"),
        told("c2", "child", 4),
    ]
    tell(store, first, *shared)
    tell(store, fork, *shared)
    assert [(row.session, row.child, row.turn, row.tokens, row.calls) for row in store.reported()] == [
        (first, "unknown", 0, 900, 7), (first, "child", 0, 900, 7),
    ]  # fmt: skip
    tell(store, new_session(store, "child", kind="subagent"), prompt("in the south", 5), answer("three", 6))
    assert [row.child for row in store.reported()] == ["unknown"]
    assert store.reported(AnalyticsScope(only=(fork,))) == []
    assert store.reported(AnalyticsScope(SessionFilter(agent="nobody"))) == []
