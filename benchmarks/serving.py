"""The server for agents: how long until its tools are known, and how long an answer takes."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from statistics import median
from typing import Any

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure
from benchmarks.ingest import taken_in
from benchmarks.processes import EVERTURN, Failed, Place, cpu_of
from everturn.model.archive import Session
from everturn.store.contract import SessionFilter, open_store

_STARTS = 9
_CALLS = 20
_READY_MS = 100
_HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}


def figures(corpora: Corpora) -> Iterator[Figure]:
    """From the start of the process to the list of tools; then each question, over the largest archive of this run."""
    corpus = corpora.largest()
    if not corpus.costs:
        corpus.costs.append(taken_in(corpus))
    starts = [_start(corpus.place) for _ in range(_STARTS)]
    note = f"middle of {_STARTS} starts, to the answer to tools/list"
    yield Figure("MCP server ready", median(cpu for cpu, _ in starts), "CPU-ms", _READY_MS, note=note)
    yield Figure("MCP server ready, by the clock", median(wall for _, wall in starts), "ms", note=note)
    longest = _longest(corpus.place)
    with _Asker(corpus.place) as server:
        server.ask("tools/list")
        first = server.timed("tools/call", name="list_sessions", arguments={})
        yield Figure("MCP first call, list_sessions", first, "CPU-ms", note="with all that is imported for it")
        for name, method, params in _questions(longest):
            server.timed(method, **params)  # what is imported for it is not part of the figure
            took = median(server.timed(method, **params) for _ in range(_CALLS))
            yield Figure(f"MCP {name}", took, "CPU-ms", note=f"of the server, middle of {_CALLS} calls")


def _questions(session: Session) -> list[tuple[str, str, dict[str, Any]]]:
    here = {"session": session.native_id}
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("list_sessions", "list_sessions", {"limit": 20}),
        ("open_session, the longest", "open_session", here),
        ("recall, a word", "conversation_recall", {"action": "search", "query": "parser"}),
        ("recall, several words", "conversation_recall", {"action": "search", "query": "test failed error"}),
        ("recall, summary of the longest", "conversation_recall", {"action": "summary", **here}),
    ]
    asked = [(shown, "tools/call", {"name": name, "arguments": arguments}) for shown, name, arguments in calls]
    return [("ping", "ping", {}), ("resources/list", "resources/list", {}), *asked]


def _start(place: Place) -> tuple[float, float]:
    """Milliseconds of processor and of clock until the tools are known."""
    begun = time.perf_counter()
    with _Asker(place) as server:
        server.ask("initialize", **_HELLO)
        server.ask("tools/list")
        return server.cpu() * 1000, (time.perf_counter() - begun) * 1000


def _longest(place: Place) -> Session:
    with closing(open_store(str(place.db))) as store:
        rows, _ = store.sessions(SessionFilter(), 10_000)
        return max((session for session, _ in rows), key=lambda session: session.n_messages)


class _Asker:
    """A server in a process of its own, asked one thing after the other."""

    def __init__(self, place: Place) -> None:
        self._process = subprocess.Popen(
            [*EVERTURN, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=place.env
        )
        assert self._process.stdin and self._process.stdout
        self._in, self._out = self._process.stdin, self._process.stdout
        self._id = 0

    def __enter__(self) -> _Asker:
        return self

    def __exit__(self, *_: object) -> None:
        self._in.close()
        self._process.wait()
        self._out.close()

    def ask(self, method: str, **params: Any) -> Any:
        """The result. Raises Failed."""
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self._in.write(json.dumps(message).encode() + b"\n")
        self._in.flush()
        answer = json.loads(self._out.readline() or b"{}")
        result = answer.get("result")
        if result is None or result.get("isError"):
            raise Failed(f"{method}: {str(answer)[:300]}")
        return result

    def timed(self, method: str, **params: Any) -> float:
        """Milliseconds of processor that the server took for it."""
        before = self.cpu()
        self.ask(method, **params)
        return (self.cpu() - before) * 1000

    def cpu(self) -> float:
        """Seconds of processor it has used so far, all its threads together."""
        return cpu_of(self._process.pid)
