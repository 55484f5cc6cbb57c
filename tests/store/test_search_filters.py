"""The contract of a store: what a search can be limited to, and what only makes a hit better. On every engine."""

from __future__ import annotations

from everturn.model.archive import SessionText
from everturn.model.conversation import Block, CallEnd, CallStart, Message
from everturn.store.contract import IndexQuery, SessionFilter, Store
from tests.store.building import NOON, answer, look_for, new_session, new_version, places, prompt, result, tell

APPLE = (("apple",),)


def called(call_id: str, name: str, path: str = "", kind: str = "read") -> Message:
    """The model calls a tool about apples."""
    block = Block("call", "apple", "tool_input", call=CallStart(call_id, name, kind, path))
    return Message("assistant", "model", blocks=(block,), at=NOON, precision="ms", provider_id=call_id)


def came_back(call_id: str, failed: bool = False) -> Message:
    """A tool answers with apples."""
    block = Block("result", "apple", "tool_output", result=CallEnd(call_id, is_error=failed))
    return Message("user", "tool", "result", blocks=(block,), at=NOON, precision="ms")


def seqs(store: Store, **parts: object) -> list[int]:
    return sorted(hit.seq for hit in look_for(store, "apple", **parts))


def test_hits_can_be_limited_to_what_a_role_said(store: Store) -> None:
    tell(store, new_session(store), prompt("apple"), answer("apple"), result("c", "apple"))
    assert seqs(store, roles=("assistant",)) == [1]
    assert seqs(store, roles=("user", "assistant")) == [0, 1, 2]


def test_a_tool_finds_its_calls_and_their_results(store: Store) -> None:
    session = new_session(store)
    tell(store, session, prompt("apple"), called("a", "Read"), called("b", "Bash"), came_back("b"), came_back("a"))
    assert seqs(store, tools=("Read",)) == [1, 4]
    assert seqs(store, tools=("bash",)) == [2, 3], "capitals make no difference"
    assert seqs(store, tools=("Read", "Bash")) == [1, 2, 3, 4]
    assert seqs(store, tools=("Write",)) == []


def test_a_path_finds_the_calls_that_touched_it_and_their_results(store: Store) -> None:
    session = new_session(store)
    calls = called("a", "Read", "/src/Auth.py"), called("b", "Read", "/src/other_py")
    tell(store, session, prompt("apple"), *calls, came_back("a"), came_back("b"))
    assert seqs(store, path="auth.py") == [1, 3]
    assert seqs(store, path="/src/") == [1, 2, 3, 4]
    assert seqs(store, path="r.py") == [], "a dot is a dot"


def test_calls_that_failed_can_be_asked_for_and_left_out(store: Store) -> None:
    session = new_session(store)
    tell(
        store, session, prompt("apple"), called("a", "Read"), called("b", "Read"), came_back("a", True), came_back("b")
    )
    assert seqs(store, errors=True) == [1, 3]
    assert seqs(store, errors=False) == [0, 2, 4]


def test_hits_can_be_limited_to_turns(store: Store) -> None:
    session, other = new_session(store), new_session(store, "other")
    for one in (session, other):
        tell(store, one, prompt("apple"), answer("apple"), prompt("apple"), answer("apple"), prompt("apple"))
    assert seqs(store, turns=(1, 1)) == [2, 2, 3, 3]
    assert places(look_for(store, "apple", session=session, turns=(1, 2))) == {(session, 2), (session, 3), (session, 4)}
    assert look_for(store, "apple", session=session, turns=(7, 9)) == []


def test_turns_of_a_session_are_its_own_also_for_what_it_inherited(store: Store) -> None:
    first, fork = new_session(store, "first"), new_session(store, "fork")
    tell(store, first, prompt("pear"), answer("pear"), prompt("apple", 1), answer("apple", 2))
    tell(store, fork, prompt("apple", 1), answer("apple", 2), prompt("apple", 3))
    assert places(look_for(store, "apple", session=fork, turns=(0, 0))) == {(fork, 0), (fork, 1)}


def test_a_search_within_several_sessions_covers_what_they_inherited(store: Store) -> None:
    first, fork, other = (new_session(store, name) for name in ("first", "fork", "other"))
    tell(store, first, prompt("apple", 1))
    tell(store, fork, prompt("apple", 1), prompt("apple", 2))
    tell(store, other, prompt("apple", 3))
    assert places(look_for(store, "apple", within=(fork, other))) == {(fork, 0), (fork, 1), (other, 0)}
    assert places(look_for(store, "apple", within=(first, fork))) == {(first, 0), (fork, 1)}
    assert places(look_for(store, "apple", within=(first, fork), session=other)) == set()


def test_a_filter_of_sessions_holds_within_sessions_too(store: Store) -> None:
    main, child = new_session(store, "main"), new_session(store, "child", kind="subagent")
    for session in (main, child):
        tell(store, session, prompt("apple"))
    assert places(look_for(store, "apple", within=(main, child), sessions=SessionFilter())) == {(main, 0)}


def test_sessions_can_be_chosen_by_branch(store: Store) -> None:
    one, two = new_session(store, "one"), new_session(store, "two")
    for session, branch in ((one, "feature/Login"), (two, "main")):
        tell(store, session, prompt("apple"))
        with store.write():
            store.set_text(SessionText(session, branch=branch))
    assert places(look_for(store, "apple", sessions=SessionFilter(branch="login"))) == {(one, 0)}
    assert [row[0].id for row in store.sessions(SessionFilter(branch="mai"))[0]] == [two]


def test_of_a_superseded_edition_only_what_is_nowhere_else_is_reported_there(store: Store) -> None:
    old = new_session(store, "one", new_version(store, "/a"))
    tell(store, old, prompt("apple one", 1), prompt("apple two", 2))
    new = new_session(store, "one", new_version(store, "/a"))
    tell(store, new, prompt("fresh", 9), prompt("apple two", 2))
    both = SessionFilter(states=("current", "superseded"))
    assert places(look_for(store, "apple", sessions=both)) == {(old, 0), (new, 1)}
    assert places(look_for(store, "apple", sessions=SessionFilter(agent="other"))) == set()


def test_one_of_what_is_only_welcome_must_be_there_when_nothing_is_demanded(store: Store) -> None:
    tell(store, new_session(store), prompt("apple"), prompt("pear"), prompt("plum"))
    hits = store.search(IndexQuery((), optional=(("apple",), ("pear",))))
    assert sorted(hit.seq for hit in hits) == [0, 1]


def test_what_is_welcome_makes_a_hit_better_and_no_hit_of_others(store: Store) -> None:
    tell(store, new_session(store), prompt("apple pie"), prompt("apple tree"), prompt("tree"))
    hits = store.search(IndexQuery((APPLE,), optional=(("tree",),)))
    assert [hit.seq for hit in hits] == [1, 0]


def test_what_counts_more_decides(store: Store) -> None:
    tell(store, new_session(store), prompt("apple x"), prompt("pear y"))
    wanted = (("apple",), ("pear",))
    assert [hit.seq for hit in store.search(IndexQuery((), optional=wanted, weights=(1.0, 0.5)))] == [0, 1]
    assert [hit.seq for hit in store.search(IndexQuery((), optional=wanted, weights=(0.5, 1.0)))] == [1, 0]


def test_an_unwanted_word_keeps_out_what_is_only_welcome_too(store: Store) -> None:
    tell(store, new_session(store), prompt("apple pie"), prompt("apple tree"))
    assert [hit.seq for hit in store.search(IndexQuery((), (("pie",),), optional=APPLE))] == [1]
