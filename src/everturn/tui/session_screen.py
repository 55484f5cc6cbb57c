"""A session on the screen: its turns, with calls and thinking folded, and links to its relatives.

A page is a range of a hundred messages, so that a session of ten thousand turns, and a turn of ten thousand calls, opens
anywhere at the cost of one page. Results of calls are read when they are opened (`session_items.ItemBuilder`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import groupby

from msgspec.structs import replace
from textual.binding import Binding

from everturn.model.archive import Call, MessageRow, Step, Turn
from everturn.sessions.lineage import lineage
from everturn.sessions.lookup import short_ids
from everturn.sessions.messages import Passage, TurnView, has_words, passages
from everturn.store.contract import Store
from everturn.tui.actions import SessionActions
from everturn.tui.archive import ScreenArchive
from everturn.tui.lines import Line
from everturn.tui.paged_view import FeedItem, FeedPage, FeedWidget
from everturn.tui.session_items import (
    FoldedItem,
    HeadingItem,
    ItemBuilder,
    LinkItem,
    StartSpot,
    WordsItem,
    head_of,
    turn_heading,
)
from everturn.tui.text_screen import whole_screen

MESSAGES = 100  # of a page
_CACHED_TURNS = 8

Structure = tuple[Turn, list[Step], list[Call]]


class TranscriptFeed:
    def __init__(self, archive: ScreenArchive, store: Store, session: int, spot: StartSpot | None = None) -> None:
        self._archive, self._spot = archive, spot
        self.session, self.text = store.session(session)
        self.short = archive.line(short_ids([self.session], store)[self.session.id], 40)
        self.relatives = lineage(store, self.session)
        self.items = ItemBuilder(archive, self.session, self.relatives, spot.marks if spot else ())
        self._structures: dict[int, Structure] = {}

    @property
    def last_page(self) -> int:
        return max(0, self.session.n_messages - 1) // MESSAGES

    def page(self, store: Store, number: int) -> FeedPage:
        first = number * MESSAGES
        rows = list(store.messages(self.session.id, first, first + MESSAGES - 1))
        found: list[FeedItem] = (
            list(head_of(self._archive, self.session, self.text, self.relatives)) if number == 0 else []
        )
        for turn, piece in groupby(rows, key=lambda row: row.turn):
            found += self._turn_items(store, self._turn_structure(store, turn), list(piece))
        return FeedPage(number, found, number >= self.last_page)

    def aim(self, store: Store) -> tuple[int, Hashable]:
        """Return the page and the key of the item to start at, and open that item."""
        spot = self._spot
        row = next(store.messages(self.session.id, spot.seq, spot.seq), None) if spot else None
        if spot is None or row is None:
            return 0, None
        structure = self._turn_structure(store, row.turn)
        key = self.items.aim(store, spot, structure[2], self._numbered_passages(store, structure, [row]))
        return key[1] // MESSAGES, key

    def page_of_turn(self, store: Store, turn: int) -> tuple[int, Hashable]:
        first = self._turn_structure(store, max(0, min(turn, self.session.n_turns - 1)))[0]
        return first.first_seq // MESSAGES, ("turn", first.idx)

    def toggle(self, store: Store, item: FoldedItem) -> FoldedItem | WordsItem:
        """Return the item opened if it is closed, else closed. Running it twice on one item does the same as once."""
        if item.parts is None:
            self.items.opened.add(item.key)
        else:
            self.items.opened.discard(item.key)
        return self._read_item(store, item.key) or item

    def whole(self, store: Store, item: FoldedItem | WordsItem) -> FoldedItem | WordsItem:
        before = set(self.items.opened)
        self.items.opened.add(item.key)
        try:
            return self._read_item(store, item.key, 0) or item
        finally:
            self.items.opened = before

    def _read_item(self, store: Store, key: Hashable, most: int | None = None) -> FoldedItem | WordsItem | None:
        assert isinstance(key, tuple)
        row = next(store.messages(self.session.id, key[1], key[1]), None)
        numbered = self._numbered_passages(store, self._turn_structure(store, row.turn), [row]) if row else ()
        for number, passage in numbered:
            for item in self.items.of(store, passage, number, most):
                if item.key == key and isinstance(item, FoldedItem | WordsItem):
                    return item
        return None

    def _turn_structure(self, store: Store, turn: int) -> Structure:
        if turn not in self._structures:
            if len(self._structures) >= _CACHED_TURNS:
                self._structures.clear()
            found = store.turns(self.session.id, turn, turn)
            one = found[0] if found else Turn(self.session.id, turn)
            self._structures[turn] = one, store.steps(self.session.id, turn), store.calls(self.session.id, turn)
        return self._structures[turn]

    def _turn_items(self, store: Store, structure: Structure, rows: list[MessageRow]) -> Iterator[FeedItem]:
        turn = structure[0]
        if rows[0].seq <= turn.first_seq:
            yield turn_heading(turn)
        for number, passage in self._numbered_passages(store, structure, rows):
            yield from self.items.of(store, passage, number)

    def _numbered_passages(
        self, store: Store, structure: Structure, rows: list[MessageRow]
    ) -> Iterator[tuple[int, Passage]]:
        """Yield the passages of some messages of a turn, each with its number within its message."""
        turn, steps, calls = structure
        if not has_words(self.session):
            seqs = {row.seq for row in rows}
            yield from ((n, Passage("call", call=call)) for n, call in enumerate(calls) if call.seq in seqs)
            return
        piece = replace(turn, first_seq=rows[0].seq, last_seq=rows[-1].seq)
        if rows[0].seq > turn.first_seq:  # the first turn includes records before it in the file, but only once
            piece.idx = max(1, turn.idx)
        view = TurnView(piece, steps, calls, rows)
        number, seq = 0, -1
        for passage in passages(store, self._archive.sources, self.session, view):
            if passage.row is not None and passage.row.seq != seq:
                number, seq = 0, passage.row.seq
            yield number, passage
            number += 1


class SessionScreen(SessionActions):
    empty = "there is nothing in this session"
    HELP = """
