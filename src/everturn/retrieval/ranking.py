"""Rank candidates, in the same way for every engine. All constants are here (and, by field, in `store/index.py`).

`rank_candidates(store, query, now)` returns hits, best first. The score of a message:

    its words       each by how rare it is in the archive and how well it matches: often, in a prompt rather than in
                    output, in a short text rather than in a long one
    + neighbours    a share of the scores of the two messages before and after it, above all of the words that it lacks:
                    a question and its answer. The more words a query has, the less neighbours count
    + its session   a share of the best match of every word in the session, title and summary included; the same of its
                    best stretch, where the words are close together; and of its three best messages
    + its time      if the query mentions a time and the session was then, or soon after
    × its age       a little more for the newest, so that of equals the newer one comes first
    × its position  a little less for each after the third of one session, so that others are seen too

The order depends only on the archive, the query and the day of `now`, so pages fit together. For a typing error its nearest
known words are searched too (`retrieval.typos`); `RankedHits.replaced` says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from everturn.retrieval.typos import find_replacements
from everturn.store.contract import IndexCandidates, IndexHit, IndexQuery, Store
from everturn.store.index import rareness

DAY = 86_400_000


class Weights(Struct, frozen=True):
    """The constants, tuned together on dialogues and on transcripts of agents."""

    beside: float = 0.25  # of the messages before and after
    near: float = 0.2  # of the ones before and after those
    edge: float = 0.6  # more for those after, where there are none before
    repeated: float = 0.3  # of a word of a neighbour that the message has itself
    few_words: int = 8  # up to which neighbours count in full
    session: float = 0.75  # of the best match of every word in the session
    stretch: float = 0.3  # of the best match of every word in one stretch
    there: float = 0.1  # of every word in the session
    top: float = 0.1  # of the three best messages of the session
    time: float = 5.0  # of the rareness of that time
    soon: float = 0.8  # of that, just after that time
    soon_days: int = 14  # until it is none
    newest: float = 0.03  # for the newest
    newest_days: float = 60.0  # after which half of it is left
    kept: int = 3  # hits of one session that count in full
    fading: float = 0.92  # factor for each further one
    corrected: float = 0.6  # of a word, for its replacement


WEIGHTS = Weights()

#: Candidates ranked, and hits returned.
LOOKED_AT = 600
MOST = 500
#: Messages in a stretch of a session; stretches overlap by half.
STRETCH = 8
TOP = 3  # messages that count for their session

HeldPhrases = tuple[tuple[int, float], ...]
SessionTimes = Mapping[int, tuple[int | None, int | None]]
OrderedHit = tuple[float, int, int]  # score and session, both negative, and seq


class RankedHits(Struct, frozen=True):
    hits: list[IndexHit]
    replaced: dict[str, list[str]]  # unknown words, and their replacements
    complete: bool  # whether every matching message was ranked
    found: IndexCandidates | None = None  # what was ranked


def rank_candidates(
    store: Store,
    query: IndexQuery,
    now: int = 0,
    weights: Weights = WEIGHTS,
    without: Collection[tuple[int, int]] = (),
    replaced: Mapping[str, list[str]] | None = None,
    looked_at: int = LOOKED_AT,
) -> RankedHits:
    """Return the best hits for a query; its `limit` and `offset` are ignored. Without `now` age does not matter.

    Messages in `without`, by session and seq, are no hits and add nothing to their neighbours and their session. `replaced`
    are the replacements of unknown words, if they were looked for already.
    """
    corrected = _correct_query(query, replaced or {}, weights)
    found = store.candidates(corrected, looked_at)
    if replaced is None:
        replaced = find_replacements(store, query, found)
        if replaced:
            corrected = _correct_query(query, replaced, weights)
            found = store.candidates(corrected, looked_at)
    if without:
        found = replace(found, entries=[one for one in found.entries if (one.session, one.seq) not in without])
    return RankedHits(rank_hits(store, found, corrected, now, weights, MOST), dict(replaced), found.complete, found)


def _correct_query(query: IndexQuery, replaced: Mapping[str, list[str]], weights: Weights) -> IndexQuery:
    """Return the query with the replacements of unknown words."""
    others = [word for words in replaced.values() for word in words]
    new = [(word,) for word in dict.fromkeys(others) if (word,) not in query.optional]
    if not new:
        return query
    padded = query.weights + (1.0,) * (len(query.optional) - len(query.weights))
    return replace(query, optional=(*query.optional, *new), weights=(*padded, *[weights.corrected] * len(new)))


def rank_hits(
    store: Store, found: IndexCandidates, query: IndexQuery, now: int, weights: Weights, most: int
) -> list[IndexHit]:
    worth = [weight * rareness(count, found.total) for count, weight in zip(found.counts, found.weights, strict=True)]
    own: dict[int, dict[int, float]] = {}
    added: dict[int, float] = {}
    sessions = _entries_by_session(found)
    for session, entries in sessions.items():
        own[session] = scores = _own_worth(entries, worth)
        added[session] = _session_worth(entries, scores, worth, weights)
    if query.about:
        _add_times(_session_times(store, found, added), query, added, weights)
    share = _neighbour_share(found, weights)
    # Negative, so that tuples sort in the right order without a key function.
    order = sorted(
        (-score - added[session], -session, seq)
        for session, scores in own.items()
        for seq, score in _add_neighbours(sessions[session], scores, worth, weights, share)
    )
    order = _fade_hits(order, weights)[:most]
    if now:
        times = _session_times(store, found, {-session for _, session, _ in order})
        order = _favour_new(times, order, now, weights)
    return [IndexHit(-session, seq, -score) for score, session, seq in order]


def _fade_hits(order: Sequence[OrderedHit], weights: Weights) -> list[OrderedHit]:
    """Lower the scores of further hits of the same session, so that it does not fill the page."""
    seen: dict[int, int] = {}
    faded = []
    for one in order:
        before = seen[one[1]] = seen.get(one[1], 0) + 1
        if before > weights.kept:
            score, session, seq = one
            faded.append((score * weights.fading ** (before - weights.kept), session, seq))
        else:
            faded.append(one)
    return sorted(faded)


def _entries_by_session(found: IndexCandidates) -> dict[int, dict[int, HeldPhrases]]:
    sessions: dict[int, dict[int, HeldPhrases]] = {}
    for session, seq, held in found.entries:
        if session in sessions:
            sessions[session][seq] = held
        else:
            sessions[session] = {seq: held}
    return sessions


def _own_worth(entries: dict[int, HeldPhrases], worth: Sequence[float]) -> dict[int, float]:
    """Return the score of each entry of a session by its own words."""
    own: dict[int, float] = {}
    for seq, held in entries.items():
        score = 0.0
        for number, much in held:
            score += worth[number] * much
        own[seq] = score
    return own


def _add_neighbours(
    entries: dict[int, HeldPhrases], own: dict[int, float], worth: Sequence[float], weights: Weights, share: float
) -> Iterator[tuple[int, float]]:
    """Yield each entry with its score and `share` of what its neighbours add: above all the words it lacks itself.

    The first messages have fewer neighbours before them, so that those after them count a little more.
    """
    if len(own) == 1:
        yield from own.items()
        return
    steps = ((1, share * weights.beside), (2, share * weights.near))
    for seq, score in own.items():
        if seq >= 0:  # title and summary have seq -1: they have no neighbours and are none
            held = {number for number, _ in entries[seq]}
            for step, weight in steps:
                before = seq - step
                after = weight if before >= 0 else weight * (1 + weights.edge)
                if before >= 0 and before in own:
                    score += weight * _neighbour_worth(entries[before], own[before], held, worth, weights)
                if seq + step in own:
                    score += after * _neighbour_worth(entries[seq + step], own[seq + step], held, worth, weights)
        yield seq, score


def _neighbour_worth(
    held: HeldPhrases, whole: float, known: set[int], worth: Sequence[float], weights: Weights
) -> float:
    """Return the worth of a neighbour: its words that are not known, and a part of the others."""
    added = 0.0
    for number, much in held:
        if number not in known:
            added += worth[number] * much
    return added + weights.repeated * (whole - added)


def _neighbour_share(found: IndexCandidates, weights: Weights) -> float:
    """Return how much neighbours count: a text of many words is found by its own, a few words need those around them."""
    words = sum(len(phrase) == 1 and count > 0 for phrase, count in zip(found.phrases, found.counts, strict=True))
    return min(1.0, weights.few_words / max(words, 1)) ** 2


def _session_worth(
    entries: dict[int, HeldPhrases], own: dict[int, float], worth: Sequence[float], weights: Weights
) -> float:
    """Return the score of a session, which is added to all of its messages."""
    if len(entries) == 1:
        [(seq, held)] = entries.items()
        whole = stretch = top = own[seq]
        there = sum([worth[number] for number, _ in held])
    else:
        best = _most_of_each(entries.values())
        whole = sum([worth[number] * much for number, much in best.items()])
        there = sum([worth[number] for number in best])
        stretch = whole if len(best) == 1 else _best_stretch(entries, worth)
        top = sum(sorted(own.values())[-TOP:])
    return weights.session * whole + weights.there * there + weights.stretch * stretch + weights.top * top


def _best_stretch(entries: dict[int, HeldPhrases], worth: Sequence[float]) -> float:
    stretches: dict[int, list[HeldPhrases]] = {}
    for seq, held in entries.items():
        number = seq // (STRETCH // 2)
        stretches.setdefault(number, []).append(held)
        stretches.setdefault(number + 1, []).append(held)
    best = 0.0
    for some in stretches.values():
        much_of = _most_of_each(some) if len(some) > 1 else dict(some[0])
        best = max(best, sum([worth[number] * much for number, much in much_of.items()]))
    return best


def _most_of_each(entries: Iterable[HeldPhrases]) -> dict[int, float]:
    """Return the best match of each phrase among the entries."""
    best: dict[int, float] = {}
    for held in entries:
        for number, much in held:
            if much > best.get(number, 0.0):
                best[number] = much
    return best


def _session_times(store: Store, found: IndexCandidates, sessions: Collection[int]) -> SessionTimes:
    """Return when sessions started and ended; the store is asked about those that the candidates do not tell."""
    unknown = [session for session in sessions if session not in found.times]
    return {**found.times, **store.times(unknown)} if unknown else found.times


def _add_times(times: SessionTimes, query: IndexQuery, worth: dict[int, float], weights: Weights) -> None:
    """Raise the scores of sessions of the mentioned times: the fewer there are, the more."""
    for span in query.about:
        fit = {session: _time_fit(span, *times.get(session, (None, None)), weights) for session in worth}
        rare = weights.time * rareness(sum(fit.values()), len(fit))
        for session, share in fit.items():
            worth[session] += rare * share


def _time_fit(span: tuple[int, int], started: int | None, ended: int | None, weights: Weights) -> float:
    first, last = span
    if started is None or ended is None or ended < first:
        return 0.0
    if started < last:
        return 1.0
    late = (started - last) / (weights.soon_days * DAY)
    return weights.soon * max(1 - late, 0.0)


def _favour_new(times: SessionTimes, order: Sequence[OrderedHit], now: int, weights: Weights) -> list[OrderedHit]:
    """Raise the scores of new sessions a little."""
    today = now // DAY

    def factor(ended: int | None) -> float:
        age = max(today - ended // DAY, 0) if ended is not None else 1e9
        return 1 + weights.newest / (1 + age / weights.newest_days)

    factors = {-session: factor(ended) for session, (_, ended) in times.items()}
    return sorted((score * factors.get(session, 1.0), session, seq) for score, session, seq in order)
