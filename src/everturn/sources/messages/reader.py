"""Recognise and read message lists: one message per line, a document, or conversations in either.

The shapes of messages and of the objects that hold them, and the conversion of one element into a message.

{"role": …, "content": …}             a message; one per line, or the elements of a list
{"type": "function_call", …}          an item of the newer interface, among messages
{"messages": […], …}                  a conversation with metadata; also traj, history
{"messages_display": "user: …\n…"}    a conversation as one text

`build` and `view` convert an element independently of the elements around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, CallStart, Message, ReadResult, fingerprint
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.json_document import Damage, DocumentWalk, document_start, elements, follow_keys, settle
from everturn.sources.toolkit.line_reader import Counted, ReadTally, Rec, RecordPlace, add, read, records, walker
from everturn.sources.toolkit.values import (
    blocks_of,
    call_block,
    decode_value,
    function_calls,
    has_results,
    message_digest,
    milliseconds,
    plain,
    result_block,
    state_of,
    strings,
    text_blocks,
    unknown_message,
    usage_of,
    word,
)

_NAMES = ("title", "name", "instance_id", "task_id", "id")
#: Keys whose values repeat the messages in another form.
_REPLAYS = frozenset(("trajectory",))
_TURN = re.compile(rb"\\(?:(n)(?=(?:user|assistant|tool|system): )|.)", re.DOTALL)


class MessagesReaderState(Struct):
    mode: str = ""  # lines or document, once that is known
    holder: str = ""
    stage: str = ""  # of the walk over a document
    open_line: bool = False
    conversations: int = 0
    session: str = ""
    index: int = 0
    answers: int = 0
    spoke: bool = False  # the last message was the model's
    acting: bool = False  # an action waits for its result


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"[", b"{") or not holds_messages(head):
        return None
    return SourceCandidate(path, "main", f"{path.stem}@{path.parent.name}")


class MessagesReader:
    """Reads one file; each message has its own byte range."""

    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        self._state = state_of(state, MessagesReaderState)
        self._name = candidate.native_id or f"{candidate.path.stem}@{candidate.path.parent.name}"
        self._state.session = self._state.session or self._name
        self._has_lines = candidate.path.suffix in (".jsonl", ".ndjson")
        self._lines = walker(self._state.open_line)
        self._walk = DocumentWalk(self._state.holder, self._state.stage)
        self._tally = ReadTally()
        self._data, self._base = b"", 0

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        self._tally, self._data, self._base = ReadTally(), data, base
        if not self._state.mode and not self._choose_mode(data, last):
            return self._tally.defer_read(data, base, last)
        if self._state.mode == "lines":
            return read(self._tally, self._lines, data, base, last, self._read_line)
        return self._read_document(data, base, last)

    def state(self) -> bytes:
        self._state.open_line, self._state.stage = self._lines.open_line, self._walk.stage
        return msgspec.msgpack.encode(self._state)

    def _choose_mode(self, data: bytes, last: bool) -> bool:
        """Determine whether the file consists of lines or is a document; return False where more data is needed."""
        start = data.removeprefix(b"\xef\xbb\xbf").lstrip()
        first, end, _ = start.partition(b"\n")
        if not start or not (end or last or start.startswith(b"[")):
            return False
        if not start.startswith(b"[") and (
            start[:1] != b"{" or isinstance(decode_value(first), dict) or (self._has_lines and first.strip() != b"{")
        ):
            self._state.mode = "lines"
            return True
        if (holder := holder_of(data)) is None and not (last and end):
            return False
        self._state.mode, self._state.holder = "document", holder or "messages"
        self._walk = DocumentWalk(self._state.holder)
        return True

    def _read_document(self, data: bytes, base: int, last: bool) -> ReadResult:
        tally, walk = self._tally, self._walk
        for key, start, raw in walk.split(data, base, last):
            if (value := decode_value(raw)) is None and raw != b"null":
                tally.trouble("invalid_json", start, len(raw))
            elif key:
                tally.count(f"around/{plain(key)}", self._read_context(key, value, RecordPlace(start, len(raw))))
            elif is_conversation(value):
                tally.count("conversation", self._read_conversation(raw, value, start))
            else:
                tally.count(*self._read_element(value, RecordPlace(start, len(raw))))
        settle(walk, tally)
        return tally.reading(walk.consumed)

    def _read_context(self, key: str, value: object, place: RecordPlace) -> str:
        if key in _REPLAYS:
            return "known"
        if key in _NAMES[:2]:
            self._tally.session(self._state.session).learn(title=word(value), title_rank=1 if word(value) else 0)
        self._add(context_message(value), place)
        return "message"

    def _read_line(self, record: Rec, place: RecordPlace) -> Counted:
        if is_conversation(record):
            start = place.start - self._base
            raw = self._data[start : start + place.size]
            return "conversation", self._read_conversation(raw, record, place.start), ""
        return *self._read_element(record, place), ""

    def _read_conversation(self, raw: bytes, value: Rec, start: int) -> str:
        """Read an object that holds a whole conversation as a session of its own."""
        state, before = self._state, self._state.session
        state.conversations += 1
        state.session = f"{self._name}/{state.conversations}"
        state.index, state.spoke, state.acting = 0, False, False
        title = next((str(value[key]) for key in _NAMES if isinstance(value.get(key), str | int)), "")
        self._tally.session(state.session).learn(title=title, title_rank=1 if title else 0)
        parts = _split_display(raw) if isinstance(value.get(DISPLAY), str) else _split_list(raw, holder_in(value))
        for at, part in parts:
            if (message := view(part)) is not None:
                self._add(message, RecordPlace(start + at, len(part)))
        state.session, state.index = before, 0
        return "message"

    def _read_element(self, value: object, place: RecordPlace) -> tuple[str, str]:
        if is_message(value) or is_item(value):
            assert isinstance(value, dict)
            self._add(build(value), place)
            return plain(value.get("role", value.get("type"))), "message"
        self._add(build(value) if isinstance(value, dict) else unknown_message(value), place)
        return "?", "unknown"

    def _add(self, message: Message, place: RecordPlace) -> None:
        """Add a message with its response; after an action, a user message is the result of the action."""
        state = self._state
        if message.origin == "human" and state.acting:
            message = observed_result(message)
        if message.origin == "model":
            state.answers += not state.spoke
            message = replace(message, provider_id=f"{state.session}/{state.answers}")
            state.acting = any(block.call is not None and block.call.call_id == ACTION for block in message.blocks)
        elif message.origin in ("tool", "human"):
            state.acting = False
        state.spoke = message.origin == "model"
        identity = fingerprint(f"{state.session}/{state.index}", message_digest(message))
        state.index += 1
        message = replace(message, start=place.start, size=place.size, fingerprint=identity)
        add(self._tally, self._tally.session(state.session), message)


def _split_list(raw: bytes, holder: str) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and the bytes of each element in the message list of a conversation."""
    try:
        if (held := follow_keys(raw, raw.find(b"{"), holder)) is not None:
            for element in elements(raw, held.start):
                yield element.start, element.cut(raw)
    except Damage:
        return


def _split_display(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and the bytes of each message in a conversation that is one JSON string."""
    try:
        text = follow_keys(raw, raw.find(b"{"), DISPLAY)
    except Damage:
        return
    if text is None:
        return
    start, end = text.start + 1, text.start + text.size - 1
    for turn in _TURN.finditer(raw, start, end):
        if turn[1]:
            yield start, raw[start : turn.start()]
            start = turn.end()
    yield start, raw[start:end]


# --- The shapes of messages and of the objects that hold them, and the conversion of one element into a message ---
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
    return bool(holder_of(start)) and (_HELD.search(start) is not None or _TRAJECTORY.search(start) is not None)


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
