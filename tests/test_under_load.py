"""`scripts/under_load` tells how each run ended, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from tests.waiting import PATIENCE, wait_until

SCRIPT = Path(__file__).parents[1] / "scripts" / "under_load"

pytestmark = [
    pytest.mark.needs("bash"),
    pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks at /proc"),
]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)


def processes_with(word: str) -> list[int]:
    """The processes that have this word in their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:  # it has ended meanwhile
            pass
    return found


def test_each_run_is_told_and_the_first_failure_ends_it(tmp_path: Path) -> None:
    command = f"echo x >> {tmp_path / 'runs'}; test $(wc -l < {tmp_path / 'runs'}) -lt 3 || exit 7"
    done = run("--load", "1", "--times", "5", "--", "sh", "-c", command)
    assert done.returncode == 7
    told = [line.partition(" of 5 ") for line in done.stdout.splitlines()]
    assert [(run, how.split()[0]) for run, _, how in told] == [
        ("under_load: run 1", "passed"),
        ("under_load: run 2", "passed"),
        ("under_load: run 3", "failed"),
    ]


@pytest.mark.parametrize("words", [("--load", "many"), ("--times",), ("--quickly",)])
def test_a_wrong_option_is_refused_before_anything_runs(words: tuple[str, ...]) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: scripts/under_load" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_running_when_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    mark = uuid4().hex
    begun = tmp_path / "begun"
    command = f"touch {begun}; sleep 600 # {mark}"
    with subprocess.Popen([SCRIPT, "--load", "2", "--", "sh", "-c", command], stdout=subprocess.DEVNULL) as process:
        wait_until(begun.exists)
        assert len(processes_with(mark)) >= 4  # the script, two busy ones, the command
        os.kill(process.pid, number)
        assert process.wait(PATIENCE) == 128 + number
    wait_until(lambda: not processes_with(mark))
