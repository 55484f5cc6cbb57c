"""Patterns find what Python's own would find, and always come to an end."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.errors import UsageError
from everturn.text.regex import EFFORT, MAX_LENGTH, Effort, compile_pattern


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
        ("(?:ab|a)(bc)?", "abc", [(0, ["ab"])]),
        ('".*?"', '"a" "b"', [(0, ['"a"', '"b"'])]),
        (r"\bкот\b", "кот котик, кот", [(0, ["кот", "кот"])]),
        (r"\Bкот|é\b", "антикот é", [(0, ["кот", "é"])]),
        (r"[^\W\d]+", "12 über3_", [(0, ["über", "_"])]),
        (r"[\S]+\s", "né\u2003x", [(0, ["né\u2003"])]),
        (r"[\b[:a]", "\b:", [(0, ["\b", ":"])]),
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


@settings(max_examples=300, deadline=None)
@given(patterns(_PLAIN + _EDGES + ["é", "[^é]"]), st.text("abc1_ é会\u2003", min_size=1, max_size=12))
def test_the_marked_matches_are_those_of_python(pattern: str, line: str) -> None:
    matches = [match.span() for match in re.finditer(pattern, line)]
    lines = list(compile_pattern(pattern).search_lines(line))
    assert len(lines) == bool(matches)
    # With empty matches Python may try again from the same offset.
    if matches and all(start < end for start, end in matches):
        assert list(lines[0].spans) == matches[:10]


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


@pytest.mark.few(2)
@pytest.mark.parametrize("number", range(len(_CATASTROPHES)))
def test_work_grows_with_the_text_only(number: int) -> None:
    pattern, text = _CATASTROPHES[number]
    compiled = compile_pattern(pattern)
    work = []
    for length in (len(text) // 20, len(text) // 10):
        effort = Effort(100 * EFFORT)
        list(compiled.search_lines(text[:length], effort))
        work.append(100 * EFFORT - effort.left)
    assert work[1] <= 2 * work[0] + 100


def test_a_line_is_not_begun_that_would_take_more_than_is_left() -> None:
    effort = Effort(1000)
    assert not list(compile_pattern("[ab]").search_lines("a" * 2000, effort)) and effort.is_spent


def test_a_large_pattern_uses_its_effort_up_sooner() -> None:
    small, large = Effort(EFFORT), Effort(EFFORT)
    list(compile_pattern("(a|b)*a[cd]").search_lines("ab" * 500, small))
    list(compile_pattern("(a|b)*a(a|b){900}[cd]").search_lines("ab" * 500, large))
    assert EFFORT - large.left > 50 * (EFFORT - small.left)


def test_half_of_a_surrogate_pair_does_not_stop_a_search() -> None:
    assert found("x+", "\ud800 x é") == [(0, ["x"])]
    assert found(r"\bx+", "\ud800 x é") == [(0, ["x"])]


def test_a_search_that_is_cut_short_says_so_and_keeps_what_it_found() -> None:
    effort = Effort(2_000)
    lines = list(compile_pattern("x[yz]").search_lines("xy\n" + "-\n" * 3 + "x" * 5000 + "y\nxy", effort))
    assert [line.number for line in lines] == [0] and effort.is_spent
    assert not Effort(10).is_spent


def test_a_pattern_that_grows_too_large_is_refused() -> None:
    for pattern in ("(a{100}){100}", "(((a{0}){1000}){1000}){1000}", "(.{1,1000}){3}"):
        with pytest.raises(UsageError, match="too large"):
            compile_pattern(pattern)


def test_a_literal_part_is_used_to_pass_over_what_cannot_match() -> None:
    effort = Effort(10_000)
    text = "nothing here\n" * 10_000 + "needle 7"
    assert [line.number for line in compile_pattern(r"needle \d").search_lines(text, effort)] == [10_000]
    assert not effort.is_spent


def test_text_whose_letters_grow_when_lowered_is_searched_all_the_same() -> None:
    assert found("(?i)needle", "İ\nİ NEEDLE") == [(1, ["NEEDLE"])]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a", "not closed"),
        ("a)", "too many"),
        ("[a", "not closed"),
        ("*a", "repeats nothing"),
        ("a**", "side by side"),
        ("a{2}{3}", "side by side"),
        ("a++", "side by side"),
        ("^*", "cannot be repeated"),
        ("a{5,2}", "smaller number first"),
        ("a{2000}", "at most 1000"),
        ("[z-a]", "not a range"),
        (r"[a-\d]", "not a range"),
        ("(?=a)", "no look-around"),
        ("(?<!a)b", "no look-around"),
        ("(?i:a)", "no look-around"),
        (r"(a)\1", "no back references"),
        (r"\q", "means nothing"),
        ("a\\", "ends after a backslash"),
        ("(" * 40 + "a" + ")" * 40, "nested too deeply"),
    ],
)
def test_an_unusable_pattern_is_refused_with_a_reason(pattern: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        compile_pattern(pattern)


def test_a_pattern_that_is_too_long_is_refused() -> None:
    compile_pattern("a" * MAX_LENGTH)
    compile_pattern("(?i)" + "a" * MAX_LENGTH)
    with pytest.raises(UsageError, match="at most 200"):
        compile_pattern("a" * (MAX_LENGTH + 1))


@pytest.mark.parametrize(
    ("pattern", "held"),
    [
        ("parse_json", ["parse_json"]),
        (r"line \d+: denied", ["line ", ": denied"]),
        ("(?i)ERROR", ["error"]),
        ("a|b", []),
        ("(foo)+bar", ["foo", "bar"]),
        ("(foo)*bar", ["bar"]),
        (r"foo\b bar$", ["foo bar"]),
        ("fo?o", ["f", "o"]),
        ("[x]yz", ["xyz"]),
        (".", []),
        ("naïve", ["na", "ve"]),
    ],
)
def test_literal_parts_are_what_every_match_holds(pattern: str, held: list[str]) -> None:
    assert compile_pattern(pattern).literals == held
