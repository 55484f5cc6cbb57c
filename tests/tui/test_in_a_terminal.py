"""`everturn browse` in a real terminal: driven by keys, read off the screen."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

import everturn
from everturn.cli import main
from tests.capture.history import SID
from tests.cli.desk import HOSTILE
from tests.tmux import Pane
from tests.tui.screens import Desk

pytestmark = pytest.mark.needs("tmux")


def browsing(desk: Desk, *words: str, size: tuple[int, int] = (80, 24), env: dict[str, str] | None = None) -> Pane:
    source = str(Path(everturn.__file__).parent.parent)
    command = [sys.executable, "-m", "everturn", "browse", *words, "--db", str(desk.db)]
    return Pane(desk.db.parent, command, {**os.environ, "PYTHONPATH": source, **(env or {})}, size, desk.db.parent)


def history(desk: Desk) -> None:
    taken = desk.taken
    desk.take_in(
        desk.history.turn("mend the parser 会话恢复", "The parser is mended."),
        desk.history.line("user", "now the door"),
        taken.use("Edit", "e1", file_path="door.py", old_string="red", new_string="green"),
        taken.back("e1", "edited"),
        taken.use("Bash", "b1", command="make zebra"),
        taken.back("b1", f"Exit code 3\nno such zebra {HOSTILE}", failed=True),
    )


def test_a_session_is_opened_read_searched_and_left(desk: Desk) -> None:
    history(desk)
    with browsing(desk) as terminal:
        screen = terminal.wait("1 session")
        assert "mend the parser 会话恢复" in screen
        terminal.press("o")
        screen = terminal.wait("The parser is mended.")
        assert "❯ mend the parser 会话恢复" in screen
        assert "✗ Bash  exit 3" in screen
        terminal.press("/")
        terminal.wait("everturn  search")
        terminal.press("zebra")
        terminal.wait(lambda text: "tool output" in text or "tool input" in text)
        terminal.press("Down", "Enter")
        screen = terminal.wait("▾ ✗ Bash")
        assert "zebra" in screen
        terminal.press("q")
        assert terminal.ended() == 0


def test_an_edit_is_a_coloured_diff_and_colours_can_be_left_out(desk: Desk) -> None:
    history(desk)
    for colour, coloured in (("COLORTERM", True), ("NO_COLOR", False)):
        with browsing(desk, "@last", env={colour: "1"}) as terminal:
            terminal.wait("▸ ✓ Edit")
            terminal.press("G")
            terminal.wait("▌▸ ✗ Bash")
            terminal.press("k")
            terminal.wait("▌▸ ✓ Edit")
            terminal.press("Enter")
            terminal.wait("+green")
            screen = terminal.screen(colours=True)
            added = next(line for line in screen.splitlines() if "+green" in line)
            assert bool(re.search(r"\x1b\[(?:\d+;)*32m", added)) == coloured, repr(added)
            assert bool(re.search(r"\x1b\[(?:\d+;)*3[1-7]m", screen)) == coloured


@pytest.mark.parametrize("size", [(200, 50), (80, 24), (60, 20), (40, 12), (24, 8)])
def test_it_works_on_small_screens(desk: Desk, size: tuple[int, int]) -> None:
    history(desk)
    with browsing(desk, size=size) as terminal:
        screen = terminal.wait("mend")
        assert "? help" in screen
        terminal.press("o")
        terminal.wait("❯" if size[1] > 8 else "▌")
        terminal.press("?")
        terminal.wait("everturn  help")
        terminal.press("Escape")
        terminal.wait(lambda text: "everturn  help" not in text)
        terminal.resize(100, 30)
        terminal.wait("The parser is mended.")
        terminal.press("q")
        assert terminal.ended() == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [(80, 24), (60, 20), (200, 50)])
def test_searching_diffs_and_what_can_be_done_fit_every_size(desk: Desk, size: tuple[int, int]) -> None:
    history(desk)
    with browsing(desk, "@last", size=size) as terminal:
        terminal.wait("▸ ✓ Edit")
        terminal.press("/")
        screen = terminal.wait(lambda text: "session:" in text and "↵ ↓ into the list" in text)
        assert "no word to search for" not in screen
        terminal.type("green")
        terminal.wait("tool input")
        terminal.press("Down", "Enter")
        screen = terminal.wait("+green")
        assert "-red" in screen and "▾ ✓ Edit" in screen
        terminal.press("r")
        screen = terminal.wait("In a chat, or with --in in another agent:")
        assert f"everturnresume{SID}" in "".join(screen.split())
        terminal.press("BSpace")
        terminal.wait("+green")
        terminal.press("d")
        terminal.wait("SESSION SUMMARY")
        terminal.press("BSpace")
        terminal.wait("+green")
        terminal.press("e")
        terminal.wait("write as Markdown to")
        terminal.press("Escape")
        terminal.wait(lambda text: "write as Markdown to" not in text)  # a key right behind it would be one with Alt
        terminal.press("?")
        screen = terminal.wait("everturn  help")
        assert all(len(line) <= size[0] for line in screen.split("\n"))
        terminal.press("q")
        assert terminal.ended() == 0


def test_a_command_that_cannot_be_started_is_left_on_the_terminal(desk: Desk) -> None:
    history(desk)
    with browsing(desk, size=(140, 24), env={"PATH": str(desk.db.parent)}) as terminal:
        terminal.wait("1 session")
        terminal.press("r")
        terminal.wait("To continue this session")
        terminal.press("Enter")
        assert terminal.ended() == 1
        screen = terminal.text()
        assert "claude cannot be started: No such file or directory; the command is: cd " in screen
        assert SID in screen and "everturn  " not in screen


def test_a_file_is_written_and_never_written_over(desk: Desk) -> None:
    history(desk)
    with browsing(desk) as terminal:
        terminal.wait("1 session")
        for said in ("wrote", "already exists"):
            terminal.press("e")
            terminal.wait("write as Markdown to")
            terminal.press("Enter")
            terminal.wait(said)
    (written,) = desk.db.parent.glob("*.md")
    assert "The parser is mended." in written.read_text("utf-8")
    assert written.stat().st_mode & 0o777 == 0o600


def test_ctrl_c_leaves(desk: Desk) -> None:
    history(desk)
    with browsing(desk) as terminal:
        terminal.wait("1 session")
        terminal.press("C-c")
        assert terminal.ended() == 0


def test_without_a_terminal_one_is_told(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["browse", "--db", str(desk.db)]) == 2
    assert "browse needs a terminal" in capsys.readouterr().err


def test_without_the_library_one_is_told_what_to_install(desk: Desk) -> None:
    blocked = desk.db.parent / "blocked"
    (blocked / "textual").mkdir(parents=True)
    (blocked / "textual" / "__init__.py").write_text("raise ModuleNotFoundError('no', name='textual')")
    source = str(Path(everturn.__file__).parent.parent)
    with browsing(desk, env={"PYTHONPATH": f"{blocked}:{source}"}) as terminal:
        assert terminal.ended() == 1
        screen = terminal.text()
        assert "pip install 'everturn[browse]'" in screen.replace("\n", "")


def test_an_archive_that_is_not_there_is_told(desk: Desk) -> None:
    with browsing(desk) as terminal:
        terminal.wait("no session matches")
    desk.db = desk.db.with_name("absent.db")
    with browsing(desk) as terminal:
        assert terminal.ended() == 3
