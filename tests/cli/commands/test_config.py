"""`everturn config` and `everturn completion`."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest

from everturn.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path))
    return tmp_path


def test_it_shows_every_value_and_where_it_comes_from(
    home: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.toml").write_text('[capture]\nmode = "full"\n[sources]\nx = ["/e"]\n')
    monkeypatch.setenv("EVERTURN_DB", "memory:")
    assert main(["config", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == "everturn/config@1"
    found = {item["key"]: (item["value"], item["from"]) for item in answer["items"]}
    assert found["db"] == ("memory:", "environment")
    assert found["capture.mode"] == ("full", "config")
    assert found["owner"][1] == "default"
    assert found["sources.x"] == (["/e"], "config")


def test_models_are_shown_and_a_key_that_got_into_the_file_is_not(home: Path, capsys: Capture) -> None:
    secret = "sk-ant-" + "api03-" + "Zx9" * 12
    (home / "config.toml").write_text(
        f'[models]\ndefault = "a"\n[models.a]\nkind = "openai"\nwindow = 9\nmodel = "{secret}"\n[meaning]\nmodel = "m"\n'
    )
    assert main(["config", "--json"]) == 0
    said = capsys.readouterr().out
    found = {item["key"]: item["value"] for item in json.loads(said)["items"]}
    assert (found["models.default"], found["models.a.kind"], found["models.a.window"]) == ("a", "openai", 9)
    assert found["meaning.model"] == "m"
    assert secret not in said and found["models.a.model"].startswith("[REDACTED:")


def test_a_pipe_gets_aligned_plain_text(capsys: Capture) -> None:
    assert main(["config", "--db", "memory:"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["KEY", "VALUE", "FROM"]
    assert lines[1].split() == ["db", "memory:", "flag"]
    assert len({line.index(word) for line, word in zip(lines, ("FROM", "flag"), strict=False)}) == 1
    assert not any("\t" in line or "\x1b" in line for line in lines)


def test_the_password_of_a_database_is_not_shown(capsys: Capture) -> None:
    assert main(["config", "get", "db", "--db", "postgresql://ada:lovelace1815@host/db"]) == 0
    assert "lovelace1815" not in capsys.readouterr().out


def test_set_then_get(home: Path, capsys: Capture) -> None:
    assert main(["config", "set", "capture.mode", "structure"]) == 0
    said = capsys.readouterr()
    assert said.out == "" and "capture.mode" in said.err
    assert stat.S_IMODE((home / "config.toml").stat().st_mode) == 0o600
    assert main(["config", "get", "capture.mode"]) == 0
    assert capsys.readouterr().out == "structure\n"


def test_path_says_where_the_file_would_be(home: Path, capsys: Capture) -> None:
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{home / 'config.toml'}\n"
    assert not (home / "config.toml").exists()


def test_another_file_can_be_named_before_and_after_the_command(home: Path, capsys: Capture) -> None:
    other = home / "other.toml"
    other.write_text('owner = "ada"')
    for words in (
        ["--config", str(other), "config", "get", "owner"],
        ["config", "get", "owner", "--config", str(other)],
    ):
        assert main(words) == 0
        assert capsys.readouterr().out == "ada\n"


def test_a_wrong_key_is_one_sentence(capsys: Capture) -> None:
    assert main(["config", "get", "capture.mod"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("everturn: setting capture.mod: ") and "did you mean capture.mode?" in said.err
    assert said.err.count("\n") == 1


def test_a_broken_config_file_is_one_sentence_for_every_use(home: Path, capsys: Capture) -> None:
    (home / "config.toml").write_text("[capture]\nmood = 1\n")
    for words in (["config"], ["config", "get", "db"], ["config", "set", "capture.mode", "full"]):
        assert main(words) == 2
        assert "capture.mood" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_and_how_to_install_it(shell: str, capsys: Capture) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_EVERTURN_COMPLETE" in script
    assert script.rstrip().splitlines()[-1].startswith("#   everturn completion ")


@pytest.mark.needs("bash")
def test_the_bash_script_is_one_bash_can_read(capsys: Capture) -> None:
    main(["completion", "bash"])
    script = capsys.readouterr().out
    assert subprocess.run(["bash", "-n"], check=False, input=script, text=True).returncode == 0


@pytest.mark.parametrize("given", [{"COMP_LINE": "everturn conf"}, {"COMP_WORDS": "everturn conf", "COMP_CWORD": "1"}])
def test_the_shell_is_told_what_may_come_next(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("_EVERTURN_COMPLETE", "bash_complete")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert main([]) == 0
    assert capsys.readouterr().out == "plain,config\n"
