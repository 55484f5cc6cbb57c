"""The full-text index in PostgreSQL: the same hits as SQLite's FTS5, from the same terms.

The server's own parser is not used. Terms come from `text.terms` and their stems from `store.index`; both are written as
`tsvector` literals, one row per field of a message, so that a limit to fields is exact and no phrase spans two fields.
Groups of a query are matched by message: each may occur in another field.

A `tsvector` has limits (1 MB, 16,383 positions, 255 positions and 2 kB per term) and silently drops what exceeds some of
them. So a long text becomes several rows, each beginning with the last terms of the one before: a phrase of up to
OVERLAP + 1 terms is found anywhere, and of a longer one the first OVERLAP + 1 terms count. A term longer than LONGEST
characters is indexed by its beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any

from everturn.model.archive import IndexRow
from everturn.model.vocabulary import FIELDS
from everturn.store.common_words import CommonWords
from everturn.store.contract import IndexQuery
from everturn.store.index import GatheredEntries, IndexScope, fold_row, stem_word, stem_words
from everturn.store.postgres_driver import PostgresDriver
from everturn.store.postgres_search import LONGEST, OVERLAP, any_of_tsquery, gather_entries
from everturn.text.terms import index_text

PART = 8_000  # terms in a row at most
REPEATS = 250  # of one term in a row
CHARACTERS = 200_000  # of different terms in a row, at most 800,000 bytes

_AT_ONCE = 1_000_000  # characters whose terms are held in memory
_NUMBERS = tuple(map(str, range(1, PART + 1)))


def tsvector_literals(folded: str) -> Iterator[tuple[int, str, int]]:
    """Yield (number, literal, number of terms) of the rows for a folded text."""
    numbers = count()
    cut = (term[:LONGEST] for term in _stems_of_text(folded))
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
#: All words in one index scan: there are a few hundred of them, and hardly any occurs.
_KNOWN_WORDS = """
    SELECT u.lexeme, COUNT(*) FROM (SELECT "tsv" FROM "search_row" WHERE "tsv" @@ ?::tsquery LIMIT ?) s,
    UNNEST(s."tsv") AS u WHERE u.lexeme=ANY(?) GROUP BY u.lexeme
"""


class PostgresIndex:
    """The index of one archive. Implements `store.index.Index`."""

    def __init__(self, driver: PostgresDriver) -> None:
        self.driver = driver
        self._common = CommonWords(driver)

    # --- changes ---
    def add(self, session: int, rows: Sequence[IndexRow]) -> None:
        self.driver.copy(_TARGET, _index_rows(session, rows))
        if seqs := [row.seq for row in rows if any(row.texts)]:
            self._common.note(0, session, min(seqs), max(seqs), len(seqs))

    def add_session(self, session: int, text: str) -> None:
        self.remove(session, [-1])
        if made := list(tsvector_literals(index_text(text))):
            self.driver.copy(_TARGET, ((session, -1, _SUMMARY, *row) for row in made))
            self._common.note(0, session, -1, -1, 1)

    def remove(self, session: int, seqs: Sequence[int]) -> None:
        given = [session, list(seqs)]
        if self.driver.one('SELECT 1 FROM "search_row" WHERE "session"=? AND "seq"=ANY(?) LIMIT 1', given) is not None:
            self._common.remove(session, seqs)
            self.driver.run('DELETE FROM "search_row" WHERE "session"=? AND "seq"=ANY(?)', given)

    def remove_session(self, session: int) -> None:
        self._common.remove(session)
        self.driver.run('DELETE FROM "search_row" WHERE "session"=?', [session])

    def finish_write(self, failed: bool) -> None:
        self._common.finish_write(failed)

    # --- questions ---
    def gather(self, query: IndexQuery, scope: IndexScope, most: int) -> GatheredEntries:
        return gather_entries(self.driver, query, scope, most)

    def expand_prefix(self, beginning: str) -> list[str]:
        """Return the prefix, and the word itself, whose stem may be shorter."""
        return [f"{beginning}*", beginning]

    def count_words(self, words: Sequence[str], most: int) -> dict[str, int]:
        """Count in a bounded number of rows that hold any of the words."""
        if not words:
            return {}
        stems = {word: stem_word(word)[:LONGEST] for word in words}
        given = [any_of_tsquery([(word,) for word in words]), 2 * most, sorted(set(stems.values()))]
        counts = {term: n for term, n in self.driver.all_by_index(_KNOWN_WORDS, given)}  # noqa: C416 -- rows are untyped
        return {word: min(n, most) for word, stem in stems.items() if (n := counts.get(stem, 0))}

    def vocabulary(self, beginning: str, most: int) -> list[str]:
        """Return nothing: the server could only list all terms of all rows, which takes too long."""
        return []


def _index_rows(session: int, rows: Sequence[IndexRow]) -> Iterator[tuple[Any, ...]]:
    for row in map(fold_row, rows):
        for field, text in enumerate(row.texts):
            for made in tsvector_literals(text) if text else ():
                yield session, row.seq, field, *made
