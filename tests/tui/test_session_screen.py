"""A session on the screen."""

from __future__ import annotations

import pytest

from everturn.capture.policy import Policy
from everturn.tui.lines import Line
from everturn.tui.session_items import excerpt
from tests.capture.history import SID
from tests.tui.screens import Desk, Screens


def styles_of(screens: Screens, text: str) -> set[str]:
    """The styles of the stretches that hold a text."""
    drawn: list[Line] = [line for item in screens.frame.pages.items for line in item.lines(70)]
    return {style for line in drawn for part, style in line if text in part}


def at(lines: list[str], text: str) -> int:
    """The row in which a text stands."""
    found = [number for number, line in enumerate(lines) if text in line]
    assert found, f"{text!r} is not in\n" + "\n".join(lines)
    return found[0]


async def go_to(screens: Screens, text: str) -> list[str]:
    """Put the cursor on the line with a text."""
    pages = screens.frame.pages
    pages.to_start()
    while text not in pages.render_line(pages.cursor - pages.top).text:
        before = pages.cursor
        pages.action_move(1)
        assert pages.cursor != before, f"{text!r} is nowhere"
    await screens.settle()
    return screens.lines()


def work(desk: Desk) -> bytes:
    """A turn with thinking, an edit, a failed command and two reads at once."""
    taken, line = desk.taken, desk.history.line
    edit = {"file_path": "src/door.py", "old_string": "a = 1\nb = 2\nc = 3", "new_string": "a = 1\nb = 20\nc = 3"}
    return b"".join(
        (
            line("user", "paint the door"),
            line("assistant", [{"type": "thinking", "thinking": "which colour\nis best"}]),
            taken.use("Edit", "e1", **edit),
            taken.back("e1", "it was edited"),
            taken.use("Bash", "b1", command="make door"),
            taken.back("b1", "Exit code 2\nno paint left", failed=True),
            taken.use("Read", "r1", "both", file_path="one.txt"),
            taken.use("Read", "r2", "both", file_path="two.txt"),
            taken.back("r1", "first words"),
            taken.back("r2", "second words"),
            line("assistant", [{"type": "text", "text": "The door is red now."}]),
        )
    )


def test_tools_and_thinking_are_folded_and_enter_opens_them(desk: Desk) -> None:
    desk.take_in(work(desk))

    async def look(screens: Screens) -> None:
        text = "\n".join(await screens.press("o"))
        assert "❯ paint the door" in text
        assert "The door is red now." in text
        assert "thinking · 2 lines" in text
        assert "which colour" not in text
        assert "no paint left" not in text
        await go_to(screens, "make door")
        lines = await screens.press("enter")
        assert at(lines, "> command: make door") < at(lines, "│ no paint left")
        lines = await screens.press("enter")
        assert "no paint left" not in "\n".join(lines)
        await go_to(screens, "thinking")
        assert "which colour" in "\n".join(await screens.press("enter"))

    desk.browse(look, size=(80, 40))


def test_an_edit_is_shown_as_a_diff(desk: Desk) -> None:
    desk.take_in(work(desk))

    async def look(screens: Screens) -> None:
        await screens.press("o")
        await go_to(screens, "Edit")
        lines = await screens.press("enter")
        assert at(lines, "-b = 2") + 1 == at(lines, "+b = 20")
        assert styles_of(screens, "-b = 2") == {"removed"}
        assert styles_of(screens, "+b = 20") == {"added"}
        assert "it was edited" in "\n".join(lines)

    desk.browse(look, size=(80, 40))


def test_what_failed_and_what_ran_in_parallel_can_be_told(desk: Desk) -> None:
    desk.take_in(work(desk))

    async def look(screens: Screens) -> None:
        lines = await screens.press("o")
        assert "✗ Bash  exit 2" in lines[at(lines, "make door")]
        assert "1 error" in lines[at(lines, "── Turn 1")]
        both = at(lines, "⇉ 2 calls in parallel")
        assert [line.split()[1:3] for line in lines[both + 1 : both + 3]] == [["✓", "Read"], ["✓", "Read"]]

    desk.browse(look, size=(80, 40))


