"""The list of sessions as a feed, and what can be typed above it.

The filter is a few words: `agent:` `workspace:` `branch:` `since:` `until:` with a value, and the rest as it stands is looked
for in titles, first prompts and summaries. It is answered by the database; a page is 200 rows and one question.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from everturn.derive.times import parse_when
from everturn.errors import UsageError
from everturn.model.archive import Session, SessionText
from everturn.model.words import SESSION_KINDS
from everturn.recall.sessions import short_ids
from everturn.store import SessionFilter, Store
from everturn.tui.archive import ScreenArchive
from everturn.tui.feed import FeedPage
from everturn.tui.lines import Line, cut, pad_line

ROWS = 200
_TITLE_CELLS = 240  # cells of a title that are kept: wider than screens are
_FILTER_NAMES = ("agent", "workspace", "branch", "since", "until")
_UNITS = ((31_536_000_000, "y"), (86_400_000, "d"), (3_600_000, "h"), (60_000, "m"))


class SessionItem(Struct, frozen=True):
    """One line of the list."""

    session: int
    short: str
    age: str
    agent: str
    turns: int
    errors: int
    folder: str
    about: str
    sort: str = ""  # what it is, where it is no main session

    @property
    def key(self) -> int:
        """The session."""
        return self.session

    def lines(self, width: int) -> list[Line]:
        """One line; narrow screens show fewer columns."""
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
    """Pages of the sessions that fit a filter, newest first."""

    def __init__(self, archive: ScreenArchive, wanted: SessionFilter) -> None:
        self._archive, self.wanted = archive, wanted
        self._cursors = [""]  # where each page begins

    def page(self, store: Store, number: int) -> FeedPage:
        """Read a page; those before it were read once, so it is known where it begins."""
        rows, following = store.sessions(self.wanted, ROWS, self._cursors[number])
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
        return SessionItem(
            session.id,
            line(short, 40),
            age_text(session.ended, now),
            line(session.agent, 12),
            session.n_turns,
            session.n_errors,
            short_folder(line(text.workspace, 400)),
            line(about, _TITLE_CELLS),
            _sort(session),
        )


def filter_of(typed: str, agents: Iterable[str], now: int, everything: bool = False) -> SessionFilter:
    """What was typed, as a filter. Raises Usage for a time that is none, or an agent that is none."""
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
        workspace=given.get("workspace", ""),
        branch=given.get("branch", ""),
        text=" ".join(words),
        since=times.get("since"),
        until=times.get("until"),
        kinds=SESSION_KINDS if everything else ("main",),
        states=("current", "superseded") if everything else ("current",),
    )


def short_folder(workspace: str) -> str:
    """The last two parts of a path, which is what people know their projects by."""
    return "/".join([part for part in workspace.replace("\\", "/").split("/") if part][-2:])


def age_text(ms: int | None, now: int) -> str:
    """How long ago, in four cells."""
    if ms is None:
        return "?"
    past = max(0, now - ms)
    return next((f"{past // size}{unit}" for size, unit in _UNITS if past >= size), "now")


def _sort(session: Session) -> str:
    sort = "" if session.kind == "main" else session.kind
    return sort if session.state == "current" else f"{sort} older".strip()


def _agent(typed: str, agents: Iterable[str]) -> str:
    """The agent whose name begins so, or holds it."""
    names = sorted(agents, key=lambda name: (name != typed, not name.startswith(typed), name))
    found = next((name for name in names if typed.lower() in name), None)
    if found is None:
        raise UsageError(f"no agent is called {typed}; `everturn sources` lists them")
    return found
