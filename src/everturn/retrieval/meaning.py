"""Reorder hits by meaning, with vectors of messages; and make these vectors. Optional: without vectors nothing changes.

The score is a linear mix of standardised scores, for the best hits by words only: rank fusion with a small model makes
results worse, and a second index of everything is slower than both together. The query is embedded only if there are
vectors to compare it with.

The *generation* of a session's vectors is the model and its dimensions, the scheme of choosing texts, and the version of
the session and of its parser. Vectors of another generation are stale and never used. They are stored as one signed byte
per number. All texts go through `clean` before they are embedded: the embedder may be a remote machine. Nothing here runs
unless the user configured an embedder and asked for it.
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
from everturn.sessions.lookup import iterate_sessions
from everturn.sessions.messages import Sources, has_words, read_messages
from everturn.store.contract import IndexHit, SessionFilter, Store

FIELDS = ("prompt", "answer")  # that are embedded: no tool output
LONGEST = 2000  # characters of a message: small models read no further
AT_ONCE = 64  # texts between two writes, so that an interruption loses little

#: Increased when texts are chosen or cut in another way: older vectors are then stale.
SCHEME = 2

_SPEAKERS = ("human", "agent", "model")

Clean = Callable[[str], str]


class VectorSet(Protocol):
    """A store of vectors. Those of a session belong to one generation; for any other there are none."""

    def get(self, session: int, generation: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return the vectors of some messages, by seq."""

    def upto(self, session: int, generation: str) -> int:
        """Return the number of messages of the session that were processed."""

    def put(self, session: int, generation: str, rows: Iterable[tuple[int, bytes]], upto: int) -> None:
        """Add vectors by seq; delete those of another generation."""

    def held(self) -> dict[int, tuple[str, int, int]]:
        """Return for each session its generation, the number of processed messages, and the number of vectors."""

    def forget(self, session: int) -> None:
        """Delete all vectors of a session."""


class HeldVectors:
    def __init__(self) -> None:
        self._held: dict[int, tuple[str, int, dict[int, bytes]]] = {}

    def get(self, session: int, generation: str, seqs: Sequence[int]) -> dict[int, bytes]:
        known, _, rows = self._held.get(session, ("", 0, {}))
        return {seq: rows[seq] for seq in seqs if seq in rows} if known == generation else {}

    def upto(self, session: int, generation: str) -> int:
        known, upto, _ = self._held.get(session, ("", 0, {}))
        return upto if known == generation else 0

    def put(self, session: int, generation: str, rows: Iterable[tuple[int, bytes]], upto: int) -> None:
        known, _, old = self._held.get(session, ("", 0, {}))
        self._held[session] = (generation, upto, {**(old if known == generation else {}), **dict(rows)})

    def held(self) -> dict[int, tuple[str, int, int]]:
        return {session: (known, upto, len(rows)) for session, (known, upto, rows) in self._held.items()}

    def forget(self, session: int) -> None:
        self._held.pop(session, None)


class VectorBatch(Struct, frozen=True):
    """A batch of vectors that was written."""

    session: Session
    messages: int  # processed
    vectors: int  # made
    characters: int  # of their texts


class Coverage(Struct, frozen=True):
    """How much of the archive has vectors. Sessions without text are not counted."""

    sessions: int
    complete: int  # sessions with all messages processed
    stale: int  # sessions with vectors of another generation
    vectors: int  # of the current generation


def generation(version: Version, session: Session, embedder: Embedder) -> str:
    """Return the generation that vectors of a session must have to be used."""
    parts = (
        SCHEME,
        session.agent,
        session.native_id,
        version.number,
        version.opened_at,
        version.parser,
        version.erased,
    )
    digest = blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{embedder.name}/{embedder.dimensions}/{digest}"


def make_batch(
    store: Store, sources: Sources, session: Session, embedder: Embedder, vectors: VectorSet, clean: Clean
) -> Iterator[VectorBatch]:
    """Embed the new messages of a session, batch by batch. Raises ModelError; batches before it are kept."""
    current = generation(store.version(session.version), session, embedder)
    start = vectors.upto(session.id, current)
    if start >= session.n_messages or not has_words(session):
        return
    for texts, upto in _batch_texts(_embedded_texts(store, sources, session, start, clean)):
        given = embedder.embed([text for _, text in texts]) if texts else []
        rows = [(seq, pack_vectors(vector)) for (seq, _), vector in zip(texts, given, strict=True)]
        vectors.put(session.id, current, rows, upto)
        if _current_generation(store, session.id, embedder) != current:  # forgotten or read again meanwhile
            vectors.forget(session.id)
            return
        yield VectorBatch(session, upto - start, len(rows), sum(len(text) for _, text in texts))
        start = upto


def make_all_vectors(
    store: Store, sources: Sources, embedder: Embedder, vectors: VectorSet, clean: Clean
) -> Iterator[VectorBatch]:
    """Embed every session. Delete vectors of sessions that are no longer in the archive."""
    seen = set()
    for session in _sessions(store):
        seen.add(session.id)
        yield from make_batch(store, sources, session, embedder, vectors, clean)
    for number in vectors.held().keys() - seen:
        if not _current_generation(store, number, embedder):
            vectors.forget(number)


def coverage(store: Store, embedder: Embedder, vectors: VectorSet) -> Coverage:
    """Compare every session with its vectors."""
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
    """Pack a vector as one signed byte per number; the largest becomes 127."""
    longest = max(map(abs, vector), default=0.0)
    return array("b", (round(number / longest * 127) for number in vector) if longest else [0] * len(vector)).tobytes()


