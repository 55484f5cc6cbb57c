"""`make test` does less of the same: fewer examples, and commands that are forked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import command_line, quick
from tests.quick import choose_few, some, try_fewer_examples


@pytest.mark.parametrize(("wanted", "tried"), [(50, 5), (300, 30), (7, 5), (2, 2)])
def test_a_property_with_settings_of_its_own_is_tried_less_often(wanted: int, tried: int) -> None:
    examples = []

    @settings(max_examples=wanted, derandomize=True, database=None)
    @given(st.integers())
    def holds(number: int) -> None:
        examples.append(number)

    for _ in range(2):  # a test with parameters is collected once for each of them
        try_fewer_examples(holds)
    holds()
    assert len(examples) == tried


@pytest.mark.parametrize(("number", "chosen"), [(1, "a"), (2, "ae"), (3, "ace"), (5, "abcde"), (9, "abcde")])
def test_some_are_from_the_first_to_the_last(number: int, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "QUICK", True)
    assert "".join(some("abcde", number)) == chosen
    monkeypatch.setattr(quick, "QUICK", False)
    assert "".join(some("abcde", number)) == "abcde"


@pytest.mark.few(2)
@pytest.mark.parametrize("case", range(5))
def test_few_cases_are_left_of_a_test_that_says_so(
    request: pytest.FixtureRequest, case: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = request.node.getparent(pytest.Module).collect()
    cases = [item for item in every if item.name.startswith("test_few_cases")]
    monkeypatch.setattr(quick, "QUICK", True)
    left_out = choose_few(every)
    assert [item.name[-2] for item in cases if item not in left_out] == ["0", "4"]


@pytest.fixture(params=[False, True], ids=["started", "forked"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(command_line, "QUICK", request.param)
    return tmp_path


def test_a_command_has_its_own_words_environment_folder_and_pipes(home: Path) -> None:
    env = {**os.environ, "EVERTURN_HOME": str(home / "ev"), "PYTHONUTF8": "1"}
    (home / "ev").mkdir()
    (home / "ev" / "config.toml").write_text('owner = "ann"\n')
    (home / "chat.jsonl").write_text('{"role": "user", "content": "Grüße"}\n')
    done = command_line.run(("config", "get", "owner"), env, cwd=home)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"ann\n", b"")
    done = command_line.run(("add", "chat.jsonl"), env, cwd=home)
    assert done.returncode == 0 and (home / "ev" / "archive.db").exists(), done.stderr
    done = command_line.run(("search", "Grüße", "--json"), env, cwd=home)
    assert done.returncode == 0 and "Grüße" in done.stdout.decode()
    assert command_line.run(("no-such-command",), env, cwd=home).returncode == 2


def test_output_nobody_reads_ends_a_command_as_it_ends_any_program(home: Path) -> None:
    unread, closed = os.pipe()
    os.close(unread)
    done = command_line.run(("--help",), {**os.environ, "EVERTURN_HOME": str(home)}, stdout=closed)
    os.close(closed)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_command_that_does_not_end_is_ended(home: Path) -> None:
    env = {**os.environ, "EVERTURN_HOME": str(home / "ev")}
    with pytest.raises(subprocess.TimeoutExpired):
        command_line.run(("sync", "--watch"), env, timeout=1)
    assert command_line.run(("config", "path"), env).returncode == 0
