"""What is tried for a request, one after the other, until something can be shown.

    words      the index, ranked; what clients put in is passed over when a page is made
    said       the same without them from the start: all that was found was such
    injected   only them
    text       the characters themselves, in the newest text: the index has no such words
    some       the plain words of a request whose quoted ones stand nowhere
    pattern    a regular expression, in what the index proposes and in the newest text
    newest     whatever passes the filters: a request of nothing else

Each is tried in every ring (`scope.rings`), the narrowest first, before the next one is. The later ones are only tried
when the earlier ones leave a reason to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.query import QueryPhrase, SearchQuery
from everturn.derive.times import iso
from everturn.errors import EverturnError
from everturn.recall.ranking import RankedHits, rank_candidates
from everturn.recall.reading import Sources
from everturn.recall.scope import SAID, Ring, SearchFilters, limit_to_scope, scope_rings
from everturn.recall.snippets import HitBuilder
from everturn.recall.terms import build_index_query
from everturn.store import IndexHit, Store

# Meaning, patterns and the reading of text are for few requests; they are imported when one asks for them.
if TYPE_CHECKING:
    from everturn.recall.meaning import MeaningSearch
    from everturn.recall.patterns import LinearPattern
    from everturn.recall.scanning import ScanHits

MODES = ("words", "said", "injected", "text", "some", "pattern", "newest")
#: What an answer says about itself, by what was tried.
NOTES = {
    "injected": "these words stand only in what the client put in by itself",
    "any": "no message holds all the words; these hold some of them",
    "some": "no message holds {}; these hold other words of the request",
    "newest": "no words to look for: the newest first, of {}",
    "meaning": "the order follows meaning too, by {}",
    "no meaning": "the order follows words alone: {}",
}
_MOST_TRIED = 400  # hits that a pattern is tried on
_LETTERS = 3  # a literal part of a pattern needs to be worth asking the index for


class Attempt(Struct, frozen=True):
    """What was found in one ring, best first, and what is to be said about it."""

    mode: str
    ring: Ring
    hits: list[IndexHit]
    notes: tuple[str, ...] = ()
    hides: bool = False  # whether injected text is to be passed over
    replaced: dict[str, list[str]] = {}  # words that stand nowhere, and what was looked for instead
    by_meaning: str = ""  # the model that had a part in the order


class SearchRequest:
    """What is looked for, and how much work it may still take."""

    def __init__(
        self,
        store: Store,
        sources: Sources,
        asked: SearchQuery,
        filters: SearchFilters,
        now: int,
        meaning: MeaningSearch | None = None,
    ) -> None:
        self.store, self._sources, self._now, self._meaning = store, sources, now, meaning
        self.asked, self.filters = asked, filters
        self.pattern: LinearPattern | None = _compile_regex(asked.regex) if asked.regex else None
        self._was_found = False
        self._insists = False  # on meaning: the pages before this one were ordered by it

    def attempts(self, showing: HitBuilder, only: tuple[str, str] | None) -> Iterator[Attempt]:
        """One by one; `only` is the mode and the ring of an earlier page."""
        self._insists = only is not None
        for mode in MODES:
            if only is not None and mode != only[0]:
                continue
            for ring in scope_rings(self.store, self.filters):
                if (only is None and self._has_reason(mode)) or (only and ring.name == only[1]):
                    attempt = self._attempt(mode, ring, showing)
                    self._was_found = self._was_found or bool(attempt.hits)
                    yield attempt

    def _has_reason(self, mode: str) -> bool:
        if self.pattern is not None:
            return mode == "pattern"
        if not self.asked.wanted:
            return mode == "newest"
        if mode == "words":
            return bool(self.asked.groups)
        if mode in ("said", "injected"):
            return self._was_found and self.filters.hides_injected
        return not self._was_found and (mode == "text" or (mode == "some" and _has_plain_and_quoted(self.asked)))

    def _attempt(self, mode: str, ring: Ring, showing: HitBuilder) -> Attempt:
        filters = ring.filters
        if mode == "text":
            return self._text(ring)
        if mode == "newest":
            return self._newest(ring)
        if mode == "some":
            return self._attempt_some(ring)
        if mode == "pattern" and self.pattern is not None:
            return self._attempt_pattern(ring, self.pattern, showing)
        if mode == "said":
            filters = replace(filters, origins=SAID)
        if mode == "injected":
            filters = replace(filters, origins=("injected",))
        ranked = self._rank_query(self.asked, filters)
        hits, model, note = self._order_by_meaning(ranked.hits)
        said = (NOTES["injected"],) if mode == "injected" else ()
        notes = (*said, *map(_replaced_note, ranked.replaced.items()), *filter(None, [note]))
        hides = mode == "words" and filters.hides_injected
        return Attempt(mode, ring, hits, notes, hides, ranked.replaced, model)

    def _rank_query(self, asked: SearchQuery, filters: SearchFilters) -> RankedHits:
        """What the index has, best first."""
        return rank_candidates(
            self.store, limit_to_scope(build_index_query(asked, self._now or None), filters), self._now
        )

    def _order_by_meaning(self, hits: list[IndexHit]) -> tuple[list[IndexHit], str, str]:
        """The hits, perhaps in another order; the model that had a part in it; what is to be said about it."""
        if self._meaning is None or not hits:
            return hits, "", ""
        try:
            ordered = self._meaning.reorder_hits(self.store, hits, " ".join(piece.text for piece in self.asked.wanted))
        except EverturnError as error:
            if self._insists:
                raise
            return hits, "", NOTES["no meaning"].format(error)
        if ordered is None:
            return hits, "", ""
        return ordered, self._meaning.name, NOTES["meaning"].format(self._meaning.name)

    def _attempt_some(self, ring: Ring) -> Attempt:
        """The same words, none of them quoted. What is unwanted stays so."""
        quoted = [piece.text for piece in self.asked.wanted if piece.quoted]
        pieces = tuple(piece if piece.negated else replace(piece, quoted=False) for piece in self.asked.pieces)
        ranked = self._rank_query(replace(self.asked, pieces=pieces), ring.filters)
        note = NOTES["some"].format(" and ".join(f'"{text}"' for text in quoted))
        return Attempt("some", ring, ranked.hits, (note,), ring.filters.hides_injected, ranked.replaced)

    def _newest(self, ring: Ring) -> Attempt:
        from everturn.recall.scanning import scan_text

        scanned = scan_text(self.store, self._sources, ring.filters, bool)
        return Attempt("newest", ring, scanned.hits, (NOTES["newest"].format(_scan_extent(scanned)),))

    # the text itself ----------------------------------------------------------------------------------------------
    def _text(self, ring: Ring) -> Attempt:
        """Every word as a piece of text, one of those joined by OR."""
        groups: dict[int, list[str]] = {}
        for piece in self.asked.wanted:
            groups.setdefault(piece.group, []).append(piece.text.lower())
        unwanted = [piece.text.lower() for piece in self.asked.pieces if piece.negated]

        def fits(text: str) -> bool:
            lower = text.lower()
            return all(any(one in lower for one in some) for some in groups.values()) and not any(
                one in lower for one in unwanted
            )

        from everturn.recall.scanning import scan_text

        holds = tuple(some[0] for some in groups.values() if len(some) == 1)
        scanned = scan_text(self.store, self._sources, ring.filters, fits, holds)
        note = f"the index has no such words; looked for the characters themselves in {_scan_extent(scanned)}"
        return Attempt("text", ring, scanned.hits, (note,))

    def _attempt_pattern(self, ring: Ring, pattern: LinearPattern, showing: HitBuilder) -> Attempt:
        """First in what the index proposes, then in the newest text that was not among it."""
        from everturn.recall.scanning import scan_text

        words = replace(self.asked, regex="") if self.asked.wanted else _literal_query(pattern)
        proposed = self._rank_query(words, ring.filters).hits[:_MOST_TRIED] if words.groups else []
        hits = [hit for hit in proposed if self._fits(pattern, hit, showing)]
        note = f"the pattern was tried on {len(proposed):,} messages that the index proposes" if words.groups else ""
        if not self.asked.wanted:
            scanned = scan_text(self.store, self._sources, ring.filters, pattern.matches, tuple(pattern.literals))
            known = {(hit.session, hit.seq) for hit in hits}
            # Behind the others: what the index proposes holds the literal parts as whole words.
            least = min((hit.score for hit in hits), default=1.0)
            fresh = [hit for hit in scanned.hits if (hit.session, hit.seq) not in known]
            hits += [IndexHit(hit.session, hit.seq, least - 1 + hit.score) for hit in fresh]
            note = (
                f"{note} and on " * bool(note) + ("" if note else "the pattern was tried on ") + _scan_extent(scanned)
            )
        if pattern.effort.spent:
            note += "; it took too much work and was stopped there"
        return Attempt("pattern", ring, hits, (note,), ring.filters.hides_injected)

    def _fits(self, pattern: LinearPattern, hit: IndexHit, showing: HitBuilder) -> bool:
        row = next(self.store.messages(hit.session, hit.seq, hit.seq), None) if hit.seq >= 0 else None
        return any(pattern.matches(text) for _, text in showing.texts(hit, row))


def _has_plain_and_quoted(asked: SearchQuery) -> bool:
    """Whether there is more to the request than what must stand there as it is quoted."""
    return any(piece.quoted for piece in asked.wanted) and not all(
        piece.quoted or piece.prefix for piece in asked.wanted
    )


def _replaced_note(words: tuple[str, list[str]]) -> str:
    return f"no message holds {words[0]!r}; looked for {' and '.join(map(repr, words[1]))} too"


def _compile_regex(regex: str) -> LinearPattern:
    from everturn.recall.patterns import compile_pattern

    return compile_pattern(regex)


def _literal_query(pattern: LinearPattern) -> SearchQuery:
    """The literal parts of a pattern as a request; where the last word of one ends is not known."""
    parts = [part for part in pattern.literals if sum(map(str.isalnum, part)) >= _LETTERS]
    return SearchQuery(
        tuple(QueryPhrase(part, quoted=True, prefix=True, group=number) for number, part in enumerate(parts))
    )


def _scan_extent(scanned: ScanHits) -> str:
    if scanned.back_to is None:
        return f"all {scanned.messages:,} messages"
    return f"the newest {scanned.messages:,} messages, back to {iso(scanned.back_to)[:10]}"
