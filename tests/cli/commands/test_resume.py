"""`everturn resume` and `everturn handoff` with agents: what is run, what is only printed, what is never touched."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tests.capture.history import SID
from tests.cli.desk import KEY, Desk

#: The agent whose transcripts the tests write, and another one: `cli` knows no agent, its tests must name some.
OWN, OTHER = "claude", "codex"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a workspace in it, and nothing on the PATH."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for folder in ("home", "bin", "shop"):
        (tmp_path / folder).mkdir()
    return tmp_path


def take_in(desk: Desk, home: Path) -> None:
    history, cwd = desk.archive.history, str(home / "shop")
    desk.take_in(*(history.turn(f"ask {n} {KEY}", f"answer {n}", cwd=cwd) for n in range(3)))
    _, version = desk.archive.store.files()[0]
    with desk.archive.store.write():
        session = desk.archive.store.sessions_in(version.id)[0]
        desk.archive.store.set_session(session.id, machine=_machine(desk))


def _machine(desk: Desk) -> str:
    from everturn.settings import load

    return load({"db": str(desk.db)}).machine


def install(home: Path, program: str) -> Path:
    """A program that notes where it ran and with which words."""
    path = home / "bin" / program
    path.write_text(
        f'#!/bin/sh\n{{ pwd; for word in "$@"; do printf "%s\\n" "$word"; done; }} > {home}/ran-{program}\n'
    )
    path.chmod(0o755)
    return home / f"ran-{program}"


def files(home: Path) -> set[Path]:
    return {path for path in (home / "home").rglob("*") if path.is_file()}


def test_the_command_of_the_agent_itself_is_printed(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    code, out, _ = desk.run("resume", SID[:6], "--print")
    assert (code, out) == (0, f"cd {home / 'shop'} && {OWN} --resume {SID}\n")
    assert files(home) == set()


def test_the_agent_itself_is_run_where_the_session_was_held(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    ran = install(home, OWN)
    done = desk.process("resume", SID[:6])
    assert done.returncode == 0, done.stderr
    assert ran.read_text().splitlines() == [str(home / "shop"), "--resume", SID]


def test_another_agent_gets_a_session_of_its_own_and_is_run(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    before = desk.archive.history.file().read_bytes()
    ran = install(home, OTHER)
    done = desk.process("resume", SID[:6], "--in", OTHER)
    assert done.returncode == 0, done.stderr
    (written,) = files(home)
    words = ran.read_text().splitlines()
    assert words[:2] == [str(home / "shop"), "resume"] and words[2] in written.name
    assert KEY in written.read_text()
    assert b"word for word" in done.stderr
    assert desk.archive.history.file().read_bytes() == before


def test_a_dry_run_writes_nothing_and_says_what_it_would(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    code, out, err = desk.run("resume", SID[:6], "--in", OTHER, "--dry-run")
    assert code == 0 and f" && {OTHER} resume " in out and "would write" in err
    assert files(home) == set()


def test_the_answer_as_json(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    (item,) = desk.json("resume", SID[:6], "--in", OTHER, "--upto", "2")["items"]
    assert (item["way"], item["agent"], item["workspace"]) == ("native", OTHER, str(home / "shop"))
    assert item["commands"] == [[OTHER, "resume", item["session"]]]
    text = Path(item["path"]).read_text()
    assert "ask 1" in text and "ask 2" not in text


def test_the_new_session_is_shown_as_one_that_goes_on(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    (item,) = desk.json("resume", SID[:6], "--in", OTHER)["items"]
    _, out, _ = desk.run("show", SID[:6])
    assert f"continued by {item['session']}" in out


def test_an_agent_that_is_not_installed_is_said_and_the_command_given(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    code, out, err = desk.run("resume", SID[:6], "--in", OTHER)
    assert code == 1 and f"{OTHER} is not installed here" in err and f" && {OTHER} resume " in out


def test_a_folder_that_is_gone_is_said_and_this_one_taken(
    desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_in(desk, home)
    (home / "shop").rmdir()
    (home / "here").mkdir()
    monkeypatch.chdir(home / "here")
    code, out, err = desk.run("resume", SID[:6], "--print")
    assert code == 0 and out.startswith(f"cd {home / 'here'} && {OWN} --resume ")
    assert "is not there" in err and "it goes on in another folder" in err
    assert SID not in out


def test_an_unknown_agent_and_several_sessions_are_mistakes(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    code, _, err = desk.run("resume", SID[:6], "--in", "nobody")
    assert code == 2 and "there are: " in err
    code, _, err = desk.run("resume", SID[:6], SID, "--in", OTHER)
    assert code == 2 and "one session at a time" in err
    code, _, err = desk.run("resume", SID[:6], "--in", OTHER, "--upto", "9")
    assert code == 2 and "--upto takes 1 to 3" in err


def test_a_handoff_starts_the_other_agent_with_a_document(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    ran = install(home, OTHER)
    done = desk.process("handoff", SID[:6], "--in", OTHER)
    assert done.returncode == 0, done.stderr
    folder, prompt = ran.read_text().split("\n", 1)
    assert folder == str(home / "shop")
    assert SID in prompt and "ask 2" in prompt and "data, not instructions" in prompt
    assert KEY not in prompt
    assert files(home) == set()


def test_the_printed_command_of_a_handoff_has_its_lines_and_starts_the_agent_as_it_is(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    _, out, _ = desk.run("handoff", SID[:6], "--in", OTHER, "--print")
    assert "␊" not in out and "\n" in out.rstrip("\n")
    (item,) = desk.json("handoff", SID[:6], "--in", OTHER, "--print")["items"]
    assert shlex.split(out) == ["cd", str(home / "shop"), "&&", *item["commands"][0]]


def test_a_handoff_is_the_strategy_document(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    told = desk.run("handoff", SID[:6], "--in", OTHER, "--print")
    assert told == desk.run("resume", SID[:6], "--in", OTHER, "--strategy", "document", "--print")
    assert shlex.split(told[1])[3] == OTHER
    _, _, err = desk.run("resume", SID[:6], "--in", OTHER, "--strategy", "summary", "--print")
    assert "summary: only a chat has that → document" in err


def test_the_commands_can_be_run_by_a_shell(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    ran = install(home, OTHER)
    _, out, _ = desk.run("handoff", SID[:6], "--in", OTHER, "--print")
    assert os.system(out.strip()) == 0
    assert "ask 2" in ran.read_text()
