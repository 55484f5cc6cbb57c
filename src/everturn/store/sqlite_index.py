"""The full-text index in SQLite: FTS5 tables without content, their columns the field groups.

`sqlite_rows` says how entries are numbered, `sqlite_holding` what is reported of them. Rows are read downwards, so that
the newest come first and any bound on the work leaves out the oldest. How common a word is, is counted here, where it can
be bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from operator import itemgetter

from everturn.model.archive import IndexRow
from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexEntry
from everturn.store.index import (
    LAST_SEQ,
    WITHOUT_PIECES,
    IndexLook,
    IndexMatches,
    Phrase,
    Range,
    stem_word,
    word_with_stem,
)
from everturn.store.sqlite_driver import SqliteDriver
from everturn.store.sqlite_entries import (
    COLUMNS,
    LONG,
    SHORT,
    TABLE,
    EntryShelf,
    PhraseCounter,
    PhraseReport,
    older_shelf,
)
from everturn.text.terms import fold, index_text

_ADD = f"INSERT INTO {TABLE} (rowid, {', '.join(COLUMNS)}) VALUES ({','.join('?' * (len(COLUMNS) + 1))})"
_ANALYSED = tuple((FIELDS.index(name), fold if name in WITHOUT_PIECES else index_text) for name in COLUMNS)
_COUNT = """
    SELECT COUNT(*), MIN(r) FROM
    (SELECT rowid AS r FROM {0} WHERE {0} MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?)
