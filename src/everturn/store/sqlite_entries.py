"""How the entries of the full-text index are numbered in SQLite, and which tables they stand in.

A row's number is made of its session and seq, so that entries of a session stand together, a session is a range of rows,
and the newest come last. The nearer the numbers, the smaller the index, since FTS5 writes down how far it is from one
to the next: the first 4,095 messages of a session have short numbers, and what comes after these stands on a shelf of its
own behind all others. The highest seq of the short ones is the session's own entry (title and summary).

Text of a tool is two thirds of all text, so it is the first column: FTS5 notes the column of a word for all but that.

An archive that was made earlier has older tables beside this one: what has not been derived again yet stays in them.

What entries hold of the phrases looked for: a function of ours that FTS5 calls for each entry that matches.

FTS5's own bm25 walks through the whole list of every word to learn how common it is; that is known here already
(`Wanted.worth`). So an entry costs a microsecond, and of many thousands the best can be chosen. They are chosen by how
often the words stand there and how far down the last one is, which says about how long the text is; how long it really
is, is looked up for the chosen ones only, since that costs more than all the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nlargest
from typing import NamedTuple

import apsw
from msgspec import Struct

from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexEntry
from everturn.store.driver import query_in_lists
from everturn.store.index import (
    BY_FIELD,
    ENOUGH,
    LAST_SEQ,
    LENGTH_MATTERS,
    USUAL_LENGTH,
    Range,
    length_factor,
    phrase_share,
)
from everturn.store.sqlite_driver import SqliteDriver

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


Places = dict[tuple[int, int], list[int]]  # by number of the phrase and column
#: About what an entry is worth, its row, its phrases and how often, and where, if pairs are looked for.
SeenEntry = tuple[float, int, list[tuple[int, float]], Places | None]

#: A text goes on behind the last word that was found in it.
_BEYOND = 1.3
#: Share of each of the two entries before and behind; about what ranking makes of them.
_BESIDE = 0.2
_LEAST = ENOUGH * (1 - LENGTH_MATTERS)
_PER_TERM = ENOUGH * LENGTH_MATTERS * _BEYOND / USUAL_LENGTH


class PhraseReport(Struct, frozen=True):
    """What is reported of an entry: phrases by number, with their number in the expression; pairs of these."""

    phrases: list[tuple[int, int]]
    pairs: list[tuple[int, int, int]]  # of two words side by side: its number, and those of the words
    terms: list[int]  # of each phrase
    worth: list[float]  # of each phrase, when the best are to be chosen
    most: int  # entries that are wanted; -1: all


class PhraseCounter:
    """What was seen since `begin`. One of a connection, as its function is."""

    def __init__(self, driver: SqliteDriver) -> None:
        self._driver = driver
        self._seen: list[SeenEntry] = []
        with driver.sentences:
            driver.connection.register_fts5_function("held", self._held)

    def begin(self, reported: PhraseReport, shelf: EntryShelf) -> None:
        """Forget what was seen; from now on it is this that is looked for, here."""
        self._reported, self._shelf = reported, shelf
        self._constants = reported.phrases, shelf.weights, reported.worth, bool(reported.pairs)
        self._seen = []

    @property
    def count(self) -> int:
        """Entries seen."""
        return len(self._seen)

    def entries(self) -> Iterator[tuple[float, IndexEntry]]:
        """The best that were seen, each with about what it is worth."""
        chosen = self._chosen() if 0 <= self._reported.most < len(self._seen) else self._seen
        lengths = self._entry_lengths([row for _, row, _, _ in chosen])
        terms, place = self._reported.terms, self._shelf.place
        for score, row, seen, places in chosen:
            factor = length_factor(lengths[row])
            much = [(number, phrase_share(often, factor, terms[number])) for number, often in seen]
            if places:
                much += [(number, phrase_share(often, factor, 2)) for number, often in self._count_pairs(places)]
            yield score, IndexEntry(*place(row), tuple(much))

    def _held(self, api: apsw.FTS5ExtensionApi, /, *_: object) -> None:
        """Called so often that every look-up counts."""
        phrases, weights, worth, with_places = self._constants  # as few look-ups as can be
        last = 0
        seen = []
        places: Places = {}
        for number, place in phrases:
            columns = api.phrase_columns(place)
            if columns:
                often = 0.0
                for column in columns:
                    at = api.phrase_column_offsets(place, column)
                    if with_places:
                        places[number, column] = at
                    often += weights[column] * len(at)
                    last = at[-1] if at[-1] > last else last
                seen.append((number, often))
        room = _LEAST + _PER_TERM * last
        score = 0.0
        for number, often in seen:
            score += worth[number] * often / (often + room)
        self._seen.append((score, api.rowid, seen, places if len(seen) > 1 else None))

    def _count_pairs(self, places: Places) -> Iterator[tuple[int, float]]:
        """Pairs of words, and how often the one stands right before the other, counted by field."""
        _, weights, _, _ = self._constants
        for number, first, second in self._reported.pairs:
            often = 0.0
            for column in range(len(weights)):
                if (first, column) in places and (second, column) in places:
                    behind = [one + 1 for one in places[first, column]]
                    often += weights[column] * len(set(places[second, column]).intersection(behind))
            if often:
                yield number, often

    def _chosen(self) -> list[SeenEntry]:
        """The best, and all else of their sessions as far as there is room: a hit is worth more among others."""
        scores = {row: score for score, row, _, _ in self._seen}
        of = scores.get
        worth = [
            (score + _BESIDE * (of(row - 1, 0.0) + of(row + 1, 0.0) + of(row - 2, 0.0) + of(row + 2, 0.0)), row)
            for row, score in scores.items()
        ]
        best = [row for _, row in nlargest(self._reported.most // 2, worth)]
        room, bits = self._reported.most - len(best), self._shelf.bits
        counts = Counter([row >> bits for row in scores])
        whole = set()
        for session in dict.fromkeys([row >> bits for row in best]):
            room -= counts[session]
            if room < 0:
                break
            whole.add(session)
        alone = set(best)
        return [one for one in self._seen if one[1] >> bits in whole or one[1] in alone]

    def _entry_lengths(self, rows: Sequence[int]) -> dict[int, int]:
        sql = f"SELECT id, sz FROM {self._shelf.table}_docsize WHERE id IN ({{}})"
        return {row: _sum_varints(sizes) for row, sizes in query_in_lists(self._driver.all, sql, rows)}


def _sum_varints(sizes: bytes) -> int:
    """Of the numbers of terms by column, each a variable-length integer of SQLite."""
    if sizes.isascii():
        return sum(sizes)
    total = value = 0
    for byte in sizes:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            total += value
            value = 0
    return total
