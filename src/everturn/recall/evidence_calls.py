"""Evidence tools requested in plain text, for models without tool calls, and the same tools as functions.

    [SEARCH_LOG: "pattern"]                  [READ_FILE: "path"]                   [LIST_ARTIFACTS]
    [SEARCH_FILE: "path" "pattern"]          [READ_FILE: "src/main.py" (10-20)]    [COMPLETE_EVIDENCE_SEARCH]

`parse_requests` finds the requests in a text of a model. A quote within quotes is written `\\"`; every other backslash
belongs to the pattern. A malformed request has no arguments, to be answered with the right form (`FORMS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from everturn.recall.evidence import SEARCH_CONTEXT_LINES, SEARCH_PATTERN_MAX_LENGTH, EvidenceSearchTools
from everturn.recall.schema import Function, given_arguments

FORMS = {
    "SEARCH_LOG": '[SEARCH_LOG: "pattern"]',
    "SEARCH_FILE": '[SEARCH_FILE: "path" "pattern"]',
    "READ_FILE": '[READ_FILE: "path"] or [READ_FILE: "path" (10-20)]',
    "LIST_ARTIFACTS": "[LIST_ARTIFACTS]",
    "COMPLETE_EVIDENCE_SEARCH": "[COMPLETE_EVIDENCE_SEARCH]",
}

#: Requests run in one round; more are answered with a sentence.
MAX_REQUESTS = 8

_QUOTED = r'["“”]((?:[^"“”\\\n]|\\.)*)["“”]'
_NAME = re.compile(rf"\[({'|'.join(FORMS)})\b")
_ARGUMENTS = {
    "SEARCH_LOG": re.compile(rf"\s*:\s*{_QUOTED}\s*\]"),
    "SEARCH_FILE": re.compile(rf"\s*:\s*{_QUOTED}[\s,]+{_QUOTED}\s*\]"),
    "READ_FILE": re.compile(rf"\s*:\s*{_QUOTED}(?:[\s,]*\(\s*([0-9]{{1,9}})\s*[-–]\s*([0-9]{{1,9}})\s*\))?\s*\]"),
    "LIST_ARTIFACTS": re.compile(r"\s*\]"),
    "COMPLETE_EVIDENCE_SEARCH": re.compile(r"\s*\]"),
}


class EvidenceRequest(Struct, frozen=True):
    """One request as written; `arguments` is None if it is malformed."""

    name: str
    written: str
    arguments: tuple[str | None, ...] | None


def parse_requests(text: str) -> list[EvidenceRequest]:
    found = []
    at = 0
    while match := _NAME.search(text, at):
        arguments = _ARGUMENTS[match[1]].match(text, match.end())
        at = arguments.end() if arguments else match.end()
        end = at if arguments else min(_request_end(text, at), match.end() + 200)
        groups = tuple(_unescape_quotes(one) for one in arguments.groups()) if arguments else None
        found.append(EvidenceRequest(match[1], text[match.start() : end], groups))
    return found


def _request_end(text: str, at: int) -> int:
    ends = [end for sign in ("]", "\n") if (end := text.find(sign, at)) >= 0]
    return min(ends) + 1 if ends else len(text)


def _unescape_quotes(value: str | None) -> str | None:
    """Unescape quotes only: `\\d` belongs to the pattern."""
    return None if value is None else re.sub(r'\\(["“”])', r"\1", value)


# --- the same as functions ---


def _value(kind: str, description: str) -> dict[str, str]:
    return {"type": kind, "description": description}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


_PATTERN = _value("string", f"Regular expression, at most {SEARCH_PATTERN_MAX_LENGTH} characters.")
_PATH = _value("string", "Path of a file, relative to the workspace.")
_CONTEXT = _value("integer", f"Lines shown before and after each match. Default {SEARCH_CONTEXT_LINES}.")
_FIRST, _LAST = _value("integer", "First line, counted from 1."), _value("integer", "Last line, inclusive.")

FUNCTIONS = (
    Function(
        "search_log",
        "Search the session log for a regular expression. Returns matching lines with their numbers and context.",
        _object({"pattern": _PATTERN, "context_lines": _CONTEXT}, "pattern"),
    ),
    Function(
        "search_file",
        "Search one file of the workspace for a regular expression.",
        _object({"file_path": _PATH, "pattern": _PATTERN}, "file_path", "pattern"),
    ),
    Function(
        "read_file",
        "Read a file of the workspace, or some of its lines.",
        _object({"file_path": _PATH, "start_line": _FIRST, "end_line": _LAST}, "file_path"),
    ),
    Function("list_artifacts", "List the files the session touched.", _object({})),
    Function("complete_evidence_search", "Say that enough evidence has been gathered. Ends the search.", _object({})),
)


def evidence_tools() -> tuple[Function, ...]:
    """Return the tools as functions for models that call tools: `[one.openai() for one in evidence_tools()]`."""
    return FUNCTIONS


def call_evidence_tool(tools: EvidenceSearchTools, name: str, arguments: Mapping[str, Any] | str) -> str:
    """Run one tool call of a model. The answer is text, whatever it passes."""
    function = next((one for one in FUNCTIONS if one.name == name), None)
    if function is None:
        return f"there is no tool {name!a:.100}; there are: {', '.join(one.name for one in FUNCTIONS)}."
    values = given_arguments(function, arguments)
    return values if isinstance(values, str) else _CALLS[name](tools, values)


def _call_read_file(tools: EvidenceSearchTools, values: dict[str, Any]) -> str:
    first, last = values.get("start_line"), values.get("end_line")
    if first is None and last is None:
        return tools.read_file(values["file_path"])
    return tools.read_file(values["file_path"], (first or 1, last if last is not None else 1 << 30))


def _call_complete(tools: EvidenceSearchTools, values: dict[str, Any]) -> str:
    tools.is_complete = True
    return "The search is complete."


_CALLS: dict[str, Callable[[EvidenceSearchTools, dict[str, Any]], str]] = {
    "search_log": lambda tools, values: tools.search_log(**values),
    "search_file": lambda tools, values: tools.search_file(**values),
    "read_file": _call_read_file,
    "list_artifacts": lambda tools, values: tools.list_artifacts(),
    "complete_evidence_search": _call_complete,
}
