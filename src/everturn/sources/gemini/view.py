"""The bytes of a message → the message, for whoever shows or exports it. Their own shape says what they are."""

from __future__ import annotations

from typing import Any

from everturn.model.conversation import Message
from everturn.sources.gemini.message import HEADER, build, only_calls, rewind_message, scratchpad, unknown
from everturn.sources.wholefile import decode_item, record

_TOKENS = frozenset(("input", "output", "total"))


def view(record_bytes: bytes) -> Message | None:
    """A record, the calls of one (without brackets around them), or its tokens; None when it is no JSON."""
    value, _ = decode_item(record_bytes)
    if value is None:
        calls, _ = decode_item(b"[" + record_bytes + b"]")
        return only_calls({}, calls, 0, len(record_bytes)) if calls else None
    if not isinstance(value, dict):
        return only_calls({}, [value], 0, len(record_bytes))
    return _view_record(value, len(record_bytes))


def _view_record(found: dict[str, Any], size: int) -> Message:
    if "$set" in found:
        return _view_patch(record(found["$set"]), size)
    if "$rewindTo" in found:
        return rewind_message(found, 0, size)
    if "type" not in found and "name" in found and "args" in found:
        return only_calls({}, [found], 0, size)
    if "type" not in found and found.keys() >= _TOKENS:
        return only_calls({"tokens": found}, [], 0, size)
    return build(found, 0, size)


def _view_patch(patch: dict[str, Any], size: int) -> Message:
    if "memoryScratchpad" in patch:
        return scratchpad(patch, 0, size)
    if "messages" in patch:
        return Message("system", "system", "compaction", size=size)
    return unknown({key: value for key, value in patch.items() if key not in HEADER}, 0, size)
