"""While a tool works: pings are answered, what is cancelled is not, and stopping does not wait for ever."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from everturn.mcp.archive import McpArchive
from everturn.mcp.server import McpServer, Peer
from everturn.mcp.stdio import Server, ServerStopped


class Slow(McpServer):
    """Tools that wait until they are let go, and note that they were called."""

    def __init__(self) -> None:
        super().__init__(McpArchive("memory:"))
        self.go_on = threading.Event()
        self.begun = threading.Event()
        self.called: list[str] = []

    def answer(self, peer: Peer, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method != "tools/call":
            return super().answer(peer, method, params)
        self.called.append(params["name"])
        self.begun.set()
        assert self.go_on.wait(60)
        if params["name"] == "broken":
            raise ZeroDivisionError("a secret word")
        return {"name": params["name"]}


class Line:
    """A server in a thread of this process, on real pipes."""

    def __init__(self, offers: McpServer) -> None:
        its_input, self._to = os.pipe()
        self._from, its_output = os.pipe()
        self.said: list[str] = []
        lines, out = os.fdopen(its_input, "rb"), os.fdopen(its_output, "wb")
        self._files: list[BinaryIO] = [lines, out]
        self.answers = os.fdopen(self._from, "rb")
        server = Server(offers, lines, out, self.said.append)
        self.thread = threading.Thread(target=server.serve)
        self.thread.start()

    def send(self, *messages: Any) -> None:
        for message in messages:
            os.write(self._to, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def read(self) -> Any:
        return json.loads(self.answers.readline())

    def end(self) -> list[Any]:
        os.close(self._to)
        self.thread.join(60)
        for file in self._files:
            file.close()
        with self.answers:
            return [json.loads(line) for line in self.answers]


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def line(slow: Slow) -> Iterator[Line]:
    made = Line(slow)
    yield made
    slow.go_on.set()


def call(id: int, name: str) -> dict[str, Any]:
    return {"id": id, "method": "tools/call", "params": {"name": name}}


def cancel(id: Any) -> dict[str, Any]:
    return {"method": "notifications/cancelled", "params": {"requestId": id, "reason": "no longer wanted"}}


def test_a_ping_is_answered_while_a_tool_works(slow: Slow, line: Line) -> None:
    line.send(call(1, "first"))
    assert slow.begun.wait(60)
    line.send({"id": 2, "method": "ping"})
    assert line.read()["id"] == 2
    slow.go_on.set()
    assert [answer["id"] for answer in line.end()] == [1]


def test_what_is_cancelled_before_it_begins_is_never_done(slow: Slow, line: Line) -> None:
    line.send(call(1, "first"), call(2, "second"), call(3, "third"))
    assert slow.begun.wait(60)
    line.send(cancel(2), {"id": 9, "method": "ping"})
    assert line.read()["id"] == 9
    slow.go_on.set()
    assert [answer["id"] for answer in line.end()] == [1, 3]
    assert slow.called == ["first", "third"]


def test_what_is_cancelled_while_it_works_is_not_answered(slow: Slow, line: Line) -> None:
    line.send(call(1, "first"))
    assert slow.begun.wait(60)
    line.send(cancel(1), {"id": 9, "method": "ping"})
    assert line.read()["id"] == 9
    slow.go_on.set()
    assert line.end() == []


def test_cancelling_what_is_not_there_does_nothing(slow: Slow, line: Line) -> None:
    slow.go_on.set()
    line.send(cancel(77), cancel(None), cancel([1]), {"method": "notifications/cancelled"}, call(1, "first"))
    assert [answer["id"] for answer in line.end()] == [1]


def test_a_fault_of_ours_is_an_internal_error_that_tells_no_words(slow: Slow, line: Line) -> None:
    slow.go_on.set()
    line.send(call(1, "broken"), call(2, "first"))
    broken, fine = line.end()
    assert broken["error"]["code"] == -32603
    assert fine["result"] == {"name": "first"}
    assert "secret" not in json.dumps(broken) + "".join(line.said)
    assert "ZeroDivisionError" in line.said[0]


def test_told_to_stop_the_server_does_not_wait_for_a_tool_that_hangs(slow: Slow, tmp_path: Path) -> None:
    class Input(io.BytesIO):
        """One call, and while it works the signal."""

        def readline(self, size: int | None = -1, /) -> bytes:
            if line := super().readline(size):
                return line
            assert slow.begun.wait(60)
            raise ServerStopped

    calls = "".join(json.dumps({"jsonrpc": "2.0", **call(id, "hanging")}) + "\n" for id in (1, 2))
    with open(tmp_path / "out", "wb") as out:
        Server(slow, Input(calls.encode()), out, print).serve()
        slow.go_on.set()
    assert (tmp_path / "out").read_bytes() == b""
    assert slow.called == ["hanging"]
