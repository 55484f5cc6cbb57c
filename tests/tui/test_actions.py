"""What can be done with a session, and the screens that come of it."""

from __future__ import annotations

import pytest

from everturn.model.archive import Session
from everturn.tui.actions import StartCommand, file_name, resume_command
from everturn.tui.archive import ScreenArchive
from tests.capture.history import SID, WORKSPACE
from tests.cli.desk import KEY
from tests.recall.archives import AGENT, put
from tests.tui.screens import Desk, Screens


def test_the_command_that_goes_on_is_shown_and_printed_on_leaving(desk: Desk) -> None:
    desk.take_in(desk.history.turn("hello", "hi"))

    async def look(screens: Screens) -> None:
        text = "\n".join(await screens.press("r"))
        assert SID in text
        await screens.press("enter")

    app = desk.browse(look, size=(160, 24))
    assert app.to_start is not None and app.to_start.line.startswith(f"cd {WORKSPACE} && ")
    assert app.to_start.line.endswith(SID)


@pytest.mark.parametrize("keys", [("enter",), ("o", "enter")], ids=["in the list", "at the head of a session"])
def test_one_enter_goes_on_with_a_session(desk: Desk, keys: tuple[str, ...]) -> None:
    desk.take_in(desk.history.turn("hello", "hi"))

    async def look(screens: Screens) -> None:
        await screens.press(*keys)

    app = desk.browse(look, size=(160, 24))
    assert app.to_start is not None and app.to_start.line.endswith(SID)


def test_nothing_is_printed_when_one_goes_back(desk: Desk) -> None:
    desk.take_in(desk.history.turn("hello", "hi"))

    async def look(screens: Screens) -> None:
        await screens.press("r", "escape", "q")

    assert desk.browse(look).to_start is None


@pytest.mark.parametrize(("name", "typed"), [("lonely", "lonely"), ("--agent=x.py", "-- --agent=x.py")])
def test_a_session_whose_agent_offers_nothing_goes_on_in_a_chat(desk: Desk, name: str, typed: str) -> None:
    put(desk.taken.store, name, agent="unheard-of")

    async def look(screens: Screens) -> None:
        assert f"everturn resume {typed}" in "\n".join(await screens.press("r"))
        await screens.press("enter")

    assert (desk.browse(look).to_start or StartCommand((), "", "")).line == f"everturn resume {typed}"


def test_a_session_whose_id_cannot_be_typed_is_told(desk: Desk) -> None:
    put(desk.taken.store, "a\x1b[2J", agent="unheard-of")

    async def look(screens: Screens) -> None:
        for key in ("r", "enter"):
            assert "its id cannot be used in a command" in (await screens.press(key))[-1]

    desk.browse(look)


def test_an_id_can_not_smuggle_anything_into_a_command(desk: Desk) -> None:
    archive = ScreenArchive(str(desk.db))
    made = resume_command(archive, Session(agent=AGENT, native_id="x; rm -rf ~"), "/a b/$(c)")
    assert made.startswith("cd '/a b/$(c)' && ")
    assert made.endswith("'x; rm -rf ~'")
    assert resume_command(archive, Session(agent=AGENT, native_id="a\x1b[2J"), "") == ""


def test_what_happened_is_told_as_a_document_that_can_be_saved(desk: Desk) -> None:
    desk.take_in(desk.history.turn(f"mend the parser with {KEY}", "it is mended"))

    async def look(screens: Screens) -> None:
        text = "\n".join(await screens.press("d"))
        assert "mend the parser" in text
        assert "[t1 #1]" in text
        await screens.press("s", "enter")
        assert "wrote" in screens.lines()[-1]

    desk.browse(look, size=(80, 60))
    (name,) = desk.written
    assert name.endswith(".restored.md")
    assert b"mend the parser" in desk.written[name]
    assert KEY.encode() not in desk.written[name]


def test_a_session_is_written_where_one_says(desk: Desk) -> None:
    desk.take_in(desk.history.turn(f"mend the parser with {KEY}", "it is mended"))

    async def look(screens: Screens) -> None:
        await screens.press("e")
        assert "write as Markdown to" in screens.lines()[-1]
        await screens.press("escape")
        assert desk.written == {}
        await screens.press("e", "enter")
        assert "wrote" in screens.lines()[-1]

    desk.browse(look)
    (written,) = desk.written.values()
    assert b"## Turn 1" in written
    assert KEY.encode() not in written


def test_the_help_names_every_key_of_the_screen(desk: Desk) -> None:
    desk.take_in(desk.history.turn("hello", "hi"))

    async def look(screens: Screens) -> None:
        for way in ((), ("slash", "down"), ("escape", "o"), ("d",)):
            await screens.press(*way)
            keys = screens.frame.all_keys()
            text = "\n".join(await screens.press("question_mark"))
            assert [one.key for one in keys if (one.tooltip or one.description) not in text] == []
            await screens.press("escape")

    desk.browse(look, size=(120, 50))


def test_a_name_for_a_file_is_a_plain_one(desk: Desk) -> None:
    store = desk.taken.store
    odd = put(store, "../../etc/pass wd\x1b")
    assert file_name(store, odd.id, "md") == "_.._et.md"
