"""A session, turn by turn: a page of turns around the requested one, whatever the length of the rest.

A page ends after `TURNS` sections, or when it is long enough; the next one begins there, and so does the one before
(`web.session_lines`). The strip of all turns is drawn separately (`draw_map`) and cached until the session grows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import NothingFound
from everturn.export.page.head import draw_minimap, head_html
from everturn.export.page.markup import Html, PageLook
from everturn.export.page.turn import turn_html
from everturn.model.archive import Session, SessionText
from everturn.sessions.lineage import Lineage, Relative, lineage
from everturn.sessions.lookup import RUNNING, marks_of, resolve_session
from everturn.sessions.messages import passages
from everturn.text.printable import plural
from everturn.web.pages.record import picture_address
from everturn.web.pages.session_panels import resume_commands
from everturn.web.request import PageReply, RedirectReply, WebRequest
from everturn.web.session_lines import (
    Section,
    read_section,
    section_at,
    section_of,
    sections_before,
    sections_from,
    title_of,
)

TURNS = 20
LONGEST = 180_000  # characters of turns on a page
_MOST_OF_SECTION = 150_000
_MOST_OF_TEXT = 8_000


class TurnRange(Struct, frozen=True):
    """Turns as HTML, and the addresses of those before and behind them ("" at an end)."""

    drawn: list[Html]
    before: str
    behind: str


def draw(request: WebRequest) -> PageReply:
    """Draw the turns from `after` on (counted from 0), from `turn` on (counted from 1), or those up to `before`.

    With `message`, counted from 1, the page begins at the section of the turn that shows it, or ends before that section;
    with `from` it begins at the section that this message is in.
    `within=1` is for turns that are put into the page of another session: they get other anchors.
    """
    session, text = request.session()
    relatives = lineage(request.store, session)
    look = _make_look(request, session, text, relatives)
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
        "commands": None if request.is_part else resume_commands(request, session, text),
        "turns": _turn_range(request, session, look),
        "within": _is_within(request),
        "is_live": session.ended is not None and request.now - session.ended < RUNNING,
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
    turn, message = request.number("turn", 0), request.number("message", 0)
    if turn and message:
        return RedirectReply(message_address(session.id, turn, message))
    return RedirectReply(turn_address(session.id, turn) if turn else f"/s/{session.id}")


def turn_address(session: int, turn: int) -> str:
    """Return the address of a turn, counted from 1."""
    return f"/s/{session}?turn={turn}#t{turn}"


def message_address(session: int, turn: int, message: int) -> str:
    """Return the address of a message within its turn, both counted from 1."""
    return f"/s/{session}?turn={turn}&message={message}#m{message}"


def _is_within(request: WebRequest) -> bool:
    return request.choice("within", ("1",)) == "1"


def _turn_range(request: WebRequest, session: Session, look: PageLook) -> TurnRange:
    if request.word("before"):
        return _turns_backwards(request, session, look)
    first = _first_section(request, session)
    if first is None:
        return TurnRange([], "", "")
    drawn, shown = _draw_sections(request, session, look, sections_from(request.store, session, first))
    return TurnRange(drawn, _address_before(session, first), _address_behind(session, shown[-1], _is_within(request)))


def _turns_backwards(request: WebRequest, session: Session, look: PageLook) -> TurnRange:
    idx, message = min(request.number("before", 0), session.n_turns), request.number("message", 0)
    earlier = sections_before(request.store, session, idx, message - 1 if message else None)
    drawn, shown = _draw_sections(request, session, look, earlier)
    if not shown:
        return TurnRange([], "", f"/s/{session.id}?after=0")
    return TurnRange(drawn[::-1], _address_before(session, shown[-1]), _address_behind(session, shown[0]))


def _draw_sections(
    request: WebRequest, session: Session, look: PageLook, sections: Iterable[Section]
) -> tuple[list[Html], list[Section]]:
    """Draw sections until the page is long enough; return them drawn, and themselves."""
    drawn, shown, length = list[Html](), list[Section](), 0
    for section in sections:
        one = _section_html(request, session, look, section)
        length += len(one)
        if drawn and (length > LONGEST or len(drawn) >= TURNS):
            break
        drawn.append(one)
        shown.append(section)
    return drawn, shown


def _first_section(request: WebRequest, session: Session) -> Section | None:
    """Return the section that a page begins with; None for a session without turns. Raises NothingFound."""
    number, message = request.number("turn", 0), request.number("message", 0)
    if number > session.n_turns:
        has = f"session {session.native_id} has {plural(session.n_turns, 'turn')}"
        raise NothingFound(f"{has}; there is no turn {number}")
    idx = number - 1 if number else request.number("after", 0)
    if message and not number:
        idx = next((row.turn for row in request.store.messages(session.id, message - 1, message - 1)), 0)
    turn = next(iter(request.store.turns(session.id, idx, idx)), None)
    if turn is None:
        return None
    if message:
        return section_of(request.store, session, turn, message - 1)
    return section_at(turn, request.number("from", 1, 1) - 1)


def _address_before(session: Session, first: Section) -> str:
    if not first.is_start:
        return f"/s/{session.id}?before={first.turn.idx}&message={first.first + 1}"
    return f"/s/{session.id}?before={first.turn.idx}" if first.turn.idx else ""


def _address_behind(session: Session, last: Section, is_within: bool = False) -> str:
    more = "&within=1" if is_within else ""
    if not last.is_end:
        return f"/s/{session.id}?turn={last.turn.idx + 1}&from={last.last + 2}{more}"
    return f"/s/{session.id}?after={last.turn.idx + 1}{more}" if last.turn.idx + 1 < session.n_turns else ""


def _section_html(request: WebRequest, session: Session, look: PageLook, section: Section) -> Html:
    idx = section.turn.idx
    above = next(iter(request.store.turns(session.id, idx - 1, idx - 1)), None) if idx and section.is_start else None
    view = read_section(request.store, session, section)
    texts = passages(request.store, request.sources, session, view, results=True)
    return Html("".join(turn_html(view, texts, look, above, is_continued=not section.is_start)))


def _make_look(request: WebRequest, session: Session, text: SessionText, relatives: Lineage) -> PageLook:
    def to_session(one: Relative) -> str:
        return f"/s/{one.session.id}" if one.session else f"/session/{quote(one.native_id, errors='replace')}"

    def to_record(seq: int) -> str:
        return f"/s/{session.id}/m/{seq + 1}"

    return PageLook(
        clean=request.clean,
        anchor=f"s{session.id}-t" if _is_within(request) else "t",
        longest=_MOST_OF_TEXT,
        most=_MOST_OF_SECTION,
        workspace=text.workspace.rstrip("/\\"),
        titles=request.site.titles,
        children=relatives.children_by_call(),
        to_session=to_session,
        to_inside=lambda one: f"{to_session(one)}?within=1",
        to_record=to_record,
        to_whole=to_record,
        to_picture=lambda seq, name: picture_address(session.id, seq, name),
    )
