"""The list of sessions."""

from __future__ import annotations

import pytest

from everturn.errors import UsageError
from everturn.model.archive import Session, SourceFile, Version
from everturn.sources.contract import all_sources
from everturn.text.printable import short_folder
from everturn.tui.paged_view import FeedPage, Window
from everturn.tui.sessions_screen import filter_of
from tests.cli.desk import HOSTILE, KEY
from tests.recall.archives import AGENT, put
from tests.tui.screens import NOW, Desk, Screens

AGENTS = all_sources()
HOUR = 3_600_000


def many(desk: Desk, number: int) -> None:
    """Sessions without messages, in one file; the first is the newest."""
    store = desk.taken.store
    with store.write():
        source = store.add_file(SourceFile(format=AGENT, machine="box", path="/one/file", kind="main"))
        version = store.add_version(Version(source=source, number=1))
        for n in range(number):
            row = store.open_session(Session(agent=AGENT, native_id=f"{n:08x}-0000", version=version))
            store.set_session(row.id, started=NOW - (n + 2) * HOUR, ended=NOW - (n + 1) * HOUR)


def test_the_first_screen_reads_one_page(desk: Desk) -> None:
    many(desk, 1000)

    async def look(screens: Screens) -> None:
        assert desk.rows["sessions"] == 200
        assert "1,000 sessions" in screens.lines()[0]
        assert len(screens.frame.pages.items) == 200

    desk.browse(look)


@pytest.mark.slow
def test_going_down_reads_on_and_lets_go_of_what_is_far_above(desk: Desk) -> None:
    many(desk, 3000)

    async def look(screens: Screens) -> None:
        for _ in range(20):
            await screens.press("G")
        assert "00000bb7" in screens.lines()[0]  # number 2,999
        assert len(screens.frame.pages.items) <= 10 * 200
        for _ in range(20):
            await screens.press("g")
        assert "00000000" in screens.lines()[0]

    desk.browse(look)


def test_what_is_typed_is_answered_by_the_database(desk: Desk) -> None:
    desk.take_in(desk.history.turn("mend the parser", "done"))
    desk.take_in(desk.history.turn("paint the door", "done"), sid="77777777-2222-4333-8444-555555555555")

    async def look(screens: Screens) -> None:
        await screens.press("f")
        await screens.type("parser")
        assert "mend the parser" in screens.text()
        assert "paint the door" not in screens.text()
        assert "1 session" in screens.lines()[0]
        await screens.press("escape")
        await screens.settle()
        await screens.pilot.pause(0.4)
        await screens.settle()
        assert "paint the door" in screens.text()

    desk.browse(look)


@pytest.mark.parametrize("pieces", [("since:x",), ("since", ":x"), ("s", "in", "ce:", "x")])
def test_a_filter_that_means_nothing_is_told_and_is_not_applied(desk: Desk, pieces: tuple[str, ...]) -> None:
    desk.take_in(desk.history.turn("mend the parser", "done"))

    async def look(screens: Screens) -> None:
        await screens.press("f")
        for piece in pieces:  # a slow typist, or a busy machine, filters by each beginning too
            await screens.type(piece)
        assert "is not a time" in screens.lines()[-1]
        assert "mend the parser" in screens.text()

    desk.browse(look)


def test_secrets_and_control_characters_do_not_reach_the_screen(desk: Desk) -> None:
    desk.take_in(desk.history.turn(f"use {KEY} {HOSTILE}", "no"))

    async def look(screens: Screens) -> None:
        for text in (screens.text(), "\n".join(await screens.press("o"))):
            assert KEY not in text
            assert "REDACTED" in text
            assert all(line.isprintable() for line in text.split("\n"))

    desk.browse(look)


def test_secrets_are_shown_when_they_are_asked_for(desk: Desk) -> None:
    desk.take_in(desk.history.turn(f"use {KEY}", "no"))

    async def look(screens: Screens) -> None:
        assert KEY in screens.text()

    desk.browse(look, reveal=True)


@pytest.mark.parametrize("width", [20, 32, 48, 64, 80, 200])
def test_every_line_fits_the_width(desk: Desk, width: int) -> None:
    from rich.cells import cell_len

    desk.take_in(desk.history.turn("会话恢复很重要。" * 30 + " 👩‍👩‍👧 ❤️ ok", "答" * 300 + "\n\ttabs\tand " + "x" * 500))

    async def look(screens: Screens) -> None:
        for lines in (screens.lines(), await screens.press("o"), await screens.press("question_mark")):
            assert all(cell_len(line) <= width for line in lines)
            assert any(lines)

    desk.browse(look, size=(width, 12))


def test_everything_else_is_listed_when_asked_for(desk: Desk) -> None:
    put(desk.taken.store, "main-one", ended=NOW)
    put(desk.taken.store, "main-one/agent-7", "subagent", ended=NOW)

    async def look(screens: Screens) -> None:
        assert "subagent" not in screens.text()
        assert " subagent " in "\n".join(await screens.press("a"))

    desk.browse(look)


def test_an_empty_archive_is_said_to_be_empty(desk: Desk) -> None:
    async def look(screens: Screens) -> None:
        assert "no session matches" in screens.text()
        await screens.press("enter", "r", "d", "e", "G", "g", "space", "down")
        assert len(screens.app.screen_stack) == 1

    desk.browse(look)


def test_a_filter_is_taken_apart() -> None:
    found = filter_of("agent:cl workspace:shop fix the since:2h branch:main door", AGENTS, NOW)
    assert (found.agent, found.workspace, found.branch, found.text) == ("claude_code", "shop", "main", "fix the door")
    assert found.since == NOW - 2 * HOUR
    assert filter_of("http://x:1 agent:", AGENTS, NOW).text == "http://x:1"
    with pytest.raises(UsageError, match="there is no agent 'zz'"):
        filter_of("agent:zz", AGENTS, NOW)


def test_a_folder_is_known_by_its_last_parts() -> None:
    assert short_folder("/home/ann/work/shop") == "work/shop"
    assert short_folder("C:\\code\\shop") == "code/shop"
    assert short_folder("") == ""


def test_a_window_lets_go_of_pages_that_are_far_away_only() -> None:
    window = Window(most=3)
    for number in range(6):
        window.add(FeedPage(number, [], last=number == 5))
    window.trim([10, 20, 30, 40, 50, 60], first=35, last=45)
    assert [page.number for page in window.pages] == [3, 4, 5]
    assert (window.before, window.after) == (2, None)
    window.add(FeedPage(2, []))
    window.trim([10, 20, 30, 40], first=0, last=100)  # everything is near
    assert [page.number for page in window.pages] == [2, 3, 4, 5]
    window.add(FeedPage(77, []))
    assert [page.number for page in window.pages] == [77]
