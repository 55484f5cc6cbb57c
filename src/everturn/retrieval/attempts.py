"""The attempts of a search, made in turn until there is something to show.

    words      the index, ranked; text that clients inserted is skipped when a page is made
    said       the same without that text from the start, if nothing else was found
    injected   only that text
    text       the characters themselves, in the newest text: the index has no such words
    some       the plain words of a query whose quoted words are nowhere
    pattern    a regular expression, on what the index proposes and on the newest text
    newest     whatever passes the filters: a query of filters only

Each is tried in every ring (`scope_rings`), the narrowest first, before the next one. Later ones are tried only if the
earlier ones leave a reason to.

`TextScan` reads the text itself, newest first, for what the index cannot find: signs, parts of words, patterns. Its work is
bounded by the bytes of the records read, and the results say how far it went. If a match must contain certain characters,
records without them are skipped at memory speed, so that much more can be searched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import EverturnError
from everturn.model.archive import MessageRow, Session
from everturn.retrieval import ranking
from everturn.retrieval.hits import HitBuilder, hit_texts
from everturn.retrieval.preference import LOOKED_AT, narrow_filters, prefer_hits
from everturn.retrieval.query import PIECE, QueryPhrase, SearchQuery, build_index_query
from everturn.retrieval.question import NOTHING, UnderstoodQuery
from everturn.retrieval.ranking import RankedHits, rank_candidates
from everturn.retrieval.scope import SAID, Ring, SearchFilters, limit_to_scope, scope_rings
from everturn.sessions.lookup import iterate_sessions
from everturn.sessions.messages import Records, Sources, has_words, records_end
from everturn.store.contract import IndexCandidates, IndexHit, IndexQuery, Store
from everturn.text.printable import plural
from everturn.text.times import iso

if TYPE_CHECKING:
    from everturn.retrieval.meaning import MeaningScope, MeaningSearch
    from everturn.text.regex import LinearPattern


MODES = ("words", "said", "injected", "text", "some", "pattern", "newest")
#: Notes of a page, by what was tried.
NOTES = {
    "injected": "these words occur only in context that the client added",
    "any": "no message contains all the words; these contain some of them",
    "some": "no message contains {}; these contain other words of the query",
    "prose": "the query is long: quoted words are preferred, not required",
    "newest": "no words to search for: newest first, from {}",
    "meaning": "ranked by words and by meaning ({})",
    "added": "some of these contain none of the words; they were found by meaning",
    "no meaning": "ranked by words only: {}",
    "taken back": "matches that were taken back are left out; taken-back:yes shows them",
    "filter": "{!r} was searched as text; did you mean {}:?",
}
_MAX_TRIED = 400  # hits that a pattern is tried on
_COUNTING_BACK = frozenset("ago yesterday today last past previous day days week weeks month months year years".split())
_LETTERS = 3  # of a literal that is worth a query to the index


class Attempt(Struct, frozen=True):
    """The hits in one ring, best first, and their notes."""

    mode: str
    ring: Ring
    hits: list[IndexHit]
    notes: tuple[str, ...] = ()
    hides: bool = False  # whether injected text is skipped
    replaced: dict[str, list[str]] = {}  # unknown words, and their replacements
    by_meaning: str = ""  # the model that helped to order them
    fits: bool = True  # whether some are of the time and the speaker that the question names
    added: frozenset[tuple[int, int]] = frozenset()  # messages that only meaning found: session, seq
    found: IndexCandidates | None = None  # what the hits hold


class HiddenHits:
    """Messages that a search passes over. This one hides nothing."""

    #: Messages that are not even ranked: session and seq.
    unranked: Collection[tuple[int, int]] = ()

    def hides(self, session: Session, row: MessageRow) -> bool:
        """Whether a hit is not shown."""
        return False


class SearchRequest:
    """A query with its filters, and the work it may still take."""

    def __init__(
        self,
        store: Store,
        sources: Sources,
        query: SearchQuery,
        filters: SearchFilters,
        now: int,
        meaning: MeaningSearch | None = None,
        understood: UnderstoodQuery | None = None,
        hidden: HiddenHits | None = None,
    ) -> None:
        self.hidden = hidden or HiddenHits()
        self.passed_over = 0  # matches that were taken back
        self.store, self._sources, self._now, self._meaning = store, sources, now, meaning
        self.query, self.filters = understood.query if understood else query, filters
        self._understood = understood or UnderstoodQuery(query)
        self._typed = query
        self.pattern: LinearPattern | None = _compile_regex(query.regex) if query.regex else None
        self._was_found = False
        self._has_fitting = True
        self._insists = False  # on meaning: earlier pages were ordered by it

    def rank(self) -> RankedHits:
        """Return the hits of the words of the query in every session, without texts."""
        return self._rank_query(self.query, self.filters)

    def attempts(self, builder: HitBuilder, only: tuple[str, str] | None) -> Iterator[Attempt]:
        """Yield the attempts; `only` is the mode and the ring of an earlier page."""
        self._insists = only is not None
        for mode in MODES:
            if only is not None and mode != only[0]:
                continue
            for ring in scope_rings(self.store, self.filters):
                if (only is None and self._has_reason(mode)) or (only and ring.name == only[1]):
                    attempt = replace(self._attempt(mode, ring, builder), fits=self._has_fitting)
                    self._was_found = self._was_found or bool(attempt.hits)
                    yield attempt

    def _has_reason(self, mode: str) -> bool:
        if self.pattern is not None:
            return mode == "pattern"
        if not self.query.wanted_phrases:
            return mode == "newest"
        if mode == "words":
            return bool(self.query.groups)
        if mode in ("said", "injected"):
            return self._was_found and self.filters.hides_injected
        return not self._was_found and (mode == "text" or (mode == "some" and _has_plain_and_quoted(self.query)))

    def _attempt(self, mode: str, ring: Ring, builder: HitBuilder) -> Attempt:
        filters = ring.filters
        if mode == "text":
            return self._attempt_text(ring)
        if mode == "newest":
            return self._attempt_newest(ring)
        if mode == "some":
            return self._attempt_some(ring)
        if mode == "pattern" and self.pattern is not None:
            return self._attempt_pattern(ring, self.pattern, builder)
        if mode == "said":
            filters = replace(filters, origins=SAID)
        if mode == "injected":
            filters = replace(filters, origins=("injected",))
        ranked = self._rank_query(self.query, filters)
        if self._understood.is_listing and mode == "words":
            ranked = replace(ranked, hits=self._list_newest(filters, ranked.hits))
        injected = (NOTES["injected"],) if mode == "injected" else ()
        notes = (*injected, *map(_replaced_note, ranked.replaced.items()))
        hides = mode == "words" and filters.hides_injected
        attempt = Attempt(mode, ring, ranked.hits, notes, hides, ranked.replaced, found=ranked.found)
        return attempt if mode == "injected" else self._mix_meaning(attempt, filters, builder)

    def _rank_query(self, query: SearchQuery, filters: SearchFilters) -> RankedHits:
        meant = self._understood.meant
        index_query = build_index_query(query, self._now or None, meant.times)
        ranked = self._rank(index_query, filters)
        if meant == NOTHING:
            return ranked
        narrower = narrow_filters(filters, meant)
        narrow = self._rank(index_query, narrower, ranked.replaced, LOOKED_AT).hits if narrower else []
        self._has_fitting = bool(narrow) or narrower is None
        if not self._has_fitting and query is self.query:  # the words for the time may be in the text itself
            return self._rank(_weigh_less(build_index_query(self._typed, self._now or None), index_query), filters)
        return replace(ranked, hits=prefer_hits(self.store, meant, ranked.hits, narrow))

    def _rank(
        self,
        query: IndexQuery,
        filters: SearchFilters,
        replaced: Mapping[str, list[str]] | None = None,
        looked_at: int = ranking.LOOKED_AT,
    ) -> RankedHits:
        scoped, hidden = limit_to_scope(query, filters), self.hidden.unranked
        return rank_candidates(self.store, scoped, self._now, without=hidden, replaced=replaced, looked_at=looked_at)

    def _list_newest(self, filters: SearchFilters, hits: list[IndexHit]) -> list[IndexHit]:
        """Return the messages of the understood time or speaker, the newest first, before hits of other times."""
        narrower = narrow_filters(filters, self._understood.meant, slack=False)
        if narrower is None:
            return hits
        listed = TextScan(self.store, self._sources, narrower, bool).run().hits
        self._has_fitting = self._has_fitting or bool(listed)
        best = max((hit.score for hit in hits), default=1.0)
        known = {(hit.session, hit.seq) for hit in listed}
        listed = [replace(hit, score=best + hit.score) for hit in listed]
        return listed + [hit for hit in hits if (hit.session, hit.seq) not in known]

    def _mix_meaning(self, attempt: Attempt, filters: SearchFilters, builder: HitBuilder) -> Attempt:
        """Mix meaning into an attempt, unless the query looks for exact words or there is no hit by words."""
        if self._meaning is None or not attempt.hits or not self._question_share:
            return attempt
        text = " ".join(piece.text for piece in self.query.wanted_phrases)
        if _holds_text(builder, self.store, attempt.hits[0], text):  # it was copied from there
            return attempt
        # Whether a message holds unwanted words is known to the index only.
        scope = None if self.query.without else self._meaning_scope(filters, builder)
        try:
            mixed = self._meaning.mix_hits(self.store, attempt.hits, text, scope, self._question_share)
        except EverturnError as error:
            if self._insists:
                raise
            return replace(attempt, notes=(*attempt.notes, NOTES["no meaning"].format(error)))
        if mixed is None:
            return attempt
        note = () if self._meaning.is_default else (NOTES["meaning"].format(self._meaning.name),)
        notes = (*attempt.notes, *note)
        return replace(attempt, hits=mixed.hits, notes=notes, by_meaning=self._meaning.name, added=mixed.added)

    @cached_property
    def _question_share(self) -> float:
        from everturn.retrieval.meaning import question_share

        return question_share(self.query)

    def _meaning_scope(self, filters: SearchFilters, builder: HitBuilder) -> MeaningScope:
        from everturn.retrieval.meaning import MeaningScope

        among: dict[int, set[int] | None] = {}

        def admits(number: int, seq: int) -> bool:
            row = next(self.store.messages(number, seq, seq), None)
            if row is None:
                return False
            if number not in among:
                among[number] = _messages_with_calls(self.store, builder.session(number)[0], filters)
            return _passes(filters, row, among[number]) and (
                not filters.fields or bool(builder.texts(IndexHit(number, seq, 0.0), row))
            )

        return MeaningScope(_scope_sessions(self.store, filters), admits)

    def _attempt_some(self, ring: Ring) -> Attempt:
        """Search for the same words, none of them quoted. Exclusions stay."""
        quoted = [piece.text for piece in self.query.wanted_phrases if piece.quoted]
        pieces = tuple(piece if piece.negated else replace(piece, quoted=False) for piece in self.query.pieces)
        ranked = self._rank_query(replace(self.query, pieces=pieces), ring.filters)
        note = NOTES["some"].format(" and ".join(f'"{text}"' for text in quoted))
        return Attempt("some", ring, ranked.hits, (note,), ring.filters.hides_injected, ranked.replaced)

    def _attempt_newest(self, ring: Ring) -> Attempt:
        scanned = TextScan(self.store, self._sources, ring.filters, bool).run()
        return Attempt("newest", ring, scanned.hits, (NOTES["newest"].format(_scan_extent(scanned)),))

    # --- the text itself ---

    def _attempt_text(self, ring: Ring) -> Attempt:
        """Search for every word as characters, or one of those joined by OR."""
        groups: dict[int, list[str]] = {}
        for piece in self.query.wanted_phrases:
            groups.setdefault(piece.group, []).append(piece.text.lower())
        unwanted = [piece.text.lower() for piece in self.query.pieces if piece.negated]

        def fits(text: str) -> bool:
            lower = text.lower()
            return all(any(one in lower for one in some) for some in groups.values()) and not any(
                one in lower for one in unwanted
            )

        holds = tuple(some[0] for some in groups.values() if len(some) == 1)
        scanned = TextScan(self.store, self._sources, ring.filters, fits, holds).run()
        note = f"the index does not contain these words; searched the text itself in {_scan_extent(scanned)}"
        return Attempt("text", ring, scanned.hits, (note,))

    def _attempt_pattern(self, ring: Ring, pattern: LinearPattern, builder: HitBuilder) -> Attempt:
        """Try the pattern on what the index proposes, then on the newest text."""
        words = replace(self.query, regex="") if self.query.wanted_phrases else _literal_query(pattern)
        proposed = self._rank_query(words, ring.filters).hits[:_MAX_TRIED] if words.groups else []
        hits = [hit for hit in proposed if self._fits(pattern, hit, builder)]
        tried = f"{plural(len(proposed), 'message')} that the index suggested"
        note = f"the pattern was tried on {tried}" if words.groups else ""
        if not self.query.wanted_phrases:
            scanned = TextScan(self.store, self._sources, ring.filters, pattern.matches, tuple(pattern.literals)).run()
            known = {(hit.session, hit.seq) for hit in hits}
            # After the others: what the index proposes contains the literals as whole words.
            least = min((hit.score for hit in hits), default=1.0)
            fresh = [hit for hit in scanned.hits if (hit.session, hit.seq) not in known]
            hits += [IndexHit(hit.session, hit.seq, least - 1 + hit.score) for hit in fresh]
            note = (
                f"{note} and on " * bool(note) + ("" if note else "the pattern was tried on ") + _scan_extent(scanned)
            )
        if pattern.effort.is_spent:
            note += "; it took too long and was stopped there"
        return Attempt("pattern", ring, hits, (note,), ring.filters.hides_injected)

    def _fits(self, pattern: LinearPattern, hit: IndexHit, builder: HitBuilder) -> bool:
        row = next(self.store.messages(hit.session, hit.seq, hit.seq), None) if hit.seq >= 0 else None
        return any(pattern.matches(text) for _, text in builder.texts(hit, row))


def _weigh_less(typed: IndexQuery, subject: IndexQuery) -> IndexQuery:
    """Return the typed query with less weight for words that only count back from now, such as `3 weeks ago`."""
    known = set(subject.optional)
    words = {term for phrase in typed.optional for term in phrase}
    counting = _COUNTING_BACK | ({word for word in words if word.isdigit()} if "ago" in words else set())
    weighed = [
        weight * PIECE if phrase not in known and counting.issuperset(phrase) else weight
        for phrase, weight in zip(typed.optional, typed.weights, strict=True)
    ]
    return replace(typed, weights=tuple(weighed)) if known else typed


def _has_plain_and_quoted(query: SearchQuery) -> bool:
    """Whether the query has plain words besides quoted ones."""
    has_quoted = any(phrase.quoted for phrase in query.wanted_phrases)
    return has_quoted and not all(phrase.quoted or phrase.prefix for phrase in query.wanted_phrases)


def _replaced_note(words: tuple[str, list[str]]) -> str:
    return f"no message contains {words[0]!r}; also searched for {' and '.join(map(repr, words[1]))}"


def _compile_regex(regex: str) -> LinearPattern:
    from everturn.text.regex import compile_pattern

    return compile_pattern(regex)


def _literal_query(pattern: LinearPattern) -> SearchQuery:
    """Return the literals of a pattern as a query of prefixes: where their last word ends is not known."""
    parts = [part for part in pattern.literals if sum(map(str.isalnum, part)) >= _LETTERS]
    return SearchQuery(
        tuple(QueryPhrase(part, quoted=True, prefix=True, group=number) for number, part in enumerate(parts))
    )


def _scan_extent(scanned: ScanHits) -> str:
    if scanned.back_to is None:
        return f"all {plural(scanned.messages, 'message')}"
    return f"the newest {plural(scanned.messages, 'message')}, back to {iso(scanned.back_to)[:10]}"


# --- scanning ---

#: Bytes of records read for one query: if most can be skipped, and if each has to be parsed.
SKIMMED = 8_000_000
READ = 8_000_000
#: Hits after which a scan stops.
ENOUGH = 200
_ROWS = 100
_SESSIONS = 50
#: Characters that are never escaped in a record.
_PLAIN = re.compile(rb"[a-z0-9_ .,:;=()\[\]{}+-]+")


class ScanHits(Struct, frozen=True):
    """The hits of a scan, newest first, and how far it went."""

    hits: list[IndexHit]
    messages: int  # scanned
    back_to: int | None  # time of the oldest of them, if there are more


class TextScan:
    """Finds messages with a text that fits. `holds` is text that every match contains, in any case."""

    def __init__(
        self,
        store: Store,
        sources: Sources,
        filters: SearchFilters,
        fits: Callable[[str], bool],
        holds: tuple[str, ...] = (),
    ) -> None:
        self._store, self._sources, self._filters, self._fits = store, sources, filters, fits
        given = [one.lower().encode("utf-8", "surrogatepass") for one in holds]
        self._holds = [one for one in given if _PLAIN.fullmatch(one)]
        self._left = SKIMMED if self._holds else READ
        self._hits: list[IndexHit] = []
        self._messages = 0

    def run(self) -> ScanHits:
        oldest: int | None = None
        for session in self._sessions():
            for row in self._rows(session):
                oldest = min(oldest or row.at or 0, row.at or oldest or 0)
                if self._left <= 0 or len(self._hits) >= ENOUGH:
                    return ScanHits(self._hits, self._messages, oldest)
        return ScanHits(self._hits, self._messages, None)

    def _sessions(self) -> Iterator[Session]:
        filters = self._filters
        if filters.session is not None:
            yield filters.session
            return
        if filters.within:
            sessions = (self._store.session(one)[0] for one in filters.within)
            yield from sorted(sessions, key=lambda one: (-(one.ended or 0), -one.id))
            return
        listed = replace(filters.session_filter(("current",)), since=filters.since, until=filters.until)
        yield from iterate_sessions(self._store, listed, _SESSIONS)

    def _rows(self, session: Session) -> Iterator[MessageRow]:
        """Scan the messages of a session and yield them, newest first."""
        if not has_words(session):
            return
        among = _messages_with_calls(self._store, session, self._filters)
        for last in range(session.n_messages - 1, -1, -_ROWS):
            rows = list(self._store.messages(session.id, max(0, last - _ROWS + 1), last))
            if not rows:
                return
            records = Records(self._store, self._sources, session, records_end(rows))
            found = [row.seq for row in rows if _passes(self._filters, row, among) and self._matches(records, row)]
            for row in reversed(rows):
                if row.seq in found:
                    self._hits.append(IndexHit(session.id, row.seq, 1 / (1 + len(self._hits))))
                yield row

    def _matches(self, records: Records, row: MessageRow) -> bool:
        if self._left <= 0:
            return False
        self._left -= row.size
        self._messages += 1
        record = records.record(row)
        if self._holds:
            lower = record.lower()
            if not all(one in lower for one in self._holds):
                return False
        found = hit_texts(records.view(row, record), self._filters.fields)
        return any(self._fits(text) for _, text in found)


def _holds_text(builder: HitBuilder, store: Store, hit: IndexHit, text: str) -> bool:
    """Whether a message holds a text literally, except for spaces and case."""
    row = next(store.messages(hit.session, hit.seq, hit.seq), None) if hit.seq >= 0 else None
    wanted = " ".join(text.lower().split())
    return any(wanted in " ".join(words.lower().split()) for _, words in builder.texts(hit, row))


def _passes(filters: SearchFilters, row: MessageRow, among: set[int] | None) -> bool:
    """Whether a message passes the filters. `among` are those with the right calls, None without such a filter."""
    if row.inherited and not filters.session:  # found in the session it comes from
        return False
    if (row.origin == "injected" and filters.hides_injected) or (filters.origins and row.origin not in filters.origins):
        return False
    if filters.turns and not filters.turns[0] <= row.turn <= filters.turns[1]:
        return False
    return (among is None or row.seq in among) and _is_between(row.at, filters.since, filters.until)


def _scope_sessions(store: Store, filters: SearchFilters) -> Collection[int] | None:
    """Return the sessions that filters leave; None for all."""
    if filters.session is not None:
        return (filters.session.id,)
    if filters.within:
        return filters.within
    if not (filters.limits_sessions or filters.since or filters.until):
        return None
    both = filters.session_filter(("current", "superseded"))
    listed = replace(both, since=filters.since, until=filters.until)
    return {session.id for session in iterate_sessions(store, listed)}


def _is_between(at: int | None, since: int | None, until: int | None) -> bool:
    if since is None and until is None:
        return True
    return at is not None and (since is None or at >= since) and (until is None or at < until)


def _messages_with_calls(store: Store, session: Session, filters: SearchFilters) -> set[int] | None:
    """Return the messages with calls or results that pass the filters; None without such a filter."""
    if not filters.tools and not filters.path and filters.errors is None:
        return None
    tools = {name.lower() for name in filters.tools}
    touching = None
    if filters.path:
        part = filters.path.lower()
        touching = {(one.seq, one.idx) for one in store.artifacts(session.id) if part in one.path.lower()}
    found: set[int] = set()
    failed: set[int] = set()
    for call in store.calls(session.id):
        seqs = {call.seq} if call.result_seq is None else {call.seq, call.result_seq}
        if call.status == "error":
            failed |= seqs
        if (not tools or call.name.lower() in tools) and (touching is None or (call.seq, call.idx) in touching):
            found |= seqs
    if filters.errors is None:
        return found
    return found & failed if filters.errors else found - failed
