"""What is made of a request before the index is asked."""

from __future__ import annotations

import pytest

from everturn.retrieval.query import NAME, PAIR, WHOLE, build_index_query, parse_query


def wanted(text: str) -> dict[str, float]:
    """Optional phrases, by their words."""
    query = build_index_query(parse_query(text))
    return {" ".join(phrase): weight for phrase, weight in zip(query.optional, query.weights, strict=True)}


def test_words_of_grammar_are_left_out() -> None:
    plain = {words for words, weight in wanted("how does the parser fail?").items() if weight == 1.0}
    assert plain == {"parser", "fail"}


def test_a_request_of_nothing_else_looks_for_them() -> None:
    assert set(wanted("to be or not")) >= {"to", "be", "or", "not"}


def test_words_side_by_side_count_as_a_pair_and_as_one_word() -> None:
    found = wanted("json parser of files")
    assert found["json parser"] == PAIR
    assert "jsonparser" in found
    assert "parser files" not in found, "there is a word between them"
    assert found["json parser of files"] == WHOLE


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("JsonParser", {"jsonparser", "json parser", "json", "parser"}),
        ("parse_json", {"parse json", "parsejson", "parse", "json"}),
        ("src/auth.py", {"src auth py", "srcauthpy", "src", "auth", "py"}),
        ("https://example.org/guide", {"https example org guide", "example org", "guide"}),
        ("会话恢复", {"会 话", "话 恢", "恢 复"}),
        ("修复bug", {"修 复", "bug"}),
        ("Ann's", {"ann"}),
        ("(parser),", {"parser"}),
    ],
)
def test_a_name_is_looked_for_in_the_ways_it_may_be_written(typed: str, expected: set[str]) -> None:
    assert set(wanted(typed)) >= expected


def test_a_name_as_it_was_typed_counts_most_of_its_spellings() -> None:
    found = wanted("parse_json")
    assert found["parse json"] == NAME == max(found.values())


def test_what_is_quoted_open_or_joined_is_demanded() -> None:
    query = build_index_query(parse_query('"no such file" auth* json OR yaml plain -toml'))
    assert query.groups == ((("no", "such", "file"),), (("auth*",),), (("json",), ("yaml",)))
    assert query.without == (("toml",),)
    assert query.optional == (("plain",),)


def test_a_pasted_page_asks_for_a_bounded_number_of_phrases() -> None:
    assert len(build_index_query(parse_query(" ".join(f"word{n}" for n in range(500)))).optional) <= 50


def test_times_that_are_spoken_of_are_noted() -> None:
    assert len(build_index_query(parse_query("what broke in May 2023")).about) == 1
    assert build_index_query(parse_query("what may break")).about == ()
