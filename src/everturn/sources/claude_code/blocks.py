"""Content blocks: what each holds to be shown and indexed, with the block itself kept as found.

Tool calls and their results: the neutral kind, path and command of a call; error class, exit status, time and file of
a result.

Who is speaking: what a record of type `user` or `system` really is.

The API knows two roles; a transcript has many speakers. What a human typed, what the client put in, what a command printed
and what another agent says all arrive as `user` records, told apart by a few marks and by how the text begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from everturn.model.conversation import Block, CallEnd, CallStart
from everturn.sources.claude_code.records import NOTHING, ClaudeRecord, ClaudeToolResult, count, word
from everturn.sources.toolkit.values import strings

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


class ClaudeSpeaker(NamedTuple):
    """What a message is, and the index field its text goes to."""

    origin: str
    kind: str
    starts_turn: bool
    field: str


PROMPT = ClaudeSpeaker("human", "text", True, "prompt")
COMMAND = ClaudeSpeaker("human", "command", True, "prompt")
SHELL = ClaudeSpeaker("human", "shell", True, "prompt")
QUEUED = ClaudeSpeaker("human", "queued", False, "prompt")
SHELL_OUTPUT = ClaudeSpeaker("tool", "output", False, "tool_output")
COMMAND_OUTPUT = ClaudeSpeaker("system", "output", False, "tool_output")
INTERRUPT = ClaudeSpeaker("system", "interrupt", False, "meta")
SUMMARY = ClaudeSpeaker("injected", "summary", False, "summary")
CONTEXT = ClaudeSpeaker("injected", "context", False, "meta")
NOTIFICATION = ClaudeSpeaker("agent", "notification", False, "meta")
TEAMMATE = ClaudeSpeaker("agent", "notification", False, "meta")
EVENT = ClaudeSpeaker("injected", "notification", False, "meta")
NOTICE = ClaudeSpeaker("system", "notice", False, "meta")
UNKNOWN = ClaudeSpeaker("system", "unknown", False, "meta")

_BEGINNINGS: tuple[tuple[str, ClaudeSpeaker], ...] = (
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

#: What programs put in front of a prompt. Words after it are the human's.
_WRAPPED = re.compile(r"(?:\s*<(ide_\w+|system-reminder|system_instruction)>.*?</\1>\s*)+", re.DOTALL)
_WRAPPERS = ("<ide_", "<system-reminder>", "<system_instruction>")


def guess_speaker(text: str) -> ClaudeSpeaker:
    """Who says this, judged by how it begins."""
    head = text[:_SPEAKER_HEAD].lstrip()
    if head[:1] not in _MARKS:
        return PROMPT
    for beginning, speaker in _BEGINNINGS:
        if head.startswith(beginning):
            return speaker
    return CONTEXT if head.startswith(_WRAPPERS) and not unwrap(text)[1] else PROMPT


def unwrap(text: str) -> tuple[str, str]:
    """What a program put in front of a prompt, and the prompt."""
    if not text[:_SPEAKER_HEAD].lstrip().startswith(_WRAPPERS):
        return "", text
    found = _WRAPPED.match(text)
    if found is None:
        return text, ""  # an opening tag that is never closed
    return text[: found.end()].rstrip(), text[found.end() :]


def is_helper(event: ClaudeRecord) -> bool:
    """The record is of an agent that takes its orders from another one."""
    return bool(event.is_sidechain) or bool(event.agent_name and event.team_name)


def speaker(event: ClaudeRecord, texts: list[str], helper: bool) -> ClaudeSpeaker:
    """Who says what a `user` record holds, given its texts."""
    if event.is_compact_summary:
        return SUMMARY
    kind = origin_kind(event.origin)
    if kind == "task-notification" or (kind not in ("", "human") and not helper):
        return NOTIFICATION
    if event.is_meta:
        return CONTEXT
    found = _main_speaker(texts)
    if kind == "human" and found.origin != "human":
        return PROMPT
    if found is PROMPT and event.prompt_source == "system":
        return CONTEXT
    return _helper_speaker(found) if helper and kind != "human" else found


def origin_kind(origin: Any) -> str:
    """The kind in an `origin` field, where newer clients say who speaks."""
    kind = origin.get("kind") if isinstance(origin, dict) else None
    return kind if isinstance(kind, str) else ""


def _main_speaker(texts: list[str]) -> ClaudeSpeaker:
    """A human's words count, also among what a program put around them."""
    found = [guess_speaker(text) for text in texts]
    return next((one for one in found if one.origin == "human"), found[0] if found else PROMPT)


