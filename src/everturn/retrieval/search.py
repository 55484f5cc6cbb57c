"""Search the archive: a typed query in, a page of ranked hits with excerpts out.

Text that clients inserted is left out as long as there is anything else. If the index has no answer, the newest text is
scanned for the characters themselves, within a bound (`retrieval.attempts`). The notes of a page say whatever was done
beyond the plain query. With a `meaning` (`retrieval.meaning`) the hits of a question follow meaning too.

A cursor names the last hit shown and the time of the first page, not a count, so the next page continues there although
new messages arrive.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import UsageError
from everturn.model.archive import MessageRow
from everturn.retrieval.attempts import MODES, NOTES, Attempt, SearchRequest
from everturn.retrieval.hits import Clean, HitBuilder, HitOptions, NeighbourTurn, SearchHit
from everturn.retrieval.index_query import STOP_WORDS
from everturn.retrieval.query import SearchQuery, parse_query, phrase_of
from everturn.retrieval.scope import EVERYWHERE, SearchFilters, apply_typed_filters, is_unwanted
from everturn.sessions.lookup import ResultPage
from everturn.sessions.messages import Sources
from everturn.store.contract import IndexHit, Store

if TYPE_CHECKING:  # few have one
    from everturn.retrieval.meaning import MeaningSearch

__all__ = ["EVERYWHERE", "NOTES", "NeighbourTurn", "Results", "SearchFilters", "SearchHit", "search"]

_WIDENED = {
    "lineage": "nothing like it in the session itself; these are from sessions that hang together with it",
    "workspace": "nothing like it nearer; these are from the same folder",
    "everything": "nothing like it nearer; these are from everywhere",
}
_CURSOR = (  # compiled when there is one
    rf"({'|'.join(MODES)})\.(session|lineage|workspace|everything)\.([0-9]{{1,15}})\.(-?[0-9]{{1,18}})"
    r"\.([0-9]{1,18})\.(-1|[0-9]{1,9})\.([0-9a-f]{8})"
)
_HitAndRow = tuple[IndexHit, MessageRow | None]


class Results(ResultPage[SearchHit], frozen=True):
    """A page of hits and the scope they come from."""

    notes: tuple[str, ...] = ()  # the parts of `note`
    scope: str = ""  # session | lineage | workspace | everything; "" without hits


class SearchCursor(Struct, frozen=True):
    """The last hit of a page, the time of the first page, and a hash of the query."""

    mode: str
    ring: str
    now: int
    score: int  # in millionths
    session: int
    seq: int
    mark: str


def search(  # noqa: PLR0913 -- one face for every surface; all but three have a default
    store: Store,
    sources: Sources,
    text: str,
    filters: SearchFilters = EVERYWHERE,
    limit: int = 20,
    cursor: str = "",
    clean: Clean | None = None,
    now: int = 0,
    meaning: MeaningSearch | None = None,
) -> Results:
    """Return a page of hits, best first.

    `since:7d` counts from `now`. Raises UsageError for an empty query, an invalid filter or pattern, or a cursor of another
    search; ModelError only if earlier pages were ordered by meaning.
    """
    query = parse_query(text)
    if not query.wanted and not query.regex and (query.pieces or not query.filters):
        raise UsageError(f"there is no word to look for in {text!r}; give at least one word to find")
    mark = _search_mark(query, filters)
    last = _read_cursor(cursor, mark, _mark_with_model(mark, meaning.name) if meaning else mark) if cursor else None
    now = last.now if last else now
    if last and last.mark == mark:
        meaning = None  # the first page was ordered by words alone, so the others are too
    filters = apply_typed_filters(store, filters, query.filters, now)
    request = SearchRequest(store, sources, query, filters, now, meaning)
    builder = HitBuilder(store, sources, HitOptions(filters.fields, clean or str, request.pattern))
    after = replace(last, mark=mark) if last else SearchCursor("", "", now, 0, 0, 0, mark)
    return _first_answer(request, builder, limit, after, is_first=last is None)


def _first_answer(
    request: SearchRequest, builder: HitBuilder, limit: int, after: SearchCursor, is_first: bool
) -> Results:
    """Return the results of the first attempt with a hit to show."""
    partly: Results | None = None
    empty_notes: tuple[str, ...] = ()
    for attempt in request.attempts(builder, None if is_first else (after.mode, after.ring)):
        if partly and attempt.mode != "words":
            break
        hits = attempt.hits if is_first else _hits_after(attempt.hits, after)
        chosen = _choose_hits(request.store, builder, attempt, hits, limit + 1)
        if not chosen:
            # Unless the index itself says that there is nothing, an empty page says how far the search went.
            empty_notes = () if request.query.groups and not request.pattern else attempt.notes
            continue
        results = _make_results(builder, request, attempt, chosen[:limit], after, len(chosen) > limit)
        # Some of the words are almost anywhere: a wider scope may have a message with all of them.
        if not is_first or not request.filters.widen or NOTES["any"] not in results.notes:
            return results
        partly = partly or results
    return partly or Results([], note="; ".join(empty_notes), notes=empty_notes)


def _choose_hits(
    store: Store, builder: HitBuilder, attempt: Attempt, hits: list[IndexHit], most: int
) -> list[_HitAndRow]:
    """Return the first hits with their rows, without those that must not be shown."""
    found: list[_HitAndRow] = []
    unwanted = attempt.ring.filters.unwanted
    for hit in hits:
        row = next(store.messages(hit.session, hit.seq, hit.seq), None) if hit.seq >= 0 else None
        if attempt.hides and row is not None and row.origin == "injected":
            continue
        if is_unwanted(store, unwanted, *builder.session(hit.session), row):
            continue
        found.append((hit, row))
        if len(found) == most:
            break
    return found


def _hits_after(hits: list[IndexHit], last: SearchCursor) -> list[IndexHit]:
    """Return the hits after the last one shown; if that is gone, those with a lower score."""
    for number, hit in enumerate(hits):
        if (hit.session, hit.seq) == (last.session, last.seq):
            return hits[number + 1 :]
    return [hit for hit in hits if _score_millionths(hit.score) < last.score]


def _make_results(
    builder: HitBuilder,
    request: SearchRequest,
    attempt: Attempt,
    chosen: list[_HitAndRow],
    after: SearchCursor,
    is_more: bool,
) -> Results:
    marks = _marked_words(request.query, attempt.replaced)
    builder.words, builder.held = [word for word, _ in marks], []
    items = [builder.build(hit, row) for hit, row in chosen]
    notes = list(attempt.notes)
    if attempt.mode in ("words", "said") and not _contains_all([group for _, group in marks], builder.held):
        notes.append(NOTES["any"])
    if any((hit.session, hit.seq) in attempt.added for hit, _ in chosen):
        notes.append(NOTES["added"])
    if request.filters.widen and attempt.ring.name != _first_ring(request.filters):
        notes.append(_WIDENED[attempt.ring.name])
    hit = chosen[-1][0]
    mark = _mark_with_model(after.mark, attempt.by_meaning) if attempt.by_meaning else after.mark
    last = SearchCursor(
        attempt.mode, attempt.ring.name, after.now, _score_millionths(hit.score), hit.session, hit.seq, mark
    )
    return Results(items, _write_cursor(last) if is_more else "", "; ".join(notes), tuple(notes), attempt.ring.name)


def _first_ring(filters: SearchFilters) -> str:
    if filters.session is not None:
        return "session"
    return "workspace" if filters.workspace else "everything"


def _marked_words(query: SearchQuery, replaced: dict[str, list[str]]) -> list[tuple[str, int]]:
    """Return the words to mark with their OR groups: without stop words, but with corrected spellings."""
    content = [phrase for phrase in query.wanted if phrase.quoted or phrase.text.lower() not in STOP_WORDS]
    marks = []
    for phrase in content or query.wanted:
        marks.append((f"{phrase.text}*" if phrase.prefix else phrase.text, phrase.group))
        marks += [(other, phrase.group) for word in phrase_of(phrase) for other in replaced.get(word, ())]
    return marks


def _contains_all(groups: list[int], held: list[set[int]]) -> bool:
    """Whether one of the messages shown contains a word of every OR group."""
    return len(set(groups)) < 2 or any({groups[number] for number in one} == set(groups) for one in held)


# --- the cursor ---


def _search_mark(query: SearchQuery, filters: SearchFilters) -> str:
    """Return a hash that is equal for all pages of a search. Times are left out: `--since 7d` moves between two pages."""
    session = filters.session.id if filters.session else 0
    parts = repr((query, session, replace(filters, session=None, since=None, until=None)))
    return blake2b(parts.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _mark_with_model(mark: str, model: str) -> str:
    """Return the hash of a search that a model helped to order: its pages fit together only with each other."""
    return blake2b(f"{mark} {model}".encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _write_cursor(last: SearchCursor) -> str:
    return f"{last.mode}.{last.ring}.{last.now}.{last.score}.{last.session}.{last.seq}.{last.mark}"


def _read_cursor(cursor: str, *marks: str) -> SearchCursor:
    found = re.fullmatch(_CURSOR, cursor, re.ASCII)
    if not found or found[7] not in marks:
        raise UsageError(f"the cursor {cursor!r} does not belong to this search; leave it out to start again")
    now, score, session, seq = map(int, found.group(3, 4, 5, 6))
    return SearchCursor(found[1], found[2], now, score, session, seq, found[7])


def _score_millionths(score: float) -> int:
    return round(score * 1_000_000)
