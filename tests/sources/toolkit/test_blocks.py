"""The neutral kinds of any agent's tools, and the error classes of their results."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.model.vocabulary import CALL_KINDS, ERROR_CLASSES
from everturn.sources.toolkit.values import (
    blocks_of,
    call_start,
    error_class,
    exit_status,
    function_calls,
    tool_kind,
    usage_of,
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Read", "read"), ("read_file", "read"), ("mcp__files__read_file", "read"), ("apply_patch", "edit"),
        ("Write", "create"), ("run_terminal_cmd", "shell"), ("container.exec", "shell"), ("codebase_search", "search"),
        ("web.run", "fetch"), ("Task", "task"), ("TodoWrite", "plan"), ("AskUserQuestion", "ask"),
        ("mcp__everturn__conversation_recall", "recall"), ("python", "other"), ("", "other"),
    ],
)  # fmt: skip
def test_a_tool_is_known_by_its_name(name: str, kind: str) -> None:
    assert kind in CALL_KINDS
    assert tool_kind(name) == kind


def test_a_tool_that_does_several_things_says_which_in_its_arguments() -> None:
    kinds = [tool_kind("str_replace_editor", {"command": name}) for name in ("view", "create", "str_replace", "dance")]
    assert kinds == ["read", "create", "edit", "other"]


def test_arguments_may_be_a_value_or_its_text() -> None:
    for given in ({"file_path": "a.py"}, '{"file_path": "a.py"}'):
        start = call_start("c", "Read", given)
        assert (start.path, start.input) == ("a.py", {"file_path": "a.py"})
    assert call_start("c", "python", "print(1)").input == "print(1)"
    assert call_start("c", "shell", {"command": ["bash", "-lc", "ls -l"]}).command == "ls -l"
    assert call_start("c", "shell", {"cmd": ["ls", "-l"]}).command == "ls -l"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<tool_use_error>File does not exist.</tool_use_error>", "not_found"), ("Exit code 2\nx", "exit_status"),
        ("The user doesn't want to proceed with this tool use", "rejected"), ("Sibling tool call errored", "cancelled"),
        ("Command timed out after 2m", "timeout"), ("EACCES: permission denied", "permission"), ("boom", "other"),
        ("InputValidationError: x", "invalid_input"), ("File has not been read yet", "stale"),
    ],
)  # fmt: skip
def test_a_failure_is_classed_by_how_it_begins(text: str, why: str) -> None:
    assert why in ERROR_CLASSES
    assert error_class(text) == why


def test_an_exit_status_stands_at_the_beginning_of_a_line() -> None:
    assert [exit_status(text) for text in ("Exit code: 3", "x\nProcess exited with code 0", "it will exit 4", "")] == [
        3, 0, None, None,
    ]  # fmt: skip


def test_blocks_of_any_shape_are_kept() -> None:
    odd: list[Any] = [
        1,
        None,
        {"type": []},
        {"type": "text", "text": 1},
        {"type": "hologram", "words": ["a", {"b": "c"}]},
        "plain",
    ]
    blocks = blocks_of(odd, "answer")
    assert [block.kind for block in blocks] == ["unknown"] * 5 + ["text"]
    assert blocks[4].text == "a\nc"
    assert [block.kind for block in function_calls([{"function": 1}, "x"])] == ["unknown", "unknown"]
    assert usage_of("no") is None
