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
from everturn.export.page.head import draw_minimap, head_html
from everturn.export.page.markup import Html, PageLook, children_of
from everturn.export.page.turn import turn_html
from everturn.model.archive import Session, SessionText, Turn
from everturn.sessions.lineage import Lineage, Relative, lineage
from everturn.sessions.lookup import marks_of, resolve_session
from everturn.sessions.messages import TurnView, read_turns
from everturn.sessions.transcript import passages
from everturn.web.pages.record import picture_address
from everturn.web.request import PageReply, RedirectReply, WebRequest
from everturn.web.session_lines import title_of

TURNS = 20
LONGEST = 180_000  # characters of turns on a page
_LIVE = 3_600_000  # milliseconds since something was written for which a session counts as going on
_MOST_OF_TURN = 150_000
_MOST_OF_TEXT = 8_000


def draw(asked: WebRequest) -> PageReply:
    """Turns from `after` on (counted from 0), or around `turn` (counted from 1), or up to `before`.

    With `message` as well it is the rest of that turn, from this message (counted from 1) on. `within=1` is for turns that
    are put into the page of another session: their anchors are their own.
    """
    session, text = asked.session()
    relatives = lineage(asked.store, session)
    look = _make_look(asked, session, text, relatives)
    first = _first_turn(asked, session)
    turns, first, last = _turns(asked, session, look, first, _last_turn(asked, session, first))
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
        "within": _is_within(asked),
        "rest_of": first + 1 if _is_rest(asked) else 0,
        "is_last": last + 1 >= session.n_turns,
        "is_live": session.ended is not None and asked.now - session.ended < _LIVE,
    }
    return PageReply("session", values, values["title"])


def draw_map(asked: WebRequest) -> PageReply:
    """The strip of all turns. Held until the session grows."""
    session, _ = asked.session()

    def look() -> Html:
        turns, work = asked.store.turns(session.id), asked.store.work(session.id)
        return draw_minimap(turns, lambda number: turn_address(session.id, number), work)

    return PageReply("map", {"drawn": asked.site.until_it_grows("map", session, look)}, "All turns")


def redirect_by_name(asked: WebRequest) -> RedirectReply:
    """Any name of a session, as the commands take it, to its address. Raises NothingFound, Usage."""
    session = resolve_session(asked.store, asked.path["wanted"])
    turn = asked.number("turn", 0)
    return RedirectReply(turn_address(session.id, turn) if turn else f"/s/{session.id}")


def turn_address(session: int, turn: int) -> str:
    """Where a turn (counted from 1) is read."""
    return f"/s/{session}?turn={turn}#t{turn}"


def _first_turn(asked: WebRequest, session: Session) -> int:
    """The first turn of the page, counted from 0."""
    wanted = asked.number("turn", 0)
    if wanted:
        if wanted > session.n_turns:
            has = f"session {session.native_id} has {session.n_turns} turns"
            raise NothingFound(f"{has}; there is no turn {wanted}")
        return wanted - 1 if _is_rest(asked) else max(0, wanted - 2)  # one before it, to see what it follows on
    before = asked.number("before", 0)
    return max(0, before - TURNS) if before else asked.number("after", 0)


def _is_within(asked: WebRequest) -> bool:
    return asked.choice("within", ("1",)) == "1"


def _is_rest(asked: WebRequest) -> bool:
    """Whether a turn that was longer than a page goes on here."""
    return bool(asked.number("turn", 0) and asked.number("message", 0))


def _last_turn(asked: WebRequest, session: Session, first: int) -> int:
    if _is_rest(asked):
        return first
    before = asked.number("before", 0)
    return min(session.n_turns, before or first + TURNS) - 1


def _turns(asked: WebRequest, session: Session, look: PageLook, first: int, last: int) -> tuple[list[Html], int, int]:
    """The turns as markup, the first of them, and the last that there was room for."""
    drawn, length, shown, wanted = list[Html](), 0, first - 1, asked.number("turn", 0) - 1
    before: Turn | None = next(iter(asked.store.turns(session.id, first - 1, first - 1)), None) if first else None
    for view in read_turns(asked.store, session, first, last):
        if _is_rest(asked):
            view = _cut_turn(view, asked.number("message", 0) - 1)
        one = Html("".join(_turn_html(asked, session, view, look, before)))
        if drawn and length + len(one) > LONGEST:
            if view.turn.idx != wanted:
                break
            drawn, length, first = [], 0, wanted  # the one before it leaves no room for the one that is wanted
        drawn.append(one)
        length, shown, before = length + len(one), view.turn.idx, view.turn
    return drawn, first, shown


def _cut_turn(view: TurnView, seq: int) -> TurnView:
    """A turn from a message on. What came back from a tool stands with its call, and so begins there."""
    start = min([seq, *(call.seq for call in view.calls if call.result_seq == seq)])
    return replace(view, rows=[row for row in view.rows if row.seq >= start])


def _turn_html(
    asked: WebRequest, session: Session, view: TurnView, look: PageLook, before: Turn | None
) -> Iterator[str]:
    told = passages(asked.store, asked.sources, session, view, results=True)
    return turn_html(view, told, look, before)


def _make_look(asked: WebRequest, session: Session, text: SessionText, relatives: Lineage) -> PageLook:
    def to_session(one: Relative) -> str:
        return f"/s/{one.session.id}" if one.session else f"/session/{quote(one.native_id, errors='replace')}"

    def to_record(seq: int) -> str:
        return f"/s/{session.id}/m/{seq + 1}"

    def to_rest(turn: int, seq: int) -> str:
        return f"/s/{session.id}?turn={turn}&message={seq + 1}#t{turn}"

    return PageLook(
        clean=asked.clean,
        anchor=f"s{session.id}-t" if _is_within(asked) else "t",
        longest=_MOST_OF_TEXT,
        most=_MOST_OF_TURN,
        workspace=text.workspace.rstrip("/\\"),
        titles=asked.site.titles,
        children=children_of(relatives),
        to_session=to_session,
        to_inside=lambda one: f"{to_session(one)}?within=1",
        to_record=to_record,
        to_whole=to_record,
        to_picture=lambda seq, name: picture_address(session.id, seq, name),
        to_rest=to_rest,
    )
