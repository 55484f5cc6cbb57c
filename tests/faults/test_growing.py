"""A file that is being written right now, in whole and in half lines: in the end all of it is in, and nothing twice."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from everturn.capture.sync import sync_all
from everturn.store.contract import open_store
from tests.capture.history import OTHER, SID, History
from tests.faults.commands import Desktop, ended
from tests.faults.injection import HERE, environment
from tests.faults.neighbours import Stroke
from tests.faults.scenes import conversations, job_at


def test_commands_that_run_while_files_are_written_take_in_every_line_once(tmp_path: Path) -> None:
    history = History(tmp_path / "agent")
    desktop = Desktop(tmp_path / "home", history.root)
    stop = tmp_path / "stop"
    writer = _writing(history, tmp_path, stop, 0.01)
    reports = []
    with ended(writer):
        while not stop.exists():
            reports.append(_report(desktop))
        assert writer.wait(60) == 0
        reports.append(_report(desktop))
    assert len(reports) > 1
    assert sum(report["bytes_stored"] for report in reports) == sum(path.stat().st_size for path in _files(history))
    assert sum(report["messages"] for report in reports) == sum(
        path.read_bytes().count(b"\n") for path in _files(history)
    )
    assert _report(desktop)["unchanged"] == 2
    _assert_complete(desktop, history)


@pytest.mark.slow
def test_a_watch_takes_in_every_line_as_it_is_written(tmp_path: Path) -> None:
    history = History(tmp_path / "agent")
    desktop = Desktop(tmp_path / "home", history.root)
    history.write(history.turn("before", "it began"))
    watch = desktop.start("sync", "--watch", "--json")
    assert watch.stderr is not None
    with ended(watch):
        assert watch.stderr.readline() == "watching; Ctrl-C ends it\n"
        writer = _writing(history, tmp_path, tmp_path / "stop", 0.01)
        with ended(writer):
            assert writer.wait(60) == 0
        _wait_until_taken_in(desktop, history)
        watch.send_signal(signal.SIGINT)
        stdout, stderr = watch.communicate(timeout=600)
        assert (watch.returncode, stderr.strip()) == (0, "stopped; everything seen so far is in the archive")
    reports = [json.loads(line)["report"] for line in stdout.splitlines()]
    assert len(reports) > 1
    assert sum(report["bytes_stored"] for report in reports) == sum(path.stat().st_size for path in _files(history))
    _assert_complete(desktop, history)


def _files(history: History) -> list[Path]:
    return [history.file(SID), history.file(OTHER)]


def _writing(history: History, folder: Path, stop: Path, pause: float) -> subprocess.Popen[str]:
    """A process that writes two files as an agent does: mostly whole lines, sometimes in two or three parts."""
    chance = random.Random(3)
    strokes = []
    for n in range(40):
        sid = chance.choice([SID, OTHER])
        for line in history.tool_turn(f"ask {n}", f"cat part_{n}.py", f"answer {n} " * 40, sid).splitlines(
            keepends=True
        ):
            cuts = sorted({0, len(line), *(chance.randrange(len(line)) for _ in range(chance.choice([0, 0, 1, 2])))})
            strokes += [Stroke(str(history.file(sid)), line[a:b], pause) for a, b in pairwise(cuts)]
    plan = folder / "plan.json"
    plan.write_bytes(msgspec.json.encode(strokes))
    command = [sys.executable, "-m", "tests.faults.neighbours", "write", str(plan), str(stop)]
    return subprocess.Popen(command, cwd=HERE, env=environment(), text=True)


def _report(desktop: Desktop) -> dict[str, int]:
    done = desktop.run("sync", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report: dict[str, int] = json.loads(done.stdout)["report"]
    return report


def _wait_until_taken_in(desktop: Desktop, history: History) -> None:
    """It is looked at every now and then for as long as it may take."""
    wanted = {str(path): path.stat().st_size for path in _files(history)}
    for _ in range(600):
        store = open_store(str(desktop.archive))
        there = {file.path: version.offset for file, version in store.files()}
        store.close()
        if there == wanted:
            return
        time.sleep(0.1)
    raise AssertionError(f"{there} is not {wanted}")


def _assert_complete(desktop: Desktop, history: History) -> None:
    """The rows are those of an archive made at once of the finished files."""
    store, at_once = open_store(str(desktop.archive)), open_store("memory:")
    sync_all(job_at(at_once, history.root))
    assert conversations(store) == conversations(at_once)
    assert store.check().problems == []
    store.close()
    at_once.close()
