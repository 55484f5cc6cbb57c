"""Meaning beside words: vectors of messages re-order what the words have found. Optional; without vectors nothing changes.

    meaning = Meaning(embedder, vectors, clean)
    meaning.reordered(store, hits, "what was asked")      the same hits, the first 200 in a better order

The vectors are those of `recall.vectors`; stale ones are never consulted. The question is embedded only when there are
vectors to compare it with, and goes through `clean` like every text that is.

Why a linear mix of standardised scores, and only of the best by words: rank fusion with a small model makes results worse,
and a second index of everything is slower than both together.

Vectors of what was said: made when asked for, used only while they are of the right generation.

    make(store, sources, session, embedder, vectors, clean)      for what is new in a session, a portion at a time
    make_all(store, sources, embedder, vectors, clean)           for every session, the newest first
    coverage(store, embedder, vectors)                           how much of the archive has vectors

The *generation* of a session's vectors is the model and its dimensions, the way texts are taken here, and the version of
the conversation and of the parser that read it. Vectors of another generation count as not there. They are kept as one
signed byte per number, which is exact enough to compare directions. Texts go through `clean` before they are embedded: an
embedder may be somebody else's machine. Nothing here is called unless the user named an embedder and asked for it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from math import sqrt
from operator import mul
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import ModelError, NothingFound
from everturn.llm.embedder import Embedder
from everturn.model.archive import Session, Version
from everturn.model.conversation import Message
from everturn.model.vocabulary import SESSION_KINDS
from everturn.sessions.messages import Sources, has_words, read_messages
from everturn.store.contract import IndexHit, SessionFilter, Store

FIELDS = ("prompt", "answer")  # what is embedded: what was said, not what tools gave back
LONGEST = 2000  # characters of a message: small models read no further
AT_ONCE = 64  # texts between two writes, so that an interruption loses little

#: Raised when texts are chosen or cut in another way: vectors of before are then stale.
SCHEME = 2

_SPEAKERS = ("human", "agent", "model")

Clean = Callable[[str], str]


class VectorSet(Protocol):
    """Where vectors are kept. Those of a session belong to one generation; asked for by another they are not there."""

    def get(self, session: int, generation: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """The vectors of some messages, by seq."""

    def upto(self, session: int, generation: str) -> int:
        """How many messages of the session were looked at."""

    def put(self, session: int, generation: str, rows: Iterable[tuple[int, bytes]], upto: int) -> None:
        """Add vectors by seq; those of another generation go."""

    def held(self) -> dict[int, tuple[str, int, int]]:
        """Of each session its generation, how many messages were looked at, and how many vectors there are."""

    def forget(self, session: int) -> None:
        """Erase all of a session."""


class HeldVectors:
    """Vectors that live as long as the object."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[str, int, dict[int, bytes]]] = {}

    def get(self, session: int, generation: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """See `VectorSet`."""
        known, _, rows = self._held.get(session, ("", 0, {}))
        return {seq: rows[seq] for seq in seqs if seq in rows} if known == generation else {}

    def upto(self, session: int, generation: str) -> int:
        """See `VectorSet`."""
        known, upto, _ = self._held.get(session, ("", 0, {}))
        return upto if known == generation else 0

    def put(self, session: int, generation: str, rows: Iterable[tuple[int, bytes]], upto: int) -> None:
        """See `VectorSet`."""
        known, _, old = self._held.get(session, ("", 0, {}))
        self._held[session] = (generation, upto, {**(old if known == generation else {}), **dict(rows)})

    def held(self) -> dict[int, tuple[str, int, int]]:
        """See `VectorSet`."""
        return {session: (known, upto, len(rows)) for session, (known, upto, rows) in self._held.items()}

    def forget(self, session: int) -> None:
        """See `VectorSet`."""
        self._held.pop(session, None)


class VectorBatch(Struct, frozen=True):
    """What was done at once and is kept from then on."""

    session: Session
    messages: int  # looked at
    vectors: int  # made
    characters: int  # of the texts they were made of


class Coverage(Struct, frozen=True):
    """How much of the archive has vectors. Sessions without words are not counted."""

    sessions: int
    complete: int  # sessions all of whose messages were looked at
    stale: int  # sessions that have vectors of another generation
    vectors: int  # of the right one


def generation(version: Version, session: Session, embedder: Embedder) -> str:
    """What must be the same for a vector to be used. `version` is that of the session."""
    told = (SCHEME, session.agent, session.native_id, version.number, version.opened_at, version.parser, version.erased)
    digest = blake2b(repr(told).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{embedder.name}/{embedder.dimensions}/{digest}"


def make_batch(
    store: Store, sources: Sources, session: Session, embedder: Embedder, vectors: VectorSet, clean: Clean
) -> Iterator[VectorBatch]:
    """Embed what a session has said since the last time. Raises ModelError; what came before it is kept."""
    current = generation(store.version(session.version), session, embedder)
    start = vectors.upto(session.id, current)
    if start >= session.n_messages or not has_words(session):
        return
    for texts, upto in _batch_texts(_embedded_texts(store, sources, session, start, clean)):
        given = embedder.embed([text for _, text in texts]) if texts else []
        rows = [(seq, pack_vectors(vector)) for (seq, _), vector in zip(texts, given, strict=True)]
        vectors.put(session.id, current, rows, upto)
        if _current_generation(store, session.id, embedder) != current:  # forgotten or read anew meanwhile
            vectors.forget(session.id)
            return
        yield VectorBatch(session, upto - start, len(rows), sum(len(text) for _, text in texts))
        start = upto


def make_all_vectors(
    store: Store, sources: Sources, embedder: Embedder, vectors: VectorSet, clean: Clean
) -> Iterator[VectorBatch]:
    """The same for every session. Vectors of sessions that the archive no longer has go."""
    seen = set()
    for session in _sessions(store):
        seen.add(session.id)
        yield from make_batch(store, sources, session, embedder, vectors, clean)
    for number in vectors.held().keys() - seen:
        if not _current_generation(store, number, embedder):
            vectors.forget(number)


def coverage(store: Store, embedder: Embedder, vectors: VectorSet) -> Coverage:
    """Look at every session and what is held of it."""
    held = vectors.held()
    current = {version.id: version for _, version in store.files()}
    sessions = complete = stale = made = 0
    for session in _sessions(store):
        version = current.get(session.version) or store.version(session.version)
        known, upto, count = held.get(session.id, ("", 0, 0))
        is_right = known == generation(version, session, embedder)
        sessions += 1
        complete += is_right and upto >= session.n_messages
        stale += bool(known) and not is_right
        made += count if is_right else 0
    return Coverage(sessions, complete, stale, made)


def pack_vectors(vector: Sequence[float]) -> bytes:
    """One signed byte per number; the longest one becomes 127."""
    longest = max(map(abs, vector), default=0.0)
    return array("b", (round(number / longest * 127) for number in vector) if longest else [0] * len(vector)).tobytes()


def _sessions(store: Store) -> Iterator[Session]:
    """Every session that has something to embed, the newest first."""
    wanted, after = SessionFilter(kinds=SESSION_KINDS, states=("current", "superseded")), ""
    while True:
        rows, after = store.sessions(wanted, 200, after)
        yield from (session for session, _ in rows if session.n_messages and has_words(session))
        if not after:
            return


def _current_generation(store: Store, number: int, embedder: Embedder) -> str:
    """The generation of a session as the archive is at this moment; "" when it has no such session."""
    try:
        session = store.session(number)[0]
        return generation(store.version(session.version), session, embedder)
    except NothingFound:
        return ""


def _embedded_texts(
    store: Store, sources: Sources, session: Session, start: int, clean: Clean
) -> Iterator[tuple[int, str]]:
    """By seq, "" for a message that is not embedded."""
    for row, message in read_messages(store, sources, session, start):
        wanted = not row.inherited and row.origin in _SPEAKERS and row.kind != "summary"
        yield row.seq, clean(_spoken_text(message))[:LONGEST].strip() if wanted else ""


def _spoken_text(message: Message) -> str:
    # Secrets are known by what stands around them: some more than is embedded is looked at.
    return "\n".join(block.text for block in message.blocks if block.text and block.field in FIELDS)[: LONGEST * 4]


def _batch_texts(texts: Iterable[tuple[int, str]]) -> Iterator[tuple[list[tuple[int, str]], int]]:
    """Some texts at a time, and how many messages have been looked at then."""
    waiting: list[tuple[int, str]] = []
    upto = 0
    for seq, text in texts:
        upto = seq + 1
        if text:
            waiting.append((seq, text))
        if len(waiting) == AT_ONCE:
            yield waiting, upto
            waiting = []
    if upto:
        yield waiting, upto


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
