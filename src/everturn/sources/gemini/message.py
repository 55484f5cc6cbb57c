"""Builds the message of one record without the records around it, for the reader and for `view`.

Tool calls hold their results: the neutral kind, path and command; error class, exit status, duration and file.
"""

from __future__ import annotations

import re
from typing import Any

from everturn.model.conversation import Block, CallEnd, CallStart, Message, TokenUsage, fingerprint
from everturn.sources.toolkit.line_reader import listing, mapping
from everturn.sources.toolkit.values import build_call, call_text, count, match_error, milliseconds, strings, word

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

#: Error classes by a pattern in the first characters of a failed result; the first match decides.
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
_END = 2000
_EXIT = re.compile(r"^Exit Code: (\d{1,9})$", re.MULTILINE)
_ARTIFACT = re.compile(r"(Successfully created and wrote to new file|Created new file|Successfully overwrote file|Successfully modified file): (\S[^\n]{0,4000}?)(?: \(\d+ replacements?\)| with provided content|[.] Here is|[.]?\n|[.]?$)")  # fmt: skip


def call_blocks(calls: Any, asked_at: int | None) -> list[Block]:
    """Return each call, followed by its result if it has one."""
    blocks: list[Block] = []
    for number, call in enumerate(listing(calls)):
        if not isinstance(call, dict):
            blocks.append(Block("unknown", "\n".join(strings(call)), "meta", data=call))
            continue
        start = _start(call, number)
        blocks.append(Block("call", call_text(start), "tool_input", call=start, data=call))
        if is_done(call):
            text = result_text(call)
            end = _end(call, start, text, asked_at)
            blocks.append(Block("result", text, "tool_output", result=end))
    return blocks


def is_done(call: dict[str, Any]) -> bool:
    return bool(call.get("result")) or word(call.get("status")) in _DONE


def result_text(call: dict[str, Any]) -> str:
    """Return the text of a result: what the model got, else what was shown."""
    result = call.get("result")
    if isinstance(result, str):
        return result
    texts: list[str] = []
    for part in listing(result):
        one = mapping(part)
        if "inlineData" in one or "fileData" in one:
            texts.append("[image]")
        else:
            texts += strings(
                mapping(one.get("functionResponse")).get("response") if "functionResponse" in one else part
            )
    if not texts:
        shown = call.get("resultDisplay")
        texts = strings(shown, "originalContent", "newContent", "diffStat")
    return "\n".join(texts)


def _start(call: dict[str, Any], number: int) -> CallStart:
    name, given = word(call.get("name")), call.get("args")
    kind = _KIND_OF.get(name) or ("task" if word(call.get("agentId")) else "other")
    if "conversation_recall" in name:
        kind = "recall"
    return build_call(word(call.get("id")) or f"{name}#{number}", name, kind, given, _PATHS, _PROMPTS)


def _end(call: dict[str, Any], start: CallStart, text: str, asked_at: int | None) -> CallEnd:
    exit_status = _exit_status(text) if start.kind == "shell" else None
    failed = word(call.get("status")) in ("error", "cancelled")
    action, path = _find_artifact(text) if start.kind in ("edit", "create") and not failed else ("", "")
    done_at, _ = milliseconds(call.get("timestamp"))
    took = done_at - asked_at if done_at is not None and asked_at is not None else 0
    return CallEnd(
        start.call_id, failed or bool(exit_status),
        _error_class(call, text) if failed else "exit_status" if exit_status else "", exit_status,
        took if took > 0 else None, action, path, word(call.get("agentId")),
    )  # fmt: skip


def _error_class(call: dict[str, Any], text: str) -> str:
    error = match_error(text, _ERRORS)
    return "interrupted" if error == "other" and call.get("status") == "cancelled" else error


def _exit_status(text: str) -> int | None:
    return int(codes[-1]) if (codes := _EXIT.findall(text, max(len(text) - _END, 0))) else None


def _find_artifact(text: str) -> tuple[str, str]:
    if (match := _ARTIFACT.match(text[:5000])) is None:
        return "", ""
    return "created" if "created" in match[1].lower() else "edited", word(match[2])


NOTICES = frozenset(("info", "warning", "error"))
TYPES = NOTICES | {"user", "gemini"}

