"""What entries hold of the phrases looked for: a function of ours that FTS5 calls for each entry that matches.

FTS5's own bm25 walks through the whole list of every word to learn how common it is; that is known here already
(`Wanted.worth`). So an entry costs a microsecond, and of many thousands the best can be chosen. They are chosen by how
often the words stand there and how far down the last one is, which says about how long the text is; how long it really
is, is looked up for the chosen ones only, since that costs more than all the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nlargest

import apsw
from msgspec import Struct

from everturn.store import IndexEntry
from everturn.store.driver import query_in_lists
from everturn.store.index import ENOUGH, LENGTH_MATTERS, USUAL_LENGTH, length_factor, phrase_share
from everturn.store.sqlite_driver import SqliteDriver
from everturn.store.sqlite_rows import EntryShelf

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