def _sessions(store: Store) -> Iterator[Session]:
    """Yield every session with text, the newest first."""
    sessions = iterate_sessions(store, SessionFilter(kinds=SESSION_KINDS, states=("current", "superseded")))
    return (session for session in sessions if session.n_messages and has_words(session))


def _current_generation(store: Store, number: int, embedder: Embedder) -> str:
    """Return the current generation of a session; "" if it is not in the archive."""
    try:
        session = store.session(number)[0]
        return generation(store.version(session.version), session, embedder)
    except NothingFound:
        return ""


def _embedded_texts(
    store: Store, sources: Sources, session: Session, start: int, clean: Clean
) -> Iterator[tuple[int, str]]:
    """Yield the text of each message by seq, "" for one that is not embedded."""
    for row, message in read_messages(store, sources, session, start):
        is_embedded = not row.inherited and row.origin in _SPEAKERS and row.kind != "summary"
        yield row.seq, clean(_spoken_text(message))[:LONGEST].strip() if is_embedded else ""


def _spoken_text(message: Message) -> str:
    # Secrets are recognised by their context: clean more than is embedded.
    return "\n".join(block.text for block in message.blocks if block.text and block.field in FIELDS)[: LONGEST * 4]


def _batch_texts(texts: Iterable[tuple[int, str]]) -> Iterator[tuple[list[tuple[int, str]], int]]:
    """Yield batches of texts, with the number of messages processed."""
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


TOP = 200  # hits that are reordered
WEIGHT = 0.5  # of meaning, relative to 1 for words

MessageKey = tuple[int, int]  # session, seq


class MeaningSearch:
    """A model and its vectors. Used by one thread."""

    def __init__(self, embedder: Embedder, vectors: VectorSet, clean: Clean, weight: float = WEIGHT) -> None:
        self._embedder, self._vectors, self._clean, self._weight = embedder, vectors, clean, weight
        self._embedded_query: tuple[str, list[float] | ModelError] | None = None

    @property
    def name(self) -> str:
        return self._embedder.name

    def reorder_hits(self, store: Store, hits: Sequence[IndexHit], text: str) -> list[IndexHit] | None:
        """Return the hits with the first ones reordered; None if they have no vectors. Raises ModelError."""
        known = self._find_vectors(store, hits[:TOP])
        return mix_meaning(hits, known, self._query_vector(text), self._weight) if known else None

    def _query_vector(self, text: str) -> list[float]:
        """Return the vector of the query; requested once for all rings, also if it fails."""
        if self._embedded_query is None or self._embedded_query[0] != text:
            try:
                self._embedded_query = text, self._embedder.embed([self._clean(text)[:LONGEST]])[0]
            except ModelError as error:
                self._embedded_query = text, error
        found = self._embedded_query[1]
        if isinstance(found, ModelError):
            raise found
        return found

    def _find_vectors(self, store: Store, hits: Sequence[IndexHit]) -> dict[MessageKey, bytes]:
        by_session: dict[int, list[int]] = {}
        for hit in hits:
            by_session.setdefault(hit.session, []).append(hit.seq)
        found: dict[MessageKey, bytes] = {}
        for number, seqs in by_session.items():
            session = store.session(number)[0]
            current = generation(store.version(session.version), session, self._embedder)
            found |= {(number, seq): data for seq, data in self._vectors.get(number, current, seqs).items()}
        return found


def mix_meaning(
    hits: Sequence[IndexHit], vectors: Mapping[MessageKey, bytes], query: Sequence[float], weight: float = WEIGHT
) -> list[IndexHit]:
    """Order the first hits by the sum of both standardised scores; one without a vector counts as average.

    The scores stay with the positions: the first hit has the highest score, so scores still fall from hit to hit, also
    into those that were not reordered.
    """
    head, rest = hits[:TOP], hits[TOP:]
    known = {(hit.session, hit.seq) for hit in head} & vectors.keys()
    if not known:
        return list(hits)
    length = sqrt(sum(map(mul, query, query)))
    by_meaning = _standardise_scores({key: _cosine(query, length, vectors[key]) for key in known})
    by_words = _standardise_scores({(hit.session, hit.seq): hit.score for hit in head})
    mixed = {key: score + weight * by_meaning.get(key, 0.0) for key, score in by_words.items()}
    ordered = sorted(head, key=lambda hit: -mixed[hit.session, hit.seq])  # stable: words decide between equals
    scores = sorted((hit.score for hit in head), reverse=True)
    return [*(replace(hit, score=score) for hit, score in zip(ordered, scores, strict=True)), *rest]


def _cosine(query: Sequence[float], length: float, data: bytes) -> float:
    """Return the cosine; 0 if a vector is null, or their dimensions differ."""
    numbers = memoryview(data).cast("b")
    if len(numbers) != len(query):
        return 0.0
    both = length * sqrt(sum(map(mul, numbers, numbers)))
    return sum(map(mul, query, numbers)) / both if both else 0.0


def _standardise_scores(scores: Mapping[MessageKey, float]) -> dict[MessageKey, float]:
    """Return the scores with mean 0 and deviation 1; all 0 if they are equal."""
    middle = sum(scores.values()) / len(scores)
    spread = sqrt(sum((score - middle) ** 2 for score in scores.values()) / len(scores))
    return {key: (score - middle) / spread if spread > 0 else 0.0 for key, score in scores.items()}
