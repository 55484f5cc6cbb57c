"""Recognise and read message lists: one message per line, a document, or conversations in either."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Message, ReadResult, fingerprint
from everturn.sources.contract import SourceCandidate
from everturn.sources.messages.message import (
    ACTION,
    DISPLAY,
    build,
    context_message,
    holder_in,
    holder_of,
    holds_messages,
    is_conversation,
    is_item,
    is_message,
    observed_result,
    view,
)
from everturn.sources.toolkit.json_document import Damage, DocumentWalk, elements, follow_keys, settle
from everturn.sources.toolkit.line_reader import Counted, ReadTally, Rec, RecordPlace, add, read, walker
from everturn.sources.toolkit.values import decode_value, message_digest, plain, state_of, unknown_message, word

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
            if last and data.strip():
                self._tally.trouble("torn_tail", base, len(data), is_record=False, provisional=True)
            return self._tally.reading(0)
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
