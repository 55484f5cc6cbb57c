"""The bytes of a message → the message, for whoever shows or exports it. Their own shape says what they are."""

from __future__ import annotations

from typing import Any

from everturn.model.conversation import Message
from everturn.sources.gemini.message import HEADER, build, only_calls, rewound, scratchpad, unknown
from everturn.sources.wholefile import decoded, record

_TOKENS = frozenset(("input", "output", "total"))


def view(record_bytes: bytes) -> Message | None:
    """A record, the calls of one (without brackets around them), or its tokens; None when it is no JSON."""
    value, _ = decoded(record_bytes)
    if value is None:
        calls, _ = decoded(b"[" + record_bytes + b"]")
        return only_calls({}, calls, 0, len(record_bytes)) if calls else None
    if not isinstance(value, dict):
        return only_calls({}, [value], 0, len(record_bytes))
    return _viewed(value, len(record_bytes))


def _viewed(found: dict[str, Any], size: int) -> Message:
    if "$set" in found:
        return _patch(record(found["$set"]), size)
    if "$rewindTo" in found:
        return rewound(found, 0, size)
    if "type" not in found and "name" in found and "args" in found:
        return only_calls({}, [found], 0, size)
    if "type" not in found and found.keys() >= _TOKENS:
        return only_calls({"tokens": found}, [], 0, size)
    return build(found, 0, size)


def _patch(patch: dict[str, Any], size: int) -> Message:
    if "memoryScratchpad" in patch:
        return scratchpad(patch, 0, size)
    if "messages" in patch:
        return Message("system", "system", "compaction", size=size)
    return unknown({key: value for key, value in patch.items() if key not in HEADER}, 0, size)