"""
_JOIN = ' CROSS JOIN "message" m ON m."session"=({0}.rowid-{1})>>{2} AND m."seq"={0}.rowid&{3}'
_OPENED = 200  # terms
_OLD = """SELECT "value" FROM "setting" WHERE "key"='old index'"""
_VOCABULARY = f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.fts_terms USING fts5vocab(main, {TABLE}, row)"


class SqliteIndex:
    """The index of one archive. The methods are those of `index.Index`."""

    chooses = True

    def __init__(self, driver: SqliteDriver) -> None:
        self._driver = driver
        self._holding = PhraseCounter(driver)

    # in and out ---------------------------------------------------------------------------------------------------
    def add(self, session: int, rows: Sequence[IndexRow]) -> None:
        """Enter messages. One beyond the 16 millionth of a session is kept, but not indexed."""
        self._drop_empty()
        self._driver.many(
            _ADD,
            (
                (
                    (SHORT if row.seq <= SHORT.last else LONG).row(session, row.seq),
                    *[(text := row.texts[number]) and analyse(text) for number, analyse in _ANALYSED],
                )
                for row in rows
                if row.seq <= LAST_SEQ
            ),
        )

    def add_session(self, session: int, text: str) -> None:
        """Replace the session's own entry."""
        self.remove(session, [-1])
        if text:
            given = (SHORT.row(session, -1), index_text(text))
            self._driver.run(f"INSERT INTO {TABLE} (rowid, summary) VALUES (?,?)", given)

    def remove(self, session: int, seqs: Sequence[int]) -> None:
        """Take messages out."""
        for shelf in self._shelves():
            rows = [(shelf.row(session, seq),) for seq in seqs if shelf.holds(seq)]
            self._driver.many(f"DELETE FROM {shelf.table} WHERE rowid=?", rows)

    def remove_session(self, session: int) -> None:
        """Take everything of a session out."""
        for shelf in self._shelves():
            self._driver.run(
                f"DELETE FROM {shelf.table} WHERE rowid BETWEEN ? AND ?", shelf.span(Range(session)) or (0, -1)
            )
        self._drop_empty()

    def settle(self) -> None:
        """Deleted entries leave the tables for good."""
        for table in dict.fromkeys(shelf.table for shelf in self._shelves()):
            self._driver.run(f"INSERT INTO {table} ({table}) VALUES ('optimize')")

    # questions ----------------------------------------------------------------------------------------------------
    def total(self) -> int:
        """From the averages that FTS5 keeps: the first number of their record."""
        return sum(self._entries_in(table) for table in (TABLE, *self._old_tables()))

    def estimate(self, phrase: Phrase, fields: Sequence[str], sample: int, since: int, newest: int) -> float:
        """From the newest entries that hold it."""
        wanted = expression([(phrase,)], (), fields)
        return sum(self._estimate(shelf, wanted, sample, since, newest) for shelf in self._shelves())

    def look(self, looking: IndexLook) -> IndexMatches:
        """What matches; of more than are wanted the best."""
        found: list[tuple[float, IndexEntry]] = []
        walked = complete = True
        for shelf in self._shelves():
            self._walk(shelf, looking)
            walked &= not 0 <= looking.walk <= self._holding.count
            complete &= not 0 <= looking.most < self._holding.count
            found += self._holding.entries()
        if 0 <= looking.most < len(found):
            found, complete = nlargest(looking.most, found, key=itemgetter(0)), False
        return IndexMatches([entry for _, entry in found], walked, walked and complete)

    def opened(self, beginning: str) -> list[str]:
        """FTS5 would take the beginning for a word and look for all that its stem begins: then terms are named one by one."""
        if stem_word(beginning) == beginning:
            return [f"{beginning}*"]
        return [beginning, *filter(None, map(word_with_stem, self.vocabulary(beginning, _OPENED)))]

    def known(self, words: Sequence[str], most: int) -> dict[str, int]:
        """Counted one by one: a word that is not there costs a look at the index."""
        counts = dict.fromkeys(words, 0)
        for table in (TABLE, *self._old_tables()):
            sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"
            for word in words:
                counts[word] += self._driver.all(sql, (_phrase_fts((word,)), most))[0][0]
        return {word: n for word, n in counts.items() if n}

    def vocabulary(self, beginning: str, most: int) -> list[str]:
        """From FTS5's own list."""
        self._driver.run(_VOCABULARY)
        sql = "SELECT term FROM temp.fts_terms WHERE term>=? AND term<? LIMIT ?"
        return [row[0] for row in self._driver.all(sql, (beginning, beginning + "\U0010ffff", most))]

    # helpers ------------------------------------------------------------------------------------------------------
    def _old_tables(self) -> list[str]:
        """Tables of earlier versions that still hold something."""
        row = self._driver.one(_OLD)
        return row[0].split() if row else []

    def _shelves(self) -> list[EntryShelf]:
        newest = self._driver.one(f"SELECT MAX(id) FROM {TABLE}_docsize")
        has_long = newest is not None and newest[0] is not None and newest[0] >= LONG.base
        return [SHORT, *[LONG] * has_long, *map(older_shelf, self._old_tables())]

    def _drop_empty(self) -> None:
        old = self._old_tables()
        if not old:
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

    def _estimate(self, shelf: EntryShelf, wanted: str, sample: int, since: int, newest: int) -> float:
        given = (wanted, shelf.base | since << shelf.bits, shelf.end, sample)
        n, last = self._driver.all(_COUNT.format(shelf.table), given)[0]
        first = shelf.place(last)[0] if n == sample else since
        return float(n) * max(newest / max(newest - first + 1, 1), 1.0) if first else float(n)

    def _walk(self, shelf: EntryShelf, looking: IndexLook) -> None:
        wanted, reported = _match_expression(looking)
        table = shelf.table
        sql = f"SELECT held({table}) FROM {table}"
        where, params = f"{table} MATCH ?", [wanted]
        if looking.messages is not None:
            sql += _JOIN.format(table, shelf.base, shelf.bits, (1 << shelf.bits) - 1)
        if looking.sessions is not None:
            where += f" AND ({table}.rowid-{shelf.base})>>{shelf.bits} IN ({looking.sessions[0]})"
            params += looking.sessions[1]
        if looking.messages is not None:
            where += f" AND {looking.messages[0]}"
            params += looking.messages[1]
        sql += f" WHERE {where} AND {table}.rowid BETWEEN ? AND ? ORDER BY {table}.rowid DESC LIMIT ?"
        self._holding.begin(reported, shelf)
        for first, last in _row_spans(looking, shelf):
            left = looking.walk - self._holding.count if looking.walk >= 0 else -1
            self._driver.all(sql, [*params, first, last, left])


