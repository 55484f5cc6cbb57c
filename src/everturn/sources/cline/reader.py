"""Reads the documents of a task. Each element says by its own shape what it is; the file's kind, how much of it is wanted.

The bytes of a message → the message, for whoever shows or exports it. Their own shape says what they are.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, ReadResult, TokenUsage, fingerprint
from everturn.sources.cline import message
from everturn.sources.cline import message as history
from everturn.sources.cline.calls import folder_in
from everturn.sources.cline.files import is_noted_file, noted_file, version_in
from everturn.sources.contract import SourceCandidate, SourceReader
from everturn.sources.toolkit.json_document import DocumentItem, DocumentWalk, decode_item, settle, value_of
from everturn.sources.toolkit.line_reader import ReadTally, SessionTally
from everturn.sources.toolkit.values import milliseconds, plain, word

_RANGE = "conversationHistoryDeletedRange"


class ClineReaderState(Struct, array_like=True):
    """What a later reader needs."""

    stage: str = ""
    index: int = 0  # elements read
    waiting: list[str] = []  # calls of the last answer
    request: int = 0  # number of the last request, in a panel
    tokens: list[int] = []  # of it, not yet given to an answer
    deleted: str = ""  # the last stretch of history that was left out
    workspace: bool = False
    linked: bool = False


def reader(found: SourceCandidate, state: bytes) -> SourceReader:
    """The reader of a file."""
    try:
        known = msgspec.msgpack.decode(state, type=ClineReaderState) if state else ClineReaderState()
    except (msgspec.DecodeError, UnicodeDecodeError):
        known = ClineReaderState()
    return ClineReader(found, known)


class ClineReader:
    """One document of a task."""

    def __init__(self, found: SourceCandidate, state: ClineReaderState) -> None:
        self._found, self._state = found, state
        self._walk = DocumentWalk("files_in_context", state.stage)
        self._gathering = ReadTally()

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        gathering, walk = ReadTally(), self._walk
        self._gathering = gathering
        for item in walk.split(data, base, last):
            value, trouble = value_of(item)
            if trouble:
                gathering.trouble(trouble, item.start, len(item.raw), is_record=value is None)
            if not trouble or value is not None:
                self._item(item, value)
        settle(walk, gathering)
        return gathering.reading(walk.consumed)

    def state(self) -> bytes:
        """See `sources.Reader`."""
        self._state.stage = self._walk.stage
        return msgspec.msgpack.encode(self._state)

    def _item(self, item: DocumentItem, value: Any) -> None:
        if item.key:
            self._talk().learn(client=version_in(item.key, value))
            self._gathering.count(f"({plain(item.key)})", "known")
            return
        if "role" in value or value.get("type") == "reasoning":
            self._gathering.count(plain(value.get("role")), self._element(item, value))
        elif message.kind_of(value):
            kind = plain(message.kind_of(value))
            self._gathering.count(f"{plain(value.get('type'))}/{kind}", self._shown(item, value))
        elif is_noted_file(value):
            self._gathering.count("(file)", self._say(noted_file(value), item, 0))
        else:
            self._say(message.unknown_element(value), item, 0)
            self._gathering.count("?", "unknown")
        self._state.index += 1

    # what the model was told and answered -------------------------------------------------------------------------------
    def _element(self, item: DocumentItem, value: dict[str, Any]) -> str:
        role, content = word(value.get("role")), value.get("content")
        if message.is_summary(value):
            return self._say(message.summary(value), item, 0)
        if role == "assistant" or word(value.get("type")) == "reasoning":
            return self._answer(message.answer(value), item)
        if role != "user" or not isinstance(content, (str, list)):
            self._say(message.unknown_element(value), item, 0)
            return "unknown"
        blocks = [content] if isinstance(content, str) else content
        at, precision = message.moment(value, blocks)
        self._place(folder_in(message.details(blocks)))
        pieces = _blocks(item) if isinstance(content, list) else [item]
        for number, segment in enumerate(message.segments(blocks)):
            made = message.segment_message(blocks[segment.first : segment.last + 1], segment.kind)
            made = replace(self._pair_result(made), at=at, precision=precision)
            self._say(made, _join_blocks(item, pieces[segment.first], pieces[segment.last]), number)
        return "message" if blocks else "known"

    def _answer(self, message: Message, item: DocumentItem) -> str:
        self._state.waiting = [block.call.call_id for block in message.blocks if block.call is not None]
        return self._say(replace(message, provider_id=f"{self._name()}/{self._state.index}"), item, 0)

    def _pair_result(self, message: Message) -> Message:
        """The head of a result may quote a call in other words: then the only waiting call of that tool is meant."""
        end = message.blocks[0].result if message.blocks else None
        waiting = self._state.waiting
        if end is None or end.call_id in waiting:
            return message
        tool = end.call_id.partition(":")[0]
        meant = [name for name in waiting if name.partition(":")[0] == tool]
        if len(meant) != 1:
            return message
        first = replace(message.blocks[0], result=replace(end, call_id=meant[0]))
        return replace(message, blocks=(first, *message.blocks[1:]))

    # what the human was shown ---------------------------------------------------------------------------------------------
    def _shown(self, item: DocumentItem, value: dict[str, Any]) -> str:
        state, kind = self._state, message.kind_of(value)
        self._note_truncation(item, value)
        if kind == message.REQUEST:
            state.request, state.tokens = state.index + 1, _tokens(message.usage(value))
        beside = self._found.kind == "meta"
        if beside and kind in message.KNOWN and kind not in message.NOTICES | message.COMPACTED | {message.THOUGHT}:
            return self._add_request_tokens(item, value)
        made = message.shown_message(value, _is_first(value, state.index))
        if made is None:
            return "known"
        if made.origin == "model":
            tokens, state.tokens = state.tokens, []
            made = replace(
                made, provider_id=f"{self._name()}/{state.request}", usage=TokenUsage(*tokens) if tokens else None
            )
        elif details := next((block.text for block in made.blocks if block.field == "meta"), ""):
            self._place(folder_in(details))
        self._say(made, item, 0)
        return "message" if kind in message.KNOWN else "unknown"

    def _add_request_tokens(self, item: DocumentItem, value: dict[str, Any]) -> str:
        """Beside the history only the tokens of a request are told, and not those that the history has itself."""
        tokens, self._state.tokens = self._state.tokens, []
        where = next((one for one in DocumentWalk("").split(item.raw, item.start, True) if one.key == "text"), None)
        if not tokens or where is None or "modelInfo" in value:
            return "known"
        at, precision = milliseconds(value.get("ts"))
        name = f"{self._name()}/{self._state.request}"
        message = Message("assistant", "model", "text", at, precision, provider_id=name, usage=TokenUsage(*tokens))
        return self._say(message, where, 0)

    def _note_truncation(self, item: DocumentItem, value: dict[str, Any]) -> None:
        """A new stretch of history that the model is no longer told."""
        deleted = str(value.get(_RANGE) or "")
        if not deleted or deleted == self._state.deleted:
            return
        self._state.deleted = deleted
        for one in DocumentWalk("").split(item.raw, item.start, True):
            if one.key == _RANGE:
                self._say(Message("system", "system", "compaction", *milliseconds(value.get("ts"))), one, 1)

    # adding up --------------------------------------------------------------------------------------------------------------
    def _say(self, message: Message, where: DocumentItem, number: int) -> str:
        talk, found = self._talk(), self._found
        if found.parent and not self._state.linked:
            self._state.linked = True
            talk.links.append(Link("about", found.parent))
        mark = blake2b(where.raw, digest_size=8).hexdigest()
        identity = fingerprint(f"{talk.native_id}/{self._state.index}/{number}", mark)
        talk.messages.append(replace(message, start=where.start, size=len(where.raw), fingerprint=identity))
        return "message"

    def _place(self, folder: str) -> None:
        if folder and not self._state.workspace:
            self._state.workspace = True
            self._talk().learn(workspace=folder)

    def _name(self) -> str:
        return self._found.native_id or self._found.path.stem

    def _talk(self) -> SessionTally:
        return self._gathering.session(self._name(), self._found.kind, self._found.parent)


def _blocks(item: DocumentItem) -> list[DocumentItem]:
    """The content blocks of an element."""
    return [one for one in DocumentWalk("content").split(item.raw, item.start, True) if not one.key]


def _join_blocks(item: DocumentItem, first: DocumentItem, last: DocumentItem) -> DocumentItem:
    """The bytes from one block of an element to another."""
    end = last.start + len(last.raw)
    return DocumentItem("", first.start, item.raw[first.start - item.start : end - item.start])


def _is_first(value: dict[str, Any], index: int) -> bool:
    return index == 0 or value.get("conversationHistoryIndex") == -1


def _tokens(usage: TokenUsage | None) -> list[int]:
    return [usage.input, usage.output, usage.cache_read, usage.cache_write] if usage is not None else []


def view(record_bytes: bytes) -> Message | None:
    """An element, some content blocks of one (without brackets around them), or a note in one; None when it is no JSON."""
    value, _ = decode_item(record_bytes)
    if value is None:
        value, _ = decode_item(b"[" + record_bytes + b"]")
        return _blocks_message(value) if isinstance(value, list) and value else None
    if isinstance(value, dict):
        return _element(value)
    if isinstance(value, list):
        return Message("system", "system", "compaction")
    return Message("assistant", "model")


def _element(value: dict[str, Any]) -> Message:
    if message.kind_of(value):
        first = value.get("conversationHistoryIndex") == -1
        return message.shown_message(value, first) or Message("system", "system", "notice")
    if is_noted_file(value):
        return noted_file(value)
    if "role" not in value and word(value.get("type")) != "reasoning":
        return _blocks_message([value]) if "type" in value else history.unknown_element(value)
    return _history_message(value)


def _history_message(value: dict[str, Any]) -> Message:
    if history.is_summary(value):
        return history.summary(value)
    if value.get("role") == "assistant" or word(value.get("type")) == "reasoning":
        return history.answer(value)
    content = value.get("content")
    if value.get("role") != "user" or not isinstance(content, (str, list)):
        return history.unknown_element(value)
    return _blocks_message([content] if isinstance(content, str) else content)


def _blocks_message(blocks: list[Any]) -> Message:
    found = history.segments(blocks)
    message = history.segment_message(blocks, found[0].kind if found else "context")
    at, precision = history.moment({}, blocks)
    return replace(message, at=at, precision=precision)
