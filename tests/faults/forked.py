"""One request, worked on in a process of its own, that may be struck: what it said before it ended, and how it ended."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from typing import Any


def outcome(request: dict[str, Any], work: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Work on a request after `idle` harmless calls of the kind `call`."""
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inlet)
        _idle(request.pop("call"), request.pop("idle"))
        os.write(outlet, json.dumps(work(request)).encode())
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
