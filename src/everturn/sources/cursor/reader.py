"""Read a conversation of Cursor: lines of a transcript or from a database, or an export. The first byte shows which."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, ReadResult, fingerprint
from everturn.sources.cursor.message import (
    EXPORT_TURN,
    bubble_message,
    export_message,
    is_known_bubble,
    is_known_line,
    line_message,
    parse_export_head,
    unknown_line,
)
from everturn.sources.toolkit.json_document import decode_item
from everturn.sources.toolkit.line_reader import Counted, LineReader, ReadTally, Rec, RecordPlace, mapping
from everturn.sources.toolkit.values import plain, word


class CursorReaderState(Struct, array_like=True):
    form: str = ""  # "lines" or "export", once that is known
    open_line: bool = False
    index: int = 0  # messages read
    model: str = ""
    linked: bool = False


class CursorReader(LineReader[CursorReaderState]):
    """Reads one conversation, in any form."""

    kind = CursorReaderState
    _data, _base = b"", 0  # the piece that is read

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        self._data, self._base = data, base
        if not self._state.form:
            start = data.removeprefix(b"\xef\xbb\xbf").lstrip()
            self._state.form = "" if not start else "export" if start.startswith(b"#") else "lines"
            if not start and not last:
                return ReadTally().reading(0)  # blanks: the form is still unknown
        if self._state.form == "export":
            return self._read_export(data, base, last)
        return super().feed(data, base, last)

    def _take(self, line: Rec, place: RecordPlace) -> Counted:
        start = place.start - self._base
        raw = self._data[start : start + place.size]
        if "conversation" in line:
            self._learn_head(line)
            return "(head)", "known", ""
        if "bubble" in line:
            bubble = mapping(line["bubble"])
            self._add(bubble_message(bubble), raw, place.start)
            disposition = "message" if is_known_bubble(bubble) else "unknown"
            return f"bubble/{plain(str(bubble.get('type'))[:20])}", disposition, ""
        if (message := line_message(line)) is not None:
            self._add(message, raw, place.start)
        disposition = "known" if message is None else "message" if is_known_line(line) else "unknown"
        return plain(line.get("type") or line.get("role")), disposition, ""

    def _learn_head(self, head: Rec) -> None:
        self._state.model = word(head.get("model"))
        self._open_session().learn(workspace=word(head.get("workspace")))
        if word(head.get("title")):
            self._open_session().learn(title=word(head.get("title")), title_rank=2)

    def _read_export(self, data: bytes, base: int, last: bool) -> ReadResult:
        self._gathering, consumed = ReadTally(), 0
        for start, end in _split_export(data, last):
            raw = data[start:end]
            text = raw.decode("utf-8", "replace")
            if text.strip():
                message = export_message(text)
                kind = {"user": "user", "assistant": "cursor"}.get(message.role, "(text)")
                if self._state.index == 0 and (head := parse_export_head(text)) is not None:
                    self._open_session().learn(title=head.title, title_rank=2 if head.title else 0, client=head.client)
                    kind = "(head)"
                self._add(message, raw, base + start)
                self._gathering.count(kind, "message")
            consumed = end
        return self._gathering.reading(consumed)

    def _add(self, message: Message, raw: bytes, start: int) -> None:
        state, session, candidate = self._state, self._open_session(), self._candidate
        if candidate.parent and not state.linked:
            state.linked = True
            session.links.append(Link("subagent_of", candidate.parent))
        if message.fingerprint is None:
            mark = blake2b(raw, digest_size=8).hexdigest()
            message = replace(message, fingerprint=fingerprint(f"{session.native_id}/{state.index}", mark))
        if message.origin == "human" and candidate.kind == "subagent":
            message = replace(message, origin="agent")
        if message.origin == "model":
            message = replace(message, model=message.model or state.model)
        for block in message.blocks:
            if block.result is not None and block.result.child:
                session.links.append(Link("spawned", block.result.child, block.result.call_id))
        session.messages.append(replace(message, start=start, size=len(raw)))
        state.index += 1


def _split_export(data: bytes, last: bool) -> Iterator[tuple[int, int]]:
    """Yield the range of each section, from one writer to the next; the last one ends with the file."""
    turns = EXPORT_TURN.finditer(data)
    starts = [turn.start() for turn in turns if last or turn.end() < len(data)]  # the line may be incomplete
    return pairwise([0, *(start for start in starts if start), *([len(data)] if last else [])])


def view(record_bytes: bytes) -> Message | None:
    """Return the message of a line, or of a section of an export."""
    value, _ = decode_item(record_bytes)
    if not isinstance(value, dict):
        return export_message(record_bytes.decode("utf-8", "replace"))
    if "bubble" in value:
        return bubble_message(mapping(value["bubble"]))
    return line_message(value) or unknown_line(value)
