"""`everturn acp`: a client lists, loads and resumes archived sessions, in a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import everturn
from tests.capture.history import SID
from tests.cli.desk import Desk

SECRET = "ghp_" + "a1B2" * 9


class Client:
    """One client on the pipes of a server."""

    def __init__(self, db: Path) -> None:
        around = {**os.environ, "PYTHONPATH": str(Path(everturn.__file__).parent.parent)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "everturn", "acp", "--db", str(db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=around,
        )  # fmt: skip
        self._number = 0

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert found["jsonrpc"] == "2.0"
        return found

    def ask(self, method: str, **params: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the response to a request and the updates before it."""
        self._number += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}).encode())
        updates = []
        while "id" not in (message := self.receive()):
            assert message["method"] == "session/update"
            updates.append(message["params"]["update"])
        assert message["id"] == self._number
        return message, updates

    def close(self) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(30)


@pytest.fixture
def client(desk: Desk) -> Iterator[Client]:
    archive = desk.archive
    asked = archive.history.line("user", f"count the walruses with {SECRET}")
    used = archive.use("Bash", "c1", command="make count")
    desk.take_in(
        asked,
        used,
        archive.back("c1", "three"),
        archive.history.line("assistant", [{"type": "text", "text": "Three."}]),
    )
    made = Client(desk.db)
    yield made
    assert made.close() == 0


def test_a_client_lists_and_reads_a_session(client: Client) -> None:
    told, _ = client.ask("initialize", protocolVersion=1)
    assert told["result"]["protocolVersion"] == 1
    assert told["result"]["agentCapabilities"]["loadSession"] is True
    listed = client.ask("session/list")[0]["result"]["sessions"]
    assert [one["sessionId"] for one in listed] == [SID]
    assert listed[0]["cwd"].startswith("/") and SECRET not in json.dumps(listed)
    assert client.ask("session/list", cwd="/nowhere")[0]["result"]["sessions"] == []
    _, updates = client.ask("session/load", sessionId=SID, cwd="/", mcpServers=[])
    assert [one["sessionUpdate"] for one in updates] == [
        "user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk",
    ]  # fmt: skip
    assert SECRET not in json.dumps(updates) and "count the walruses" in updates[0]["content"]["text"]
    call, end = updates[1], updates[2]
    assert (call["kind"], call["toolCallId"], end["status"]) == ("execute", end["toolCallId"], "completed")
    assert end["content"][0]["content"]["text"] == "three"


def test_a_prompt_says_how_to_go_on_and_mistakes_are_told(client: Client) -> None:
    assert client.ask("session/resume", sessionId=SID, cwd="/")[0]["result"] == {}
    told, updates = client.ask("session/prompt", sessionId=SID, prompt=[{"type": "text", "text": "go on"}])
    assert told["result"] == {"stopReason": "end_turn"}
    assert f"everturn resume {SID}" in updates[0]["content"]["text"]
    assert client.ask("session/load", sessionId="nobody", cwd="/")[0]["error"]["code"] == -32000
    assert client.ask("session/load", sessionId=7)[0]["error"]["code"] == -32602
    assert client.ask("session/load")[0]["error"]["code"] == -32602
    assert client.ask("session/new", cwd="/", mcpServers=[])[0]["error"]["code"] == -32601
    client.send(b"{nonsense")
    assert client.receive()["error"]["code"] == -32700
    client.send(b"[]")
    assert client.receive()["error"]["code"] == -32600
    client.send(b'{"jsonrpc": "2.0", "method": "session/cancel", "params": {}}')
    assert client.ask("session/close", sessionId=SID)[0]["result"] == {}


def test_a_result_that_its_file_has_before_the_call_comes_after_it(desk: Desk) -> None:
    archive = desk.archive
    result, call = archive.back("c9", "three"), archive.use("Bash", "c9", command="make count")
    desk.take_in(archive.history.line("user", "count the walruses"), result, call)
    client = Client(desk.db)
    try:
        _, updates = client.ask("session/load", sessionId=SID, cwd="/", mcpServers=[])
    finally:
        assert client.close() == 0
    started, ended = (one for one in updates if "toolCallId" in one)
    assert (started["sessionUpdate"], ended["sessionUpdate"]) == ("tool_call", "tool_call_update")
    assert started["toolCallId"] == ended["toolCallId"]
    assert ended["status"] == "completed"


@pytest.mark.needs("module:acp")
def test_the_models_of_the_official_package_accept_what_is_sent(client: Client) -> None:
    from acp import schema  # type: ignore[import-not-found,unused-ignore]

    schema.InitializeResponse.model_validate(client.ask("initialize", protocolVersion=1)[0]["result"])
    schema.ListSessionsResponse.model_validate(client.ask("session/list")[0]["result"])
    told, updates = client.ask("session/load", sessionId=SID, cwd="/", mcpServers=[])
    schema.LoadSessionResponse.model_validate(told["result"])
    assert updates
    for update in updates:
        schema.SessionNotification.model_validate({"sessionId": SID, "update": update})
