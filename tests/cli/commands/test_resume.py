"""`everturn resume` and `everturn handoff` with agents: what is run, what is only printed, what is never touched."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from everturn.sources.claude_code.program import slug
from tests.capture.history import OTHER as OTHER_SID
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
    history.project = history.project.with_name(slug(cwd))
    history.project.mkdir()
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


def sync(desk: Desk) -> None:
    code, _, err = desk.run("sync", f"--{OWN}-dir", str(desk.archive.history.root))
    assert code == 0, err


def hold_and_move(desk: Desk, home: Path, folder: str) -> Path:
    """Hold a session, archive it, move its file into the project folder of another workspace, and archive that."""
    history, cwd = desk.archive.history, str(home / "shop")
    history.project = history.project.with_name(slug(cwd))
    history.project.mkdir()
    history.write(history.turn("ask", "answer", cwd=cwd))
    sync(desk)
    assert desk.run("resume", SID[:6], "--print")[1] == f"cd {cwd} && {OWN} --resume {SID}\n"
    target = history.project.with_name(slug(str(home / folder))) / history.file().name
    target.parent.mkdir()
    history.file().rename(target)
    sync(desk)
    return target


def test_a_session_whose_file_moved_is_opened_where_its_agent_finds_it(desk: Desk, home: Path) -> None:
    (home / "store").mkdir()
    moved = hold_and_move(desk, home, "store")
    text = desk.archive.history.turn("a", "b", OTHER_SID, cwd=str(home / "store"))
    moved.with_name(f"{OTHER_SID}.jsonl").write_bytes(text)
    code, out, _ = desk.run("resume", SID[:6], "--print")
    assert (code, out) == (0, f"cd {home / 'store'} && {OWN} --resume {SID}\n")
    assert files(home) == set()
    code, out, _ = desk.run("resume", SID[:6], "--print", "--workspace", str(home / "store"))
    assert (code, out) == (0, f"cd {home / 'store'} && {OWN} --resume {SID}\n")


def test_a_session_whose_file_moved_to_an_unknown_folder_is_written_anew(desk: Desk, home: Path) -> None:
    hold_and_move(desk, home, "nowhere")
    code, out, err = desk.run("resume", SID[:6], "--print")
    assert code == 0 and "its file is in the folder of another workspace" in err
    (written,) = files(home)
    assert out == f"cd {home / 'shop'} && {OWN} --resume {written.stem}\n"
    assert written.parent.name == slug(str(home / "shop"))


def hold_and_delete(desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[Path, bytes]:
    """Hold a session with a subagent, archive it, and delete its files; what they had."""
    history, cwd = desk.archive.history, str(home / "shop")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(history.root))
    history.project = history.project.with_name(slug(cwd))
    history.project.mkdir()
    turns = [history.turn(f"ask {n}", f"answer {n}", cwd=cwd, toolUseResult={"kept": n}) for n in range(3)]
    snapshot = b'{"type":"file-history-snapshot","messageId":"m1","snapshot":{"trackedFileBackups":{}}}\n'
    history.write(b"".join([turns[0], snapshot, *turns[1:]]))
    desk.archive.subagent("helper", desk.archive.helper("helper", "user", "look for it"))
    beside = {
        f"file-history/{SID}/0123456789abcdef@v1": "x = 1\n",
        f"tasks/{SID}/1.json": '{"id":"1","subject":"peel the walrus","status":"pending"}',
        f"todos/{SID}-agent-{SID}.json": '[\n  {"content": "count the otters", "status": "pending"}\n]\n',
    }
    for name, text in beside.items():
        (history.root / name).parent.mkdir(parents=True, exist_ok=True)
        (history.root / name).write_text(text)
    sync(desk)
    had = {path: path.read_bytes() for path in history.root.rglob("*") if path.is_file()}
    for path in had:
        path.unlink()
    assert len(had) == 2 + len(beside)
    return had


def test_a_session_whose_file_is_gone_comes_back_byte_for_byte(
    desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    had = hold_and_delete(desk, home, monkeypatch)
    told = desk.run("resume", SID[:6], "--dry-run")[2]
    assert "its file no longer exists → it is restored from the archive, byte for byte" in told
    assert all(f"would restore {path} ({len(data):,} bytes)" in told for path, data in had.items())
    assert not any(path.exists() for path in had)
    code, out, _ = desk.run("resume", SID[:6], "--print")
    assert (code, out) == (0, f"cd {home / 'shop'} && {OWN} --resume {SID}\n")
    assert {path: path.read_bytes() for path in desk.archive.history.root.rglob("*") if path.is_file()} == had
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in had)
    sync(desk)
    assert [one["id"] for one in desk.json("sessions")["items"]] == [SID]
    assert "restores" not in desk.run("resume", SID[:6], "--print")[2]


def test_a_fork_has_every_record_of_the_path_and_only_the_name_differs(
    desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    had = hold_and_delete(desk, home, monkeypatch)
    original = had[desk.archive.history.file()].splitlines()
    assert desk.run("resume", SID[:6], "--upto", "2", "--print")[0] == 0
    (made,) = [path for path in desk.archive.history.root.rglob("*.jsonl") if SID not in str(path)]
    lines = made.read_bytes().splitlines()
    assert [line.replace(made.stem.encode(), SID.encode()) for line in lines[:5]] == original[:5]
    assert [json.loads(line)["type"] for line in lines[5:]] == ["custom-title", "last-prompt"]
    assert json.loads(lines[-1])["leafUuid"] == json.loads(lines[4])["uuid"]
    sync(desk)
    found = desk.run("show", made.stem)[1]
    assert "answer 1" in found and "answer 2" not in found


def test_a_fork_in_the_other_agent_has_every_record_too(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    assert desk.run("resume", SID[:6], "--in", OTHER, "--print")[0] == 0
    (first,) = files(home)
    assert desk.run("sync")[0] == 0
    (session,) = [one["id"] for one in desk.json("sessions")["items"] if one["agent"] == OTHER]
    assert desk.run("resume", session, "--upto", "2", "--print")[0] == 0
    (second,) = files(home) - {first}
    old, new = (path.read_bytes().splitlines() for path in (first, second))
    assert new[1:] == old[1 : len(new)] and 2 < len(new) < len(old)
    meta = json.loads(new[0])["payload"]
    assert meta["forked_from_id"] == session and second.stem.endswith(meta["id"]) and meta["id"] != session


def test_a_session_with_something_forgotten_is_not_put_back(
    desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    had = hold_and_delete(desk, home, monkeypatch)
    assert desk.run("forget", SID, "--turn", "1", "--yes")[0] == 0
    code, out, err = desk.run("resume", SID[:6], "--print")
    assert code == 0 and "native: its file no longer exists → a new session is written" in err
    assert SID not in out and not any(path.exists() for path in had)


def test_the_number_of_tokens_is_said_before_anything_starts(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    for words in (("resume",), ("resume", "--in", OTHER), ("handoff", "--in", OTHER)):
        code, _, err = desk.run(*words, SID[:6], "--print")
        assert code == 0 and " tokens, which " in err and "--strategy document" not in err
        (item,) = desk.json(*words, SID[:6], "--print")["items"]
        assert f" about {item['tokens']:,} tokens" in err
    big = "lighthouse keeper " * 60_000
    desk.take_in(desk.archive.history.turn(big, "ok", OTHER_SID, cwd=str(home / "shop")), sid=OTHER_SID)
    (item,) = desk.json("resume", OTHER_SID, "--in", OTHER, "--dry-run")["items"]
    assert 110_000 < item["tokens"] < 200_000
    err = desk.run("resume", OTHER_SID, "--in", OTHER, "--dry-run")[2]
    assert f"everturn resume {OTHER_SID} --strategy document" in err


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
    assert b"verbatim" in done.stderr
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
    assert "does not exist" in err and "it continues in another folder" in err
    assert SID not in out


def test_an_unknown_agent_and_several_sessions_are_mistakes(desk: Desk, home: Path) -> None:
    take_in(desk, home)
    code, _, err = desk.run("resume", SID[:6], "--in", "nobody")
    assert code == 2 and "known agents are" in err
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
