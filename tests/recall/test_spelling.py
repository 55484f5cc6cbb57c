"""Slips of the pen: a word that stands nowhere, and the word that was meant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everturn.recall.spelling import nearest, slips
from everturn.store import Store, open_store
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
    assert nearest(store, typed) == [meant]


def test_two_slips_are_mended_in_long_words(store: Store) -> None:
    assert nearest(store, "datebasses") == ["databas*"], "the index knows stems, which are open at the end"


@pytest.mark.parametrize("typed", ["teh", "abcd1234", "会话", "unrelated", "deadbeefcafe", ""])
def test_short_words_ids_and_strangers_are_left_alone(store: Store, typed: str) -> None:
    assert nearest(store, typed) == []


def test_slips_are_counted() -> None:
    assert slips("form", "from") == slips("form", "farm") == slips("form", "for") == slips("form", "forms") == 1
    assert slips("form", "form") == 0
    assert slips("kitten", "sitting") == 3