def test_a_subagent_is_one_key_away_and_so_is_the_way_back(desk: Desk) -> None:
    taken = desk.taken
    taken.subagent(
        "abc1234",
        taken.helper("abc1234", "user", "look into the paint"),
        taken.helper("abc1234", "assistant", [{"type": "text", "text": "The paint is dry."}]),
    )
    desk.take_in(
        desk.history.line("user", "ask somebody"),
        taken.use("Task", "t1", prompt="look into the paint", description="look"),
        taken.back("t1", "dry", agentId="abc1234", prompt="look into the paint"),
    )

    async def look(screens: Screens) -> None:
        await screens.press("o")
        await go_to(screens, "↳ subagent agent-abc1234")
        lines = await screens.press("enter")
        assert "The paint is dry." in "\n".join(lines)
        assert "subagent of" in "\n".join(lines)
        lines = await screens.press("backspace")
        assert "ask somebody" in "\n".join(lines)
        assert "▌" in lines[at(lines, "↳ subagent")]

    desk.browse(look, size=(80, 40))


def test_what_the_client_put_in_is_shown_when_asked_for(desk: Desk) -> None:
    reminder = desk.history.line("user", "remember the milk", isMeta=True)
    desk.take_in(desk.history.turn("hello", "hi"), reminder)

    async def look(screens: Screens) -> None:
        await screens.press("o")
        assert "context" not in screens.text()
        await screens.press("c")
        await go_to(screens, "context · 1 line")
        assert "remember the milk" in "\n".join(await screens.press("enter"))
        assert "context" not in "\n".join(await screens.press("c"))

    desk.browse(look)


def test_the_end_of_a_long_session_is_reached_without_reading_it(desk: Desk) -> None:
    desk.take_in(*(desk.history.turn(f"question {n}", f"answer {n}") for n in range(1500)))

    async def look(screens: Screens) -> None:
        lines = await screens.press("o")
        assert "question 0" in "\n".join(lines)
        before = desk.rows["messages"]
        assert before < 700
        lines = await screens.press("G")
        assert "turn 1,500 of 1,500" in lines[0]
        assert "answer 1499" in "\n".join(lines)
        assert desk.rows["messages"] - before < 700
        lines = await screens.press("g")
        assert "question 0" in "\n".join(lines)

    desk.browse(look)


@pytest.mark.slow
def test_ten_thousand_turns_open_by_pages(desk: Desk) -> None:
    desk.take_in(*(desk.history.turn(f"question {n}", f"answer {n}") for n in range(10_000)))

    async def look(screens: Screens) -> None:
        await screens.press("o", "G")
        assert "answer 9999" in screens.text()
        await screens.press("colon")
        await screens.type("5000")
        lines = await screens.press("enter")
        assert "turn 5,000 of 10,000" in lines[0]
        assert desk.rows["messages"] < 2500
        assert desk.rows["turns"] < 1500

    desk.browse(look)


@pytest.mark.slow
def test_going_through_a_session_shows_every_turn_once_and_holds_a_few_pages(desk: Desk) -> None:
    desk.take_in(*(desk.history.turn(f"question {n} end", f"answer {n} end") for n in range(700)))

    async def look(screens: Screens) -> None:
        await screens.press("o")
        pages, seen = screens.frame.pages, list[str]()
        while "turn 700 of 700" not in screens.lines()[0]:
            seen += [line for line in screens.lines() if "❯" in line]
            pages.action_turn_page(1)
            await screens.settle()
        assert [f"question {n} end" in "\n".join(seen) for n in range(690)] == [True] * 690
        assert len(pages.window.pages) <= pages.window.most + 2

    desk.browse(look, size=(80, 60))


