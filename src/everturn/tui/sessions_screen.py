"""The first screen: sessions, newest first, with a filter that is applied while the user types.

The filter takes `agent:` `workspace:` `branch:` `since:` `until:` with a value; the rest is looked for in titles, first
prompts and summaries. The database applies it; a page is 200 rows and one query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding

from everturn.errors import EverturnError
from everturn.sessions.lookup import RowLayout, SessionRow, lay_out_rows, list_sessions, session_row, typed_filter
from everturn.sources.agent_names import find_agent
from everturn.store.contract import SessionFilter, Store
from everturn.text.printable import plural
from everturn.tui.actions import SessionActions, TypingScreen
from everturn.tui.archive import ScreenArchive, steady_text
from everturn.tui.lines import Line, Span, cut, plain_line
from everturn.tui.paged_view import FeedPage, FeedWidget
from everturn.tui.screen_frame import StatusBar

if TYPE_CHECKING:
    from everturn.sources.contract import Source

ROWS = 200
_FILTER_NAMES = ("agent", "workspace", "branch", "since", "until")


class SessionsPage:
    """The rows of one page and their layouts, which depend on the width of the screen."""

    def __init__(self, rows: Sequence[SessionRow]) -> None:
        self.rows = rows
        self._layouts: dict[int, RowLayout] = {}

    def layout(self, width: int) -> RowLayout:
        """Return the columns that fit."""
        if width not in self._layouts:
            self._layouts[width] = lay_out_rows(self.rows, width)
        return self._layouts[width]

    def headings(self, width: int) -> Line:
        """Return the headings of the columns, behind the cell that marks the cursor."""
        return plain_line(" " + "  ".join(self.layout(width - 1).headings()), "bold")


class SessionItem(Struct, frozen=True):
    row: SessionRow
    page: SessionsPage

    @property
    def key(self) -> int:
        return self.row.number

    def lines(self, width: int) -> list[Line]:
        """Draw one line, with fewer columns on a narrow screen."""
        layout = self.page.layout(width)
        spans = list[Span]()
        for (column, _), cell in zip(layout.columns, layout.cells(self.row), strict=True):
            spans += [("  " if spans else "", ""), (steady_text(cell), _STYLES.get(column.name, ""))]
        return [cut(tuple(spans), width)]


#: The styles of the columns.
_STYLES = {"folder": "head", "agent": "ok", "kind": "warn", "failed": "error", "active": "dim", "short": "dim"}


class SessionFeed:
    """Pages of the sessions that match a filter, newest first."""

    def __init__(self, archive: ScreenArchive, session_filter: SessionFilter) -> None:
        self._archive, self.session_filter = archive, session_filter
        self._cursors = [""]  # the cursor of each page

    def page(self, store: Store, number: int) -> FeedPage:
        """Read a page. Its cursor is known, as the previous page was read before."""
        archive = self._archive
        found = list_sessions(store, self.session_filter, ROWS, self._cursors[number])
        if found.next and number + 1 == len(self._cursors):
            self._cursors.append(found.next)
        now = archive.clock()
        page = SessionsPage([session_row(one, archive.sources, now, archive.clean) for one in found.items])
        return FeedPage(number, [SessionItem(row, page) for row in page.rows], not found.next)


def filter_of(typed: str, sources: Mapping[str, Source], now: int, everything: bool = False) -> SessionFilter:
    """Parse a typed filter. Raises UsageError for an invalid time or an unknown agent."""
    words, given = list[str](), dict[str, str]()
    for word in typed.split():
        name, colon, value = word.partition(":")
        if colon and name in _FILTER_NAMES:
            given[name] = value
        else:
            words.append(word)
    if given.get("agent"):
        given["agent"] = find_agent(sources.values(), given["agent"]).name
    return typed_filter({**given, "text": " ".join(words)}, now, everything)


def _words_only(typed: str) -> str:
    """Return a typed filter without its `name:value` parts, one of which is invalid."""
    return " ".join(word for word in typed.split() if word.partition(":")[0] not in _FILTER_NAMES)


class SessionsScreen(TypingScreen):
    empty = "no session matches; clear the filter with esc, or look inside sessions with /"
    HELP = """
Sessions, newest first: title, folder, agent, turns, calls, failed calls, last activity, id.
The filter takes words of the title or first prompt, and agent: workspace: branch: since:7d until:2026-01-31
"""
    BINDINGS = [
        Binding("enter", "start", "resume", tooltip="leave, and continue the session in its agent, or else in a chat"),
        Binding("o,right", "open", "open", tooltip="read the session"),
        Binding("f", "type", "filter", tooltip="type into the filter; enter goes back to the list, esc clears it"),
        Binding("slash", "search", "search", tooltip="look for words inside all sessions"),
        *SessionActions.SESSION_KEYS,
        Binding("a", "everything", "include subagents and older versions", show=False),
        Binding("ctrl+r,f5", "reload", "read the list again", show=False),
        Binding("down", "into_list", "into the list", show=False),
    ]

    def __init__(self, archive: ScreenArchive, typed: str = "") -> None:
        super().__init__(archive, "filter: words, agent: workspace: branch: since:", typed)
        self.headings = StatusBar()
        self.everything = False
        self.total: int | None = None

    def above(self) -> ComposeResult:
        yield from super().above()
        yield self.headings

    def on_resize(self) -> None:
        super().on_key()
        self._show_headings()

    def on_feed_widget_moved(self, event: FeedWidget.Moved) -> None:
        super().on_feed_widget_moved(event)
        self._show_headings()

    def _show_headings(self) -> None:
        """Draw the headings above the rows of the page that the cursor is on."""
        item = self.pages.current
        self.headings.put(item.page.headings(self.pages.size.width) if isinstance(item, SessionItem) else ())

    def title_line(self) -> Line:
        count = "sessions" if self.total is None else plural(self.total, "session")
        kinds = " of every kind" if self.everything else ""
        item = self.pages.current
        short = item.row.short if isinstance(item, SessionItem) else ""
        return ((" everturn", "head"), (f"  {count}{kinds}", "bold"), (f"  {short}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do(self.apply_typed())

    async def apply_typed(self) -> None:
        self._serial += 1
        serial, now = self._serial, self.archive.clock()
        mistake = ""
        try:
            session_filter = filter_of(self.typing.value, self.archive.sources, now, self.everything)
        except EverturnError as error:
            mistake = str(error)
            session_filter = filter_of(_words_only(self.typing.value), {}, now, self.everything)
        await self.pages.show(SessionFeed(self.archive, session_filter))
        if mistake:
            self.say(mistake, "error")
        total = await self.archive.ask(lambda store: store.count_sessions(session_filter))
        if serial == self._serial:
            self.total = total
            self.top_bar.put(self.title_line())

    def chosen_session(self) -> int | None:
        item = self.pages.current
        return item.row.number if isinstance(item, SessionItem) else None

    # keys -----------------------------------------------------------------------------------------------------------
    def on_feed_widget_chosen(self, event: FeedWidget.Chosen) -> None:
        if isinstance(event.item, SessionItem):
            self.browser.open_session(event.item.row.number)

    def action_everything(self) -> None:
        """Toggle subagents and older versions."""
        self.everything = not self.everything
        self.do(self.apply_typed())

    def action_reload(self) -> None:
        self.do(self.apply_typed())

    def action_search(self) -> None:
        self.browser.open_search()

    def action_back(self) -> None:
        """Clear and leave the filter; without a filter, go back."""
        if self._asking is None and (self.typing.value or self.typing.has_focus):
            self.typing.value = ""
            self.set_focus(self.pages)
        else:
            super().action_back()
