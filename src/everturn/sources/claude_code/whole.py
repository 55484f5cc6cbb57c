"""Files that are read as they are: persisted tool outputs, and the notes beside a subagent's transcript."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from everturn.model.conversation import Block, Census, Link, Message, ReadResult, SessionFacts, SessionPart
from everturn.sources import SourceCandidate
from everturn.sources.foreign import strings

#: A longer file becomes several messages.
_LONGEST = 1 << 20
_META = ".meta"
_CONTINUATION = 0b1100_0000, 0b1000_0000


class ClaudeWholeFileReader:
    """One session of one message per piece, cut at line ends."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        self._found = found

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        meta = self._found.kind == "meta"
        cuts = list(_cuts(data, last))
        make = about_agent if meta else output
        messages = [make(data[start:end], base + start) for start, end in cuts]
        kind = "(meta)" if meta else "(output)"
        census = [Census(kind, "", "message", len(cuts))] if cuts else []
        parts = [self._part(messages, base)] if cuts else []
        return ReadResult(cuts[-1][1] if cuts else 0, parts, [], census, len(cuts))

    def state(self) -> bytes:
        """See `sources.Reader`."""
        return b""

    def _part(self, messages: list[Message], base: int) -> SessionPart:
        found = self._found
        links = [] if base else [_link(found)]
        return SessionPart(found.native_id, SessionFacts(found.kind, found.parent), messages, links)


def output(raw: bytes, start: int = 0) -> Message:
    """What a tool printed."""
    block = Block("text", raw.decode("utf-8", "replace"), "tool_output")
    return Message("tool", "tool", "output", blocks=(block,), start=start, size=len(raw))


def about_agent(raw: bytes, start: int = 0) -> Message:
    """What the client noted about a subagent."""
    block = Block("text", _note_text(raw), "meta")
    return Message("system", "system", "context", blocks=(block,), start=start, size=len(raw))


def _note_text(raw: bytes) -> str:
    try:
        found: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return raw.decode("utf-8", "replace")
    return "\n".join(strings(found))


def _link(found: SourceCandidate) -> Link:
    name = found.native_id.rpartition("/")[2]
    if found.kind == "meta":
        return Link("about", found.native_id.removesuffix(_META))
    call_id = name.partition(".")[0]
    return Link("output_of", found.parent, call_id if call_id.startswith("toolu_") else "")


def _cuts(data: bytes, last: bool) -> Iterator[tuple[int, int]]:
    pos = 0
    while len(data) - pos > _LONGEST:
        end = data.rfind(b"\n", pos, pos + _LONGEST) + 1 or _character(data, pos + _LONGEST)
        yield pos, end
        pos = end
    end = len(data) if last else data.rfind(b"\n", pos) + 1
    if end > pos:
        yield pos, end


def _character(data: bytes, end: int) -> int:
    """The start of the character that `end` may have cut in two."""
    mask, mark = _CONTINUATION
    start = end
    while start > end - 4 and data[start] & mask == mark:
        start -= 1
    return start
