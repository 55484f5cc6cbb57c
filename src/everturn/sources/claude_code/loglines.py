"""Transcripts as one document, `{"loglines": [record, …]}`, as tools that fetch sessions of the web client save them.

`Elements` walks such a document the way `jsonl.Lines` walks lines, so that one reader reads both.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import DecodeError

from everturn.sources.claude_code.events import ClaudeRecord, decode, revive
from everturn.sources.jsonl import Record
from everturn.sources.wholefile import DocumentWalk, decode_item

_KEY = "loglines"
_START = b'{"loglines":['
_MARK = b"\xef\xbb\xbf"
_LOOKED_AT = 256


def form_of(data: bytes, last: bool) -> str:
    """ "lines" or "document", by the first bytes of a file; "" when there are too few to tell."""
    marked = bool(data) and (data.startswith(_MARK) or _MARK.startswith(data))
    start = b"".join(data[:_LOOKED_AT].lstrip(_MARK).split() if marked else data[:_LOOKED_AT].split())
    if start.startswith(_START):
        return "document"
    return "" if _START.startswith(start) and (start or marked or not last) else "lines"


class Elements:
    """Walks one document, piece by piece; see `jsonl.Lines`."""

    open_line = False
    glued = 0

    def __init__(self, stage: str = "", begun: bool = True) -> None:
        self._walk = DocumentWalk(_KEY, stage)
        self._begun = begun  # enough was seen to know that it is a document
        self.consumed = self.lines = 0
        self.beside: list[str] = []  # keys of what stands beside the records
        self.tail: tuple[int, int, str] | None = None

    @property
    def stage(self) -> str:
        """What a later walk needs."""
        return self._walk.stage

    def split(self, data: bytes, base: int, last: bool) -> Iterator[Record[ClaudeRecord]]:
        """The elements of a piece that starts at offset `base`; when done, the attributes say what became of it."""
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
                yield item.start, item.raw, *event_of(item.raw)
        walk = self._walk
        if walk.broken is not None:
            start, size, trouble = walk.broken
            self.lines += 1
            yield start, data[start - base : start - base + size], None, trouble
        self.consumed, self.tail = walk.consumed, walk.tail


def event_of(raw: bytes) -> tuple[ClaudeRecord | None, str]:
    """The event in the bytes of one element, and what is wrong with it."""
    try:
        return decode(raw), ""
    except (DecodeError, UnicodeDecodeError, RecursionError):
        pass
    value, trouble = decode_item(raw)
    if isinstance(value, dict):
        try:
            return revive(value), trouble
        except RecursionError:
            return None, "too_deep"
    return None, trouble or "not_an_object"


def events_in(head: bytes) -> Iterator[ClaudeRecord]:
    """The events in the first bytes of a document."""
    for _, _, event, _ in Elements().split(head, 0, last=False):
        if event is not None:
            yield event
