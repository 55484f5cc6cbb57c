"""The first screen: sessions, newest first, with a filter that is applied while the user types.

The filter takes `agent:` `workspace:` `branch:` `since:` `until:` with a value; the rest is looked for in titles, first
prompts and summaries. The database applies it; a page is 200 rows and one query.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding
from textual.timer import Timer
from textual.widgets import Input

from everturn.errors import EverturnError, UsageError
from everturn.model.archive import Session, SessionText
from everturn.model.vocabulary import SESSION_KINDS
from everturn.sessions.lookup import short_ids
from everturn.store.contract import SessionFilter, Store
from everturn.text.folders import resolve_folder
from everturn.text.printable import short_folder
from everturn.text.times import parse_when
from everturn.tui.actions import SessionActions
from everturn.tui.archive import ScreenArchive
from everturn.tui.lines import Line, cut, pad_line
from everturn.tui.paged_view import FeedPage, FeedWidget
from everturn.tui.screen_frame import InputLine

ROWS = 200
_TITLE_CELLS = 240  # cells of a title that are kept: wider than screens are
_FILTER_NAMES = ("agent", "workspace", "branch", "since", "until")
_UNITS = ((31_536_000_000, "y"), (86_400_000, "d"), (3_600_000, "h"), (60_000, "m"))


class SessionItem(Struct, frozen=True):
    session: int
    short: str
    age: str
    agent: str
    turns: int
    errors: int
    folder: str
    about: str
    sort: str = ""  # the kind, where it is not a current main session

    @property
    def key(self) -> int:
        return self.session

    def lines(self, width: int) -> list[Line]:
        """Draw one line, with fewer columns on a narrow screen."""
        errors = f"✗{self.errors}" if self.errors else ""
        line: list[tuple[str, str]] = [(pad_line(self.age, 4, right=True), "dim"), (" ", "")]
        if width >= 50:
            line.append((pad_line(self.agent, 12), "ok"))
        line.append((pad_line(f"{self.turns:,}", 6, right=True), ""))
        if width >= 40:
            line.append((" " + pad_line(errors, 5), "error"))
        if width >= 70:
            line.append((" " + pad_line(self.folder, min(24, width // 5)), "head"))
        if self.sort:
            line.append((f" [{self.sort}]", "warn"))
        return [cut((*line, (f" {self.about}", "")), width)]


class SessionFeed:
    """Pages of the sessions that match a filter, newest first."""

    def __init__(self, archive: ScreenArchive, session_filter: SessionFilter) -> None:
        self._archive, self.session_filter = archive, session_filter
        self._cursors = [""]  # the cursor of each page

    def page(self, store: Store, number: int) -> FeedPage:
        """Read a page. Its cursor is known, as the previous page was read before."""
        rows, following = store.sessions(self.session_filter, ROWS, self._cursors[number])
        if following and number + 1 == len(self._cursors):
            self._cursors.append(following)
        shorts = short_ids((session for session, _ in rows), store)
        now = self._archive.clock()
        return FeedPage(number, [self._make_item(one, text, shorts[one.id], now) for one, text in rows], not following)

    def _make_item(self, session: Session, text: SessionText, short: str, now: int) -> SessionItem:
        line = self._archive.line
        about = text.title or text.first_prompt or text.summary
        if not about and session.mode == "structure":
            about = "(only its structure was kept)"
        sort = "" if session.kind == "main" else session.kind
        return SessionItem(
            session.id,
            line(short, 40),
            age_text(session.ended, now),
            line(session.agent, 12),
            session.n_turns,
            session.n_errors,
            short_folder(line(text.workspace, 400)),
            line(about, _TITLE_CELLS),
            sort if session.state == "current" else f"{sort} older".strip(),
        )


def filter_of(typed: str, agents: Iterable[str], now: int, everything: bool = False) -> SessionFilter:
    """Parse a typed filter. Raises UsageError for an invalid time or an unknown agent."""
    words, given = list[str](), dict[str, str]()
    for word in typed.split():
        name, colon, value = word.partition(":")
        if colon and name in _FILTER_NAMES:
            given[name] = value
        else:
            words.append(word)
    times = {name: parse_when(given[name], now) for name in ("since", "until") if given.get(name)}
    return SessionFilter(
        agent=_agent(given["agent"], agents) if given.get("agent") else "",
        workspace=resolve_folder(given.get("workspace", "")),
        branch=given.get("branch", ""),
        text=" ".join(words),
        since=times.get("since"),
        until=times.get("until"),
        kinds=SESSION_KINDS if everything else ("main",),
        states=("current", "superseded") if everything else ("current",),
    )


def _words_only(typed: str) -> str:
    """Return a typed filter without its `name:value` parts, one of which is invalid."""
    return " ".join(word for word in typed.split() if word.partition(":")[0] not in _FILTER_NAMES)


def age_text(ms: int | None, now: int) -> str:
    """Return an age in at most four cells."""
    if ms is None:
        return "?"
    past = max(0, now - ms)
    return next((f"{past // size}{unit}" for size, unit in _UNITS if past >= size), "now")


def _agent(typed: str, agents: Iterable[str]) -> str:
    """Return the agent whose name is, starts with or contains the text. Raises UsageError."""
    names = sorted(agents, key=lambda name: (name != typed, not name.startswith(typed), name))
    found = next((name for name in names if typed.lower() in name), None)
    if found is None:
        raise UsageError(f"no agent is called {typed}; `everturn sources` lists them")
    return found


WAIT = 0.15  # seconds after the last key before the archive is asked


class SessionsScreen(SessionActions):
    by_item = True
    empty = "no session matches; clear the filter with esc, or look inside sessions with /"
    HELP = """
