"""Which entries of the index are worth ranking for a query, at a cost that does not grow with the archive.

How common a word is, is learned from the newest entries that hold it: SAMPLE of them are counted, the rest is estimated
from how far back in the archive those reach. Entries with the rarest words are taken, as many words as fit into the
bound; common words only add to what entries with a rare word are worth. Where all words are common, entries that hold
several of them, and what people said, come first and the newest fill up. What is demanded (groups) is looked for everywhere, and first where it
is likely: only if too little is found there, in the whole archive.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from everturn.store import Candidates, Entry, Query
from everturn.store.driver import Driver
from everturn.store.index import Index, Looking, Phrase
from everturn.store.scope import Scope

SAMPLE = 1500
#: Entries that hold the rarest word of what must all be there: walking through more takes too long.
WALK = 50_000
CHEAP = 15_000  # the same for a phrase that is only welcome
#: With fewer entries than this found, the next common word is taken too.
FEW = 100
#: Fields that are looked into first where a word is common: a word counts most in them.
SAID = ("prompt", "summary", "answer")


def gather(driver: Driver, index: Index, query: Query, scope: Scope, most: int) -> Candidates:
    """The entries for a query whose phrases hold terms only."""
    demanded = list(dict.fromkeys(phrase for group in query.groups for phrase in group))
    weights = dict.fromkeys(demanded, 1.0)
    for number, phrase in enumerate(query.optional):
        weights.setdefault(phrase, query.weights[number] if number < len(query.weights) else 1.0)
    phrases = tuple(weights)
    counting = _Counting(driver, index, query.fields)
    counts = {phrase: counting.estimate(phrase) for phrase in demanded}
    for phrase, weight in weights.items():
        if phrase not in counts:
            counts[phrase] = -1.0 if _is_pair(phrase, weight, weights) else counting.cheap_estimate(phrase)
    # What stands nowhere is not looked for in every entry. Its place stays, so that numbers are those of `phrases`.
    reported = tuple(phrase if counts[phrase] else () for phrase in phrases)
    looking = Looking(query.groups, reported, query.without, query.fields, scope.ranges, scope.sessions, scope.messages)
    drivers = [phrase for phrase in dict.fromkeys(query.optional) if counts[phrase] > 0]
    entries, complete = _Gathering(index, counting, counts, looking, most).entries(query, drivers)
    return Candidates(
        phrases, tuple(weights.values()), _counted(phrases, counts, entries), index.total(), entries, complete
    )


def _is_pair(phrase: Phrase, weight: float, weights: dict[Phrase, float]) -> bool:
    """Two words that are looked for themselves, and which together only add a little: they are not counted before."""
    return len(phrase) == 2 and weight < 0.5 and all((term,) in weights for term in phrase)


def _counted(phrases: Sequence[Phrase], counts: dict[Phrase, float], entries: Sequence[Entry]) -> tuple[float, ...]:
    """The counts, with what is only known from the entries at hand."""
    seen = [0] * len(phrases)
    for entry in entries:
        for number, _ in entry.held:
            seen[number] += 1
    return tuple(counts[phrase] if counts[phrase] >= 0 else float(n) for phrase, n in zip(phrases, seen, strict=True))


class _Counting:
    """How many entries hold a phrase, and since which session there are so many."""

    def __init__(self, driver: Driver, index: Index, fields: Sequence[str]) -> None:
        row = driver.one('SELECT MAX("id") FROM "session"')
        self._newest = int(row[0] or 0) if row else 0
        self._index = index
        self._fields = fields
        self._known: dict[Phrase, float] = {}

    def estimate(self, phrase: Phrase) -> float:
        """In the whole index."""
        if phrase not in self._known:
            since = self.since(min(self.estimate((term,)) for term in phrase), WALK) if len(phrase) > 1 else 0
            self._known[phrase] = self._index.estimate(phrase, self._fields, SAMPLE, since, self._newest)
        return self._known[phrase]

    def cheap_estimate(self, phrase: Phrase) -> float:
        """The same for what is only welcome: a phrase of nothing but common words is taken for one that is not there."""
        if len(phrase) > 1 and min(self.estimate((term,)) for term in phrase) > CHEAP:
            return 0.0
        return self.estimate(phrase)

    def since(self, count: float, most: float) -> int:
        """The session from which on about `most` of `count` entries are."""
        return 0 if count <= most else int(self._newest * (1 - most / count))


class _Gathering:
    def __init__(
        self, index: Index, counting: _Counting, counts: dict[Phrase, float], looking: Looking, most: int
    ) -> None:
        self._index = index
        self._counting = counting
        self._counts = counts
        self._looking = looking
        self._most = most
        self._found: dict[tuple[int, int], Entry] = {}

    def entries(self, query: Query, drivers: Sequence[Phrase]) -> tuple[list[Entry], bool]:
        """What was gathered, and whether it is everything."""
        if query.groups:
            complete = self._demanded(query)
            return list(self._found.values()), complete
        there = sorted(drivers, key=self._order)
        if not there:
            complete = True
        elif not self._most or self._looking.ranges is not None:
            complete = self._look((tuple(there),), self._most)
        else:
            complete = self._rarest_first(there)
        return list(self._found.values()), complete

    def _order(self, phrase: Phrase) -> tuple[float, Phrase]:
        return self._counts[phrase], phrase

    def _demanded(self, query: Query) -> bool:
        rarest = min(sum(self._counts[phrase] for phrase in group) for group in query.groups)
        since = self._counting.since(rarest, WALK) if self._most else 0
        complete = self._look(query.groups, self._most, since)
        if since and len(self._found) < FEW:
            complete = self._look(query.groups, self._most)
        return complete

    def _rarest_first(self, phrases: list[Phrase]) -> bool:
        taken, expected = 0, 0.0
        while taken < len(phrases) and expected + self._counts[phrases[taken]] <= self._most:
            expected += self._counts[phrases[taken]]
            taken += 1
        complete = bool(taken) and self._look((tuple(phrases[:taken]),), self._most)
        common = phrases[taken:]
        if common and len(self._found) < self._most // 2:
            self._common(common)
        elif common and not self._looking.fields:
            # A word hardly more common than those: what was said with it, so that it is not left out altogether.
            self._look(((common[0],),), self._most // 4, self._counting.since(self._counts[common[0]], WALK), SAID)
        return complete and not common

    def _common(self, phrases: list[Phrase]) -> None:
        """Of words that are all common: what people said, entries with several of them, then the newest."""
        room = self._most - len(self._found)
        words = [phrase for phrase in phrases if len(phrase) == 1]
        since = self._counting.since(self._counts[words[0]], WALK) if words else 0
        if not self._looking.fields:
            self._look(((phrases[0],),), room // 2, since, SAID)
        if len(words) > 2:
            self._look(tuple((word,) for word in words[:3]), room // 4, since)
        if len(words) > 1:
            self._look(((words[0],), tuple(words[1:])), room // 4, since)
        for phrase in phrases:
            left = self._most - len(self._found)
            if phrase is phrases[0] or len(self._found) < FEW:
                self._look(((phrase,),), max(left, FEW))

    def _look(
        self, groups: tuple[tuple[Phrase, ...], ...], most: int, since: int = 0, first_in: tuple[str, ...] = ()
    ) -> bool:
        """True when there is no more to be had."""
        looking = replace(self._looking, groups=groups, most=most or -1, from_session=since, first_in=first_in)
        found = list(self._index.look(looking))
        self._found.update(((entry.session, entry.seq), entry) for entry in found)
        return not since and not first_in and (not most or len(found) < most)
