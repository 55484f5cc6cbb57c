"""What a message holds: words, thoughts, calls and their results, notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, CallStart, Message, fingerprint
from everturn.sources.foreign import milliseconds, strings, word
from everturn.sources.tools import call_start, call_text, error_class, exit_status
from everturn.sources.wholefile import decode_item, entries, record

_EDITOR = {
    "view": "read",
    "write": "create",
    "str_replace": "edit",
    "insert": "edit",
    "diff": "edit",
    "edit_file": "edit",
}
_TASKS = ("subagent__", "dynamic_task__", "delegate")
_TODO = ("todo__", "todo_write")
_NOTICES = ("systemNotification", "contextLengthExceeded", "actionRequired", "toolConfirmationRequest")
_COMPACTED = ("conversationCompacted", "summarizationRequested")


def message(found: dict[str, Any]) -> Message:
    """The message of a line."""
    content = found.get("content")
    if isinstance(content, str) and content.startswith("["):
        content, _ = decode_item(content.encode("utf-8", "replace"))
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else entries(content)
    role, origin, kind = _speaker(word(found.get("role")), parts, _metadata(found))
    field = {"human": "prompt", "model": "answer"}.get(origin, "summary" if kind == "summary" else "meta")
    blocks = tuple(block for part in parts for block in _blocks(part, field))
    if kind == "unknown" and not blocks:
        text = "\n".join(strings(found, "role"))
        blocks = (Block("unknown", text, "meta"),) if text else ()
    at, precision = milliseconds(found.get("created_timestamp", found.get("created")))
    name = word(found.get("message_id")) or word(found.get("id"))
    return Message(
        role, origin, kind, at, precision, name, name if origin == "model" else "", blocks=blocks, starts_turn=origin == "human",
        fingerprint=fingerprint(name, str(at)) if name else None,
    )  # fmt: skip


def _speaker(role: str, parts: list[Any], metadata: dict[str, Any]) -> tuple[str, str, str]:
    """Role, origin and kind, judged by what is in it."""
    kinds = {word(record(part).get("type")) for part in parts}
    if role not in ("user", "assistant") or not parts:
        return "system", "system", "unknown"
    if kinds <= {"toolResponse"}:
        return "tool", "tool", "result"
    if kinds <= set(_COMPACTED):
        return "system", "system", "compaction"
    if kinds <= set(_NOTICES):
        return "system", "system", "notice"
    if metadata.get("userVisible") is False and kinds <= {"text"}:
        return role, "injected", "summary"
    return (role, "human", "text") if role == "user" else (role, "model", "text")


def _metadata(found: dict[str, Any]) -> dict[str, Any]:
    noted = found.get("metadata")
    return record(decode_item(noted.encode("utf-8", "replace"))[0]) if isinstance(noted, str) else record(noted)


# parts ------------------------------------------------------------------------------------------------------------------
def _blocks(part: Any, field: str) -> list[Block]:
    made = _PARTS.get(word(record(part).get("type")))
    return made(part, field) if made else [_unknown_block(part)]


def _text(part: dict[str, Any], field: str) -> list[Block]:
    text = part.get("text")
    return [Block("text", text, field, data=part)] if isinstance(text, str) else [_unknown_block(part)]


def _thinking(part: dict[str, Any], field: str) -> list[Block]:
    return [Block("thinking", word(part.get("thinking")), "thinking", data=part)]


def _image(part: dict[str, Any], field: str) -> list[Block]:
    return [Block("image", data=part)]


def _notice(part: dict[str, Any], field: str) -> list[Block]:
    text = "\n".join(strings(part, "type", "notificationType", "id", "actionType"))
    return [Block("text", text, "meta", data=part)] if text else []


def _call(part: dict[str, Any], field: str) -> list[Block]:
    outcome = record(part.get("toolCall"))
    value = record(outcome.get("value"))
    start = _neutral_call(call_start(word(part.get("id")), word(value.get("name")), value.get("arguments")))
    text = call_text(start) if value else "\n".join(strings(outcome, "status"))
    return [Block("call", text, "tool_input", call=start, data=part)]


def _neutral_call(start: CallStart) -> CallStart:
    """Names of this agent's own tools."""
    if start.name.endswith("text_editor"):
        return replace(start, kind=_EDITOR.get(word(record(start.input).get("command")), "edit"), command="")
    if start.name.startswith(_TASKS):
        return replace(start, kind="task", prompt="\n".join(strings(start.input)))
    return replace(start, kind="plan") if start.name.startswith(_TODO) else start


def _result(part: dict[str, Any], field: str) -> list[Block]:
    outcome = record(part.get("toolResult"))
    value = outcome.get("value")
    failed = word(outcome.get("status")) == "error" or record(value).get("isError") is True
    text = "\n".join(_result_texts(value)) if "value" in outcome else "\n".join(strings(outcome, "status"))
    status = exit_status(text) if failed else None
    end = CallEnd(word(part.get("id")), failed, error_class(text) if failed else "", status)
    return [Block("result", text, "tool_output", result=end, data=part)]


def _result_texts(value: Any) -> list[str]:
    """The words of a result. The same is often there twice, for the model and for the human: the model's are taken."""
    items = value if isinstance(value, list) else record(value).get("content", value)
    if not isinstance(items, list):
        return strings(items)
    told = [item for item in items if "assistant" in entries(record(record(item).get("annotations")).get("audience"))]
    texts: list[str] = []
    for item in told or items:
        one = record(item)
        texts += ["[image]"] if one.get("type") == "image" else strings(item, "type", "annotations", "mimeType")
    return texts


def _unknown_block(part: Any) -> Block:
    return Block("unknown", "\n".join(strings(part, "type")), "meta", data=part)


_PARTS: dict[str, Callable[[dict[str, Any], str], list[Block]]] = {
    "text": _text,
    "thinking": _thinking,
    "redactedThinking": lambda part, field: [Block("thinking", data=part)],
    "image": _image,
    "toolRequest": _call,
    "frontendToolRequest": _call,
    "toolResponse": _result,
    **dict.fromkeys((*_NOTICES, *_COMPACTED), _notice),
}
