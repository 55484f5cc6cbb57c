"""Readers of growing files: JSON records as plain dicts, passages of text, and the tally of one read.

- `read_walk` passes every record of a piece to the format and handles damage, torn tails and very long lines the same way
  for all formats; `read` and `LineReader` do so with records as dicts. `single_record` and `records` decode records for
  `view` and for sniffing.
- `ReadTally` collects one read: messages and facts by session, problems, and a census of all records. A reader opens the
  sessions it adds to and counts every record exactly once.
- `Passages` splits a text that only grows, or is rewritten, into passages. A format says at which line a passage begins.
  Passages follow each other without a gap and begin at a line. A passage is yielded when the next one begins or the file
  ends; later text without a beginning of its own continues the last passage. Reading in pieces gives the same passages as
  reading at once.

Nothing here raises on content.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from everturn.model.conversation import (
    Block,
    Census,
    Link,
    Message,
    Problem,
    ReadResult,
    SessionFacts,
    SessionPart,
    fingerprint,
)
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.json_lines import BLANK, REASONS, JsonLines, Record, object_lines
from everturn.sources.toolkit.values import state_of, word

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Rec = dict[str, Any]

#: Of longer lines only the beginning of each block is indexed.
LONG_LINE = 16 << 20
LONG_TEXT = 1 << 20

_decode = msgspec.json.Decoder(Rec).decode


def prompt_hint(prompt: str) -> int:
    """Return what a call that starts a subagent and the session of that have in common."""
    return fingerprint("prompt", prompt)


class SessionTally:
    """The messages, links and facts that one read adds to a session."""

    __slots__ = ("_facts", "kind", "links", "messages", "native_id", "parent")

    def __init__(self, native_id: str, kind: str, parent: str) -> None:
        self.native_id, self.kind, self.parent = native_id, kind, parent
        self.messages: list[Message] = []
        self.links: list[Link] = []
        self._facts: dict[str, Any] = {}

    def learn(self, **facts: str | int | None) -> None:
        """Set facts (fields of `SessionFacts`); empty values are ignored."""
        for name, value in facts.items():
            if value:
                self._facts[name] = value

    def link_parent(self, parent: str, task: str) -> None:
        """Link a subagent to the session that started it, by the `task` it got if that is known."""
        self.links.append(Link("subagent_of", parent, hint=prompt_hint(task) if task else 0))

    def link_tasks(self, message: Message) -> None:
        """Link the subagents that calls of a message start, by their tasks."""
        calls = [block.call for block in message.blocks if block.call is not None and block.call.prompt]
        self.links += [Link("spawned", "", call.call_id, prompt_hint(call.prompt)) for call in calls]

    def part(self) -> SessionPart | None:
        """Return the session's part of the result; None when the read adds nothing to it."""
        if not (self.messages or self.links or self._facts):
            return None
        facts: dict[str, Any] = {
            name: word(value) if isinstance(value, str) else value for name, value in self._facts.items()
        }
        return SessionPart(self.native_id, SessionFacts(self.kind, self.parent, **facts), self.messages, self.links)


class ReadTally:
    """Everything one read yields: sessions, problems and a census of records."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._sessions: dict[str, SessionTally] = {}
        self._census: dict[tuple[str, str, str], int] = {}

    def session(self, native_id: str, kind: str = "main", parent: str = "") -> SessionTally:
        """Return the session with this id; the first call opens it."""
        session = self._sessions.get(native_id)
        if session is None:
            session = self._sessions[native_id] = SessionTally(native_id, kind, parent)
        return session

    def count(self, kind: str, disposition: str, client: str = "", n: int = 1) -> None:
        """Count one record, or several."""
        key = kind, client, disposition
        self._census[key] = self._census.get(key, 0) + n

    def trouble(self, trouble: str, start: int, size: int, is_record: bool = True, provisional: bool = False) -> None:
        """Note a problem (a key of `json_lines.REASONS`) or a blank line; count it if it makes up a whole record."""
        if trouble == BLANK:
            self.count(f"({BLANK})", "known")
            return
        self.problems.append(Problem(trouble, REASONS[trouble], start, size, provisional))
        if is_record:
            self.count(f"({trouble})", "problem")

    def defer_read(self, data: bytes, base: int, last: bool) -> ReadResult:
        """Return the result of a read that leaves everything for later: it does not show its form yet."""
        if last and data.strip():
            self.trouble("torn_tail", base, len(data), is_record=False, provisional=True)
        return self.reading(0)

    def reading(self, consumed: int, lines: int | None = None, glued: int = 0) -> ReadResult:
        """Return the result of the read. Without a number of lines, the counted records are the lines."""
        parts = [part for session in self._sessions.values() if (part := session.part()) is not None]
        census = [Census(*key, n) for key, n in self._census.items()]
        lines = sum(self._census.values()) if lines is None else lines
        return ReadResult(consumed, parts, self.problems, census, lines, glued)


# --- records ---


class RecordPlace(NamedTuple):
    """The byte range of a record."""

    start: int = 0
    size: int = 0


#: How a record is counted: its type fit to be counted, one of `vocabulary.DISPOSITIONS`, and the client that wrote it.
Counted = tuple[str, str, str]


class ReaderState(Protocol):
    """The least that the state of a line reader holds."""

    open_line: bool


ReaderStateT = TypeVar("ReaderStateT", bound=ReaderState)


class LineReader(ABC, Generic[ReaderStateT]):
    """A `SourceReader` of lines: a format implements `_take`, and names the `kind` of state that it has to remember."""

    kind: type[ReaderStateT]

    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        self._candidate, self._state = candidate, state_of(state, self.kind)
        self._name = candidate.native_id or candidate.path.stem
        self._walk = walker(self._state.open_line)
        self._gathering = ReadTally()

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `SourceReader`."""
        self._gathering = ReadTally()
        return read(self._gathering, self._walk, data, base, last, self._take)

    def state(self) -> bytes:
        """See `SourceReader`."""
        self._state.open_line = self._walk.open_line
        return msgspec.msgpack.encode(self._state)

    def _open_session(self) -> SessionTally:
        """Return the session of the file."""
        return self._gathering.session(self._name, self._candidate.kind, self._candidate.parent)

    @abstractmethod
    def _take(self, record: Rec, place: RecordPlace) -> Counted: ...


