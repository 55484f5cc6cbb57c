"""The action `search` of `conversation_recall`: the turns that answer, best first.

From within a session, the session, its lineage, its workspace and everything else are searched together; what is near counts
more (`recall.asking_session`), and the answer says where each turn is. What the asker sees already ranks behind. Echoes of a search
(`recall.echo`) rank behind all else, whatever their score; the turn that asks and recall calls are left out, and so is text
that the client inserted. Hits are grouped by turn; `recall.quotation` writes them into the budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from everturn.model.archive import Session
from everturn.recall.answer import AnswerDraft, RecallRequest
from everturn.recall.asking_session import IN_VIEW, NEARNESS, AskingSession
from everturn.recall.echo import EchoFinder, HiddenEchoes
from everturn.recall.quotation import QuoteOptions, QuoteParts, SearchQuotation
from everturn.recall.turn_quote import TurnMatch
from everturn.recall.windows import QueryWords
from everturn.retrieval.attempts import HiddenHits
from everturn.retrieval.hits import SearchHit
from everturn.retrieval.query import STOP_WORDS, SearchQuery, parse_query
from everturn.retrieval.question import understand_query
from everturn.retrieval.scope import SearchFilters, family_ids
from everturn.retrieval.search import Results, search
from everturn.sessions.messages import has_words
from everturn.text.printable import one_line
from everturn.text.terms import terms

#: Hits fetched of everything, and of the lineage and of the workspace.
_FETCHED, _FETCHED_NEAR = 24, 12
_PER_TURN = 2  # hits fetched for each turn that may be shown
_FEW = 5  # hits of the workspace, below which it is searched by itself
#: Factors of a score: for the words as they were typed, and for tool input, tool output and thoughts.
_EXACT, _NOT_SAID = 1.3, 0.9
#: The same for a message that states a choice, if a decision is asked for.
_DECIDED = 1.4
_SAID = ("prompt", "answer", "summary", "title")
_MOST = 50  # highest limit
_LONG = 300  # characters of a query that is not repeated


class SearchAction(Struct, frozen=True):
    """A search as requested."""

    words: str
    query: SearchQuery
    limit: int
    injected: bool  # also text that the client inserted


class FoundTurns(Struct, frozen=True):
    """The matching turns, best first."""

    turns: list[TurnMatch]
    words: QueryWords
    is_more: bool = False
    note: str = ""
    hidden: bool = False  # whether there was something that is never shown
    asking: int | None = None  # the turn of the session that asks
    finder: EchoFinder | None = None


def answer_search(request: RecallRequest, words: str, limit: int) -> AnswerDraft:
    if not words:
        return AnswerDraft("search: give query, the words to look for.", status="mistake")
    query = parse_query(words)
    action = SearchAction(words, query, limit, _asks_for_injected(query))
    found = find_turns(request, action)
    if not found.turns:
        return AnswerDraft(_nothing_found_text(request, words, found.hidden), status="nothing")
    is_echo = found.finder.is_echo_turn if found.finder else None
    options = QuoteOptions(limit, action.injected, found.asking, is_echo)
    quotation = SearchQuotation(request, found.turns, found.words, options)
    parts = _AnswerParts(request, action, found, quotation)
    return AnswerDraft("", write=lambda budget: quotation.write(QuoteParts(parts.lead, parts.hints), budget))


def find_turns(request: RecallRequest, action: SearchAction) -> FoundTurns:
    """Search all scopes and return the turns in the order they are shown."""
    asker = None
    if request.session is not None and request.is_own:
        asker = AskingSession(request.store, request.session, request.turns_in_view)
    finder = EchoFinder(request.store, request.sources, " ".join(phrase.text for phrase in action.query.wanted_phrases))
    order = _TurnOrder(request, action, asker, finder)
    hidden = HiddenEchoes(finder, asker, action.injected)
    page = _search_scope(request, action, _widest_scope(request), hidden)
    turns = order.turns([page, *_near_pages(request, action, asker, page, hidden)])
    if len(turns) < action.limit and hidden.echoes:
        echoes = HiddenEchoes(finder, asker, action.injected, only_echoes=True)
        turns += order.echoes(_search_scope(request, action, _widest_scope(request), echoes))
    return FoundTurns(
        turns, order.words, bool(page.next), page.note, bool(hidden.others), asker.open_turn if asker else None, finder
    )


# --- scopes ---


def _widest_scope(request: RecallRequest) -> SearchFilters:
    """Return everything, or for a session that was named, that one with its lineage."""
    if request.session is None or request.is_own:
        return SearchFilters()
    return SearchFilters(within=family_ids(request.store, request.session))


def _near_pages(
    request: RecallRequest, action: SearchAction, asker: AskingSession | None, page: Results, hidden: HiddenHits
) -> Iterator[Results]:
    """Yield the hits nearby that did not get onto the page."""
    if asker is None or not page.next:
        return
    family = SearchFilters(within=tuple(sorted(asker.family)))
    yield _search_scope(request, action, family, hidden, _FETCHED_NEAR)
    here = sum(asker.ring(hit.session, hit.text) == "workspace" for hit in page.items)
    if asker.workspace and here < _FEW:
        yield _search_scope(request, action, SearchFilters(workspace=asker.workspace), hidden, _FETCHED_NEAR)


def _search_scope(
    request: RecallRequest, action: SearchAction, filters: SearchFilters, hidden: HiddenHits, limit: int = 0
) -> Results:
    # Nothing of these hits is shown, so nothing has to be masked in them.
    return search(
        request.store, request.sources, action.words, filters, limit or max(_FETCHED, action.limit * _PER_TURN),
        now=request.now, meaning=request.meaning, hidden=hidden,
    )  # fmt: skip


def _asks_for_injected(query: SearchQuery) -> bool:
    return any(one.name in ("role", "field") and one.value in ("injected", "meta") for one in query.filters)


# --- order ---


class _TurnGroup:
    """The hits of one turn."""

    def __init__(self, session: Session, turn: int) -> None:
        self.session, self.turn = session, turn
        self.hits: list[tuple[float, SearchHit]] = []
        self.is_seen = True  # all of them are in the view of the asker

    @property
    def score(self) -> float:
        return max(score for score, _ in self.hits)

    def match(self, ring: str, is_echo: bool) -> TurnMatch:
        ordered = sorted(self.hits, key=lambda pair: -pair[0])
        rows = [hit.row for _, hit in ordered if hit.row is not None]
        scores = tuple(score for score, _ in ordered)
        return TurnMatch(
            self.session, ordered[0][1].text, self.turn, tuple(rows), scores, ring, is_echo or self.is_seen
        )


class _TurnOrder:
    """Orders the turns of hits, the best first."""

    def __init__(
        self, request: RecallRequest, action: SearchAction, asker: AskingSession | None, finder: EchoFinder
    ) -> None:
        self._request, self._action, self._asker, self._finder = request, action, asker, finder
        self.words = QueryWords([], {})
        self._intent = understand_query(action.query, SearchFilters(), request.now or None).meant.intent

    def turns(self, pages: list[Results]) -> list[TurnMatch]:
        """Return the turns of hits that are no echoes."""
        found = [hit for page in reversed(pages) for hit in page.items]
        hits = {(hit.session.id, hit.row.seq if hit.row else -1): hit for hit in found}
        shown = [hit for hit in hits.values() if not self._is_left_out(hit)]
        self.words = _query_words(self._request, self._action, shown)
        groups: dict[tuple[int, int], _TurnGroup] = {}
        for hit in shown:
            turn = hit.row.turn if hit.row else -1
            group = groups.setdefault((hit.session.id, turn), _TurnGroup(hit.session, turn))
            group.hits.append((self._score(hit), hit))
            group.is_seen = group.is_seen and self._sees(hit)
        return self._matches(groups.values())

    def echoes(self, page: Results) -> list[TurnMatch]:
        """Return the turns of hits that only ask or repeat."""
        groups: dict[tuple[int, int], _TurnGroup] = {}
        for hit in page.items:
            if hit.row is not None:
                key = hit.session.id, hit.row.turn
                groups.setdefault(key, _TurnGroup(hit.session, hit.row.turn)).hits.append((hit.score, hit))
        return self._matches(groups.values(), is_echo=True)

    def _matches(self, groups: Iterable[_TurnGroup], is_echo: bool = False) -> list[TurnMatch]:
        ordered = sorted(groups, key=lambda one: (-one.score, -one.session.id, one.turn))
        return [one.match(self._ring(one.hits[0][1]), is_echo) for one in ordered]

    def _is_left_out(self, hit: SearchHit) -> bool:
        """Whether a hit is not shown: text that the client inserted, unless requested, or the title of a recall."""
        if hit.row is None:
            return self._finder.is_recall_session(hit.session, hit.text)
        return hit.field == "meta" and not self._action.injected

    def _score(self, hit: SearchHit) -> float:
        score = _score_hit(self._action, hit) * NEARNESS[self._ring(hit)]
        if self._sees(hit):
            score *= IN_VIEW
        if self._intent == "decision" and hit.field in _SAID and _states_choice(hit.snippet):
            score *= _DECIDED
        is_near = self._asker is not None and hit.session.id in self._asker.family
        if hit.session.id in self._finder.recalled and not is_near:
            score *= _held_share(self.words, hit)
        return score

    def _ring(self, hit: SearchHit) -> str:
        return self._asker.ring(hit.session, hit.text) if self._asker else "everything"

    def _sees(self, hit: SearchHit) -> bool:
        return self._asker is not None and hit.row is not None and self._asker.sees(hit.session, hit.row)


def _held_share(words: QueryWords, hit: SearchHit) -> float:
    """Return the share of the words that a hit itself holds.

    Ranking raises every message of a session that holds the words somewhere. A session with a recall holds them because they
    were asked for there, so its messages count by their own words only. What was recalled around the session that asks is not
    ranked in the first place.
    """
    total = words.weigh(range(len(words.words)))
    return words.weigh(words.find_words(hit.snippet)) / total if total else 1.0


def _states_choice(text: str) -> bool:
    from everturn.derive.choices import states_choice  # many patterns, which few questions need

    return states_choice(text)


def _score_hit(action: SearchAction, hit: SearchHit) -> float:
    score = hit.score if hit.field in _SAID else hit.score * _NOT_SAID
    plain = " ".join(phrase.text for phrase in action.query.wanted_phrases).casefold()
    is_exact = " " in plain and plain in " ".join(hit.snippet.split()).casefold()
    return score * _EXACT if is_exact else score


def _query_words(request: RecallRequest, action: SearchAction, hits: list[SearchHit]) -> QueryWords:
    """Return the words to look for in the text: those of the query, and those that were found in their place."""
    wanted = [
        phrase for phrase in action.query.wanted_phrases if phrase.quoted or phrase.text.lower() not in STOP_WORDS
    ]
    plain = [term for phrase in wanted or action.query.wanted_phrases for term in (terms(phrase.text) or [phrase.text])]
    counts = request.store.count_words(list(dict.fromkeys(plain)))
    words = QueryWords(plain, counts)
    marked = (hit.snippet[start:end] for hit in hits for start, end in hit.spans if end > start)
    others = [text.lower() for text in dict.fromkeys(marked) if not words.find_words(text)]
    return QueryWords([*plain, *others], counts) if others else words


# --- lead and hints ---


class _AnswerParts:
    """Our own lines around the quotation."""

    def __init__(
        self, request: RecallRequest, action: SearchAction, found: FoundTurns, quotation: SearchQuotation
    ) -> None:
        self._request, self._action, self._found, self._quotation = request, action, found, quotation

    def lead(self, shown: list[TurnMatch]) -> str:
        n = min(len(self._found.turns), self._action.limit)
        is_more = self._found.is_more or len(self._found.turns) > self._action.limit
        count = f"{n} matching turn{'' if n == 1 else 's'}{' of more' if is_more else ''}"
        note = f"\nNote: {self._found.note}." if self._found.note else ""
        return f"{count} in {self._where(shown)}, best first:{note}"

    def _where(self, shown: list[TurnMatch]) -> str:
        request = self._request
        if request.session is not None and not request.is_own:
            return f"session {request.short} and its lineage"
        if request.session is None:
            return "the whole archive"
        rings = {match.ring for match in shown}
        names = {"session": "this session", "lineage": "the sessions that this session came from or started",
                 "workspace": "other sessions of the same workspace", "everything": "the whole archive"}  # fmt: skip
        return ", ".join(name for ring, name in names.items() if ring in rings) or "the whole archive"

    def hints(self, shown: list[TurnMatch], left_out: int) -> list[str]:
        request, action = self._request, self._action
        best = shown[0]
        turn = max(best.turn, 0) + 1
        is_own = request.session is not None and request.is_own and best.session.id == request.session.id
        query = {} if is_own else {"query": f"session:{self._quotation.short(best)}"}
        whole = request.spell({"action": "range", "start_turn": turn, "end_turn": turn, **query})
        hints = [f"these are excerpts; a whole turn, here the best one: {whole}"]
        if self._found.is_more or len(self._found.turns) > action.limit:
            hints.append(self._more_hint())
        return hints

    def _more_hint(self) -> str:
        request, action = self._request, self._action
        if action.limit >= _MOST or len(action.words) > _LONG:
            return "more matches: use rarer words, or filters such as since:7d, tool:NAME, turn:10-20, role:user"
        named = f"session:{request.short} {action.words}" if request.session and not request.is_own else action.words
        more = {"action": "search", "query": named, "limit": min(action.limit * 2, _MOST)}
        return f"more matches: {request.spell(more)}"


def _nothing_found_text(request: RecallRequest, words: str, hidden: bool) -> str:
    where = f"session {request.short}" if request.session and not request.is_own else "the archive"
    if request.session and not has_words(request.session):
        where += f" (the words of this session were not kept: mode {request.session.mode})"
    but = ", but for what clients put in by themselves (role:injected finds that) and earlier recalls" if hidden else ""
    return (
        f"Nothing in {where} matches {one_line(words, 80)!r}{but}. Try fewer or other words, or a beginning like pars*."
    )
