"""The search screen, and the way from a match to where it stands."""

from __future__ import annotations

import pytest

from everturn.tui.screen_frame import InputLine
from tests.cli.desk import KEY
from tests.tui.screens import Desk, Screens
from tests.tui.test_session_screen import at


def history(desk: Desk) -> None:
    taken = desk.taken
    long = "\n".join(f"line {n}" + (" zebra" if n == 400 else "") for n in range(800))
    reminder = desk.history.line("user", "remember the walrus", isMeta=True)
    desk.take_in(
        *(desk.history.turn(f"question {n}", f"answer {n}") for n in range(60)),
        desk.history.line("user", "run it"),
        desk.history.line("assistant", [{"type": "thinking", "thinking": "a giraffe, perhaps"}]),
        taken.use("Bash", "b1", command="make giraffes"),
        taken.back("b1", long),
        reminder,
        *(desk.history.turn(f"later {n}", f"answer {n}") for n in range(60)),
    )


def test_words_are_looked_for_while_they_are_typed_and_a_match_is_gone_to(desk: Desk) -> None:
    history(desk)

    async def look(screens: Screens) -> None:
        await screens.press("slash")
        lines = await screens.type("zebra")
        assert "tool output" in lines[1]
        assert "zebra" in lines[2]
        lines = await screens.press("enter", "enter")
        assert "turn 61 of 121" in lines[0]
        assert "▌" in lines[at(lines, "line 400 zebra")]
        assert "lines before" in "\n".join(lines)
        assert desk.rows["messages"] < 900
        assert "zebra" in "\n".join(await screens.press("backspace"))

    desk.browse(look)


@pytest.mark.slow
def test_a_match_in_what_is_folded_is_opened(desk: Desk) -> None:
    history(desk)

    async def look(screens: Screens) -> None:
        await screens.press("slash")
        for words, shown in (
            ("giraffe field:thinking", "┆ a giraffe, perhaps"),
            ("giraffes field:tool_input", "> command: make giraffes"),
            ("walrus", "remember the walrus"),
        ):
            await screens.type(words)
            lines = await screens.press("enter", "enter")
            assert "▌" in lines[at(lines, shown)]
            await screens.press("backspace", "slash")
            screens.frame.query_one(InputLine).value = ""

    desk.browse(look)


def test_a_request_that_means_nothing_is_told(desk: Desk) -> None:
    history(desk)

    async def look(screens: Screens) -> None:
        await screens.press("slash")
        lines = await screens.type("error:maybe zebra")
        assert "error" in lines[-1] and "maybe" in lines[-1]
        lines = await screens.press("escape")
        assert "1 session" in lines[0]

    desk.browse(look)


def test_only_what_was_typed_last_is_looked_for(desk: Desk) -> None:
    history(desk)

    async def look(screens: Screens) -> None:
        await screens.press("slash")
        lines = await screens.type("question 14")
        assert "question 14" in "\n".join(lines)
        await screens.pilot.press(*"zzyy", *["backspace"] * 5)
        lines = await screens.type("2")
        assert "question 12" in "\n".join(lines[1:4])

    desk.browse(look)


def test_more_matches_come_when_the_last_one_is_reached(desk: Desk) -> None:
    history(desk)

    async def look(screens: Screens) -> None:
        await screens.press("slash")
        await screens.type("answer")
        await screens.press("enter")
        pages = screens.frame.pages
        first = len(pages.items)
        for _ in range(6):
            await screens.press("G")
        assert first < 100 < len(pages.items)
        assert len({item.key for item in pages.items}) == len(pages.items)

    desk.browse(look)


def test_from_within_a_session_it_is_the_session_that_is_searched(desk: Desk) -> None:
    history(desk)
    desk.take_in(desk.history.turn("another zebra", "yes"), sid="77777777-2222-4333-8444-555555555555")

    async def look(screens: Screens) -> None:
        await screens.press("o", "slash")
        lines = await screens.type("zebra")
        assert len(screens.frame.pages.items) == 1
        assert "zebra" in "\n".join(lines)

    desk.browse(look)


def test_secrets_are_masked_in_matches(desk: Desk) -> None:
    desk.take_in(desk.history.turn(f"the sesame is {KEY} indeed", "yes"))

    async def look(screens: Screens) -> None:
        await screens.press("slash")
        lines = await screens.type("sesame")
        assert "sesame" in "\n".join(lines)
        assert KEY not in "\n".join(lines)

    desk.browse(look)
