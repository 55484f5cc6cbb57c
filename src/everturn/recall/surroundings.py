"""What stood around a match: the prompt and the last answer of its turn, and of the turns before and after it.

Only the messages that are shown are read, and of long ones the lines around the matching words.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import MessageRow, Session, SessionText, Turn
from everturn.recall.answers import AnswerEntry, cut_notice, entries_of
from everturn.recall.asking import RecallRequest
from everturn.recall.reading import TurnView
from everturn.recall.search import SearchHit

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
