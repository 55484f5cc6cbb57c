"""`everturn replay`: a session as it happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import everturn
from everturn.capture.policy import Policy
from tests.capture.history import SID
from tests.cli.desk import KEY, Desk


def two_turns(desk: Desk, policy: Policy | None = None) -> None:
    history, archive = desk.archive.history, desk.archive
    desk.take_in(
        history.turn("fix the walrus", f"done {KEY}"),
        history.line("user", "again"),
        archive.use("Bash", "c1", command="make walrus"),
        archive.back("c1", "built"),
        policy=policy,
    )


def test_a_pipe_gets_everything_at_once(desk: Desk) -> None:
    two_turns(desk)
    code, out, err = desk.run("replay", "@last")
    shown = desk.run("show", "@last")[1]
    assert code == 0 and "fix the walrus" in out and "make walrus" in out
    assert out == shown and KEY not in out + err


def test_turns_can_be_chosen(desk: Desk) -> None:
    two_turns(desk)
    _, out, _ = desk.run("replay", SID, "--turn", "2", "--tools")
    assert "❯ again" in out and "❯ fix the walrus" not in out and "built" in out


def test_a_session_without_words_shows_its_structure(desk: Desk) -> None:
    two_turns(desk, Policy("structure"))
    code, out, _ = desk.run("replay", "@last")
    assert code == 0 and "Bash" in out and "walrus" not in out
    items = desk.json("replay", "@last")["items"]
    assert [step["tool"] for item in items for step in item["steps"]] == ["Bash"]


def test_json_says_when(desk: Desk) -> None:
    two_turns(desk)
    first, second = desk.json("replay", "@last")["items"]
    assert (first["turn"], first["after_ms"], second["turn"], second["after_ms"]) == (1, 0, 2, 1000)
    assert [step["kind"] for step in second["steps"]] == ["prompt", "call"]
    assert all(step["at"].startswith("2026-03-01T10:00:0") for step in second["steps"])


def test_ctrl_c_ends_it_in_a_sentence(desk: Desk) -> None:
    two_turns(desk)
    source = str(Path(everturn.__file__).parent.parent)
    env = {**os.environ, "PYTHONPATH": source, "PYTHONUTF8": "1", "FORCE_COLOR": "1"}
    command = [
        sys.executable,
        "-m",
        "everturn",
        "replay",
        "@last",
        "--speed",
        "0.001",
        "--longest",
        "60",
        "--db",
        str(desk.db),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    try:
        assert process.stdout is not None
        while b"walrus" not in process.stdout.readline():
            assert process.poll() is None
        time.sleep(0.2)  # it waits for the next step now
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 130 and b"interrupted" in err and b"Traceback" not in err
