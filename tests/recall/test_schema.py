"""The description of the tool names every filter, and its examples work."""

from __future__ import annotations

import pytest

from everturn.recall.schema import DESCRIPTION, FILTER_EXAMPLES, QUERY_DESCRIPTION, SCHEMA
from everturn.recall.tool import ConversationRecall
from everturn.retrieval.query import FILTERS, Filter, parse_query
from everturn.sources.contract import all_sources
from everturn.text.tokens import estimate_tokens
from tests.recall.archives import Archive

NOW = 1_772_359_200_000 + 86_400_000  # 2026-03-02, the day after the history
_BEFORE = "Search query (for 'search' action)."


def test_every_filter_has_an_example() -> None:
    assert sorted(example.partition(":")[0] for example in FILTER_EXAMPLES) == sorted(FILTERS)
    assert all(f" {example}" in QUERY_DESCRIPTION for example in FILTER_EXAMPLES)
    assert SCHEMA["properties"]["query"]["description"] == QUERY_DESCRIPTION
    assert "since:7d role:user tool:Bash" in DESCRIPTION


def test_the_description_stays_short() -> None:
    assert estimate_tokens(QUERY_DESCRIPTION) - estimate_tokens(_BEFORE) <= 200


@pytest.mark.parametrize("example", FILTER_EXAMPLES)
def test_an_example_is_a_filter_and_runs(archive: Archive, example: str) -> None:
    archive.take_in(archive.history.turn("red apple", "a red apple"))
    example = example.replace("NAME", "claude_code")
    name, _, value = example.partition(":")
    assert parse_query(f"apple {example}").filters == (Filter(name, value),)
    recall = ConversationRecall(archive.store, all_sources(), now=NOW)
    assert recall.answer({"action": "search", "query": f"apple {example}"}).status in ("found", "nothing")


@pytest.mark.parametrize(
    "question", ["what did I say about the apple yesterday", "what did you suggest about the apple in March"]
)
def test_a_question_of_the_description_is_understood_and_the_answer_says_so(archive: Archive, question: str) -> None:
    archive.take_in(archive.history.turn("red apple", "a red apple"))
    answer = ConversationRecall(archive.store, all_sources(), now=NOW).answer({"action": "search", "query": question})
    assert answer.status == "found"
    assert (
        "Note: looked first at what " in answer.text and "literal:yes searches for the words as they are" in answer.text
    )
    literal = ConversationRecall(archive.store, all_sources(), now=NOW)(
        action="search", query=f"{question} literal:yes"
    )
    assert "looked first" not in literal
