"""`everturn add` of terminal recordings: what was shown and could not be placed is said, listed and kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.desk import Desk
from tests.sources.terminal.drawing import TEXT, Block, Row
from tests.sources.terminal.screens import Boxes

OVERWRITTEN = "First this was written here"
DISCARDED = "make it pink"
MENU = "Choose what to do with the colours"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "ev"))


def record(folder: Path, client: Boxes) -> tuple[str, bytes]:
    """The session as a typescript: its path and its bytes."""
    size = f'TERM="xterm-256color" COLUMNS="{client.columns}" LINES="{client.height}"'
    data = f"Script started on 2025-12-22 14:19:12-06:00 [{size}]\n".encode() + client.close()
    path = folder / "session.typescript"
    path.write_bytes(data)
    return str(path), data


def read_whole() -> Boxes:
    """A session of which everything is read."""
    client = Boxes(80, 24)
    client.ask("make it blue")
    client.answer("It is blue now.")
    return client


def with_overwritten_words() -> Boxes:
    """Words that stood on the screen for a while and were drawn over by others."""
    client = Boxes(80, 24)
    client.ask("make it blue")
    client.working = True
    client.blocks.append(block := Block([[(f"     {OVERWRITTEN}", TEXT)]]))
    for _ in range(3):
        client.draw()
    block.rows = [[("     Then something else entirely", TEXT)]]
    client.draw()
    client.draw()
    client.answer("It is blue now.")
    return client


def with_a_menu() -> Boxes:
    """A menu that fills the screen for a while: it is in no turn."""
    client = read_whole()
    lines = (MENU, "  the first choice of all", "  another one to choose from", *[""] * (client.height - 3))
    menu: list[Row] = [[(f"  {line}", TEXT)] if line else [] for line in lines]
    for _ in range(4):
        client.painter.frame(menu)
    client.draw()
    return client


def with_discarded_words() -> Boxes:
    """Words that were typed and not sent."""
    client = read_whole()
    client.type(DISCARDED)
    client.typed = ""
    client.draw()
    return client


def bytes_named(said: str, data: bytes) -> bytes:
    """The only stretch of the recording that a message names."""
    ((first, last),) = re.findall(r"bytes (\d+)–(\d+)", said)
    assert 0 < int(first) < int(last) <= len(data)
    return data[int(first) : int(last)]


def test_nothing_is_said_of_a_recording_that_was_read_whole(desk: Desk, tmp_path: Path) -> None:
    path, _ = record(tmp_path, read_whole())
    code, out, err = desk.run("add", "--as", "terminal", path)
    assert code == 0
    assert "1 turn" in out
    for word in ("% of the text", "input field", "bytes"):
        assert word not in out + err
    code, out, _ = desk.run("doctor")
    assert code == 0
    assert "readings" not in out
    assert "make it blue" in desk.run("show", "@last")[1]


def test_text_that_is_in_no_turn_is_said_with_its_share_and_bytes(desk: Desk, tmp_path: Path) -> None:
    path, data = record(tmp_path, with_a_menu())
    code, _, said = desk.run("add", "--as", "terminal", path)
    assert code == 0
    assert path in said
    assert re.search(r"\b5\d\.\d% of the text on the screen is part of no turn", said)
    assert MENU.encode() in bytes_named(said, data)
    code, listed, _ = desk.run("doctor")
    assert code == 4
    assert said.partition("session.typescript#1: ")[2].strip() in listed
    shown = desk.run("show", "@last")[1]
    assert MENU in shown
    assert "% of the text on the screen is part of no turn" in shown.partition(MENU)[2]


def test_words_that_were_drawn_over_are_part_of_their_turn(desk: Desk, tmp_path: Path) -> None:
    path, _ = record(tmp_path, with_overwritten_words())
    code, _, said = desk.run("add", "--as", "terminal", path)
    assert (code, said) == (0, "")
    shown = desk.run("show", "@last")[1]
    assert OVERWRITTEN in shown
    assert "Then something else entirely" in shown.partition(OVERWRITTEN)[2]


def test_text_that_left_the_input_field_is_said_with_its_bytes(desk: Desk, tmp_path: Path) -> None:
    path, data = record(tmp_path, with_discarded_words())
    code, _, said = desk.run("add", "--as", "terminal", path)
    assert code == 0
    assert "text left the input field" in said
    assert "% of the text" not in said
    assert DISCARDED.encode() in bytes_named(said, data)
    assert "text left the input field" in desk.run("doctor")[1]
    shown = desk.run("show", "@last")[1]
    assert DISCARDED in shown
    assert f"❯ {DISCARDED}" not in shown


def test_a_recording_added_again_says_nothing_new(desk: Desk, tmp_path: Path) -> None:
    path, _ = record(tmp_path, with_discarded_words())
    desk.run("add", "--as", "terminal", path)
    before = desk.run("doctor")[1].count("text left the input field")
    desk.run("add", "--as", "terminal", path)
    assert desk.run("doctor")[1].count("text left the input field") == before == 1


def test_doubts_are_in_the_report_for_programs_and_are_no_failures(desk: Desk, tmp_path: Path) -> None:
    path, _ = record(tmp_path, with_discarded_words())
    report = desk.json("add", "--as", "terminal", path)["report"]
    ((where, why),) = report["doubts"]
    assert where.startswith(path)
    assert why.startswith("text left the input field")
    assert report["failed"] == []
