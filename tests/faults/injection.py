"""Makes system calls of a working process fail, or its last ones: strace does it, call by call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

HERE = Path(__file__).parents[2]

#: What SQLite changes files with.
CALLS = ("pwrite64", "fdatasync", "ftruncate")


class Outcome(msgspec.Struct):
    """What became of one process: killed (a negative code), an error it told, or what it did."""

    pid: int
    code: int
    done: dict[str, Any] | None = None
    error: str = ""
    sentence: str = ""


class Injector:
    """A running `victim` whose processes are all hit at call number `limit` of a kind."""

    def __init__(self, process: subprocess.Popen[str], limit: int) -> None:
        self._process = process
        self._limit = limit

    def run(self, work: str, archive: Path, history: Path, call: str = "", at: int = 0) -> Outcome:
        """Do the work; hit it at call number `at` of the kind `call`."""
        idle = {call: self._limit - at} if call else {}
        request = {"work": work, "archive": str(archive), "history": str(history), "idle": idle}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._process.stdout.readline(), type=Outcome)


@contextmanager
def injecting(fault: str, limit: int, log: Path | None = None, onwards: bool = False) -> Iterator[Injector]:
    """`fault` as strace writes it: `signal=KILL`, `error=ENOSPC`; with `onwards` all later calls fail too."""
    hit = ["-e", f"inject={','.join(CALLS)}:{fault}:when={limit}{'+' * onwards}"] if fault else []
    strace = ["strace", "-f", "-o", str(log or os.devnull), "-e", f"trace={','.join(CALLS)}", *hit]
    process = subprocess.Popen(
        [*strace, sys.executable, "-m", "tests.faults.victim"],
        cwd=HERE, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield Injector(process, limit)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def count_calls(log: Path, work: str, archive: Path, history: Path) -> dict[str, int]:
    """How many calls of each kind the work takes when nothing disturbs it."""
    with injecting("", 0, log) as injector:
        outcome = injector.run(work, archive, history)
    assert outcome.done is not None, outcome
    lines = [line.split(maxsplit=1) for line in log.read_text().splitlines()]
    counted = Counter(call.partition("(")[0] for pid, call in lines if pid == str(outcome.pid))
    return {name: counted[name] for name in CALLS}


def environment(**more: str) -> dict[str, str]:
    """The tests' own environment, with this checkout to import from and the same order of sets in every process."""
    here = {"PYTHONPATH": os.pathsep.join([str(HERE / "src"), str(HERE)]), "PYTHONHASHSEED": "0"}
    return {**os.environ, **here, **more}


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder whose files are never written to a disk, where there is one: a process dies there as it does elsewhere."""
    memory = "/dev/shm"
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


def skip_unless_traceable() -> None:
    """Some containers have strace and forbid its use."""
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"strace may not trace here: {tried.stderr.strip().splitlines()[-1:]}")
