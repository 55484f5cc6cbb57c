"""`everturn chat` and `everturn resume`: what they refuse, and in which words."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from everturn.cli import main
from tests.model_server import ModelServer
from tests.model_wires import Says


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(list(words))
    return code, capsys.readouterr().err


def configure(home: Path) -> None:
    table = '[models.local]\nkind = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'
    (home / "config.toml").write_text(f'[models]\ndefault = "local"\n{table}')


def test_without_a_model_it_is_said_what_is_missing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, err = said(capsys, "chat")
    assert code == 2 and "no model is configured; add a [models.NAME] table" in err
    assert not (home / "archive.db").exists()


def test_new_and_resume_cannot_both_be_meant(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, err = said(capsys, "chat", "--new", "--resume", "x")
    assert code == 2 and "use --new or --resume, not both" in err


def test_an_unknown_session_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(home)
    for words in (("chat", "--resume", "nosuch"), ("resume", "nosuch")):
        code, err = said(capsys, *words)
        assert code == 3 and "Session not found: nosuch" in err


def test_resume_without_a_name_and_without_any_session_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(home)
    code, err = said(capsys, "chat", "--resume")
    assert code == 3 and "Session not found: last" in err


def test_a_workspace_that_is_not_there_is_a_mistake(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, err = said(capsys, "chat", "-w", str(home / "nowhere"))
    assert code == 2 and "does not exist" in err


def test_an_end_of_input_at_once_leaves_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(home)
    assert said(capsys, "chat", "--new") == (0, "Goodbye!\n")
    assert not (home / "chats").exists()


def test_forgetting_a_chat_erases_what_was_saved_of_it(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer(lambda asked: Says("The walrus has tusks.")) as server:
        (home / "config.toml").write_text(
            f'[models]\ndefault = "local"\n[models.local]\nkind = "openai"\nmodel = "m"\nbase_url = "{server.base}"\n'
        )
        monkeypatch.setattr("sys.stdin", io.StringIO("What has a walrus?\n"))
        assert said(capsys, "chat", "--new", "--tools", "none")[0] == 0
    [saved] = (home / "chats").glob("*.md")
    assert "walrus" in saved.read_text()
    assert said(capsys, "forget", "@last", "--yes")[0] == 0
    assert not list((home / "chats").glob("*.md"))
    everything = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"walrus" not in everything
