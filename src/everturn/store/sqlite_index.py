"""The full-text index in SQLite: FTS5 tables without content, with the field groups as columns.

Row numbers are made of session and seq, so that a session is a range of rows and the newest come last. FTS5 stores
differences between row numbers, so small numbers make a small index: the first 4,095 messages of a session have short
numbers, and later ones are on a separate shelf behind all others. The highest short seq is the session's own entry
(title and summary). Output of tools is two thirds of all text, so it is the first column: FTS5 stores the column number
of a word for all others. Older archives have older tables too, for rows that have not been derived again yet.

Rows are read downwards, so that the newest come first and a bound on the work leaves out the oldest. Word counts are
bounded samples. FTS5's own bm25 would walk the whole list of every word to learn how common it is; that is known here
already (`IndexLook.worth`). A function of ours, called for each matching entry, records what the entry holds, at about a
microsecond each, so that the best of many thousands can be chosen. They are chosen by occurrences and by the position of
the last one, a proxy for the length; the real length is read for the chosen ones only, since that costs most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import apsw
from msgspec import Struct

from everturn.model.archive import IndexRow
from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexEntry
from everturn.store.index import (
    BY_FIELD,
    ENOUGH,
    LAST_SEQ,
    LENGTH_MATTERS,
    USUAL_LENGTH,
    IndexLook,
    IndexMatches,
    Phrase,
    Range,
    fold_row,
    length_factor,
    phrase_share,
    stem_word,
    word_with_stem,
)
from everturn.store.sql import query_in_lists
from everturn.text.terms import index_text

if TYPE_CHECKING:
    from everturn.store.sqlite import SqliteDriver

TABLE = "fts"
COLUMNS = ("tool_output", "tool_input", "meta", "answer", "thinking", "prompt", "summary")
_HIGHEST = (1 << 63) - 1


class EntryShelf(NamedTuple):
    """A range of rows of a table, numbered by the same rule."""

    table: str
    columns: tuple[str, ...]
    bits: int  # of the row number that hold the seq
    base: int  # added to every row number
    first: int  # lowest seq; -1 is the session's own entry
    last: int
    end: int = _HIGHEST  # highest row number

    @property
    def weights(self) -> tuple[float, ...]:
        """Return the weight of a word, by column."""
        return tuple(BY_FIELD[FIELDS.index(name)] for name in self.columns)

    def row(self, session: int, seq: int) -> int:
        """Return the row number of an entry."""
        return self.base | session << self.bits | (seq if seq >= 0 else self.last + 1)

    def place(self, row: int) -> tuple[int, int]:
        """Return session and seq of a row number."""
        seq = row & (1 << self.bits) - 1
        return (row - self.base) >> self.bits, -1 if self.first < 0 and seq > self.last else seq

    def holds(self, seq: int) -> bool:
        """Whether this shelf holds messages with this seq."""
        return self.first <= seq <= self.last

    def span(self, some: Range) -> tuple[int, int] | None:
        """Return the first and last row number of a part of a session."""
        first, last = max(some.first, self.first), min(some.last, self.last)
        if first > last:
            return None
        own = first < 0
        return self.row(some.session, max(first, 0)), self.row(some.session, -1 if own else last)


#: The first messages of every session, and the rest of long ones.
SHORT = EntryShelf(TABLE, COLUMNS, 12, 0, -1, (1 << 12) - 2, (1 << 62) - 1)
LONG = EntryShelf(TABLE, COLUMNS, 24, 1 << 62, SHORT.last + 1, LAST_SEQ)


def older_shelf(table: str) -> EntryShelf:
    """Return the shelf of a table from before short row numbers."""
    return EntryShelf(table, FIELDS, 24, 0, -1, LAST_SEQ)


Places = dict[tuple[int, int], list[int]]  # by number of the phrase and column
#: Approximate score, row, (phrase, weighted occurrences) pairs, and positions if pairs of words are counted.
SeenEntry = tuple[float, int, list[tuple[int, float]], Places | None]

#: A text is assumed to be longer than the position of its last match, by this factor.
_BEYOND = 1.3
#: Share of the scores of the two entries before and after; about what ranking gives them.
_BESIDE = 0.2
_LEAST = ENOUGH * (1 - LENGTH_MATTERS)
_PER_TERM = ENOUGH * LENGTH_MATTERS * _BEYOND / USUAL_LENGTH


class PhraseReport(Struct, frozen=True):
    """A request to report phrases of an entry: by number, with their number in the expression, and pairs of words."""

    phrases: list[tuple[int, int]]
    pairs: list[tuple[int, int, int]]  # two adjacent words: number of the phrase, and of both words
    terms: list[int]  # of each phrase
    worth: list[float]  # of each phrase, to choose the best
    most: int  # entries to choose; -1: all


class PhraseCounter:
    """Collects the matching entries since `begin`. One per connection, like its SQL function."""

    def __init__(self, driver: SqliteDriver) -> None:
        self._driver = driver
        self._seen: list[SeenEntry] = []
        with driver.error_translation:
            driver.connection.register_fts5_function("held", self._record_entry)

    def begin(self, reported: PhraseReport, shelf: EntryShelf) -> None:
        """Start to collect entries of a shelf."""
        self._reported, self._shelf = reported, shelf
        self._constants = reported.phrases, shelf.weights, reported.worth, bool(reported.pairs)
        self._seen = []

    @property
    def count(self) -> int:
        """The number of entries seen."""
        return len(self._seen)

    def entries(self) -> Iterator[tuple[float, IndexEntry]]:
        """Yield the best entries, each with its approximate score."""
        chosen = self._choose_best() if 0 <= self._reported.most < len(self._seen) else self._seen
        lengths = self._entry_lengths([row for _, row, _, _ in chosen])
        terms, place = self._reported.terms, self._shelf.place
        for score, row, seen, places in chosen:
            factor = length_factor(lengths[row])
            much = [(number, phrase_share(often, factor, terms[number])) for number, often in seen]
            if places:
                much += [(number, phrase_share(often, factor, 2)) for number, often in self._count_pairs(places)]
            yield score, IndexEntry(*place(row), tuple(much))

    def _record_entry(self, api: apsw.FTS5ExtensionApi, /, *_: object) -> None:
        """Record an entry. Called so often that every attribute lookup counts."""
        phrases, weights, worth, with_places = self._constants
        last = 0
        seen = []
        places: Places = {}
        for number, place in phrases:
            if columns := api.phrase_columns(place):
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
        """Yield pairs of words and how often they are adjacent, weighted by field."""
        _, weights, _, _ = self._constants
        for number, first, second in self._reported.pairs:
            often = 0.0
            for column in range(len(weights)):
                if (first, column) in places and (second, column) in places:
                    behind = [one + 1 for one in places[first, column]]
                    often += weights[column] * len(set(places[second, column]).intersection(behind))
            if often:
                yield number, often

    def _choose_best(self) -> list[SeenEntry]:
        """Return the best and, as far as there is room, the rest of their sessions: neighbours raise a score."""
        scores = {row: score for score, row, _, _ in self._seen}
        get = scores.get
        worth = [
            (score + _BESIDE * (get(row - 1, 0.0) + get(row + 1, 0.0) + get(row - 2, 0.0) + get(row + 2, 0.0)), row)
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
    """Sum the numbers of terms by column, each a variable-length integer of SQLite."""
    if sizes.isascii():
        return sum(sizes)
    total = value = 0
    for byte in sizes:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            total += value
            value = 0
    return total


_ADD = f"INSERT INTO {TABLE} (rowid, {', '.join(COLUMNS)}) VALUES ({','.join('?' * (len(COLUMNS) + 1))})"
_in_columns = itemgetter(*(FIELDS.index(name) for name in COLUMNS))
_COUNT = """
    SELECT COUNT(*), MIN(r) FROM
    (SELECT rowid AS r FROM {0} WHERE {0} MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?)
