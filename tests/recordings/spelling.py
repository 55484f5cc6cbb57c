"""A neutral tool call in the words of each program: its tool's name and arguments.

A program may have more than one tool for a thing; the first that it offers in the request is used. `None` means that it
offers none, and the call is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.recordings.steps import Tool

Spell = Callable[[Tool, Sequence[str], Path], tuple[str, Any] | None]
_Table = dict[str, list[tuple[str, Callable[[dict[str, Any], Path], Any]]]]


def _speller(table: _Table) -> Spell:
    def spell(tool: Tool, offered: Sequence[str], work: Path) -> tuple[str, Any] | None:
        for name, arguments in table.get(tool.kind, []):
            if name in offered:
                return name, arguments(tool.arguments, work)
        return None

    return spell


def _patch(*lines: str) -> str:
    return "\n".join(["apply_patch <<'EOF'", "*** Begin Patch", *lines, "*** End Patch", "EOF"])


def _patch_to_add(given: dict[str, Any], work: Path) -> dict[str, Any]:
    return {"cmd": _patch(f"*** Add File: {given['path']}", *(f"+{line}" for line in given["content"].splitlines()))}


def _patch_to_edit(given: dict[str, Any], work: Path) -> dict[str, Any]:
    old = [f"-{line}" for line in given["old"].splitlines()]
    new = [f"+{line}" for line in given["new"].splitlines()]
    return {"cmd": _patch(f"*** Update File: {given['path']}", "@@", *old, *new)}


_OPENCODE: _Table = {
    "shell": [("bash", lambda given, work: {"command": given["command"], "description": "Runs what was asked for"})],
    "write": [("write", lambda given, work: {"filePath": str(work / given["path"]), "content": given["content"]})],
    "edit": [
        (
            "edit",
            lambda given, work: {
                "filePath": str(work / given["path"]),
                "oldString": given["old"],
                "newString": given["new"],
            },
        )
    ],
    "read": [("read", lambda given, work: {"filePath": str(work / given["path"])})],
    "todo": [
        (
            "todowrite",
            lambda given, work: {
                "todos": [
                    {"content": text, "status": state, "priority": "medium", "id": str(number)}
                    for number, (text, state) in enumerate(given["items"], 1)
                ]
            },
        )
    ],
}

_CLAUDE: _Table = {
    "shell": [("Bash", lambda given, work: {"command": given["command"], "description": "Run what was asked for"})],
    "write": [("Write", lambda given, work: {"file_path": str(work / given["path"]), "content": given["content"]})],
    "edit": [
        (
            "Edit",
            lambda given, work: {
                "file_path": str(work / given["path"]),
                "old_string": given["old"],
                "new_string": given["new"],
            },
        )
    ],
    "read": [("Read", lambda given, work: {"file_path": str(work / given["path"])})],
    "todo": [
        (
            "TodoWrite",
            lambda given, work: {
                "todos": [{"content": text, "status": state, "activeForm": text} for text, state in given["items"]]
            },
        )
    ],
}

_CODEX: _Table = {
    "shell": [("exec_command", lambda given, work: {"cmd": given["command"]})],
    "write": [("exec_command", _patch_to_add)],
    "edit": [("exec_command", _patch_to_edit)],
    "read": [("exec_command", lambda given, work: {"cmd": f"cat {given['path']}"})],
    "todo": [
        (
            "update_plan",
            lambda given, work: {"plan": [{"step": text, "status": state} for text, state in given["items"]]},
        )
    ],
}

_ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "It was asked for."}
_CODEX_ASKING: _Table = _CODEX | {
    "shell": [("exec_command", lambda given, work: {"cmd": given["command"], **_ESCALATED})],
}

_GEMINI: _Table = {
    "shell": [
        (
            "run_shell_command",
            lambda given, work: {"command": given["command"], "description": "Run what was asked for"},
        )
    ],
    "write": [
        ("write_file", lambda given, work: {"file_path": str(work / given["path"]), "content": given["content"]})
    ],
    "edit": [
        (
            "replace",
            lambda given, work: {
                "file_path": str(work / given["path"]),
                "instruction": "Change it as asked for",
                "old_string": given["old"],
                "new_string": given["new"],
            },
        )
    ],
    "read": [("read_file", lambda given, work: {"file_path": str(work / given["path"])})],
    "todo": [
        (
            "write_todos",
            lambda given, work: {"todos": [{"description": text, "status": state} for text, state in given["items"]]},
        )
    ],
}

SPELLINGS: dict[str, Spell] = {
    "opencode": _speller(_OPENCODE),
    "claude": _speller(_CLAUDE),
    "codex": _speller(_CODEX),
    "codex-asking": _speller(_CODEX_ASKING),
    "gemini": _speller(_GEMINI),
}
