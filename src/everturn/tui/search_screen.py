"""The search screen: the search of `everturn search`, run while the user types, page by page with marked matches."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from textual.binding import Binding
from textual.widgets import Input

from everturn.errors import EverturnError
from everturn.model.vocabulary import QUERY_RULE
from everturn.retrieval.hits import SearchHit
from everturn.retrieval.search import search
from everturn.store.contract import Store
from everturn.text.printable import short_folder
from everturn.text.times import minute, short_ago
from everturn.tui.actions import SessionActions, TypingScreen
from everturn.tui.archive import ScreenArchive, steady_text
from everturn.tui.lines import Line, Span, cut
from everturn.tui.paged_view import FeedPage, FeedWidget
from everturn.tui.session_items import StartSpot

HITS = 30


class HitItem(Struct, frozen=True):
    """A search hit: its session and turn, and one line of excerpt."""

    key: tuple[int, int]
    session: int
    spot: StartSpot | None  # None when the title or summary of the session matches
    where: Line
    snippet: Line

    def lines(self, width: int) -> list[Line]:
        return [cut(self.where, width), cut((("   ", ""), *self.snippet), width)]


class HitFeed:
    """The hits of a query. A search does not start when a newer one was typed meanwhile (`is_latest`)."""

    def __init__(self, archive: ScreenArchive, query: str, is_latest: Callable[[], bool]) -> None:
        self._archive, self.query, self._is_latest = archive, query, is_latest
        self._now = archive.clock()
        self._cursors = [""]
        self.notes: tuple[str, ...] = ()

    def page(self, store: Store, number: int) -> FeedPage:
        """Return a page of hits. Raises UsageError for an invalid query."""
        if number == 0 and not self._is_latest():
            return FeedPage(0, [], last=True)
        archive = self._archive
        cursor = self._cursors[number]
        found = search(
            store,
            archive.sources,
            self.query,
            limit=HITS,
            cursor=cursor,
            clean=archive.clean,
            now=self._now,
            collapse=True,
        )
        if found.next and number + 1 == len(self._cursors):
            self._cursors.append(found.next)
        if number == 0:
            self.notes = tuple(archive.line(note, 200) for note in found.notes)
        return FeedPage(number, [self._make_hit(one) for one in found.items], not found.next)

    def _make_hit(self, one: SearchHit) -> HitItem:
        line, session, row = self._archive.line, one.session, one.row
        about = line(one.text.title or one.text.first_prompt, 120)
        where: list[Span] = [(f"{short_ago(one.at, self._now):>4} ", "dim"), (line(session.agent, 12), "ok")]
        where.append((f" {short_folder(line(one.text.workspace, 400))}", "head"))
        where.append((f" turn {row.turn + 1}" if row is not None else " title", "bold"))
        where.append((f" {one.field.replace('_', ' ')}", "dim"))
        where.append((f" {minute(one.at)}", "dim"))
        where.append((f" and {len(one.similar)} more like it" if one.similar else "", "dim"))
        where.append((f"  {about}", ""))
        spot = None
        if row is not None:
            marks = dict.fromkeys(one.snippet[start:end] for start, end in one.spans)
            spot = StartSpot(row.seq, one.field, tuple(marks))
        shown = tuple((steady_text(text), "match" if is_match else "") for text, is_match in one.pieces)
        return HitItem((session.id, row.seq if row else -1), session.id, spot, tuple(where), shown)


_HELP = f"""
{QUERY_RULE} /a pattern/i is a regular expression.
Filters among them: agent: session: workspace: branch: role: tool: path: field: owner: machine: project: since: until: turn:3-7 error:yes taken-back:yes
"""


class SearchScreen(TypingScreen):
    """The line for the query, and the hits."""

    wait = 0.25
    empty = "nothing found"
    HELP = _HELP
    AUTO_FOCUS = "InputLine"
    BINDINGS = [
        Binding("enter", "open", "open", tooltip="read the session from this match on"),
        Binding("backspace,escape", "back", "back", tooltip="back"),
        Binding("slash", "type", "words", tooltip="type other words"),
        *SessionActions.SESSION_KEYS,
        Binding("down", "into_list", "into the list", show=False),
    ]

    def __init__(self, archive: ScreenArchive, typed: str = "") -> None:
        super().__init__(archive, 'search: words "a phrase" -not agent: tool: path: since: error:yes', typed)
        self._found: HitFeed | None = None
        self._given = typed.strip()

    def title_line(self) -> Line:
        notes = "; ".join(self._found.notes) if self._found else ""
        return ((" everturn", "head"), ("  search", "bold"), (f"  {notes}", "warn"))

    def chosen_session(self) -> int | None:
        item = self.pages.current
        return item.session if isinstance(item, HitItem) else None

    # searching ------------------------------------------------------------------------------------------------------
    def on_input_changed(self, event: Input.Changed) -> None:
        self._serial += event.input is self.typing
        super().on_input_changed(event)

    async def apply_typed(self) -> None:
        query, serial = self.typing.value.strip(), self._serial
        if len(query) < 2 or query == self._given:  # nothing but the filter that the screen was opened with
            return
        hits = HitFeed(self.archive, query, lambda: serial == self._serial)
        try:
            await self.pages.show(hits)
        except EverturnError as error:
            if serial == self._serial:
                self.say(str(error), "error")
            return
        self._found = hits
        self.top_bar.put(self.title_line())
        if serial == self._serial:
            self.show_keys()

    # keys -----------------------------------------------------------------------------------------------------------
    def on_feed_widget_chosen(self, event: FeedWidget.Chosen) -> None:
        if isinstance(event.item, HitItem):
            self.browser.open_session(event.item.session, event.item.spot)
