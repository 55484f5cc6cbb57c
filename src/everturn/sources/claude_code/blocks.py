"""Content blocks, tool calls and speakers of a transcript.

- Blocks: the text of each for display and index, with the block itself kept as found.
- Calls: the neutral kind, path and command of a call; error class, exit status, duration and file of a result. Tool names
  and error texts are matched exactly as the client writes them, unlike in `toolkit.values`, which guesses for any agent:
  an MCP tool named `search` is not the client's own.
- Speakers: the API knows two roles, a transcript many speakers. What a human typed, what the client inserted, what a
  command printed and what another agent wrote are all `user` records; a few marks and the beginning of the text tell them
  apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from everturn.model.conversation import Block, CallEnd, CallStart
from everturn.sources.claude_code.records import NOTHING, ClaudeRecord, ClaudeToolResult
from everturn.sources.toolkit.values import (
    CALLS,
    MessageSpeaker,
    build_call,
    call_text,
    count,
    exit_code,
    is_result,
    match_error,
    result_texts,
    strings,
    unknown_block,
    word,
)

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

#: Error classes by a pattern in the first characters of the result; the first match decides.
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
_EXIT = re.compile(r"\s*(?:Error: )?Exit code (-?\d{1,9})\b")
_ACTIONS = {"create": "created", "update": "edited"}


def call_start(block: dict[str, Any], message: str = "") -> CallStart:
    """Return the call in a tool_use block of the message with this id."""
    name, given = word(block.get("name")), block.get("input")
    kind = _KIND_OF.get(name) or ("recall" if "conversation_recall" in name else "other")
    return build_call(word(block.get("id")), name, kind, given, _PATHS, asked_in=message)


def call_end(block: dict[str, Any], text: str, note: Any, session: str, message: str = "") -> CallEnd:
    """Return the result in a tool_result block. `note` is the client's own record of it, `message` made the call."""
    noted = note if isinstance(note, ClaudeToolResult) else _NO_NOTE
    failed = block.get("is_error") is True or noted.interrupted is True
    action, path = _find_artifact(noted)
    return CallEnd(
        word(block.get("tool_use_id")),
        failed,
        "interrupted" if noted.interrupted is True else error_class(text) if failed else "",
        _exit_status(text, noted, failed),
        _duration(noted),
        action,
        path,
        f"{session}/agent-{word(noted.agent_id)}" if noted.agent_id else "",
        reported_tokens=count(noted.total_tokens) or 0,
        reported_calls=count(noted.total_tool_use_count) or 0,
        asked_in=message,
    )


def result_text(content: Any, note: Any) -> str:
    """Return the text of a result, with answers of the human that only the client's note has."""
    text = content if isinstance(content, str) else "\n".join(result_texts(content))
    if isinstance(note, ClaudeToolResult) and note.answers:
        missing = [answer for answer in strings(note.answers) if answer not in text]
        text = "\n".join([text, *missing]) if missing else text
    return text


def error_class(text: str) -> str:
    """Return why a call failed."""
    return match_error(text, _ERRORS)


def _exit_status(text: str, noted: ClaudeToolResult, failed: bool) -> int | None:
    if failed and (found := _EXIT.match(text)):
        return int(found[1])
    return exit_code(noted.exit_code)


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


_NO_NOTE = ClaudeToolResult()


PROMPT = MessageSpeaker("human", "text", True, "prompt")
COMMAND = MessageSpeaker("human", "command", True, "prompt")
SHELL = MessageSpeaker("human", "shell", True, "prompt")
QUEUED = MessageSpeaker("human", "queued", False, "prompt")
SHELL_OUTPUT = MessageSpeaker("tool", "output", False, "tool_output")
COMMAND_OUTPUT = MessageSpeaker("system", "output", False, "tool_output")
INTERRUPT = MessageSpeaker("system", "interrupt", False, "meta")
SUMMARY = MessageSpeaker("injected", "summary", False, "summary")
CONTEXT = MessageSpeaker("injected", "context", False, "meta")
NOTIFICATION = MessageSpeaker("agent", "notification", False, "meta")
TEAMMATE = MessageSpeaker("agent", "notification", False, "meta")
EVENT = MessageSpeaker("injected", "notification", False, "meta")
NOTICE = MessageSpeaker("system", "notice", False, "meta")
UNKNOWN = MessageSpeaker("system", "unknown", False, "meta")

_BEGINNINGS: tuple[tuple[str, MessageSpeaker], ...] = (
    ("<command-name>", COMMAND),
    ("<command-message>", COMMAND),
    ("<command-args>", COMMAND),
    ("<local-command-stdout>", COMMAND_OUTPUT),
    ("<local-command-stderr>", COMMAND_OUTPUT),
    ("<local-command-caveat>", CONTEXT),
    ("Caveat: The messages below were generated by the user while running local commands", CONTEXT),
    ("<bash-input>", SHELL),
    ("<bash-stdout>", SHELL_OUTPUT),
    ("<bash-stderr>", SHELL_OUTPUT),
    ("[Request interrupted by user", INTERRUPT),
    ("<task-notification>", NOTIFICATION),
    ('{"task_id":', NOTIFICATION),
    ("<teammate-message", TEAMMATE),
    ("<ci-monitor-event>", EVENT),
    ("<user-prompt-submit-hook>", CONTEXT),
    ("This session is being continued from a previous conversation that ran out of context", SUMMARY),
)
_MARKS = frozenset(beginning[0] for beginning, _ in _BEGINNINGS)
_SPEAKER_HEAD = 200

