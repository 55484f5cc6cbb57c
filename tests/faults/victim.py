"""A program to do harm to: it does one piece of work per request, each time in a fresh process.

Run under strace by `injection`. Requests come as one JSON object per line on stdin, outcomes go out the same way. Each
request forks, so that imports are paid for once. strace counts the calls of each process by itself and hits the same
number in all of them: to be hit at call n, a process first makes harmless calls of that kind until n are left.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from everturn.capture import deriving
from everturn.capture.sync import sync
from everturn.capture.writing import Desk
from everturn.errors import EverturnError
from everturn.store import Store, open_store
from tests.faults.scenes import job_at, shrink_pieces


def main() -> None:
    """Answer requests until there are no more."""
    shrink_pieces(setattr)
    for line in sys.stdin:
        print(json.dumps(_outcome(json.loads(line))), flush=True)


def _outcome(request: dict[str, Any]) -> dict[str, Any]:
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inlet)
        _idle(request["call"], request["idle"])
        os.write(outlet, json.dumps(_work(request)).encode())
        os._exit(0)
    os.close(outlet)
    with os.fdopen(inlet, "rb") as said:
        told = said.read()
    _, status = os.waitpid(child, 0)
    return {"pid": child, "code": os.waitstatus_to_exitcode(status), **(json.loads(told) if told else {})}


def _idle(call: str, times: int) -> None:
    """Calls that do nothing, to use up the count."""
    nothing = os.open(os.devnull, os.O_RDWR)
    harmless: dict[str, Callable[[], object]] = {
        "pwrite64": lambda: os.pwrite(nothing, b"", 0),
        "fdatasync": lambda: os.fdatasync(nothing),
        "ftruncate": lambda: os.ftruncate(nothing, 0),
    }
    for _ in range(times):
        with contextlib.suppress(OSError):  # a device can be neither synced nor cut, but the call is counted
            harmless[call]()


def _work(request: dict[str, Any]) -> dict[str, Any]:
    """Sync or rebuild, from opening the archive to closing it."""
    try:
        store = open_store(request["archive"])
        try:
            done = _WORKS[request["work"]](store, Path(request["history"]))
        finally:
            store.close()
    except EverturnError as error:
        return {"error": type(error).__name__, "sentence": str(error)}
    except BaseException as error:
        return {"error": "unexpected", "sentence": repr(error)}
    return {"done": done}


def _sync(store: Store, history: Path) -> dict[str, Any]:
    report = sync(job_at(store, history))
    return {"messages": report.messages, "failed": report.failed}


def _rebuild(store: Store, history: Path) -> dict[str, Any]:
    job = job_at(store, history)
    desk = Desk(store, job.machine, job.owner, job.clock())
    return {"versions": deriving.rebuild(desk, job.sources, lambda *numbers: None)}


_WORKS = {"sync": _sync, "rebuild": _rebuild}

if __name__ == "__main__":
    main()
