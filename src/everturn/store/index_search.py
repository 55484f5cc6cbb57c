"""Full-text search: which entries of the index are worth ranking, at a cost that does not grow with the archive.

How common a word is, is estimated from the newest entries with it: SAMPLE of them are counted, and the rest follows from
how far back these reach. Then at most WALK entries are examined and the best are returned: those with the rarest words,
as many words as fit into the bound. Common words only add to the score of entries with a rare word. If all words are
common, the order is: prompts, answers and summaries with them, entries with several of them, then the newest. From the
best sessions all matches are returned, since neighbours raise a hit's score. Required groups are searched in the newest
part first, and in the whole archive only if too little is found there.

Which entries a query covers, and where they are reported, is `store.index_scope`.

Ranking for people is `retrieval.ranking`, over `candidates`. `search` orders by the text of each entry alone and examines
all of them; no surface calls it, tests and benchmarks use it as the reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import nlargest

from msgspec.structs import replace

from everturn.errors import UsageError
from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexCandidates, IndexEntry, IndexHit, IndexQuery, SessionFilter
from everturn.store.index import (
    EntryKey,
    Index,
    IndexLook,
    IndexScope,
    KnownCounts,
    Phrase,
    Range,
    StepIndex,
    WholeIndex,
    completions,
    rareness,
    report_entries,
    resolve_scope,
    weigh_phrases,
)
from everturn.store.sql import Driver, query_in_lists
from everturn.text.terms import terms

SAMPLE = 1500
#: Entries to examine for each one wanted, for a query of one word, times two; more words share them.
WALK = 22
#: Entries with the rarest required word; seeking through more takes too long.
REACH = 50_000
CHEAP = 15_000  # the same for an optional phrase
#: With fewer entries than this, the next common word is searched too.
FEW = 100
#: Fields to search first for a common word: a word has the highest weight in them.
SPOKEN_FIELDS = ("prompt", "summary", "answer")
#: Entries wanted for each session that is searched completely if not every entry was examined.
PER_BEST = 200


def gather_candidates(
    driver: Driver, index: StepIndex, query: IndexQuery, scope: IndexScope, most: int, known: KnownCounts
) -> IndexCandidates:
    required = list(dict.fromkeys(phrase for group in query.groups for phrase in group))
    weights = weigh_phrases(query)
    phrases = tuple(weights)
    counting = _PhraseCounter(driver, index, query.fields, known)
    counts = {phrase: counting.estimate(phrase) for phrase in required}
    for phrase, weight in weights.items():
        if phrase not in counts:
            counts[phrase] = -1.0 if _is_uncounted_pair(phrase, weight, weights) else counting.cheap_estimate(phrase)
    # A phrase that does not occur is not searched. An empty one keeps its number in `phrases`.
    reported = tuple(phrase if counts[phrase] else () for phrase in phrases)
    total = index.total()
    # Rareness is that in all fields, so that scores within some fields compare with those of others.
    overall = {phrase: counting.overall(phrase) if count > 0 else count for phrase, count in counts.items()}
    worth = tuple(weights[phrase] * rareness(_least_count(phrase, overall), total) for phrase in phrases)
    looking = IndexLook(
        query.groups, reported, query.without, query.fields, scope.ranges, scope.sessions, scope.messages, worth=worth
    )
    drivers = [phrase for phrase in dict.fromkeys(query.optional) if counts[phrase] > 0]
    entries, complete = _CandidateGatherer(index, counting, counts, looking, most).entries(query, drivers)
    return IndexCandidates(
        phrases, tuple(weights.values()), _final_counts(phrases, overall, entries), total, entries, complete
    )


def _is_uncounted_pair(phrase: Phrase, weight: float, weights: dict[Phrase, float]) -> bool:
    """Whether a phrase is a pair of words of the query with a low weight of its own, which is not counted beforehand."""
    return len(phrase) == 2 and weight < 0.5 and all((term,) in weights for term in phrase)


def _least_count(phrase: Phrase, counts: dict[Phrase, float]) -> float:
    """Return the count of a phrase; for an uncounted pair, that of its rarer word."""
    return counts[phrase] if counts[phrase] >= 0 else min(counts[(term,)] for term in phrase)


def _final_counts(
    phrases: Sequence[Phrase], counts: dict[Phrase, float], entries: Sequence[IndexEntry]
) -> tuple[float, ...]:
    """Return the counts; uncounted pairs are counted in the entries at hand."""
    seen = [0] * len(phrases)
    for entry in entries:
        for number, _ in entry.held:
            seen[number] += 1
    return tuple(counts[phrase] if counts[phrase] >= 0 else float(n) for phrase, n in zip(phrases, seen, strict=True))


def _has_open_end(groups: tuple[tuple[Phrase, ...], ...]) -> bool:
    """Whether a word matches by prefix: then every lookup merges all words with that beginning."""
    return any(phrase[-1].endswith("*") for group in groups for phrase in group)


class _PhraseCounter:
    """Estimates how many entries hold a phrase, and from which session on there are so many."""

    def __init__(self, driver: Driver, index: StepIndex, fields: Sequence[str], known: KnownCounts) -> None:
        row = driver.one('SELECT MAX("id") FROM "session"')
        self._newest = int(row[0] or 0) if row else 0
        self._index = index
        self._fields = tuple(fields)
        self._known = known.of(self._newest, index.total())

    def estimate(self, phrase: Phrase) -> float:
        """Return the estimate for the whole index."""
        key = self._fields, phrase
        if key not in self._known:
            self._known[key] = self._estimate_word(phrase) if len(phrase) == 1 else self._estimate_phrase(phrase)
        return self._known[key]

    def _estimate_word(self, word: Phrase) -> float:
        """Count the entries with a word; for some fields, in the newest part: in these it may be rare."""
        if not self._fields:
            return self._index.estimate(word, (), SAMPLE, 0, self._newest)
        if not (everywhere := self.overall(word)):
            return 0.0
        since = self.since(everywhere, SAMPLE)
        count = self._index.estimate(word, self._fields, SAMPLE, since, self._newest)
        return max(count, 1.0) if since else count

    def overall(self, phrase: Phrase) -> float:
        """Return the estimate of a word in all fields; of a phrase in those of the query."""
        if not self._fields or len(phrase) > 1:
            return self.estimate(phrase)
        key = (), phrase
        if key not in self._known:
            self._known[key] = self._index.estimate(phrase, (), SAMPLE, 0, self._newest)
        return self._known[key]

    def _estimate_phrase(self, phrase: Phrase) -> float:
        """Count in the newest entries with the rarest word, then in more of them if there are none."""
        count = 0.0
        for since in dict.fromkeys(self.since(self.rarest_term_count(phrase), reach) for reach in (CHEAP, REACH)):
            count = count or self._index.estimate(phrase, self._fields, SAMPLE // 4, since, self._newest)
        return count

    def cheap_estimate(self, phrase: Phrase) -> float:
        """Estimate an optional phrase; one of nothing but common words counts as absent."""
        return 0.0 if len(phrase) > 1 and self.rarest_term_count(phrase) > CHEAP else self.estimate(phrase)

    def rarest_term_count(self, phrase: Phrase) -> float:
        """Return the count of a phrase's rarest term: the entries to walk to find the phrase."""
        return min(self.estimate((term,)) for term in phrase)

    def since(self, count: float, most: float) -> int:
        """Return the session from which on there are about `most` of `count` entries."""
        return 0 if count <= most else int(self._newest * (1 - most / count))