def test_a_turn_longer_than_a_page_has_one_head(desk: Desk) -> None:
    taken = desk.taken
    calls = (taken.use("Bash", f"c{n}", command=f"step {n} of it") + taken.back(f"c{n}", "ok") for n in range(200))
    desk.take_in(
        desk.history.line("user", "many steps"),
        *calls,
        b"{broken\n",
        *desk.history.turn("next", "done").splitlines(True),
    )

    async def look(screens: Screens) -> None:
        await screens.press("o")
        while "turn 2 of 2" not in screens.lines()[0]:
            screens.frame.pages.action_turn_page(1)
            await screens.settle()
        texts = ["".join(part for part, _ in line) for item in screens.frame.pages.items for line in item.lines(79)]
        assert sum("── Turn 1 " in text for text in texts) == 1
        assert sum("could not be read" in text for text in texts) == 1
        assert [f"step {n} of it" in "\n".join(texts) for n in range(200)] == [True] * 200

    desk.browse(look)


def test_turns_are_stepped_through(desk: Desk) -> None:
    desk.take_in(*(desk.history.turn(f"question {n}", "\n".join(["words"] * 30)) for n in range(60)))

    async def look(screens: Screens) -> None:
        await screens.press("o")
        lines = await screens.press("n", "n", "n")
        assert "turn 4 of 60" in lines[0]
        lines = await screens.press("down", "down", "p")
        assert "turn 4 of 60" in lines[0]
        assert "turn 3 of 60" in (await screens.press("p"))[0]

    desk.browse(look)


def test_another_width_keeps_the_place(desk: Desk) -> None:
    desk.take_in(*(desk.history.turn(f"question {n} " + "long words " * 30, f"answer {n}") for n in range(30)))

    async def look(screens: Screens) -> None:
        await screens.press("o", "n", "n", "n", "n", "n")
        assert "turn 6 of 30" in screens.lines()[0]
        await screens.pilot.resize_terminal(44, 16)
        await screens.settle()
        assert "turn 6 of 30" in screens.lines()[0]
        assert any("▌" in line for line in screens.lines())

    desk.browse(look)


def test_long_words_are_cut_and_the_whole_is_a_key_away(desk: Desk) -> None:
    desk.take_in(desk.history.turn("hello", "\n".join(f"line {n}" for n in range(500))))

    async def look(screens: Screens) -> None:
        await screens.press("o")
        await go_to(screens, "420 more lines")
        await screens.press("v")
        lines = await screens.press("G")
        assert "line 499" in "\n".join(lines)
        assert "hello" in "\n".join(await screens.press("escape", "g"))

    desk.browse(look)


def test_a_session_of_which_only_the_structure_was_kept_shows_its_calls(desk: Desk) -> None:
    desk.taken.take_in(work(desk), policy=Policy(mode="structure"))

    async def look(screens: Screens) -> None:
        lines = await screens.press("o")
        assert "without text" in "\n".join(lines)
        assert "✗" in "\n".join(lines)
        assert "paint the door" not in "\n".join(lines)
        await go_to(screens, "✗")
        assert "(nothing)" in "\n".join(await screens.press("enter"))

    desk.browse(look, size=(80, 40))


def test_a_session_can_be_opened_at_once(desk: Desk) -> None:
    number = desk.take_in(desk.history.turn("hello", "hi"))

    async def look(screens: Screens) -> None:
        assert SID in screens.text()
        assert "1 session" in "\n".join(await screens.press("escape"))

    desk.browse(look, session=number)


def test_an_excerpt_stands_around_the_match() -> None:
    text = "\n".join(f"line {n}" for n in range(100))
    found = excerpt(text, 10, ("LINE 50",))
    assert (found.before, found.beyond) == (47, 43)
    assert "line 50" in found.text.split("\n")
    assert excerpt(text, 10).text.split("\n") == [f"line {n}" for n in range(10)]
    assert excerpt(text, 0) == (text, 0, 0)
    assert excerpt("one", 10, ("absent",)) == ("one", 0, 0)