#: Keys of the header, and of patches to it, without text to show.
HEADER = frozenset(
    "sessionId projectHash startTime lastUpdated kind directories summary activeExtensionName messages".split()
)

_ENVELOPE = ("id", "timestamp", "type", "sessionId", "projectHash", "startTime", "lastUpdated")
_REFERENCED = "--- Content from referenced files ---"
_WRAPPED = re.compile(r"(?:\s*<(hook_context|session_context|system-reminder)>.*?</\1>\s*)+", re.DOTALL)
_COMMAND = re.compile(r"/[a-z][\w:-]*(?:\s|$)", re.IGNORECASE)
_RAN = "I ran the following shell command:"
_SNAPSHOT = ("<state_snapshot>", "<state_snapshot ")
_CANCELLED = "Request cancelled."
_SYSTEM = "System: "


def build(record: dict[str, Any], start: int = 0, size: int = 0, helper: bool = False) -> Message:
    """Return the message of a record; `helper`: of an agent that works for another one."""
    kind = word(record.get("type"))
    if kind == "gemini":
        return _answer(record, start, size)
    if kind == "user":
        return _prompt(record, start, size, helper)
    if kind in NOTICES:
        return _notice(record, start, size)
    return unknown(record, start, size)


def calls_message(record: dict[str, Any], calls: list[Any], start: int, size: int) -> Message:
    """Return the message of an update to an earlier one: new calls, and the tokens."""
    at, precision = milliseconds(record.get("timestamp"))
    blocks = tuple(call_blocks(calls, at))
    name = word(record.get("id"))
    return Message(
        "assistant", "model", "text", at, precision, name, name, word(record.get("model")), blocks,
        usage(record.get("tokens")), False, start, size, fingerprint=identity(record),
    )  # fmt: skip


def unknown(record: dict[str, Any], start: int = 0, size: int = 0) -> Message:
    """Return the message of a record of unknown type: its text is kept, shown and indexed."""
    text = "\n".join(strings(record, *_ENVELOPE))
    blocks = (Block("unknown", text, "meta"),) if text else ()
    return _message(record, "system", "system", "unknown", blocks, start, size)


def scratchpad_message(patch: dict[str, Any], start: int = 0, size: int = 0) -> Message:
    """Return the message of the client's own notes on the session."""
    text = "\n".join(strings(patch.get("memoryScratchpad")))
    blocks = (Block("text", text, "summary"),) if text else ()
    return Message("system", "system", "summary", blocks=blocks, start=start, size=size)


def rewind_message(record: dict[str, Any], start: int = 0, size: int = 0) -> Message:
    """Return the mark where the human went back to before a message."""
    name = word(record.get("$rewindTo"))
    blocks = (Block("text", name, "meta"),)
    return Message("system", "system", "notice", blocks=blocks, start=start, size=size, takes_back=name)


def usage(tokens: Any) -> TokenUsage | None:
    """Return the tokens of a response. Here the prompt includes cached tokens, and the output excludes thoughts."""
    fields = mapping(tokens)
    counts = {key: count(fields.get(key)) or 0 for key in ("input", "tool", "output", "thoughts", "cached")}
    given, output = counts["input"] + counts["tool"], counts["output"] + counts["thoughts"]
    return TokenUsage(max(given - counts["cached"], 0), output, counts["cached"]) if given or output else None


def identity(record: dict[str, Any]) -> int | None:
    """Return a fingerprint that changes with a message's calls, so that calls added later are found too."""
    if not (name := word(record.get("id"))):
        return None
    states = [
        f"{word(call.get('id'))}:{word(call.get('status'))}" for call in map(mapping, listing(record.get("toolCalls")))
    ]
    return fingerprint("\0".join([name, *states]), word(record.get("timestamp")))


