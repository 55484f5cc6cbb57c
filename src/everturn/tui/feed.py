"""Pages of what is shown, and the few of them that are held.

A `Feed` gives page after page by number. A `Window` holds neighbouring pages: beyond `MOST` those go that are far from what
is being looked at, to be read again when they are. So memory does not follow the length of a list.

The widget that shows a feed: a few pages of items, a cursor, and more pages when the cursor comes near the end of them.

In lists the cursor stands on items, in texts on lines. What comes in above the cursor, goes out, or is folded open does not
move what is being looked at.
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
    """One thing that can be pointed at."""

    @property
    def key(self) -> Hashable:
        """The same for the same thing, also after it was read again."""

    def lines(self, width: int) -> list[Line]:
        """How it is drawn; each line fits into so many cells."""


class FeedPage(Struct, frozen=True):
    """Some neighbouring items. `last` when there are none behind them."""

    number: int
    items: list[FeedItem]
    last: bool = False


class Feed(Protocol):
    """Where the pages come from. Page 0 is the first; a page is asked for beside one that was given, or is the first asked."""

    def page(self, store: Store, number: int) -> FeedPage:
        """Read a page."""


class Window(Struct):
    """The pages that are held, in order and without gaps."""

    most: int = MOST
    pages: list[FeedPage] = []

    @property
    def before(self) -> int | None:
        """The number of the page before them, if there is one."""
        return self.pages[0].number - 1 if self.pages and self.pages[0].number > 0 else None

    @property
    def after(self) -> int | None:
        """The number of the page behind them, if there is one."""
        return self.pages[-1].number + 1 if self.pages and not self.pages[-1].last else None

    def items(self) -> Iterator[FeedItem]:
        """Everything held, in order."""
        for page in self.pages:
            yield from page.items

    def add(self, page: FeedPage) -> None:
        """Take in a neighbour; one that is no neighbour takes the place of all."""
        if page.number == self.after:
            self.pages.append(page)
        elif page.number == self.before:
            self.pages.insert(0, page)
        else:
            self.pages = [page]

    def trim(self, ends: list[int], first: int, last: int) -> None:
        """Let go of pages at the ends until there are no more than enough.

        `ends` says at which line each page ends; only those go that lie outside of the lines `first` to `last`.
        """
        starts = [0, *ends[:-1]]
        low, high = 0, len(self.pages)
        while high - low > self.most and ends[low] < first:
            low += 1
        while high - low > self.most and starts[high - 1] > last:
            high -= 1
        self.pages = self.pages[low:high]

    def replace(self, item: FeedItem) -> None:
        """Exchange what has the same key."""
        for page in self.pages:
            for number, one in enumerate(page.items):
                if one.key == item.key:
                    page.items[number] = item
                    return


_WHEEL = 3  # lines


class _Anchor(NamedTuple):
    """What is being looked at: a line of an item, and where on the screen it stands."""

    key: Hashable
    line: int
    row: int


class FeedWidget(Widget, can_focus=True):
    """Shows a feed. Posts `Moved` when the cursor has moved or the pages have changed, `Chosen` for enter or a double click."""

    DEFAULT_CSS = "FeedWidget { height: 1fr; }"
    BINDINGS = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup,ctrl+b,b", "turn_page(-1)", "a screen up", show=False),
        Binding("pagedown,ctrl+f,space", "turn_page(1)", "a screen down", show=False),
        Binding("enter", "choose", "open", show=False),
    ]

    class Moved(Message):
        """The cursor stands elsewhere, or there is more or less to see."""

    class Chosen(Message):
        """An item was picked."""

        def __init__(self, item: FeedItem) -> None:
            super().__init__()
            self.item = item

    class Failed(Message):
        """More could not be read."""

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

    # what is shown --------------------------------------------------------------------------------------------------
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
        """Read the pages that are held once more."""
        feed, anchor = self.feed, self._anchor()
        numbers = [page.number for page in self.window.pages]
        if feed is None or not numbers:
            return
        pages = [await self._archive.ask(lambda store, n=number: feed.page(store, n)) for number in numbers]  # type: ignore[misc]
        if feed is self.feed:
            self.window.pages = pages
            self._draw(anchor)

    def exchange(self, item: FeedItem) -> None:
        """Draw an item anew that has changed."""
        anchor = self._anchor()
        self.window.replace(item)
        self._draw(anchor)

    @property
    def current(self) -> FeedItem | None:
        """The item under the cursor."""
        return self._items[self._drawn[self.cursor][1]] if self._drawn else None

    @property
    def items(self) -> list[FeedItem]:
        """All that is held."""
        return self._items

    @property
    def number(self) -> int:
        """The number of the item under the cursor among all that are held."""
        return self._drawn[self.cursor][1] if self._drawn else 0

    def go_to(self, key: Hashable, line: int = 0) -> bool:
        """Put the cursor on a line of an item, if it is held."""
        found = next((n for n, item in enumerate(self._items) if item.key == key), None)
        if found is not None:
            self._move_cursor(self._starts[found] + line)
        return found is not None

    # moving ---------------------------------------------------------------------------------------------------------
    def action_move(self, by: int) -> None:
        """Go on by so many lines, or items in a list."""
        if not self._by_item or not self._drawn:
            self._move_cursor(self.cursor + by)
            return
        wanted = self._drawn[self.cursor][1] + by
        self._move_cursor(self._starts[max(0, min(wanted, len(self._starts) - 1))])

    def action_turn_page(self, by: int) -> None:
        """Go on by a screen."""
        step = max(1, self.size.height - 2) * by
        self.top = max(0, min(self.top + step, self._end() - self.size.height + 1))
        self._move_cursor(self.cursor + step)

    def action_choose(self) -> None:
        """Pick what is under the cursor."""
        if self.current is not None:
            self.post_message(self.Chosen(self.current))

    def to_start(self) -> None:
        """The first line that is held."""
        self._move_cursor(0)

    def to_end(self) -> None:
        """The last line that is held."""
        self._move_cursor(self._end())

    def on_click(self, event: events.Click) -> None:
        """Go there; a second click picks it."""
        self._move_cursor(self.top + event.y)
        if event.chain > 1:
            self.action_choose()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The view goes down, and takes the cursor along when it would leave it behind."""
        self._scroll(_WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The same upwards."""
        self._scroll(-_WHEEL)

    # drawing --------------------------------------------------------------------------------------------------------
    def render_line(self, y: int) -> Strip:
        """One row of the screen."""
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
        """Draw for the new width; look at the same as before."""
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
        """Cursor and view within what there is, the cursor in view, and a list's cursor on the first line of its item."""
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
        """The first line from this one on that has a match in it, within the same item."""
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
        """Read on until there is a screen more than is seen, or nothing more."""
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
        """Hold no more than a few pages, and always more than would be read again at once."""
        if len(self.window.pages) > self.window.most:
            ends, number = list[int](), 0
            for page in self.window.pages:
                number += len(page.items)
                ends.append(self._starts[number] if number < len(self._starts) else len(self._drawn))
            anchor, height = self._anchor(), max(1, self.size.height)
            self.window.trim(ends, self.top - 3 * height, self.top + 4 * height)
            self._draw(anchor)

    def _next_page(self) -> int | None:
        """The page to read next."""
        height = max(1, self.size.height)
        if len(self._drawn) - self.top < 2 * height and self.window.after is not None:
            return self.window.after
        return self.window.before if self.top < height else None


def _draw_strip(line: Line, width: int, selected: bool = False) -> Strip:
    drawn = Strip(segments(line[:1]) + segments(line[1:], selected))
    return drawn.adjust_cell_length(width, SELECTED if selected else STYLES[""])
