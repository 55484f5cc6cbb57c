"""Questions are answered while a sync writes: never busy, never half of something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mcp.pipes import SRC, Pipes, environment

ROOT = Path(SRC).parent


@pytest.mark.slow
def test_every_question_is_answered_while_a_sync_writes(db: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.mcp.writer", str(db), str(tmp_path / "agent")]
    env = environment(PYTHONPATH=f"{SRC}:{ROOT}")
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=env, cwd=ROOT) as writer, Pipes(db) as pipes:
        try:
            assert writer.stdout and writer.stdout.readline() == b"written\n"
            first = _total(pipes)
            for number in range(60):
                text, is_error = pipes.call("conversation_recall", action="search", query="question")
                assert not is_error and "question" in text, text
                text, is_error = pipes.call("open_session", session="@last", max_tokens=400 + number)
                assert not is_error, text
                assert pipes.result("resources/list")["resources"]
            assert writer.poll() is None
            assert _total(pipes) > first  # it was writing all the while
        finally:
            writer.kill()


def _total(pipes: Pipes) -> int:
    result = pipes.result("tools/call", name="list_sessions", arguments={"limit": 50, "max_tokens": 8000})
    assert not result["isError"], result
    sessions = result["structuredContent"]["sessions"]
    return sum(int(one["turns"]) for one in sessions)
