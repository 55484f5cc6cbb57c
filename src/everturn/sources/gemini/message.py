"""One record → one message, without knowing the records around it: used by the reader and by `view` alike.

Tool calls, which hold their results: the neutral kind, path and command; error class, exit status, time and file.
"""

from __future__ import annotations

import re
from typing import Any

from everturn.model.conversation import Block, CallEnd, CallStart, Message, TokenUsage, fingerprint
from everturn.sources.toolkit.json_document import entries, record
from everturn.sources.toolkit.values import count, milliseconds, strings, word

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


NOTICES = frozenset(("info", "warning", "error"))
TYPES = NOTICES | {"user", "gemini"}

#: Keys of the header, and of patches to it, that hold nothing to be shown.
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


def build(found: dict[str, Any], start: int = 0, size: int = 0, helper: bool = False) -> Message:
    """The message of a record; `helper`: of an agent that takes its orders from another one."""
    kind = word(found.get("type"))
    if kind == "gemini":
        return _answer(found, start, size)
    if kind == "user":
        return _prompt(found, start, size, helper)
    if kind in NOTICES:
        return _notice(found, start, size)
    return unknown(found, start, size)


def only_calls(found: dict[str, Any], calls: list[Any], start: int, size: int) -> Message:
    """What an update adds to a message that was read before: some calls, and the tokens."""
    at, precision = milliseconds(found.get("timestamp"))
    blocks = tuple(call_blocks(calls, at))
    name = word(found.get("id"))
    return Message(
        "assistant", "model", "text", at, precision, name, name, word(found.get("model")), blocks,
        usage(found.get("tokens")), False, start, size, fingerprint=identity(found),
    )  # fmt: skip


def unknown(found: dict[str, Any], start: int = 0, size: int = 0) -> Message:
    """A message of a kind this version does not know: its words are kept, shown and indexed."""
    text = "\n".join(strings(found, *_ENVELOPE))
    blocks = (Block("unknown", text, "meta"),) if text else ()
    return _message(found, "system", "system", "unknown", blocks, start, size)


def scratchpad(patch: dict[str, Any], start: int = 0, size: int = 0) -> Message:
    """What the client noted down of the session for itself."""
    text = "\n".join(strings(patch.get("memoryScratchpad")))
    blocks = (Block("text", text, "summary"),) if text else ()
    return Message("system", "system", "summary", blocks=blocks, start=start, size=size)


def rewind_message(found: dict[str, Any], start: int = 0, size: int = 0) -> Message:
    """The mark where the human went back to before a message."""
    name = word(found.get("$rewindTo"))
    blocks = (Block("text", name, "meta"),)
    return Message("system", "system", "notice", blocks=blocks, start=start, size=size, takes_back=name)


def usage(tokens: Any) -> TokenUsage | None:
    """The tokens of a response. What was read from the cache is part of the prompt here, and thoughts are not output."""
    noted = record(tokens)
    tokens_of = {key: count(noted.get(key)) or 0 for key in ("input", "tool", "output", "thoughts", "cached")}
    cached = tokens_of["cached"]
    given = tokens_of["input"] + tokens_of["tool"]
    said = tokens_of["output"] + tokens_of["thoughts"]
    return TokenUsage(max(given - cached, 0), said, cached) if given or said else None


def identity(found: dict[str, Any]) -> int | None:
    """A message that has got calls since is another one: its calls must be found, too."""
    name = word(found.get("id"))
    if not name:
        return None
    states = [
        f"{word(call.get('id'))}:{word(call.get('status'))}" for call in map(record, entries(found.get("toolCalls")))
    ]
    return fingerprint("\0".join([name, *states]), word(found.get("timestamp")))


