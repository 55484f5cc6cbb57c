"""The full-text index in PostgreSQL: the same hits as SQLite's FTS5, from the same terms.

The server knows nothing of words. Terms come from `text.terms` and their stems from `store.index`; `store.word_lists` writes them,
and `store.postgres_search` reads them. A term longer than LONGEST characters is indexed by its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everturn.model.archive import IndexRow
from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexQuery
from everturn.store.index import LAST_SEQ, GatheredEntries, IndexScope, fold_row, stem_word, stem_words
from everturn.store.postgres_driver import PostgresDriver
from everturn.store.postgres_search import gather_entries
from everturn.store.word_lists import LONGEST, FieldStems, WordLists, unpack_text
from everturn.text.terms import index_text

_AT_ONCE = 1_000_000  # characters that are split into terms at once
_SUMMARY = FIELDS.index("summary")


class PostgresIndex:
    """The index of one archive. Implements `store.index.Index`."""

    def __init__(self, driver: PostgresDriver) -> None:
        self.driver = driver
        self.lists = WordLists(driver)

    # --- changes ---
    def add(self, session: int, rows: Sequence[IndexRow]) -> None:
        self.lists.add(session, _entry_stems(rows))

    def add_session(self, session: int, text: str) -> None:
        self.remove(session, [-1])
        if stems := _stems_of_text(index_text(text)):
            self.lists.add(session, [(-1, [(_SUMMARY, stems)])])

    def remove(self, session: int, seqs: Sequence[int]) -> None:
        found = self.driver.all(
            'SELECT "seq" FROM "entry_text" WHERE "session"=? AND "seq"=ANY(?)', [session, list(seqs)]
        )
        self._remove_found(session, found)

    def remove_session(self, session: int) -> None:
        self._remove_found(session, self.driver.all('SELECT "seq" FROM "entry_text" WHERE "session"=?', [session]))

    def _remove_found(self, session: int, found: Sequence[Sequence[int]]) -> None:
        if found:
            self.lists.remove(session, [seq for (seq,) in found])

    def finish_write(self, failed: bool) -> None:
        self.lists.finish_write(failed)

    # --- questions ---
    def gather(self, query: IndexQuery, scope: IndexScope, most: int) -> GatheredEntries:
        self._note_new()
        return gather_entries(self.driver, query, scope, most)

    def expand_prefix(self, beginning: str) -> list[str]:
        """Return the prefix, and the word itself, whose stem may be shorter."""
        return [f"{beginning}*", beginning]

    def count_words(self, words: Sequence[str], most: int) -> dict[str, int]:
        if not words:
            return {}
        self._note_new()
        stems = {word: stem_word(word)[:LONGEST] for word in words}
        counts = count_terms(self.driver, sorted(set(stems.values())))
        return {word: min(n, most) for word, stem in stems.items() if (n := counts.get(stem, 0))}

    def vocabulary(self, beginning: str, most: int) -> list[str]:
        self._note_new()
        return list_terms(self.driver, beginning, most)

    def _note_new(self) -> None:
        if self.driver.is_writing:
            self.lists.note_new()


def _entry_stems(rows: Sequence[IndexRow]) -> Iterator[tuple[int, FieldStems]]:
    """Yield each message with its stems by field; messages beyond the 16 millionth of a session are not indexed."""
    for row in map(fold_row, rows):
        fields = [(field, stems) for field, text in enumerate(row.texts) if text and (stems := _stems_of_text(text))]
        if fields and row.seq <= LAST_SEQ:
            yield row.seq, fields


def _stems_of_text(folded: str) -> list[str]:
    """Return the stems of a folded text, in order. A long text is split in slices, because the tokenizer copies it."""
    if len(folded) <= _AT_ONCE:
        stems = stem_words(folded)
    else:
        stems, start = [], 0
        while start < len(folded):
            end = min(start + _AT_ONCE, len(folded))
            if end < len(folded):
                # Cut between two words, if there are any.
                end = max(folded.rfind(" ", start, end), folded.rfind("\n", start, end), start) + 1
                end = end if end > start + 1 else start + _AT_ONCE
            stems += stem_words(folded[start:end])
            start = end
    return [term[:LONGEST] for term in stems] if max(map(len, stems), default=0) > LONGEST else stems


# --- words by themselves ---

_FRESH = """
    SELECT r."stems" FROM "unlisted_entry" u CROSS JOIN LATERAL UNNEST(u."seqs") AS q
    JOIN "entry_text" r ON r."session"=u."session" AND r."seq"=q
"""
_COUNT_TERMS = """SELECT x."o", COUNT(*), MAX(x."n") FROM {}(?::text[],?::text[],0,0) x GROUP BY x."o" """
_LIST_TERMS = """
    SELECT DISTINCT y.term COLLATE "C" FROM "word_segment" g CROSS JOIN LATERAL (
        SELECT l."terms" FROM "word_list" l WHERE l."seg"=g."seg" AND l."first"<? AND l."first">=COALESCE(
            (SELECT k."first" FROM "word_list" k WHERE k."seg"=g."seg" AND k."first"<=? ORDER BY k."first" DESC LIMIT 1),'')
    ) b CROSS JOIN LATERAL UNNEST(STRING_TO_ARRAY(b."terms",E'\\n')) AS y(term)
    WHERE y.term COLLATE "C">=? AND y.term COLLATE "C"<? ORDER BY 1 LIMIT ?
"""


def count_terms(driver: PostgresDriver, stems: Sequence[str]) -> dict[str, int]:
    """Return how many entries hold each stem, without those that none holds."""
    found = driver.all_by_index(_COUNT_TERMS.format('"read_lists"'), [list(stems), [None] * len(stems)])
    counts = {stems[o - 1]: int(n) for o, _, n in found}
    wanted = {stem.encode("utf-8", "replace"): stem for stem in stems}
    for (packed,) in driver.all_by_index(_FRESH):
        for line in wanted.keys() & set(unpack_text(packed).split(b"\n")):
            counts[wanted[line]] = counts.get(wanted[line], 0) + 1
    return counts


def list_terms(driver: PostgresDriver, beginning: str, most: int) -> list[str]:
    """Return stems with this beginning, in order."""
    beyond = f"{beginning}\U0010ffff"
    found = {str(term) for (term,) in driver.all_by_index(_LIST_TERMS, [beyond, beginning, beginning, beyond, most])}
    for (packed,) in driver.all_by_index(_FRESH):
        lines = unpack_text(packed).decode().split("\n")
        found.update(line for line in lines if line.startswith(beginning) and line >= " ")
    return sorted(found)[:most]
