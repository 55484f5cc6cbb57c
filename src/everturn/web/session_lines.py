"""Sessions as rows of a list, for the home page, the list and the search.

The turns of a session in sections, so that a page goes on in both directions however long a turn is.

A section is a turn, or `MESSAGES` messages of a longer one. Sections begin at fixed messages: the one that follows another
is the same whichever way a reader came. A call and its result are one: they are in the section of the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import Session, SessionText, Turn
from everturn.model.vocabulary import SESSION_KINDS
from everturn.retrieval.hits import SearchHit
from everturn.sessions.lookup import NONE, Marks, SessionRow, session_listings, session_row, session_title
from everturn.sessions.messages import TurnView
from everturn.store.contract import SessionFilter, Store
from everturn.web.request import WebRequest

_PREPARED = 160


def session_rows(request: WebRequest, pairs: Sequence[tuple[Session, SessionText]]) -> list[SessionRow]:
    """Return the rows of sessions, cleaned for a page."""
    listed = session_listings(request.store, pairs)
    return [session_row(one, request.sources, request.now, request.clean) for one in listed]


def title_of(request: WebRequest, session: Session, text: SessionText, marks: Marks = NONE) -> str:
    """Return the title of a session: the user's, its own, or its first prompt or summary."""
    return request.line(marks.title or session_title(session, text), _PREPARED)


def excerpt_pieces(request: WebRequest, hit: SearchHit) -> list[tuple[str, bool]]:
    """Return the excerpt of a search hit for a page, in pieces, each with whether it matches."""
    return [(request.text(text, " "), is_match) for text, is_match in hit.pieces]


def archived_agents(request: WebRequest, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the agents with sessions in the archive, name and title. Cached."""

    def look() -> list[tuple[str, str]]:
        there = (name for name in names if request.store.sessions(SessionFilter(agent=name, kinds=SESSION_KINDS), 1)[0])
        return [(name, request.site.titles.get(name, name)) for name in there]

    return request.site.for_a_while("agents", look)


# --- The turns of a session in sections, so that a page goes on in both directions however long a turn is ---
MESSAGES = 60
_PORTION = 20  # turns read at a time


class Section(Struct, frozen=True):
    """Consecutive messages of one turn, by their seq, both ends included."""

    turn: Turn
    first: int
    last: int

    @property
    def is_start(self) -> bool:
        return self.first == self.turn.first_seq

    @property
    def is_end(self) -> bool:
        return self.last == self.turn.last_seq


def section_of(store: Store, session: Session, turn: Turn, seq: int) -> Section:
    """Return the section of a turn that shows a message; a result is shown with its call."""
    calls = [call.seq for call in store.calls_answered(session.id, seq) if turn.first_seq <= call.seq <= seq]
    return section_at(turn, min([seq, *calls]))


def sections_from(store: Store, session: Session, section: Section) -> Iterator[Section]:
    """Yield this section and those behind it."""
    yield section
    yield from _sections_within(section.turn, section.last + 1)
    idx = section.turn.idx + 1
    while turns := store.turns(session.id, idx, idx + _PORTION - 1):
        for turn in turns:
            yield from _sections_within(turn, turn.first_seq)
        idx = turns[-1].idx + 1


def sections_before(store: Store, session: Session, idx: int, seq: int | None = None) -> Iterator[Section]:
    """Yield the sections before turn `idx` backwards, or before its section with the message `seq`."""
    if seq is not None:
        for turn in store.turns(session.id, idx, idx):
            first = section_at(turn, seq).first
            yield from reversed([one for one in _sections_within(turn, turn.first_seq) if one.first < first])
    while idx > 0:
        turns = store.turns(session.id, max(0, idx - _PORTION), idx - 1)
        for turn in reversed(turns):
            yield from reversed(list(_sections_within(turn, turn.first_seq)))
        idx = turns[0].idx if turns else 0


def read_section(store: Store, session: Session, section: Section) -> TurnView:
    """Return the turn with the rows of the section alone."""
    turn = section.turn
    rows = list(store.messages(session.id, section.first, section.last))
    shown = replace(turn, first_seq=section.first, last_seq=section.last)
    return TurnView(shown, store.steps(session.id, turn.idx), store.calls(session.id, turn.idx), rows)


def section_at(turn: Turn, seq: int) -> Section:
    """Return the section of a turn that a message is in; the first one for an earlier message."""
    first = turn.first_seq + (max(seq, turn.first_seq) - turn.first_seq) // MESSAGES * MESSAGES
    return Section(turn, first, min(turn.last_seq, first + MESSAGES - 1))


def _sections_within(turn: Turn, first: int) -> Iterator[Section]:
    if turn.last_seq < turn.first_seq:  # a turn without messages is one section
        yield Section(turn, turn.first_seq, turn.last_seq)
    for start in range(first, turn.last_seq + 1, MESSAGES):
        yield Section(turn, start, min(turn.last_seq, start + MESSAGES - 1))
