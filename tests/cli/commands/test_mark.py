"""`everturn mark`: what people put on sessions, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everturn.cli import main
from everturn.store.contract import open_store
from tests.recall.archives import put


@pytest.fixture
def db(tmp_path: Path) -> str:
    path = str(tmp_path / "archive.db")
    store = open_store(path)
    put(store, "3f2a9c00-0000-4000-8000-000000000000", ended=1)
    store.close()
    return path


def test_marks_are_put_changed_and_taken_away(db: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mark", "3f2a", "--star", "--title", "The parser", "--note", "in turn 12", "--db", db]) == 0
    assert capsys.readouterr().out == "★ The parser\nin turn 12\n"
    assert main(["mark", "@last", "--no-star", "--note", "", "--db", db, "--json"]) == 0
    item = json.loads(capsys.readouterr().out)["items"][0]
    assert (item["title"], item["star"], item["note"]) == ("The parser", False, "")
    assert main(["mark", "@last", "--title", "", "--db", db]) == 0
    assert capsys.readouterr().out == "☆ (no title)\n"


def test_a_session_that_is_not_there_is_told(db: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mark", "nobody", "--star", "--db", db]) == 3
    assert "no session 'nobody'" in capsys.readouterr().err


def test_a_title_of_ones_own_is_what_the_list_shows(db: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mark", "3f2a", "--star", "--title", "The parser", "--db", db]) == 0
    capsys.readouterr()
    assert main(["sessions", "--db", db]) == 0
    assert "★ The parser" in capsys.readouterr().out
    assert main(["sessions", "--db", db, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["title"] == "The parser"