❯ what was asked · ✓ ✗ … calls that succeeded, failed, have no result · ▸ folded · ↳ another session
"""
    BINDINGS = [
        Binding("enter", "open", "open", tooltip="unfold, fold, go to another session; at the head: resume"),
        Binding("backspace,escape", "back", "back", tooltip="back"),
        Binding("right_square_bracket,n", "turn(1)", "next turn", show=False),
        Binding("left_square_bracket,p", "turn(-1)", "previous turn", show=False),
        Binding("v", "whole", "all", tooltip="the whole text under the cursor, on its own screen"),
        Binding("slash", "search", "search", tooltip="find text in this session"),
        *SessionActions.SESSION_KEYS,
        Binding("colon", "go", "go to a turn", show=False),
        Binding("c", "context", "show context that the client added", show=False),
    ]

    def __init__(self, archive: ScreenArchive, session: int, spot: StartSpot | None = None) -> None:
        super().__init__(archive)
        self._session, self._spot = session, spot
        self.feed: TranscriptFeed | None = None

    def title_line(self) -> Line:
        if self.feed is None:
            return ((" everturn", "head"),)
        text, session = self.feed.text, self.feed.session
        about = self.archive.line(text.title or text.first_prompt, 200)
        at = f"  turn {self._current_turn():,} of {session.n_turns:,}"
        return ((f" {self.feed.short}", "head"), (at, "bold"), (f"  {about}", ""))

    def on_mount(self) -> None:
        """Show the session from its beginning, or from the match."""
        super().on_mount()
        self.do(self._load())

    async def _load(self) -> None:
        feed = await self.archive.ask(lambda store: TranscriptFeed(self.archive, store, self._session, self._spot))
        page, key = await self.archive.ask(feed.aim)
        self.feed = feed
        await self.pages.show(feed, page, key)

    def chosen_session(self) -> int | None:
        return self._session

    # keys -----------------------------------------------------------------------------------------------------------
    def on_feed_widget_chosen(self, event: FeedWidget.Chosen) -> None:
        """Open or close an item, show the whole of a cut text, or follow a link. At the head, go on with the session."""
        item = event.item
        if isinstance(item, FoldedItem):
            self.do(self._toggle_item(item))
        elif isinstance(item, LinkItem) and item.session is not None:
            self.browser.open_session(item.session)
        elif isinstance(item, WordsItem) and (item.body.before or item.body.beyond):
            self.action_whole()
        elif isinstance(item, HeadingItem) and item.is_head:
            self.action_start()

    async def _toggle_item(self, item: FoldedItem) -> None:
        if (feed := self.feed) is not None:
            self.pages.exchange(await self.archive.ask(lambda store: feed.toggle(store, item)))
            self.pages.go_to(item.key)

    def action_whole(self) -> None:
        item = self.pages.current
        if isinstance(item, FoldedItem | WordsItem):
            self.do(self._show_whole(item))

    async def _show_whole(self, item: FoldedItem | WordsItem) -> None:
        if (feed := self.feed) is not None:
            found = await self.archive.ask(lambda store: feed.whole(store, item))
            self.app.push_screen(whole_screen(self.archive, found))

    def action_first(self) -> None:
        if self.feed is not None:
            self.do(self.pages.show(self.feed))

    def action_last(self) -> None:
        """Show the last page without reading those between."""
        if self.feed is not None:
            self.do(self.pages.show(self.feed, self.feed.last_page, at_end=True))

    def action_turn(self, by: int) -> None:
        """Move to the heading of the next turn; backwards, of this turn, then of the previous one."""
        if (feed := self.feed) is None:
            return
        here = self._current_turn() - 1
        current = self.pages.current
        on_head = isinstance(current, HeadingItem) and current.turn >= 0
        target = here + by if by > 0 or on_head else here
        if 0 <= target < feed.session.n_turns and not self.pages.go_to(("turn", target)):
            self.do(self._go_to_turn(target))

    def action_go(self) -> None:
        async def answer(typed: str) -> None:
            if typed.isdecimal():
                await self._go_to_turn(int(typed[:9]) - 1)

        self.ask("go to turn", "", answer)

    async def _go_to_turn(self, turn: int) -> None:
        if (feed := self.feed) is not None:
            page, key = await self.archive.ask(lambda store: feed.page_of_turn(store, turn))
            await self.pages.show(feed, page, key)

    def action_context(self) -> None:
        if self.feed is not None:
            self.feed.items.context = not self.feed.items.context
            self.do(self.pages.again())

    def action_search(self) -> None:
        """Open the search, limited to this session."""
        short = f"session:{self.feed.session.native_id} " if self.feed is not None else ""
        self.browser.open_search(short if " " not in short.strip() and '"' not in short else "")

    def _current_turn(self) -> int:
        """Return the number of the turn under the cursor, counted from 1."""
        above = self.pages.items[: self.pages.number + 1]
        turns = (item.turn for item in reversed(above) if isinstance(item, HeadingItem) and item.turn >= 0)
        return next(turns, self._first_turn()) + 1

    def _first_turn(self) -> int:
        """Return the turn before the first heading in memory, for a cursor above it."""
        heads = (item.turn for item in self.pages.items if isinstance(item, HeadingItem) and item.turn >= 0)
        return max(0, next(heads, 1) - 1)
