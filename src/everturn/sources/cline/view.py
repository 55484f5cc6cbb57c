"""The bytes of a message → the message, for whoever shows or exports it. Their own shape says what they are."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Message
from everturn.sources.cline import history, panel
from everturn.sources.cline.metadata import is_noted_file, noted_file
from everturn.sources.foreign import word
from everturn.sources.wholefile import decode_item


def view(record_bytes: bytes) -> Message | None:
    """An element, some content blocks of one (without brackets around them), or a note in one; None when it is no JSON."""
    value, _ = decode_item(record_bytes)
    if value is None:
        value, _ = decode_item(b"[" + record_bytes + b"]")
        return _blocks_message(value) if isinstance(value, list) and value else None
    if isinstance(value, dict):
        return _element(value)
    if isinstance(value, list):
        return Message("system", "system", "compaction")
    return Message("assistant", "model")


def _element(value: dict[str, Any]) -> Message:
    if panel.kind_of(value):
        first = value.get("conversationHistoryIndex") == -1
        return panel.shown_message(value, first) or Message("system", "system", "notice")
    if is_noted_file(value):
        return noted_file(value)
    if "role" not in value and word(value.get("type")) != "reasoning":
        return _blocks_message([value]) if "type" in value else history.unknown_element(value)
    return _history_message(value)


def _history_message(value: dict[str, Any]) -> Message:
    if history.is_summary(value):
        return history.summary(value)
    if value.get("role") == "assistant" or word(value.get("type")) == "reasoning":
        return history.answer(value)
    content = value.get("content")
    if value.get("role") != "user" or not isinstance(content, (str, list)):
        return history.unknown_element(value)
    return _blocks_message([content] if isinstance(content, str) else content)


def _blocks_message(blocks: list[Any]) -> Message:
    found = history.segments(blocks)
    message = history.segment_message(blocks, found[0].kind if found else "context")
    at, precision = history.moment({}, blocks)
    return replace(message, at=at, precision=precision)
