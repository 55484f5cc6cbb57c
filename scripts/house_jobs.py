"""Do one job of everturn and write down the modules it ran through: the part of `house.py` that needs a process of its own.

    python scripts/house_jobs.py search FOLDER    # writes FOLDER/search.json

A module counts when one of its functions runs, in any thread, and a template when it is filled (it is compiled to functions
under its own file name). Module and class bodies do not count, nor do functions that are called while a module is imported.
`FOLDER` is the home folder of the process, with the sample archive in `everturn/`.
Only commands and public names are used, so that a module may be moved or renamed without a change here.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import socket
import sys
import threading
import time
import typing
from collections.abc import Callable, Iterator
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "everturn"


class CallTracer:
    """Collects the files of everturn in which a function runs, in all threads started after `start`."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._prefix = f"{PACKAGE}{os.sep}"
        self._thread = threading.local()

    def start(self) -> None:
        """Trace this thread and those to come."""
        threading.setprofile(self._trace)
        sys.setprofile(self._trace)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_name == "<module>":
            if frame.f_globals.get("__name__") != "__main__" and event in ("call", "return"):
                step = 1 if event == "call" else -1
                self._thread.imports = getattr(self._thread, "imports", 0) + step
        elif event == "call" and code.co_filename.startswith(self._prefix):
            is_function = code.co_flags & CO_NEWLOCALS  # class bodies do not have it
            if is_function and not getattr(self._thread, "imports", 0):
                self.files.add(code.co_filename.removeprefix(self._prefix))


def run_command(*words: str) -> None:
    """Run `everturn` with these arguments in this process."""
    sys.argv = ["everturn", *words]
    try:
        runpy.run_module("everturn", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"everturn {' '.join(words)} ended with {end.code}") from None


def run_sync(folder: Path, tracer: CallTracer) -> None:
    """Archive one session of a format that keeps lines of JSON."""
    call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "gauge.txt"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "Read the gauge."}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Reading."}, call], "stopReason": "toolUse"},
        {"role": "toolResult", "content": [{"type": "text", "text": "4.2 m"}], "toolCallId": "c1", "toolName": "read"},
        {"role": "assistant", "content": [{"type": "text", "text": "It shows 4.2 m."}], "stopReason": "stop"},
    ]
    stamp = "2026-05-04T15:00:0{}.000Z".format
    records: list[dict[str, Any]] = [{"type": "session", "version": 3, "id": "gauge", "cwd": "/home/ada/harbour"}]
    records += [
        {"type": "message", "id": str(n), "parentId": str(n - 1), "message": one} for n, one in enumerate(messages)
    ]
    lines = [json.dumps(record | {"timestamp": stamp(n)}) for n, record in enumerate(records)]
    (folder / "pi").mkdir()
    (folder / "pi" / "gauge.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    tracer.start()
    run_command("sync", "--pi-dir", str(folder / "pi"))


def run_search(folder: Path, tracer: CallTracer) -> None:
    """Search the sample for a word."""
    tracer.start()
    run_command("search", "tide", "--db", str(folder / "everturn" / "sample.db"))


def run_restore(folder: Path, tracer: CallTracer) -> None:
    """Restore the newest session of the sample, without a model."""
    tracer.start()
    run_command("restore", "@last", "--db", str(folder / "everturn" / "sample.db"))


class ScriptedBackend:
    """A model that calls a tool once and then answers. The types are found through the public `Outcome`."""

    name, model, window, max_tokens, takes_tools = "scripted", "scripted", 0, 0, True

    def __init__(self, outcome: type) -> None:
        reply: Any = typing.get_args(typing.get_type_hints(outcome)["reply"])[0]
        message: Any = typing.get_type_hints(reply)["message"]
        part: Any = typing.get_args(typing.get_type_hints(message)["parts"])[0]
        types = vars(sys.modules[reply.__module__]).values()
        self._delta: Any = next(one for one in types if "reply" in getattr(one, "__struct_fields__", ()))
        call = part("call", call_id="c1", name="read_gauge", arguments={"name": "pier"})
        self._replies = [
            reply(message("assistant", (call,)), stop="calls"),
            reply(message("assistant", (part("text", "It shows 4.2 m."),))),
        ]

    def ask(self, request: Any) -> Any:
        """Give the next reply."""
        return self._replies.pop(0)

    def stream(self, request: Any) -> Iterator[Any]:
        """Give the next reply as a stream of one delta."""
        yield self._delta("end", reply=self.ask(request))


def run_loop(folder: Path, tracer: CallTracer) -> None:
    """Run one prompt with one tool call in a durable session."""
    import everturn

    @everturn.tool(read_only=True)
    def read_gauge(name: str) -> str:
        """Read a gauge."""
        return "4.2 m"

    loop = everturn.Loop(ScriptedBackend(everturn.Outcome), [read_gauge], system="Be exact.")
    tracer.start()
    archive = everturn.open_archive(str(folder / "loop.db"))
    with everturn.Journal.open(archive) as journal:
        outcome = loop.run(journal, "What does the gauge at the pier show?")
    archive.close()
    if outcome.state != "done":
        raise RuntimeError(f"the loop ended as {outcome.state}")


def run_page(folder: Path, tracer: CallTracer) -> None:
    """Request the page of a session from a server that has answered before."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pages: list[set[str]] = []

    def request_page() -> None:
        try:
            home = read_url(f"http://127.0.0.1:{port}/")
            path = re.findall(r'href="(/s/\d+)["?#]', home)[0]
            time.sleep(0.5)  # until the thread that answered is idle: another one would open the archive again
            tracer.files.clear()
            read_url(f"http://127.0.0.1:{port}{path}")
            pages.append(set(tracer.files))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=request_page, daemon=True).start()
    tracer.start()
    run_command("web", "--no-key", "--no-sync", "--port", str(port), "--db", str(folder / "everturn" / "sample.db"))
    (tracer.files,) = pages


def read_url(url: str, seconds: float = 60) -> str:
    """Read a page of a local server that may still be starting."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urlopen(url, timeout=seconds) as answer:
                return str(answer.read().decode())
        except URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError) or time.monotonic() > end:
                raise
            time.sleep(0.05)


JOBS: dict[str, Callable[[Path, CallTracer], None]] = {
    "sync": run_sync, "search": run_search, "restore": run_restore, "loop": run_loop, "page": run_page,
}  # fmt: skip


def trace_job(name: str, folder: Path) -> None:
    """Do one job in this process and write down the files it touched."""
    tracer = CallTracer()
    JOBS[name](folder, tracer)
    sys.setprofile(None)
    (folder / f"{name}.json").write_text(json.dumps(sorted(tracer.files)), "utf-8")


if __name__ == "__main__":
    trace_job(sys.argv[1], Path(sys.argv[2]))
