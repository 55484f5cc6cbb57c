"""Feeds, and the widget that shows one.

A `Feed` returns pages by number. A `Window` holds neighbouring pages; beyond `MOST` it drops those far from the view,
which are read again when needed. In lists the cursor is on items, in texts on lines. Pages that come in or go out above
the cursor, and items that are opened, do not move the view.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple, Protocol

from msgspec import Struct
from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from everturn.errors import EverturnError
from everturn.store.contract import Store
from everturn.tui.archive import ScreenArchive
from everturn.tui.lines import SELECTED, STYLES, Line, segments

MOST = 8


class FeedItem(Protocol):
    """One thing that the cursor can be on."""

    @property
    def key(self) -> Hashable:
        """The identity of the item, stable when it is read again."""

    def lines(self, width: int) -> list[Line]:
        """Return the drawn lines, each at most `width` cells wide."""


class FeedPage(Struct, frozen=True):
    """Neighbouring items. `last` means that none follow."""

    number: int
    items: list[FeedItem]
    last: bool = False


class Feed(Protocol):
    """A source of pages. Page 0 is the first; every request but the first is for a neighbour of an earlier page."""

    def page(self, store: Store, number: int) -> FeedPage:
        """Read a page."""


class Window(Struct):
    """The pages in memory, in order and without gaps."""

    most: int = MOST
    pages: list[FeedPage] = []

    @property
    def before(self) -> int | None:
        return self.pages[0].number - 1 if self.pages and self.pages[0].number > 0 else None

    @property
    def after(self) -> int | None:
        return self.pages[-1].number + 1 if self.pages and not self.pages[-1].last else None

    def items(self) -> Iterator[FeedItem]:
        """Yield the items of all pages, in order."""
        for page in self.pages:
            yield from page.items

    def add(self, page: FeedPage) -> None:
        """Add a neighbouring page; any other page replaces all."""
        if page.number == self.after:
            self.pages.append(page)
        elif page.number == self.before:
            self.pages.insert(0, page)
        else:
            self.pages = [page]

    def trim(self, ends: list[int], first: int, last: int) -> None:
        """Drop pages at both ends, outside the lines `first` to `last`, until at most `most` are left."""
        starts = [0, *ends[:-1]]
        low, high = 0, len(self.pages)
        while high - low > self.most and ends[low] < first:
            low += 1
        while high - low > self.most and starts[high - 1] > last:
            high -= 1
        self.pages = self.pages[low:high]

    def replace(self, item: FeedItem) -> None:
        """Replace the item that has the same key."""
        for page in self.pages:
            for number, one in enumerate(page.items):
                if one.key == item.key:
                    page.items[number] = item
                    return


_WHEEL = 3  # lines


class _Anchor(NamedTuple):
    """The line of an item that is in view, and its row on the screen."""

    key: Hashable
    line: int
    row: int


class FeedWidget(Widget, can_focus=True):
    """Shows a feed. Posts `Moved` when the cursor or the pages change, `Chosen` for enter or a double click."""

    DEFAULT_CSS = "FeedWidget { height: 1fr; }"
    BINDINGS = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup,ctrl+b,b", "turn_page(-1)", "a screen up", show=False),
        Binding("pagedown,ctrl+f,space", "turn_page(1)", "a screen down", show=False),
    ]

    class Moved(Message):
        """The cursor moved, or the pages changed."""

    class Chosen(Message):
        """The user chose an item."""

        def __init__(self, item: FeedItem) -> None:
            super().__init__()
            self.item = item

    class Failed(Message):
        """A page could not be read."""

        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    def __init__(self, archive: ScreenArchive, by_item: bool = False, empty: str = "") -> None:
        super().__init__()
        self._archive, self._by_item, self.empty = archive, by_item, empty
        self.feed: Feed | None = None
        self.window = Window()
        self.cursor = self.top = 0
        self._items: list[FeedItem] = []
        self._drawn: list[tuple[Line, int]] = []  # each line with the number of its item
        self._starts: list[int] = []  # the first line of each item
        self._loading = False

    # content --------------------------------------------------------------------------------------------------------
    async def show(self, feed: Feed, number: int = 0, key: Hashable = None, at_end: bool = False) -> None:
        """Show a feed from one of its pages on, with the cursor on the item of that key, or at its end."""
        page = await self._archive.ask(lambda store: feed.page(store, number))
        self.feed, self.window = feed, Window(pages=[page])
        self._draw()
        self.cursor, self.top = self._end() if at_end else 0, 0
        if key is not None and self.go_to(key):
            self.cursor = self._first_match(self.cursor)
            self.top = max(0, self.cursor - self.size.height // 3)
        self._clamp_cursor()
        await self._fill()

    async def again(self) -> None:
        """Read the pages in memory again."""
        feed, anchor = self.feed, self._anchor()
        numbers = [page.number for page in self.window.pages]
        if feed is None or not numbers:
            return
        pages = [await self._archive.ask(lambda store, n=number: feed.page(store, n)) for number in numbers]  # type: ignore[misc]
        if feed is self.feed:
            self.window.pages = pages
            self._draw(anchor)

    def exchange(self, item: FeedItem) -> None:
        """Replace an item that has changed, and redraw."""
        anchor = self._anchor()
        self.window.replace(item)
        self._draw(anchor)

    @property
    def current(self) -> FeedItem | None:
        return self._items[self._drawn[self.cursor][1]] if self._drawn else None

    @property
    def items(self) -> list[FeedItem]:
        """The items in memory."""
        return self._items

    @property
    def number(self) -> int:
        """The position of the item under the cursor among the items in memory."""
        return self._drawn[self.cursor][1] if self._drawn else 0

    def go_to(self, key: Hashable, line: int = 0) -> bool:
        """Put the cursor on a line of an item, if it is in memory; return whether it is."""
        found = next((n for n, item in enumerate(self._items) if item.key == key), None)
        if found is not None:
            self._move_cursor(self._starts[found] + line)
        return found is not None

    # moving ---------------------------------------------------------------------------------------------------------
    def action_move(self, by: int) -> None:
        """Move the cursor by lines, in a list by items."""
        if not self._by_item or not self._drawn:
            self._move_cursor(self.cursor + by)
            return
        target = self._drawn[self.cursor][1] + by
        self._move_cursor(self._starts[max(0, min(target, len(self._starts) - 1))])

    def action_turn_page(self, by: int) -> None:
        step = max(1, self.size.height - 2) * by
        self.top = max(0, min(self.top + step, self._end() - self.size.height + 1))
        self._move_cursor(self.cursor + step)

    def action_choose(self) -> None:
        if self.current is not None:
            self.post_message(self.Chosen(self.current))

    def to_start(self) -> None:
        """Move to the first line in memory."""
        self._move_cursor(0)

    def to_end(self) -> None:
        """Move to the last line in memory."""
        self._move_cursor(self._end())

    def on_click(self, event: events.Click) -> None:
        """Move to the clicked line; a double click chooses it."""
        self._move_cursor(self.top + event.y)
        if event.chain > 1:
            self.action_choose()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll the view down; the cursor follows when it would leave the view."""
        self._scroll(_WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._scroll(-_WHEEL)

    # drawing --------------------------------------------------------------------------------------------------------
    def render_line(self, y: int) -> Strip:
        number, width = self.top + y, self.size.width
        if not self._drawn and y == 0 and self.feed is not None:
            return _draw_strip(((f" {self.empty}", "dim"),), width)
        if number >= len(self._drawn):
            return Strip.blank(width, STYLES[""])
        line, item = self._drawn[number]
        is_current = item == self._drawn[self.cursor][1]
        selected = is_current and self._by_item and self.has_focus
        mark = "▌" if number == self.cursor or (is_current and self._by_item) else "▏" if is_current else " "
        return _draw_strip(((mark, "head" if mark == "▌" else "dim"), *line), width, selected)

    def on_resize(self, event: events.Resize) -> None:
        """Redraw for the new width with the same line in view."""
        self._draw(self._anchor())
        self._fill_later()

    def _draw(self, anchor: _Anchor | None = None) -> None:
        self._items = list(self.window.items())
        self._drawn, self._starts = [], []
        width = max(8, self.size.width - 1)
        for number, item in enumerate(self._items):
            self._starts.append(len(self._drawn))
            self._drawn += [(line, number) for line in item.lines(width)]
        if anchor is not None:
            self._restore(anchor)
        self._clamp_cursor()

    def _anchor(self) -> _Anchor | None:
        if not self._drawn:
            return None
        number = self._drawn[self.cursor][1]
        return _Anchor(self._items[number].key, self.cursor - self._starts[number], self.cursor - self.top)

    def _restore(self, anchor: _Anchor) -> None:
        for number, item in enumerate(self._items):
            if item.key == anchor.key:
                end = self._starts[number + 1] - 1 if number + 1 < len(self._starts) else self._end()
                self.cursor = min(self._starts[number] + anchor.line, end)
                self.top = self.cursor - anchor.row
                return

    def _move_cursor(self, line: int) -> None:
        self.cursor = line
        self._clamp_cursor()
        self._fill_later()

    def _scroll(self, by: int) -> None:
        height = self.size.height
        self.top = max(0, min(self.top + by, max(0, len(self._drawn) - height)))
        self._move_cursor(max(self.top, min(self.cursor, self.top + height - 1)))

    def _clamp_cursor(self) -> None:
        """Keep cursor and view in range, the cursor in view, and in a list on the first line of its item."""
        self.cursor = max(0, min(self.cursor, self._end()))
        height = max(1, self.size.height)
        last = self.cursor
        if self._by_item and self._drawn:
            number = self._drawn[self.cursor][1]
            self.cursor = self._starts[number]
            last = self._starts[number + 1] - 1 if number + 1 < len(self._starts) else self._end()
        self.top = max(0, min(max(self.top, last - height + 1), self.cursor, max(0, len(self._drawn) - height)))
        self.refresh()
        self.post_message(self.Moved())

    def _first_match(self, line: int) -> int:
        """Return the first line with a match from this one on, within the same item."""
        _, item = self._drawn[line]
        for number in range(line, len(self._drawn)):
            drawn, owner = self._drawn[number]
            if owner != item:
                break
            if any(style == "match" for _, style in drawn):
                return number
        return line

    def _end(self) -> int:
        return max(0, len(self._drawn) - 1)

    # more pages -----------------------------------------------------------------------------------------------------
    def _fill_later(self) -> None:
        if self.feed is not None and not self._loading and self._next_page() is not None:
            self.run_worker(self._fill(), group="pages")

    async def _fill(self) -> None:
        """Read pages until there is one screen beyond the view, or no more."""
        if self._loading:
            return
        self._loading = True
        try:
            await self._read_pages()
        except EverturnError as error:
            self.post_message(self.Failed(str(error)))
        finally:
            self._loading = False

    async def _read_pages(self) -> None:
        while (number := self._next_page()) is not None and (feed := self.feed) is not None:
            page = await self._archive.ask(lambda store, n=number: feed.page(store, n))  # type: ignore[misc]
            if feed is self.feed and number == self._next_page():
                anchor = self._anchor()
                self.window.add(page)
                self._draw(anchor)
                self._trim()

    def _trim(self) -> None:
        """Drop pages far from the view, but never those that would be read again at once."""
        if len(self.window.pages) > self.window.most:
            ends, number = list[int](), 0
            for page in self.window.pages:
                number += len(page.items)
                ends.append(self._starts[number] if number < len(self._starts) else len(self._drawn))
            anchor, height = self._anchor(), max(1, self.size.height)
            self.window.trim(ends, self.top - 3 * height, self.top + 4 * height)
            self._draw(anchor)

    def _next_page(self) -> int | None:
        height = max(1, self.size.height)
        if len(self._drawn) - self.top < 2 * height and self.window.after is not None:
            return self.window.after
        return self.window.before if self.top < height else None


def _draw_strip(line: Line, width: int, selected: bool = False) -> Strip:
    drawn = Strip(segments(line[:1]) + segments(line[1:], selected))
    return drawn.adjust_cell_length(width, SELECTED if selected else STYLES[""])
