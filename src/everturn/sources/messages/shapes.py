"""What is a message, and what holds messages.

{"role": …, "content": …}             a message; one per line, or the elements of a list
{"type": "function_call", …}          an item of the newer interface, among messages
{"messages": […], …}                  a conversation with things around it; also traj, history
{"messages_display": "user: …\\n…"}    a conversation as one text
"""

from __future__ import annotations

import re
from typing import Any

from everturn.sources.document import Damage, document_start, elements
from everturn.sources.foreign import decode_value
from everturn.sources.linewise import records

ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function"))
ITEMS = frozenset(("function_call", "function_call_output", "reasoning", "custom_tool_call", "custom_tool_call_output"))

#: Keys under which lists of messages stand, the likeliest first.
HOLDERS = ("messages", "history", "traj", "conversation", "chat_history", "conversations", "input")
DISPLAY = "messages_display"

_SAYS = ("content", "tool_calls", "function_call")
_HELD = re.compile(rb'"(?:%b)"\s*:\s*(?=\[\s*\{)' % "|".join(HOLDERS).encode())
_ROLE = re.compile(rb'\{\s*"role"\s*:\s*"(?:system|developer|user|assistant)"\s*,')
_TRAJECTORY = re.compile(rb'"trajectory"\s*:\s*\[\s*\{\s*"(?:action|response|thought|observation|state)"\s*:')
_LOOKED_AT = 20


def is_message(value: Any) -> bool:
    """A message of a chat interface."""
    return isinstance(value, dict) and _is_role(value.get("role")) and any(key in value for key in _SAYS)


def is_item(value: Any) -> bool:
    """An item of the newer interface that is no message."""
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and kind in ITEMS


def holder_in(value: Any) -> str:
    """The key under which an object holds messages; "" when it holds none."""
    if not isinstance(value, dict):
        return ""
    return next((key for key in HOLDERS if _is_list(value.get(key))), "")


def is_conversation(value: Any) -> bool:
    """An object that holds messages, in a list or as one text."""
    return bool(holder_in(value)) or (isinstance(value, dict) and isinstance(value.get(DISPLAY), str))


def holder_of(data: bytes) -> str | None:
    """The key under which a document holds its messages: "" for a list; None when what is there does not tell (yet)."""
    try:
        at = document_start(data)
    except Damage:
        return ""
    if data[at : at + 1] == b"[":
        return ""
    seen: list[tuple[str, bytes]] = []
    try:
        seen = [(element.key, element.cut(data)) for element in elements(data, at)]
    except Damage:
        seen += _outer_values(data, at)
    found = [key for key, raw in seen if key in HOLDERS and raw.startswith(b"[") and _is_list_text(raw)]
    if not found and any(key == "trajectory" for key, _ in seen):
        return "history"
    return min(found, key=HOLDERS.index) if found else None


def holds_messages(head: bytes) -> bool:
    """Whether a file that begins like this is clearly made of messages."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        return _begins_with_messages(start)
    first = start.partition(b"\n")[0].rstrip()
    if first.endswith(b"}") and isinstance(decode_value(first), dict):
        found = records(start[: start.rfind(b"\n") + 1] or start)[:_LOOKED_AT]
        return bool(found) and all(is_message(one) or is_item(one) or is_conversation(one) for one in found[:2])
    held = _HELD.search(start)
    return (held is not None and _begins_with_messages(start[held.end() :])) or _TRAJECTORY.search(start) is not None


def _outer_values(data: bytes, at: int) -> list[tuple[str, bytes]]:
    """The values of an object that breaks off; of the last one only its beginning."""
    found: list[tuple[str, bytes]] = []
    end = at
    try:
        for element in elements(data, at):
            found.append((element.key, element.cut(data)))
            end = element.start + element.size
    except Damage:
        pass
    begun = re.compile(rb'[\s,{]*"([a-z_]{1,40})"\s*:\s*(?=[\[{])').match(data, end)
    return [*found, (begun[1].decode(), data[begun.end() :])] if begun else found


def _begins_with_messages(start: bytes) -> bool:
    try:
        for element in elements(start, 0):
            value = decode_value(element.cut(start))
            return is_message(value) or is_conversation(value)
    except Damage:
        pass
    return _ROLE.match(start, 1) is not None or _ROLE.match(start[1:].lstrip()) is not None


def _is_list_text(raw: bytes) -> bool:
    return raw.strip() == b"[]" or _begins_with_messages(raw)


def _is_list(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and (is_message(value[0]) or is_item(value[0]) or is_conversation(value[0]))
    )


def _is_role(role: Any) -> bool:
    return isinstance(role, str) and role in ROLES