"""
_JOIN = ' CROSS JOIN "message" m ON m."session"=({0}.rowid-{1})>>{2} AND m."seq"={0}.rowid&{3}'
_OPENED = 200  # terms
_MOST_WAITING = 16 << 20  # characters of text of one transaction
_OLD = """SELECT "value" FROM "setting" WHERE "key"='old index'"""
_VOCABULARY = f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.fts_terms USING fts5vocab(main, {TABLE}, row)"


class SqliteIndex:
    """The index of one archive. Implements `store.index.Index`."""

    def __init__(self, driver: SqliteDriver) -> None:
        self._driver = driver
        self._counter = PhraseCounter(driver)
        self._waiting: dict[int, tuple[int | str | None, ...]] = {}  # rows of this transaction, by row number
        self._waiting_size = 0

    # --- changes ---
    def add(self, session: int, rows: Sequence[IndexRow]) -> None:
        """Add messages. Those beyond the 16 millionth of a session are not indexed."""
        waiting = self._waiting
        for row in map(fold_row, rows):
            if row.seq <= LAST_SEQ:
                number = (SHORT if row.seq <= SHORT.last else LONG).row(session, row.seq)
                waiting[number] = (number, *_in_columns(row.texts))
                self._waiting_size += sum(map(len, filter(None, row.texts)))
        if self._waiting_size > _MOST_WAITING:
            self._write_waiting()

    def add_session(self, session: int, text: str) -> None:
        number = SHORT.row(session, -1)
        self._waiting.pop(number, None)
        if self._driver.one(f"SELECT 1 FROM {TABLE}_docsize WHERE id=?", (number,)) or self._old_tables():
            self.remove(session, [-1])
        if text:
            self._waiting[number] = (number, *[index_text(text) if name == "summary" else None for name in COLUMNS])

    def _write_waiting(self) -> None:
        """Write the rows that wait, in their order.

        FTS5 gathers new rows in memory, and writes them at every statement that changes several rows of another table, and at
        every row that is not the next one. Together they cost a fraction of that.
        """
        if self._waiting:
            waiting, self._waiting, self._waiting_size = self._waiting, {}, 0
            self._drop_empty()
            self._driver.many(_ADD, map(waiting.__getitem__, sorted(waiting)))

    def remove(self, session: int, seqs: Sequence[int]) -> None:
        self._write_waiting()
        for shelf in self._shelves():
            rows = [(shelf.row(session, seq),) for seq in seqs if shelf.holds(seq)]
            self._driver.many(f"DELETE FROM {shelf.table} WHERE rowid=?", rows)

    def remove_session(self, session: int) -> None:
        self._write_waiting()
        for shelf in self._shelves():
            self._driver.run(
                f"DELETE FROM {shelf.table} WHERE rowid BETWEEN ? AND ?", shelf.span(Range(session)) or (0, -1)
            )
        self._drop_empty()

    def optimize(self) -> None:
        """Remove deleted entries from the tables for good."""
        self._write_waiting()
        for table in dict.fromkeys(shelf.table for shelf in self._shelves()):
            self._driver.run(f"INSERT INTO {table} ({table}) VALUES ('optimize')")

    def finish_write(self, failed: bool) -> None:
        """Write what waits."""
        if failed:
            self._waiting, self._waiting_size = {}, 0
        self._write_waiting()

    # --- questions ---
    def total(self) -> int:
        """Return the number of rows from FTS5's own averages record."""
        self._write_waiting()
        return sum(self._entries_in(table) for table in (TABLE, *self._old_tables()))

    def estimate(self, phrase: Phrase, fields: Sequence[str], sample: int, since: int, newest: int) -> float:
        """Estimate from the newest entries with the phrase."""
        self._write_waiting()
        match = expression([(phrase,)], (), fields)
        return sum(self._estimate(shelf, match, sample, since, newest) for shelf in self._shelves())

    def look(self, looking: IndexLook) -> IndexMatches:
        """Return the matches; of too many, the best."""
        self._write_waiting()
        scored: list[tuple[float, IndexEntry]] = []
        walked = complete = True
        for shelf in self._shelves():
            self._walk(shelf, looking)
            walked &= not 0 <= looking.walk <= self._counter.count
            complete &= not 0 <= looking.most < self._counter.count
            scored += self._counter.entries()
        if 0 <= looking.most < len(scored):
            scored, complete = nlargest(looking.most, scored, key=itemgetter(0)), False
        return IndexMatches([entry for _, entry in scored], walked, walked and complete)

    def expand_prefix(self, beginning: str) -> list[str]:
        """Return the prefix if it is its own stem. Otherwise FTS5 would search for the stem, so list the terms."""
        if stem_word(beginning) == beginning:
            return [f"{beginning}*"]
        return [beginning, *filter(None, map(word_with_stem, self.vocabulary(beginning, _OPENED)))]

    def count_words(self, words: Sequence[str], most: int) -> dict[str, int]:
        """Count each word; one that does not occur costs one index lookup."""
        self._write_waiting()
        counts = dict.fromkeys(words, 0)
        for table in (TABLE, *self._old_tables()):
            sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"
            for word in words:
                counts[word] += self._driver.all(sql, (_phrase_fts((word,)), most))[0][0]
        return {word: n for word, n in counts.items() if n}

    def vocabulary(self, beginning: str, most: int) -> list[str]:
        """Return terms from FTS5's own list."""
        self._write_waiting()
        self._driver.run(_VOCABULARY)
        sql = "SELECT term FROM temp.fts_terms WHERE term>=? AND term<? LIMIT ?"
        return [row[0] for row in self._driver.all(sql, (beginning, beginning + "\U0010ffff", most))]

    # --- helpers ---
    def _old_tables(self) -> list[str]:
        """Return the tables of earlier versions that still have rows."""
        return row[0].split() if (row := self._driver.one(_OLD)) else []

    def _shelves(self) -> list[EntryShelf]:
        newest = self._driver.one(f"SELECT MAX(id) FROM {TABLE}_docsize")
        has_long = newest is not None and newest[0] is not None and newest[0] >= LONG.base
        return [SHORT, *[LONG] * has_long, *map(older_shelf, self._old_tables())]

    def _drop_empty(self) -> None:
        if not (old := self._old_tables()):
            return
        left = [table for table in old if self._entries_in(table)]
        for table in old:
            if table not in left:
                self._driver.run(f"DROP TABLE {table}")
        if not left:
            self._driver.run("""DELETE FROM "setting" WHERE "key"='old index'""")
        elif len(left) < len(old):
            self._driver.run("""UPDATE "setting" SET "value"=? WHERE "key"='old index'""", (" ".join(left),))

    def _entries_in(self, table: str) -> int:
        row = self._driver.one(f"SELECT block FROM {table}_data WHERE id=1")
        return _read_varint(row[0]) if row and row[0] else 0

    def _estimate(self, shelf: EntryShelf, match: str, sample: int, since: int, newest: int) -> float:
        given = (match, shelf.base | since << shelf.bits, shelf.end, sample)
        n, last = self._driver.all(_COUNT.format(shelf.table), given)[0]
        first = shelf.place(last)[0] if n == sample else since
        return float(n) * max(newest / max(newest - first + 1, 1), 1.0) if first else float(n)

    def _walk(self, shelf: EntryShelf, looking: IndexLook) -> None:
        match, reported = _match_expression(looking)
        table = shelf.table
        sql = f"SELECT held({table}) FROM {table}"
        where, params = f"{table} MATCH ?", [match]
        if looking.messages is not None:
            sql += _JOIN.format(table, shelf.base, shelf.bits, (1 << shelf.bits) - 1)
        if looking.sessions is not None:
            where += f" AND ({table}.rowid-{shelf.base})>>{shelf.bits} IN ({looking.sessions[0]})"
            params += looking.sessions[1]
        if looking.messages is not None:
            where += f" AND {looking.messages[0]}"
            params += looking.messages[1]
        sql += f" WHERE {where} AND {table}.rowid BETWEEN ? AND ? ORDER BY {table}.rowid DESC LIMIT ?"
        self._counter.begin(reported, shelf)
        for first, last in _row_spans(looking, shelf):
            left = looking.walk - self._counter.count if looking.walk >= 0 else -1
            self._driver.all(sql, [*params, first, last, left])


