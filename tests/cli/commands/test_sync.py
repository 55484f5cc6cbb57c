"""The commands that take conversations in and look after them, as a person runs them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.capture.history import OTHER, SID, History


class Everturn:
    """Runs the real program with its home in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(folder / "home"), "EVERTURN_HOME": str(folder / "ev"),
            "COLUMNS": "200", "PYTHONPATH": os.pathsep.join(sys.path), "LC_ALL": "C.UTF-8",
        }  # fmt: skip
        (folder / "home").mkdir(exist_ok=True)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "everturn", *words], env=self.env, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def __call__(self, *words: str, code: int = 0) -> str:
        done = command_line.run(words, self.env)
        out, err = done.stdout.decode(), done.stderr.decode()
        assert done.returncode == code, (words, done.returncode, out, err)
        assert "Traceback" not in err
        self.err = err
        return out

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(*words, "--json", code=code))

    @property
    def archive(self) -> Path:
        return self.folder / "ev" / "archive.db"


@pytest.fixture
def everturn(tmp_path: Path) -> Everturn:
    return Everturn(tmp_path)


@pytest.fixture
def history(everturn: Everturn) -> History:
    return History(Path(everturn.env["HOME"]) / ".claude")


def test_without_a_command_history_is_archived_and_the_next_steps_are_said(
    everturn: Everturn, history: History
) -> None:
    history.write(history.turn("make it blue", "it is blue"))
    out = everturn()
    assert "added: 1 session, 1 turn, 2 messages" in out
    assert "make it blue" in out
    assert "first run" in everturn.err
    assert str(history.root) in everturn.err
    assert "everturn search" in everturn.err
    everturn()
    assert "first run" not in everturn.err


def test_without_any_history_a_sample_is_shown_in_an_archive_of_its_own(everturn: Everturn) -> None:
    everturn()
    assert "sample" in everturn.err
    assert not everturn.archive.exists()
    sample = str(everturn.folder / "ev" / "sample.db")
    assert everturn.json("sessions", "--db", sample)["items"]


def test_what_was_added_by_hand_is_shown_instead_of_a_sample(everturn: Everturn, tmp_path: Path) -> None:
    elsewhere = History(tmp_path / "elsewhere")
    everturn("add", str(elsewhere.write(elsewhere.turn("make it green", "it is green"))))
    out = everturn()
    assert "make it green" in out and "sample" not in everturn.err


def test_sync_finds_a_folder_given_by_option(everturn: Everturn, tmp_path: Path) -> None:
    elsewhere = History(tmp_path / "elsewhere")
    elsewhere.write(elsewhere.turn("a", "b"))
    assert everturn.json("sync", "--claude-dir", str(elsewhere.root))["report"]["new"] == 1
    assert everturn.json("sync", "--claude-dir", str(elsewhere.root))["report"]["unchanged"] == 1
    everturn("sync", "--claude-dir", str(tmp_path / "missing"), code=2)
    assert "there is no folder" in everturn.err


def test_sync_finds_the_folder_the_environment_names(everturn: Everturn, tmp_path: Path) -> None:
    elsewhere = History(tmp_path / "elsewhere")
    elsewhere.write(elsewhere.turn("a", "b"))
    everturn.env["CLAUDE_CONFIG_DIR"] = str(elsewhere.root)
    assert everturn.json("sync")["report"]["new"] == 1


def test_a_file_that_cannot_be_read_is_reported_and_the_rest_is_taken(everturn: Everturn, history: History) -> None:
    history.write(history.turn("a", "b"))
    os.mkfifo(history.file(OTHER))
    report = everturn.json("sync", code=4)["report"]
    assert (report["new"], len(report["failed"])) == (1, 1)
    assert "not a regular file" in everturn.err
    assert "quarantine" in everturn("doctor", code=4)


