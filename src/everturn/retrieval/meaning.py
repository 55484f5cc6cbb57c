"""Search by meaning, with vectors of messages; and make these vectors. Optional: without vectors nothing changes.

Meaning is mixed into the hits that words have found, and adds the nearest messages of the same scope
(`retrieval.nearness`). How much it counts depends on the query (`question_share`): whoever looks for a name, a path or a
phrase wants the messages that hold it. The query is embedded only if there are vectors to compare it with.

The *generation* of a session's vectors is the model and its dimensions, the scheme of choosing texts, and the version of
the session and of its parser. Vectors of another generation are stale and never used. All texts go through `clean` before
they are embedded: the embedder may be a remote machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct

from everturn.errors import ModelError, NothingFound
from everturn.model.archive import MessageRow, Session, Version
from everturn.model.conversation import Message
from everturn.model.vocabulary import SESSION_KINDS
from everturn.retrieval.nearness import (
    NEAREST,
    TOP,
    MessageKey,
    Nearness,
    NearnessScan,
    borrow_cosines,
    keys_beside,
    mix_scores,
)
from everturn.retrieval.query import STOP_WORDS, SearchQuery
from everturn.sessions.lookup import iterate_sessions
from everturn.sessions.messages import Records, Sources, has_words
from everturn.store.contract import IndexHit, SessionFilter, Store
from everturn.store.vector_file import NearVectors, VectorFile, numpy_or_none, pack_vectors

if TYPE_CHECKING:
    from everturn.llm.embedder import Embedder

FIELDS = ("prompt", "answer")  # that are embedded: no tool output
LONGEST = 2000  # characters of a message: small models read no further
TELLING = 200  # characters whose vector counts in full; one of fewer counts less
AT_ONCE = 64  # texts between two writes, so that an interruption loses little

#: Increased when texts are chosen or cut in another way: older vectors are then stale.
SCHEME = 3

_SPEAKERS = ("human", "agent", "model")

Clean = Callable[[str], str]


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
    return f"{model_key(embedder)}/{digest}"


def model_key(embedder: Embedder) -> str:
    """Return the part of a generation that all vectors of a model have."""
    return f"{embedder.name}/{embedder.dimensions}"


def make_batch(
    store: Store, sources: Sources, session: Session, embedder: Embedder, vectors: VectorFile, clean: Clean
) -> Iterator[VectorBatch]:
    """Embed the new messages of a session, batch by batch. Raises ModelError; batches before it are kept."""
    current = generation(store.version(session.version), session, embedder)
    start = vectors.upto(session.id, current)
    if start >= session.n_messages or not has_words(session):
        return
    for texts, upto in _batch_texts(_embedded_texts(store, sources, session, start, clean)):
        given = embedder.embed([text for _, text in texts]) if texts else []
        packed = pack_vectors(given, [min(len(text) / TELLING, 1.0) for _, text in texts])
        rows = [(seq, data) for (seq, _), data in zip(texts, packed, strict=True)]
        vectors.put(session.id, current, rows, upto)
        if _current_generation(store, session.id, embedder) != current:  # forgotten or read again meanwhile
            vectors.forget(session.id)
            return
        yield VectorBatch(session, upto - start, len(rows), sum(len(text) for _, text in texts))
        start = upto


def make_all_vectors(
    store: Store, sources: Sources, embedder: Embedder, vectors: VectorFile, clean: Clean
) -> Iterator[VectorBatch]:
    """Embed every session that lacks vectors, the newest first. Delete vectors of sessions that are no longer there."""
    for session in pending_sessions(store, embedder, vectors):
        yield from make_batch(store, sources, session, embedder, vectors, clean)


def pending_sessions(store: Store, embedder: Embedder, vectors: VectorFile | None) -> list[Session]:
    """Return the sessions that lack vectors, the newest first. Delete vectors of sessions that are no longer there.

    The work for a session that has its vectors is small, and nothing of it is read.
    """
    held, versions = vectors.held() if vectors else {}, _current_versions(store)
    seen, pending = set(), []
    for session in _sessions(store):
        seen.add(session.id)
        known, upto, _ = held.get(session.id, ("", 0, 0))
        version = versions.get(session.version) or store.version(session.version)
        if upto < session.n_messages or known != generation(version, session, embedder):
            pending.append(session)
    for number in held.keys() - seen:
        if vectors and not _current_generation(store, number, embedder):
            vectors.forget(number)
    return pending


def _current_versions(store: Store) -> dict[int, Version]:
    return {version.id: version for _, version in store.files()}


def coverage(store: Store, embedder: Embedder, vectors: VectorFile | None) -> Coverage:
    """Compare every session with its vectors."""
    held, current = vectors.held() if vectors else {}, _current_versions(store)
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
    records = Records(store, sources, session)
    for row in store.messages(session.id, start):
        yield row.seq, clean(_spoken_text(records.message(row)))[:LONGEST].strip() if _is_embedded(row) else ""


def _is_embedded(row: MessageRow) -> bool:
    return not row.inherited and row.origin in _SPEAKERS and row.kind != "summary"


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


# --- search ---

WEIGHT = 0.25  # of a cosine, relative to 1 for the best hit by words
_TRIED = 8 * NEAREST  # messages near the query that are checked against the filters
_CANDIDATES = 120  # vectors that are compared in full where there are many
_FEW = 2  # words that are a query of words, not a question

_CODE = re.compile(
    r"""
    \w[_/\\=@$<>{}\[\]|]|[_/\\=@$<>{}\[\]|]\w  # parse_json, src/main, a=b, x[0]
    | \w[.:]{1,2}\w | \(\) | ^--?\w           # a.b, a::b, run(), --flag
    | [a-z][A-Z] | [^\W\d]\d | \d[^\W\d]      # parseJson, v2, 3f2a
    """,
    re.X,
)


def question_share(query: SearchQuery) -> float:
    """Return how much meaning counts for a query: 1 for a question, half for one that names code, 0 for exact words.

    Exact are quoted phrases, beginnings, alternatives and patterns; one or two words; and names of code, a path, an id or a
    flag with no more than two other words.
    """
    wanted = query.wanted_phrases
    if query.regex or len(wanted) <= _FEW or len({piece.group for piece in wanted}) < len(wanted):
        return 0.0
    if any(piece.quoted or piece.prefix for piece in wanted):
        return 0.0
    words = [piece.text.strip(".,;:!?'()") for piece in wanted if piece.text.lower() not in STOP_WORDS]
    plain = [word for word in words if not _CODE.search(word)]
    if len(plain) == len(words):
        return 1.0
    return 0.5 if len(plain) > _FEW else 0.0


class MeaningScope(Struct, frozen=True):
    """Where meaning may add messages."""

    sessions: Collection[int] | None  # None: all
    admits: Callable[[int, int], bool]  # whether a message, by session and seq, passes the filters


class MixedHits(Struct, frozen=True):
    """Hits by words and by meaning, best first."""

    hits: list[IndexHit]
    added: frozenset[MessageKey]  # by meaning: words did not find them


class MeaningSearch:
    """A model and its vectors. Used by one thread."""

    def __init__(
        self, embedder: Embedder, vectors: VectorFile, clean: Clean, weight: float = WEIGHT, is_default: bool = False
    ) -> None:
        """With `is_default` nobody asked for this model, so that results do not name it."""
        self._embedder, self._vectors, self._clean, self._weight = embedder, vectors, clean, weight
        self.is_default = is_default
        self._embedded_query: tuple[str, list[float] | ModelError] | None = None

    @property
    def name(self) -> str:
        return self._embedder.name

    def mix_hits(
        self, store: Store, hits: Sequence[IndexHit], text: str, scope: MeaningScope | None = None, share: float = 1.0
    ) -> MixedHits | None:
        """Return the hits mixed by meaning, with messages added from the scope; None without vectors. Raises ModelError.

        `share` is the part of the weight that counts.
        """
        model = model_key(self._embedder)
        checked = _Generations(store, self._embedder, self._vectors)
        first = [(hit.session, hit.seq) for hit in hits[:TOP] if checked.is_current(hit.session)]
        if not first:
            return None
        nearness = Nearness(self._query_vector(text), *self._vectors.centre(model))
        if not nearness.direction:
            return None
        cosines, added = self._compare(nearness, checked, first, scope)
        if not cosines:
            return None
        by_words = {(hit.session, hit.seq) for hit in hits}
        mixed = mix_scores(hits, cosines, added, share * self._weight)
        return MixedHits(mixed, frozenset(key for key in added if key not in by_words))

    def _compare(
        self, nearness: Nearness, checked: _Generations, first: list[MessageKey], scope: MeaningScope | None
    ) -> tuple[dict[MessageKey, float], list[MessageKey]]:
        """Return the cosines of the first hits and of the nearest messages, and the latter."""
        around = dict.fromkeys(one for key in first for one in (key, *keys_beside(key)))
        if scope is None or numpy_or_none() is None:
            packed = checked.vectors(list(around))
            return borrow_cosines(first, {key: nearness.cosine(data) for key, data in packed.items()}), []
        always = {session for session, _ in first}
        near = NearVectors(model_key(self._embedder), nearness.direction, _CANDIDATES, scope.sessions, always)
        scan = NearnessScan(nearness, self._vectors.blocks_near(near))
        cosines = borrow_cosines(first, scan.cosines(around))
        added: list[MessageKey] = []
        for key, cosine in scan.nearest(_TRIED):
            if key in cosines or (checked.is_current(key[0]) and scope.admits(*key)):
                added.append(key)
                cosines[key] = cosine
            if len(added) == NEAREST:
                break
        return cosines, added

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


class _Generations:
    """Tells whether the vectors of a session are of its current generation; each session is looked up once."""

    def __init__(self, store: Store, embedder: Embedder, vectors: VectorFile) -> None:
        self._store, self._embedder, self._vectors = store, embedder, vectors
        self._known: dict[int, str] = {}
        self._current: dict[int, bool] = {}

    def current(self, session: int) -> str:
        if session not in self._known:
            self._known[session] = _current_generation(self._store, session, self._embedder)
        return self._known[session]

    def is_current(self, session: int) -> bool:
        if session not in self._current:
            self._current[session] = self._vectors.upto(session, self.current(session)) > 0
        return self._current[session]

    def vectors(self, keys: Sequence[MessageKey]) -> dict[MessageKey, bytes]:
        """Return the packed vectors of messages."""
        by_session: dict[int, list[int]] = {}
        for session, seq in keys:
            by_session.setdefault(session, []).append(seq)
        return {
            (session, seq): packed
            for session, seqs in by_session.items()
            for seq, packed in self._vectors.get(session, self.current(session), seqs).items()
        }
