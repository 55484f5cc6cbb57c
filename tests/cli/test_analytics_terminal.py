"""The commands that ask how tools are used: what fits a terminal, what is said where there is no answer, what counts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from everturn.store.contract import open_store
from everturn.text.printable import count_cells
from tests.analytics.histories import MadeSession, chain, fill, history
from tests.capture.history import SID
from tests.cli.desk import Desk

LISTS = (
    ("turns",), ("turns", "--patterns"), ("paths",), ("paths", "--turns"), ("inspect", "*", "--turns"), ("suggest",),
    ("stats",), ("stats", "--by", "model"), ("struggles", "--least", "2"), ("paths", "--plot", "-"),
)  # fmt: skip


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive to be copied: filling one takes longer than most questions."""
    path = tmp_path_factory.mktemp("filled") / "archive.db"
    failing = chain("Bash!exit_status", "Bash!exit_status", "Bash", "Reed!unknown_tool")
    long = "a-name-of-a-session-that-does-not-fit-into-sixty-columns-of-a-terminal"
    with closing(open_store(str(path))) as store:
        fill(store, history(1, 60))
        fill(store, [MadeSession(long, [failing], model="a-model-with-a-rather-long-name")])
    return path


@pytest.fixture
def filled(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Desk]:
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path))
    shutil.copy(archive, tmp_path / "archive.db")
    made = Desk(tmp_path, capsys)
    yield made
    made.archive.store.close()


@pytest.mark.few(2)
@pytest.mark.parametrize("width", [60, 80, 200])
def test_nothing_is_wider_than_the_terminal(filled: Desk, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("COLUMNS", str(width)), ("FORCE_COLOR", "1"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    for words in LISTS:
        code, out, _ = filled.run(*words)
        lines = out.splitlines()
        assert code == 0 and lines, words
        assert max(map(count_cells, lines)) <= width, words


def test_a_pipe_gets_everything(filled: Desk) -> None:
    head = filled.process("stats", COLUMNS="40").stdout.decode().splitlines()[0]
    assert head.split() == ["PERIOD", "SESSIONS", "TURNS", "CALLS", "ERRORS", "IN", "OUT", "CACHED", "COST"]


def test_a_shown_id_can_be_typed(filled: Desk) -> None:
    lines = filled.run("turns")[1].splitlines()[1:]
    assert lines
    for line in lines:
        assert filled.run("turns", "--session", line.split()[0])[0] == 0


def test_a_reader_that_stops_early_is_no_failure(filled: Desk) -> None:
    for words in (("turns", "--top", "1000"), ("paths", "--all", "--json"), ("inspect", "*")):
        first = subprocess.Popen(["head", "-c", "1"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert first.stdin is not None
        done = filled.process(*words, stdout=first.stdin.fileno())
        first.stdin.close()
        first.wait()
        assert b"Traceback" not in done.stderr and b"BrokenPipe" not in done.stderr


# where there is no answer ---------------------------------------------------------------------------------------------
@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("stats", "--agent", "gemini"), "remove a filter"),
        (("turns", "--min-length", "999"), "remove a filter"),
        (("turns", "--since", "2035-01-01"), "remove a filter"),
        (("turns", "--pattern", "Red → Edit"), "no tool 'Red' was called; did you mean R"),
        (("inspect", "Bash", "--since", "2035-01-01"), "remove a filter"),
        (("inspect", "bsh"), "did you mean Bash"),
        (("inspect", "zzzzzz"), "`everturn paths --turns` lists the tools"),
        (("stats", "--plot", "-", "--since", "2035-01-01"), "there is nothing to draw; remove a filter"),
    ],
)
def test_no_answer_comes_with_what_to_do(filled: Desk, words: tuple[str, ...], said: str) -> None:
    code, out, err = filled.run(*words)
    assert (code, out, err.count("\n")) == (3, "", 1) and said in err
    assert filled.json(*words)["items"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("turns", "--pattern", "Read{3+}"), "with {1+} and {2+} only"),
        (("turns", "--since", "soon"), "'soon' is not a time"),
        (("paths", "--plot", "x.pdf"), "ends in .svg or .html"),
    ],
)
def test_a_mistake_is_told_with_what_is_right(filled: Desk, words: tuple[str, ...], said: str) -> None:
    code, out, err = filled.run(*words)
    assert (code, out) == (2, "") and said in err


def test_names_that_differ_in_capitals_only_are_both_named(desk: Desk) -> None:
    fill(desk.archive.store, [MadeSession("a", [chain("Bash", "bash")])])
    assert "did you mean Bash, bash?" in desk.run("inspect", "Bsh")[2]


# numbers --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("words", "kind"), [(("paths",), "Heat"), (("turns",), "Bars"), (("stats",), "Calendar")])
def test_a_plot_is_data_too(filled: Desk, tmp_path: Path, words: tuple[str, ...], kind: str) -> None:
    answer = filled.json(*words, "--plot", "-")
    assert (answer["schema"], answer["items"][0]["type"], answer["file"]) == ("everturn/plot@1", kind, None)
    file = str(tmp_path / "p.svg")
    assert filled.json(*words, "--plot", file)["file"] == file and Path(file).read_text().startswith("<svg")


def test_where_no_tokens_were_reported_nothing_is_said_about_money(desk: Desk) -> None:
    line = desk.archive.history.line("user", "only a question")
    desk.take_in(line)
    assert desk.run("stats")[1].splitlines()[1].split()[-1] == "-"


def test_what_is_added_is_counted_at_once(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere" / f"{SID}.jsonl"
    file.parent.mkdir()
    file.write_bytes(desk.archive.history.tool_turn("go", "ls", "out"))
    assert desk.run("add", str(file))[0] == 0
    store = open_store(str(desk.db))
    assert store.stale_sessions() == [] and store.totals("tool_total")
    store.close()


def test_a_watch_counts_what_it_finds_at_first(desk: Desk, tmp_path: Path) -> None:
    desk.archive.history.write(desk.archive.history.tool_turn("go", "ls", "out"))
    words = ["sync", "--watch", "--claude-dir", str(desk.archive.history.root), "--db", str(desk.db)]
    watch = subprocess.Popen(
        [sys.executable, "-m", "everturn", *words], env={**os.environ, "HOME": str(tmp_path)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    store, until = open_store(str(desk.db)), time.monotonic() + 60
    while not store.totals("tool_total") and time.monotonic() < until:
        time.sleep(0.05)
    watch.send_signal(signal.SIGINT)
    _, said = watch.communicate(timeout=600)
    assert store.totals("tool_total") and store.stale_sessions() == [], said.decode()
    store.close()


def test_own_prices_are_named_by_config_and_looked_at_by_doctor(desk: Desk, tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    code, out, _ = desk.run("config", "get", "prices")
    assert (code, out) == (0, f"{own}\n")
    assert "prices:" not in desk.run("doctor")[1]
    own.write_text('[[price]]\nnames = ["a", "b"]\ninput = 1\noutput = 1\n')
    assert f"ok   prices: {own} has the prices of 2 model names" in desk.run("doctor")[1]
    own.write_text("nonsense = 1\n")
    checks = json.loads(desk.run("doctor", "--json")[1])["items"]
    assert [check["level"] for check in checks if check["name"] == "prices"] == ["warn"]
    desk.take_in(desk.archive.history.turn("ask", "reply"))
    code, out, err = desk.run("stats")
    assert (code, out) == (2, "") and str(own) in err
