"""How the entries of the full-text index are numbered in SQLite, and which tables they stand in.

A row's number is made of its session and seq, so that entries of a session stand together, a session is a range of rows,
and the newest come last. The nearer the numbers, the smaller the index, since FTS5 writes down how far it is from one
to the next: the first 4,095 messages of a session have short numbers, and what comes after these stands on a shelf of its
own behind all others. The highest seq of the short ones is the session's own entry (title and summary).

Text of a tool is two thirds of all text, so it is the first column: FTS5 notes the column of a word for all but that.

An archive that was made earlier has older tables beside this one: what has not been derived again yet stays in them.
"""

from __future__ import annotations

from typing import NamedTuple

from everturn.model.words import FIELDS
from everturn.store.index import BY_FIELD, LAST_SEQ, Range

TABLE = "fts"
COLUMNS = ("tool_output", "tool_input", "meta", "answer", "thinking", "prompt", "summary")
_HIGHEST = (1 << 63) - 1


class EntryShelf(NamedTuple):
    """Some rows of a table, all numbered alike."""

    table: str
    columns: tuple[str, ...]
    bits: int  # of a number that are the seq
    base: int  # is added to every number
    first: int  # seq; -1 is the session's own entry
    last: int
    end: int = _HIGHEST  # the highest number

    @property
    def weights(self) -> tuple[float, ...]:
        """How much a word counts, by column."""
        return tuple(BY_FIELD[FIELDS.index(name)] for name in self.columns)

    def row(self, session: int, seq: int) -> int:
        """The number of an entry."""
        return self.base | session << self.bits | (seq if seq >= 0 else self.last + 1)

    def place(self, row: int) -> tuple[int, int]:
        """Session and seq of a number."""
        seq = row & (1 << self.bits) - 1
        return (row - self.base) >> self.bits, -1 if self.first < 0 and seq > self.last else seq

    def holds(self, seq: int) -> bool:
        """Whether the entry of such a message stands here."""
        return self.first <= seq <= self.last

    def span(self, some: Range) -> tuple[int, int] | None:
        """The numbers of a part of a session, from and to."""
        first, last = max(some.first, self.first), min(some.last, self.last)
        if first > last:
            return None
        own = first < 0
        return self.row(some.session, max(first, 0)), self.row(some.session, -1 if own else last)


#: The first messages of every session, and the rest of long ones.
SHORT = EntryShelf(TABLE, COLUMNS, 12, 0, -1, (1 << 12) - 2, (1 << 62) - 1)
LONG = EntryShelf(TABLE, COLUMNS, 24, 1 << 62, SHORT.last + 1, LAST_SEQ)


def older_shelf(table: str) -> EntryShelf:
    """A table from before the numbers were short."""
    return EntryShelf(table, FIELDS, 24, 0, -1, LAST_SEQ)
