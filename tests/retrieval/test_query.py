"""What a person types, and what it asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.errors import UsageError
from everturn.retrieval.query import (
    FILTERS,
    LONGEST_WORD,
    MAX_PHRASE,
    MAX_WORDS,
    Filter,
    QueryPhrase,
    SearchQuery,
    parse_query,
)


def test_words_are_pieces_in_order() -> None:
    asked = parse_query("parse JSON")
    assert asked.pieces == (QueryPhrase("parse", group=0), QueryPhrase("JSON", group=1))
    assert asked.groups == ((("parse",),), (("json",),))


def test_a_quoted_phrase_is_one_thing() -> None:
    asked = parse_query('"parse the line" now')
    assert asked.pieces == (QueryPhrase("parse the line", quoted=True, group=0), QueryPhrase("now", group=1))
    assert asked.groups == ((("parse", "the", "line"),), (("now",),))


def test_a_word_with_separators_is_a_phrase() -> None:
    assert parse_query("parse_json_line auth.py 会话").groups == (
        (("parse", "json", "line"),),
        (("auth", "py"),),
        (("会", "话"),),
    )


def test_a_minus_leaves_out_words_and_phrases() -> None:
    asked = parse_query('json -yaml -"to ml" -pre*')
    assert asked.groups == ((("json",),),)
    assert asked.without == (("yaml",), ("to", "ml"), ("pre*",))


def test_a_flag_or_an_arrow_is_looked_for_not_left_out() -> None:
    assert [piece.text for piece in parse_query("--no-cache a-b ->").wanted_phrases] == ["--no-cache", "a-b", "->"]


def test_a_star_leaves_the_end_open() -> None:
    asked = parse_query('pars* auth.p* "go on"*')
    assert asked.groups == ((("pars*",),), (("auth", "p*"),), (("go", "on*"),))
    assert [piece.prefix for piece in asked.pieces] == [True, True, True]


def test_a_star_inside_quotes_is_only_a_sign() -> None:
    assert parse_query('"a* b*"').groups == ((("a", "b"),),)


def test_or_joins_its_neighbours() -> None:
    assert parse_query("json OR yaml toml").groups == ((("json",), ("yaml",)), (("toml",),))
    assert [piece.group for piece in parse_query("json OR yaml toml").pieces] == [0, 0, 1]
    assert parse_query('a OR "b c" OR d*').groups == ((("a",), ("b", "c"), ("d*",)),)
    assert parse_query("this or that").groups == ((("this",),), (("or",),), (("that",),))


@pytest.mark.parametrize("typed", ["OR a", "a OR", "OR OR a OR OR", "a OR -", "- a"])
def test_a_sign_beside_nothing_is_ignored(typed: str) -> None:
    assert parse_query(typed).pieces == (QueryPhrase("a"),)


def test_an_unwanted_word_is_never_an_alternative() -> None:
    asked = parse_query("a OR -b c")
    assert asked.without == (("b",),)
    assert asked.groups == ((("a",),), (("c",),))


def test_an_open_quote_runs_to_the_end() -> None:
    assert parse_query('one "two three').groups == ((("one",),), (("two", "three"),))


def test_curly_quotes_are_quotes() -> None:
    assert parse_query("“two words”").groups == ((("two", "words"),),)


@pytest.mark.parametrize("typed", ["", "   ", "-", '"', '""', "*", "***", "-*", "OR", "_", "?", "\0", "\ud800", '-"'])
def test_nothing_to_look_for_asks_for_nothing(typed: str) -> None:
    assert parse_query(typed) == SearchQuery()


@pytest.mark.parametrize("typed", ["=>", "!=", "🚀", "::", "&&", '"= ="'])
def test_signs_are_something_to_look_for_though_no_term(typed: str) -> None:
    asked = parse_query(typed)
    assert len(asked.wanted_phrases) == 1 and asked.groups == ()


def test_a_pasted_page_is_cut_short() -> None:
    assert len(parse_query("word " * 1000).groups) == MAX_WORDS
    assert [len(phrase) for (phrase,) in parse_query(f'"{"word " * 1000}"').groups] == [MAX_PHRASE]


def test_what_is_too_long_for_a_word_stands_for_itself() -> None:
    assert parse_query("a" * LONGEST_WORD).pieces[0].quoted is False
    assert parse_query("'" + "a" * (LONGEST_WORD + 1)).pieces[0].quoted is True
    assert parse_query("https://example.org/" + "path/" * 20).pieces[0].quoted is False


# filters --------------------------------------------------------------------------------------------------------------
def test_filters_stand_among_the_words() -> None:
    asked = parse_query('fix tool:Bash the -role:tool path:"my file.py" turn:3-7 bug')
    assert [piece.text for piece in asked.pieces] == ["fix", "the", "bug"]
    assert asked.filters == (
        Filter("tool", "Bash"),
        Filter("role", "tool", negated=True),
        Filter("path", "my file.py"),
        Filter("turn", "3-7"),
    )


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_has_its_name(name: str) -> None:
    assert parse_query(f"{name}:x") == SearchQuery((), (Filter(name, "x"),))


def test_in_is_another_word_for_field() -> None:
    assert parse_query("in:answer").filters == (Filter("field", "answer"),)


@pytest.mark.parametrize(
    "typed", ["http://example.org/a", "foo:bar", "Error:x", "xtool:y", "a-tool:y", "error:", "std::tool", '"tool:x"']
)
def test_what_is_no_filter_is_text(typed: str) -> None:
    asked = parse_query(typed)
    assert asked.filters == () and [piece.text for piece in asked.pieces] == [typed.strip('"')]


def test_a_filter_between_alternatives_does_not_part_them() -> None:
    assert parse_query("a OR tool:x b").groups == ((("a",), ("b",)),)


# patterns -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("typed", "regex", "words"),
    [
        (r"/line \d+/", r"line \d+", []),
        (r"/denied/i now", "(?i)denied", ["now"]),
        (r"before /a\/b/", "a/b", ["before"]),
        ("/[/]x/", "[/]x", []),
        ("tool:x /y/", "y", []),
    ],
)
def test_a_pattern_stands_between_slashes(typed: str, regex: str, words: list[str]) -> None:
    asked = parse_query(typed)
    assert (asked.regex, [piece.text for piece in asked.pieces]) == (regex, words)


@pytest.mark.parametrize(
    "typed", ["/usr/bin/", "/usr/bin/env", "ls /usr / x", "a/b/c", "/x/g", "/x", "x/", "//", '"/x/"']
)
def test_a_path_is_not_a_pattern(typed: str) -> None:
    assert parse_query(typed).regex == ""


def test_one_pattern_is_enough() -> None:
    with pytest.raises(UsageError, match="one /pattern/"):
        parse_query("/a/ /b/")


@given(st.text() | st.text(alphabet=st.sampled_from('ab-*" OR“”\n会_:/\\[]tool')))
def test_anything_can_be_typed(typed: str) -> None:
    try:
        asked = parse_query(typed)
    except UsageError as error:
        assert "one /pattern/" in str(error)
        return
    phrases = [phrase for group in asked.groups for phrase in group] + list(asked.without)
    assert all(phrases), "an empty phrase would match nothing or everything"
    assert all(term.rstrip("*").isalnum() for phrase in phrases for term in phrase)
    assert not any("*" in term for phrase in phrases for term in phrase[:-1])
    assert all(piece.text.strip() for piece in asked.pieces)
    assert len(asked.pieces) <= MAX_WORDS


@pytest.mark.parametrize(("first", "piece"), [("/", "["), ("", "/a"), ("/", "[a]"), ("", '"'), ("", "-tool:")])
def test_hostile_requests_are_taken_apart_in_linear_time(first: str, piece: str) -> None:
    assert len(parse_query(first + piece * 100_000 + " x").pieces) <= MAX_WORDS
