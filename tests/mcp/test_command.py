"""`everturn mcp`: what its help says, which archive it serves, and what it says on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everturn.cli import main
from tests.capture.history import OTHER, SID
from tests.mcp.pipes import Pipes
from tests.recall.archives import Archive


def test_the_help_says_how_to_register_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--help"]) == 0
    said = capsys.readouterr().out
    start = said.index('{"mcpServers"')
    entry = json.loads(said[start : said.index("\n", start)])
    assert entry["mcpServers"]["everturn"] == {"command": "everturn", "args": ["mcp"]}
    assert "EVERTURN_DB" in said and "--http" in said


def test_the_archive_of_the_environment_is_served(db: Path, archive: Archive, tmp_path: Path) -> None:
    archive.take_in(archive.history.turn("a question", "an answer"))
    with Pipes(db, EVERTURN_DB=str(tmp_path / "none.db")) as pipes:
        assert "a question" in pipes.call("list_sessions")[0]  # the flag is stronger
    with Pipes(db, EVERTURN_DB=str(db)) as pipes:
        assert "a question" in pipes.call("list_sessions")[0]


def test_flags_say_what_this_session_and_this_workspace_are(db: Path, archive: Archive) -> None:
    archive.take_in(archive.history.turn("in the shop", "answer"))
    archive.take_in(archive.history.turn("on the map", "answer", OTHER, cwd="/home/ann/maps"), sid=OTHER)
    with Pipes(db, "--session", SID[:8]) as pipes:
        assert "in the shop" in pipes.call("conversation_recall", action="range", start_turn=1, end_turn=1)[0]
    with Pipes(db, "--workspace", "/home/ann/maps") as pipes:
        assert "on the map" in pipes.call("conversation_recall", action="range", start_turn=1, end_turn=1)[0]
        assert pipes.call("list_sessions", workspace=".")[0].startswith("1 of 1 ")
    with Pipes(db, "--session", "zzzz") as pipes:
        text, is_error = pipes.call("conversation_recall", action="summary")
        assert is_error and "no session 'zzzz'" in text
