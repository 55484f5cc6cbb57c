"""Stems: those of the index itself, for who has no FTS5."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.store.contract import Store
from everturn.store.index import TOKENIZER, completions, stem_word, stem_words, word_with_stem
from everturn.text.terms import fold
from tests.store.building import look_for, new_session, prompt, tell


def in_an_index(text: str) -> list[str]:
    database = apsw.Connection(":memory:")
    database.execute(
        f"""CREATE VIRTUAL TABLE doc USING fts5(text, content='', tokenize='{" ".join(TOKENIZER)}');
            CREATE VIRTUAL TABLE word USING fts5vocab(doc, instance);"""
    )
    database.execute("INSERT INTO doc(rowid, text) VALUES (1, ?)", (text,))
    return [row[0] for row in database.execute("SELECT term FROM word ORDER BY offset")]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60))
def test_stems_are_those_of_an_index(text: str) -> None:
    assert stem_words(fold(text)) == in_an_index(fold(text))


def test_words_of_one_family_have_one_stem() -> None:
    assert stem_words("running Runs run") == ["run", "run", "run"]
    assert stem_word("parsing") == stem_word("parsed") == stem_word("parses") == "pars"
    assert stem_words("会 话 x1") == ["会", "话", "x1"]


@pytest.mark.parametrize(
    ("typed", "text"),
    [("parsi*", "parsing"), ("runn*", "running"), ("authenticati*", "authentication"), ("appl*", "apples")],
)
def test_a_word_open_at_its_end_finds_what_it_may_become(store: Store, typed: str, text: str) -> None:
    tell(store, new_session(store), prompt(f"the {text} works"), prompt("something else"))
    assert [hit.seq for hit in look_for(store, typed)] == [0]


def test_a_stem_that_begins_so_needs_no_help() -> None:
    assert completions("test") == []
    assert {stem_word(word) for word in completions("parsi")} >= {"pars"}


@pytest.mark.parametrize(
    ("text", "asked"),
    [("running tests", "run test"), ("the parsers ran", "parser"), ("connections", "connected"), ("Cafés", "café")],
)
def test_every_engine_finds_a_word_by_another_of_its_family(store: Store, text: str, asked: str) -> None:
    tell(store, new_session(store), prompt(text), prompt("something else"))
    assert [hit.seq for hit in look_for(store, asked)] == [0]


def test_a_stem_that_has_a_stem_of_its_own_can_be_asked_for_by_a_word() -> None:
    assert stem_word("parsing") == "pars"
    assert stem_word("pars") != "pars"
    assert stem_word(word_with_stem("pars")) == "pars"
    assert word_with_stem("fish") == "fish"
