"""Pages of what is shown, and the few of them that are held.

A `Feed` gives page after page by number. A `Window` holds neighbouring pages: beyond `MOST` those go that are far from what
is being looked at, to be read again when they are. So memory does not follow the length of a list.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Protocol

from msgspec import Struct

from everturn.store import Store
from everturn.tui.lines import Line

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