class RecordWalk(Protocol[T_co]):
    """A walk over the records of one file: `JsonLines`, or anything that yields records the same way."""

    consumed: int
    lines: int
    glued: int
    tail: tuple[int, int, str] | None

    def split(self, data: bytes, base: int, last: bool) -> Iterator[Record[T_co]]:
        """See `JsonLines.split`."""
        ...


def walker(open_line: bool = False) -> JsonLines[Rec]:
    """Return a walk over the lines of one file with records as dicts."""
    return JsonLines(_decode, lambda found: found, open_line)


def read(
    tally: ReadTally,
    walk: JsonLines[Rec],
    data: bytes,
    base: int,
    last: bool,
    take: Callable[[Rec, RecordPlace], Counted],
) -> ReadResult:
    """Walk a piece; `take` gets each record and returns how to count it."""
    return read_walk(
        tally, walk, data, base, last, lambda record, start, raw: take(record, RecordPlace(start, len(raw)))
    )


def read_walk(
    tally: ReadTally,
    walk: RecordWalk[T],
    data: bytes,
    base: int,
    last: bool,
    take: Callable[[T, int, bytes | memoryview], Counted],
) -> ReadResult:
    """Walk a piece; `take` gets each record with its offset and bytes, and returns how to count it."""
    counts: dict[Counted, int] = {}
    for start, raw, record, trouble in walk.split(data, base, last):
        if trouble:
            tally.trouble(trouble, start, len(raw), is_record=record is None)
        if record is not None:
            counted = take(record, start, raw)
            counts[counted] = counts.get(counted, 0) + 1
    for (kind, disposition, client), n in counts.items():
        tally.count(kind, disposition, client, n)
    if walk.tail is not None:
        start, size, trouble = walk.tail
        tally.trouble(trouble, start, size, is_record=False, provisional=True)
    return tally.reading(walk.consumed, walk.lines, walk.glued)


def add(tally: ReadTally, session: SessionTally, message: Message) -> None:
    """Add a message to a session; of a very long one only the beginning of each block is kept for the index."""
    if message.size > LONG_LINE:
        message = replace(message, blocks=tuple(map(_shorten_block, message.blocks)))
        tally.trouble("indexed_in_part", message.start, message.size, is_record=False)
    session.messages.append(message)


def single_record(raw: bytes) -> Rec | None:
    """Decode the single record in these bytes, as forgivingly as the reader does; None when there is none."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    found = records(raw)
    return found[0] if len(found) == 1 else None


def view_placed(build: Callable[[Rec, RecordPlace], Message | None], raw: bytes) -> Message | None:
    """Return the message of a line as the `build` of a format makes it that needs to know the place of a record."""
    record = single_record(raw)
    return build(record, RecordPlace(0, len(raw))) if record is not None else None


def records(head: bytes) -> list[Rec]:
    """Return every readable record in the first bytes of a file."""
    return [value for _, _, value, _ in walker().split(object_lines(head), 0, last=True) if value is not None]


def mapping(value: Any) -> Rec:
    """Return the value if it is an object, an empty object otherwise."""
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[Any]:
    """Return the value if it is an array, an empty array otherwise."""
    return value if isinstance(value, list) else []


def _shorten_block(block: Block) -> Block:
    call = replace(block.call, input=None) if block.call is not None else None
    return replace(block, text=block.text[:LONG_TEXT], call=call, data=None)


# --- passages ---


class PassageState(Protocol):
    """The least that a format remembers of earlier lines; the state must be flat, for it is copied."""

    begun: bool  # `opens` has seen the first line to come already


PassageStateT = TypeVar("PassageStateT", bound=PassageState)

#: Gets every line in order, without its end; may change the state; returns whether a passage begins with the line.
Opens = Callable[[PassageStateT, str], bool]


class Passages(Generic[PassageStateT]):
    """Splits one text, piece by piece; `state` is all that a later reader needs."""

    def __init__(
        self, opens: Opens[PassageStateT], state: PassageStateT, alike: re.Pattern[bytes] | None = None
    ) -> None:
        """`alike` matches runs of whole lines of which `opens` needs to see only the first."""
        self._opens = opens
        self._alike = alike
        self.state = state
        self.consumed = 0
        self.continues = False  # the last passage has no beginning of its own: it continues the one before
        self.tail: tuple[int, int] | None = None  # start and size of an incomplete last line that was left

    def split(self, data: bytes, base: int, last: bool, whole_lines: bool = False) -> Iterator[tuple[int, bytes]]:
        """Yield the passages of a piece that starts at `base`; `whole_lines` leaves an unfinished line for later."""
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
        """Yield the offsets at which passages begin, except the first."""
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
    """Return the text of a passage, and whether it was valid UTF-8."""
    try:
        return raw.decode(), True
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), False
