"""Tool calls and their results: the neutral kind, path and command of a call; error class, exit status, time and file of
a result."""

from __future__ import annotations

import re
from typing import Any

from everturn.model.conversation import CallEnd, CallStart
from everturn.sources.claude_code.events import NOTHING, ClaudeToolResult, count, word
from everturn.sources.foreign import strings

_KINDS = {
    "read": ("Read", "NotebookRead", "LS"),
    "edit": ("Edit", "MultiEdit", "NotebookEdit"),
    "create": ("Write",),
    "shell": ("Bash", "PowerShell", "BashOutput", "KillShell", "KillBash"),
    "search": ("Grep", "Glob", "ToolSearch", "WebSearch", "LSP", "ListMcpResourcesTool"),
    "fetch": ("WebFetch", "ReadMcpResourceTool"),
    "task": ("Task", "Agent", "TaskOutput", "TaskStop", "AgentOutputTool"),
    "plan": ("TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "ExitPlanMode", "EnterPlanMode"),
    "ask": ("AskUserQuestion",),
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}
_PATHS = ("file_path", "notebook_path", "path")

#: How the text of a failed call begins, or what is in its beginning; the first that fits decides.
_ERRORS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("rejected", r"The user doesn't want to (?:proceed|take this action)|User rejected tool use"),
        ("interrupted", r"\[Request interrupted by user"),
        ("cancelled", r"Sibling tool call errored|Cancelled: parallel tool call"),
        ("timeout", r"(?s)Exit code (?:124|143)\n.{0,40}Command timed out|\ACommand timed out"),
        ("exit_status", r"\A(?:Error: )?Exit code \d"),
        ("invalid_input", r"InputValidationError|Input validation error|matches of the string to replace"),
        ("unknown_tool", r"No such tool available|Unknown tool|Unknown skill"),
        ("stale", r"File has not been read yet|File has been (?:unexpectedly )?modified since"),
        ("too_large", r"exceeds (?:the )?maximum|too large|maximum allowed"),
        ("not_found", r"(?:File|Path|Directory) does not exist|String to replace not found|ENOENT|No such file"),
        ("hook", r"(?i)hook (?:error|blocked|denied|feedback)|blocked by (?:a )?hook"),
        ("permission", r"(?i)permission|access denied|\bEACCES|\bEPERM"),
        ("timeout", r"(?i)timed out|timeout"),
    )
)
_RESULT_HEAD = 400
_EXIT = re.compile(r"\s*(?:Error: )?Exit code (-?\d{1,9})\b")
_ACTIONS = {"create": "created", "update": "edited"}


def call_start(block: dict[str, Any]) -> CallStart:
    """The call in a tool_use block."""
    name, given = word(block.get("name")), block.get("input")
    kind = _KIND_OF.get(name) or ("recall" if "conversation_recall" in name else "other")
    arguments = given if isinstance(given, dict) else {}
    return CallStart(
        word(block.get("id")),
        name,
        kind,
        next((word(arguments[key]) for key in _PATHS if isinstance(arguments.get(key), str)), ""),
        word(arguments.get("command")) if kind == "shell" else "",
        given,
        word(arguments.get("prompt")) if kind == "task" else "",
    )


def call_text(start: CallStart) -> str:
    """What is indexed and shown of a call: its name and every string it was given."""
    return "\n".join([start.name, *strings(start.input)])


def call_end(block: dict[str, Any], text: str, outcome: Any, session: str) -> CallEnd:
    """The result in a tool_result block. `outcome` is what the client noted beside it."""
    failed = block.get("is_error") is True
    noted = outcome if isinstance(outcome, ClaudeToolResult) else _NO_OUTCOME
    action, path = _find_artifact(noted)
    return CallEnd(
        word(block.get("tool_use_id")),
        failed,
        error_class(text) if failed else "",
        _exit_status(text, noted, failed),
        _duration(noted),
        action,
        path,
        f"{session}/agent-{word(noted.agent_id)}" if noted.agent_id else "",
    )


def result_text(content: Any, outcome: Any) -> str:
    """The words of a result: its own, and answers of the human that only the client's note has."""
    text = content if isinstance(content, str) else "\n".join(_part_texts(content))
    if isinstance(outcome, ClaudeToolResult) and outcome.answers:
        missing = [answer for answer in strings(outcome.answers) if answer not in text]
        text = "\n".join([text, *missing]) if missing else text
    return text


def error_class(text: str) -> str:
    """Why a call failed."""
    head = text[:_RESULT_HEAD]
    return next((name for name, pattern in _ERRORS if pattern.search(head)), "other")


def _part_texts(content: Any) -> list[str]:
    parts = content if isinstance(content, list) else [content]
    found: list[str] = []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else ""
        if kind in ("image", "document"):
            found.append(f"[{kind}]")
        else:
            found += strings(part, "type")
    return found


def _exit_status(text: str, noted: ClaudeToolResult, failed: bool) -> int | None:
    if failed and (found := _EXIT.match(text)):
        return int(found[1])
    return noted.exit_code if noted.exit_code is not None and abs(noted.exit_code) < 1 << 31 else None


def _duration(noted: ClaudeToolResult) -> int | None:
    for value, factor in ((noted.duration_ms, 1), (noted.total_duration_ms, 1), (noted.duration_seconds, 1000)):
        if value is not None:
            return count(value * factor)
    return None


def _find_artifact(noted: ClaudeToolResult) -> tuple[str, str]:
    if noted.file is not None:
        return "", word(noted.file.file_path)
    path = word(noted.file_path or noted.notebook_path)
    if not path:
        return "", ""
    edited = noted.structured_patch is not NOTHING or bool(noted.notebook_path)
    return _ACTIONS.get(noted.type or "", "edited" if edited else ""), path


_NO_OUTCOME = ClaudeToolResult()
