"""Search the archive: a typed query in, a page of ranked hits with excerpts out.

Text that clients inserted is left out as long as there is anything else. If the index has no answer, the newest text is
scanned for the characters themselves, within a bound (`retrieval.attempts`). The notes of a page say whatever was done
beyond the plain query. With a `meaning` (`retrieval.meaning`) the hits of a question follow meaning too.

A cursor names the last hit shown and the time of the first page, not a count, so the next page continues there although
new messages arrive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import UsageError
from everturn.model.archive import MessageRow
from everturn.retrieval.attempts import MODES, NOTES, Attempt, HiddenHits, SearchRequest
from everturn.retrieval.hits import (
    Clean,
    HitBuilder,
    HitGroups,
    HitOptions,
    NeighbourTurn,
    SearchHit,
    SimilarHit,
    collect_groups,
    hit_time,
    text_key,
)
from everturn.retrieval.query import (
    PIECE,
    STOP_WORDS,
    Phrase,
    QueryPhrase,
    SearchQuery,
    build_index_query,
    is_prose,
    parse_query,
    phrase_of,
)
from everturn.retrieval.question import split_literal, understand_query
from everturn.retrieval.scope import EVERYWHERE, SAID, SearchFilters, apply_typed_filters, is_unwanted, limit_to_scope
from everturn.retrieval.typos import meant_filters
from everturn.sessions.lookup import ResultPage
from everturn.sessions.messages import Sources
from everturn.store.contract import IndexCandidates, IndexHit, IndexQuery, Store

if TYPE_CHECKING:  # few have one
    from everturn.retrieval.meaning import MeaningSearch

__all__ = ["EVERYWHERE", "NOTES", "SORTS", "NeighbourTurn", "Results", "SearchFilters", "SearchHit", "search"]

#: Orders of hits: the best first, or the newest of the matching first.
SORTS = ("best", "time")

_WIDENED = {
    "lineage": "no match in the session itself; these are from related sessions",
    "workspace": "no match nearby; these are from the same folder",
    "everything": "no match nearby; these are from all sessions",
}
_CURSOR = (  # compiled when there is one
    rf"({'|'.join(MODES)})\.(session|lineage|workspace|everything)\.([0-9]{{1,15}})\.(-?[0-9]{{1,18}})"
    r"\.([0-9]{1,18})\.(-1|[0-9]{1,9})\.([0-9a-f]{8})"
)
_HitAndRow = tuple[IndexHit, MessageRow | None]
_LOADED = 32  # hits that are looked up together
_PROBED = 200  # messages with all the words that are checked


class Results(ResultPage[SearchHit], frozen=True):
    """A page of hits and the scope they come from."""

    notes: tuple[str, ...] = ()  # the parts of `note`
    scope: str = ""  # session | lineage | workspace | everything; "" without hits
    fits: bool = True  # whether some hits are of the time and the speaker that the question names


class SearchCursor(Struct, frozen=True):
    """The last hit of a page, the time of the first page, and a hash of the query."""

    mode: str
    ring: str
    now: int
    score: int  # in millionths; the time of the hit if hits are ordered by time
    session: int
    seq: int
    mark: str


class PageLayout(Struct, frozen=True):
    """How hits are arranged on a page."""

    limit: int
    sort: str
    collapse: bool


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
    understand: bool = True,
    sort: str = "best",
    collapse: bool = False,
    home: str = "",
    hidden: HiddenHits | None = None,
) -> Results:
    """Return a page of hits, in the order `sort`, one of SORTS. With `collapse`, hits with the same text are one.

    `since:7d` and `yesterday` count from `now`, `workspace:~/x` is in `home`. With `understand`, the time and the speaker
    that a question names are preferred (`retrieval.question`), and a note says so; `literal:yes` in the text turns it off
    too. What `hidden` hides is passed over. Raises UsageError for an empty query, an invalid filter or pattern, or a cursor of another search; ModelError only
    if earlier pages were ordered by meaning.
    """
    if sort not in SORTS:
        raise UsageError(f"unknown order {sort!r}; use one of {', '.join(SORTS)}")
    query, is_literal = split_literal(parse_query(text))
    understand = understand and not is_literal
    if not query.wanted_phrases and not query.regex and (query.pieces or not query.filters):
        raise UsageError(f"there is no word to search for in {text!r}; add at least one word")
    mark = _search_mark(query, filters, sort, understand)
    last = _read_cursor(cursor, mark, _mark_with_model(mark, meaning.name) if meaning else mark) if cursor else None
    now = last.now if last else now
    if last and last.mark == mark:
        meaning = None  # the first page was ordered by words alone, so the others are too
    filters = apply_typed_filters(store, filters, query.filters, now, home)
    understood = understand_query(query, filters, now or None) if understand else None
    request = SearchRequest(store, sources, query, filters, now, meaning, understood, hidden)
    builder = HitBuilder(store, sources, HitOptions(filters.fields, clean or str, request.pattern))
    after = replace(last, mark=mark) if last else SearchCursor("", "", now, 0, 0, 0, mark)
    layout = PageLayout(limit, sort, collapse)
    results = _first_answer(request, builder, layout, after, is_first=last is None)
    note = understood.note(results.fits) if understood else ""
    hints = [NOTES["filter"].format(word, name) for word, name in meant_filters(query)]
    hints += [NOTES["taken back"]] if request.passed_over else []
    hints += [NOTES["prose"]] if is_prose(query) and any(phrase.quoted for phrase in query.wanted_phrases) else []
    return _add_notes(results, [note] if note else [], hints)


def _add_notes(results: Results, before: list[str], behind: list[str]) -> Results:
    notes = (*before, *results.notes, *behind)
    return replace(results, note="; ".join(notes), notes=notes) if before or behind else results


def _first_answer(
    request: SearchRequest, builder: HitBuilder, layout: PageLayout, after: SearchCursor, is_first: bool
) -> Results:
    """Return the results of the first attempt with a hit to show."""
    partly: Results | None = None
    empty_notes: tuple[str, ...] = ()
    for attempt in request.attempts(builder, None if is_first else (after.mode, after.ring)):
        if partly and attempt.mode != "words":
            break
        places = _hit_places(builder, attempt.hits, layout.sort)
        hits = list(places) if is_first else _hits_after(places, after)
        shown = _visible_hits(request, builder, attempt, hits)
        key = (lambda chosen: text_key(builder.texts(*chosen))) if layout.collapse else None
        page = collect_groups(shown, layout.limit, key)
        if page.last is None:
            # Unless the index itself says that there is nothing, an empty page says how far the search went.
            empty_notes = () if request.query.groups and not request.pattern else attempt.notes
            continue
        last = page.last[0]
        cursor = replace(after, score=places[last], session=last.session, seq=last.seq) if page.has_more else None
        results = _make_results(builder, request, attempt, page, cursor)
        # Some of the words are almost anywhere: a wider scope may have a message with all of them, or of the time meant.
        if not is_first or not request.filters.widen or (attempt.fits and NOTES["any"] not in results.notes):
            return results
        partly = partly or results
    return partly or Results([], note="; ".join(empty_notes), notes=empty_notes)


def _visible_hits(
    request: SearchRequest, builder: HitBuilder, attempt: Attempt, hits: Iterable[IndexHit]
) -> Iterator[_HitAndRow]:
    """Yield the hits with their rows, without those that must not be shown."""
    store, unwanted = request.store, attempt.ring.filters.unwanted
    for hit in _loaded_hits(builder, hits):
        row = builder.row(hit)
        session, text = builder.session(hit.session)
        if row is not None and attempt.hides and row.origin == "injected":
            continue
        if row is not None and request.hidden.hides(session, row):
            continue
        if row is not None and row.taken_back and not request.filters.taken_back:
            request.passed_over += 1
            continue
        if not is_unwanted(store, unwanted, session, text, row):
            yield hit, row


def _loaded_hits(builder: HitBuilder, hits: Iterable[IndexHit]) -> Iterator[IndexHit]:
    """Yield hits whose messages and sessions were looked up together, a page at a time."""
    rest = iter(hits)
    while some := list(islice(rest, _LOADED)):
        builder.load(some)
        yield from some


def _hit_places(builder: HitBuilder, hits: list[IndexHit], sort: str) -> dict[IndexHit, int]:
    """Return the hits in their order, each with the number by which a cursor knows its place."""
    if sort != "time":
        return {hit: round(hit.score * 1_000_000) for hit in hits}
    builder.load(hits)
    times = {hit: hit_time(builder.session(hit.session)[0], builder.row(hit)) or 0 for hit in hits}
    newest = sorted(hits, key=lambda hit: (times[hit], hit.session, hit.seq), reverse=True)
    return {hit: times[hit] for hit in newest}


def _hits_after(places: dict[IndexHit, int], last: SearchCursor) -> list[IndexHit]:
    """Return the hits after the last one shown; if that is gone, those with a lower place."""
    hits = list(places)
    for number, hit in enumerate(hits):
        if (hit.session, hit.seq) == (last.session, last.seq):
            return hits[number + 1 :]
    return [hit for hit in hits if places[hit] < last.score]


def _make_results(
    builder: HitBuilder,
    request: SearchRequest,
    attempt: Attempt,
    page: HitGroups[_HitAndRow],
    cursor: SearchCursor | None,
) -> Results:
    builder.words, builder.literally = _marked_words(request.query, attempt.replaced), attempt.mode == "text"
    builder.load_texts(group[0][1] for group in page.groups)
    items = [_build_group(builder, group) for group in page.groups]
    notes = list(attempt.notes)
    shown = {(hit.session, hit.seq) for group in page.groups for hit, _ in group}
    if attempt.mode in ("words", "said") and not _is_all_held(request, builder, attempt, shown):
        notes.append(NOTES["any"])
    if not shown.isdisjoint(attempt.added):
        notes.append(NOTES["added"])
    if request.filters.widen and attempt.ring.name != _first_ring(request.filters):
        notes.append(_WIDENED[attempt.ring.name])
    following = ""
    if cursor is not None:
        mark = _mark_with_model(cursor.mark, attempt.by_meaning) if attempt.by_meaning else cursor.mark
        following = _write_cursor(replace(cursor, mode=attempt.mode, ring=attempt.ring.name, mark=mark))
    return Results(items, following, "; ".join(notes), tuple(notes), attempt.ring.name, attempt.fits)


def _build_group(builder: HitBuilder, group: list[_HitAndRow]) -> SearchHit:
    found = builder.build(*group[0])
    similar = tuple(SimilarHit(builder.session(hit.session)[0], row) for hit, row in group[1:])
    return replace(found, similar=similar) if similar else found


def _first_ring(filters: SearchFilters) -> str:
    if filters.session is not None:
        return "session"
    return "workspace" if filters.workspace else "everything"


# --- the words of a query ---


def _content_words(query: SearchQuery) -> list[QueryPhrase]:
    """Return the phrases without stop words, unless there is nothing else."""
    content = [phrase for phrase in query.wanted_phrases if phrase.quoted or phrase.text.lower() not in STOP_WORDS]
    return content or list(query.wanted_phrases)


def _marked_words(query: SearchQuery, replaced: dict[str, list[str]]) -> list[str]:
    """Return the words to mark: corrected ones too, and last two words written as one."""
    content = _content_words(query)
    marks = []
    for phrase in content:
        marks.append(f"{phrase.text}*" if phrase.prefix else phrase.text)
        marks += [other for word in phrase_of(phrase) for other in replaced.get(word, ())]
    plain = [() if phrase.quoted or phrase.prefix else phrase_of(phrase) for phrase in content]
    return marks + [one[0] + two[0] for one, two in pairwise(plain) if len(one) == len(two) == 1]


def _holders_of_all(found: IndexCandidates, groups: tuple[tuple[Phrase, ...], ...]) -> list[IndexHit]:
    """Return the candidates that are known to hold all the words."""
    numbers = [{n for n, phrase in enumerate(found.phrases) if phrase in group} for group in groups]
    holders = []
    for entry in found.entries:
        held = {n for n, _ in entry.held}
        if all(not held.isdisjoint(group) for group in numbers):
            holders.append(IndexHit(entry.session, entry.seq, 0.0))
    return holders


def _tells_all(found: IndexCandidates, groups: tuple[tuple[Phrase, ...], ...]) -> bool:
    """Whether the candidates are all messages with any of the words, so that the index need not be asked again."""
    counts = dict(zip(found.phrases, found.counts, strict=True))
    # A phrase without a count may be one that was too common to look for.
    return found.complete and all(
        phrase in counts and (len(phrase) == 1 or counts[phrase] > 0) for group in groups for phrase in group
    )


def _is_all_held(request: SearchRequest, builder: HitBuilder, attempt: Attempt, shown: set[tuple[int, int]]) -> bool:
    """Whether a message in scope holds all the words of the query, of words joined by OR one.

    The index is asked, not the page, so that the answer is the same for every page and limit.
    """
    query, found = request.query, attempt.found
    groups = _word_groups(query, attempt.replaced)
    if len(groups) < 2:
        return True
    holders = _holders_of_all(found, groups) if found is not None else []
    if any((hit.session, hit.seq) in shown for hit in holders):
        return True
    if found is not None and _tells_all(found, groups):
        return any(True for _ in _visible_hits(request, builder, attempt, holders[:_PROBED]))
    if any(True for _ in _visible_hits(request, builder, attempt, holders[:_PROBED])):
        return True
    filters = attempt.ring.filters
    origins = [SAID] if attempt.mode == "said" else [filters.origins, SAID] if attempt.hides else [filters.origins]
    for some in origins:
        asked = limit_to_scope(IndexQuery(groups, query.without), replace(filters, origins=some))
        probed = request.store.candidates(asked, _PROBED)
        hits = (IndexHit(entry.session, entry.seq, 0.0) for entry in probed.entries)
        if any(True for _ in _visible_hits(request, builder, attempt, hits)):
            return True
        if probed.complete:  # fewer origins have no more of them
            return False
    return False


def _word_groups(query: SearchQuery, replaced: dict[str, list[str]]) -> tuple[tuple[Phrase, ...], ...]:
    """Return the words as groups of which each must match, by any spelling or correction."""
    groups: dict[int, dict[Phrase, None]] = {}
    for piece in _content_words(query):
        if phrase := phrase_of(piece):
            others = [(other,) for word in phrase for other in replaced.get(word, ())]
            groups.setdefault(piece.group, {}).update(dict.fromkeys([phrase, *_spellings(piece), *others]))
    return tuple(map(tuple, groups.values()))


def _spellings(piece: QueryPhrase) -> list[Phrase]:
    """Return the ways to write a plain word, without parts of it."""
    if not piece.text.isascii():
        return []
    alone = build_index_query(SearchQuery((piece,)))
    return [phrase for phrase, weight in zip(alone.optional, alone.weights, strict=True) if weight > PIECE]


# --- the cursor ---


def _search_mark(query: SearchQuery, filters: SearchFilters, sort: str, understand: bool) -> str:
    """Return a hash that is equal for all pages of a search. Times are left out: `--since 7d` moves between two pages."""
    session = filters.session.id if filters.session else 0
    parts = repr((query, session, replace(filters, session=None, since=None, until=None), understand))
    parts += sort if sort != "best" else ""
    return blake2b(parts.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _mark_with_model(mark: str, model: str) -> str:
    """Return the hash of a search that a model helped to order: its pages fit together only with each other."""
    return blake2b(f"{mark} {model}".encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _write_cursor(last: SearchCursor) -> str:
    return f"{last.mode}.{last.ring}.{last.now}.{last.score}.{last.session}.{last.seq}.{last.mark}"


def _read_cursor(cursor: str, *marks: str) -> SearchCursor:
    found = re.fullmatch(_CURSOR, cursor, re.ASCII)
    if not found or found[7] not in marks:
        raise UsageError(f"the cursor {cursor!r} does not belong to this search; omit it to start again")
    now, score, session, seq = map(int, found.group(3, 4, 5, 6))
    return SearchCursor(found[1], found[2], now, score, session, seq, found[7])
