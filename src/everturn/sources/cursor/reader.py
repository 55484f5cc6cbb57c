"""Reads a conversation of Cursor: lines of a transcript or from a database, or an export. Its first byte says which.

The bytes of a message → the message, for whoever shows or exports it. Their own shape says what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, ReadResult, fingerprint
from everturn.sources.contract import SourceCandidate, SourceReader
from everturn.sources.cursor import message
from everturn.sources.cursor import message as bubbles
from everturn.sources.cursor import message as export
from everturn.sources.cursor import message as said
from everturn.sources.toolkit.json_document import decode_item, record
from everturn.sources.toolkit.json_lines import JsonLines
from everturn.sources.toolkit.line_reader import ReadTally, SessionTally
from everturn.sources.toolkit.values import plain, word

_decode: Callable[[bytes | memoryview], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode


class CursorReaderState(Struct, array_like=True):
    """What a later reader needs."""

    form: str = ""  # "lines" or "export", once that is known
    open_line: bool = False
    index: int = 0  # messages read
    model: str = ""
    linked: bool = False


def reader(found: SourceCandidate, state: bytes) -> SourceReader:
    """The reader of a file."""
    try:
        known = msgspec.msgpack.decode(state, type=CursorReaderState) if state else CursorReaderState()
    except (msgspec.DecodeError, UnicodeDecodeError):
        known = CursorReaderState()
    return CursorReader(found, known)


class CursorReader:
    """One conversation, in any form."""

    def __init__(self, found: SourceCandidate, state: CursorReaderState) -> None:
        self._found, self._state = found, state
        self._lines = JsonLines[dict[str, Any]](_decode, lambda value: value, state.open_line)
        self._gathering = ReadTally()

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        self._gathering = ReadTally()
        if not self._state.form:
            start = data.removeprefix(b"\xef\xbb\xbf").lstrip()
            self._state.form = "" if not start else "export" if start.startswith(b"#") else "lines"
            if not start and not last:
                return self._gathering.reading(0)  # blanks: of what, is still to come
        return (
            self._feed_export(data, base, last) if self._state.form == "export" else self._feed_lines(data, base, last)
        )

    def state(self) -> bytes:
        """See `sources.Reader`."""
        self._state.open_line = self._lines.open_line
        return msgspec.msgpack.encode(self._state)

    # lines ----------------------------------------------------------------------------------------------------------------
    def _feed_lines(self, data: bytes, base: int, last: bool) -> ReadResult:
        gathering, lines = self._gathering, self._lines
        for start, raw, found, trouble in lines.split(data, base, last):
            if trouble:
                gathering.trouble(trouble, start, len(raw), is_record=found is None)
            if found is not None:
                self._record(found, bytes(raw), start)
        if lines.tail is not None:
            start, size, trouble = lines.tail
            gathering.trouble(trouble, start, size, is_record=False, provisional=True)
        return gathering.reading(lines.consumed, lines.lines, lines.glued)

    def _record(self, found: dict[str, Any], raw: bytes, start: int) -> None:
        count = self._gathering.count
        if "conversation" in found:
            self._learn(found)
            count("(head)", "known")
        elif "bubble" in found:
            inside = record(found["bubble"])
            self._say(bubbles.bubble(inside), raw, start)
            count(
                f"bubble/{plain(str(inside.get('type'))[:20])}",
                "message" if bubbles.is_known_bubble(inside) else "unknown",
            )
        else:
            message = said.read_line(found)
            if message is not None:
                self._say(message, raw, start)
            known = "known" if message is None else "message" if said.is_known_line(found) else "unknown"
            count(plain(found.get("type") or found.get("role")), known)

    def _learn(self, head: dict[str, Any]) -> None:
        self._state.model = word(head.get("model"))
        self._talk().learn(workspace=word(head.get("workspace")))
        if word(head.get("title")):
            self._talk().learn(title=word(head.get("title")), title_rank=2)

    # exports --------------------------------------------------------------------------------------------------------------
    def _feed_export(self, data: bytes, base: int, last: bool) -> ReadResult:
        consumed = 0
        for start, end in _split_export(data, last):
            raw = data[start:end]
            text = raw.decode("utf-8", "replace")
            if not text.strip():
                pass
            elif self._state.index == 0 and (head := export.head_of(text)) is not None:
                self._talk().learn(title=head.title, title_rank=2 if head.title else 0, client=head.client)
                self._add(export.export_message(text), raw, base + start, "(head)")
            else:
                message = export.export_message(text)
                self._add(
                    message, raw, base + start, {"user": "user", "assistant": "cursor"}.get(message.role, "(text)")
                )
            consumed = end
        return self._gathering.reading(consumed)

    def _add(self, message: Message, raw: bytes, start: int, kind: str) -> None:
        self._say(message, raw, start)
        self._gathering.count(kind, "message")

    # adding up --------------------------------------------------------------------------------------------------------------
    def _say(self, message: Message, raw: bytes, start: int) -> None:
        state, talk, found = self._state, self._talk(), self._found
        if found.parent and not state.linked:
            state.linked = True
            talk.links.append(Link("subagent_of", found.parent))
        if message.fingerprint is None:
            mark = blake2b(raw, digest_size=8).hexdigest()
            message = replace(message, fingerprint=fingerprint(f"{talk.native_id}/{state.index}", mark))
        if message.origin == "human" and found.kind == "subagent":
            message = replace(message, origin="agent")
        if message.origin == "model":
            message = replace(message, model=message.model or state.model)
        for block in message.blocks:
            if block.result is not None and block.result.child:
                talk.links.append(Link("spawned", block.result.child, block.result.call_id))
        talk.messages.append(replace(message, start=start, size=len(raw)))
        state.index += 1

    def _talk(self) -> SessionTally:
        found = self._found
        return self._gathering.session(found.native_id or found.path.stem, found.kind, found.parent)


def _split_export(data: bytes, last: bool) -> Iterator[tuple[int, int]]:
    """From one speaker to the next; the last one ends with the file."""
    found = export.TURN.finditer(data)
    starts = [turn.start() for turn in found if last or turn.end() < len(data)]  # the line may go on
    cuts = [0, *(start for start in starts if start), *([len(data)] if last else [])]
    return pairwise(cuts)


def view(record_bytes: bytes) -> Message | None:
    """A line, or a stretch of an export."""
    value, _ = decode_item(record_bytes)
    if not isinstance(value, dict):
        return message.export_message(record_bytes.decode("utf-8", "replace"))
    if "bubble" in value:
        return message.bubble(record(value["bubble"]))
    return message.read_line(value) or message.unknown(value)
