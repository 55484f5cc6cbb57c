"""The first screen: sessions, newest first, with a filter that is answered while it is typed."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.timer import Timer
from textual.widgets import Input

from everturn.errors import EverturnError
from everturn.tui.archive import ScreenArchive
from everturn.tui.deeds import SessionActions
from everturn.tui.feed import FeedItem
from everturn.tui.frame import InputLine
from everturn.tui.lines import Line
from everturn.tui.listing import SessionFeed, SessionItem, filter_of
from everturn.tui.pages import FeedWidget

WAIT = 0.15  # seconds after the last key before the archive is asked


class SessionsScreen(SessionActions):
    """The list."""

    by_item = True
    empty = "no session fits; clear the filter with esc, or look inside sessions with /"
    HELP = """
Sessions, newest first: age, agent, turns, failed calls, folder, what it is about.
The filter takes words of the title or first prompt, and agent: workspace: branch: since:7d until:2026-01-31
"""
    BINDINGS = [
        Binding("enter", "open", "open", tooltip="read the session"),
        Binding("f", "filter", "filter", tooltip="type into the filter; enter goes back to the list, esc clears it"),
        Binding("slash", "search", "search", tooltip="look for words inside all sessions"),
        *SessionActions.DEEDS,
        Binding("a", "everything", "also subagents and older editions", show=False),
        Binding("ctrl+r,f5", "reload", "read the list again", show=False),
        Binding("down", "into_list", "into the list", show=False),
    ]

    def __init__(self, archive: ScreenArchive, typed: str = "") -> None:
        super().__init__(archive)
        self.typing = InputLine("filter: words, agent: workspace: branch: since:", typed)
        self.everything = False
        self.total: int | None = None
        self._timer: Timer | None = None
        self._serial = 0

    def above(self) -> ComposeResult:
        """The filter."""
        yield self.typing

    def title_line(self) -> Line:
        """How many there are, and which they are."""
        sort = "sessions of every kind" if self.everything else "sessions"
        count = f"{self.total:,} " if self.total is not None else ""
        item = self.pages.current
        short = item.short if isinstance(item, SessionItem) else ""
        return ((" everturn", "head"), (f"  {count}{sort}", "bold"), (f"  {short}", "dim"))

    def on_mount(self) -> None:
        """Read the first page."""
        super().on_mount()
        self.do(self._load())

    async def _load(self) -> None:
        self._serial += 1
        serial, now = self._serial, self.archive.clock()
        try:
            wanted = filter_of(self.typing.value, self.archive.sources, now, self.everything)
        except EverturnError as error:
            self.say(str(error), "error")
            return
        await self.pages.show(SessionFeed(self.archive, wanted))
        total = await self.archive.ask(lambda store: store.count_sessions(wanted))
        if serial == self._serial:
            self.total = total
            self.top_bar.put(self.title_line())

    def chosen_session(self) -> int | None:
        """The session under the cursor."""
        item = self.pages.current
        return item.session if isinstance(item, SessionItem) else None

    # keys -----------------------------------------------------------------------------------------------------------
    def on_input_changed(self, event: Input.Changed) -> None:
        """Ask the archive once typing pauses."""
        if event.input is not self.typing:
            return
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(WAIT, lambda: self.do(self._load()))

    def on_pages_chosen(self, event: FeedWidget.Chosen) -> None:
        """Open it."""
        self._open(event.item)

    def action_open(self) -> None:
        """Open what is under the cursor."""
        if self.pages.current is not None:
            self._open(self.pages.current)

    def _open(self, item: FeedItem) -> None:
        if isinstance(item, SessionItem):
            self.browser.open_session(item.session)

    def action_filter(self) -> None:
        """Type into the filter."""
        self.set_focus(self.typing)

    def action_into_list(self) -> None:
        """From the filter into the list."""
        self.set_focus(self.pages)

    def action_everything(self) -> None:
        """Also, or no longer, what is not a main session."""
        self.everything = not self.everything
        self.do(self._load())

    def action_reload(self) -> None:
        """Read the list again."""
        self.do(self._load())

    def action_search(self) -> None:
        """Look inside sessions."""
        self.browser.open_search()

    def action_back(self) -> None:
        """Out of the filter; a filter goes before the program does."""
        if self._asking is None and (self.typing.value or self.typing.has_focus):
            self.typing.value = ""
            self.set_focus(self.pages)
        else:
            super().action_back()
