"""Messages as flat rows with their words, for programs that ask in SQL. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from everturn.model.archive import Call, MessageText, SessionGrowth
from everturn.model.conversation import Block, Message


def message_texts(growth: SessionGrowth, messages: Sequence[Message]) -> Iterator[MessageText]:
    """Yield the rows of new messages: their text, their calls, and the call that a result answers."""
    answered = {call.result_seq: call for call in reversed(growth.calls) if call.result_seq is not None}
    for row, message in zip(growth.messages, messages, strict=True):
        yield _message_text(row.seq, message, answered.get(row.seq))


def _message_text(seq: int, message: Message, answered: Call | None) -> MessageText:
    calls = [_call_json(block) for block in message.blocks if block.call is not None]
    texts = [block.text for block in message.blocks if block.kind in ("text", "result")]
    joined = ("" if message.role == "assistant" else "\n").join(texts)
    tokens = message.tokens or (message.usage.output if message.usage is not None else 0)
    name = answered.name if answered is not None else None
    call_id = answered.call_id if answered is not None else None
    own = _logged_turn(message)
    return MessageText(
        0, seq, own.get("role") or message.role, joined if texts or not calls else None,
        _encode(calls) if calls else None, call_id or own.get("tool_call_id"), name or own.get("tool_name"), tokens,
    )  # fmt: skip


def _logged_turn(message: Message) -> dict[str, Any]:
    """Return role and call of a message that belongs to no call, as its program stated them."""
    record = message.blocks[0].data if message.blocks and message.kind == "notice" else None
    data = record.get("data") if isinstance(record, dict) and record.get("kind") == "turn" else None
    return {name: value for name, value in data.items() if isinstance(value, str)} if isinstance(data, dict) else {}


def _call_json(block: Block) -> Any:
    """Return a call as it was given, or in the common form."""
    if isinstance(block.data, dict):
        return block.data
    assert block.call is not None
    given = block.call.input
    arguments = given if isinstance(given, str) else _encode(given if given is not None else {})
    return {"id": block.call.call_id, "type": "function", "function": {"name": block.call.name, "arguments": arguments}}


def _encode(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(str(value))
