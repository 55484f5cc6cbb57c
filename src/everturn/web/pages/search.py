"""Search: the real search core as one types, matches by session, what they can be narrowed by."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from everturn.errors import UsageError
from everturn.model.vocabulary import FIELDS
from everturn.retrieval.hits import SearchHit
from everturn.retrieval.scope import SearchFilters
from everturn.retrieval.search import Results, search
from everturn.sessions.lookup import NONE, marks_by_session, short_ids
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import SessionLine, archived_agents, session_line, short_folder

HITS = 40
_FILTERS = ("agent", "workspace", "since", "until")


class HitLine(Struct, frozen=True):
    """One match: where it stands, and a line of it in pieces, each with whether it matches."""

    href: str
    turn: int  # from 1; 0 when the title or summary of the session matches
    field: str
    role: str
    at: int | None
    pieces: list[tuple[str, bool]]


class Group(Struct, frozen=True):
    """The matches in one session."""

    line: SessionLine
    hits: list[HitLine]


class Facet(Struct, frozen=True):
    """Something the matches can be narrowed to, and how many of those shown would stay."""

    name: str
    n: int
    href: str
    on: bool = False


def draw(asked: WebRequest) -> PageReply:
    """What is found, or the page to type into."""
    words = asked.word("q")
    values: dict[str, Any] = {
        "words": words,
        "filters": {name: asked.word(name) for name in _FILTERS},
        "fields": asked.choices("in", FIELDS),
        "all_fields": FIELDS,
        "groups": [],
        "facets": {},
        "notes": (),
        "problem": "",
        "next": "",
        "is_asked": False,
        "agents": [] if asked.is_part else archived_agents(asked, asked.sources),
    }
    if words := words or _filters_query(values["filters"]):
        values |= {"is_asked": True, **_search_answer(asked, words)}
    return PageReply("search", values, f"{asked.line(words, 60)} – Search" if words else "Search")


def _filters_query(filters: dict[str, str]) -> str:
    """What was chosen without a word, in the language of the search: the newest that fit are shown."""
    return " ".join(f'{name}:"{value}"' for name, value in filters.items() if value and '"' not in value)


def filters_of(asked: WebRequest) -> SearchFilters:
    """Where to look. Raises Usage for what means nothing."""
    return SearchFilters(
        agent=asked.word("agent"),
        workspace=asked.word("workspace"),
        since=asked.when("since"),
        until=asked.when("until"),
        fields=asked.choices("in", FIELDS),
    )


def find_hits(asked: WebRequest, words: str, limit: int) -> Results:
    """The search itself."""
    return search(
        asked.store, asked.sources, words, filters_of(asked), limit, asked.word("after"), asked.clean, asked.now,
    )  # fmt: skip


def _search_answer(asked: WebRequest, words: str) -> dict[str, Any]:
    try:
        page = find_hits(asked, words, HITS)
    except UsageError as mistake:  # half a word of a filter, while one is typing
        return {"problem": asked.line(str(mistake), 300)}
    following = _search_address(asked, after=page.next) if page.next else ""
    return {
        "groups": _group_hits(asked, page.items),
        "facets": _facets(asked, page.items),
        "notes": page.notes,
        "next": following,
    }


def _group_hits(asked: WebRequest, items: list[SearchHit]) -> list[Group]:
    shorts = short_ids((found.session for found in items), asked.store)
    marked = marks_by_session(asked.store)
    groups: dict[int, Group] = {}
    for found in items:
        session = found.session
        if session.id not in groups:
            marks = marked.get((session.agent, session.native_id), NONE)
            groups[session.id] = Group(session_line(asked, session, found.text, marks, shorts[session.id]), [])
        groups[session.id].hits.append(_make_hit(asked, found))
    return list(groups.values())


def _make_hit(asked: WebRequest, found: SearchHit) -> HitLine:
    row, where = found.row, f"/s/{found.session.id}"
    pieces, at = list[tuple[str, bool]](), 0
    for start, end in found.spans:
        pieces += [(found.snippet[at:start], False), (found.snippet[start:end], True)]
        at = end
    pieces.append((found.snippet[at:], False))
    shown = [(asked.text(text, " "), marked) for text, marked in pieces if text]
    field = found.field.replace("_", " ")
    if row is None:
        return HitLine(where, 0, field, "", None, shown)
    return HitLine(f"{where}?turn={row.turn + 1}#m{row.seq + 1}", row.turn + 1, field, row.origin, row.at, shown)


# what it can be narrowed by -------------------------------------------------------------------------------------------
def _facets(asked: WebRequest, items: list[SearchHit]) -> dict[str, list[Facet]]:
    """Counted over the matches that are shown."""
    agents = Counter(found.session.agent for found in items)
    folders = Counter(found.text.workspace for found in items if found.text.workspace)
    fields = Counter(found.field for found in items if found.field in FIELDS)
    titles = asked.site.titles
    return {
        "Where it stands": [
            Facet(name.replace("_", " "), n, _search_address(asked, **{"in": name})) for name, n in fields.most_common()
        ],
        "Agent": [
            Facet(asked.line(titles.get(name, name), 40), n, _search_address(asked, agent=name))
            for name, n in agents.most_common(6)
        ],
        "Folder": [
            Facet(short_folder(asked.line(name, 400)), n, _search_address(asked, workspace=name))
            for name, n in folders.most_common(6)
        ],
    }


def _search_address(asked: WebRequest, **changes: str) -> str:
    """The same search with something changed; it begins at its first page unless told otherwise."""
    pairs = [(name, value) for name, value in asked.pairs if name not in ("part", "after", *changes) and value]
    return f"/search?{urlencode([*pairs, *changes.items()], errors='replace')}"