def test_watch_takes_in_what_is_written_and_stops_on_ctrl_c(everturn: Everturn, history: History) -> None:
    history.write(history.turn("first", "one"))
    process = everturn.start("sync", "--watch", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["report"]["new"] == 1
    history.grow(history.turn("second", "two"))
    grown = 0
    deadline = time.monotonic() + 60
    while not grown and time.monotonic() < deadline:
        grown = json.loads(process.stdout.readline())["report"]["messages"]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert (grown, process.returncode) == (2, 0)
    assert "Traceback" not in err
    assert everturn.json("sessions")["items"][0]["counts"]["turns"] == 2


def test_add_says_what_it_does_not_know(everturn: Everturn, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk, eggs")
    everturn("add", str(tmp_path / "notes.txt"), code=3)
    assert "no source knows this format" in everturn.err
    everturn("add", str(tmp_path / "missing.jsonl"), code=2)
    assert "there is no file or folder" in everturn.err
    assert not everturn.archive.exists() or not any(one["files"] for one in everturn.json("sources")["items"])


def test_ingest_is_another_word_for_add(everturn: Everturn, history: History) -> None:
    path = history.write(history.turn("a", "b"))
    assert everturn.json("ingest", str(path))["report"]["new"] == 1


def test_sources_can_be_listed_before_anything_is_archived(everturn: Everturn, history: History) -> None:
    (item,) = [one for one in everturn.json("sources")["items"] if one["name"] == "claude_code"]
    assert (item["folders"], item["files"]) == ([str(history.root)], 0)
    assert not everturn.archive.exists()


def test_verify_proves_the_archive_and_finds_damage(everturn: Everturn, history: History) -> None:
    history.write(history.turn("a", "b"))
    everturn("sync")
    assert "the archive is whole" in everturn("verify")
    with sqlite3.connect(everturn.archive) as database:
        database.execute("UPDATE blob SET data=substr(data, 1, length(data) - 1)")
    database.close()
    assert "WRONG" in everturn("verify", code=1)


def test_a_backup_can_be_read_and_merged_and_is_never_overwritten(
    everturn: Everturn, history: History, tmp_path: Path
) -> None:
    history.write(history.turn("a", "b"))
    everturn("sync")
    copy = tmp_path / "copy.db"
    everturn("backup", str(copy))
    assert copy.stat().st_mode & 0o777 == 0o600
    assert len(everturn.json("sessions", "--db", str(copy))["items"]) == 1
    everturn("backup", str(copy), code=2)
    history.write(history.turn("c", "d", OTHER), OTHER)
    everturn("sync")
    merged = everturn.json("merge", str(everturn.archive), "--db", str(copy))["merged"]
    assert (merged["added"], merged["same"]) == (1, 1)
    everturn("merge", str(tmp_path / "none.db"), code=3)
    everturn("merge", str(everturn.archive), code=2)
    assert "into itself" in everturn.err


def test_rebuild_makes_everything_again(everturn: Everturn, history: History) -> None:
    history.write(history.turn("findable", "b"))
    everturn("sync")
    assert everturn.json("rebuild")["versions"] == 1
    assert everturn.json("search", "findable")["items"]


def test_forget_erases_and_says_what_is_left_elsewhere(everturn: Everturn, history: History) -> None:
    history.write(history.turn("tetragrammaton", "b"))
    everturn("sync")
    everturn("forget", "1111", "--dry-run")
    assert everturn.json("sessions")["items"]
    everturn("forget", "1111", code=130)
    out = everturn("forget", "1111", "--yes")
    assert "erased 1 sessions" in out
    assert str(history.file()) in everturn.err
    assert b"tetragrammaton" not in b"".join(p.read_bytes() for p in everturn.archive.parent.rglob("*") if p.is_file())
    assert everturn.json("sync")["report"]["forgotten"] == 1
    everturn("forget", SID, "--yes", code=3)


def test_doctor_warns_of_what_the_agent_is_about_to_delete(everturn: Everturn, history: History) -> None:
    path = history.write(history.turn("a", "b"))
    old = time.time() - 28 * 86400
    os.utime(path, (old, old))
    out = everturn("doctor", code=1)
    assert "may delete" in out
    assert "everturn sync" in out
    everturn("sync")
    assert "wrote, read back and found" in everturn("doctor")
    (history.root / "settings.json").write_text(json.dumps({"cleanupPeriodDays": 365}))
    history.write(history.turn("c", "d", OTHER), OTHER)
    os.utime(history.file(OTHER), (old, old))
    assert "may delete" not in everturn("doctor", code=4)


def test_doctor_reports_types_it_does_not_know(everturn: Everturn, history: History) -> None:
    history.write(history.turn("a", "b") + b'{"type":"hologram","version":"9.9.9","sessionId":"x"}\n')
    everturn("sync")
    out = everturn("doctor", code=4)
    assert "hologram × 1 (client 9.9.9)" in out


def test_modes_and_excludes_come_from_the_config(everturn: Everturn, history: History) -> None:
    history.write(history.turn("hidden hippopotamus", "b", cwd="/home/ann/private/x"))
    history.write(history.turn("open", "d", OTHER), OTHER)
    everturn("config", "set", "capture.exclude", '["/home/ann/private"]')
    report = everturn.json("sync")["report"]
    assert (report["off"], report["new"]) == (1, 1)
    assert b"hippopotamus" not in everturn.archive.read_bytes()
