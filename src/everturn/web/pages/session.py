"""A session, turn by turn: a page of turns around the one that is wanted, whatever the length of the rest.

A page ends after so many turns, or when it is as long as a page may be; the next one begins there. The strip of all turns
is drawn apart (`draw_map`), once per state of the session.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from everturn.errors import NothingFound
from everturn.export.page import Html, Look, children_of, head_html, minimap, turn_html
from everturn.model.archive import Session, Turn
from everturn.recall.lineage import Lineage, Relative, lineage
from everturn.recall.marks import marks_of
from everturn.recall.reading import TurnView, read_turns
from everturn.recall.sessions import resolve
from everturn.recall.transcript import passages
from everturn.web.asking import Asked, Moved, Page
from everturn.web.listing import title_of

TURNS = 20
LONGEST = 180_000  # characters of turns on a page
_LIVE = 3_600_000  # milliseconds since something was written for which a session counts as going on
_OF_A_TURN = 150_000
_OF_A_TEXT = 8_000
_OF_A_PICTURE = 400_000


def draw(asked: Asked) -> Page:
    """Turns from `after` on (counted from 0), or around `turn` (counted from 1), or up to `before`."""
    session, text = asked.session()
    relatives = lineage(asked.store, session)
    look = _look(asked, session, relatives)
    first = _first(asked, session)
    turns, last = _turns(asked, session, look, first, _last(asked, session, first))
    marks = marks_of(asked.store, session)
    text = replace(text, title=marks.title or text.title)
    values: dict[str, Any] = {
        "session": session,
        "name": asked.line(session.native_id, 200),
        "title": title_of(asked, session, text, marks),
        "marks": marks,
        "own_title": asked.line(marks.title, 300),
        "note": asked.text(marks.note),
        "head": "" if asked.is_part else head_html(session, text, relatives, look),
        "turns": turns,
        "first": first,
        "last": last,
        "is_last": last + 1 >= session.n_turns,
        "is_live": session.ended is not None and asked.now - session.ended < _LIVE,
    }
    return Page("session", values, values["title"])


def draw_map(asked: Asked) -> Page:
    """The strip of all turns. Held until the session grows."""
    session, _ = asked.session()

    def look() -> Html:
        return minimap(asked.store.turns(session.id), lambda number: address(session.id, number))

    return Page("map", {"drawn": asked.site.until_it_grows("map", session, look)}, "All turns")


def by_name(asked: Asked) -> Moved:
    """Any name of a session, as the commands take it, to its address. Raises NothingFound, Usage."""
    session = resolve(asked.store, asked.path["wanted"])
    turn = asked.number("turn", 0)
    return Moved(address(session.id, turn) if turn else f"/s/{session.id}")


def address(session: int, turn: int) -> str:
    """Where a turn (counted from 1) is read."""
    return f"/s/{session}?turn={turn}#t{turn}"


def _first(asked: Asked, session: Session) -> int:
    """The first turn of the page, counted from 0."""
    wanted = asked.number("turn", 0)
    if wanted:
        if wanted > session.n_turns:
            has = f"session {session.native_id} has {session.n_turns} turns"
            raise NothingFound(f"{has}; there is no turn {wanted}")
        return max(0, wanted - 2)  # one before it, to see what it follows on
    before = asked.number("before", 0)
    return max(0, before - TURNS) if before else asked.number("after", 0)


def _last(asked: Asked, session: Session, first: int) -> int:
    before = asked.number("before", 0)
    return min(session.n_turns, before or first + TURNS) - 1


def _turns(asked: Asked, session: Session, look: Look, first: int, last: int) -> tuple[list[Html], int]:
    """The turns as markup, and the last that there was room for."""
    drawn, length, shown = list[Html](), 0, first - 1
    before: Turn | None = next(iter(asked.store.turns(session.id, first - 1, first - 1)), None) if first else None
    for view in read_turns(asked.store, session, first, last):
        one = Html("".join(_turn(asked, session, view, look, before)))
        if drawn and length + len(one) > LONGEST:
            break
        drawn.append(one)
        length, shown, before = length + len(one), view.turn.idx, view.turn
    return drawn, shown


def _turn(asked: Asked, session: Session, view: TurnView, look: Look, before: Turn | None) -> Iterator[str]:
    told = passages(asked.store, asked.sources, session, view, results=True)
    return turn_html(view, told, look, before)


def _look(asked: Asked, session: Session, relatives: Lineage) -> Look:
    def to_session(one: Relative) -> str:
        return f"/s/{one.session.id}" if one.session else f"/session/{quote(one.native_id, errors='replace')}"

    def to_record(seq: int) -> str:
        return f"/s/{session.id}/m/{seq + 1}"

    return Look(
        clean=asked.clean,
        longest=_OF_A_TEXT,
        most=_OF_A_TURN,
        largest=_OF_A_PICTURE,
        children=children_of(relatives),
        to_session=to_session,
        to_record=to_record,
        to_whole=to_record,
    )