def _helper_speaker(found: ClaudeSpeaker) -> ClaudeSpeaker:
    if found is TEAMMATE:
        return PROMPT._replace(origin="agent")
    return found._replace(origin="agent") if found.origin == "human" else found


#: Blocks without words, and what kind they are.
_WORDLESS = {"image": "image", "document": "document", "redacted_thinking": "thinking"}
_CALLS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))


class ClaudeBlockPlace(NamedTuple):
    """What blocks need to know of the record they stand in."""

    field: str  # the index field of plain text
    mixed: bool = False  # several texts, perhaps of several speakers
    outcome: Any = None  # the client's note on a result
    session: str = ""  # that subagents hang on


def text_blocks(text: str, field: str) -> tuple[Block, ...]:
    """The blocks of a text; what a program put in front of a prompt is a block of its own."""
    if field == "prompt":
        around, prompt = unwrap(text)
        if around:
            before = Block("text", around, "meta")
            return (before, Block("text", prompt, field)) if prompt else (before,)
    return (Block("text", text, field),) if text else ()


def is_result(block: Any) -> bool:
    """A tool_result, or one of its relatives."""
    if not isinstance(block, dict):
        return False
    kind = block.get("type")
    return kind == "tool_result" or (isinstance(kind, str) and kind.endswith("_tool_result"))


def texts_of(content: list[Any]) -> list[str]:
    """The texts of a list of blocks."""
    found = []
    for block in content:
        text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else block
        if isinstance(text, str):
            found.append(text)
    return found


def blocks_of(content: list[Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    """The blocks of a list."""
    found: list[Block] = []
    for block in content:
        if isinstance(block, dict):
            found += _block(block, where)
        elif isinstance(block, str):
            found += text_blocks(block, _field(block, where))
        else:
            found.append(_unknown_block(block))
    return tuple(found)


def _block(block: dict[str, Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    kind = word(block.get("type"))
    if kind in _CALLS:
        start = call_start(block)
        return (Block("call", call_text(start), "tool_input", call=start, data=block),)
    if kind == "tool_result" or is_result(block):
        text = result_text(block.get("content"), where.outcome)
        end = call_end(block, text, where.outcome, where.session)
        return (Block("result", text, "tool_output", result=end, data=block),)
    made = _WORDS.get(kind)
    return made(block, where) if made else (_unknown_block(block),)


def _text(block: dict[str, Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    text = block.get("text")
    if not isinstance(text, str):
        return (_unknown_block(block),)
    field = _field(text, where)
    if field == "prompt" and unwrap(text)[0]:
        return text_blocks(text, field)
    return (Block("text", text, field, data=block),)


def _thinking(block: dict[str, Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    text = block.get("thinking")
    return (Block("thinking", text if isinstance(text, str) else "", "thinking", data=block),)


def _wordless_block(block: dict[str, Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    return (Block(_WORDLESS[block["type"]], data=block),)


def _unknown_block(block: Any) -> Block:
    return Block("unknown", "\n".join(strings(block, "type")), "meta", data=block)


def _field(text: str, where: ClaudeBlockPlace) -> str:
    """Among several texts only what is the human's is the prompt."""
    return guess_speaker(text).field if where.mixed else where.field


_WORDS: dict[str, Callable[[dict[str, Any], ClaudeBlockPlace], tuple[Block, ...]]] = {
    "text": _text,
    "thinking": _thinking,
    **dict.fromkeys(_WORDLESS, _wordless_block),
}
