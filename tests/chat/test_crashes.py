"""Chats killed at any moment: what was acknowledged is there, and every session can be taken up again."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chat.program import Desk, Model, Terminal, last_words, words_of
from tests.model_server import Asked, ModelServer
from tests.model_wires import Call, Says
from tests.quick import QUICK


def told(process: subprocess.Popen[bytes], until: bytes, seconds: float = 60) -> bytes:
    """Return the output of a process up to these words."""
    assert process.stdout is not None
    seen, end = b"", time.monotonic() + seconds
    while until not in seen:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"{until!r} did not come: {seen!r}"
        piece = os.read(process.stdout.fileno(), 65536)
        assert piece, f"it ended without {until!r}: {seen!r}"
        seen += piece
    return seen


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def type_in(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{text}\n".encode())
    process.stdin.flush()


@pytest.fixture
def desk(tmp_path: Path, model: Model, held_by: str) -> Iterator[Desk]:
    with ModelServer(model) as server:
        yield Desk(tmp_path, server, held_by=held_by)


def test_a_killed_chat_is_taken_up_as_if_it_had_been_closed(desk: Desk) -> None:
    process = desk.start("chat", "--new")
    type_in(process, "remember the zebra")
    told(process, b"answer 1")
    kill(process)
    ran = desk.chat("sessions", "what was it?", words=("--resume",))
    assert "(1 turn in archive)…" in ran.err and "answer 2" in ran.out
    asked = next(one for one in desk.server.asked if last_words(one).endswith("what was it?"))
    assert "\n\n".join(words_of(asked)) == "remember the zebra\n\nwhat was it?"


def test_a_killed_chat_is_listed_as_crashed_and_its_summary_is_made_when_needed(desk: Desk) -> None:
    process = desk.start("chat", "--new")
    type_in(process, "remember the zebra")
    told(process, b"answer 1")
    kill(process)
    ran = desk.chat("sessions", "resume 1", "go on")
    assert "  crashed  remember the zebra" in ran.out
    assert "📝 No summary yet: generating it now... ✓" in ran.err and "Ready to continue!" in ran.out


def test_a_message_without_an_answer_is_told_and_answered_by_retry(tmp_path: Path) -> None:
    script, seen = Model(), []

    def answer(asked: Asked) -> Says:
        seen.append(asked)
        return Says("never comes", wait=60) if len(seen) == 1 else script(asked)

    with ModelServer(answer) as server:
        desk = Desk(tmp_path, server)
        process = desk.start("chat", "--new")
        type_in(process, "are you there?")
        while not seen:
            time.sleep(0.02)
        kill(process)
        ran = desk.chat("/retry", words=("--resume", "--no-summary"))
        assert "The last request has no answer yet: /retry goes on with it." in ran.err and "answer 1" in ran.out
        assert desk.sessions()[0].n_prompts == 1


@pytest.mark.slow
def test_a_command_that_was_cut_short_is_asked_about(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Says:
        if asked.body["messages"][-1]["role"] == "tool":
            return Says(f"tool says <{last_words(asked)}>")
        return Says(calls=(Call("shell", {"command": "echo x >> ran; sleep 60"}),))

    with ModelServer(answer) as server:
        desk = Desk(tmp_path, server)
        with Terminal(desk, "chat", "--new", "--no-summary") as terminal:
            terminal.until("You: ")
            terminal.type("run it\r")
            terminal.until("chat) ")
            terminal.type("y\r")
            while not (desk.workspace / "ran").exists():
                time.sleep(0.02)
            terminal.kill()
        with Terminal(desk, "chat", "--resume", "--no-summary") as terminal:
            terminal.until("You: ")
            terminal.type("/retry\r")
            terminal.until("begun before a crash, nobody knows how it ended")
            terminal.until("Run it again? (y/n) ")
            terminal.type("n\r")
            terminal.until("tool says <")
            assert "outcome is unknown" in terminal.until("You: ")
        assert (desk.workspace / "ran").read_text() == "x\n"


def test_a_session_that_runs_elsewhere_is_not_taken(desk: Desk) -> None:
    process = desk.start("chat", "--new")
    try:
        type_in(process, "mine")
        told(process, b"answer 1")
        ran = desk.chat("mine too", words=("--resume",))
        assert ran.code == 75 and "locked by another process" in ran.err
    finally:
        kill(process)


@pytest.mark.slow
def test_chats_killed_at_random_moments_lose_nothing_that_was_acknowledged(tmp_path: Path, held_by: str) -> None:
    """A small version of a hundred: each chat goes on from where the last one was killed."""
    random_moments = random.Random(7)
    with ModelServer(Model()) as server:
        desk = Desk(tmp_path, server, held_by=held_by)
        acknowledged: list[str] = []
        for number in range(4 if QUICK else 12):
            process = desk.start("chat", *(["--resume"] if acknowledged else ["--new"]), "--no-summary")
            for line in range(3):
                type_in(process, f"line {number}-{line}")
                if line < 2:
                    told(process, b"answer ")
                    acknowledged.append(f"line {number}-{line}")
            time.sleep(random_moments.random() * 0.1)
            kill(process)
        kept = [
            block.text
            for session in desk.sessions()
            for one in desk.messages(session)
            if one.origin == "human"
            for block in one.blocks
        ]
        assert [line for line in acknowledged if line not in kept] == []
        assert len(desk.sessions()) == 1
        assert desk.chat("the end", words=("--resume", "--no-summary")).code == 0
        assert desk.run("verify").code == 0
