"""Where words stand, with what stood around them: the action `search`.

Asked from within a session, the session and its lineage are looked at first, then its workspace, then everything; the
answer says which of them it comes from. What holds the very words asked for comes first, then other prompts and
answers, then what holds them only in tool input, tool output or thoughts; within these in the order of the search
core. Each match comes with the prompt and the answer of its turn and of the turns before and after it.

What the client put in by itself is left out, and so are earlier recalls: they hold the words because they were asked.

What stood around a match: the prompt and the last answer of its turn, and of the turns before and after it.

Only the messages that are shown are read, and of long ones the lines around the matching words.
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

#: Characters of a match, and of the prompts and answers around it.
_MATCH, _SAME_TURN, _BESIDE = 1200, 400, 240
_LOOKED_AT = 8  # messages looked at for the last answer of a turn


class MatchedTurn(Struct, frozen=True):
    """A turn with matches in it; `turn` is -1 when the title of the session matches. `rank` counts from 0, the best."""

    session: Session
    text: SessionText
    turn: int
    found: tuple[SearchHit, ...]
    rank: int


def match_entries(
    asking: RecallRequest, session: Session, places: list[MatchedTurn], quiet: bool
) -> Iterator[tuple[AnswerEntry, int]]:
    """The entries of the matches in one session, each with its rank. Matches that are neighbours are told together."""
    by_turn = {max(place.turn, 0): place for place in reversed(places)}
    told: set[int] = set()
    for place in places:
        start = max(place.turn, 0)
        if start in told:
            continue
        first, last = _last_touching(by_turn, start, -1), _last_touching(by_turn, start, 1)
        for turn in asking.store.turns(session.id, max(first - 1, 0), last + 1):
            if turn.idx in told:
                continue
            told.add(turn.idx)
            matching = by_turn.get(turn.idx)
            for entry in _PartlyReadTurn(asking, session, turn, quiet).entries(matching):
                yield entry, (matching or place).rank


def _last_touching(turns: dict[int, MatchedTurn], at: int, step: int) -> int:
    """The last of the matching turns, from `at` on, whose neighbours touch."""
    while at + 2 * step in turns or at + step in turns:
        at += 2 * step if at + 2 * step in turns else step
    return at


class _PartlyReadTurn:
    """One turn, of which only some messages are read."""

    def __init__(self, asking: RecallRequest, session: Session, turn: Turn, quiet: bool) -> None:
        self._asking = asking
        self._session = session
        self._turn = turn
        self._quiet = quiet
        self._rows = list(asking.store.messages(session.id, turn.first_seq, turn.last_seq))
        self._calls = asking.store.calls(session.id, turn.idx)

    def entries(self, place: MatchedTurn | None) -> list[AnswerEntry]:
        """The prompt, what matches, the last answer."""
        size = _SAME_TURN if place else _BESIDE
        found = {(one.seq, one.head): _cut_around(one, [], size) for one in (*self._prompt(), *self._answer())}
        for match in place.found if place else ():
            needles = _matched_words(match)
            for entry in self._matching(match.row, needles):
                found[entry.seq, entry.head] = replace(_cut_around(entry, needles, _MATCH), is_match=True)
        return [found[key] for key in sorted(found, key=lambda key: key[0])]

    def _prompt(self) -> list[AnswerEntry]:
        spoken = [row for row in self._rows if row.origin in ("human", "agent") and row.role == "user"]
        return self._read(spoken[:1])[:1]

    def _answer(self) -> list[AnswerEntry]:
        spoken = [row for row in reversed(self._rows) if row.origin == "model"]
        for row in spoken[:_LOOKED_AT]:
            said = [entry for entry in self._read([row]) if not entry.is_output]
            if said:
                return said[-1:]
        return []

    def _matching(self, row: MessageRow | None, needles: list[str]) -> list[AnswerEntry]:
        """What matches in a message; a result is told with its call."""
        if row is None:
            return []
        callers = {call.seq for call in self._calls if call.result_seq == row.seq}
        entries = self._read([one for one in self._rows if one.seq in callers] or [row])
        return [entry for entry in entries if _has_needle(entry, needles)] or entries[:1]

    def _read(self, rows: list[MessageRow]) -> list[AnswerEntry]:
        view = TurnView(self._turn, [], self._calls, rows)
        asking = self._asking
        told = entries_of(asking.store, asking.sources, self._session, view, asking.clean, quiet=self._quiet)
        return [entry for entry in told if entry.head != "problem:"] if rows else []


def _has_needle(entry: AnswerEntry, needles: list[str]) -> bool:
    text = f"{entry.head} {entry.text}".casefold()
    return any(needle in text for needle in needles)


def _matched_words(found: SearchHit) -> list[str]:
    """The matching words as they stand there."""
    return list(dict.fromkeys(found.snippet[start:end].casefold() for start, end in found.spans if end > start))


def _cut_around(entry: AnswerEntry, needles: list[str], size: int) -> AnswerEntry:
    """The lines of the text around the words, or its beginning, when all of it is too long."""
    text = entry.text
    if len(text) <= size + size // 4:
        return entry
    at = _densest_position(text.casefold(), needles, size)
    start = max(0, min(at - size // 3, len(text) - size))
    line_start = text.rfind("\n", max(0, start - 200), start) + 1 if start else 0
    start = line_start or start
    end = text.rfind("\n", start + size // 2, start + size)
    piece = text[start : end if end > 0 else start + size].strip("\n")
    before = "… " if start else ""
    return replace(entry, text=f"{before}{piece}\n{cut_notice(entry.lines)}", is_cut=True)


def _densest_position(text: str, needles: list[str], size: int) -> int:
    """Where most of the words stand together."""
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


_FETCHED = 3  # matches looked at for each one wanted: several may lie in one turn
_FEWEST = 30  # matches looked at in any case: so that asking for few gives the first of what asking for more gives
_SAID = ("prompt", "answer", "summary", "title")
_NAMED = 10  # matches named above the quotation
_MOST = 50  # matches that can be asked for
_LONG = 300  # characters of a request that is not repeated


def answer_search(asking: RecallRequest, words: str, limit: int) -> AnswerDraft:
    """The turns that match best."""
    if not words:
        return AnswerDraft("search: give query, the words to look for.", status="mistake")
    asked = parse_query(words)
    wanted = _SearchAction(
        words, " ".join(piece.text for piece in asked.wanted).casefold(), limit, _asks_for_injected(asked)
    )
    hidden = False
    for ring in scope_rings(asking.store, _search_filters(asking)):
        filters = replace(ring.filters, widen=False, lineage=False)
        page = search(
            asking.store, asking.sources, words, filters, max(limit * _FETCHED, _FEWEST), "", asking.clean, asking.now,
            asking.meaning,
        )  # fmt: skip
        places = _matched_turns(asking, wanted, page.items)
        hidden = hidden or bool(page.items and not places)
        if places:
            where = _scope_text(asking, ring.name)
            return _draft_answer(asking, wanted, where, places, bool(page.next), page.note)
    return AnswerDraft(_nothing_found_text(asking, words, hidden), status="nothing")


class _SearchAction(Struct, frozen=True):
    """What is looked for."""

    words: str
    plain: str  # the words alone, in lower case
    limit: int
    injected: bool  # also what the client put in by itself


# where ----------------------------------------------------------------------------------------------------------------
def _search_filters(asking: RecallRequest) -> SearchFilters:
    """A session that was named is looked at with its lineage; the one that one is in, as the first of wider rings."""
    return SearchFilters(session=asking.session, lineage=asking.session is not None, widen=asking.is_own)


def _scope_text(asking: RecallRequest, ring: str) -> str:
    if asking.session is None:
        return "the whole archive"
    if not asking.is_own:
        return f"session {asking.short} and its lineage"
    nearer = " (nothing in this session)"
    return {
        "session": "this session",
        "lineage": f"the sessions that this session came from or started{nearer}",
        "workspace": f"other sessions of the same workspace{nearer}",
    }.get(ring, f"the whole archive{nearer}")


def _asks_for_injected(asked: SearchQuery) -> bool:
    return any(one.name in ("role", "field") and one.value in ("injected", "meta") for one in asked.filters)


def _matched_turns(asking: RecallRequest, wanted: _SearchAction, found: list[SearchHit]) -> list[MatchedTurn]:
    """The turns of the matches, the best first."""
    told = [one for one in found if wanted.injected or not _is_injected(one)]
    ranked = sorted(
        (one for one in told if not _is_recall(asking, one)), key=lambda one: _match_tier(wanted.plain, one)
    )
    turns: dict[tuple[int, int], list[SearchHit]] = {}
    for one in ranked:
        turns.setdefault((one.session.id, one.row.turn if one.row else -1), []).append(one)
    return [
        MatchedTurn(group[0].session, group[0].text, turn, tuple(group), rank)
        for rank, ((_, turn), group) in enumerate(turns.items())
    ]


def _match_tier(plain: str, found: SearchHit) -> int:
    """0: the very words stand there; 1: in what was said; 2: only in what tools were given or gave back, or thoughts."""
    if plain and plain in " ".join(found.snippet.split()).casefold():
        return 0
    return 1 if found.field in _SAID else 2


def _is_injected(found: SearchHit) -> bool:
    return found.row is not None and (found.row.origin == "injected" or found.field == "meta")


def _is_recall(asking: RecallRequest, found: SearchHit) -> bool:
    row = found.row
    if row is None or found.field not in ("tool_input", "tool_output"):
        return False
    calls = asking.store.calls(found.session.id, row.turn)
    return any(call.kind == "recall" and row.seq in (call.seq, call.result_seq) for call in calls)


# what -----------------------------------------------------------------------------------------------------------------
def _draft_answer(
    asking: RecallRequest, wanted: _SearchAction, where: str, places: list[MatchedTurn], is_more: bool, note: str
) -> AnswerDraft:
    is_more = is_more or len(places) > wanted.limit
    places = places[: wanted.limit]
    by_session: dict[int, list[MatchedTurn]] = {}
    for place in places:
        by_session.setdefault(place.session.id, []).append(place)
    shorts = {
        number: handle(short) for number, short in short_ids((place.session for place in places), asking.store).items()
    }
    heads = {
        session: session_line(group[0].session, group[0].text, shorts[session], asking.clean)
        for session, group in by_session.items()
        if not _is_own_session(asking, group[0].session) or len(by_session) > 1
    }
    told = [
        pair
        for group in by_session.values()
        for pair in match_entries(asking, group[0].session, group, wanted.injected)
    ]
    entries = [entry for entry, _ in told]
    named = [_turn_name(place, shorts, heads) for place in places]
    lead = f"{_count_text(len(places), is_more)} in {where}: {_list_names(named, asking.budget // 200)}" + (
        f"\nNote: {note}." if note else ""
    )
    hints = _search_hints(asking, wanted, places[0], shorts[places[0].session.id] if heads else "", is_more)
    return AnswerDraft(
        lead, entries, heads=heads, leave_first=_leave_out_order(told), hints=lambda cut, left_out: hints,
        body="" if entries else "\n".join(heads.values()),
    )  # fmt: skip


def _is_own_session(asking: RecallRequest, session: Session) -> bool:
    return asking.is_own and asking.session is not None and asking.session.id == session.id


def _leave_out_order(told: list[tuple[AnswerEntry, int]]) -> list[int]:
    """What stands around matches goes before any match does, the oldest first; then the matches that rank last."""
    keys = [(entry.is_match, -rank if entry.is_match else 0, number) for number, (entry, rank) in enumerate(told)]
    return [number for _, _, number in sorted(keys)]


# what is said about it ------------------------------------------------------------------------------------------------
def _count_text(n: int, is_more: bool) -> str:
    return f"{n} matching turn{'' if n == 1 else 's'}{' of more' if is_more else ''}"


def _turn_name(place: MatchedTurn, shorts: dict[int, str], heads: dict[int, str]) -> str:
    turn = f"turn {place.turn + 1}" if place.turn >= 0 else "title or summary"
    return f"session {shorts[place.session.id]} {turn}" if place.session.id in heads else turn


def _list_names(names: list[str], room: int) -> str:
    most = min(room, _NAMED)
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def _search_hints(
    asking: RecallRequest, wanted: _SearchAction, best: MatchedTurn, short: str, is_more: bool
) -> list[str]:
    turn = max(best.turn, 0) + 1
    query = {"query": f"session:{short}"} if short else {}
    whole = asking.spell({"action": "range", "start_turn": turn, "end_turn": turn, **query})
    said = [f"these are excerpts; a whole turn, here the best one: {whole}"]
    if is_more and wanted.limit < _MOST and len(wanted.words) <= _LONG:
        named = f"session:{asking.short} {wanted.words}" if asking.session and not asking.is_own else wanted.words
        more = {"action": "search", "query": named, "limit": min(wanted.limit * 2, _MOST)}
        said.append(f"more matches: {asking.spell(more)}")
    elif is_more:
        said.append("more matches: use rarer words, or filters such as since:7d, tool:NAME, turn:10-20, role:user")
    return said


def _nothing_found_text(asking: RecallRequest, words: str, hidden: bool) -> str:
    where = f"session {asking.short}" if asking.session and not asking.is_own else "the archive"
    if asking.session and not has_words(asking.session):
        where += f" (the words of this session were not kept: mode {asking.session.mode})"
    but = ", but for what clients put in by themselves (role:injected finds that) and earlier recalls" if hidden else ""
    return (
        f"Nothing in {where} matches {one_line(words, 80)!r}{but}. Try fewer or other words, or a beginning like pars*."
    )
