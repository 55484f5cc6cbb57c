"""Tool calls, which hold their results: the neutral kind, path and command; error class, exit status, time and file."""

from __future__ import annotations

import re
from typing import Any

from everturn.model.conversation import Block, CallEnd, CallStart
from everturn.sources.foreign import milliseconds, strings, word
from everturn.sources.wholefile import entries, record

_KINDS = {
    "read": ("read_file", "read_many_files", "list_directory", "read_mcp_resource"),
    "edit": ("replace", "edit"),
    "create": ("write_file",),
    "shell": ("run_shell_command",),
    "search": ("glob", "grep_search", "search_file_content", "grep_search_ripgrep", "google_web_search"),
    "fetch": ("web_fetch",),
    "task": ("delegate_to_agent", "invoke_agent", "codebase_investigator", "generalist", "cli_help", "browser_agent"),
    "plan": ("write_todos", "enter_plan_mode", "exit_plan_mode", "update_topic"),
    "ask": ("ask_user",),
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}
_PATHS = ("file_path", "absolute_path", "path", "dir_path")
_PROMPTS = ("prompt", "objective", "query", "request", "task", "question")
_DONE = frozenset(("success", "error", "cancelled"))

#: What is in the beginning of what a failed call says; the first that fits decides.
_ERRORS = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("rejected", r"user (?:denied|rejected|did not allow)|denied by (?:policy|the user)"),
        ("timeout", r"timed out|timeout|exceeded the time"),
        ("interrupted", r"operation cancelled|cancelled by user|was cancelled"),
        ("unknown_tool", r"tool \S+ not found|not found in registry|unknown tool"),
        ("invalid_input", r"params must|must have required property|invalid (?:parameter|argument)|failed to edit|0 occurrences|expected \d+ occurrence"),
        ("not_found", r"file not found|not found|does not exist|no such file|ENOENT"),
        ("permission", r"permission|EACCES|EPERM|not (?:within|in) (?:the )?(?:allowed )?workspace"),
        ("too_large", r"too large|exceeds (?:the )?max"),
        ("hook", r"\bhook\b"),
    )
)  # fmt: skip
_HEAD = 400
_END = 2000
_EXIT = re.compile(r"^Exit Code: (\d{1,9})$", re.MULTILINE)
_TOUCHED = re.compile(r"(Successfully created and wrote to new file|Created new file|Successfully overwrote file|Successfully modified file): (\S[^\n]{0,4000}?)(?: \(\d+ replacements?\)| with provided content|[.] Here is|[.]?\n|[.]?$)")  # fmt: skip


def call_blocks(calls: Any, asked_at: int | None) -> list[Block]:
    """Each call, followed by its result where it has one."""
    found: list[Block] = []
    for number, call in enumerate(entries(calls)):
        if not isinstance(call, dict):
            found.append(Block("unknown", "\n".join(strings(call)), "meta", data=call))
            continue
        start = _start(call, number)
        found.append(Block("call", "\n".join([start.name, *strings(start.input)]), "tool_input", call=start, data=call))
        if is_done(call):
            text = result_text(call)
            end = _end(call, start, text, asked_at)
            found.append(Block("result", text, "tool_output", result=end))
    return found


def is_done(call: dict[str, Any]) -> bool:
    """Whether a call has its result."""
    return bool(call.get("result")) or word(call.get("status")) in _DONE


def result_text(call: dict[str, Any]) -> str:
    """The words of a result: what the model was told, else what was shown."""
    result = call.get("result")
    if isinstance(result, str):
        return result
    texts: list[str] = []
    for part in entries(result):
        one = record(part)
        if "inlineData" in one or "fileData" in one:
            texts.append("[image]")
        else:
            texts += strings(record(one.get("functionResponse")).get("response") if "functionResponse" in one else part)
    if not texts:
        shown = call.get("resultDisplay")
        texts = strings(shown, "originalContent", "newContent", "diffStat")
    return "\n".join(texts)


def _start(call: dict[str, Any], number: int) -> CallStart:
    name, given = word(call.get("name")), call.get("args")
    kind = _KIND_OF.get(name) or ("task" if word(call.get("agentId")) else "other")
    if "conversation_recall" in name:
        kind = "recall"
    arguments = record(given)
    return CallStart(
        word(call.get("id")) or f"{name}#{number}",
        name,
        kind,
        next((word(arguments[key]) for key in _PATHS if isinstance(arguments.get(key), str)), ""),
        word(arguments.get("command")) if kind == "shell" else "",
        given,
        next((word(arguments[key]) for key in _PROMPTS if isinstance(arguments.get(key), str)), "")
        if kind == "task"
        else "",
    )


def _end(call: dict[str, Any], start: CallStart, text: str, asked_at: int | None) -> CallEnd:
    exit_status = _exit_status(text) if start.kind == "shell" else None
    failed = word(call.get("status")) in ("error", "cancelled")
    action, path = _find_artifact(text) if start.kind in ("edit", "create") and not failed else ("", "")
    done_at, _ = milliseconds(call.get("timestamp"))
    took = done_at - asked_at if done_at is not None and asked_at is not None else 0
    return CallEnd(
        start.call_id,
        failed or bool(exit_status),
        _error_class(call, text) if failed else "exit_status" if exit_status else "",
        exit_status,
        took if took > 0 else None,
        action,
        path,
        word(call.get("agentId")),
    )


def _error_class(call: dict[str, Any], text: str) -> str:
    head = text[:_HEAD]
    found = next((name for name, pattern in _ERRORS if pattern.search(head)), "")
    return found or ("interrupted" if call.get("status") == "cancelled" else "other")


def _exit_status(text: str) -> int | None:
    found = _EXIT.findall(text, max(len(text) - _END, 0))
    return int(found[-1]) if found else None


def _find_artifact(text: str) -> tuple[str, str]:
    found = _TOUCHED.match(text[:5000])
    if found is None:
        return "", ""
    created = "created" in found[1].lower()
    return "created" if created else "edited", word(found[2])
