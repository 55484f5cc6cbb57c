"""Who owns a message is a function of the sessions and their messages, not of the order in which they came."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from everturn.model.archive import LinkRow, SessionText
from everturn.model.conversation import Message
from everturn.store.contract import SessionFilter, Store, open_store
from tests.store.building import answer, growth_of, look_for, new_session, new_version, prompt, result, tell

WORDS = [f"word{n}" for n in range(10)]

#: (what it is, its fingerprint); the text says both, so that the index can be compared.
Told = tuple[str, int | None]

told = st.tuples(st.sampled_from(("prompt", "answer", "call", "result", "failed")), st.none() | st.integers(0, 9))
conversations = st.lists(st.lists(told, max_size=12), min_size=2, max_size=4)


def message(item: Told) -> Message:
    kind, fingerprint = item
    word = WORDS[fingerprint or 0]
    if kind == "prompt":
        return prompt(word, fingerprint)
    if kind == "answer":
        return answer(word, fingerprint, tokens=1 + (fingerprint or 0))
    if kind == "call":
        return answer(word, fingerprint, f"c{fingerprint}", 3)
    return result(f"c{fingerprint}", word, fingerprint, kind == "failed")


def open_all(store: Store, conversations: list[list[Told]], agent: str) -> list[int]:
    """One session for each; two of them are versions of one file, and have one native id."""
    names = ["first", "second", "first", "third"]
    files = [f"/{agent}/{name}" for name in names]
    versions = [new_version(store, files[n]) for n in range(len(conversations))]
    return [new_session(store, names[n], version, agent=agent) for n, version in enumerate(versions)]


def tell_all(store: Store, sessions: list[int], conversations: list[list[Told]], rnd: random.Random | None) -> None:
    """In order and at once, or in random pieces and turns."""
    rest = {session: list(items) for session, items in zip(sessions, conversations, strict=True)}
    while any(rest.values()):
        session = next(one for one in sessions if rest[one]) if rnd is None else rnd.choice(sessions)
        size = len(rest[session]) if rnd is None else rnd.randint(0, 3)
        piece, rest[session] = rest[session][:size], rest[session][size:]
        tell(store, session, *map(message, piece))


def everything(store: Store, sessions: list[int], agent: str) -> dict[str, Any]:
    """All that is stored, with numbers of sessions in place of their ids."""
    number = {session: n for n, session in enumerate(sessions)}

    def rows(session: int) -> Iterator[tuple[Any, ...]]:
        for part in (store.turns, store.steps, store.calls, store.links, store.messages):
            for row in part(session):
                yield (type(row).__name__, number[session], *astuple(row)[1:])

    def hits(word: str) -> list[tuple[int, int]]:
        found = look_for(store, word, sessions=SessionFilter(agent=agent, kinds=(), states=()), limit=1000)
        return sorted((number[hit.session], hit.seq) for hit in found)

    return {
        "sessions": [[getattr(store.session(session)[0], name) for name in COUNTED] for session in sessions],
        "rows": [list(rows(session)) for session in sessions],
        "hits": {word: hits(word) for word in WORDS},
    }


COUNTED = (
    "n_messages", "n_inherited", "n_turns", "n_steps", "n_calls", "n_errors", "n_prompts", "tokens_in", "tokens_out",
    "tokens_cache_read", "tokens_cache_write", "started", "ended", "model",
)  # fmt: skip


def check_by_hand(store: Store, sessions: list[int], conversations: list[list[Told]]) -> None:
    """Flags and counters, from the definition."""
    for n, (session, items) in enumerate(zip(sessions, conversations, strict=True)):
        lower = {mark for before in conversations[:n] for _, mark in before} - {None}
        expected = [int(mark in lower) for _, mark in items]
        flags = [row.inherited for row in store.messages(session)]
        row = store.session(session)[0]
        calls, steps = store.calls(session), store.steps(session)
        assert flags == expected
        assert [turn.inherited for turn in store.turns(session)] == [flags[t.first_seq] for t in store.turns(session)]
        assert [step.inherited for step in steps] == [flags[step.first_seq] for step in steps]
        assert [call.inherited for call in calls] == [flags[call.seq] for call in calls]
        assert (row.n_messages, row.n_inherited) == (len(items), sum(flags))
        assert row.n_calls == sum(call.status != "orphan" for call in calls)
        assert row.n_errors == sum(call.status == "error" for call in calls)
        assert row.tokens_out == sum(step.tokens_out for step in steps if not step.inherited)
        shared = sum(link.n for link in store.links(session) if link.relation == "forked_from")
        assert shared <= sum(flags)


def compare(store: Store, conversations: list[list[Told]], seed: int, agent: str) -> None:
    rnd = random.Random(seed)
    plain, mixed = f"{agent}/plain", f"{agent}/mixed"
    straight = open_all(store, conversations, plain)
    tell_all(store, straight, conversations, None)
    check_by_hand(store, straight, conversations)
    crooked = open_all(store, conversations, mixed)
    tell_all(store, crooked, conversations, rnd)
    assert everything(store, crooked, mixed) == everything(store, straight, plain)


def mark_fresh(store: Store, sessions: list[int]) -> None:
    with store.write():
        for session in sessions:
            store.set_version(store.session(session)[0].version, parser=7)


def derive_marked(store: Store, sessions: list[int], conversations: list[list[Told]]) -> None:
    """What the next sync does: read again what is marked, lowest first."""
    for session, items in zip(sessions, conversations, strict=True):
        version = store.session(session)[0].version
        if store.version(version).parser == 0:
            with store.write():
                store.drop_derived(version)
            tell_all(store, [session], [items], None)
            mark_fresh(store, [session])


@settings(max_examples=40)
@given(conversations, st.integers(0, 1 << 30))
def test_the_order_in_which_messages_come_does_not_matter(conversations: list[list[Told]], seed: int) -> None:
    _tell_in_any_order(conversations, seed)


@pytest.mark.slow
@settings(max_examples=300)
@given(conversations, st.integers(0, 1 << 30))
def test_the_order_in_which_messages_come_does_not_matter_in_many_histories(
    conversations: list[list[Told]], seed: int
) -> None:
    _tell_in_any_order(conversations, seed)


def _tell_in_any_order(conversations: list[list[Told]], seed: int) -> None:
    store = open_store("memory:")
    compare(store, conversations, seed, "x")
    store.close()


@settings(max_examples=30)
@given(conversations, st.integers(0, 3), st.integers(0, 1 << 30))
def test_a_session_that_comes_again_leaves_no_trace_of_having_gone(
    conversations: list[list[Told]], which: int, seed: int
) -> None:
    _tell_again(conversations, which, seed)


@pytest.mark.slow
@settings(max_examples=200)
@given(conversations, st.integers(0, 3), st.integers(0, 1 << 30))
def test_a_session_that_comes_again_leaves_no_trace_of_having_gone_in_many_histories(
    conversations: list[list[Told]], which: int, seed: int
) -> None:
    _tell_again(conversations, which, seed)


def _tell_again(conversations: list[list[Told]], which: int, seed: int) -> None:
    store = open_store("memory:")
    sessions = open_all(store, conversations, "x")
    tell_all(store, sessions, conversations, random.Random(seed))
    mark_fresh(store, sessions)
    before = everything(store, sessions, "x")
    again = which % len(sessions)
    with store.write():
        store.drop_derived(store.session(sessions[again])[0].version)
    tell_all(store, [sessions[again]], [conversations[again]], random.Random(seed))
    mark_fresh(store, [sessions[again]])
    assert {**everything(store, sessions, "x"), "hits": before["hits"]} == before
    # Whoever owned messages meanwhile had no words for them, and was marked to be read again.
    derive_marked(store, sessions, conversations)
    assert everything(store, sessions, "x") == before
    store.close()


@settings(max_examples=30)
@given(conversations, st.integers(0, 3), st.integers(0, 1 << 30))
def test_after_a_session_was_deleted_the_rest_is_as_if_it_had_never_been(
    conversations: list[list[Told]], which: int, seed: int
) -> None:
    _delete_one(conversations, which, seed)


@pytest.mark.slow
@settings(max_examples=200)
@given(conversations, st.integers(0, 3), st.integers(0, 1 << 30))
def test_after_a_session_was_deleted_the_rest_is_as_if_it_had_never_been_in_many_histories(
    conversations: list[list[Told]], which: int, seed: int
) -> None:
    _delete_one(conversations, which, seed)


def _delete_one(conversations: list[list[Told]], which: int, seed: int) -> None:
    store, other = open_store("memory:"), open_store("memory:")
    sessions = open_all(store, conversations, "x")
    tell_all(store, sessions, conversations, random.Random(seed))
    gone = store.version(store.session(sessions[which % len(sessions)])[0].version).source
    left = [n for n, one in enumerate(sessions) if store.version(store.session(one)[0].version).source != gone]
    mark_fresh(store, sessions)
    with store.write():
        store.delete_file(gone)
    rest = [sessions[n] for n in left]
    derive_marked(store, rest, [conversations[n] for n in left])
    reference = open_all(other, conversations, "x")
    tell_all(other, [reference[n] for n in left], [conversations[n] for n in left], None)
    assert everything(store, rest, "x") == everything(other, [reference[n] for n in left], "x")
    assert store.check().problems == []
    store.close()
    other.close()


def test_it_is_the_same_on_every_engine(store: Store) -> None:
    rnd = random.Random(11)
    kinds = ("prompt", "answer", "call", "result", "failed")
    for n in range(6):
        made = [
            [(rnd.choice(kinds), rnd.choice((None, *range(8)))) for _ in range(rnd.randint(0, 10))] for _ in range(4)
        ]
        compare(store, made, n, f"a{n}")


# by example -------------------------------------------------------------------------------------------------------


def test_a_fork_inherits_what_it_begins_with(store: Store) -> None:
    first, fork = new_session(store, "first"), new_session(store, "fork")
    tell(store, first, prompt("a", 1), answer("b", 2, tokens=10), prompt("c", 3))
    tell(store, fork, prompt("a", 1), answer("b", 2, tokens=10), prompt("d", 4), answer("e", 5, tokens=1))
    assert [row.inherited for row in store.messages(fork)] == [1, 1, 0, 0]
    assert [turn.inherited for turn in store.turns(fork)] == [1, 0]
    row = store.session(fork)[0]
    assert (row.n_messages, row.n_inherited, row.tokens_out) == (4, 2, 1)
    assert store.links(fork) == [LinkRow(fork, "forked_from", "first", "", 0, 2)]
    assert store.links(first) == []


def test_a_fork_that_was_read_first_hands_over(store: Store) -> None:
    first, fork = new_session(store, "first"), new_session(store, "fork")
    tell(store, fork, prompt("apple", 1), answer("b", 2, "c1", tokens=10), result("c1", "out", 3))
    assert store.session(fork)[0].tokens_out == 10
    tell(store, first, prompt("apple", 1), answer("b", 2, "c1", tokens=10))
    assert [row.inherited for row in store.messages(fork)] == [1, 1, 0]
    assert [call.inherited for call in store.calls(fork)] == [1]
    assert store.session(fork)[0].tokens_out == 0
    assert {hit.session for hit in look_for(store, "apple")} == {first}


def test_the_lowest_of_several_owns_it_and_is_the_one_named(store: Store) -> None:
    sessions = [new_session(store, name) for name in ("a", "b", "c")]
    for session in (sessions[2], sessions[1], sessions[0]):
        tell(store, session, prompt("apple", 1))
    links = [[(link.native_id, link.n) for link in store.links(session)] for session in sessions]
    assert links == [[], [("a", 1)], [("a", 1)]]


def test_agents_do_not_inherit_from_each_other(store: Store) -> None:
    one, two = new_session(store, "one", agent="x"), new_session(store, "two", agent="y")
    for session in (one, two):
        tell(store, session, prompt("apple", 1))
    assert [store.session(session)[0].n_inherited for session in (one, two)] == [0, 0]


def test_messages_without_a_fingerprint_are_nobodys_copy(store: Store) -> None:
    one, two = new_session(store, "one"), new_session(store, "two")
    for session in (one, two):
        tell(store, session, prompt("apple"), prompt("apple"))
    assert [store.session(session)[0].n_inherited for session in (one, two)] == [0, 0]


def test_the_same_message_twice_in_one_session_is_two_messages(store: Store) -> None:
    session = new_session(store)
    tell(store, session, prompt("apple", 1))
    tell(store, session, prompt("apple", 1), prompt("apple", 1))
    assert [row.inherited for row in store.messages(session)] == [0, 0, 0]
    assert {hit.seq for hit in look_for(store, "apple")} == {0, 1, 2}


def test_a_rewritten_file_is_not_a_fork_of_itself(store: Store) -> None:
    old = new_session(store, "one", new_version(store, "/a"))
    tell(store, old, prompt("apple", 1))
    new = new_session(store, "one", new_version(store, "/a"))
    tell(store, new, prompt("apple", 1))
    assert store.session(new)[0].n_inherited == 1
    assert store.links(new) == []


def test_a_fork_that_the_source_itself_names_stays_named(store: Store) -> None:
    first, fork = new_session(store, "first"), new_session(store, "fork")
    tell(store, first, prompt("apple", 1))
    growth = growth_of(store, fork, [prompt("apple", 1)])
    growth.links = [LinkRow(0, "forked_from", "first"), LinkRow(0, "forked_from", "elsewhere")]
    with store.write():
        store.append(fork, growth)
    assert [(link.native_id, link.n) for link in store.links(fork)] == [("elsewhere", 0), ("first", 1)]
    with store.write():
        store.drop_derived(store.session(first)[0].version)
    assert [(link.native_id, link.n) for link in store.links(fork)] == [("elsewhere", 0), ("first", 0)]


def test_when_the_owner_goes_the_heir_is_marked_to_be_derived_again(store: Store) -> None:
    sessions = [new_session(store, name) for name in ("a", "b", "c")]
    versions = [store.session(session)[0].version for session in sessions]
    for session, version in zip(sessions, versions, strict=True):
        tell(store, session, prompt("apple", 1), answer("b", 2, tokens=5), prompt(f"own {session}"))
        with store.write():
            store.set_version(version, parser=7)
            store.set_text(SessionText(session, title="t"))
    with store.write():
        store.delete_file(store.version(versions[0]).source)
    assert [store.version(version).parser for version in versions[1:]] == [0, 7]
    assert [row.inherited for row in store.messages(sessions[1])] == [0, 0, 0]
    assert [row.inherited for row in store.messages(sessions[2])] == [1, 1, 0]
    assert [store.session(session)[0].tokens_out for session in sessions[1:]] == [5, 0]
    links = [[(link.native_id, link.n) for link in store.links(session)] for session in sessions[1:]]
    assert links == [[], [("b", 2)]]


def test_many_shared_messages_are_handled_in_more_than_one_statement(store: Store) -> None:
    first, fork = new_session(store, "first"), new_session(store, "fork")
    shared = [prompt(f"p{n}", n) for n in range(1300)]
    tell(store, fork, *shared)
    tell(store, first, *shared)
    assert store.session(fork)[0].n_inherited == 1300
    assert [link.n for link in store.links(fork)] == [1300]
    with store.write():
        store.delete_file(store.version(store.session(first)[0].version).source)
    assert store.session(fork)[0].n_inherited == 0
    assert store.links(fork) == []
