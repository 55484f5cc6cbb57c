"""Search: runs while the user types; hits grouped by session, with facets to narrow them."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from everturn.errors import UsageError
from everturn.model.vocabulary import FIELDS
from everturn.retrieval.hits import SearchHit, SimilarHit
from everturn.retrieval.scope import SearchFilters
from everturn.retrieval.search import SORTS, Results, search
from everturn.sessions.lookup import SessionRow
from everturn.text.folders import resolve_folder
from everturn.text.printable import short_folder
from everturn.text.times import iso
from everturn.web.pages.session import message_address
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import archived_agents, excerpt_pieces, session_rows

HITS = 40
_FILTERS = ("agent", "workspace", "since", "until")


class HitLine(Struct, frozen=True):
    """A search hit: its address, and its excerpt in parts, each with whether it matches."""

    href: str
    turn: int  # from 1; 0 when the title or summary of the session matches
    field: str
    role: str
    at: int | None
    pieces: list[tuple[str, bool]]
    similar: list[tuple[str, str]] = []  # addresses and names of hits with the same text


class Group(Struct, frozen=True):
    row: SessionRow
    hits: list[HitLine]


class Facet(Struct, frozen=True):
    """A filter to narrow the hits, and how many of those shown would stay."""

    name: str
    n: int
    href: str
    on: bool = False


def draw(request: WebRequest) -> PageReply:
    """Draw the hits, or the empty search page."""
    words = request.word("q")
    values: dict[str, Any] = {
        "words": words,
        "filters": {name: request.word(name) for name in _FILTERS},
        "fields": request.choices("in", FIELDS),
        "all_fields": FIELDS,
        "sort": request.choice("sort", SORTS) or SORTS[0],
        "sorts": {"best": "best first", "time": "newest first"},
        "groups": [],
        "facets": {},
        "notes": (),
        "problem": "",
        "next": "",
        "is_asked": False,
        "agents": [] if request.is_part else archived_agents(request, request.sources),
    }
    if words := words or _filters_query(values["filters"]):
        values |= {"is_asked": True, **_search_answer(request, words)}
    return PageReply("search", values, f"{request.line(words, 60)} – Search" if words else "Search")


def _filters_query(filters: dict[str, str]) -> str:
    """Return the filters as a query, for a search without words: it shows the newest hits."""
    return " ".join(f'{name}:"{value}"' for name, value in filters.items() if value and '"' not in value)


def filters_of(request: WebRequest) -> SearchFilters:
    """Return the filters of the request. Raises UsageError."""
    return SearchFilters(
        agent=request.word("agent"),
        workspace=resolve_folder(request.word("workspace")),
        since=request.when("since"),
        until=request.when("until"),
        fields=request.choices("in", FIELDS),
    )


def find_hits(request: WebRequest, words: str, limit: int) -> Results:
    return search(
        request.store, request.sources, words, filters_of(request), limit, request.word("after"), request.clean, request.now,
        sort=request.choice("sort", SORTS) or SORTS[0], collapse=request.word("collapse") != "no",
    )  # fmt: skip


def _search_answer(request: WebRequest, words: str) -> dict[str, Any]:
    try:
        page = find_hits(request, words, HITS)
    except UsageError as mistake:  # a filter that is not yet typed to its end
        return {"problem": request.line(str(mistake), 300)}
    following = _search_address(request, after=page.next) if page.next else ""
    sessions = {found.session.id: (found.session, found.text) for found in page.items}
    groups = {row.number: Group(row, []) for row in session_rows(request, list(sessions.values()))}
    for found in page.items:
        groups[found.session.id].hits.append(_make_hit(request, found))
    return {
        "groups": list(groups.values()),
        "facets": _facets(request, page.items),
        "notes": page.notes,
        "next": following,
    }


def _make_hit(request: WebRequest, found: SearchHit) -> HitLine:
    row = found.row
    field = found.field.replace("_", " ")
    similar = [(_hit_address(one), _hit_name(one)) for one in found.similar]
    turn, role = (0, "") if row is None else (row.turn + 1, row.origin)
    return HitLine(_hit_address(found), turn, field, role, found.at, excerpt_pieces(request, found), similar)


def _hit_address(found: SearchHit | SimilarHit) -> str:
    row, number = found.row, found.session.id
    return f"/s/{number}" if row is None else message_address(number, row.turn + 1, row.seq + 1)


def _hit_name(found: SimilarHit) -> str:
    turn = "title" if found.row is None else f"turn {found.row.turn + 1}"
    return f"{turn}, {iso(found.at)[:10]}" if found.at is not None else turn


# facets ---------------------------------------------------------------------------------------------------------------
def _facets(request: WebRequest, items: list[SearchHit]) -> dict[str, list[Facet]]:
    """Return the facets, counted over the hits shown."""
    agents = Counter(found.session.agent for found in items)
    folders = Counter(found.text.workspace for found in items if found.text.workspace)
    fields = Counter(found.field for found in items if found.field in FIELDS)
    titles = request.site.titles
    return {
        "Found in": [
            Facet(name.replace("_", " "), n, _search_address(request, **{"in": name}))
            for name, n in fields.most_common()
        ],
        "Agent": [
            Facet(request.line(titles.get(name, name), 40), n, _search_address(request, agent=name))
            for name, n in agents.most_common(6)
        ],
        "Folder": [
            Facet(short_folder(request.line(name, 400)), n, _search_address(request, workspace=name))
            for name, n in folders.most_common(6)
        ],
    }


def _search_address(request: WebRequest, **changes: str) -> str:
    """Return the address of the same search with changes, from its first page unless `after` is given."""
    pairs = [(name, value) for name, value in request.pairs if name not in ("part", "after", *changes) and value]
    return f"/search?{urlencode([*pairs, *changes.items()], errors='replace')}"
