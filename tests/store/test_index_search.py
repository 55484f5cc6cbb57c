"""What is worth ranking: the same on every engine, and bounded however common the words are."""

from __future__ import annotations

import pytest

from everturn.store import index_search
from everturn.store.contract import IndexCandidates, IndexEntry, IndexQuery, SessionFilter, Store
from tests.store.building import answer, new_session, prompt, tell

COMMON = 40


@pytest.fixture
def filled(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Eight sessions: one word in every message, one in few, one in a single one."""
    monkeypatch.setattr(index_search, "SAMPLE", 10)
    monkeypatch.setattr(index_search, "FEW", 2)
    monkeypatch.setattr(index_search, "WALK", 1)
    monkeypatch.setattr(index_search, "PER_BEST", 10**6)
    for number in range(8):
        said = [answer(f"common {'seldom' if n == number % 5 else 'other'} words {number}") for n in range(5)]
        tell(store, new_session(store, f"s{number}"), *said)
    tell(store, new_session(store, "last"), prompt("unique and common"))
    return store


def held(found: IndexCandidates, entry: IndexEntry) -> set[tuple[str, ...]]:
    return {found.phrases[number] for number, much in entry.held if much > 0}


def ask(store: Store, *words: str, most: int = 0, **parts: object) -> IndexCandidates:
    return store.candidates(IndexQuery((), optional=tuple(tuple(word.split()) for word in words), **parts), most)  # type: ignore[arg-type]


def test_an_entry_says_which_of_the_phrases_it_holds(filled: Store) -> None:
    found = ask(filled, "common", "unique", "seldom", "unique and", "common unique")
    best = max(found.entries, key=lambda entry: len(entry.held))
    assert held(found, best) == {("common",), ("unique",), ("unique", "and")}
    assert all(0 < much <= 1 for entry in found.entries for _, much in entry.held)


def test_without_a_bound_everything_is_there(filled: Store) -> None:
    found = ask(filled, "common")
    assert len(found.entries) == COMMON + 1
    assert found.complete


def test_with_a_bound_entries_with_the_rarest_words_are_there(filled: Store) -> None:
    found = ask(filled, "common", "seldom", "unique", most=12)
    assert len([entry for entry in found.entries if ("seldom",) in held(found, entry)]) == 8
    assert len([entry for entry in found.entries if ("unique",) in held(found, entry)]) == 1
    assert len(found.entries) <= 12
    assert not found.complete


@pytest.mark.parametrize("store_url", ["memory", "sqlite"], indirect=True)  # PostgreSQL knows the best
def test_of_common_words_alone_the_newest_are_there(filled: Store) -> None:
    found = ask(filled, "common", most=6)
    newest = max(entry.session for entry in found.entries)
    assert 0 < len(found.entries) <= 12
    assert min(entry.session for entry in found.entries) >= newest - 2
    assert not found.complete


@pytest.mark.parametrize("store_url", ["memory", "sqlite"], indirect=True)
def test_of_more_entries_than_are_wanted_the_best_are_taken_with_the_rest_of_their_sessions(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_search, "WALK", 20)
    best = new_session(filled, "best")
    tell(filled, best, prompt("seldom seldom seldom"), answer("seldom in a text that is about very many other things"))
    for number in range(8):
        tell(filled, new_session(filled, f"later{number}"), answer("seldom in a text that is about other things"))
    found = ask(filled, "seldom", most=8)
    assert {(best, 0), (best, 1)} <= {(entry.session, entry.seq) for entry in found.entries}
    assert len(found.entries) <= 8
    assert not found.complete


def test_how_common_a_word_is_can_be_told_from_a_part(filled: Store) -> None:
    found = ask(filled, "common", "seldom", "unique", "nowhere", most=12)
    common, seldom, unique, nowhere = found.counts
    assert COMMON / 2 < common < COMMON * 2
    assert (seldom, unique, nowhere) == (8, 1, 0)
    assert found.total >= COMMON


def test_a_filter_does_not_lose_what_only_common_words_find(filled: Store) -> None:
    [(first, _)] = [row for row in filled.sessions(SessionFilter())[0] if row[0].native_id == "s0"]
    found = ask(filled, "common", "unique", most=6, session=first.id)
    assert {entry.session for entry in found.entries} == {first.id}
    assert len(found.entries) == 5
    assert ask(filled, "common", "unique", most=6, roles=("user",)).entries


def test_what_is_demanded_is_found_however_old_it_is(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_search, "REACH", 1)
    found = filled.candidates(IndexQuery(((("common", "seldom"),), (("words", "0"),))), 10)
    assert len(found.entries) == 1


def test_counting_and_looking_agree_about_what_is_nowhere(filled: Store) -> None:
    found = ask(filled, "nowhere", "else")
    assert found.entries == []
    assert found.complete
