"""What a person types, and what it asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.derive.query import MAX_PHRASE, MAX_WORDS, Parsed, parse


def test_words_must_all_match() -> None:
    assert parse("parse JSON").groups == ((("parse",),), (("json",),))


def test_a_quoted_phrase_is_one_thing() -> None:
    assert parse('"parse the line" now').groups == ((("parse", "the", "line"),), (("now",),))


def test_a_word_with_separators_is_a_phrase() -> None:
    assert parse("parse_json_line auth.py 会话").groups == (
        (("parse", "json", "line"),),
        (("auth", "py"),),
        (("会", "话"),),
    )


def test_a_minus_leaves_out_words_and_phrases() -> None:
    asked = parse('json -yaml -"to ml" -pre*')
    assert asked.groups == ((("json",),),)
    assert asked.without == (("yaml",), ("to", "ml"), ("pre*",))


def test_a_flag_is_looked_for_not_left_out() -> None:
    assert parse("--no-cache a-b") == Parsed((((("no", "cache")),), (("a", "b"),)), (), ("--no-cache", "a-b"))


def test_a_star_leaves_the_end_open() -> None:
    assert parse('pars* auth.p* "go on"*').groups == ((("pars*",),), (("auth", "p*"),), (("go", "on*"),))


def test_a_star_inside_quotes_is_only_a_sign() -> None:
    assert parse('"a* b*"').groups == ((("a", "b"),),)


def test_or_joins_its_neighbours() -> None:
    assert parse("json OR yaml toml").groups == ((("json",), ("yaml",)), (("toml",),))
    assert parse('a OR "b c" OR d*').groups == ((("a",), ("b", "c"), ("d*",)),)
    assert parse("this or that").groups == ((("this",),), (("or",),), (("that",),))


@pytest.mark.parametrize("typed", ["OR a", "a OR", "OR OR a OR OR", "a OR -", "— a"])
def test_a_sign_beside_nothing_is_ignored(typed: str) -> None:
    assert parse(typed).groups == ((("a",),),)


def test_an_unwanted_word_is_never_an_alternative() -> None:
    asked = parse("a OR -b c")
    assert asked.without == (("b",),)
    assert asked.groups[0][0] == ("a",)


def test_an_open_quote_runs_to_the_end() -> None:
    assert parse('one "two three').groups == ((("one",),), (("two", "three"),))


def test_curly_quotes_are_quotes() -> None:
    assert parse("“two words”").groups == ((("two", "words"),),)


@pytest.mark.parametrize(
    "typed", ["", "   ", "-", '"', '""', "*", "***", "-*", "OR", "🚀 —", "_", "\0", "\ud800", '-"']
)
def test_nothing_to_look_for_asks_for_nothing(typed: str) -> None:
    assert parse(typed) == Parsed()


def test_what_is_shown_are_the_words_of_the_person() -> None:
    assert parse('Parse_Line "Go On" pre* -not x OR Y').shown == ("Parse_Line", "Go On", "pre", "x", "Y")


def test_a_pasted_page_is_cut_short() -> None:
    assert len(parse("word " * 1000).groups) == MAX_WORDS
    assert [len(phrase) for (phrase,) in parse(f'"{"word " * 1000}"').groups] == [MAX_PHRASE]


@given(st.text() | st.text(alphabet=st.sampled_from('ab-*" OR“”\n会_')))
def test_anything_can_be_typed(typed: str) -> None:
    asked = parse(typed)
    phrases = [phrase for group in asked.groups for phrase in group] + list(asked.without)
    assert all(phrases), "an empty phrase would match nothing or everything"
    assert all(term.rstrip("*").isalnum() for phrase in phrases for term in phrase)
    assert not any("*" in term for phrase in phrases for term in phrase[:-1])
    assert len(asked.shown) == sum(map(len, asked.groups))