def plain_text(content: Any) -> str:
    """Return the plain text of a content: a string, a part, or a list of these."""
    parts = content if isinstance(content, list) else [content]
    texts = [part if isinstance(part, str) else mapping(part).get("text") for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def answers_a_call(content: Any) -> bool:
    """Return whether a content is a tool's result as shown to the model."""
    return any("functionResponse" in mapping(part) for part in listing(content))


# --- one builder per record type ---
def _answer(record: dict[str, Any], start: int, size: int) -> Message:
    at, _ = milliseconds(record.get("timestamp"))
    blocks = [_thought(thought) for thought in listing(record.get("thoughts"))]
    blocks += _content(record.get("content"), "answer")
    blocks += call_blocks(record.get("toolCalls"), at)
    return _message(record, "assistant", "model", "text", tuple(blocks), start, size)


def _prompt(record: dict[str, Any], start: int, size: int, helper: bool) -> Message:
    content = record.get("content")
    if answers_a_call(content):
        return _message(record, "user", "injected", "context", tuple(_content(content, "meta")), start, size)
    shown = plain_text(record.get("displayContent"))
    text = shown or plain_text(content)
    origin, kind, starts = _speaker(text)
    field = {"human": "prompt", "injected": "meta"}[origin]
    if kind == "summary":
        field = "summary"
    if origin == "human" and helper:
        origin = "agent"
    blocks = _prompt_blocks(content, shown) if field == "prompt" else _content(content, field)
    return _message(record, "user", origin, kind, tuple(blocks), start, size, starts)


def _notice(record: dict[str, Any], start: int, size: int) -> Message:
    text = plain_text(record.get("content"))
    kind = "interrupt" if text.strip() == _CANCELLED else "notice"
    return _message(record, "system", "system", kind, tuple(_content(record.get("content"), "meta")), start, size)


def _speaker(text: str) -> tuple[str, str, bool]:
    """Guess origin, kind, and whether a turn starts, by how a text begins."""
    head = text.lstrip()
    if head.startswith(_SNAPSHOT):
        return "injected", "summary", False
    if head.startswith(_SYSTEM):
        return "injected", "context", False
    if head.startswith(_RAN):
        return "human", "shell", False
    return "human", "command" if _COMMAND.match(head) else "text", True


def _prompt_blocks(content: Any, shown: str) -> list[Block]:
    """Return what the human typed, and in blocks of their own what the client put around it."""
    if shown:
        rest = [block for block in _content(content, "meta") if block.text.strip() != shown.strip()]
        return [Block("text", shown, "prompt"), *rest]
    blocks: list[Block] = []
    added = False
    for block in _content(content, "prompt"):
        if block.field != "prompt":
            blocks.append(block)
            continue
        before, typed = ("", block.text) if added else _split_wrapping(block.text)
        typed, mark, after = typed.partition(_REFERENCED) if not added else ("", "", block.text)
        added = added or bool(mark)
        texts = (before, "meta"), (typed, "prompt"), (mark + after, "meta")
        blocks += [Block("text", text, field) for text, field in texts if text.strip()]
    return blocks


def _split_wrapping(text: str) -> tuple[str, str]:
    return (text[: match.end()], text[match.end() :]) if (match := _WRAPPED.match(text)) else ("", text)


def _content(content: Any, field: str) -> list[Block]:
    parts = content if isinstance(content, list) else [] if content is None or content == "" else [content]
    return [_part(part, field) for part in parts]


def _part(part: Any, field: str) -> Block:
    if isinstance(part, str):
        return Block("text", part, field)
    text = mapping(part).get("text")
    if isinstance(text, str):
        thought = part.get("thought") is True
        return Block("thinking", text, "thinking", data=part) if thought else Block("text", text, field, data=part)
    if "inlineData" in mapping(part) or "fileData" in mapping(part):
        return Block("image", data=part)
    return Block("unknown", "\n".join(strings(part, "thoughtSignature")), "meta", data=part)


def _thought(thought: Any) -> Block:
    fields = mapping(thought)
    text = "\n".join(filter(None, (word(fields.get("subject")), word(fields.get("description")))))
    return Block("thinking", text, "thinking", data=thought)


def _message(
    record: dict[str, Any], role: str, origin: str, kind: str, blocks: tuple[Block, ...], start: int, size: int,
    starts_turn: bool = False,
) -> Message:  # fmt: skip
    at, precision = milliseconds(record.get("timestamp"))
    name, is_model = word(record.get("id")), origin == "model"
    return Message(
        role, origin, kind, at, precision, name, name if is_model else "", word(record.get("model")) if is_model else "", blocks,
        usage(record.get("tokens")) if is_model else None, starts_turn, start, size, fingerprint=identity(record),
    )  # fmt: skip
