"""The full-text index in PostgreSQL: the same hits as SQLite's FTS5, from the same terms.

The server's own parser is not used. Terms come from `text.terms` and their stems from `store.index`; both are written as
`tsvector`s, one row per field of a message, so that a limit to fields is exact and no phrase spans two fields.
Groups of a query are matched by message: each may occur in another field. Rows are sent in the server's binary form, which
costs it a quarter of what parsing a literal does.

A `tsvector` has limits (1 MB, 16,383 positions, 255 positions and 2 kB per term) and silently drops what exceeds some of
them. So a long text becomes several rows, each beginning with the last terms of the one before: a phrase of up to
OVERLAP + 1 terms is found anywhere, and of a longer one the first OVERLAP + 1 terms count. A term longer than LONGEST
characters is indexed by its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from struct import Struct
from typing import NamedTuple

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
#: A position, or a number of them, as two bytes, each written as one character: joining text is fast.
_SHORTS = tuple(chr(number >> 8) + chr(number & 255) for number in range(PART + 1))
_COUNTS = tuple(f"\0{two}" for two in _SHORTS[: REPEATS + 1])  # after the NUL that ends a term
_BEFORE = Struct(">hiqiqihiiii")  # columns, and length and value of each up to the length of the vector and its terms
_AFTER = Struct(">ii")


class VectorRow(NamedTuple):
    """A row of the index for a text, or for a part of a long one."""

    positions: dict[str, str]  # of every term, two characters for each occurrence
    size: int  # terms

    def packed(self, session: int, seq: int, field: int, part: int) -> bytes:
        """Return the row of `search_row` in the server's binary form."""
        held = self.positions
        if not "".join(held).isascii():
            held = {term.encode().decode("latin-1"): some for term, some in held.items()}
        counts = [_COUNTS[len(some) >> 1] for some in held.values()]
        vector = "".join(chain.from_iterable(zip(held, counts, held.values(), strict=True))).encode("latin-1")
        before = _BEFORE.pack(6, 8, session, 8, seq, 2, field, 4, part, len(vector) + 4, len(held))
        return before + vector + _AFTER.pack(4, self.size)


def vector_rows(folded: str) -> Iterator[VectorRow]:
    """Yield the rows for a folded text."""
    if len(folded) <= _AT_ONCE:
        stems = stem_words(folded)
        for first in range(0, max(len(stems) - OVERLAP, 1), PART - OVERLAP):
            if part := stems[first : first + PART]:
                yield from _part_rows(part)
        return
    stream = _stems_of_text(folded)
    part = list(islice(stream, PART))
    while part:
        yield from _part_rows(part)
        fresh = list(islice(stream, PART - OVERLAP))
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


def _part_rows(part: list[str]) -> Iterator[VectorRow]:
    held = _positions(part)
    if max(map(len, held)) > LONGEST:
        held = _positions([term[:LONGEST] for term in part])
    if max(map(len, held.values())) > 2 * REPEATS or sum(map(len, held)) > CHARACTERS:
        half = len(part) // 2
        yield from _part_rows(part[:half])
        yield from _part_rows(part[half - OVERLAP :])
    else:
        yield VectorRow(held, len(part))


def _positions(part: list[str]) -> dict[str, str]:
    held: dict[str, str] = {}
    before = held.get
    for term, at in zip(part, islice(_SHORTS, 1, None), strict=False):
        held[term] = before(term, "") + at
    return held


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
        self.driver.copy_packed(_TARGET, self._index_rows(session, rows))

    def add_session(self, session: int, text: str) -> None:
        self.remove(session, [-1])
        if made := list(vector_rows(index_text(text))):
            self.driver.copy_packed(_TARGET, self._numbered_rows(session, -1, _SUMMARY, made))

    def _index_rows(self, session: int, rows: Sequence[IndexRow]) -> Iterator[bytes]:
        for row in map(fold_row, rows):
            for field, text in enumerate(row.texts):
                if text:
                    yield from self._numbered_rows(session, row.seq, field, vector_rows(text))

    def _numbered_rows(self, session: int, seq: int, field: int, made: Iterable[VectorRow]) -> Iterator[bytes]:
        for part, row in enumerate(made):
            self._common.note(session, seq, field, row.positions, row.size)
            yield row.packed(session, seq, field, part)

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
