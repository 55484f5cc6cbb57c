"""A file of JSON records, one per line, whose records are taken as plain dicts.

`read` walks a piece and hands each record to the format; damage of any kind, torn tails and very long lines are dealt with
here, the same for all. `single_record` and `records` give the records of some bytes to those who show a message or want to know
what a file is. Nothing here raises on content.

What one reading has found so far: messages and facts by session, problems, and a count of everything.

Shared by the formats. A reader opens the sessions it adds to, counts every record once, and hands all over as a `ReadResult`.

Splits a text that only grows (or is written anew) into passages, whatever happened to it.

Shared by the formats that are Markdown. A format says at which line a passage begins; `Passages.split` promises:

- Passages follow each other without a gap: every byte is in one of them. Each begins at a line.
- A passage is given once the next one begins, or at the end of the file. What comes later without a beginning of its own
  continues the last one. Reading in pieces that do not end the file gives the same passages as reading at once.
- Nothing here raises on content.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from everturn.model.conversation import Block, Census, Link, Message, Problem, ReadResult, SessionFacts, SessionPart
from everturn.sources.toolkit.json_lines import BLANK, REASONS, JsonLines
from everturn.sources.toolkit.values import word


class SessionTally:
    """One session, as far as this reading adds to it."""

    __slots__ = ("_facts", "kind", "links", "messages", "native_id", "parent")

    def __init__(self, native_id: str, kind: str, parent: str) -> None:
        self.native_id, self.kind, self.parent = native_id, kind, parent
        self.messages: list[Message] = []
        self.links: list[Link] = []
        self._facts: dict[str, Any] = {}

    def learn(self, **facts: str | int) -> None:
        """Take facts (fields of `SessionFacts`); empty ones say nothing."""
        self._facts.update({name: value for name, value in facts.items() if value})

    def part(self) -> SessionPart | None:
        """What to hand on; None when there is nothing."""
        if not (self.messages or self.links or self._facts):
            return None
        facts: dict[str, Any] = {
            name: word(value) if isinstance(value, str) else value for name, value in self._facts.items()
        }
        return SessionPart(self.native_id, SessionFacts(self.kind, self.parent, **facts), self.messages, self.links)


class ReadTally:
    """The whole of it."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._talks: dict[str, SessionTally] = {}
        self._census: dict[tuple[str, str, str], int] = {}

    def session(self, native_id: str, kind: str = "main", parent: str = "") -> SessionTally:
        """The session of that id, opened when this reading adds to it for the first time."""
        talk = self._talks.get(native_id)
        if talk is None:
            talk = self._talks[native_id] = SessionTally(native_id, kind, parent)
        return talk

    def count(self, kind: str, disposition: str, client: str = "") -> None:
        """Count one record."""
        key = kind, client, disposition
        self._census[key] = self._census.get(key, 0) + 1

    def trouble(self, trouble: str, start: int, size: int, is_record: bool = True, provisional: bool = False) -> None:
        """Note a trouble (one of `jsonl.REASONS`, or a blank line); one that is all there is of a record is counted."""
        if trouble == BLANK:
            self.count(f"({BLANK})", "known")
            return
        self.problems.append(Problem(trouble, REASONS[trouble], start, size, provisional))
        if is_record:
            self.count(f"({trouble})", "problem")

    def reading(self, consumed: int, lines: int | None = None, glued: int = 0) -> ReadResult:
        """Everything; where there are no lines, what was counted are the elements."""
        parts = [part for talk in self._talks.values() if (part := talk.part()) is not None]
        census = [Census(*key, n) for key, n in self._census.items()]
        return ReadResult(
            consumed, parts, self.problems, census, sum(self._census.values()) if lines is None else lines, glued
        )


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


class PassageState(Protocol):
    """What a format knows of the lines before: flat, and its own but for one field."""

    begun: bool  # the first line to come has been told already


PassageStateT = TypeVar("PassageStateT", bound=PassageState)

#: Is told every line, without its end, in order; may change the state; says whether a passage begins with the line.
Opens = Callable[[PassageStateT, str], bool]


class Passages(Generic[PassageStateT]):
    """Walks one text, piece by piece; `state` is all that a later one needs."""

    def __init__(
        self, opens: Opens[PassageStateT], state: PassageStateT, alike: re.Pattern[bytes] | None = None
    ) -> None:
        """`alike` matches stretches of whole lines of which it is enough to tell the first."""
        self._opens = opens
        self._alike = alike
        self.state = state
        self.consumed = 0
        self.continues = False  # the passage last given has no beginning of its own: it is the rest of the one before
        self.tail: tuple[int, int] | None = None  # start and size of an incomplete last line that was left

    def split(self, data: bytes, base: int, last: bool, whole_lines: bool = False) -> Iterator[tuple[int, bytes]]:
        """The passages of a piece that starts at `base`; with `whole_lines` a line without its end is left for later."""
        self.consumed, self.tail = 0, None
        begin, before = 0, copy(self.state)
        end = data.rfind(b"\n") + 1 if whole_lines else len(data)
        for start in self._openings(data, last and not whole_lines):
            self.consumed = start
            yield base + begin, data[begin:start]
            begin, before, self.continues = start, copy(self.state), False
            before.begun = True
        if not last:
            self.state = before
            return
        self.consumed = end
        if end > begin:
            yield base + begin, data[begin:end]
        if end < len(data):
            self.tail = base + end, len(data) - end

    def _openings(self, data: bytes, unended: bool) -> Iterator[int]:
        """Where passages begin, beyond the first."""
        start, find, opens, state, alike = 0, data.find, self._opens, self.state, self._alike
        self.continues = False
        if state.begun:
            start, state.begun = find(b"\n") + 1, False
        while (end := find(b"\n", start)) >= 0 or (unended and start < len(data)):
            end = end if end >= 0 else len(data)
            if opens(state, data[start:end].decode("utf-8", "replace").rstrip("\r")):
                if start:
                    yield start
            elif not start:
                self.continues = True
            run = alike.match(data, start) if alike is not None else None
            start = run.end() if run is not None else end + 1


def text_of(raw: bytes) -> tuple[str, bool]:
    """The text of a passage, and whether it was what it should be."""
    try:
        return raw.decode(), True
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), False