Sessions, newest first: age, agent, turns, failed calls, folder, what it is about.
The filter takes words of the title or first prompt, and agent: workspace: branch: since:7d until:2026-01-31
"""
    BINDINGS = [
        Binding("enter", "start", "resume", tooltip="leave, and continue the session in its agent, or else in a chat"),
        Binding("o,right", "open", "open", tooltip="read the session"),
        Binding("f", "filter", "filter", tooltip="type into the filter; enter goes back to the list, esc clears it"),
        Binding("slash", "search", "search", tooltip="look for words inside all sessions"),
        *SessionActions.SESSION_KEYS,
        Binding("a", "everything", "include subagents and older versions", show=False),
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
        yield self.typing

    def title_line(self) -> Line:
        sort = "sessions of every kind" if self.everything else "sessions"
        count = f"{self.total:,} " if self.total is not None else ""
        item = self.pages.current
        short = item.short if isinstance(item, SessionItem) else ""
        return ((" everturn", "head"), (f"  {count}{sort}", "bold"), (f"  {short}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do(self._load())

    async def _load(self) -> None:
        self._serial += 1
        serial, now = self._serial, self.archive.clock()
        mistake = ""
        try:
            session_filter = filter_of(self.typing.value, self.archive.sources, now, self.everything)
        except EverturnError as error:
            mistake = str(error)
            session_filter = filter_of(_words_only(self.typing.value), (), now, self.everything)
        await self.pages.show(SessionFeed(self.archive, session_filter))
        if mistake:
            self.say(mistake, "error")
        total = await self.archive.ask(lambda store: store.count_sessions(session_filter))
        if serial == self._serial:
            self.total = total
            self.top_bar.put(self.title_line())

    def chosen_session(self) -> int | None:
        item = self.pages.current
        return item.session if isinstance(item, SessionItem) else None

    # keys -----------------------------------------------------------------------------------------------------------
    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input is not self.typing:
            return
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(WAIT, lambda: self.do(self._load()))

    def on_feed_widget_chosen(self, event: FeedWidget.Chosen) -> None:
        if isinstance(event.item, SessionItem):
            self.browser.open_session(event.item.session)

    def action_filter(self) -> None:
        self.set_focus(self.typing)

    def action_everything(self) -> None:
        """Toggle subagents and older versions."""
        self.everything = not self.everything
        self.do(self._load())

    def action_reload(self) -> None:
        self.do(self._load())

    def action_search(self) -> None:
        self.browser.open_search()

    def action_back(self) -> None:
        """Clear and leave the filter; without a filter, go back."""
        if self._asking is None and (self.typing.value or self.typing.has_focus):
            self.typing.value = ""
            self.set_focus(self.pages)
        else:
            super().action_back()
