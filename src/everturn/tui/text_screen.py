"""A screen of text: a restored session, the whole of a long item, a command, the help."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from textual.binding import Binding

from everturn.store.contract import Store
from everturn.tui.actions import SessionActions, StartCommand
from everturn.tui.archive import ScreenArchive
from everturn.tui.lines import Line, break_lines, plain_line
from everturn.tui.paged_view import FeedItem, FeedPage, FeedWidget
from everturn.tui.screen_frame import BrowserScreen, keys_of
from everturn.tui.session_items import FoldedItem, WordsItem

_LINES = 500  # of a page
_KEYS = 18  # columns for the keys in the help


class TextRow(Struct, frozen=True):
    key: int
    text: str
    style: str = ""
    indent: int = 0  # of the wrapped rest, where the screen is wide enough

    def lines(self, width: int) -> list[Line]:
        indent = self.indent if width >= 3 * self.indent else 0
        first, *more = break_lines(self.text[indent:], width - indent)
        return [
            plain_line(self.text[:indent] + first, self.style),
            *(plain_line(" " * indent + one, self.style) for one in more),
        ]


class TextFeed:
    def __init__(self, text: str, indent: int = 0) -> None:
        self._lines, self._indent = text.rstrip("\n").split("\n"), indent

    @property
    def last_page(self) -> int:
        return (len(self._lines) - 1) // _LINES

    def page(self, store: Store, number: int) -> FeedPage:
        """Return a page of lines; the archive is not read."""
        first = number * _LINES
        lines = self._lines[first : first + _LINES]
        items: list[FeedItem] = [
            TextRow(first + n, line, "head" if line.startswith("#") else "", self._indent)
            for n, line in enumerate(lines)
        ]
        return FeedPage(number, items, number >= self.last_page)


class TextScreen(SessionActions):
    BINDINGS = [
        Binding("backspace,escape", "back", "back"),
        Binding("s", "save", "save", tooltip="write it to a file"),
        Binding("enter", "open", "start the command", show=False),
    ]

    def __init__(
        self,
        archive: ScreenArchive,
        title: str,
        text: str,
        save_as: str = "",
        entered: StartCommand | None = None,
        indent: int = 0,
    ) -> None:
        super().__init__(archive)
        self._title, self._text, self._save_as, self._entered = title, text, save_as, entered
        self._feed = TextFeed(text, indent)

    def title_line(self) -> Line:
        return ((" everturn", "head"), (f"  {self._title}", "bold"))

    def all_keys(self) -> list[Binding]:
        """Return the keys, without those for which there is nothing to save or to start."""
        missing = {"save" if not self._save_as else "", "open" if self._entered is None else ""}
        return [one for one in super().all_keys() if one.action not in missing]

    def on_mount(self) -> None:
        super().on_mount()
        self.do(self.pages.show(self._feed))

    def on_feed_widget_chosen(self, event: FeedWidget.Chosen) -> None:
        """Leave and start the command, on the screen of `resume`."""
        if self._entered is not None:
            self.browser.leave_with(self._entered)

    def action_first(self) -> None:
        self.do(self.pages.show(self._feed))

    def action_last(self) -> None:
        self.do(self.pages.show(self._feed, self._feed.last_page, at_end=True))

    def action_save(self) -> None:
        if not self._save_as:
            return

        async def write(target: str) -> None:
            await self.write(target, lambda store: [self._text.encode("utf-8", "replace")])

        self.ask("write to", self._save_as, write)


def resume_screen(archive: ScreenArchive, command: str, ours: str, start: StartCommand) -> TextScreen:
    """Return the screen with the commands that resume a session: in its agent, if it has one, and with everturn."""
    parts = [f"To continue this session in its agent:\n\n{command}"] if command else []
    where = "In a chat, or with --in in another agent:" if command else "To continue this session:"
    parts += [f"{where}\n\n{ours}"] if ours else []
    text = "\n\n".join([*parts, "Enter leaves and starts the first command; esc goes back."])
    return TextScreen(archive, "resume", text, entered=start)


def whole_screen(archive: ScreenArchive, item: FoldedItem | WordsItem) -> TextScreen:
    return TextScreen(archive, "whole", "\n".join(_item_texts(item)), save_as="part.txt")


def help_screen(archive: ScreenArchive, of: BrowserScreen) -> TextScreen:
    parts = [*of.all_keys(), *(one for one in FeedWidget.BINDINGS if isinstance(one, Binding))]
    rows = {one.action: one for one in reversed(parts)}
    lines = [f"{keys_of(one):<{_KEYS}} {one.tooltip or one.description}" for one in reversed(rows.values())]
    return TextScreen(archive, "help", "\n".join((of.HELP.strip(), "", *lines) if of.HELP else lines), indent=_KEYS + 1)


def _item_texts(item: FoldedItem | WordsItem) -> Iterator[str]:
    if isinstance(item, WordsItem):
        yield item.body.text
        return
    yield "".join(text for text, _ in item.text)
    for part in item.parts or ():
        yield ""
        yield part.body.text
