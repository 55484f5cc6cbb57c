"""The frame of every screen: a title line, the pages, a line of keys, and a line for input when a question is asked.

Keys are defined once, in the bindings of each screen; the line of keys and the help are made from them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from everturn.errors import EverturnError
from everturn.tui.archive import ScreenArchive
from everturn.tui.lines import STYLES, Line, Span, cut, segments, width_of
from everturn.tui.paged_view import FeedWidget

if TYPE_CHECKING:
    from everturn.tui.app import Browser

Answer = Callable[[str], Awaitable[None]]
_KEYS = {"enter": "↵", "backspace": "⌫", "escape": "esc", "question_mark": "?", "slash": "/", "left_square_bracket": "[",
         "right_square_bracket": "]", "pagedown": "pgdn", "pageup": "pgup", "colon": ":"}  # fmt: skip


_COMMON_KEYS = (Binding("question_mark", "help", "help"), Binding("q", "leave", "quit"))


class StatusBar(Widget):
    DEFAULT_CSS = "StatusBar { height: 1; }"
    line: Line = ()

    def put(self, line: Line) -> None:
        if line != self.line:
            self.line = line
            self.refresh()

    def render_line(self, y: int) -> Strip:
        return Strip(segments(cut(self.line, self.size.width))).adjust_cell_length(self.size.width, STYLES[""])


class InputLine(Input):
    DEFAULT_CSS = """
    InputLine.-textual-compact { padding: 0 1; }
    InputLine { height: 1; border: none; padding: 0 1; background: ansi_default; color: ansi_default; }
    InputLine:focus { border: none; background: ansi_default; text-style: underline; }
    """

    def __init__(self, placeholder: str, value: str = "") -> None:
        super().__init__(value, placeholder=placeholder, compact=True, select_on_focus=False)


class BrowserScreen(Screen[None]):
    by_item = False
    empty = ""
    HELP = ""
    AUTO_FOCUS = "FeedWidget"
    BINDINGS = [
        Binding("g,home", "first", "to the start", show=False),
        Binding("G,end", "last", "to the end", show=False),
        *_COMMON_KEYS,
        Binding("ctrl+c,ctrl+q", "leave", "quit", show=False, priority=True),
        Binding("escape,backspace", "back", "back", show=False),
    ]

    def __init__(self, archive: ScreenArchive) -> None:
        super().__init__()
        self.archive = archive
        self.pages = FeedWidget(archive, self.by_item, self.empty)
        self.top_bar, self.bottom_bar = StatusBar(), StatusBar()
        self._asking: InputLine | None = None
        self._answer: Answer | None = None

    def compose(self) -> ComposeResult:
        """Yield the title line, the screen's own widgets, the pages, the line of keys."""
        yield self.top_bar
        yield from self.above()
        yield self.pages
        yield self.bottom_bar

    def above(self) -> ComposeResult:
        """Yield the widgets between the title line and the pages."""
        return iter(())

    @property
    def browser(self) -> Browser:
        return cast("Browser", self.app)

    def title_line(self) -> Line:
        return ()

    # messages and questions ----------------------------------------------------------------------------------------------
    def say(self, text: str, style: str = "warn") -> None:
        """Show a message in place of the keys until the next key."""
        self.bottom_bar.put(((f" {self.archive.line(text, 400)}", style),))

    def do(self, work: Awaitable[Any]) -> None:
        """Start some work; an EverturnError is shown on the screen."""
        self.run_worker(self._run_reporting(work))

    async def _run_reporting(self, work: Awaitable[Any]) -> None:
        try:
            await work
        except EverturnError as error:
            self.say(str(error), "error")

    def ask(self, label: str, value: str, answer: Answer) -> None:
        """Ask for a line of input: enter answers, escape cancels."""
        if self._asking is not None:
            return
        self._asking, self._answer = InputLine(label, value), answer
        self.mount(self._asking, before=self.bottom_bar)
        self._asking.focus()
        self.bottom_bar.put(((f" {label}: ", "bold"), ("enter accepts, esc cancels", "dim")))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Pass the input to the question, or move from a filter to the list."""
        answer, is_answer = self._answer, event.input is self._asking
        if is_answer:
            self._stop_asking()
            if answer is not None and event.value.strip():
                self.do(answer(event.value.strip()))
        else:
            self.set_focus(self.pages)

    def _stop_asking(self) -> None:
        if self._asking is not None:
            self._asking.remove()
            self._asking = self._answer = None
            self.set_focus(self.pages)
            self.show_keys()

    # keys -----------------------------------------------------------------------------------------------------------
    def on_mount(self) -> None:
        self.top_bar.put(self.title_line())
        self.show_keys()

    def on_key(self) -> None:
        if self._asking is None:
            self.show_keys()

    on_descendant_focus = on_resize = on_key

    def on_feed_widget_moved(self, event: FeedWidget.Moved) -> None:
        """Update the title line, which may show the position."""
        self.top_bar.put(self.title_line())

    def on_feed_widget_failed(self, event: FeedWidget.Failed) -> None:
        self.say(event.why, "error")

    def show_keys(self) -> None:
        """Show as many keys as fit, help and quit always; while typing, how to leave the input."""
        if isinstance(self.focused, InputLine):
            self.bottom_bar.put(((" ↵ ↓", "bold"), (" into the list  ", "dim"), ("esc", "bold"), (" out", "dim")))
            return
        shown = [one for one in self.all_keys() if one.show]
        own, shared = shown[: -len(_COMMON_KEYS)], shown[-len(_COMMON_KEYS) :]
        while own and width_of(_keys_line([*own, *shared])) > self.size.width:
            own.pop()
        self.bottom_bar.put(_keys_line([*own, *shared]))

    def all_keys(self) -> list[Binding]:
        """Return every key of this screen, its own first."""
        bases = [base for base in type(self).__mro__ if issubclass(base, BrowserScreen)]
        return [one for base in bases for one in vars(base).get("BINDINGS", ()) if isinstance(one, Binding)]

    def action_first(self) -> None:
        self.pages.to_start()

    def action_last(self) -> None:
        self.pages.to_end()

    def action_open(self) -> None:
        """Choose the item under the cursor."""
        self.pages.action_choose()

    def action_into_list(self) -> None:
        """Move from the input to the list."""
        self.set_focus(self.pages)

    def action_help(self) -> None:
        self.browser.show_help(self)

    def action_leave(self) -> None:
        self.app.exit(0)

    def action_back(self) -> None:
        """Cancel the question, or return to the previous screen."""
        if self._asking is not None:
            self._stop_asking()
        elif len(self.app.screen_stack) > 1:
            self.app.pop_screen()


def _keys_line(keys: list[Binding]) -> Line:
    spans: list[Span] = []
    for one in keys:
        spans += [("  " if spans else " ", ""), (keys_of(one).split()[0], "bold"), (f" {one.description}", "dim")]
    return tuple(spans)


def keys_of(one: Binding) -> str:
    """Return the keys of a binding as keyboards show them."""
    return " ".join(_KEYS.get(key, key) for key in one.key.split(","))
