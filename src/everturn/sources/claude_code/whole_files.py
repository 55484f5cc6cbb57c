"""Files that are not lines of records.

- Persisted tool outputs and the notes beside a subagent's transcript are read whole, by `ClaudeWholeFileReader`.
- Transcripts in one document, `{"loglines": [record, …]}`, as saved by tools that fetch sessions of the web client.
  `Elements` walks such a document the way `JsonLines` walks lines, so one reader reads both.
"""

from __future__ import annotations

from collections.abc import Iterator

from everturn.model.conversation import Census, Link, Message, ReadResult, SessionFacts, SessionPart
from everturn.sources.claude_code.message import about_agent, decode_element, output, view
from everturn.sources.claude_code.records import ClaudeRecord
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.json_document import DocumentWalk
from everturn.sources.toolkit.json_lines import Record

#: A longer file becomes several messages.
_LONGEST = 1 << 20
_META = ".meta"
_CONTINUATION = 0b1100_0000, 0b1000_0000  # mask and mark of a UTF-8 continuation byte


class ClaudeWholeFileReader:
    """Reads a file as one session: one message per piece, cut at line ends."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        self._found = found

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        cuts = list(_cut_ranges(data, last))
        build, kind = (about_agent, "(meta)") if self._found.kind == "meta" else (output, "(output)")
        if is_note(self._found):
            build, kind = _note, "(note)"
        messages = [build(data[start:end], base + start) for start, end in cuts]
        census = [Census(kind, "", "message", len(cuts))] if cuts else []
        parts = [self._part(messages, base)] if cuts else []
        return ReadResult(cuts[-1][1] if cuts else 0, parts, [], census, len(cuts))

    def state(self) -> bytes:
        return b""

    def _part(self, messages: list[Message], base: int) -> SessionPart:
        found = self._found
        links = [link for link in ([] if base else [_link(found)]) if link.native_id]
        return SessionPart(found.native_id, SessionFacts(found.kind, found.parent), messages, links)


def is_note(found: SourceCandidate) -> bool:
    """Whether a file is a note on a project, or a list of tasks: notes on subagents are named like these."""
    return found.kind == "meta" and not found.path.name.startswith("agent-")


def _note(raw: bytes, start: int = 0) -> Message:
    """Return the message of a note, with the blocks that it has when it is shown."""
    shown = view(raw) or output(raw)
    return Message("system", "system", "context", blocks=shown.blocks, start=start, size=len(raw))


def _link(found: SourceCandidate) -> Link:
    name = found.native_id.rpartition("/")[2]
    if is_note(found):
        return Link("about", found.parent)
    if found.kind == "meta":
        return Link("about", found.native_id.removesuffix(_META))
    call_id = name.partition(".")[0]
    return Link("output_of", found.parent, call_id if call_id.startswith("toolu_") else "")


def _cut_ranges(data: bytes, last: bool) -> Iterator[tuple[int, int]]:
    pos = 0
    while len(data) - pos > _LONGEST:
        end = data.rfind(b"\n", pos, pos + _LONGEST) + 1 or _character_start(data, pos + _LONGEST)
        yield pos, end
        pos = end
    end = len(data) if last else data.rfind(b"\n", pos) + 1
    if end > pos:
        yield pos, end


def _character_start(data: bytes, end: int) -> int:
    """Return the start of the character that `end` may have cut in two."""
    mask, mark = _CONTINUATION
    start = end
    while start > end - 4 and data[start] & mask == mark:
        start -= 1
    return start


_KEY = "loglines"
_START = b'{"loglines":['
_MARK = b"\xef\xbb\xbf"
_LOOKED_AT = 256


def form_of(data: bytes, last: bool) -> str:
    """Return "lines" or "document" by the first bytes of a file; "" when there are too few to tell."""
    if not data:  # an empty file may become either
        return ""
    marked = data.startswith(_MARK) or _MARK.startswith(data)
    start = b"".join(data[:_LOOKED_AT].lstrip(_MARK).split() if marked else data[:_LOOKED_AT].split())
    if start.startswith(_START):
        return "document"
    return "" if _START.startswith(start) and (start or marked or not last) else "lines"


class Elements:
    """Walks one document, piece by piece, like `JsonLines`."""

    open_line = False
    glued = 0

    def __init__(self, stage: str = "", begun: bool = True) -> None:
        self._walk = DocumentWalk(_KEY, stage)
        self._begun = begun  # the file is known to be a document
        self.consumed = self.lines = 0
        self.beside: list[str] = []  # keys of other values than the records
        self.tail: tuple[int, int, str] | None = None

    @property
    def stage(self) -> str:
        """The stage that a later walk starts from."""
        return self._walk.stage

    def split(self, data: bytes, base: int, last: bool) -> Iterator[Record[ClaudeRecord]]:
        """Yield the elements of a piece that starts at offset `base`; afterwards the attributes describe the result."""
        self.lines = self.consumed = 0
        self.beside = []
        if not self._begun:
            self.tail = (base, len(data), "torn_tail") if last and data.strip() else None
            return
        for item in self._walk.split(data, base, last):
            self.lines += 1
            if item.key:
                self.beside.append(item.key)
            else:
                yield item.start, item.raw, *decode_element(item.raw)
        walk = self._walk
        if walk.broken is not None:
            start, size, trouble = walk.broken
            self.lines += 1
            yield start, data[start - base : start - base + size], None, trouble
        self.consumed, self.tail = walk.consumed, walk.tail


def records_in(head: bytes) -> Iterator[ClaudeRecord]:
    """Yield the records in the first bytes of a document."""
    for _, _, decoded, _ in Elements().split(head, 0, last=False):
        if decoded is not None:
            yield decoded
