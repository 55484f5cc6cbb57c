"""The full-text index in SQLite: one FTS5 table without content, its columns the field groups.

An entry's row is `session << 24 | seq`, so entries of a session stand together and a session is a range of rows; the
highest seq is the session's own entry. Rows are read downwards, so that the newest come first and any bound on the work
leaves out the oldest.

FTS5's own bm25 walks through the whole list of every word to learn how common it is. So the counting is done here, where
it can be bounded, and a function of ours (`held`) only reports what an entry holds.

An archive that was made before terms were stemmed has a second table, `fts_old`: what has not been derived again yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apsw

from everturn.derive.analysis import fold, indexed
from everturn.model.archive import IndexRow
from everturn.model.words import FIELDS
from everturn.store import Entry
from everturn.store.index import BY_FIELD, LAST_SEQ, WITHOUT_PIECES, Looking, Phrase, Range, length_factor
from everturn.store.index import held as how_much
from everturn.store.sqlite_driver import SqliteDriver

_OWN = LAST_SEQ + 1  # seq of the session's own entry
_BITS = 24
_ADD = f"INSERT INTO fts (rowid, {', '.join(FIELDS)}) VALUES ({','.join('?' * (len(FIELDS) + 1))})"
_ANALYSE = tuple(fold if name in WITHOUT_PIECES else indexed for name in FIELDS)
_COUNT = """
    SELECT COUNT(*), MIN(r) FROM (SELECT rowid AS r FROM {0} WHERE {0} MATCH ? AND rowid>=? ORDER BY rowid DESC LIMIT ?)
"""
_JOIN = f' CROSS JOIN "message" m ON m."session"={{0}}.rowid>>{_BITS} AND m."seq"={{0}}.rowid&{_OWN}'
_HAS_OLD = """SELECT 1 FROM "setting" WHERE "key"='old index'"""
_VOCABULARY = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.fts_terms USING fts5vocab(main, fts, row)"


class SqliteIndex:
    """The index of one archive. The methods are those of `index.Index`."""

    def __init__(self, driver: SqliteDriver) -> None:
        self._driver = driver
        self._seen: list[Entry] = []
        self._reported: list[tuple[int, int, int]] = []  # number of a phrase, its number in the expression, its terms
        self._pairs: list[tuple[int, int, int]] = []
        with driver.sentences:
            driver.connection.register_fts5_function("held", self._held)

    # in and out ---------------------------------------------------------------------------------------------------
    def add(self, session: int, rows: Sequence[IndexRow]) -> None:
        """Enter messages. One beyond the 16 millionth of a session is kept, but not indexed."""
        self._drop_when_empty()
        base = session << _BITS
        self._driver.many(
            _ADD,
            (
                (base | row.seq, *[text and analyse(text) for analyse, text in zip(_ANALYSE, row.texts, strict=True)])
                for row in rows
                if row.seq <= LAST_SEQ
            ),
        )

    def add_session(self, session: int, text: str) -> None:
        """Replace the session's own entry."""
        own = session << _BITS | _OWN
        for table in self._tables():
            self._driver.run(f"DELETE FROM {table} WHERE rowid=?", (own,))
        if text:
            self._driver.run("INSERT INTO fts (rowid, summary) VALUES (?,?)", (own, indexed(text)))

    def remove(self, session: int, seqs: Sequence[int]) -> None:
        """Take messages out."""
        base = session << _BITS
        for table in self._tables():
            self._driver.many(f"DELETE FROM {table} WHERE rowid=?", ((base | seq,) for seq in seqs))

    def remove_session(self, session: int) -> None:
        """Take everything of a session out."""
        for table in self._tables():
            self._driver.run(f"DELETE FROM {table} WHERE rowid BETWEEN ? AND ?", _rows(Range(session)))
        self._drop_when_empty()

    # questions ----------------------------------------------------------------------------------------------------
    def total(self) -> int:
        """From the averages that FTS5 keeps: the first number of their record."""
        return sum(self._entries_in(table) for table in self._tables())

    def estimate(self, phrase: Phrase, fields: Sequence[str], sample: int, since: int, newest: int) -> float:
        """From the newest entries that hold it."""
        return sum(self._estimate(table, phrase, fields, sample, since, newest) for table in self._tables())

    def look(self, looking: Looking) -> Iterator[Entry]:
        """What matches, newest first."""
        found = [entry for table in self._tables() for entry in self._look_into(table, looking)]
        return iter(found if looking.most < 0 else found[: looking.most])

    def known(self, words: Sequence[str], most: int) -> dict[str, int]:
        """Counted one by one: a word that is not there costs a look at the index."""
        counts = dict.fromkeys(words, 0)
        for table in self._tables():
            sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"
            for word in words:
                counts[word] += self._driver.all(sql, (_phrase((word,)), most))[0][0]
        return {word: n for word, n in counts.items() if n}

    def vocabulary(self, beginning: str, most: int) -> list[str]:
        """From FTS5's own list."""
        self._driver.run(_VOCABULARY)
        sql = "SELECT term FROM temp.fts_terms WHERE term>=? AND term<? LIMIT ?"
        return [row[0] for row in self._driver.all(sql, (beginning, beginning + "\U0010ffff", most))]

    # helpers ------------------------------------------------------------------------------------------------------
    def _tables(self) -> tuple[str, ...]:
        old = self._driver.one(_HAS_OLD)
        return ("fts",) if old is None else ("fts", "fts_old")

    def _drop_when_empty(self) -> None:
        if len(self._tables()) > 1 and not self._entries_in("fts_old"):
            self._driver.run("DROP TABLE fts_old")
            self._driver.run("""DELETE FROM "setting" WHERE "key"='old index'""")

    def _entries_in(self, table: str) -> int:
        row = self._driver.one(f"SELECT block FROM {table}_data WHERE id=1")
        return _first_number(row[0]) if row and row[0] else 0

    def _estimate(
        self, table: str, phrase: Phrase, fields: Sequence[str], sample: int, since: int, newest: int
    ) -> float:
        given = (expression([(phrase,)], (), fields), since << _BITS, sample)
        n, last = self._driver.all(_COUNT.format(table), given)[0]
        first = last >> _BITS if n == sample else since
        return float(n) * max(newest / max(newest - first + 1, 1), 1.0) if first else float(n)

    def _look_into(self, table: str, looking: Looking) -> list[Entry]:
        wanted, self._reported = _wanted_and_reported(looking)
        self._pairs = _pairs(looking)
        sql = f"SELECT held({table}) FROM {table}"
        where, params = f"{table} MATCH ?", [wanted]
        if looking.messages is not None:
            sql += _JOIN.format(table)
        if looking.sessions is not None:
            where += f" AND {table}.rowid>>{_BITS} IN ({looking.sessions[0]})"
            params += looking.sessions[1]
        if looking.messages is not None:
            where += f" AND {looking.messages[0]}"
            params += looking.messages[1]
        sql += f" WHERE {where} AND {table}.rowid BETWEEN ? AND ? ORDER BY {table}.rowid DESC LIMIT ?"
        self._seen = []
        for first, last in _spans(looking):
            left = looking.most - len(self._seen) if looking.most >= 0 else -1
            self._driver.all(sql, [*params, first, last, left])
        found, self._seen = self._seen, []
        return found

    def _held(self, api: apsw.FTS5ExtensionApi, /, *_: object) -> None:
        """Called by FTS5 for each entry that is to be reported. Called so often that every look-up counts."""
        factor = 0.0
        places: dict[int, dict[int, list[int]]] = {}
        held = []
        for number, place, terms in self._reported:
            columns = api.phrase_columns(place)
            if columns:
                factor = factor or length_factor(api.column_size())
                at = places[number] = {column: api.phrase_column_offsets(place, column) for column in columns}
                held.append((number, how_much(_seen(at), factor, terms)))
        if len(places) > 1:
            for number, first, second in self._pairs:
                if first in places and second in places:
                    seen = _seen_together(places[first], places[second])
                    if seen:
                        held.append((number, how_much(seen, factor, 2)))
        row = api.rowid
        seq = row & _OWN
        self._seen.append(Entry(row >> _BITS, -1 if seq == _OWN else seq, tuple(held)))


