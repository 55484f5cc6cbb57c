"""One line → one message, without knowing the lines around it: used by the reader and by `view` alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everturn.model.conversation import Block, Message, fingerprint
from everturn.sources.apiblocks import call_block, result_block, unknown_block
from everturn.sources.foreign import milliseconds, strings, word
from everturn.sources.linewise import Rec, listing, mapping, single_record

_CONTEXTS = frozenset(("user_editable_context", "model_editable_context"))
_THOUGHTS = frozenset(("thoughts", "reasoning_recap"))
_RAISED = "Traceback (most recent call last)"


def view(record: bytes) -> Message | None:
    """The message of a line, judged by itself; None when it holds none."""
    found = single_record(record)
    return build(found) if found is not None else None


def build(record: Rec) -> Message | None:
    """The message of a line; None when it is known to hold none."""
    if isinstance(record.get("conversation"), dict):
        return _conversation_message(record["conversation"])
    node = record.get("node")
    if not isinstance(node, dict):
        return _unknown(record)
    message = node.get("message")
    if message is None:
        return None
    if not isinstance(message, dict):
        return _unknown(node)
    return _node_message(node, message, word(record.get("call")))


def role_of(message: Any) -> str:
    """The role of a message."""
    return word(mapping(mapping(message).get("author")).get("role"))


def is_call(message: Any) -> bool:
    """Whether a message of the model is for a tool."""
    return role_of(message) == "assistant" and word(mapping(message).get("recipient")) not in ("", "all")


def _node_message(node: Rec, message: Rec, call: str) -> Message | None:
    role, content = role_of(message), mapping(message.get("content"))
    kind = word(content.get("content_type"))
    if is_call(message):
        given = "\n".join(_texts(content))
        blocks = [call_block(word(node.get("id")), word(message.get("recipient")), given, content)]
        return _message(node, message, "assistant", "model", "text", blocks)
    if role == "assistant":
        return _message(node, message, role, "model", "text", _blocks(content, "answer"))
    if role == "tool":
        return _message(
            node, message, role, "tool", "result" if call else "output", _result_blocks(message, content, call)
        )
    if role == "user" and not (_is_hidden(message) or kind in _CONTEXTS):
        return _message(node, message, role, "human", "text", _blocks(content, "prompt"))
    if role in ("user", "system"):
        blocks = _blocks(content, "meta")
        return _message(node, message, role, "injected", "context", blocks) if any(b.text for b in blocks) else None
    return _unknown(node)


def _result_blocks(message: Rec, content: Rec, call: str) -> list[Block]:
    if not call:
        return _blocks(content, "tool_output")
    text = "\n".join(_texts(content))
    status = word(mapping(mapping(message.get("metadata")).get("aggregate_result")).get("status"))
    failed = content.get("content_type") == "system_error" or status.startswith("fail") or _RAISED in text
    pictures = [block for block in _blocks(content, "") if block.kind in ("image", "document")]
    return [result_block(call, text, failed or None, content), *pictures]


def _is_hidden(message: Rec) -> bool:
    metadata = mapping(message.get("metadata"))
    return bool(metadata.get("is_visually_hidden_from_conversation") or metadata.get("is_user_system_message"))


def _conversation_message(conversation: Rec) -> Message:
    at, precision = milliseconds(conversation.get("create_time"))
    text = "\n".join(strings(conversation, "id", "conversation_id"))
    blocks = (Block("text", text, "meta"),) if text else ()
    name = word(conversation.get("conversation_id")) or word(conversation.get("id"))
    prints = fingerprint(f"about {name}", str(conversation.get("create_time")))
    return Message("system", "system", "notice", at, precision, blocks=blocks, fingerprint=prints)


def _unknown(record: Rec) -> Message:
    text = "\n".join(strings(record, "id", "parent"))
    return Message("system", "system", "unknown", blocks=(Block("unknown", text, "meta"),) if text else ())


def _message(node: Rec, message: Rec, role: str, origin: str, kind: str, blocks: list[Block]) -> Message:
    at, precision = milliseconds(message.get("create_time"))
    name = word(node.get("id"))
    model = word(mapping(message.get("metadata")).get("model_slug")) if origin == "model" else ""
    return Message(
        role, origin, kind, at, precision, name, name if origin == "model" else "", model, tuple(blocks),
        starts_turn=origin == "human" and bool(blocks),
        fingerprint=fingerprint(name, str(message.get("create_time"))) if name else None,
    )  # fmt: skip


# content ------------------------------------------------------------------------------------------------------------
def _blocks(content: Rec, field: str) -> list[Block]:
    kind = word(content.get("content_type"))
    if kind in ("text", "multimodal_text"):
        return [block for part in listing(content.get("parts")) if (block := _part(part, field)) is not None]
    if kind in _THOUGHTS:
        text = "\n".join(_texts(content))
        return [Block("thinking", text, "thinking", data=content)] if text else []
    if kind in _TEXTS:
        text = "\n".join(_texts(content))
        return [Block("text", text, field, data=content)] if text else []
    return [unknown_block(content)] if content else []


def _part(part: Any, field: str) -> Block | None:
    if isinstance(part, str):
        return Block("text", part, field) if part else None
    kind = word(mapping(part).get("content_type"))
    if kind == "image_asset_pointer":
        return Block("image", data=part)
    if kind == "audio_transcription":
        return Block("text", word(part.get("text")), field, data=part)
    return Block("document", data=part) if kind.endswith("_asset_pointer") else unknown_block(part)


def _texts(content: Rec) -> list[str]:
    found = _TEXTS.get(word(content.get("content_type")))
    return found(content) if found else strings(content, "content_type")


def _texts_under(*keys: str) -> Callable[[Rec], list[str]]:
    return lambda content: [text for key in keys for text in strings(content.get(key), "content_type")]


_TEXTS: dict[str, Callable[[Rec], list[str]]] = {
    "text": _texts_under("parts"),
    "multimodal_text": lambda content: [
        text for part in listing(content.get("parts")) for text in (strings(part) if isinstance(part, str) else [])
    ],
    "code": _texts_under("text"),
    "execution_output": _texts_under("text"),
    "system_error": _texts_under("name", "text"),
    "tether_browsing_display": _texts_under("summary", "result"),
    "tether_quote": _texts_under("title", "url", "text"),
    "thoughts": _texts_under("thoughts"),
    "reasoning_recap": _texts_under("content"),
    "user_editable_context": _texts_under("user_profile", "user_instructions"),
    "model_editable_context": _texts_under("model_set_context"),
}
