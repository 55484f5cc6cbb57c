"""Meaning beside words: vectors of messages re-order what the words have found. Optional; without vectors nothing changes.

    meaning = Meaning(embedder, vectors, clean)
    meaning.reordered(store, hits, "what was asked")      the same hits, the first 200 in a better order

The vectors are those of `recall.vectors`; stale ones are never consulted. The question is embedded only when there are
vectors to compare it with, and goes through `clean` like every text that is.

Why a linear mix of standardised scores, and only of the best by words: rank fusion with a small model makes results worse,
and a second index of everything is slower than both together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from operator import mul

from msgspec.structs import replace

from everturn.errors import ModelError
from everturn.llm.embedding import Embedder
from everturn.recall.vectors import LONGEST, Clean, VectorSet, generation
from everturn.store import IndexHit, Store

TOP = 200  # hits that are re-ordered
WEIGHT = 0.5  # of meaning, where words weigh 1

Place = tuple[int, int]  # session, seq


class MeaningSearch:
    """A model and the vectors it made. Used by one thread."""

    def __init__(self, embedder: Embedder, vectors: VectorSet, clean: Clean, weight: float = WEIGHT) -> None:
        self._embedder, self._vectors, self._clean, self._weight = embedder, vectors, clean, weight
        self._asked: tuple[str, list[float] | ModelError] | None = None

    @property
    def name(self) -> str:
        """Of the model."""
        return self._embedder.name

    def reorder_hits(self, store: Store, hits: Sequence[IndexHit], text: str) -> list[IndexHit] | None:
        """The hits with the first of them re-ordered; None when there are no vectors of them, and nothing was sent.

        Raises ModelError; the caller may then show the hits as they are.
        """
        known = self._known(store, hits[:TOP])
        return mix_meaning(hits, known, self._query_vector(text), self._weight) if known else None

    def _query_vector(self, text: str) -> list[float]:
        """Of the question; asked for once, however many rings are looked at, also when there is no answer."""
        if self._asked is None or self._asked[0] != text:
            try:
                self._asked = text, self._embedder.embed([self._clean(text)[:LONGEST]])[0]
            except ModelError as error:
                self._asked = text, error
        found = self._asked[1]
        if isinstance(found, ModelError):
            raise found
        return found

    def _known(self, store: Store, hits: Sequence[IndexHit]) -> dict[Place, bytes]:
        by_session: dict[int, list[int]] = {}
        for hit in hits:
            by_session.setdefault(hit.session, []).append(hit.seq)
        found: dict[Place, bytes] = {}
        for number, seqs in by_session.items():
            session = store.session(number)[0]
            current = generation(store.version(session.version), session, self._embedder)
            found |= {(number, seq): data for seq, data in self._vectors.get(number, current, seqs).items()}
        return found


def mix_meaning(
    hits: Sequence[IndexHit], vectors: Mapping[Place, bytes], query: Sequence[float], weight: float = WEIGHT
) -> list[IndexHit]:
    """Order the first hits by the sum of both scores, each standardised; one without a vector counts as middling.

    The scores that come back are those of the places: what stands first has the highest score there was, so that scores
    still fall from hit to hit, also into those that were not looked at.
    """
    head, rest = hits[:TOP], hits[TOP:]
    known = {(hit.session, hit.seq) for hit in head} & vectors.keys()
    if not known:
        return list(hits)
    length = sqrt(sum(map(mul, query, query)))
    by_sense = _standardise_scores({place: _cosine(query, length, vectors[place]) for place in known})
    by_words = _standardise_scores({(hit.session, hit.seq): hit.score for hit in head})
    mixed = {place: score + weight * by_sense.get(place, 0.0) for place, score in by_words.items()}
    ordered = sorted(head, key=lambda hit: -mixed[hit.session, hit.seq])  # stable: words decide between equals
    scores = sorted((hit.score for hit in head), reverse=True)
    return [*(replace(hit, score=score) for hit, score in zip(ordered, scores, strict=True)), *rest]


def _cosine(query: Sequence[float], length: float, data: bytes) -> float:
    """The cosine; 0 when one of them points nowhere, or they are of different kinds."""
    numbers = memoryview(data).cast("b")
    if len(numbers) != len(query):
        return 0.0
    both = length * sqrt(sum(map(mul, numbers, numbers)))
    return sum(map(mul, query, numbers)) / both if both else 0.0


def _standardise_scores(scores: Mapping[Place, float]) -> dict[Place, float]:
    """Around 0, most within 1; all 0 when they are equal."""
    middle = sum(scores.values()) / len(scores)
    spread = sqrt(sum((score - middle) ** 2 for score in scores.values()) / len(scores))
    return {place: (score - middle) / spread if spread > 0 else 0.0 for place, score in scores.items()}
