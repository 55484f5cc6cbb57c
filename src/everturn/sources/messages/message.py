r"""The shapes of messages and of the objects that hold them, and the conversion of one element into a message.

{"role": …, "content": …}             a message; one per line, or the elements of a list
{"type": "function_call", …}          an item of the newer interface, among messages
{"messages": […], …}                  a conversation with metadata; also traj, history
{"messages_display": "user: …\n…"}    a conversation as one text

`build` and `view` convert an element independently of the elements around it.
"""

from __future__ import annotations

import re
from typing import Any

from everturn.model.conversation import Block, CallEnd, CallStart, Message
from everturn.sources.toolkit.json_document import Damage, document_start, elements
from everturn.sources.toolkit.line_reader import records
from everturn.sources.toolkit.values import (
    blocks_of,
    call_block,
    decode_value,
    function_calls,
    has_results,
    milliseconds,
    result_block,
    strings,
    text_blocks,
    unknown_message,
    usage_of,
    word,
)

ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function"))
ITEMS = frozenset(("function_call", "function_call_output", "reasoning", "custom_tool_call", "custom_tool_call_output"))

#: Keys that hold lists of messages, the likeliest first.
HOLDERS = ("messages", "history", "traj", "conversation", "chat_history", "conversations", "input")
DISPLAY = "messages_display"

_SAYS = ("content", "tool_calls", "function_call")
_HELD = re.compile(rb'"(?:%b)"\s*:\s*(?=\[\s*\{)' % "|".join(HOLDERS).encode())
_ROLE = re.compile(rb'\{\s*"role"\s*:\s*"(?:system|developer|user|assistant)"\s*,')
_TRAJECTORY = re.compile(rb'"trajectory"\s*:\s*\[\s*\{\s*"(?:action|response|thought|observation|state)"\s*:')


def is_message(value: Any) -> bool:
    role = value.get("role") if isinstance(value, dict) else None
    return isinstance(role, str) and role in ROLES and any(key in value for key in _SAYS)


def is_item(value: Any) -> bool:
    """Return whether a value is an item of the newer interface that is no message."""
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and kind in ITEMS


def holder_in(value: Any) -> str:
    """Return the key under which an object holds messages; "" when it holds none."""
    return "" if not isinstance(value, dict) else next((key for key in HOLDERS if _is_list(value.get(key))), "")


def is_conversation(value: Any) -> bool:
    """Return whether a value is an object that holds messages, in a list or as one text."""
    return bool(holder_in(value)) or (isinstance(value, dict) and isinstance(value.get(DISPLAY), str))


def holder_of(data: bytes) -> str | None:
    """Return the key under which a document holds its messages; "" for a list, None when the data does not show it yet."""
    try:
        at = document_start(data)
    except Damage:
        return ""
    if data[at : at + 1] == b"[":
        return ""
    try:
        members = [(element.key, element.cut(data)) for element in elements(data, at)]
    except Damage:
        members = _outer_values(data, at)
    holders = [key for key, raw in members if key in HOLDERS and raw.startswith(b"[") and _is_list_text(raw)]
    if not holders and any(key == "trajectory" for key, _ in members):
        return "history"
    return min(holders, key=HOLDERS.index) if holders else None


