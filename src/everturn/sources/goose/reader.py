"""Reads a session: lines of a file, or of the database taken apart. The first says where and about what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Message, ReadResult, fingerprint
from everturn.sources import SourceCandidate, SourceReader
from everturn.sources.foreign import digest, plain, word
from everturn.sources.goose.content import message
from everturn.sources.jsonl import JsonLines
from everturn.sources.tally import ReadTally, SessionTally
from everturn.sources.wholefile import decode_item, record

_decode: Callable[[bytes | memoryview], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode


class GooseReaderState(Struct, array_like=True):
    """What a later reader needs."""

    open_line: bool = False
    index: int = 0  # messages read
    model: str = ""


def reader(found: SourceCandidate, state: bytes) -> SourceReader:
    """The reader of a file."""
    try:
        known = msgspec.msgpack.decode(state, type=GooseReaderState) if state else GooseReaderState()
    except (msgspec.DecodeError, UnicodeDecodeError):
        known = GooseReaderState()
    return GooseReader(found, known)


def view(record_bytes: bytes) -> Message | None:
    """The message of a line; None when it is none."""
    value, _ = decode_item(record_bytes)
    return message(value) if isinstance(value, dict) else None


class GooseReader:
    """One session."""

    def __init__(self, found: SourceCandidate, state: GooseReaderState) -> None:
        self._found, self._state = found, state
        self._lines = JsonLines[dict[str, Any]](_decode, lambda value: value, state.open_line)
        self._gathering = ReadTally()

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        gathering, lines = ReadTally(), self._lines
        self._gathering = gathering
        for start, raw, found, trouble in lines.split(data, base, last):
            if trouble:
                gathering.trouble(trouble, start, len(raw), is_record=found is None)
            if found is None:
                continue
            if "working_dir" in found and "role" not in found:
                self._learn(found)
                gathering.count("(head)", "known")
            else:
                gathering.count(plain(found.get("role")), self._say(message(found), start, len(raw)))
        if lines.tail is not None:
            start, size, trouble = lines.tail
            gathering.trouble(trouble, start, size, is_record=False, provisional=True)
        return gathering.reading(lines.consumed, lines.lines, lines.glued)

    def state(self) -> bytes:
        """See `sources.Reader`."""
        self._state.open_line = self._lines.open_line
        return msgspec.msgpack.encode(self._state)

    def _learn(self, head: dict[str, Any]) -> None:
        self._state.model = word(record(head.get("model_config")).get("model_name"))
        self._talk().learn(workspace=word(head.get("working_dir")))
        title = word(head.get("description")) or word(head.get("name"))
        if title:
            self._talk().learn(title=title, title_rank=2)

    def _say(self, said: Message, start: int, size: int) -> str:
        talk, state = self._talk(), self._state
        if said.fingerprint is None:
            words = digest(said.role, *(block.text for block in said.blocks))  # marks of visibility change
            said = replace(said, fingerprint=fingerprint(f"{talk.native_id}/{state.index}", words))
        if said.origin == "human" and self._found.kind == "subagent":
            said = replace(said, origin="agent")
        if said.origin == "model":
            said = replace(said, model=state.model, provider_id=said.provider_id or f"{talk.native_id}/{state.index}")
        talk.messages.append(replace(said, start=start, size=size))
        state.index += 1
        return "unknown" if said.kind == "unknown" else "message"

    def _talk(self) -> SessionTally:
        found = self._found
        return self._gathering.session(found.native_id or found.path.stem, found.kind, found.parent)