def _seen(places: dict[int, list[int]]) -> float:
    seen = 0.0
    for column, at in places.items():
        seen += BY_FIELD[column] * len(at)
    return seen


def _seen_together(first: dict[int, list[int]], second: dict[int, list[int]]) -> float:
    """How often the one stands right before the other."""
    seen = 0.0
    for column, at in first.items():
        if column in second:
            seen += BY_FIELD[column] * len({place + 1 for place in at}.intersection(second[column]))
    return seen


def _rows(some: Range) -> tuple[int, int]:
    base = some.session << _BITS
    return base | max(some.first, 0), base | (_OWN if some.first < 0 else some.last)


def _spans(looking: Looking) -> list[tuple[int, int]]:
    lowest = looking.from_session << _BITS
    if looking.ranges is None:
        return [(lowest, (1 << 63) - 1)]
    spans = sorted(map(_rows, looking.ranges), reverse=True)
    return [(max(first, lowest), last) for first, last in spans if last >= lowest]


def _wanted_and_reported(looking: Looking) -> tuple[str, list[tuple[int, int, int]]]:
    """The words as FTS5 wants them, and which of its numbered phrases are to be reported.

    What is reported but not demanded stands behind `AND (this OR that OR what was demanded)`, which is always true: FTS5
    then has the places at hand, and finds them by jumping to the entries at hand rather than by walking.
    """
    demanded = [phrase for group in looking.groups for phrase in group]
    paired = {looking.phrases[number] for number, _, _ in _pairs(looking)}
    others = [phrase for phrase in looking.phrases if phrase and phrase not in demanded and phrase not in paired]
    groups = [*looking.groups]
    if others:
        groups.append((*others, *looking.groups[0]))
    order = [*demanded, *others]
    reported = [
        (number, order.index(phrase), len(phrase)) for number, phrase in enumerate(looking.phrases) if phrase in order
    ]
    return expression(groups, looking.without, looking.fields, looking.first_in), reported


def _pairs(looking: Looking) -> list[tuple[int, int, int]]:
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
    first, *others = map(_any_of, groups)
    wanted = " AND ".join([_within(first_in, first), *others])
    if without:
        wanted = f"({wanted}) NOT {_any_of(without)}"
    return _within(fields, wanted if not fields else f"({wanted})")


def _within(fields: Sequence[str], wanted: str) -> str:
    return f"{{{' '.join(name for name in FIELDS if name in fields)}}} : {wanted}" if fields else wanted


def _any_of(phrases: Sequence[Phrase]) -> str:
    return "(" + " OR ".join(map(_phrase, phrases)) + ")"


def _phrase(terms: Phrase) -> str:
    words = " ".join(terms)
    by_prefix = words.endswith("*")
    quoted = words.rstrip("*").replace('"', '""')
    return f'"{quoted}"{" *" if by_prefix else ""}'


def _first_number(record: bytes) -> int:
    """SQLite's variable-length integer."""
    value = 0
    for byte in record[:8]:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value
