"""Snippets around what was searched for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.retrieval.hits import excerpt, excerpt_at
from everturn.text.printable import count_cells


def marked(text: str, phrases: list[str], width: int = 160) -> str:
    snippet, spans = excerpt(text, phrases, width)
    for start, end in reversed(spans):
        snippet = f"{snippet[:start]}[{snippet[start:end]}]{snippet[end:]}"
    return snippet


@pytest.mark.parametrize(
    ("text", "phrases", "shown"),
    [
        ("The parser fails on glued lines", ["PARSER"], "The [parser] fails on glued lines"),
        ("call parse_json_line(x)", ["parse json line"], "call [parse_json_line](x)"),
        ("edit src/auth.py now", ["auth.py"], "edit src/[auth.py] now"),
        ("call parseJsonLine(x)", ["parse json line"], "call [parseJsonLine](x)"),
        ("in parse_json_line too", ["json"], "in parse_[json]_line too"),
        ("这是会话记录", ["会话"], "这是[会话]记录"),
        ("a Café in München", ["cafe", "munchen"], "a [Café] in [München]"),
        ("a cafe", ["Café"], "a [cafe]"),
        ("reparse then parse", ["parse"], "reparse then [parse]"),
        ("tokenizer and tokens", ["token*"], "[token]izer and [token]s"),
        ("it was parsing and parsed", ["parse"], "it was [parsing] and [parsed]"),
        ("if I fail in it", ["i"], "if [I] fail in it"),
        ("migrations ran", ["migration"], "[migrations] ran"),
        ("we stopped here", ["stop"], "we [stopped] here"),
        ("fed parsley", ["parsing"], "fed parsley"),
        ("rather separate rates, rated at a rate", ["rate"], "rather separate [rates], [rated] at a [rate]"),
        ("rather than overrate", ["rate"], "rather than overrate"),
        ("rating a party", ["rate", "parties"], "[rating] a [party]"),
        ("rather than rate", ["rat*"], "[rat]her than [rat]e"),
        ("a json_parser class", ["JsonParser"], "a [json_parser] class"),
        ("class JsonParser:", ["jsonparser"], "class [JsonParser]:"),
        ("class XMLParser2Test:", ["parser2", "test"], "class XML[Parser2][Test]:"),
        ("parseJsonLine(x)", ["json"], "parse[Json]Line(x)"),
        ("toJSON()", ["json"], "to[JSON]()"),
        ("the JsonParser", ["pars*"], "the Json[Pars]er"),
        ("parsejsonline", ["json"], "parsejsonline"),
        ("many json lines here", ["json line"], "many [json lines] here"),
        ("parse_json_lines(x)", ["parse_json_line"], "[parse_json_lines](x)"),
        ("a jsonline", ["json line"], "a [jsonline]"),
        ("会话 and 恢复", ["会话恢复"], "[会话] and [恢复]"),
        ("two\n\n   words\there", ["words here"], "two [words here]"),
        ("x += 1; y ++ z", ["++"], "x += 1; y [++] z"),
        ("one\x1b[31m two\x07", ["two"], "one [two]␇"),
        ("nothing of it", ["else"], "nothing of it"),
        ("nothing asked", [], "nothing asked"),
        ("", ["a"], ""),
    ],
)
def test_what_matches_is_shown_and_marked(text: str, phrases: list[str], shown: str) -> None:
    assert marked(text, phrases) == shown


def test_characters_are_marked_within_words_when_they_were_looked_for() -> None:
    snippet, spans = excerpt("they overrate it", ["rrat"], literally=True)
    assert [snippet[start:end] for start, end in spans] == ["rrat"]


def test_a_known_place_is_shown_with_what_stands_near_it() -> None:
    text = "before " * 50 + "line 12: denied, line 13: denied" + " after" * 50
    at = text.index("line 12")
    snippet, spans = excerpt_at(text, [(at, at + 7), (at + 17, at + 24), (at + 300, at + 303)], 60)
    assert len(snippet) <= 60 and [snippet[start:end] for start, end in spans] == ["line 12", "line 13"]
    assert excerpt_at("a b c", []) == ("a b c", [])


def test_a_long_text_is_cut_on_both_sides_at_words() -> None:
    text = "before " * 100 + "the needle is here " + "after " * 100
    snippet, spans = excerpt(text, ["needle"], 60)
    assert len(snippet) <= 60
    assert snippet.startswith("…before ")
    assert snippet.endswith(" after…")
    assert [snippet[start:end] for start, end in spans] == ["needle"]


def test_the_place_with_most_of_the_phrases_is_chosen() -> None:
    text = "alpha. " + "filler " * 100 + "alpha meets beta " + "filler " * 100 + "beta beta beta"
    assert "[alpha] meets [beta]" in marked(text, ["alpha", "beta"], 80)


def test_without_a_match_it_is_the_beginning() -> None:
    assert excerpt("word " * 100, ["absent"], 20) == ("word word word word…", [])


def test_a_match_across_two_pieces_of_a_long_text_is_found() -> None:
    for shift in range(-12, 3):
        text = "x " * ((262_144 + shift) // 2) + "glued line" + " y" * 1000
        assert "[glued line]" in marked(text, ["glued line"])


def test_a_match_that_is_longer_than_the_snippet_is_cut() -> None:
    snippet, spans = excerpt("a" + " " * 30 + "b", ["a b"], 2)
    assert (snippet, spans) == ("a…", [(0, 1)])


def test_a_very_long_text_is_looked_at_in_part() -> None:
    text = "abc " * 25_000_000
    assert excerpt(text, ["needle", "abc"])[1]


WORDS = st.sampled_from(
    [
        "parse",
        "json",
        "Café",
        "会",
        "话",
        " ",
        "\n",
        "_",
        ".",
        "\x1b[0m",
        "\u202e",
        "\ud800",
        "İ",
        "ß",
        "ﬁ",
        "e\u0301",
        "a" * 50,
    ]
)


@settings(deadline=None)
@given(
    st.lists(WORDS, max_size=60).map("".join),
    st.lists(st.sampled_from(["parse json", "cafe", "会话", "a*", "fi", "i", "_", "", "*"]), max_size=4),
    st.integers(1, 60),
)
def test_any_snippet_is_one_safe_line_of_the_asked_width_with_spans_in_it(
    text: str, phrases: list[str], width: int
) -> None:
    snippet, spans = excerpt(text, phrases, width)
    assert (len(snippet) if spans else count_cells(snippet)) <= width
    assert not set(snippet) & {"\n", "\x1b", "\u202e", "\ud800"}
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(snippet) for edge in edges)


@pytest.mark.parametrize(
    ("piece", "phrase"), [("a ", "a a a a a"), ("a" + " " * 39, "a b"), ("会", "会会会会话"), ("_", "a"), ("aé", "ae")]
)
def test_hostile_text_is_read_in_linear_time(piece: str, phrase: str) -> None:
    assert isinstance(excerpt(piece * (2_000_000 // len(piece)), [phrase])[0], str)