def _row_spans(looking: IndexLook, shelf: EntryShelf) -> list[tuple[int, int]]:
    lowest = shelf.base | looking.from_session << shelf.bits
    if looking.ranges is None:
        return [(lowest, shelf.end)]
    spans = sorted(filter(None, map(shelf.span, looking.ranges)), reverse=True)
    return [(max(first, lowest), last) for first, last in spans if last >= lowest]


def _match_expression(looking: IndexLook) -> tuple[str, PhraseReport]:
    """Return the FTS5 expression, and which of its numbered phrases to report.

    Phrases that are reported but not required follow as `AND (this OR that OR the required ones)`, which is always true:
    then FTS5 has their positions, and finds them by seeking to the matching entries instead of walking the whole list.
    """
    required = [phrase for group in looking.groups for phrase in group]
    pairs = _reported_pairs(looking)
    paired = {looking.phrases[number] for number, _, _ in pairs}
    others = [phrase for phrase in looking.phrases if phrase and phrase not in required and phrase not in paired]
    groups = [*looking.groups]
    if others:
        groups.append((*others, *looking.groups[0]))
    order = [*required, *others]
    phrases = [(number, order.index(phrase)) for number, phrase in enumerate(looking.phrases) if phrase in order]
    worth = list(looking.worth) or [1.0] * len(looking.phrases)
    reported = PhraseReport(phrases, pairs, [len(phrase) for phrase in looking.phrases], worth, looking.most)
    return expression(groups, looking.without, looking.fields, looking.first_in), reported