class _CandidateGatherer:
    """Looks up entries, the most promising first, within the bounds."""

    def __init__(
        self, index: StepIndex, counting: _PhraseCounter, counts: dict[Phrase, float], looking: IndexLook, most: int
    ) -> None:
        self._index = index
        self._counting = counting
        self._counts = counts
        self._looking = looking
        self._most = most
        words = sum(len(phrase) == 1 for phrase in looking.phrases)
        self._walk = max(most * WALK // (1 + words), most)
        self._entries: dict[EntryKey, IndexEntry] = {}
        self._walked = True  # whether every matching entry was examined

    def entries(self, query: IndexQuery, drivers: Sequence[Phrase]) -> tuple[list[IndexEntry], bool]:
        present = sorted(drivers, key=lambda phrase: (self._counts[phrase], phrase))
        if query.groups:
            complete = self._gather_required(query)
        elif not present:
            complete = True
        elif not self._most or self._looking.ranges is not None:
            complete = self._look((tuple(present),), self._most)
        else:
            complete = self._gather_rarest_first(present)
        groups = query.groups or (tuple(present),)
        if not self._walked and self._looking.ranges is None and not _has_open_end(groups):
            self._gather_best_sessions(groups)
        return list(self._entries.values()), complete

    def _gather_required(self, query: IndexQuery) -> bool:
        count = min(sum(self._counts[phrase] for phrase in group) for group in query.groups)
        rarest = min(sum(map(self._counting.rarest_term_count, group)) for group in query.groups)
        since = self._counting.since(rarest, REACH) if self._most and count > self._most else 0
        walk = self._walk // 2 if _has_open_end(query.groups) else 0
        complete = self._look(query.groups, self._most, since, walk=walk)
        if since and len(self._entries) < FEW:
            self._walked = True
            complete = self._look(query.groups, self._most, walk=walk)
        return complete

    def _gather_rarest_first(self, phrases: list[Phrase]) -> bool:
        taken, expected = 0, 0.0
        while taken < len(phrases) and expected + self._counts[phrases[taken]] <= self._walk:
            expected += self._counts[phrases[taken]]
            taken += 1
        complete = bool(taken) and self._look((tuple(phrases[:taken]),), self._most)
        common = phrases[taken:]
        self._walked = self._walked and not common
        if common and expected < self._most:
            self._gather_common(common, self._walk - int(expected))
        elif common and not self._looking.fields:
            # A word hardly more common than those: its prompts and answers, so that it is not left out.
            self._gather_spoken(common[0], self._most // 4, self._walk // 6)
        return complete and not common

    def _gather_common(self, phrases: list[Phrase], walk: int) -> None:
        """Gather common words: prompts and answers, entries with several of them, then the newest."""
        room = max(self._most - len(self._entries), self._most // 2)
        words = [phrase for phrase in phrases if len(phrase) == 1]
        since = self._counting.since(self._counts[words[0]], REACH) if words else 0
        if not self._looking.fields:
            self._gather_spoken(phrases[0], room // 2, walk * 2 // 3 if len(words) < 2 else walk // 3)
        before = len(self._entries)
        if len(words) > 2:
            self._look(tuple((word,) for word in words[:3]), room // 4, since, walk=walk // 4)
        if len(words) > 1 and len(self._entries) < before + FEW:
            self._look(((words[0],), tuple(words[1:])), room // 4, since, walk=walk // 4)
        for phrase in phrases:
            left = max(self._most // 2 - len(self._entries), FEW)
            if phrase is phrases[0] or len(self._entries) < FEW:
                self._look(((phrase,),), left, walk=left)

    def _gather_spoken(self, phrase: Phrase, most: int, walk: int) -> None:
        self._look(((phrase,),), most, first_in=SPOKEN_FIELDS, walk=walk)

    def _gather_best_sessions(self, groups: tuple[tuple[Phrase, ...], ...]) -> None:
        """Add all matches of the best sessions so far."""
        worth: dict[int, float] = {}
        for entry in self._entries.values():
            own = sum(self._looking.worth[number] * much for number, much in entry.held)
            worth[entry.session] = max(own, worth.get(entry.session, 0.0))
        wanted = max(self._most // PER_BEST, 1)
        best = nlargest(wanted, worth, key=lambda session: (worth[session], session))
        if best:
            ranges = tuple(Range(session) for session in best)
            self._add_matches(replace(self._looking, groups=groups, ranges=ranges, most=self._most // 2))

    def _look(
        self,
        groups: tuple[tuple[Phrase, ...], ...],
        most: int,
        since: int = 0,
        first_in: tuple[str, ...] = (),
        walk: int = 0,
    ) -> bool:
        """Look up entries; return whether these are all that match."""
        bound = walk or self._walk if most else -1
        looking = replace(
            self._looking, groups=groups, walk=bound, most=most or -1, from_session=since, first_in=first_in
        )
        walked, complete = self._add_matches(looking)
        is_whole = not since and not first_in
        self._walked = self._walked and walked and is_whole
        return complete and is_whole

    def _add_matches(self, looking: IndexLook) -> tuple[bool, bool]:
        """Add the matches; return whether all were examined, and whether all were added."""
        entries, walked, complete = self._index.look(looking)
        self._entries.update(((entry.session, entry.seq), entry) for entry in entries)
        return walked, complete


_KNOWN = 100  # entries of a word to count at most
_EVERY_SESSION = SessionFilter(kinds=(), states=())
_NOTHING = IndexCandidates((), (), (), 0, [], True)


class IndexSearch:
    """The part of a store that searches the index."""

    driver: Driver
    index: Index
    is_restricted: bool

    @cached_property
    def _known_counts(self) -> KnownCounts:
        return KnownCounts()

    def search(self, query: IndexQuery) -> list[IndexHit]:
        found = self.candidates(query)
        rarity = [
            rareness(count, found.total) * weight for count, weight in zip(found.counts, found.weights, strict=True)
        ]
        scores = (sum(rarity[number] * share for number, share in entry.held) for entry in found.entries)
        hits = [IndexHit(e.session, e.seq, score) for e, score in zip(found.entries, scores, strict=True)]
        hits.sort(key=lambda hit: (-hit.score, -hit.session, hit.seq))
        return hits[query.offset : query.offset + query.limit]

    def candidates(self, query: IndexQuery, most: int = 0) -> IndexCandidates:
        """Return the entries worth ranking."""
        unknown = [name for name in query.fields if name not in FIELDS]
        if unknown:
            raise UsageError(f"no field {', '.join(unknown)} to search in; there are {', '.join(FIELDS)}")
        if (analysed := _analyse_query(query, self.index)) is None:
            return _NOTHING
        if isinstance(self.index, WholeIndex):
            return self._gather_at_once(self.index, analysed, most)
        assert isinstance(self.index, StepIndex)
        if self.is_restricted and analysed.sessions is None:
            analysed = replace(analysed, sessions=_EVERY_SESSION)  # visible ones: the index itself knows no limits
        with self.driver.reading():
            scope = resolve_scope(self.driver, analysed)
            if scope.ranges == ():
                return _NOTHING
            found = gather_candidates(self.driver, self.index, analysed, scope, most, self._known_counts)
            return replace(found, entries=report_entries(self.driver, analysed, scope, found.entries))

    def _gather_at_once(self, index: WholeIndex, query: IndexQuery, most: int) -> IndexCandidates:
        scope = resolve_scope(self.driver, query, has_older=True)
        if scope.ranges == ():
            return _NOTHING
        found = index.gather(query, scope, most)
        weights = weigh_phrases(query)
        phrases = tuple(weights)
        uncounted = {phrase: -1.0 for phrase in phrases if _is_uncounted_pair(phrase, weights[phrase], weights)}
        counts = {**dict(zip(phrases, found.counts, strict=True)), **uncounted}
        entries = found.entries
        if scope.moves is not None or found.older:
            entries = report_entries(self.driver, query, scope, entries, found.older)
        final = _final_counts(phrases, counts, found.entries)
        return IndexCandidates(
            phrases, tuple(weights.values()), final, found.total, entries, found.complete, found.times
        )

    def count_words(self, words: Sequence[str]) -> dict[str, int]:
        return {} if self.is_restricted else self.index.count_words(words, _KNOWN)

    def times(self, sessions: Sequence[int]) -> dict[int, tuple[int | None, int | None]]:
        sql = 'SELECT "id","started","ended" FROM "session" WHERE "id" IN ({})'
        return {row[0]: (row[1], row[2]) for row in query_in_lists(self.driver.all, sql, sessions)}

    def vocabulary(self, beginning: str, most: int) -> list[str]:
        return [] if self.is_restricted else self.index.vocabulary(beginning, most)


def _analyse_query(query: IndexQuery, index: Index) -> IndexQuery | None:
    """Return the query with analysed phrases, or None if nothing can match."""
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
        query, groups=groups, without=tuple(filter(None, map(_analyse_phrase, query.without))),
        optional=tuple(phrase for phrase, _ in optional), weights=tuple(weight for _, weight in optional),
    )  # fmt: skip


def _analyse_phrase(phrase: Phrase) -> Phrase:
    """Analyse a phrase again, which changes no term and leaves no syntax of an engine."""
    analysed = [term for word in phrase for term in terms(word)]
    if analysed and phrase[-1].endswith("*"):
        analysed[-1] += "*"
    return tuple(analysed)


def _complete_phrases(phrases: Iterable[Phrase], index: Index) -> Iterator[Phrase]:
    """Expand phrases that end in a prefix: the index holds stems, which may be shorter than the prefix."""
    for phrase in phrases:
        *before, last = phrase
        if not last.endswith("*"):
            yield phrase
            continue
        beginning = last.removesuffix("*")
        for word in dict.fromkeys((*index.expand_prefix(beginning), *completions(beginning))):
            yield (*before, word)
