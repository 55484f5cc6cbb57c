"""The full-text index in PostgreSQL: the same hits as SQLite's FTS5, from the same terms.

The server's own parser is not used. Terms come from `text.terms` and their stems from `store.index`; both are written as
`tsvector` literals, one row per field of a message, so that a limit to fields is exact and no phrase spans two fields.
Groups of a query are matched by message: each may occur in another field.

The number of occurrences of a word in a row is derived from `ts_rank`, which for a single word of equal weights is a
known function of that number. The server computes it once for each entry worth ranking, not for every matching row.

A `tsvector` has limits (1 MB, 16,383 positions, 255 positions and 2 kB per term) and silently drops what exceeds some of
them. So a long text becomes several rows, each beginning with the last terms of the one before: a phrase of up to
OVERLAP + 1 terms is found anywhere, and of a longer one the first OVERLAP + 1 terms count. A term longer than LONGEST
characters is indexed by its beginning.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, count, groupby, islice
from operator import itemgetter
from typing import Any

from everturn.model.archive import IndexRow
from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexEntry
from everturn.store.index import (
    BY_FIELD,
    WITHOUT_PIECES,
    IndexLook,
    IndexMatches,
    Phrase,
    Range,
    length_factor,
    phrase_share,
    stem_word,
    stem_words,
)
from everturn.store.postgres_driver import PostgresDriver
from everturn.text.terms import fold, index_text, terms

PART = 8_000  # terms in a row at most
OVERLAP = 64
LONGEST = 500  # characters, at most 2,000 bytes
REPEATS = 250  # of one term in a row
CHARACTERS = 200_000  # of different terms in a row, at most 800,000 bytes

_AT_ONCE = 1_000_000  # characters whose terms are held in memory
_NUMBERS = tuple(map(str, range(1, PART + 1)))


def tsvector_literals(text: str, pieces: bool = False) -> Iterator[tuple[int, str, int]]:
    """Yield (number, literal, number of terms) of the rows for a text, with `pieces` also parts of compound names."""
    numbers = count()
    cut = (term[:LONGEST] for term in _stems_of_text(index_text(text) if pieces else fold(text)))
    part = list(islice(cut, PART))
    while part:
        yield from ((next(numbers), literal, size) for literal, size in _vector_literals(part))
        fresh = list(islice(cut, PART - OVERLAP))
        part = part[-OVERLAP:] + fresh if fresh else []


def _stems_of_text(folded: str) -> Iterator[str]:
    """Yield the stems of a text in slices, because all terms of a long text would not fit into memory."""
    start = 0
    while start < len(folded):
        end = min(start + _AT_ONCE, len(folded))
        if end < len(folded):
            # Cut between two words, if there are any.
            end = max(folded.rfind(" ", start, end), folded.rfind("\n", start, end), start) + 1
            end = end if end > start + 1 else start + _AT_ONCE
        yield from stem_words(folded[start:end])
        start = end


def _vector_literals(part: list[str]) -> Iterator[tuple[str, int]]:
    places: dict[str, list[str]] = defaultdict(list)
    for term, number in zip(part, _NUMBERS, strict=False):
        places[term].append(number)
    if max(map(len, places.values())) > REPEATS or sum(map(len, places)) > CHARACTERS:
        half = len(part) // 2
        yield from _vector_literals(part[:half])
        yield from _vector_literals(part[half - OVERLAP :])
    else:
        yield " ".join([f"{term}:{','.join(numbers)}" for term, numbers in places.items()]), len(part)


_TARGET = '"search_row" ("session","seq","field","part","tsv","size")'
_SUMMARY = FIELDS.index("summary")
_HAS_OLD = """SELECT 1 FROM "setting" WHERE "key"='old index'"""
_STILL_OLD = 'SELECT 1 FROM "search_row" WHERE "size"=0 LIMIT 1'
#: In table order, also with an index scan: the order in which sessions were added, oldest first.
_COUNT = """
    SELECT COUNT(*), MAX("session") FROM
    (SELECT "session" FROM "search_row" WHERE "tsv" @@ ?::tsquery AND "session">=?{} LIMIT ?) s
"""
_TOTAL = """SELECT SUM("n_messages"-"n_inherited") FROM "session" WHERE "mode"<>'structure'"""
#: All words in one index scan: there are a few hundred of them, and hardly any occurs.
_KNOWN_WORDS = """
    SELECT u.lexeme, COUNT(*) FROM (SELECT "tsv" FROM "search_row" WHERE "tsv" @@ ?::tsquery LIMIT ?) s,
    UNNEST(s."tsv") AS u WHERE u.lexeme=ANY(?) GROUP BY u.lexeme
