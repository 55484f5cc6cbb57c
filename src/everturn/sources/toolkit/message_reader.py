"""Readers of formats in which a line, or an element of a list, is at most one message.

A format gives two functions: `build` converts one record to its message (None if it holds none; kind `unknown` if it is not
known), and `facts` says what a record tells about the session. Ids, byte ranges, counting and damage are the same for all.
A response without an id of its own is told from others by its position.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, Census, Link, Message, ReadResult, SessionFacts, SessionPart, fingerprint
from everturn.model.vocabulary import ERROR_CLASSES, PRECISIONS
from everturn.sources.contract import SourceCandidate, SourceReader
from everturn.sources.toolkit.json_document import DocumentItem, DocumentReader, decode_item
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    ReadTally,
    Rec,
    RecordPlace,
    SessionTally,
    add,
    single_record,
)
from everturn.sources.toolkit.values import count, exit_code, message_digest, milliseconds, plain, unknown_message, word

#: Facts of `SessionFacts`.
Facts = dict[str, Any]


class MessageReaderState(Struct, array_like=True):
    """The state from which a later reader continues."""

    open_line: bool = False
    stage: str = ""  # of the walk through a document
    index: int = 0  # records read


class RecordFormat(Struct, frozen=True):
    """How the records of a format become messages. `reader` and `view` are those of a `Source` whose records are lines."""

    build: Callable[[Rec], Message | None]
    name: Callable[[Rec], str]  # the type of a record, for the count of record types
    facts: Callable[[Rec], Facts] = lambda record: {}

    def reader(self, candidate: SourceCandidate, state: bytes) -> SourceReader:
        return MessageLines(self, candidate, state)

    def view(self, raw: bytes) -> Message | None:
        record = single_record(raw)
        return self.build(record) if record is not None else None


def view_element(build: Callable[[Rec], Message | None], raw: bytes) -> Message | None:
    """Return the message of an element of a document; None for bytes that cannot be decoded."""
    value, _ = decode_item(raw)
    return build(value) if isinstance(value, dict) else None if value is None else unknown_message(value)


class MessageLines(LineReader[MessageReaderState]):
    """Reads a conversation in which every line is a record."""

    kind = MessageReaderState

    def __init__(self, form: RecordFormat, candidate: SourceCandidate, state: bytes) -> None:
        super().__init__(candidate, state)
        self._form = form

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        session = _open(self._gathering, self._candidate)
        return *_take_record(self._form, self._gathering, session, self._state, record, place), ""


class MessageElements(DocumentReader[MessageReaderState]):
    """Reads a document in which every element of one list is a record; `about` gets the other values."""

    kind = MessageReaderState

    def __init__(
        self, form: RecordFormat, key: str, candidate: SourceCandidate, state: bytes, about: Callable[[str, Any], Facts]
    ) -> None:
        self.key = key
        super().__init__(candidate, state)
        self._form, self._about = form, about

    def _read_item(self, item: DocumentItem, value: Any) -> None:
        session = _open(self._tally, self._candidate)
        if item.key:
            session.learn(**self._about(item.key, value))
            self._tally.count(f"({plain(item.key)})", "known")
            return
        place = RecordPlace(item.start, len(item.raw))
        self._tally.count(*_take_record(self._form, self._tally, session, self._state, value, place))


def _open(tally: ReadTally, candidate: SourceCandidate) -> SessionTally:
    kind = candidate.kind if candidate.kind not in ("container", "bundle") else "main"
    return tally.session(candidate.native_id or candidate.path.stem, kind, candidate.parent)


def _take_record(
    form: RecordFormat,
    tally: ReadTally,
    session: SessionTally,
    state: MessageReaderState,
    record: Rec,
    place: RecordPlace,
) -> tuple[str, str]:
    """Add the message of a record, if it has one; return how to count the record."""
    session.learn(**form.facts(record))
    message, index = form.build(record), state.index
    state.index += 1
    name = plain(form.name(record))
    if message is None:
        return name, "known"
    if message.origin == "human" and session.kind == "subagent":
        message = replace(message, origin="agent")
    if message.origin == "model" and not message.provider_id:
        message = replace(message, provider_id=f"{session.native_id}/{index}")
    identity = fingerprint(f"{session.native_id}/{message.native_id or index}", message_digest(message))
    add(tally, session, replace(message, start=place.start, size=place.size, fingerprint=identity))
    return ("?", "unknown") if message.kind == "unknown" else (name, "message")


def record_message(
    record: Rec,
    place: RecordPlace,
    role: str,
    origin: str,
    blocks: tuple[Block, ...],
    kind: str = "text",
    key: str = "id",
) -> Message:
    """Return the message of a record with a `timestamp`, and with an id of its own under `key` if it has one."""
    at, precision = milliseconds(record.get("timestamp"))
    name = word(record.get(key))
    return Message(
        role, origin, kind, at, precision, name, blocks=blocks, start=place.start, size=place.size,
        fingerprint=fingerprint(name, word(record.get("timestamp"))) if name else None,
    )  # fmt: skip


# --- what everturn itself has noted beside a message that it wrote in a format of others ---


def told_word(own: Rec, key: str, known: Collection[str], usual: str) -> str:
    """Return a note that is one of the known words, else the usual one."""
    told = word(own.get(key))
    return told if told and told in known else usual


def told_time(own: Rec, at: Any) -> tuple[int | None, str]:
    """Return a time with the precision that was noted."""
    found, precision = milliseconds(at)
    return found, precision if found is None else told_word(own, "precision", PRECISIONS, precision)


def told_outcome(own: Rec, block: Block) -> Block:
    """Return the block of a result with how the call ended, if that was noted."""
    end = block.result
    if not own or end is None:
        return block
    failure = told_word(own, "error_class", ERROR_CLASSES, end.error_class) if end.is_error else ""
    status, took = exit_code(own.get("exit_status")), count(own.get("duration_ms"))
    return replace(block, result=replace(end, error_class=failure, exit_status=status, duration_ms=took))


class NoteReader:
    """Reads a text beside the transcripts, one message for each piece of it, as a session that is about another one."""

    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        self._candidate = candidate

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        end = len(data) if last else data.rfind(b"\n") + 1
        if not end:
            return ReadResult(0, [], [], [], 0)
        found = self._candidate
        links = [Link("about", found.parent)] if found.parent and not base else []
        part = SessionPart(found.native_id, SessionFacts(found.kind, found.parent), [note(data[:end], base)], links)
        return ReadResult(end, [part], [], [Census("(note)", "", "message", 1)], 1)

    def state(self) -> bytes:
        return b""


def note(raw: bytes, start: int = 0) -> Message:
    """Return the message of a text beside the transcripts."""
    block = Block("text", raw.decode("utf-8", "replace"), "meta")
    return Message("system", "system", "context", blocks=(block,), start=start, size=len(raw))
