"""Where words stand in the archive.

`search` takes what a person types (`derive.query`) and gives a page of matches, best first: those that hold more of the
words, and hold them nearer to each other, above the others. What clients put in by themselves is left out while there
is anything else. When the index has no answer the newest text is looked through for the characters themselves, as far
as the work is bounded; a /pattern/ is looked for in what the index proposes and in the newest text. Whatever was done
beyond the plain request, the page says in its notes. Filters without words list the newest that pass them. With a `meaning` (`recall.meaning`) the best by words are ordered by
that too; one that cannot be asked is a note.

A cursor names the last match that was shown and the time of the first page, not a count: the next page goes on behind
it although new messages arrive.
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
    """A page of matches and where they come from."""

    notes: tuple[str, ...] = ()  # what `note` says, one by one
    scope: str = ""  # session | lineage | workspace | everything; "" when nothing was found


class SearchCursor(Struct, frozen=True):
    """The last match of a page, the time of the first one, and the request they belong to."""

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
    """A page of matches, best first.

    `now` is what `since:7d` counts from. Raises Usage when there is nothing to look for, when a filter or a pattern means
    nothing, or when the cursor is another's; ModelError only when earlier pages were ordered by meaning.
    """
    asked = parse_query(text)
    if not asked.wanted and not asked.regex and (asked.pieces or not asked.filters):
        raise UsageError(f"there is no word to look for in {text!r}; give at least one word to find")
    mark = _search_mark(asked, filters)
    last = _read_cursor(cursor, mark, _mark_with_model(mark, meaning.name) if meaning else mark) if cursor else None
    now = last.now if last else now
    if last and last.mark == mark:
        meaning = None  # the first page was ordered by words alone, and so are the others
    filters = apply_typed_filters(store, filters, asked.filters, now)
    request = SearchRequest(store, sources, asked, filters, now, meaning)
    showing = HitBuilder(store, sources, HitOptions(filters.fields, clean or str, request.pattern))
    place = replace(last, mark=mark) if last else SearchCursor("", "", now, 0, 0, 0, mark)
    return _first_answer(request, showing, limit, place, is_first=last is None)


def _first_answer(
    request: SearchRequest, showing: HitBuilder, limit: int, place: SearchCursor, is_first: bool
) -> Results:
    """The first attempt that has something to show."""
    partly: Results | None = None
    looked: tuple[str, ...] = ()
    for attempt in request.attempts(showing, None if is_first else (place.mode, place.ring)):
        if partly and attempt.mode != "words":
            break
        hits = attempt.hits if is_first else _hits_after(attempt.hits, place)
        chosen = _choose_hits(request.store, showing, attempt, hits, limit + 1)
        if not chosen:
            # Where the index is not the one to say that there is nothing, an answer of nothing says how far it looked.
            looked = () if request.asked.groups and not request.pattern else attempt.notes
            continue
        results = _make_results(showing, request, attempt, chosen[:limit], place, len(chosen) > limit)
        # Some of the words stand almost anywhere: farther away there may be what holds all of them.
        if not is_first or not request.filters.widen or NOTES["any"] not in results.notes:
            return results
        partly = partly or results
    return partly or Results([], note="; ".join(looked), notes=looked)


def _choose_hits(
    store: Store, showing: HitBuilder, attempt: Attempt, hits: list[IndexHit], most: int
) -> list[_HitAndRow]:
    """The first of the hits, without those that are not to be shown."""
    found: list[_HitAndRow] = []
    unwanted = attempt.ring.filters.unwanted
    for hit in hits:
        row = next(store.messages(hit.session, hit.seq, hit.seq), None) if hit.seq >= 0 else None
        if attempt.hides and row is not None and row.origin == "injected":
            continue
        if is_unwanted(store, unwanted, *showing.session(hit.session), row):
            continue
        found.append((hit, row))
        if len(found) == most:
            break
    return found


def _hits_after(hits: list[IndexHit], last: SearchCursor) -> list[IndexHit]:
    """The hits after the last one that was shown; when it is gone, those that are worth less."""
    for number, hit in enumerate(hits):
        if (hit.session, hit.seq) == (last.session, last.seq):
            return hits[number + 1 :]
    return [hit for hit in hits if _score_millionths(hit.score) < last.score]


def _make_results(
    showing: HitBuilder,
    request: SearchRequest,
    attempt: Attempt,
    chosen: list[_HitAndRow],
    place: SearchCursor,
    is_more: bool,
) -> Results:
    marks = _marked_words(request.asked, attempt.replaced)
    showing.words, showing.held = [word for word, _ in marks], []
    items = [showing.found(hit, row) for hit, row in chosen]
    notes = list(attempt.notes)
    if attempt.mode in ("words", "said") and not _holds_all([group for _, group in marks], showing.held):
        notes.append(NOTES["any"])
    if request.filters.widen and attempt.ring.name != _first_ring(request.filters):
        notes.append(_WIDENED[attempt.ring.name])
    hit = chosen[-1][0]
    mark = _mark_with_model(place.mark, attempt.by_meaning) if attempt.by_meaning else place.mark
    last = SearchCursor(
        attempt.mode, attempt.ring.name, place.now, _score_millionths(hit.score), hit.session, hit.seq, mark
    )
    return Results(items, _write_cursor(last) if is_more else "", "; ".join(notes), tuple(notes), attempt.ring.name)


def _first_ring(filters: SearchFilters) -> str:
    if filters.session is not None:
        return "session"
    return "workspace" if filters.workspace else "everything"


def _marked_words(asked: SearchQuery, replaced: dict[str, list[str]]) -> list[tuple[str, int]]:
    """What is marked, and which of it is joined by OR: the words without those of grammar, and what they were taken for."""
    meant = [piece for piece in asked.wanted if piece.quoted or piece.text.lower() not in STOP_WORDS]
    found = []
    for piece in meant or asked.wanted:
        found.append((f"{piece.text}*" if piece.prefix else piece.text, piece.group))
        found += [(other, piece.group) for word in phrase_of(piece) for other in replaced.get(word, ())]
    return found


def _holds_all(groups: list[int], held: list[set[int]]) -> bool:
    """Whether one of the messages shown holds all the words, or one of each that are joined by OR."""
    return len(set(groups)) < 2 or any({groups[number] for number in one} == set(groups) for one in held)


# the cursor -----------------------------------------------------------------------------------------------------------
def _search_mark(asked: SearchQuery, filters: SearchFilters) -> str:
    """The same for all pages of a search. `--since 7d` moves between two pages: times are not part of it."""
    session = filters.session.id if filters.session else 0
    told = repr((asked, session, replace(filters, session=None, since=None, until=None)))
    return blake2b(told.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _mark_with_model(mark: str, model: str) -> str:
    """The mark of the same search when a model has a part in the order: its pages fit together only so."""
    return blake2b(f"{mark} {model}".encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _write_cursor(place: SearchCursor) -> str:
    return f"{place.mode}.{place.ring}.{place.now}.{place.score}.{place.session}.{place.seq}.{place.mark}"


def _read_cursor(cursor: str, *marks: str) -> SearchCursor:
    found = re.fullmatch(_CURSOR, cursor, re.ASCII)
    if not found or found[7] not in marks:
        raise UsageError(f"the cursor {cursor!r} does not belong to this search; leave it out to start again")
    now, score, session, seq = map(int, found.group(3, 4, 5, 6))
    return SearchCursor(found[1], found[2], now, score, session, seq, found[7])


def _score_millionths(score: float) -> int:
    return round(score * 1_000_000)