"""
_RANK = """, CASE WHEN "t" @@ ?::tsquery THEN ts_rank('{1,1,1,1}',"t",?::tsquery) ELSE 0 END"""
#: `ts_rank` of a word that occurs 1, 2, 3 … times.
_RANKS = [total / 1.64493406685 for total in accumulate(1 / (n * n) for n in range(1, 101))]


class PostgresIndex:
    """The index of one archive. Implements `store.index.Index`."""

    chooses = False

    def __init__(self, driver: PostgresDriver) -> None:
        self.driver = driver

    # --- changes ---
    def add(self, session: int, rows: Sequence[IndexRow]) -> None:
        self.driver.copy(_TARGET, _index_rows(session, rows))

    def add_session(self, session: int, text: str) -> None:
        self.remove(session, [-1])
        self.driver.copy(_TARGET, ((session, -1, _SUMMARY, *row) for row in tsvector_literals(text, pieces=True)))

    def remove(self, session: int, seqs: Sequence[int]) -> None:
        self.driver.run('DELETE FROM "search_row" WHERE "session"=? AND "seq"=ANY(?)', [session, list(seqs)])

    def remove_session(self, session: int) -> None:
        self.driver.run('DELETE FROM "search_row" WHERE "session"=?', [session])
        if self._has_old_rows() and self.driver.one(_STILL_OLD) is None:
            self.driver.run("""DELETE FROM "setting" WHERE "key"='old index'""")

    # --- questions ---
    def total(self) -> int:
        """Return the number of messages, a little more than the number of entries."""
        return int(row[0] or 0) if (row := self.driver.one(_TOTAL)) else 0

    def estimate(self, phrase: Phrase, fields: Sequence[str], sample: int, since: int, newest: int) -> float:
        """Estimate from the oldest rows with the phrase, from session `since` on."""
        self._force_index_scan()
        only, numbers = _field_filter(fields)
        row = self.driver.one(_COUNT.format(only), [self._any_of_tsquery([phrase]), since, *numbers, sample])
        n, last = row or (0, 0)
        reach = (last - since + 1) if n == sample else (newest - since + 1)
        return float(n) * max(newest / max(reach, 1), 1.0) if n == sample or since else float(n)

    def look(self, looking: IndexLook) -> IndexMatches:
        """Return the matches; of too many, the newest."""
        self._force_index_scan()
        numbered = [(number, phrase) for number, phrase in enumerate(looking.phrases) if phrase]
        queries = [self._any_of_tsquery([phrase]) for _, phrase in numbered]
        hits, params = self._hits(looking)
        only, numbers = _field_filter(looking.fields)
        # The inner SELECT unpacks each vector once; OFFSET 0 keeps the planner from flattening it.
        sql = f"""
            WITH h AS MATERIALIZED ({hits}) SELECT "session","seq","field","size"{_RANK * len(queries)} FROM
            (SELECT r."session",r."seq",r."field",r."size",r."tsv" || ''::tsvector AS "t" FROM h
            JOIN "search_row" r ON r."session"=h."session" AND r."seq"=h."seq"{only} OFFSET 0) u
            ORDER BY "session" DESC, "seq" DESC
        """
        rows = self.driver.all(sql, [*params, *[query for query in queries for _ in range(2)], *numbers])
        by_place = groupby(rows, key=itemgetter(0, 1))
        entries = [IndexEntry(session, seq, _held_phrases(list(some), numbered)) for (session, seq), some in by_place]
        complete = not 0 <= looking.most <= len(entries)
        return IndexMatches(entries, complete, complete)

    def expand_prefix(self, beginning: str) -> list[str]:
        """Return the prefix, and the word itself, whose stem may be shorter."""
        return [f"{beginning}*", beginning]

    def count_words(self, words: Sequence[str], most: int) -> dict[str, int]:
        """Count in a bounded number of rows that hold any of the words."""
        if not words:
            return {}
        with self.driver.reading():
            self._force_index_scan()
            given = [self._any_of_tsquery([(word,) for word in words]), 2 * most]
            terms_of = {
                word: {stem_word(word)[:LONGEST], *([word[:LONGEST]] if self._has_old_rows() else [])} for word in words
            }
            every = sorted({term for made in terms_of.values() for term in made})
            counts = {term: n for term, n in self.driver.all(_KNOWN_WORDS, [*given, every])}  # noqa: C416 -- rows are untyped
        found = {word: sum(counts.get(term, 0) for term in made) for word, made in terms_of.items()}
        return {word: min(n, most) for word, n in found.items() if n}

    def vocabulary(self, beginning: str, most: int) -> list[str]:
        """Return nothing: the server could only list all terms of all rows, which takes too long."""
        return []

    # --- helpers ---
    def _force_index_scan(self) -> None:
        """Disable sequential scans until the end of the transaction.

        With a small limit the planner prefers one, and for a word that does not occur it reads the whole table.
        """
        self.driver.run("SET LOCAL enable_seqscan TO off")

    def _has_old_rows(self) -> bool:
        return self.driver.one(_HAS_OLD) is not None

    def _hits(self, looking: IndexLook) -> tuple[str, list[Any]]:
        """Return a SELECT of session and seq of the matches, each once, newest first."""
        only, numbers = _field_filter(looking.fields)
        matching = f'SELECT "session","seq" FROM "search_row" WHERE "tsv" @@ ?::tsquery{only}'
        first, *others = [[self._any_of_tsquery(group), *numbers] for group in looking.groups]
        where, params = f'r."tsv" @@ ?::tsquery{only} AND r."session">=?', [*first, looking.from_session]
        if looking.first_in:
            where += ' AND r."field"=ANY(?)'
            params.append([FIELDS.index(field) for field in looking.first_in])
        for group in others:
            where += f' AND (r."session",r."seq") IN ({matching})'
            params += group
        if looking.without:
            where += f' AND (r."session",r."seq") NOT IN ({matching})'
            params += [self._any_of_tsquery(looking.without), *numbers]
        for condition, given in _limit_conditions(looking):
            where += f" AND {condition}"
            params += given
        order = 'ORDER BY r."session" DESC, r."seq" DESC LIMIT ?'
        params.append(looking.most if looking.most >= 0 else None)
        return f'SELECT DISTINCT r."session",r."seq" FROM "search_row" r WHERE {where} {order}', params

    def _any_of_tsquery(self, phrases: Sequence[Phrase]) -> str:
        """Return a `tsquery` literal that any of the phrases satisfies; an empty one matches nothing."""
        literals = [_phrase_tsquery(phrase, stemmed=True) for phrase in phrases]
        if self._has_old_rows():
            literals += [_phrase_tsquery(phrase, stemmed=False) for phrase in phrases]
        return " | ".join(f"({literal})" for literal in dict.fromkeys(literals) if literal)


def _index_rows(session: int, rows: Sequence[IndexRow]) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        for field, text in enumerate(row.texts):
            for made in tsvector_literals(text, FIELDS[field] not in WITHOUT_PIECES) if text else ():
                yield session, row.seq, field, *made


def _held_phrases(
    rows: Sequence[tuple[Any, ...]], numbered: Sequence[tuple[int, Phrase]]
) -> tuple[tuple[int, float], ...]:
    factor = length_factor(sum(row[3] for row in rows))
    shares = []
    for column, (number, phrase) in enumerate(numbered, 4):
        seen = sum(BY_FIELD[row[2]] * _phrase_count(row[column], phrase) for row in rows if row[column])
        if seen:
            shares.append((number, phrase_share(seen, factor, len(phrase))))
    return tuple(shares)


def _phrase_count(rank: float, phrase: Phrase) -> int:
    """Return how often a phrase occurs in a row; more than once is known for single words only."""
    return bisect_left(_RANKS, rank - 1e-6) + 1 if len(phrase) == 1 else 1


def _limit_conditions(looking: IndexLook) -> Iterator[tuple[str, Sequence[Any]]]:
    if looking.ranges is not None:
        yield _within_ranges_sql(looking.ranges)
    if looking.sessions is not None:
        yield f'r."session" IN ({looking.sessions[0]})', looking.sessions[1]
    if looking.messages is not None:
        of_row = 'm."session"=r."session" AND m."seq"=r."seq"'
        yield f'EXISTS (SELECT 1 FROM "message" m WHERE {of_row} AND {looking.messages[0]})', looking.messages[1]


def _within_ranges_sql(ranges: Sequence[Range]) -> tuple[str, list[Any]]:
    """Return a condition on ranges. A join would read all of them; this is one primary key lookup per row."""
    sql = 'EXISTS (SELECT 1 FROM UNNEST(?::bigint[],?::bigint[],?::bigint[]) AS g(s,a,b) WHERE g.s=r."session" AND r."seq" BETWEEN g.a AND g.b)'
    sessions = sorted({part.session for part in ranges})
    return f'r."session"=ANY(?) AND {sql}', [sessions, *[list(column) for column in zip(*ranges, strict=True)]]


def _field_filter(fields: Sequence[str]) -> tuple[str, list[Any]]:
    if not fields:
        return "", []
    return ' AND "field"=ANY(?)', [[FIELDS.index(field) for field in fields if field in FIELDS]]


def _phrase_tsquery(phrase: Sequence[str], stemmed: bool) -> str:
    # Analysed again, which changes no term and leaves no syntax.
    words = [word for term in phrase for word in terms(term)]
    literals = [f"'{(stem_word(word) if stemmed else word)[:LONGEST]}'" for word in words]
    if literals and phrase[-1].endswith("*"):
        literals[-1] = f"'{words[-1][:LONGEST]}':*"  # a prefix has no stem
    return " <-> ".join(literals[: OVERLAP + 1])