def _reported_pairs(looking: IndexLook) -> list[tuple[int, int, int]]:
    """Return pairs of adjacent words that are both reported: numbers of the phrase and of the words.

    As phrases of the expression, each would be walked through the whole archive.
    """
    numbers = {phrase: number for number, phrase in enumerate(looking.phrases)}
    required = {phrase for group in looking.groups for phrase in group}
    return [
        (number, numbers[phrase[:1]], numbers[phrase[1:]])
        for phrase, number in numbers.items()
        if len(phrase) == 2 and phrase not in required and phrase[:1] in numbers and phrase[1:] in numbers
    ]


def expression(
    groups: Sequence[Sequence[Phrase]],
    without: Sequence[Phrase],
    fields: Sequence[str],
    first_in: Sequence[str] = (),
) -> str:
    """Return an FTS5 expression. Every term is quoted, so input cannot inject syntax."""
    first, *others = map(_any_of_fts, groups)
    match = " AND ".join([_limit_to_fields(first_in, first), *others])
    if without:
        match = f"({match}) NOT {_any_of_fts(without)}"
    return _limit_to_fields(fields, match if not fields else f"({match})")


def _limit_to_fields(fields: Sequence[str], match: str) -> str:
    return f"{{{' '.join(name for name in FIELDS if name in fields)}}} : {match}" if fields else match


def _any_of_fts(phrases: Sequence[Phrase]) -> str:
    return "(" + " OR ".join(map(_phrase_fts, phrases)) + ")"


def _phrase_fts(terms: Phrase) -> str:
    words = " ".join(terms)
    by_prefix = words.endswith("*")
    quoted = words.rstrip("*").replace('"', '""')
    return f'"{quoted}"{" *" if by_prefix else ""}'


def _read_varint(record: bytes) -> int:
    """Read SQLite's variable-length integer."""
    value = 0
    for byte in record[:8]:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value
