"""Evidence tools requested in brackets, and as functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everturn.recall.evidence import EvidenceSearchTools, LogFile
from everturn.recall.evidence_calls import FORMS, EvidenceRequest, call_evidence_tool, evidence_tools, parse_requests


@pytest.fixture
def tools(tmp_path: Path) -> EvidenceSearchTools:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("".join(f"row {n}\n" for n in range(1, 31)))
    return EvidenceSearchTools('one\ntwo "quoted" \\d\nthree', str(tmp_path), [LogFile("src/main.py", "read", 0)])


def arguments(text: str) -> list[tuple[str, tuple[str | None, ...] | None]]:
    return [(request.name, request.arguments) for request in parse_requests(text)]


def test_every_form_is_understood() -> None:
    text = """I need more. [SEARCH_LOG: "ref.*sh"] and then
    [SEARCH_FILE: "src/a b.py" "def main"][READ_FILE: "src/main.py"]
    [READ_FILE: "src/main.py" (10-20)] [LIST_ARTIFACTS] [COMPLETE_EVIDENCE_SEARCH]"""
    assert arguments(text) == [
        ("SEARCH_LOG", ("ref.*sh",)),
        ("SEARCH_FILE", ("src/a b.py", "def main")),
        ("READ_FILE", ("src/main.py", None, None)),
        ("READ_FILE", ("src/main.py", "10", "20")),
        ("LIST_ARTIFACTS", ()),
        ("COMPLETE_EVIDENCE_SEARCH", ()),
    ]


@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        (r'[SEARCH_LOG: "say \"hi\""]', 'say "hi"'),
        (r'[SEARCH_LOG: "\d+\\"]', r"\d+\\"),
        (r'[SEARCH_LOG: "[a-z]\]"]', r"[a-z]\]"),
        ('[SEARCH_LOG:"x"]', "x"),
        ("[SEARCH_LOG: “x y” ]", "x y"),
        ('[SEARCH_LOG: ""]', ""),
        ('[SEARCH_LOG: "[SEARCH_LOG: inner]"]', "[SEARCH_LOG: inner]"),
    ],
)
def test_quotes_are_escaped_and_backslashes_are_the_patterns_own(written: str, pattern: str) -> None:
    assert arguments(written) == [("SEARCH_LOG", (pattern,))]


@pytest.mark.parametrize(
    "written",
    [
        "[SEARCH_LOG: x]", "[SEARCH_LOG]", '[SEARCH_LOG: "x" "y"]', '[SEARCH_LOG: "x', '[SEARCH_FILE: "x"]', "[READ_FILE: x]",
        '[READ_FILE: "x" (a-b)]', '[READ_FILE: "x" 10-20]', '[LIST_ARTIFACTS: "x"]', "[SEARCH_LOG: 'x']",
    ],
)  # fmt: skip
def test_what_is_almost_a_request_has_no_arguments(written: str) -> None:
    (request,) = parse_requests(written)
    assert request.arguments is None
    assert request.name in FORMS and written.startswith(request.written[:12])


def test_other_brackets_are_text() -> None:
    assert parse_requests('[x] [SEARCH: x] [search_log: "x"] a[LIST_ARTIFACTSX] [Turn 1] user:') == []


def test_requests_come_in_the_order_written() -> None:
    written = '[LIST_ARTIFACTS] [READ_FILE: "src/main.py" (3-4)] [SEARCH_LOG: "three"] [COMPLETE_EVIDENCE_SEARCH]'
    assert arguments(written) == [
        ("LIST_ARTIFACTS", ()),
        ("READ_FILE", ("src/main.py", "3", "4")),
        ("SEARCH_LOG", ("three",)),
        ("COMPLETE_EVIDENCE_SEARCH", ()),
    ]


def test_the_search_ends_after_eight_rounds_or_when_it_is_complete(tools: EvidenceSearchTools) -> None:
    assert tools.max_searches == 8 and tools.should_continue_search()
    tools.rounds = 7
    assert tools.should_continue_search()
    tools.rounds = 8
    assert not tools.should_continue_search()
    limited = EvidenceSearchTools("x", max_searches=2)
    call_evidence_tool(limited, "complete_evidence_search", {})
    assert not limited.should_continue_search()


def test_parsing_takes_time_in_line_with_the_text() -> None:
    assert len(parse_requests('[READ_FILE: "' * 20_000)) == 20_000
    assert parse_requests('[SEARCH_LOG: "' + '\\"' * 100_000)[0].arguments is None
    assert isinstance(parse_requests("[LIST_ARTIFACTS]")[0], EvidenceRequest)


# functions ------------------------------------------------------------------------------------------------------------
def test_the_functions_are_those_of_the_brackets() -> None:
    assert [one.name.upper() for one in evidence_tools()] == list(FORMS)
    for one in evidence_tools():
        assert one.openai()["function"]["parameters"] == one.anthropic()["input_schema"]
        assert one.parameters["type"] == "object" and one.read_only


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("search_log", {"pattern": "two"}, lambda tools: tools.search_log("two")),
        ("search_file", {"file_path": "src/main.py", "pattern": "row 7"}, lambda tools: tools.search_file("src/main.py", "row 7")),
        ("read_file", {"file_path": "src/main.py"}, lambda tools: tools.read_file("src/main.py")),
        ("read_file", '{"file_path":"src/main.py","start_line":3,"end_line":4}', lambda tools: tools.read_file("src/main.py", (3, 4))),
        ("list_artifacts", {}, lambda tools: tools.list_artifacts()),
    ],
)  # fmt: skip
def test_a_function_answers_as_its_method_does(
    tools: EvidenceSearchTools, name: str, given: Any, expected: Callable[[EvidenceSearchTools], str]
) -> None:
    assert call_evidence_tool(tools, name, given) == expected(tools)


def test_a_function_can_start_anywhere_and_go_to_the_end(tools: EvidenceSearchTools) -> None:
    assert "lines 28 to 30 of 30" in call_evidence_tool(
        tools, "read_file", {"file_path": "src/main.py", "start_line": 28}
    )
    assert "lines 1 to 2 of 30" in call_evidence_tool(tools, "read_file", {"file_path": "src/main.py", "end_line": 2})
    assert "3: three" not in call_evidence_tool(tools, "search_log", {"pattern": "one", "context_lines": 1})


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("rm", {}, "there is no tool 'rm'"),
        ("search_log", {}, "pattern is missing"),
        ("search_log", {"pattern": 3}, "pattern must be a string"),
        ("search_log", {"pattern": "x", "context_lines": "many"}, "context_lines must be a whole number"),
        ("read_file", {"file_path": "src/main.py", "lines": "1"}, "there is no argument 'lines'"),
        ("read_file", "{", "not valid JSON"),
        ("list_artifacts", [], "must be a JSON object"),
    ],
)
def test_a_wrong_call_is_answered_in_words(tools: EvidenceSearchTools, name: str, given: Any, words: str) -> None:
    assert words in call_evidence_tool(tools, name, given)


def test_a_function_ends_the_search_too(tools: EvidenceSearchTools) -> None:
    assert call_evidence_tool(tools, "complete_evidence_search", "") == "The search is complete."
    assert not tools.should_continue_search()
