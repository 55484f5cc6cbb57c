"""A session, turn by turn: a page of turns around the requested one, whatever the length of the rest.

A page ends after `TURNS` turns, or when it is long enough; the next one begins there. The strip of all turns is drawn
separately (`draw_map`) and cached until the session grows.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from everturn.errors import NothingFound
from everturn.export.page.head import draw_minimap, head_html
from everturn.export.page.markup import Html, PageLook
from everturn.export.page.turn import turn_html
from everturn.model.archive import Session, SessionText, Turn
from everturn.sessions.lineage import Lineage, Relative, lineage
from everturn.sessions.lookup import marks_of, resolve_session
from everturn.sessions.messages import read_turns
from everturn.sessions.transcript import passages
from everturn.web.pages.record import picture_address
from everturn.web.request import PageReply, RedirectReply, WebRequest
from everturn.web.session_lines import title_of

TURNS = 20
LONGEST = 180_000  # characters of turns on a page
_LIVE = 3_600_000  # milliseconds after its last record for which a session counts as live
_MOST_OF_TURN = 150_000
_MOST_OF_TEXT = 8_000


def draw(request: WebRequest) -> PageReply:
    """Draw the turns from `after` on (counted from 0), or around `turn` (counted from 1), or up to `before`.

    With `message` it is the rest of that turn, from this message (counted from 1) on. `within=1` is for turns that are put
    into the page of another session: they get other anchors.
    """
    session, text = request.session()
    relatives = lineage(request.store, session)
    look = _make_look(request, session, text, relatives)
    first = _first_turn(request, session)
    turns, first, last = _turns(request, session, look, first, _last_turn(request, session, first))
    marks = marks_of(request.store, session)
    text = replace(text, title=marks.title or text.title)
    values: dict[str, Any] = {
        "session": session,
        "name": request.line(session.native_id, 200),
        "title": title_of(request, session, text, marks),
        "marks": marks,
        "own_title": request.line(marks.title, 300),
        "note": request.text(marks.note),
        "head": "" if request.is_part else head_html(session, text, relatives, look),
        "turns": turns,
        "first": first,
        "last": last,
        "within": _is_within(request),
        "rest_of": first + 1 if _is_rest(request) else 0,
        "is_last": last + 1 >= session.n_turns,
        "is_live": session.ended is not None and request.now - session.ended < _LIVE,
    }
    return PageReply("session", values, values["title"])


def draw_map(request: WebRequest) -> PageReply:
    """Draw the strip of all turns. Cached until the session grows."""
    session, _ = request.session()

    def look() -> Html:
        turns, work = request.store.turns(session.id), request.store.work(session.id)
        return draw_minimap(turns, lambda number: turn_address(session.id, number), work)

    return PageReply("map", {"drawn": request.site.until_it_grows("map", session, look)}, "All turns")


def redirect_by_name(request: WebRequest) -> RedirectReply:
    """Redirect from any name of a session, as commands accept it. Raises NothingFound, UsageError."""
    session = resolve_session(request.store, request.path["wanted"])
    turn = request.number("turn", 0)
    return RedirectReply(turn_address(session.id, turn) if turn else f"/s/{session.id}")


def turn_address(session: int, turn: int) -> str:
    """Return the address of a turn, counted from 1."""
    return f"/s/{session}?turn={turn}#t{turn}"


def _first_turn(request: WebRequest, session: Session) -> int:
    """Return the first turn of the page, counted from 0. Raises NothingFound."""
    target = request.number("turn", 0)
    if target:
        if target > session.n_turns:
            has = f"session {session.native_id} has {session.n_turns} turns"
            raise NothingFound(f"{has}; there is no turn {target}")
        return target - 1 if _is_rest(request) else max(0, target - 2)  # with the previous turn, for context
    before = request.number("before", 0)
    return max(0, before - TURNS) if before else request.number("after", 0)


def _is_within(request: WebRequest) -> bool:
    return request.choice("within", ("1",)) == "1"


def _is_rest(request: WebRequest) -> bool:
    """Return whether this page continues a turn that was longer than a page."""
    return bool(request.number("turn", 0) and request.number("message", 0))


def _last_turn(request: WebRequest, session: Session, first: int) -> int:
    if _is_rest(request):
        return first
    before = request.number("before", 0)
    return min(session.n_turns, before or first + TURNS) - 1


def _turns(request: WebRequest, session: Session, look: PageLook, first: int, last: int) -> tuple[list[Html], int, int]:
    """Return the turns as HTML, the first turn, and the last one that fitted."""
    drawn, length, shown, target = list[Html](), 0, first - 1, request.number("turn", 0) - 1
    before: Turn | None = next(iter(request.store.turns(session.id, first - 1, first - 1)), None) if first else None
    for view in read_turns(request.store, session, first, last):
        if _is_rest(request):
            # From a message on. A result is shown with its call, so the turn starts at that call.
            seq = request.number("message", 0) - 1
            start = min([seq, *(call.seq for call in view.calls if call.result_seq == seq)])
            view = replace(view, rows=[row for row in view.rows if row.seq >= start])
        texts = passages(request.store, request.sources, session, view, results=True)
        one = Html("".join(turn_html(view, texts, look, before)))
        if drawn and length + len(one) > LONGEST:
            if view.turn.idx != target:
                break
            drawn, length, first = [], 0, target  # the previous turn leaves no room for the requested one
        drawn.append(one)
        length, shown, before = length + len(one), view.turn.idx, view.turn
    return drawn, first, shown


def _make_look(request: WebRequest, session: Session, text: SessionText, relatives: Lineage) -> PageLook:
    def to_session(one: Relative) -> str:
        return f"/s/{one.session.id}" if one.session else f"/session/{quote(one.native_id, errors='replace')}"

    def to_record(seq: int) -> str:
        return f"/s/{session.id}/m/{seq + 1}"

    def to_rest(turn: int, seq: int) -> str:
        return f"/s/{session.id}?turn={turn}&message={seq + 1}#t{turn}"

    return PageLook(
        clean=request.clean,
        anchor=f"s{session.id}-t" if _is_within(request) else "t",
        longest=_MOST_OF_TEXT,
        most=_MOST_OF_TURN,
        workspace=text.workspace.rstrip("/\\"),
        titles=request.site.titles,
        children=relatives.children_by_call(),
        to_session=to_session,
        to_inside=lambda one: f"{to_session(one)}?within=1",
        to_record=to_record,
        to_whole=to_record,
        to_picture=lambda seq, name: picture_address(session.id, seq, name),
        to_rest=to_rest,
    )
