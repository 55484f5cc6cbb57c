"""Read the messages and turns of a session, record by record from the raw layer.

Reading never raises on content. A record that its source can no longer read becomes a message of kind `unknown` with the
text of its bytes. One whose bytes were erased or never kept (mode `structure`) becomes a message without blocks and of
fidelity `partial`. Everything is streamed: memory holds one range of raw bytes and the rows of one turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import Call, MessageRow, Session, Step, Turn
from everturn.model.conversation import Block, Message
from everturn.sources.contract import Source
from everturn.store.contract import Store

Sources = Mapping[str, Source]

#: Raw bytes read ahead when records are read in sequence: a few chunks.
_AHEAD = 512 * 1024


class TurnView(Struct, frozen=True):
    """One turn and its rows, without text."""

    turn: Turn
    steps: list[Step]
    calls: list[Call]
    rows: list[MessageRow]


def has_words(session: Session) -> bool:
    """Whether the text of a session was archived, not only its structure."""
    return session.mode not in ("structure", "off")


def read_messages(
    store: Store, sources: Sources, session: Session, first_seq: int = 0, last_seq: int | None = None
) -> Iterator[tuple[MessageRow, Message]]:
    """Yield messages by seq, both ends included."""
    records = Records(store, sources, session, until=None if last_seq is None or last_seq > first_seq else 0)
    for row in store.messages(session.id, first_seq, last_seq):
        yield row, records.message(row)


def read_turns(store: Store, session: Session, first: int = 0, last: int | None = None) -> Iterator[TurnView]:
    """Yield turns by number, both ends included."""
    for turn in store.turns(session.id, first, last):
        rows = list(store.messages(session.id, turn.first_seq, turn.last_seq))
        yield TurnView(turn, store.steps(session.id, turn.idx), store.calls(session.id, turn.idx), rows)


def records_end(rows: list[MessageRow]) -> int:
    """Return the offset where the last of these records ends."""
    return max((row.start + row.size for row in rows), default=0)


def result_block(message: Message, call: Call) -> Block | None:
    for block in message.blocks:
        if block.result is not None and block.result.call_id == call.call_id:
            return block
    return None


class Records:
    """Reads the records of one session, with read-ahead so that neighbours are fetched together."""

    def __init__(self, store: Store, sources: Sources, session: Session, until: int | None = None) -> None:
        """`until` is the end of the last record needed, if known: nothing beyond it is read ahead."""
        self._store = store
        self._source = sources.get(session.agent)
        self._session = session
        self._wanted = until
        self._start = 0
        self._bytes = b""

    @cached_property
    def _end(self) -> int:
        return self._store.version(self._session.version).size if has_words(self._session) else 0

    @cached_property
    def _until(self) -> int:
        return self._end if self._wanted is None else min(self._wanted, self._end)

    def message(self, row: MessageRow) -> Message:
        """Return the message of a row, with its text."""
        return self.view(row, self.record(row))

    def view(self, row: MessageRow, record: bytes) -> Message:
        """Return the message of a row from its record."""
        if not record.strip(b"\0 \r\n"):
            return Message(row.role, row.origin, row.kind, row.at, row.precision, fidelity="partial")
        message = self._source.view(record) if self._source else None
        if message is None:
            text = record.decode("utf-8", "replace")
            block = Block("unknown", text, "meta", data=text)
            return Message(
                row.role, row.origin, "unknown", row.at, row.precision, blocks=(block,), start=row.start, size=row.size
            )
        # The reader knew the records around this one, so the values of the row win.
        return replace(
            message, role=row.role, origin=row.origin, kind=row.kind, at=row.at, precision=row.precision,
            start=row.start, size=row.size, fidelity=row.fidelity,
        )  # fmt: skip

    def result(self, call: Call) -> Block | None:
        """Return the result of a call; None if there is none, or its text was not archived."""
        if call.result_seq is None:
            return None
        for row in self._store.messages(self._session.id, call.result_seq, call.result_seq):
            return result_block(self.message(row), call)
        return None

    def record(self, row: MessageRow) -> bytes:
        """Return the bytes of one record as captured, as far as they are stored."""
        size = max(0, min(row.size, self._end - row.start))
        at = row.start - self._start
        if at >= 0 and at + size <= len(self._bytes):
            return self._bytes[at : at + size]
        self._start, self._bytes = row.start, b""  # never two ranges at once
        length = max(size, min(_AHEAD, self._until - row.start))
        if not size or length > _AHEAD:  # a record of that length is not cached
            return self._store.read_raw(self._session.version, row.start, size) if size else b""
        self._bytes = self._store.read_raw(self._session.version, row.start, length)
        return self._bytes[:size]
