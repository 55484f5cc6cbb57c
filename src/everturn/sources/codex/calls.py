"""Tool calls, their outputs, and speakers.

A call has a neutral kind, path and command; an output, written in half a dozen forms, has an exit status, duration and
error class. An item with role `user` holds the human's text or the client's; the beginning of the text tells them apart.
"""

from __future__ import annotations

import re
from shlex import join
from typing import Any

from everturn.model.conversation import Block, CallEnd, CallStart
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.values import MessageSpeaker, count, decode_value, exit_code, strings, tool_kind, word
from everturn.text.diffs import patched_files
from everturn.text.lazy_pattern import lazy_pattern

#: Tool names with another meaning than elsewhere, or of this client only.
_KINDS = {
    "shell": ("exec", "write_stdin", "unified_exec", "js_repl", "kill_session"),
    "task": (
        *("spawn_agent", "wait_agent", "wait", "send_input", "close_agent", "resume_agent", "send_message"),
        *("followup_task", "interrupt_agent", "list_agents", "spawn_agents_on_csv"),
    ),
    "plan": ("create_goal", "update_goal", "get_goal", "proposed_plan"),
    "ask": ("request_user_input", "request_permissions"),
    "search": ("tool_search", "list_mcp_resources", "list_mcp_resource_templates", "grep_files"),
    "fetch": ("read_mcp_resource",),
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}
_PATHS = ("path", "file_path", "dir_path", "filename")
_SHELLS = lazy_pattern(r"(?:.*[/\\])?(?:ba|z|da|k|fi)?sh|(?:.*[/\\])?(?:cmd|powershell|pwsh)(?:\.exe)?", re.IGNORECASE)
_SCRIPT = lazy_pattern(r"-[a-z]*c|/c|-Command", re.IGNORECASE)

_REPORT = lazy_pattern(
    r"(?:Chunk ID: \S{1,40}\n)?(?:Exit code: (?P<code>-?\d{1,9})\n)?Wall time: (?P<wall>[\d.]{1,20}) seconds?\n"
    r"(?:Process exited with code (?P<exited>-?\d{1,9})\n)?"
)
_SANDBOX = lazy_pattern(r"failed in sandbox .{1,80}?exit code: (-?\d{1,9})", re.DOTALL)

#: Error classes by the beginning of an output of a call that failed.
_FAILURES = tuple(
    (name, lazy_pattern(pattern))
    for name, pattern in (
        ("rejected", r"(?i)(?:exec command|exec_command|patch|command|tool call)? ?(?:was )?rejected\b|user rejected"),
        ("interrupted", r"aborted\b"),
        ("unknown_tool", r"unsupported (?:custom tool )?call|unknown tool"),
        ("invalid_input", r"failed to parse function arguments|(?:error: |apply_patch verification failed: )?invalid "),
        (
            "not_found",
            r"(?:error|apply_patch verification failed): Failed to (?:find|read)|execution error: No such file",
        ),
        ("timeout", r"(?:command|execution error: command|error: command) timed out"),
        ("permission", r"failed in sandbox|execution error: .{0,200}sandbox|.{0,40}sandbox denied"),
        ("other", r"(?:error|execution error|apply_patch verification failed|(?:exec_command|write_stdin) failed)\b"),
        ("other", r"(?:exec_command|write_stdin|tool call|collab \w+) (?:error|failed)"),
    )
)
_TIMED_OUT = lazy_pattern(r"command timed out after \d")
_FAILURE_HEAD = 300
_TIMEOUT_STATUS = 124


def call_start(kind: str, item: Rec) -> CallStart:
    name, given = word(item.get("name")), item.get("arguments")
    if kind == "custom_tool_call":
        given = item.get("input")
    elif kind == "local_shell_call":
        name, given = "local_shell", item.get("action")
    elif kind == "tool_search_call":
        name = "tool_search"
    if isinstance(given, str) and given[:1] == "{":
        value = decode_value(given.encode("utf-8", "replace"))
        given = value if isinstance(value, dict) else given
    return _start(word(item.get("call_id")) or word(item.get("id")), _full_name(name, item), given)


def patch_of_script(item: Rec) -> tuple[CallStart, CallEnd]:
    """Return the call of a script that applied a patch, as if the model had made it, and how it ended."""
    call_id = word(item.get("call_id"))
    changes = mapping(item.get("changes")).items()
    lines = [line for path, change in changes for line in _patch_lines(word(path), mapping(change))]
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    failed = item.get("success") is False
    return _start(call_id, "apply_patch", text), CallEnd(call_id, failed, "other" if failed else "")


