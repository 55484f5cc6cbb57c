"""The command line, the full screen and the browser list a session by the same fields, in the same order and words."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from everturn import clock
from everturn.cli import main
from everturn.model.archive import SessionText
from everturn.sessions.lookup import ROW_COLUMNS, RUNNING, SessionRow, lay_out_rows, put_marks
from everturn.store.contract import SessionFilter, Store, open_store
from everturn.text.printable import count_cells
from everturn.text.times import DAY
from tests.cli.desk import HOSTILE, KEY
from tests.recall.archives import put
from tests.tui.screens import NOW, Desk, Screens
from tests.web.server import served

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
WORDS = (
    "parser",
    "会话",
    "fix",
    "Überprüfung",
    "a" * 40,
    "discounts",
    HOSTILE,
    KEY,
    "café",
    "🙂",
    "\n\n",
    "— of the shop",
)
FOLDERS = (
    "",
    "/",
    "shop",
    "/home/ann/work/shop",
    "C:\\code\\billing",
    "/srv/" + "deep/" * 9 + "a-rather-long-name-of-a-folder",
)
AGES = (0, RUNNING - 1, RUNNING, 3_600_000, 5 * DAY, 40 * DAY, 900 * DAY, -2 * DAY, None)


def fill(store: Store, number: int, seed: int) -> None:
    """Sessions with everything that a row may hold."""
    chance = random.Random(seed)
    for n in range(number):
        age = chance.choice(AGES)
        kind = chance.choice(("main", "main", "main", "subagent"))
        session = put(
            store, f"{chance.getrandbits(32):08x}-{n:04d}-4333", kind, agent=chance.choice(("claude_code", "codex", "otel", "zz")),
            ended=None if age is None else NOW - age, n_turns=chance.choice((0, 1, 12, 1234)),
            n_calls=chance.choice((0, 1, 40_123)), n_errors=chance.choice((0, 0, 1, 77)),
            state=chance.choice(("current", "current", "superseded")),
        )  # fmt: skip
        title = " ".join(chance.choices(WORDS, k=chance.randrange(9)))
        with store.write():
            store.set_text(SessionText(session=session.id, title=title, workspace=chance.choice(FOLDERS)))
        if chance.random() < 0.3:
            put_marks(store, session, NOW, star=True, note="look here")


class PageTable(HTMLParser):
    """The table of a page: headings and rows of cells by their class."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.rows: list[dict[str, str]] = []
        self._cell = self._into = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr" and ("class", "line") in attrs:
            self.rows.append({})
        if tag in ("th", "td"):
            self._into, self._cell = tag, (dict(attrs)["class"] or "").split()[0]
            if tag == "td":
                self.rows[-1][self._cell] = ""
        if tag == "p":
            self._into = ""  # a note

    def handle_endtag(self, tag: str) -> None:
        self._into = "" if tag in ("th", "td") else self._into

    def handle_data(self, data: str) -> None:
        if self._into == "th":
            self.headings.append(data)
        elif self._into == "td":
            self.rows[-1][self._cell] += data


def drawn(rows: list[dict[str, str]], width: int) -> list[str]:
    """The lines that a terminal has to show, if it shows what the page does."""
    unseen = {"number": 0, "workspace": "", "ended": None, "note": "", "is_running": False}
    told = [SessionRow(**{"kind": "", **row, **unseen}) for row in rows]  # type: ignore[arg-type]
    layout = lay_out_rows(told, width)
    return ["  ".join(cells).rstrip() for cells in (layout.headings(), *map(layout.cells, told))]


def shown_on_screen(folder: Path, width: int, number: int) -> list[str]:
    """The headings and rows of the full screen, without its first column, which marks the cursor."""
    lines: list[str] = []

    async def look(screens: Screens) -> None:
        await screens.press("a")
        headings = screens.frame.headings.render_line(0).text.rstrip()  # type: ignore[attr-defined]
        lines.extend(line[1:] for line in (headings, *screens.lines()[1:-1]) if line)

    Desk(folder).browse(look, size=(width + 1, number + 10))
    return lines


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_the_three_surfaces_show_the_same_rows(
    tmp_path: Path, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 30
    store = open_store(str(tmp_path / "archive.db"))
    fill(store, number, seed=width)
    store.close()
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": str(width), "EVERTURN_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(clock, "now", lambda: NOW)
    assert main(["sessions", "--all", "--limit", "99", "--db", str(tmp_path / "archive.db")]) == 0
    listed = _STYLE.sub("", capsys.readouterr().out).splitlines()
    assert len(listed) == number + 1 and max(map(count_cells, listed)) <= width

    assert shown_on_screen(tmp_path, width, number) == listed

    with served(tmp_path / "web", url=str(tmp_path / "archive.db"), clock=lambda: NOW) as web:
        page = PageTable(web.ask("/sessions?all=1&part=1").text)
    assert drawn(page.rows, width) == listed
    assert page.headings == [column.heading for column in ROW_COLUMNS]
    assert [name for name in map(str.upper, page.headings) if name in listed[0].split()] == listed[0].split()
    assert KEY not in "".join(listed) and len([row for row in page.rows if "★" in row["title"]]) > 1


def test_a_pipe_gets_every_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = open_store(str(tmp_path / "archive.db"))
    fill(store, 9, seed=1)
    total = store.count_sessions(SessionFilter())
    store.close()
    assert main(["sessions", "--db", str(tmp_path / "archive.db")]) == 0
    headings, *lines = capsys.readouterr().out.splitlines()
    assert headings.split() == ["TITLE", "FOLDER", "AGENT", "TURNS", "CALLS", "FAILED", "ACTIVE", "SESSION"]
    assert len(lines) == total
