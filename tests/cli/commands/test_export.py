"""`everturn export`: files that are identical, whole, private, and never in the way of others."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from everturn.capture.policy import Policy
from everturn.cli.commands.export import write_file
from everturn.errors import EverturnError, UsageError
from tests.capture.history import SID
from tests.cli.desk import ACTIVE, HOSTILE, KEY, Desk

VERBATIM = "verbatim: nothing is masked, secrets included\n"


def one(desk: Desk) -> bytes:
    data = desk.archive.history.turn(f"key {KEY} {HOSTILE}", "reply") + b"\xff\xfe\x00broken\r\n"
    desk.take_in(data)
    return data


def test_raw_is_the_identical_file_and_says_that_nothing_is_masked(desk: Desk) -> None:
    data = one(desk)
    done = desk.process("export", "@last", "--as", "raw")
    assert (done.returncode, done.stdout, done.stderr.decode()) == (0, data, VERBATIM)


def test_raw_into_a_file(desk: Desk, tmp_path: Path) -> None:
    data = one(desk)
    target = tmp_path / "copy.jsonl"
    code, out, err = desk.run("export", SID[:8], "--as", "raw", "--out", str(target))
    assert (code, out, target.read_bytes()) == (0, "", data)
    assert err == f"{VERBATIM}wrote {len(data):,} bytes to {target}\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_every_version_can_be_had_also_of_a_source_that_is_gone(desk: Desk) -> None:
    history = desk.archive.history
    second = history.turn("keep", "yes")
    first = second + history.turn("cut", "out")
    desk.take_in(first)
    desk.take_in(second)
    history.file().unlink()
    desk.archive.take_in()
    assert desk.process("export", SID, "--as", "raw", "--version", "1").stdout == first
    assert desk.process("export", SID, "--as", "raw", "--version", "2").stdout == second
    done = desk.process("export", SID, "--as", "raw")
    assert done.stdout == second and b"the source itself is gone" in done.stderr
    code, out, err = desk.run("export", SID, "--as", "raw", "--version", "3")
    assert (code, out) == (3, "")
    assert f"there are: 1 (first, {len(first)} bytes), 2 (truncated, {len(second)} bytes)" in err
    assert "cut" in desk.run("export", SID, "--as", "markdown", "--version", "1")[1]
    assert "cut" not in desk.run("export", SID, "--as", "markdown")[1]
    assert desk.run("export", SID, "--as", "json", "--version", "3")[0] == 3


def test_a_session_inside_a_shared_file_gets_the_whole_file_and_a_word_about_it(desk: Desk) -> None:
    history = desk.archive.history
    data = history.turn("ask", "reply") + history.line("user", "side question", isSidechain=True)
    desk.take_in(data)
    done = desk.process("export", SID, "--as", "raw")
    assert done.stdout == data and b"the file holds 2 sessions; this is the whole file" in done.stderr


def test_json_and_markdown_are_masked_unless_revealed(desk: Desk) -> None:
    one(desk)
    for form in ("json", "markdown"):
        code, out, err = desk.run("export", "@last", "--as", form)
        assert code == 0 and KEY not in out and "[REDACTED:" in out and not ACTIVE & set(out + err)
        _, out, err = desk.run("export", "@last", "--as", form, "--reveal")
        assert KEY in out and not ACTIVE & set(out + err)


def test_json_is_one_document(desk: Desk) -> None:
    one(desk)
    found = json.loads(desk.run("export", "@last", "--as", "json")[1])
    assert (found["schema"], found["session"]["id"], len(found["turns"])) == ("everturn/session@1", SID, 1)


def test_markdown_has_thinking_when_asked_for(desk: Desk) -> None:
    history = desk.archive.history
    thought = {"type": "thinking", "thinking": "deep thought", "signature": "x"}
    desk.take_in(history.line("user", "ask"), history.line("assistant", [thought]))
    assert "deep thought" not in desk.run("export", "@last", "--as", "markdown")[1]
    assert "deep thought" in desk.run("export", "@last", "--as", "markdown", "--thinking")[1]


def test_a_file_that_is_there_is_not_replaced(desk: Desk, tmp_path: Path) -> None:
    data = one(desk)
    target = tmp_path / "mine"
    target.write_text("precious")
    code, _, err = desk.run("export", "@last", "--as", "raw", "--out", str(target))
    assert (code, target.read_text()) == (2, "precious") and "--force" in err
    assert desk.run("export", "@last", "--as", "raw", "--out", str(target), "--force")[0] == 0
    assert target.read_bytes() == data
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_link_is_replaced_and_not_followed(desk: Desk, tmp_path: Path) -> None:
    one(desk)
    precious, link = tmp_path / "precious", tmp_path / "link"
    precious.write_text("precious")
    link.symlink_to(precious)
    assert desk.run("export", "@last", "--as", "raw", "--out", str(link))[0] == 2
    assert desk.run("export", "@last", "--as", "raw", "--out", str(link), "--force")[0] == 0
    assert precious.read_text() == "precious" and not link.is_symlink()
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    assert desk.run("export", "@last", "--as", "raw", "--out", str(dangling))[0] == 2


@pytest.mark.parametrize("where", ["", "missing/copy"])
def test_a_place_that_cannot_be_written_is_one_sentence(desk: Desk, tmp_path: Path, where: str) -> None:
    one(desk)
    code, out, err = desk.run("export", "@last", "--as", "markdown", "--out", str(tmp_path / where))
    assert (code, out) == (2, "") and err.count("\n") == 1


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def failing() -> object:
        yield b"half"
        raise OSError(28, "No space left on device")

    target = tmp_path / "copy"
    with pytest.raises(EverturnError, match="No space left"):
        write_file(target, failing())  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


def test_a_file_system_without_links_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    target = tmp_path / "copy"
    assert write_file(target, [b"one", b"two"]) == 6
    assert (target.read_bytes(), os.listdir(tmp_path)) == (b"onetwo", ["copy"])
    with pytest.raises(UsageError, match="already exists"):
        write_file(target, [b"three"])


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_raw_bytes_are_not_for_a_terminal(desk: Desk) -> None:
    import pty

    one(desk)
    ours, theirs = pty.openpty()
    done = desk.process("export", "@last", "--as", "raw", stdout=theirs)
    os.close(theirs)
    assert done.returncode == 2 and b"--out FILE" in done.stderr
    os.close(ours)


def test_an_id_from_a_transcript_never_becomes_a_path(desk: Desk, tmp_path: Path) -> None:
    name = "..%2f..%2fescape"
    desk.take_in(desk.archive.history.turn("ask", "reply", name), sid=name)
    before = sorted(path for path in tmp_path.rglob("*") if "archive.db" not in path.name)
    assert desk.run("export", name, "--as", "markdown")[0] == 0
    assert desk.run("export", "../../etc/passwd", "--as", "raw")[0] == 3
    assert sorted(path for path in tmp_path.rglob("*") if "archive.db" not in path.name) == before


def test_what_was_never_kept_cannot_be_exported_raw(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn("secret", "yes"), policy=Policy("structure"))
    code, out, err = desk.run("export", "@last", "--as", "raw")
    assert (code, out) == (3, "") and "never kept" in err


@pytest.mark.parametrize(
    "words", [["@last"], ["@last", "--as", "pdf"], ["--as", "raw"], ["@last", "--as", "raw", "--version", "0"]]
)
def test_a_mistake_is_one_sentence(desk: Desk, words: list[str]) -> None:
    one(desk)
    code, out, err = desk.run("export", *words)
    assert (code, out) == (2, "") and err.startswith("everturn: ") and err.count("\n") == 1
