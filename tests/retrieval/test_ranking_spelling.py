"""Slips of the pen: a word that stands nowhere, and the word that was meant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everturn.retrieval.ranking import count_slips, nearest_words
from everturn.store.contract import Store, open_store
from tests.store.building import new_session, prompt, tell


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store("memory:")
    tell(
        opened,
        new_session(opened),
        prompt("the festival of education and the database migration"),
        prompt("a database"),
    )
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("databse", "database"),
        ("dataabse", "database"),
        ("databasse", "database"),
        ("databaze", "database"),
        ("educaton", "education"),
        ("fesetival", "festival"),
        ("migraton", "migration"),
    ],
)
def test_one_slip_is_mended(store: Store, typed: str, meant: str) -> None:
    assert nearest_words(store, typed) == [meant]


def test_two_slips_are_mended_in_long_words(store: Store) -> None:
    assert nearest_words(store, "datebasses") == ["databas*"], "the index knows stems, which are open at the end"


@pytest.mark.parametrize("typed", ["teh", "abcd1234", "会话", "unrelated", "deadbeefcafe", ""])
def test_short_words_ids_and_strangers_are_left_alone(store: Store, typed: str) -> None:
    assert nearest_words(store, typed) == []


def test_slips_are_counted() -> None:
    assert (
        count_slips("form", "from")
        == count_slips("form", "farm")
        == count_slips("form", "for")
        == count_slips("form", "forms")
        == 1
    )
    assert count_slips("form", "form") == 0
    assert count_slips("kitten", "sitting") == 3