def _row_spans(looking: IndexLook, shelf: EntryShelf) -> list[tuple[int, int]]:
    lowest = shelf.base | looking.from_session << shelf.bits
    if looking.ranges is None:
        return [(lowest, shelf.end)]
    spans = sorted(filter(None, map(shelf.span, looking.ranges)), reverse=True)
    return [(max(first, lowest), last) for first, last in spans if last >= lowest]


def _match_expression(looking: IndexLook) -> tuple[str, PhraseReport]:
    """The words as FTS5 wants them, and which of its numbered phrases are to be reported.

    What is reported but not demanded stands behind `AND (this OR that OR what was demanded)`, which is always true: FTS5
    then has the places at hand, and finds them by jumping to the entries at hand rather than by walking.
    """
    demanded = [phrase for group in looking.groups for phrase in group]
    pairs = _reported_pairs(looking)
    paired = {looking.phrases[number] for number, _, _ in pairs}
    others = [phrase for phrase in looking.phrases if phrase and phrase not in demanded and phrase not in paired]
    groups = [*looking.groups]
    if others:
        groups.append((*others, *looking.groups[0]))
    order = [*demanded, *others]
    phrases = [(number, order.index(phrase)) for number, phrase in enumerate(looking.phrases) if phrase in order]
    worth = list(looking.worth) or [1.0] * len(looking.phrases)
    reported = PhraseReport(phrases, pairs, [len(phrase) for phrase in looking.phrases], worth, looking.most)
    return expression(groups, looking.without, looking.fields, looking.first_in), reported


def _reported_pairs(looking: IndexLook) -> list[tuple[int, int, int]]:
    """Two words side by side, both of which are reported: numbers of the phrase and of the words.

    As a phrase of the expression each would be walked through from one end of the archive to the other.
    """
    numbers = {phrase: number for number, phrase in enumerate(looking.phrases)}
    demanded = {phrase for group in looking.groups for phrase in group}
    return [
        (number, numbers[phrase[:1]], numbers[phrase[1:]])
        for phrase, number in numbers.items()
        if len(phrase) == 2 and phrase not in demanded and phrase[:1] in numbers and phrase[1:] in numbers
    ]


def expression(
    groups: Sequence[Sequence[Phrase]],
    without: Sequence[Phrase],
    fields: Sequence[str],
    first_in: Sequence[str] = (),
) -> str:
    """Every term is quoted, so no syntax of FTS5 can come from outside."""
    first, *others = map(_any_of_fts, groups)
    wanted = " AND ".join([_limit_to_fields(first_in, first), *others])
    if without:
        wanted = f"({wanted}) NOT {_any_of_fts(without)}"
    return _limit_to_fields(fields, wanted if not fields else f"({wanted})")


def _limit_to_fields(fields: Sequence[str], wanted: str) -> str:
    return f"{{{' '.join(name for name in FIELDS if name in fields)}}} : {wanted}" if fields else wanted


def _any_of_fts(phrases: Sequence[Phrase]) -> str:
    return "(" + " OR ".join(map(_phrase_fts, phrases)) + ")"


def _phrase_fts(terms: Phrase) -> str:
    words = " ".join(terms)
    by_prefix = words.endswith("*")
    quoted = words.rstrip("*").replace('"', '""')
    return f'"{quoted}"{" *" if by_prefix else ""}'


def _read_varint(record: bytes) -> int:
    """SQLite's variable-length integer."""
    value = 0
    for byte in record[:8]:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value
