"""Full-text search: the index says which entries match, `gathering` bounds the work, `scope` holds the filters.

Ranking for people is `recall.ranking`, over what `candidates` gives. `search` orders by the words of each entry alone
and looks at all of them: no surface calls it, tests and benchmarks ask it what there is to be found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from everturn.errors import UsageError
from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexCandidates, IndexEntry, IndexHit, IndexQuery
from everturn.store.driver import Driver, query_in_lists
from everturn.store.index import Index, Phrase, completions, rareness
from everturn.store.index_candidates import gather_candidates, report_hits, resolve_scope
from everturn.text.terms import terms

_KNOWN = 100  # a word in more entries than this is not counted further
_NOTHING = IndexCandidates((), (), (), 0, [], True)


class IndexSearch:
    """The full-text part of a store over a driver and an index."""

    driver: Driver
    index: Index

    def search(self, query: IndexQuery) -> list[IndexHit]:
        """Every entry that fits, best first, a page of it: what tests compare with."""
        found = self.candidates(query)
        rarity = [
            rareness(count, found.total) * weight for count, weight in zip(found.counts, found.weights, strict=True)
        ]
        hits = [IndexHit(entry.session, entry.seq, _entry_score(entry, rarity)) for entry in found.entries]
        hits.sort(key=lambda hit: (-hit.score, -hit.session, hit.seq))
        return hits[query.offset : query.offset + query.limit]

    def candidates(self, query: IndexQuery, most: int = 0) -> IndexCandidates:
        """What is worth ranking."""
        unknown = [name for name in query.fields if name not in FIELDS]
        if unknown:
            raise UsageError(f"no field {', '.join(unknown)} to search in; there are {', '.join(FIELDS)}")
        analysed = _analyse_query(query, self.index)
        if analysed is None:
            return _NOTHING
        with self.driver.reading():
            scope = resolve_scope(self.driver, analysed)
            if scope.ranges == ():
                return _NOTHING
            found = gather_candidates(self.driver, self.index, analysed, scope, most)
            return replace(found, entries=report_hits(self.driver, analysed, scope, found.entries))

    def known(self, words: Sequence[str]) -> dict[str, int]:
        """Those of the words that stand in the archive."""
        return self.index.known(words, _KNOWN)

    def times(self, sessions: Sequence[int]) -> dict[int, tuple[int | None, int | None]]:
        """When sessions started and ended."""
        sql = 'SELECT "id","started","ended" FROM "session" WHERE "id" IN ({})'
        return {row[0]: (row[1], row[2]) for row in query_in_lists(self.driver.all, sql, sessions)}

    def vocabulary(self, beginning: str, most: int) -> list[str]:
        """Indexed terms with this beginning."""
        return self.index.vocabulary(beginning, most)


def _entry_score(entry: IndexEntry, rarity: Sequence[float]) -> float:
    return sum(rarity[number] * held for number, held in entry.held)


def _analyse_query(query: IndexQuery, index: Index) -> IndexQuery | None:
    """The query with nothing but terms in it; None when nothing can match."""
    groups = tuple(tuple(_complete_phrases(filter(None, map(_analyse_phrase, group)), index)) for group in query.groups)
    if not all(groups):
        return None
    weights = query.weights + (1.0,) * len(query.optional)
    optional = [
        (phrase, weight)
        for phrase, weight in zip(map(_analyse_phrase, query.optional), weights, strict=False)
        if phrase
    ]
    if not groups and not optional:
        return None
    return replace(
        query,
        groups=groups,
        without=tuple(filter(None, map(_analyse_phrase, query.without))),
        optional=tuple(phrase for phrase, _ in optional),
        weights=tuple(weight for _, weight in optional),
    )


def _analyse_phrase(phrase: Phrase) -> Phrase:
    """Analysed once more, which changes no term and leaves nothing that could be syntax of an engine."""
    found = [term for word in phrase for term in terms(word)]
    if found and phrase[-1].endswith("*"):
        found[-1] += "*"
    return tuple(found)


def _complete_phrases(phrases: Iterable[Phrase], index: Index) -> Iterator[Phrase]:
    """With what a phrase that is open at its end means: the index holds stems, and these may be shorter."""
    for phrase in phrases:
        *before, last = phrase
        if not last.endswith("*"):
            yield phrase
            continue
        beginning = last.removesuffix("*")
        for word in dict.fromkeys((*index.opened(beginning), *completions(beginning))):
            yield (*before, word)
