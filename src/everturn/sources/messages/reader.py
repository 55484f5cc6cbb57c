"""Reads message lists: one per line, a document, or conversations in either, each message with its own byte range."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    is_conversation,
    is_item,
    is_message,
    observed_result,
    unknown,
    view,
)
from everturn.sources.toolkit.json_document import Damage, DocumentWalk, elements, follow_keys, settle
from everturn.sources.toolkit.line_reader import Counted, ReadTally, Rec, RecordPlace, add, read, walker
from everturn.sources.toolkit.values import decode_value, digest, plain, state_of, word

_NAMES = ("title", "name", "instance_id", "task_id", "id")
#: Repeats the messages in other words.
_REPLAYS = frozenset(("trajectory",))
_TURN = re.compile(rb"\\(?:(n)(?=(?:user|assistant|tool|system): )|.)", re.DOTALL)


class MessagesReaderState(Struct):
    """What a later reader needs to go on."""

    mode: str = ""  # lines or document, once that is known
    holder: str = ""
    stage: str = ""  # of the walk over a document
    open_line: bool = False
    conversations: int = 0
    session: str = ""
    index: int = 0
    answers: int = 0
    spoke: bool = False  # the last message was the model's
    acting: bool = False  # an action waits for what it gives back


class MessagesReader:
    """One file."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        self._state = state_of(state, MessagesReaderState)
        self._name = found.native_id or f"{found.path.stem}@{found.path.parent.name}"
        self._state.session = self._state.session or self._name
        self._lined = found.path.suffix in (".jsonl", ".ndjson")
        self._lines = walker(self._state.open_line)
        self._walk = DocumentWalk(self._state.holder, self._state.stage)
        self._gathering = ReadTally()
        self._piece = b"", 0

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        self._gathering, self._piece = ReadTally(), (data, base)
        if not self._state.mode and not self._settle_mode(data, last):
            if last and data.strip():
                self._gathering.trouble("torn_tail", base, len(data), is_record=False, provisional=True)
            return self._gathering.reading(0)
        if self._state.mode == "lines":
            return read(self._gathering, self._lines, data, base, last, self._line)
        return self._document(data, base, last)

    def state(self) -> bytes:
        """See `sources.Reader`."""
        self._state.open_line, self._state.stage = self._lines.open_line, self._walk.stage
        return msgspec.msgpack.encode(self._state)

    def _settle_mode(self, data: bytes, last: bool) -> bool:
        """Whether the file is made of lines or is a document, and where the messages are in it."""
        start = data.removeprefix(b"\xef\xbb\xbf").lstrip()
        first, end, _ = start.partition(b"\n")
        if not start or not (end or last or start.startswith(b"[")):
            return False
        if not start.startswith(b"[") and (self._lined or start[:1] != b"{" or isinstance(decode_value(first), dict)):
            self._state.mode = "lines"
            return True
        holder = holder_of(data)
        if holder is None and not (last and end):
            return False
        self._state.mode, self._state.holder = "document", holder or "messages"
        self._walk = DocumentWalk(self._state.holder)
        return True

    # documents ------------------------------------------------------------------------------------------------------
    def _document(self, data: bytes, base: int, last: bool) -> ReadResult:
        gathering, walk = self._gathering, self._walk
        for key, start, raw in walk.split(data, base, last):
            value = decode_value(raw)
            if value is None and raw != b"null":
                gathering.trouble("invalid_json", start, len(raw))
            elif key:
                gathering.count(f"around/{plain(key)}", self._read_context(key, value, RecordPlace(start, len(raw))))
            elif is_conversation(value):
                gathering.count("conversation", self._conversation(raw, value, start))
            else:
                gathering.count(*self._element(value, RecordPlace(start, len(raw))))
        settle(walk, gathering)
        return gathering.reading(walk.consumed)

    def _read_context(self, key: str, value: object, place: RecordPlace) -> str:
        if key in _REPLAYS:
            return "known"
        if key in _NAMES[:2]:
            self._gathering.session(self._state.session).learn(title=word(value), title_rank=1 if word(value) else 0)
        self._add(context_message(value), place)
        return "message"

    # lines ----------------------------------------------------------------------------------------------------------
    def _line(self, record: Rec, place: RecordPlace) -> Counted:
        if is_conversation(record):
            data, base = self._piece
            raw = data[place.start - base : place.start - base + place.size]
            return "conversation", self._conversation(raw, record, place.start), ""
        return *self._element(record, place), ""

    # both -----------------------------------------------------------------------------------------------------------
    def _conversation(self, raw: bytes, value: Rec, start: int) -> str:
        """A conversation of its own."""
        state, before = self._state, self._state.session
        state.conversations += 1
        state.session = f"{self._name}/{state.conversations}"
        state.index, state.spoke, state.acting = 0, False, False
        title = next((str(value[key]) for key in _NAMES if isinstance(value.get(key), str | int)), "")
        self._gathering.session(state.session).learn(title=title, title_rank=1 if title else 0)
        pieces = _split_display(raw) if isinstance(value.get(DISPLAY), str) else _list_elements(raw, holder_in(value))
        for at, piece in pieces:
            message = view(piece)
            if message is not None:
                self._add(message, RecordPlace(start + at, len(piece)))
        state.session, state.index = before, 0
        return "message"

    def _element(self, value: object, place: RecordPlace) -> tuple[str, str]:
        if is_message(value) or is_item(value):
            assert isinstance(value, dict)
            self._add(build(value), place)
            return plain(value.get("role", value.get("type"))), "message"
        self._add(build(value) if isinstance(value, dict) else unknown(value), place)
        return "?", "unknown"

    def _add(self, message: Message, place: RecordPlace) -> None:
        """The message with what only its place tells: which response it is of, and what it gives back."""
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
        words = digest(message.role, *(block.text for block in message.blocks))
        prints = fingerprint(f"{state.session}/{state.index}", words)
        state.index += 1
        talk = self._gathering.session(state.session)
        add(self._gathering, talk, replace(message, start=place.start, size=place.size, fingerprint=prints))


def _list_elements(raw: bytes, holder: str) -> Iterator[tuple[int, bytes]]:
    """The elements of the list in a conversation, and where they begin."""
    try:
        found = follow_keys(raw, raw.find(b"{"), holder)
        if found is not None:
            for element in elements(raw, found.start):
                yield element.start, element.cut(raw)
    except Damage:
        return


def _split_display(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """The pieces of a conversation that is one text, as they stand in the JSON of it."""
    try:
        found = follow_keys(raw, raw.find(b"{"), DISPLAY)
    except Damage:
        return
    if found is None:
        return
    start, end = found.start + 1, found.start + found.size - 1
    for turn in _TURN.finditer(raw, start, end):
        if turn[1]:
            yield start, raw[start : turn.start()]
            start = turn.end()
    yield start, raw[start:end]