def words_of(content: Any) -> str:
    """The plain text of a content, which is a string, a part or a list of these."""
    parts = content if isinstance(content, list) else [content]
    texts = [part if isinstance(part, str) else record(part).get("text") for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def answers_a_call(content: Any) -> bool:
    """Whether a content is what a tool gave back, as the model is shown it."""
    return any("functionResponse" in record(part) for part in entries(content))


# what each type becomes ---------------------------------------------------------------------------------------------
def _answer(found: dict[str, Any], start: int, size: int) -> Message:
    at, _ = milliseconds(found.get("timestamp"))
    blocks = [_thought(thought) for thought in entries(found.get("thoughts"))]
    blocks += _content(found.get("content"), "answer")
    blocks += call_blocks(found.get("toolCalls"), at)
    return _message(found, "assistant", "model", "text", tuple(blocks), start, size)


def _prompt(found: dict[str, Any], start: int, size: int, helper: bool) -> Message:
    content = found.get("content")
    if answers_a_call(content):
        return _message(found, "user", "injected", "context", tuple(_content(content, "meta")), start, size)
    shown = words_of(found.get("displayContent"))
    text = shown or words_of(content)
    origin, kind, starts = _speaker(text)
    field = {"human": "prompt", "injected": "meta"}[origin]
    if kind == "summary":
        field = "summary"
    if origin == "human" and helper:
        origin = "agent"
    blocks = _prompt_blocks(content, shown) if field == "prompt" else _content(content, field)
    return _message(found, "user", origin, kind, tuple(blocks), start, size, starts)


def _notice(found: dict[str, Any], start: int, size: int) -> Message:
    text = words_of(found.get("content"))
    kind = "interrupt" if text.strip() == _CANCELLED else "notice"
    return _message(found, "system", "system", kind, tuple(_content(found.get("content"), "meta")), start, size)


def _speaker(text: str) -> tuple[str, str, bool]:
    """Who says this, judged by how it begins: origin, kind, and whether a turn starts."""
    head = text.lstrip()
    if head.startswith(_SNAPSHOT):
        return "injected", "summary", False
    if head.startswith(_SYSTEM):
        return "injected", "context", False
    if head.startswith(_RAN):
        return "human", "shell", False
    return "human", "command" if _COMMAND.match(head) else "text", True


def _prompt_blocks(content: Any, shown: str) -> list[Block]:
    """What the human typed, and apart from it what the client put around."""
    if shown:
        rest = [block for block in _content(content, "meta") if block.text.strip() != shown.strip()]
        return [Block("text", shown, "prompt"), *rest]
    found: list[Block] = []
    added = False
    for block in _content(content, "prompt"):
        if block.field != "prompt":
            found.append(block)
            continue
        before, typed = ("", block.text) if added else _split_wrapping(block.text)
        typed, mark, after = typed.partition(_REFERENCED) if not added else ("", "", block.text)
        added = added or bool(mark)
        found += [
            Block("text", text, field)
            for text, field in ((before, "meta"), (typed, "prompt"), (mark + after, "meta"))
            if text.strip()
        ]
    return found


def _split_wrapping(text: str) -> tuple[str, str]:
    found = _WRAPPED.match(text)
    return (text[: found.end()], text[found.end() :]) if found else ("", text)


def _content(content: Any, field: str) -> list[Block]:
    parts = content if isinstance(content, list) else [] if content is None or content == "" else [content]
    return [_part(part, field) for part in parts]


def _part(part: Any, field: str) -> Block:
    if isinstance(part, str):
        return Block("text", part, field)
    text = record(part).get("text")
    if isinstance(text, str):
        thought = part.get("thought") is True
        return Block("thinking", text, "thinking", data=part) if thought else Block("text", text, field, data=part)
    if "inlineData" in record(part) or "fileData" in record(part):
        return Block("image", data=part)
    return Block("unknown", "\n".join(strings(part, "thoughtSignature")), "meta", data=part)


def _thought(thought: Any) -> Block:
    noted = record(thought)
    text = "\n".join(filter(None, (word(noted.get("subject")), word(noted.get("description")))))
    return Block("thinking", text, "thinking", data=thought)


def _message(
    found: dict[str, Any], role: str, origin: str, kind: str, blocks: tuple[Block, ...], start: int, size: int,
    starts_turn: bool = False,
) -> Message:  # fmt: skip
    at, precision = milliseconds(found.get("timestamp"))
    name, spoke = word(found.get("id")), origin == "model"
    return Message(
        role, origin, kind, at, precision, name, name if spoke else "", word(found.get("model")) if spoke else "", blocks,
        usage(found.get("tokens")) if spoke else None, starts_turn, start, size, fingerprint=identity(found),
    )  # fmt: skip
