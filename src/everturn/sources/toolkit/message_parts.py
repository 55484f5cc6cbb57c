"""Parts of messages that many formats build the same way: text blocks, unknown records, digests."""

from __future__ import annotations

from typing import Any

from everturn.model.conversation import Block, Message
from everturn.sources.toolkit.values import digest, strings


def text_blocks(text: str, field: str, kind: str = "text") -> tuple[Block, ...]:
    """Return one block with the text, or none when it is empty."""
    return (Block(kind, text, field),) if text else ()


def unknown_message(value: Any, *without: str) -> Message:
    """Return the message of a record of unknown shape: its strings, except those under the keys `without`, are indexed."""
    blocks = text_blocks("\n".join(strings(value, *without)), "meta", "unknown")
    return Message("system", "system", "unknown", blocks=blocks)


def message_digest(message: Message) -> str:
    """Return a digest of the role and the texts of a message."""
    return digest(message.role, *(block.text for block in message.blocks))
