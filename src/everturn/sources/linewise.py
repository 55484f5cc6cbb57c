"""A file of JSON records, one per line, whose records are taken as plain dicts.

`read` walks a piece and hands each record to the format; damage of any kind, torn tails and very long lines are dealt with
here, the same for all. `single_record` and `records` give the records of some bytes to those who show a message or want to know
what a file is. Nothing here raises on content.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from everturn.model.conversation import Block, Message, ReadResult
from everturn.sources.jsonl import JsonLines
from everturn.sources.tally import ReadTally, SessionTally

Rec = dict[str, Any]

#: Of longer lines only the beginning of each block is indexed.
LONG_LINE = 16 << 20
LONG_TEXT = 1 << 20


class RecordPlace(NamedTuple):
    """Where a record stands."""

    start: int = 0
    size: int = 0


#: What became of a record: its type fit to be counted, one of `words.DISPOSITIONS`, and the client that wrote it.
Counted = tuple[str, str, str]

_decode = msgspec.json.Decoder(Rec).decode


class ReaderState(Protocol):
    """What a reader of lines packs for the next one holds at least this."""

    open_line: bool


ReaderStateT = TypeVar("ReaderStateT", bound=ReaderState)


class LineReader(ABC, Generic[ReaderStateT]):
    """`sources.Reader` for lines: a format says in `_take` what becomes of a record, and what it remembers."""

    def __init__(self, remembered: ReaderStateT) -> None:
        self._state = remembered
        self._walk = walker(remembered.open_line)
        self._gathering = ReadTally()

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        self._gathering = ReadTally()
        return read(self._gathering, self._walk, data, base, last, self._take)

    def state(self) -> bytes:
        """See `sources.Reader`."""
        self._state.open_line = self._walk.open_line
        return msgspec.msgpack.encode(self._state)

    @abstractmethod
    def _take(self, record: Rec, place: RecordPlace) -> Counted: ...


def walker(open_line: bool = False) -> JsonLines[Rec]:
    """Walks over the lines of one file."""
    return JsonLines(_decode, lambda found: found, open_line)


def read(
    gathering: ReadTally,
    walk: JsonLines[Rec],
    data: bytes,
    base: int,
    last: bool,
    take: Callable[[Rec, RecordPlace], Counted],
) -> ReadResult:
    """Walk a piece; `take` gets each record and says what became of it."""
    for start, raw, record, trouble in walk.split(data, base, last):
        if trouble:
            gathering.trouble(trouble, start, len(raw), is_record=record is None)
        if record is not None:
            gathering.count(*take(record, RecordPlace(start, len(raw))))
    if walk.tail is not None:
        start, size, trouble = walk.tail
        gathering.trouble(trouble, start, size, is_record=False, provisional=True)
    return gathering.reading(walk.consumed, walk.lines, walk.glued)


def add(gathering: ReadTally, talk: SessionTally, message: Message) -> None:
    """Add a message to a session."""
    if message.size > LONG_LINE:
        message = replace(message, blocks=tuple(map(_shorten_block, message.blocks)))
        gathering.trouble("indexed_in_part", message.start, message.size, is_record=False)
    talk.messages.append(message)


def single_record(raw: bytes) -> Rec | None:
    """The one record in these bytes, also a damaged one that the reader could read; None when there is none."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    found = records(raw)
    return found[0] if len(found) == 1 else None


def records(head: bytes) -> list[Rec]:
    """Every record that can be read in the first bytes of a file."""
    return [value for _, _, value, _ in walker().split(head, 0, last=True) if value is not None]


def mapping(value: Any) -> Rec:
    """The value if it is an object; an empty one otherwise."""
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[Any]:
    """The value if it is an array; an empty one otherwise."""
    return value if isinstance(value, list) else []


def _shorten_block(block: Block) -> Block:
    call = replace(block.call, input=None) if block.call is not None else None
    return replace(block, text=block.text[:LONG_TEXT], call=call, data=None)
