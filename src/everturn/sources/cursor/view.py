"""The bytes of a message → the message, for whoever shows or exports it. Their own shape says what they are."""

from __future__ import annotations

from everturn.model.conversation import Message
from everturn.sources.cursor import bubbles, export, said
from everturn.sources.wholefile import decode_item, record


def view(record_bytes: bytes) -> Message | None:
    """A line, or a stretch of an export."""
    value, _ = decode_item(record_bytes)
    if not isinstance(value, dict):
        return export.export_message(record_bytes.decode("utf-8", "replace"))
    if "bubble" in value:
        return bubbles.bubble(record(value["bubble"]))
    return said.read_line(value) or said.unknown(value)
