"""Patterns find what Python's own would find, and always come to an end."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.errors import UsageError
from everturn.text.regex import EFFORT, Effort, compile_pattern


def found(pattern: str, text: str) -> list[tuple[int, list[str]]]:
    return [
        (line.number, [line.text[a:b] for a, b in line.spans]) for line in compile_pattern(pattern).search_lines(text)
    ]


def test_lines_are_found_with_their_numbers_places_and_matches() -> None:
    text = "first\nsee parse_json and parse_xml\r\nnothing\nparse_it"
    lines = list(compile_pattern(r"parse_\w+").search_lines(text))
    assert [(line.number, line.text) for line in lines] == [(1, "see parse_json and parse_xml"), (3, "parse_it")]
    assert [text[lines[0].start + a : lines[0].start + b] for a, b in lines[0].spans] == ["parse_json", "parse_xml"]


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a.c", "abc axc a\nc", [(0, ["abc", "axc"])]),
        ("^a$", "a\nba\na", [(0, ["a"]), (2, ["a"])]),
        (r"\bcat\b", "concat cat cats", [(0, ["cat"])]),
        (r"\Bcat", "concat cat", [(0, ["cat"])]),
        ("(?i)error", "ERROR Error", [(0, ["ERROR", "Error"])]),
        ("(?i)[a-c]+", "xABCy", [(0, ["ABC"])]),
        (r"\d{2,3}", "1 22 4444", [(0, ["22", "444"])]),
        ("x{,2}y", "xxxy", [(0, ["xxy"])]),
        ("a{x}", "a{x}", [(0, ["a{x}"])]),
        ("[]a]+", "]a]", [(0, ["]a]"])]),
        ("[^a-z]+", "ab12cd", [(0, ["12"])]),
        (r"[\w-]+", "!foo-bar!", [(0, ["foo-bar"])]),
        ("(?:ab|a)(bc)?", "abc", [(0, ["abc"])]),
        ("(?P<name>x)", "x", [(0, ["x"])]),
        (r"\x41\u4f1a", "A会", [(0, ["A会"])]),
        (r"a\.b\(", "a.b( axb(", [(0, ["a.b("])]),
        ("a*", "baab", [(0, ["aa"])]),
        ("", "x\ny", [(0, []), (1, [])]),
        ("会.恢", "会话恢复", [(0, ["会话恢"])]),
        ("(?i)straße", "STRASSE Straße", [(0, ["Straße"])]),
    ],
)
def test_patterns_mean_what_people_know(pattern: str, text: str, matches: list[tuple[int, list[str]]]) -> None:
    assert found(pattern, text) == matches


_PLAIN = ["a", "b", "c", ".", r"\w", r"\d", r"\s", "[ab]", "[^a]", "_", " ", "1"]
_EDGES = ["^", "$", r"\b", r"\B"]


def patterns(atoms: list[str]) -> st.SearchStrategy[str]:
    times = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "*?", "{,2}"])
    return st.recursive(
        st.sampled_from(atoms),
        lambda part: st.one_of(
            st.tuples(part, part).map("".join),
            st.tuples(part, part).map("|".join).map("({})".format),
            st.tuples(part, times).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        ),
        max_leaves=8,
    )


@settings(max_examples=400, deadline=None)
@given(
    patterns(_PLAIN + _EDGES),
    st.lists(st.text(alphabet="abcA1_ -", min_size=1, max_size=12), min_size=1, max_size=4),
    st.sampled_from(["", "(?i)"]),
)
def test_the_same_lines_match_as_with_python(pattern: str, lines: list[str], flags: str) -> None:
    matching = [line.number for line in compile_pattern(flags + pattern).search_lines("\n".join(lines))]
    assert matching == [number for number, line in enumerate(lines) if re.search(flags + pattern, line)]


@settings(max_examples=200, deadline=None)
@given(patterns(_PLAIN), st.text(alphabet="abc1_ ", max_size=12))
def test_what_is_marked_is_a_match(pattern: str, line: str) -> None:
    for found_line in compile_pattern(pattern).search_lines(line):
        assert list(found_line.spans) == sorted(found_line.spans)
        assert all(re.fullmatch(pattern, line[start:end]) for start, end in found_line.spans)


#: Patterns that take Python's own matcher longer than anybody waits.
_CATASTROPHES = [
    (r"(a+)+$", "a" * 5000 + "b"),
    (r"(a|aa)+$", "a" * 5000 + "b"),
    (r"(a|a?)+$", "a" * 5000 + "b"),
    (r"(.*)*(.*)*[xy]", "z" * 20_000),
    (r"([a-zA-Z]+)*[!?]", "a" * 20_000),
    (r"a.*a.*a.*a.*[bc]", "a" * 50_000),
    (r"(x+x+)+[yz]", "x" * 20_000),
    (r"\s+$", " " * 200_000 + "x"),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 20_000),
    (r"(a?){500}[a]{500}", "a" * 4000),
    (r"(.{1,30}){1,30}[zy]", "q" * 50_000),
    (r"(\w\B){0,400}[!?]", "".join(map(chr, range(0x4E00, 0x9000))) * 3),
    (r"(a|b)*a(a|b){200}[cd]", "".join(random.Random(7).choices("ab", k=300_000))),
]


@pytest.mark.parametrize("number", range(len(_CATASTROPHES)))
def test_no_pattern_takes_more_than_its_effort(number: int) -> None:
    pattern, text = _CATASTROPHES[number]
    effort = Effort(EFFORT)
    list(compile_pattern(pattern).search_lines(text, effort))
    # One step may go beyond what is left, and no step is larger than the pattern.
    assert effort.left > -100_000


def test_a_search_that_is_cut_short_says_so_and_keeps_what_it_found() -> None:
    effort = Effort(2_000)
    lines = list(compile_pattern("x[yz]").search_lines("xy\n" + "-\n" * 3 + "x" * 5000 + "y\nxy", effort))
    assert [line.number for line in lines] == [0] and effort.spent
    assert not Effort(10).spent


def test_a_pattern_that_grows_too_large_is_refused() -> None:
    for pattern in ("(a{100}){100}", "(((a{0}){1000}){1000}){1000}", "(.{1,1000}){3}"):
        with pytest.raises(UsageError, match="too large"):
            compile_pattern(pattern)


def test_a_literal_part_is_used_to_pass_over_what_cannot_match() -> None:
    effort = Effort(10_000)
    text = "nothing here\n" * 10_000 + "needle 7"
    assert [line.number for line in compile_pattern(r"needle \d").search_lines(text, effort)] == [10_000]
    assert not effort.spent


def test_text_whose_letters_grow_when_lowered_is_searched_all_the_same() -> None:
    assert found("(?i)needle", "İ\nİ NEEDLE") == [(1, ["NEEDLE"])]
