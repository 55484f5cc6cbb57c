"""The frame: commands found by folder, shared options, errors told in one sentence, a start-up that stays small."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import everturn
from everturn.cli import frame, main
from everturn.errors import Busy, PartlyFailed, UnknownSession

Capture = pytest.CaptureFixture[str]
SRC = str(Path(everturn.__file__).parent.parent)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path))
    return tmp_path


def test_help_lists_every_command_with_one_line(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in frame.ordered_commands():
        assert f"\n  {name} " in shown
    assert all(frame.one_line_helps().values())
    assert "\n  home " not in shown


def test_the_one_line_help_of_the_list_is_that_of_the_module() -> None:
    from everturn.cli.commands import config

    assert config.__doc__ is not None
    assert frame.one_line_helps()["config"] == config.__doc__.splitlines()[0]


def test_files_without_a_command_are_not_commands() -> None:
    assert not {"frame", "output", "--init--", "__init__"} & set(frame.one_line_helps())


def test_the_version(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"everturn {everturn.__version__}\n"


def test_a_typo_gets_the_nearest_command(capsys: Capture) -> None:
    assert main(["confg"]) == 2
    assert capsys.readouterr().err == "everturn: there is no command 'confg'; did you mean `everturn config`?\n"


def test_a_word_that_is_near_nothing_gets_the_list(capsys: Capture) -> None:
    assert main(["xyzzy"]) == 2
    assert "`everturn --help`" in capsys.readouterr().err


def test_choices_are_told_in_one_sentence_too(capsys: Capture) -> None:
    assert main(["export", "@last"]) == 2
    assert "missing option '--as'; choose from: raw, native, json, markdown," in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["--nonsense"], ["config", "--nonsense"], ["config", "get"], ["completion", "tcsh"], ["config", "get", "a", "b"]],
)
def test_wrong_usage_is_one_sentence_and_exit_2(words: list[str], capsys: Capture) -> None:
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("everturn: ") and said.err.count("\n") == 1 and "--help`" in said.err


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (UnknownSession("abc"), 3, "no session 'abc'"),
        (Busy("a.db"), 75, "a.db is locked"),
        (PartlyFailed("2 of 3 files were read"), 4, "2 of 3 files were read"),
        (KeyboardInterrupt(), 130, "interrupted; nothing is lost, run it again to continue"),
        (click.Abort(), 130, "stopped"),
        (click.exceptions.Exit(3), 3, ""),
        (ValueError("odd \x1b[31m"), 1, "ValueError: odd"),
    ],
)
def test_every_error_is_one_sentence_with_its_exit_code(
    error: BaseException, code: int, sentence: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("everturn.settings.load", fail)
    assert main(["config"]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err and said.err.strip().count("\n") == 0
    assert "Traceback" not in said.err and "\x1b" not in said.err


def test_the_traceback_is_there_for_who_asks(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everturn.settings.load", lambda _: 1 / 0)
    monkeypatch.setenv("EVERTURN_DEBUG", "1")
    assert main(["config"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_met_with_silence() -> None:
    env = {**os.environ, "PYTHONPATH": SRC}
    reading, writing = os.pipe()
    os.close(reading)
    child = subprocess.run(
        [sys.executable, "-m", "everturn", "config"],
        check=False,
        stdout=writing,
        stderr=subprocess.PIPE,
        env=env,
        text=True,
    )
    os.close(writing)
    assert (child.returncode, child.stderr) == (141, "")


def test_a_terminal_that_cannot_show_a_character_gets_its_number() -> None:
    env = {**os.environ, "PYTHONPATH": SRC, "PYTHONIOENCODING": "ascii", "LOGNAME": "会"}
    child = subprocess.run(
        [sys.executable, "-m", "everturn", "config", "get", "owner"], check=False, capture_output=True, env=env
    )
    assert (child.returncode, child.stdout) == (0, b"\\u4f1a\n")


def test_without_an_archive_nothing_is_made_and_the_way_on_is_said(home: Path, capsys: Capture) -> None:
    assert main(["sessions"]) == 3
    said = capsys.readouterr()
    assert str(home / "archive.db") in said.err and "`everturn sync`" in said.err
    assert list(home.iterdir()) == []


def test_the_later_of_two_flags_wins(capsys: Capture) -> None:
    assert main(["--db", "/a.db", "config", "get", "db", "--db", "/b.db"]) == 0
    assert capsys.readouterr().out == "/b.db\n"


def test_flags_of_one_run_are_not_those_of_the_next(capsys: Capture) -> None:
    main(["--json", "config", "get", "owner"])
    capsys.readouterr()
    main(["config", "get", "owner"])
    assert not capsys.readouterr().out.startswith("{")


def test_an_alias_is_the_command_itself() -> None:
    context = click.Context(frame.root)
    assert frame.ALIASES
    for alias, name in frame.ALIASES.items():
        command = frame.root.get_command(context, name)
        assert command is not None, name
        assert frame.root.get_command(context, alias) is command


#: What `everturn --help` may import beyond what a bare interpreter has: nothing but click and the frame itself.
OURS = {"everturn", "everturn.cli", "everturn.cli.frame", "everturn.cli.main", "everturn.errors", "everturn.__main__"}
HEAVY = {
    *("asyncio", "dataclasses", "email", "http", "json", "logging", "multiprocessing", "pathlib", "sqlite3", "ssl"),
    *("subprocess", "tomllib", "unittest", "urllib", "xml"),
}


def test_help_imports_nothing_it_does_not_need() -> None:
    asked = _imported("from everturn.cli import main; main(['--help'])") - _imported("pass")
    foreign = {name.partition(".")[0] for name in asked} - set(sys.stdlib_module_names) - {"everturn"}
    assert foreign == {"click"}
    assert {name for name in asked if name.partition(".")[0] == "everturn"} <= OURS
    assert not {name.partition(".")[0] for name in asked} & HEAVY


def test_a_command_imports_no_other_command() -> None:
    asked = _imported("from everturn.cli import main; main(['config', 'path'])")
    commands = {f"everturn.cli.commands.{name.replace('-', '_')}" for name in frame.one_line_helps()}
    assert commands & asked == {"everturn.cli.commands.config"}
    assert not asked & {"rich", "apsw", "psycopg", "watchfiles", "typing_extensions"}


def _imported(code: str) -> set[str]:
    """The modules a fresh interpreter holds after running this."""
    code = f"import sys; {code}; print(*sys.modules, sep='\\n', file=sys.stderr)"
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": SRC}, check=True
    )
    return set(child.stderr.split())
