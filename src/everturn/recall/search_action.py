"""The action `search` of `conversation_recall`: hits with the messages around them.

From within a session, the session and its lineage are searched first, then its workspace, then everything; the answer
says which. Hits with the exact words come first, then other prompts and answers, then hits only in tool input, tool
output or thoughts. Each hit is shown with the prompt and the last answer of its turn and of the turns beside it. Only the
messages that are shown are read. Text that the client inserted is left out, and so are earlier recalls: they contain the
words because they were queries.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import MessageRow, Session, SessionText, Turn
from everturn.recall.answer import AnswerDraft, AnswerEntry, RecallRequest, cut_notice, entries_of, handle, session_line
from everturn.retrieval.hits import SearchHit
from everturn.retrieval.query import SearchQuery, parse_query
from everturn.retrieval.scope import SearchFilters, scope_rings
from everturn.retrieval.search import search
from everturn.sessions.lookup import short_ids
from everturn.sessions.messages import TurnView, has_words
from everturn.text.printable import one_line
from everturn.text.times import iso

#: Characters of a hit, and of the prompts and answers around it.
_MATCH, _SAME_TURN, _NEIGHBOUR_TURN = 1200, 400, 240
_ANSWER_MESSAGES = 8  # read to find the last answer of a turn


class MatchedTurn(Struct, frozen=True):
    """A turn with hits; `turn` is -1 if the title of the session matches. `rank` 0 is the best."""

    session: Session
    text: SessionText
    turn: int
    found: tuple[SearchHit, ...]
    rank: int


def match_entries(
    request: RecallRequest, session: Session, turns_found: list[MatchedTurn], quiet: bool
) -> Iterator[tuple[AnswerEntry, int]]:
    """Yield the entries of the hits in one session, each with its rank. Neighbouring hits are shown together."""
    by_turn = {max(matched.turn, 0): matched for matched in reversed(turns_found)}
    shown: set[int] = set()
    for matched in turns_found:
        start = max(matched.turn, 0)
        if start in shown:
            continue
        first, last = _last_touching(by_turn, start, -1), _last_touching(by_turn, start, 1)
        for turn in request.store.turns(session.id, max(first - 1, 0), last + 1):
            if turn.idx in shown:
                continue
            shown.add(turn.idx)
            matching = by_turn.get(turn.idx)
            for entry in _PartlyReadTurn(request, session, turn, quiet).entries(matching):
                yield entry, (matching or matched).rank


def _last_touching(turns: dict[int, MatchedTurn], at: int, step: int) -> int:
    """Return the last turn with hits, from `at` on, whose neighbours adjoin."""
    while at + 2 * step in turns or at + step in turns:
        at += 2 * step if at + 2 * step in turns else step
    return at


class _PartlyReadTurn:
    """A turn of which only some messages are read."""

    def __init__(self, request: RecallRequest, session: Session, turn: Turn, quiet: bool) -> None:
        self._asking = request
        self._session = session
        self._turn = turn
        self._quiet = quiet
        self._rows = list(request.store.messages(session.id, turn.first_seq, turn.last_seq))
        self._calls = request.store.calls(session.id, turn.idx)

    def entries(self, matched: MatchedTurn | None) -> list[AnswerEntry]:
        size = _SAME_TURN if matched else _NEIGHBOUR_TURN
        found = {(one.seq, one.head): _cut_around(one, [], size) for one in (*self._prompt(), *self._answer())}
        for match in matched.found if matched else ():
            found_words = (match.snippet[start:end].casefold() for start, end in match.spans if end > start)
            needles = list(dict.fromkeys(found_words))
            for entry in self._matching(match.row, needles):
                found[entry.seq, entry.head] = replace(_cut_around(entry, needles, _MATCH), is_match=True)
        return [found[key] for key in sorted(found, key=lambda key: key[0])]

    def _prompt(self) -> list[AnswerEntry]:
        spoken = [row for row in self._rows if row.origin in ("human", "agent") and row.role == "user"]
        return self._read(spoken[:1])[:1]

    def _answer(self) -> list[AnswerEntry]:
        spoken = [row for row in reversed(self._rows) if row.origin == "model"]
        for row in spoken[:_ANSWER_MESSAGES]:
            answers = [entry for entry in self._read([row]) if not entry.is_output]
            if answers:
                return answers[-1:]
        return []

    def _matching(self, row: MessageRow | None, needles: list[str]) -> list[AnswerEntry]:
        """Return the matching entries of a message; a result is shown with its call."""
        if row is None:
            return []
        callers = {call.seq for call in self._calls if call.result_seq == row.seq}
        entries = self._read([one for one in self._rows if one.seq in callers] or [row])
        return [entry for entry in entries if _has_needle(entry, needles)] or entries[:1]

    def _read(self, rows: list[MessageRow]) -> list[AnswerEntry]:
        view = TurnView(self._turn, [], self._calls, rows)
        request = self._asking
        entries = entries_of(request.store, request.sources, self._session, view, request.clean, quiet=self._quiet)
        return [entry for entry in entries if entry.head != "problem:"] if rows else []


def _has_needle(entry: AnswerEntry, needles: list[str]) -> bool:
    text = f"{entry.head} {entry.text}".casefold()
    return any(needle in text for needle in needles)


def _cut_around(entry: AnswerEntry, needles: list[str], size: int) -> AnswerEntry:
    """Cut a long text to the lines around the words, or to its beginning."""
    text = entry.text
    if len(text) <= size + size // 4:
        return entry
    at = _densest_position(text.casefold(), needles, size)
    start = max(0, min(at - size // 3, len(text) - size))
    line_start = text.rfind("\n", max(0, start - 200), start) + 1 if start else 0
    start = line_start or start
    end = text.rfind("\n", start + size // 2, start + size)
    part = text[start : end if end > 0 else start + size].strip("\n")
    before = "… " if start else ""
    return replace(entry, text=f"{before}{part}\n{cut_notice(entry.lines)}", is_cut=True)


def _densest_position(text: str, needles: list[str], size: int) -> int:
    """Return the offset where most of the words are together."""
    spots = sorted(spot for needle in needles for spot in _find_spots(text, needle))
    best, most = 0, 0
    for number, (at, _) in enumerate(spots):
        near = {needle for spot, needle in spots[number : number + 32] if spot - at < size // 2}
        if len(near) > most:
            best, most = at, len(near)
    return best


def _find_spots(text: str, needle: str) -> Iterator[tuple[int, str]]:
    at = text.find(needle)
    for _ in range(50):
        if at < 0:
            return
        yield at, needle
        at = text.find(needle, at + len(needle))


# --- the search ---

_FETCHED = 3  # hits fetched for each turn: several may be in one turn
_FEWEST = 30  # hits fetched in any case, so that a smaller limit gives the first of a larger one
_SAID = ("prompt", "answer", "summary", "title")
_NAMED = 10  # turns named above the quotation
_MOST = 50  # highest limit
_LONG = 300  # characters of a query that is not repeated


def answer_search(request: RecallRequest, words: str, limit: int) -> AnswerDraft:
    if not words:
        return AnswerDraft("search: give query, the words to look for.", status="mistake")
    query = parse_query(words)
    plain = " ".join(phrase.text for phrase in query.wanted).casefold()
    action = _SearchAction(words, plain, limit, _asks_for_injected(query))
    hidden = False
    # A named session is searched with its lineage; the current one widens to further rings.
    scope = SearchFilters(session=request.session, lineage=request.session is not None, widen=request.is_own)
    for ring in scope_rings(request.store, scope):
        filters = replace(ring.filters, widen=False, lineage=False)
        page = search(
            request.store, request.sources, words, filters, max(limit * _FETCHED, _FEWEST), "", request.clean, request.now,
            request.meaning,
        )  # fmt: skip
        turns_found = _matched_turns(request, action, page.items)
        hidden = hidden or bool(page.items and not turns_found)
        if turns_found:
            where = _scope_text(request, ring.name)
            return _draft_answer(request, action, where, turns_found, bool(page.next), page.note)
    return AnswerDraft(_nothing_found_text(request, words, hidden), status="nothing")


class _SearchAction(Struct, frozen=True):
    words: str
    plain: str  # the words alone, in lower case
    limit: int
    injected: bool  # also text that the client inserted


# --- scope ---


def _scope_text(request: RecallRequest, ring: str) -> str:
    if request.session is None:
        return "the whole archive"
    if not request.is_own:
        return f"session {request.short} and its lineage"
    nearer = " (nothing in this session)"
    return {
        "session": "this session",
        "lineage": f"the sessions that this session came from or started{nearer}",
        "workspace": f"other sessions of the same workspace{nearer}",
    }.get(ring, f"the whole archive{nearer}")


def _asks_for_injected(query: SearchQuery) -> bool:
    return any(one.name in ("role", "field") and one.value in ("injected", "meta") for one in query.filters)


def _matched_turns(request: RecallRequest, action: _SearchAction, found: list[SearchHit]) -> list[MatchedTurn]:
    shown = [one for one in found if action.injected or not _is_injected(one)]
    ranked = sorted(
        (one for one in shown if not _is_recall(request, one)), key=lambda one: _match_tier(action.plain, one)
    )
    turns: dict[tuple[int, int], list[SearchHit]] = {}
    for one in ranked:
        turns.setdefault((one.session.id, one.row.turn if one.row else -1), []).append(one)
    return [
        MatchedTurn(group[0].session, group[0].text, turn, tuple(group), rank)
        for rank, ((_, turn), group) in enumerate(turns.items())
    ]


def _match_tier(plain: str, found: SearchHit) -> int:
    """Return 0 for the exact words, 1 for a hit in prompts and answers, 2 for tool input, tool output and thoughts."""
    if plain and plain in " ".join(found.snippet.split()).casefold():
        return 0
    return 1 if found.field in _SAID else 2


def _is_injected(found: SearchHit) -> bool:
    return found.row is not None and (found.row.origin == "injected" or found.field == "meta")


def _is_recall(request: RecallRequest, found: SearchHit) -> bool:
    row = found.row
    if row is None or found.field not in ("tool_input", "tool_output"):
        return False
    calls = request.store.calls(found.session.id, row.turn)
    return any(call.kind == "recall" and row.seq in (call.seq, call.result_seq) for call in calls)


# --- the draft ---


def _draft_answer(
    request: RecallRequest, action: _SearchAction, where: str, turns_found: list[MatchedTurn], is_more: bool, note: str
) -> AnswerDraft:
    is_more = is_more or len(turns_found) > action.limit
    turns_found = turns_found[: action.limit]
    by_session: dict[int, list[MatchedTurn]] = {}
    for matched in turns_found:
        by_session.setdefault(matched.session.id, []).append(matched)
    shorts = {
        number: handle(short)
        for number, short in short_ids((matched.session for matched in turns_found), request.store).items()
    }
    own = request.session.id if request.is_own and request.session else None
    heads = {
        session: session_line(group[0].session, group[0].text, shorts[session], request.clean)
        for session, group in by_session.items()
        if session != own or len(by_session) > 1
    }
    shown = [
        pair
        for group in by_session.values()
        for pair in match_entries(request, group[0].session, group, action.injected)
    ]
    entries = [entry for entry, _ in shown]
    named = [_turn_name(matched, shorts, heads) for matched in turns_found]
    lead = f"{_count_text(len(turns_found), is_more)} in {where}: {_list_names(named, request.budget // 200)}" + (
        f"\nNote: {note}." if note else ""
    )
    hints = _search_hints(request, action, turns_found[0], shorts[turns_found[0].session.id] if heads else "", is_more)
    return AnswerDraft(
        lead, entries, heads=heads, leave_first=_leave_out_order(shown), hints=lambda cut, left_out: hints,
        body="" if entries else "\n".join(heads.values()),
    )  # fmt: skip


def _leave_out_order(shown: list[tuple[AnswerEntry, int]]) -> list[int]:
    """Return the order to leave entries out: those around hits first, the oldest first; then the hits that rank last."""
    keys = [(entry.is_match, -rank if entry.is_match else 0, number) for number, (entry, rank) in enumerate(shown)]
    return [number for _, _, number in sorted(keys)]


# --- lead and hints ---


def _count_text(n: int, is_more: bool) -> str:
    return f"{n} matching turn{'' if n == 1 else 's'}{' of more' if is_more else ''}"


def _turn_name(matched: MatchedTurn, shorts: dict[int, str], heads: dict[int, str]) -> str:
    turn = f"turn {matched.turn + 1}" if matched.turn >= 0 else "title or summary"
    at = matched.found[0].at
    turn += f" ({iso(at)[:16].replace('T', ' ')})" if at is not None else ""
    return f"session {shorts[matched.session.id]} {turn}" if matched.session.id in heads else turn


def _list_names(names: list[str], room: int) -> str:
    most = min(room, _NAMED)
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def _search_hints(
    request: RecallRequest, action: _SearchAction, best: MatchedTurn, short: str, is_more: bool
) -> list[str]:
    turn = max(best.turn, 0) + 1
    query = {"query": f"session:{short}"} if short else {}
    whole = request.spell({"action": "range", "start_turn": turn, "end_turn": turn, **query})
    hints = [f"these are excerpts; a whole turn, here the best one: {whole}"]
    if is_more and action.limit < _MOST and len(action.words) <= _LONG:
        named = f"session:{request.short} {action.words}" if request.session and not request.is_own else action.words
        more = {"action": "search", "query": named, "limit": min(action.limit * 2, _MOST)}
        hints.append(f"more matches: {request.spell(more)}")
    elif is_more:
        hints.append("more matches: use rarer words, or filters such as since:7d, tool:NAME, turn:10-20, role:user")
    return hints


def _nothing_found_text(request: RecallRequest, words: str, hidden: bool) -> str:
    where = f"session {request.short}" if request.session and not request.is_own else "the archive"
    if request.session and not has_words(request.session):
        where += f" (the words of this session were not kept: mode {request.session.mode})"
    but = ", but for what clients put in by themselves (role:injected finds that) and earlier recalls" if hidden else ""
    return (
        f"Nothing in {where} matches {one_line(words, 80)!r}{but}. Try fewer or other words, or a beginning like pars*."
    )
