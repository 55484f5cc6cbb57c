"""A program to do harm to: plays a scene for each request, each time in a fresh process.

Requests come as one JSON object per line on stdin, outcomes go out the same way. Each request forks, so that imports are
paid for once. Under strace, which counts the calls of each process by itself and strikes at the same number in all of
them, a process that is to be hit at call n first makes harmless calls of that kind until n are left. Without strace the
blow comes from `shim`.
"""

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

from tests.faults.forked import outcome

HERE = Path(__file__).parents[2]

#: What SQLite changes files with.
CALLS = ("pwrite64", "fdatasync", "ftruncate")


class Victim:
    """A running victim."""

    def __init__(self, process: subprocess.Popen[str], limit: int = 0) -> None:
        self._process, self._limit = process, limit

    def play(self, url: str, folder: Path, call: str = "", at: int = 0, **more: Any) -> dict[str, Any]:
        """Play a scene; `more` are fields of `Scene`, and `disk`: fields of `shim.Disk`."""
        request = {"url": url, "folder": str(folder), "call": call, "idle": self._limit - at if call else 0, **more}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def victim(fault: str = "", call: str = "", limit: int = 0, log: Path | None = None) -> Iterator[Victim]:
    """With `fault` or `log` under strace: `signal=KILL` or `error=EIO`, at call number `limit` of one kind."""
    words = [sys.executable, "-m", "benchmarks.durable.victim"]
    if fault or log is not None:
        hit = ["-e", f"inject={call}:{fault}:when={limit}"] if fault else []
        words = ["strace", "-f", "-o", str(log or os.devnull), "-e", f"trace={','.join(CALLS)}", *hit, *words]
    paths = os.pathsep.join([str(HERE / "src"), str(HERE)])
    process = subprocess.Popen(
        words, cwd=HERE, env={**os.environ, "PYTHONPATH": paths}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    try:
        yield Victim(process, limit)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def points(url: str, folder: Path, log: Path, **more: Any) -> list[tuple[str, int]]:
    """Every call that changes a file when nothing disturbs the scene."""
    with victim(log=log) as watched:
        outcome = watched.play(url, folder, **more)
    lines = [line.split(maxsplit=1) for line in log.read_text().splitlines()]
    counted = Counter(call.partition("(")[0] for pid, call in lines if pid == str(outcome["pid"]))
    return [(call, n + 1) for call in CALLS for n in range(counted[call])]


# the program ------------------------------------------------------------------------------------------------------------
def main() -> None:
    """Answer requests until there are no more."""
    from benchmarks.durable import scene, shim  # noqa: F401 -- paid for once

    for line in sys.stdin:
        print(json.dumps(outcome(json.loads(line), _work)), flush=True)


def _work(request: dict[str, Any]) -> dict[str, Any]:
    from benchmarks.durable.scene import Scene, play
    from benchmarks.durable.shim import Disk, Shim
    from everturn.errors import EverturnError

    disk = Disk(**request.pop("disk")) if "disk" in request else None
    shim = Shim(disk) if disk is not None else None
    request["folder"] = Path(request["folder"])
    if "steps" in request:
        request["steps"] = tuple(map(tuple, request["steps"]))
    try:
        outcome = play(Scene(**request))
    except EverturnError as error:
        return {"error": type(error).__name__, "sentence": str(error)}
    except BaseException as error:
        return {"error": "unexpected", "sentence": repr(error)}
    counts = {"done": disk.done, "writes": disk.writes, "syncs": disk.syncs} if disk is not None else {}
    return {"state": outcome.state, "disk": counts, "shim": shim is not None}


if __name__ == "__main__":
    main()