#: Text that programs insert before a prompt. What follows is the human's.
_WRAPPED = re.compile(r"(?:\s*<(ide_\w+|system-reminder|system_instruction)>.*?</\1>\s*)+", re.DOTALL)
_WRAPPERS = ("<ide_", "<system-reminder>", "<system_instruction>")


def guess_speaker(text: str) -> MessageSpeaker:
    """Guess the speaker by how a text begins."""
    head = text[:_SPEAKER_HEAD].lstrip()
    if head[:1] not in _MARKS:
        return PROMPT
    for beginning, speaker in _BEGINNINGS:
        if head.startswith(beginning):
            return speaker
    return CONTEXT if head.startswith(_WRAPPERS) and not unwrap(text)[1] else PROMPT


def unwrap(text: str) -> tuple[str, str]:
    """Split a text into what a program inserted before a prompt, and the prompt."""
    if not text[:_SPEAKER_HEAD].lstrip().startswith(_WRAPPERS):
        return "", text
    found = _WRAPPED.match(text)
    if found is None:
        return text, ""  # an opening tag that is never closed
    return text[: found.end()].rstrip(), text[found.end() :]


def is_helper(record: ClaudeRecord) -> bool:
    """Return whether a record is of an agent that works for another one."""
    return bool(record.is_sidechain) or bool(record.agent_name and record.team_name)


def find_speaker(record: ClaudeRecord, texts: list[str], helper: bool) -> MessageSpeaker:
    """Return the speaker of a `user` record with these texts."""
    if record.is_compact_summary:
        return SUMMARY
    kind = origin_kind(record.origin)
    if kind == "task-notification" or (kind not in ("", "human") and not helper):
        return NOTIFICATION
    if record.is_meta:
        return CONTEXT
    found = _main_speaker(texts)
    if kind == "human" and found.origin != "human":
        return PROMPT
    if found is PROMPT and record.prompt_source == "system":
        return CONTEXT
    return _helper_speaker(found) if helper and kind != "human" else found


def origin_kind(origin: Any) -> str:
    """Return the kind in an `origin` field, in which newer clients name the speaker."""
    kind = origin.get("kind") if isinstance(origin, dict) else None
    return kind if isinstance(kind, str) else ""


def _main_speaker(texts: list[str]) -> MessageSpeaker:
    """Return the human if any text is a human's, whatever programs put around it."""
    speakers = [guess_speaker(text) for text in texts]
    return next((one for one in speakers if one.origin == "human"), speakers[0] if speakers else PROMPT)


def _helper_speaker(found: MessageSpeaker) -> MessageSpeaker:
    if found is TEAMMATE:
        return PROMPT._replace(origin="agent")
    return found._replace(origin="agent") if found.origin == "human" else found


#: Kinds of blocks without text.
_WORDLESS = {"image": "image", "document": "document", "redacted_thinking": "thinking"}


class ClaudeBlockPlace(Struct, gc=False):
    """The context a block gets from its record."""

    field: str  # the index field of plain text
    mixed: bool = False  # several texts, perhaps of several speakers
    note: Any = None  # the client's note on a result
    session: str = ""  # that subagents belong to
    message: str = ""  # uuid of the message that makes the calls


def text_blocks(text: str, field: str) -> tuple[Block, ...]:
    """Return the blocks of a text; what a program inserted before a prompt is a block of its own."""
    if field == "prompt":
        around, prompt = unwrap(text)
        if around:
            before = Block("text", around, "meta")
            return (before, Block("text", prompt, field)) if prompt else (before,)
    return (Block("text", text, field),) if text else ()


def texts_of(content: list[Any]) -> list[str]:
    """Return the plain texts of a list of blocks."""
    found = []
    for block in content:
        text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else block
        if isinstance(text, str):
            found.append(text)
    return found


def blocks_of(content: list[Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    """Convert a list of provider blocks."""
    found: list[Block] = []
    for block in content:
        if isinstance(block, dict):
            found += _block(block, where)
        elif isinstance(block, str):
            found += text_blocks(block, _field(block, where))
        else:
            found.append(unknown_block(block))
    return tuple(found)


def _block(block: dict[str, Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    kind = word(block.get("type"))
    if kind in CALLS:
        start = call_start(block, where.message)
        return (Block("call", call_text(start), "tool_input", call=start, data=block),)
    if is_result(block):
        text = result_text(block.get("content"), where.note)
        end = call_end(block, text, where.note, where.session, where.message)
        return (Block("result", text, "tool_output", result=end, data=block),)
    made = _WORDS.get(kind)
    return made(block, where) if made else (unknown_block(block),)


def _text(block: dict[str, Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    text = block.get("text")
    if not isinstance(text, str):
        return (unknown_block(block),)
    field = _field(text, where)
    if field == "prompt" and unwrap(text)[0]:
        return text_blocks(text, field)
    return (Block("text", text, field, data=block),)


def _thinking(block: dict[str, Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    text = block.get("thinking")
    return (Block("thinking", text if isinstance(text, str) else "", "thinking", data=block),)


def _wordless_block(block: dict[str, Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    return (Block(_WORDLESS[block["type"]], data=block),)


def _field(text: str, where: ClaudeBlockPlace) -> str:
    """Return the index field of a text; of several texts only the human's are the prompt."""
    return guess_speaker(text).field if where.mixed else where.field


_WORDS: dict[str, Callable[[dict[str, Any], ClaudeBlockPlace], tuple[Block, ...]]] = {
    "text": _text,
    "thinking": _thinking,
    **dict.fromkeys(_WORDLESS, _wordless_block),
}
