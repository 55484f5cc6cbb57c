"""A session on the screen: its turns, with tools and thinking folded away, and the ways to its relatives."""

from __future__ import annotations

from textual.binding import Binding

from everturn.tui.archive import ScreenArchive
from everturn.tui.deeds import SessionActions
from everturn.tui.items import StartSpot
from everturn.tui.lines import Line
from everturn.tui.pages import FeedWidget
from everturn.tui.telling import TranscriptFeed
from everturn.tui.told import FoldedItem, HeadingItem, LinkItem, WordsItem


class SessionScreen(SessionActions):
    """One session."""

    empty = "there is nothing in this session"
    HELP = """
❯ what was asked · ✓ ✗ … calls that went well, failed, have no result · ▸ folded · ↳ another session
"""
    BINDINGS = [
        Binding("enter", "open", "open", tooltip="unfold, fold, or go to another session"),
        Binding("backspace,escape", "back", "back", tooltip="to where you came from"),
        Binding("right_square_bracket,n", "turn(1)", "next turn", show=False),
        Binding("left_square_bracket,p", "turn(-1)", "turn before", show=False),
        Binding("v", "whole", "all", tooltip="all of what is under the cursor, on a screen of its own"),
        Binding("slash", "search", "search", tooltip="look for words in this session"),
        *SessionActions.DEEDS,
        Binding("colon", "go", "go to a turn", show=False),
        Binding("c", "context", "show what the client put in by itself", show=False),
    ]

    def __init__(self, archive: ScreenArchive, session: int, spot: StartSpot | None = None) -> None:
        super().__init__(archive)
        self._session, self._spot = session, spot
        self.feed: TranscriptFeed | None = None

    def title_line(self) -> Line:
        """Which session, which turn."""
        if self.feed is None:
            return ((" everturn", "head"),)
        text, session = self.feed.text, self.feed.session
        about = self.archive.line(text.title or text.first_prompt, 200)
        at = f"  turn {self._current_turn():,} of {session.n_turns:,}"
        return ((f" {self.feed.short}", "head"), (at, "bold"), (f"  {about}", ""))

    def on_mount(self) -> None:
        """From its beginning, or from what was looked for."""
        super().on_mount()
        self.do(self._load())

    async def _load(self) -> None:
        feed = await self.archive.ask(lambda store: TranscriptFeed(self.archive, store, self._session, self._spot))
        page, key = await self.archive.ask(feed.aim)
        self.feed = feed
        await self.pages.show(feed, page, key)

    def chosen_session(self) -> int | None:
        """This one."""
        return self._session

    # keys -----------------------------------------------------------------------------------------------------------
    def on_pages_chosen(self, event: FeedWidget.Chosen) -> None:
        """Unfold, fold, or go to a relative."""
        item = event.item
        if isinstance(item, FoldedItem):
            self.do(self._toggle_item(item))
        elif isinstance(item, LinkItem) and item.session is not None:
            self.browser.open_session(item.session)
        elif isinstance(item, WordsItem) and (item.said.before or item.said.beyond):
            self.action_whole()

    def action_open(self) -> None:
        """The same by key."""
        self.pages.action_choose()

    async def _toggle_item(self, item: FoldedItem) -> None:
        if (feed := self.feed) is not None:
            self.pages.exchange(await self.archive.ask(lambda store: feed.toggled(store, item)))
            self.pages.go_to(item.key)

    def action_whole(self) -> None:
        """All of what is under the cursor, on a screen of its own."""
        item = self.pages.current
        if isinstance(item, FoldedItem | WordsItem):
            self.do(self._show_whole(item))

    async def _show_whole(self, item: FoldedItem | WordsItem) -> None:
        from everturn.tui.reading import whole_screen

        if (feed := self.feed) is not None:
            found = await self.archive.ask(lambda store: feed.whole(store, item))
            self.app.push_screen(whole_screen(self.archive, found))

    def action_first(self) -> None:
        """The first page, wherever one is."""
        if self.feed is not None:
            self.do(self.pages.show(self.feed))

    def action_last(self) -> None:
        """The last page, without what lies between."""
        if self.feed is not None:
            self.do(self.pages.show(self.feed, self.feed.last_page, at_end=True))

    def action_turn(self, by: int) -> None:
        """The head of the next turn, or of this one, then of the one before."""
        if (feed := self.feed) is None:
            return
        here = self._current_turn() - 1
        current = self.pages.current
        on_head = isinstance(current, HeadingItem) and current.turn >= 0
        wanted = here + by if by > 0 or on_head else here
        if 0 <= wanted < feed.session.n_turns and not self.pages.go_to(("turn", wanted)):
            self.do(self._go_to_turn(wanted))

    def action_go(self) -> None:
        """Ask for the number of a turn."""

        async def answer(typed: str) -> None:
            if typed.isdecimal():
                await self._go_to_turn(int(typed[:9]) - 1)

        self.ask("go to turn", "", answer)

    async def _go_to_turn(self, turn: int) -> None:
        if (feed := self.feed) is not None:
            page, key = await self.archive.ask(lambda store: feed.page_of_turn(store, turn))
            await self.pages.show(feed, page, key)

    def action_context(self) -> None:
        """Show, or hide again, what the client put in."""
        if self.feed is not None:
            self.feed.items.context = not self.feed.items.context
            self.do(self.pages.again())

    def action_search(self) -> None:
        """Look for words, in this session first of all."""
        short = f"session:{self.feed.session.native_id} " if self.feed is not None else ""
        self.browser.open_search(short if " " not in short.strip() and '"' not in short else "")

    def _current_turn(self) -> int:
        """The number of the turn the cursor is in, counted from 1."""
        above = self.pages.items[: self.pages.number + 1]
        turns = (item.turn for item in reversed(above) if isinstance(item, HeadingItem) and item.turn >= 0)
        return next(turns, self._first_turn()) + 1

    def _first_turn(self) -> int:
        """Where no head is held above the cursor: the turn before the first one that is."""
        heads = (item.turn for item in self.pages.items if isinstance(item, HeadingItem) and item.turn >= 0)
        return max(0, next(heads, 1) - 1)