def _patch_lines(path: str, change: Rec) -> list[str]:
    """Return one file of a patch in the form that the model writes."""
    kind, diff, whole = word(change.get("type")), change.get("unified_diff"), change.get("content")
    if kind == "delete":
        return [f"*** Delete File: {path}"]
    if kind == "add":
        texts = whole.splitlines() if isinstance(whole, str) else _added_lines(word(diff))
        return [f"*** Add File: {path}", *(f"+{line}" for line in texts)]
    moved = word(change.get("move_path"))
    return [f"*** Update File: {path}", *([f"*** Move to: {moved}"] if moved else []), *word(diff).splitlines()]


def _added_lines(diff: str) -> list[str]:
    return [line[1:] for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++ ")]


def provider_call(kind: str, item: Rec, call_id: str) -> CallStart:
    """Return a call that the provider itself made and answered: a web search, an image."""
    action = mapping(item.get("action"))
    if kind == "image_generation_call":
        return CallStart(call_id, "image_generation", "other", input={"prompt": word(item.get("revised_prompt"))})
    opens = action.get("type") in ("open_page", "find_in_page")
    return CallStart(call_id, "web_search", "fetch" if opens else "search", input=action)


def read_output(item: Rec) -> tuple[str, CallEnd]:
    """Return the text of an output, and how the call ended."""
    given, call_id = item.get("output", item.get("tools")), word(item.get("call_id"))
    if not isinstance(given, str):
        return _structured_output(given, call_id)
    is_wrapped = given.startswith(('{"output":', '{"metadata":'))
    wrapped = decode_value(given.encode("utf-8", "replace")) if is_wrapped else None
    if isinstance(wrapped, dict) and isinstance(wrapped.get("output"), str):
        noted = mapping(wrapped.get("metadata"))
        seconds = noted.get("duration_seconds")
        return wrapped["output"], _end(call_id, wrapped["output"], noted.get("exit_code"), seconds)
    if (report := _REPORT.match(given)) is None:
        return given, _unreported_end(call_id, given)
    code = report["code"] or report["exited"]
    return given, _end(call_id, given, int(code) if code else None, _parse_seconds(report["wall"]))


def _start(call_id: str, name: str, given: Any) -> CallStart:
    arguments = mapping(given)
    kind = _KIND_OF.get(name) or tool_kind(name, arguments)
    command = _command(arguments) if kind == "shell" else ""
    patch = patched_files(command or (given if isinstance(given, str) else word(arguments.get("input"))))
    if patch:
        # Of several files the first one; the others are in the text of the patch.
        return CallStart(call_id, name, *patch[0], command, given)
    path = next((word(arguments[key]) for key in _PATHS if isinstance(arguments.get(key), str)), "")
    return CallStart(call_id, name, kind, path, command, given, _prompt(name, arguments))


def _full_name(name: str, item: Rec) -> str:
    return f"{namespace}.{name}" if (namespace := word(item.get("namespace"))) else name


def _prompt(name: str, arguments: Rec) -> str:
    """Return the task of a new agent; "" for any other call."""
    if name.rpartition(".")[2] != "spawn_agent":
        return ""
    return word(arguments.get("message")) or "\n".join(strings(arguments.get("items"), "type"))


def _command(arguments: Rec) -> str:
    given = arguments.get("command", arguments.get("cmd", arguments.get("chars")))
    if isinstance(given, str):
        return word(given)
    words = [word(one) for one in listing(given)]
    if len(words) > 2 and _SHELLS.fullmatch(words[0]) and _SCRIPT.fullmatch(words[1]):
        return words[2]
    return words[1] if len(words) == 2 and words[0] == "apply_patch" else join(words)


def _structured_output(given: Any, call_id: str) -> tuple[str, CallEnd]:
    """Read an output of blocks, or an object of any shape."""
    if isinstance(given, list):
        texts = [
            "[image]" if mapping(one).get("type") == "input_image" else "\n".join(strings(one, "type")) for one in given
        ]
        text = "\n".join(filter(None, texts))
        report = _REPORT.match(text)
        return text, _end(call_id, text, None, _parse_seconds(report["wall"]) if report else None)
    text = "\n".join(strings(given))
    failed = mapping(given).get("success") is False
    return text, CallEnd(call_id, failed, "other" if failed else "")


def _end(call_id: str, text: str, code: Any, seconds: Any) -> CallEnd:
    status = exit_code(code)
    lasted = count(seconds * 1000) if isinstance(seconds, (int, float)) else None
    if not status:
        return CallEnd(call_id, exit_status=status, duration_ms=lasted)
    timed_out = status == _TIMEOUT_STATUS or _TIMED_OUT.search(text[:_FAILURE_HEAD])
    return CallEnd(call_id, True, "timeout" if timed_out else _failure(text) or "exit_status", status, lasted)


def _unreported_end(call_id: str, text: str) -> CallEnd:
    """Return the end of a call whose output has no report: it failed early, or its tool writes none."""
    failure = _failure(text)
    sandbox = _SANDBOX.match(text)
    return CallEnd(call_id, bool(failure), failure, int(sandbox[1]) if sandbox else None)


def _failure(text: str) -> str:
    head = text[:_FAILURE_HEAD]
    return next((name for name, pattern in _FAILURES if pattern.match(head)), "")


def _parse_seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


PROMPT = MessageSpeaker("human", "text", True, "prompt")
SHELL = MessageSpeaker("human", "shell", True, "prompt")
CONTEXT = MessageSpeaker("injected", "context", False, "meta")
NOTIFICATION = MessageSpeaker("agent", "notification", False, "meta")

#: Beginnings of the client's texts. A human may begin with `<` or `#` too, so the list is exact.
_INJECTED = (
    "# AGENTS.md instructions", "<INSTRUCTIONS>", "<app-context>", "<apps_instructions>", "<child_agents_instructions>",
    "<codex_internal_context", "<collaboration_mode>", "<environment_context>", "<environments>", "<goal_context>",
    "<hook_prompt", "<image>", "<image name=", "</image>", "<js_repl_instructions>", "<model_switch>",
    "<permissions instructions>", "<personality_spec>", "<plugins>", "<plugins_instructions>",
    "<realtime_conversation>", "<recommended_plugins>", "<skill>", "<skills_instructions>", "<skills_section>",
    "<subagents>", "<turn_aborted>", "<user_action>", "<user_instructions>", "Warning: apply_patch was requested via ",
    "Warning: The maximum number of unified exec processes",
)  # fmt: skip
_MARKS = frozenset("#<W")
_SPEAKER_HEAD = 200

#: The heading that ends the text an editor inserts before a prompt.
_REQUEST = lazy_pattern(r"\n## My request for Codex:[ \t]*\n?")
_SHELL = lazy_pattern(
    r"\s*<user_shell_command>\s*<command>\n?(.*?)\n?</command>\s*(.*?)\s*</user_shell_command>\s*", re.DOTALL
)
_FOLDER = lazy_pattern(r"<cwd>([^<\n]{1,4096})</cwd>|Current working directory: (.{1,4096})")


def guess_speaker(text: str) -> MessageSpeaker:
    head = text[:_SPEAKER_HEAD].lstrip()
    if head[:1] not in _MARKS:
        return PROMPT
    if head.startswith(_INJECTED):
        return CONTEXT
    if head.startswith("<subagent_notification>"):
        return NOTIFICATION
    return SHELL if head.startswith("<user_shell_command>") else PROMPT


def prompt_blocks(text: str, speaker: MessageSpeaker) -> tuple[Block, ...]:
    """Return the blocks of a text; an editor's text before a prompt and a command's output are blocks of their own."""
    if speaker is SHELL and (shell := _SHELL.fullmatch(text)):
        return _nonempty_blocks((shell[1], "prompt"), (shell[2], "tool_output"))
    if speaker is PROMPT and text.startswith("# ") and (request := _REQUEST.search(text)):
        return _nonempty_blocks((text[: request.end()].rstrip(), "meta"), (text[request.end() :], "prompt"))
    return _nonempty_blocks((text, speaker.field))


def folder_in(text: str) -> str:
    """Return the working folder in a description of the environment; "" for any other text."""
    if not text[:_SPEAKER_HEAD].lstrip().startswith("<environment_context>"):
        return ""
    return (found[1] or found[2]).strip() if (found := _FOLDER.search(text[:8192])) else ""


def _nonempty_blocks(*texts: tuple[str, str]) -> tuple[Block, ...]:
    return tuple(Block("text", text, field) for text, field in texts if text)
