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
from typing import Any

import msgspec

HERE = Path(__file__).parents[2]

#: What SQLite changes files with.
CALLS = ("pwrite64", "fdatasync", "ftruncate")

Point = tuple[str, int]  # the kind of call, and which one of them


class Outcome(msgspec.Struct):
    """What became of one process: killed (a negative code), an error it told, or what it did."""

    pid: int
    code: int
    done: dict[str, Any] | None = None
    error: str = ""
    sentence: str = ""


class Injector:
    """A running `victim` whose processes are all hit at their call number `limit` of one kind."""

    def __init__(self, process: subprocess.Popen[str], call: str, limit: int) -> None:
        self._process = process
        self._call = call
        self._limit = limit

    def run(self, work: str, archive: Path, history: Path, at: int) -> Outcome:
        """Do the work; hit it at call number `at`."""
        request = {
            "work": work, "archive": str(archive), "history": str(history),
            "call": self._call, "idle": self._limit - at,
        }  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._process.stdout.readline(), type=Outcome)


@contextmanager
def injecting(fault: str, limit: int, call: str, onwards: bool = False, log: Path | None = None) -> Iterator[Injector]:
    """`fault` as strace writes it: `signal=KILL`, `error=ENOSPC`; with `onwards` all later calls fail too."""
    hit = ["-e", f"inject={call}:{fault}:when={limit}{'+' * onwards}"] if fault else []
    strace = ["strace", "-f", "-o", str(log or os.devnull), "-e", f"trace={','.join(CALLS)}", *hit]
    process = subprocess.Popen(
        [*strace, sys.executable, "-m", "tests.faults.victim"],
        cwd=HERE, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield Injector(process, call, limit)
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


def points_of(work: str, archive: Path, history: Path, log: Path) -> list[Point]:
    """Every call the work makes when nothing disturbs it."""
    with injecting("", 0, "", log=log) as injector:
        outcome = injector.run(work, archive, history, 0)
    assert outcome.done is not None, outcome
    lines = [line.split(maxsplit=1) for line in log.read_text().splitlines()]
    counted = Counter(call.partition("(")[0] for pid, call in lines if pid == str(outcome.pid))
    return [(call, n + 1) for call in CALLS for n in range(counted[call])]


def some(points: list[Point], wanted: int) -> list[Point]:
    """So many of them, evenly, the first and the last included; all if there are fewer."""
    if len(points) <= wanted:
        return points
    return [points[n * (len(points) - 1) // (wanted - 1)] for n in range(wanted)]


def environment(**more: str) -> dict[str, str]:
    """The tests' own environment, with this checkout to import from and the same order of sets in every process."""
    here = {"PYTHONPATH": os.pathsep.join([str(HERE / "src"), str(HERE)]), "PYTHONHASHSEED": "0"}
    return {**os.environ, **here, **more}