def holds_messages(head: bytes) -> bool:
    """Return whether a file that begins like this clearly consists of messages."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        return _begins_with_messages(start)
    first = start.partition(b"\n")[0].rstrip()
    if first.endswith(b"}") and isinstance(decode_value(first), dict):
        values = records(start[: start.rfind(b"\n") + 1] or start)[:2]
        return bool(values) and all(is_message(one) or is_item(one) or is_conversation(one) for one in values)
    held = _HELD.search(start)
    return (held is not None and _begins_with_messages(start[held.end() :])) or _TRAJECTORY.search(start) is not None


def _outer_values(data: bytes, at: int) -> list[tuple[str, bytes]]:
    """Return the values of an object that breaks off; of the last one only its beginning."""
    values: list[tuple[str, bytes]] = []
    end = at
    try:
        for element in elements(data, at):
            values.append((element.key, element.cut(data)))
            end = element.start + element.size
    except Damage:
        pass
    begun = re.compile(rb'[\s,{]*"([a-z_]{1,40})"\s*:\s*(?=[\[{])').match(data, end)
    return [*values, (begun[1].decode(), data[begun.end() :])] if begun else values


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


# --- messages ---
#: Call ids where the format has none: call and result follow each other.
ACTION, SHOWN = "action", "shown"

_DISPLAYED = re.compile(rb"(user|assistant|tool|system): ?")
_ACTIONS = {
    "read": ("open", "goto", "scroll_up", "scroll_down"),
    "create": ("create",),
    "edit": ("edit",),
    "search": ("search_dir", "search_file", "find_file"),
    "other": ("submit", "exit", "exit_cost", "exit_context", "exit_error", "skip"),
}
_ACTION_OF = {name: kind for kind, names in _ACTIONS.items() for name in names}
_TIMES = ("timestamp", "created_at", "created", "time", "ts")
_THOUGHTS = ("reasoning_content", "reasoning", "thinking_blocks", "thinking")


def view(record: bytes) -> Message | None:
    if displayed := _DISPLAYED.match(record):
        return _displayed_message(displayed[1].decode(), decode_value(b'"' + record[displayed.end() :] + b'"'))
    value = decode_value(record)
    return build(value) if isinstance(value, dict) else context_message(value)


def build(value: dict[str, Any]) -> Message:
    if is_item(value):
        return _item_message(value)
    if not is_message(value):
        return context_message(value) if "role" not in value and "type" not in value else unknown_message(value)
    role = value["role"]
    if role in ("system", "developer") or value.get("is_demo"):
        role = "system" if role in ("system", "developer") else role
        return _message(value, role, "injected", "context", blocks_of(value.get("content"), "meta"))
    if role == "assistant":
        return _message(value, role, "model", "text", _answer_blocks(value))
    if role == "user" and not has_results(value.get("content")):
        return _message(value, role, "human", "text", blocks_of(value.get("content"), "prompt"), starts_turn=True)
    blocks = blocks_of(value.get("content"), "meta") if role == "user" else [_tool_result(value)]
    return _message(value, "tool", "tool", "result", blocks)


def _displayed_message(role: str, value: Any) -> Message:
    """Return a message of a conversation that is one text. The text lacks the arguments of tool calls."""
    text = value if isinstance(value, str) else ""
    if role == "assistant" and text == "None":
        call = Block("call", "", "tool_input", call=CallStart(SHOWN, "tool"))
        return Message(role, "model", "text", blocks=(call,), fidelity="partial")
    if role == "tool":
        result = Block("result", text, "tool_output", result=CallEnd(SHOWN))
        return Message(role, "tool", "result", blocks=(result,), fidelity="partial")
    origin, field = {"user": ("human", "prompt"), "assistant": ("model", "answer")}.get(role, ("injected", "meta"))
    blocks, kind = text_blocks(text, field), "context" if origin == "injected" else "text"
    return Message(role, origin, kind, blocks=blocks, starts_turn=role == "user", fidelity="partial")


def observed_result(message: Message) -> Message:
    """Return the result of an action, which is the user message after it."""
    text = "\n".join(block.text for block in message.blocks)
    others = [block for block in message.blocks if block.kind != "text"]
    blocks = (result_block(ACTION, text), *others) if len(message.blocks) == len(others) + 1 else message.blocks
    return Message("user", "tool", "output", message.at, message.precision, message.native_id, blocks=blocks)


def context_message(value: Any) -> Message:
    """Return a message with the metadata around the messages of a conversation: settings, results, counts."""
    return Message("system", "system", "context", blocks=text_blocks("\n".join(strings(value)), "meta"))


def _answer_blocks(value: dict[str, Any]) -> list[Block]:
    thoughts = [Block("thinking", text, "thinking") for key in _THOUGHTS for text in ["\n".join(strings(value.get(key), "type", "signature"))] if text]  # fmt: skip
    blocks = thoughts[:1] + blocks_of(value.get("content"), "answer")
    blocks += [Block("text", value["refusal"], "answer")] if isinstance(value.get("refusal"), str) else []
    calls = function_calls(value.get("tool_calls"))
    function = value.get("function_call")
    if isinstance(function, dict):
        name = word(function.get("name"))
        calls.append(call_block(f"function {name}", name, function.get("arguments"), function))
    action = value.get("action")
    if not calls and isinstance(action, str) and action.strip():
        calls.append(_action_call(action))
    return blocks + calls


def _action_call(action: str) -> Block:
    """Return the call of a command that the program extracted from the model's text."""
    first, *rest = action.split(None, 2)
    kind = _ACTION_OF.get(first, "shell")
    name = first if kind != "shell" else "bash"
    path = rest[0] if rest and kind in ("read", "create") and not rest[0].isdecimal() else ""
    start = CallStart(
        ACTION, name, kind, word(path).strip("\"'"), word(action.strip()) if kind == "shell" else "", {"action": action}
    )
    return Block("call", action.strip(), "tool_input", call=start)


def _tool_result(value: dict[str, Any]) -> Block:
    ids = value.get("tool_call_ids")
    call = word(value.get("tool_call_id")) or (word(ids[0]) if isinstance(ids, list) and ids else "")
    if not call and value["role"] == "function":
        call = f"function {word(value.get('name'))}"
    failed = value.get("is_error")
    return result_block(call, value.get("content"), failed if isinstance(failed, bool) else None, value)


def _item_message(value: dict[str, Any]) -> Message:
    kind, call = value["type"], word(value.get("call_id")) or word(value.get("id"))
    if kind == "reasoning":
        text = "\n".join(strings([value.get("summary"), value.get("content")], "type"))
        return _message(value, "assistant", "model", "text", [Block("thinking", text, "thinking", data=value)])
    if kind.endswith("_output"):
        return _message(value, "tool", "tool", "result", [result_block(call, value.get("output"), data=value)])
    arguments = value.get("arguments", value.get("input"))
    return _message(value, "assistant", "model", "text", [call_block(call, word(value.get("name")), arguments, value)])


def _message(
    value: dict[str, Any], role: str, origin: str, kind: str, blocks: list[Block], starts_turn: bool = False
) -> Message:
    at, precision = next((time for key in _TIMES if (time := milliseconds(value.get(key)))[1]), (None, ""))
    is_answer = origin == "model"
    return Message(
        role, origin, kind, at, precision, word(value.get("id")), "", word(value.get("model")) if is_answer else "",
        tuple(blocks), usage_of(value.get("usage")) if is_answer else None, starts_turn and bool(blocks),
    )  # fmt: skip
