"""Every surface says the same number of sessions: those that lists show, each once, without subagents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.analytics.cost import load_prices
from everturn.analytics.counts import family_ids
from everturn.analytics.stats import count_stats
from everturn.capture.intake import SyncReport
from everturn.cli import main
from everturn.mcp.archive import McpArchive
from everturn.mcp.server import McpServer, Peer
from everturn.sessions.lookup import resolve_session
from everturn.store.contract import AnalyticsScope, SessionFilter
from tests.capture import history
from tests.capture.history import OTHER, SID
from tests.tui.screens import Desk, Screens
from tests.web.server import Served, served

EMPTY = "77777777-2222-4333-8444-555555555555"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as made:
        yield made


def write_history(made: Served) -> list[SyncReport]:
    """Two sessions, a subagent of one, a rewritten file, a copy in another folder, and a session without a turn."""
    taken, past = made.taken, made.taken.history
    reports = []
    first = past.turn("paint the door", "it is red") + taken.busy_turn("change the parser")
    past.write(first)
    past.write(past.turn("draw a map", "done", OTHER), OTHER)
    past.write(past.line("system", "nothing was asked", EMPTY), EMPTY)
    reports.append(history.run(taken.store, past))
    copy = past.root / "projects" / "-home-ann-copy"
    copy.mkdir()
    (copy / past.file().name).write_bytes(past.file().read_bytes())
    past.write(past.turn("draw a better map", "done", OTHER), OTHER)  # rewritten: an older version is kept
    reports.append(history.run(taken.store, past))
    return reports


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 0
    said = capsys.readouterr()
    return said.out + said.err


def test_every_surface_counts_the_same_sessions(
    web: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "everturn"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_history(web)
    db = ("--db", web.site.archive.url)
    counted = {
        "sessions": int(re.findall(r"1 of (\d+)", printed(capsys, "sessions", "--limit", "1", *db))[0]),
        "sessions --json": len(json.loads(printed(capsys, "sessions", "--json", *db))["items"]),
        "home": int(re.findall(r"in the archive: (\d+) sessions", printed(capsys, *db))[0]),
        "stats": json.loads(printed(capsys, "stats", "--json", *db))["total"]["sessions"],
        "stats of main sessions": json.loads(printed(capsys, "stats", "--subagents", "own", "--json", *db))["total"][
            "sessions"
        ],
        "web home": int(re.findall(r"<b>(\d+)</b> sessions", web.ask("/").text)[0]),
        "web overview": int(re.findall(r"sessions</th>.*?(\d+)</td></tr>", web.ask("/home/overview").text)[0][-1]),
        "web sessions": int(re.findall(r">(\d+) sessions<", web.ask("/sessions").text)[0]),
        "web costs": int(re.findall(r"<dt>sessions</dt><dd>(\d+)", web.ask("/costs/total").text)[0]),
        "api stats": web.ask("/api/stats").json["total"]["sessions"],
        "api sessions": len(web.ask("/api/sessions").json["items"]),
        "library": web.taken.store.count_sessions(SessionFilter()),
    }
    mcp = McpServer(McpArchive(web.site.archive.url))
    told = mcp.answer(Peer(), "tools/call", {"name": "list_sessions", "arguments": {"limit": 1}})
    counted["mcp"] = told["structuredContent"]["total"]
    mcp.close()
    (tmp_path / "desk").mkdir()
    desk = Desk(tmp_path / "desk")
    desk.taken.store.close()
    desk.db = Path(web.site.archive.url)

    async def look(screens: Screens) -> None:
        counted["screen"] = int(re.findall(r"(\d+) sessions", screens.lines()[0])[0])

    desk.browse(look)
    assert set(counted.values()) == {3}, counted


def test_a_sync_adds_what_the_lists_have_more(web: Served) -> None:
    first, again = write_history(web)
    assert (first.sessions, first.subagents) == (3, 1)
    assert (again.sessions, again.subagents, again.rewritten, again.new) == (0, 0, 1, 1)


def test_a_session_that_is_asked_for_is_one_whatever_its_kind(web: Served) -> None:
    write_history(web)
    store = web.taken.store
    (helper,) = (one for one, _ in store.sessions(SessionFilter(kinds=("subagent", "sidechain")))[0])
    family = family_ids(store, resolve_session(store, SID), subagents=True)
    assert helper.id in family and len(family) > 2
    for only in (family, (helper.id,)):
        assert count_stats(store, AnalyticsScope(only=only), load_prices(None)).total.sessions == 1
    assert count_stats(store, AnalyticsScope(only=()), load_prices(None)).total.sessions == 0
