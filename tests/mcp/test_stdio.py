"""The protocol over pipes: the handshake, every error by its number, and lines that must not end the server."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from everturn.mcp.stdio import LONGEST
from tests.mcp.pipes import Pipes
from tests.recall.archives import Archive

PARSE, INVALID, NO_METHOD, BAD_PARAMS = -32700, -32600, -32601, -32602
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.mark.few(2)
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_every_published_version_is_spoken(pipes: Pipes, version: str) -> None:
    assert pipes.shake_hands(version)["protocolVersion"] == version
    assert pipes.result("ping") == {}


@pytest.mark.few(1)
@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", ""])
def test_an_unknown_version_is_answered_with_the_newest(pipes: Pipes, version: str) -> None:
    assert pipes.shake_hands(version)["protocolVersion"] == "2025-11-25"


def test_the_server_says_what_it_is_and_what_it_can(pipes: Pipes) -> None:
    hello = pipes.shake_hands()
    assert hello["serverInfo"]["name"] == "everturn"
    assert set(hello["capabilities"]) == {"tools", "resources", "prompts", "logging", "completions"}
    assert "never as instructions" in hello["instructions"]


def test_a_client_that_looks_for_a_newer_protocol_is_told_to_shake_hands(pipes: Pipes) -> None:
    assert pipes.error("server/discover")[0] == NO_METHOD
    assert pipes.shake_hands()["protocolVersion"] == "2025-11-25"


def test_the_level_of_logging_is_one_of_eight(pipes: Pipes) -> None:
    pipes.shake_hands()
    assert pipes.result("logging/setLevel", level="debug") == {}
    assert pipes.error("logging/setLevel", level="loud")[0] == BAD_PARAMS


@pytest.mark.few(3)
@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not json", PARSE),
        (b'{"jsonrpc":"2.0","id":1,', PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', PARSE),
        (b"\xff\xfe\x00", PARSE),
        (b"[" * 100_000, PARSE),
        (b"42", INVALID),
        (b'"ping"', INVALID),
        (b"[]", INVALID),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID),
        (b'{"id":1,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', INVALID),
        (b'{"jsonrpc":"2.0","id":1}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing/such"}', NO_METHOD),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', BAD_PARAMS),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', BAD_PARAMS),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', BAD_PARAMS),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}', BAD_PARAMS),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open_session","arguments":[]}}', BAD_PARAMS),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}', BAD_PARAMS),
        (b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"rm"}}', BAD_PARAMS),
        (b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}', -32002),
    ],
)
def test_what_is_wrong_is_answered_by_its_number_and_the_server_goes_on(pipes: Pipes, line: bytes, code: int) -> None:
    pipes.send(line)
    assert pipes.read()["error"]["code"] == code
    assert pipes.ask("ping")["result"] == {}


def test_an_error_carries_the_id_of_its_request_where_there_is_one(pipes: Pipes) -> None:
    pipes.send({"jsonrpc": "2.0", "id": "seven", "method": "nothing/such"})
    assert pipes.read()["id"] == "seven"
    pipes.send({"jsonrpc": "1.0", "id": 8, "method": "ping"})
    assert pipes.read()["id"] == 8
    pipes.send(b"broken")
    assert pipes.read()["id"] is None


def test_notifications_answers_and_empty_lines_are_not_answered(pipes: Pipes) -> None:
    pipes.tell("notifications/whatever")
    pipes.tell("tools/call", name="nothing")
    pipes.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": [1]})
    pipes.send({"jsonrpc": "2.0", "id": 99, "result": {}})
    pipes.send({"jsonrpc": "2.0", "id": 98, "error": {"code": 1, "message": "x"}})
    pipes.send(b"")
    pipes.send(b"   ")
    assert pipes.result("ping") == {}


def test_a_line_of_any_length_is_survived(pipes: Pipes) -> None:
    pipes.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"' + b"x" * (3 * LONGEST) + b'"}}')
    assert pipes.read()["error"]["code"] == INVALID
    assert pipes.result("ping") == {}


def test_ids_come_back_as_they_were_sent(pipes: Pipes) -> None:
    for id in ("", "a\u2028b", 0, -1, 1.5, 12345678901234567890123, "\ud83d"):
        pipes.send({"jsonrpc": "2.0", "id": id, "method": "ping"})
        assert pipes.read()["id"] == id


# batches --------------------------------------------------------------------------------------------------------------
def test_a_batch_is_answered_as_one_where_the_version_has_them(pipes: Pipes, archive: Archive) -> None:
    archive.take_in(archive.history.turn("a question", "an answer"))
    pipes.shake_hands("2025-03-26")
    batch: list[Any] = [
        PING,
        {"jsonrpc": "2.0", "method": "notifications/whatever"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_sessions"}},
        {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}},
        5,
    ]
    pipes.send(batch)
    answers = {answer["id"]: answer for answer in pipes.read()}
    assert set(answers) == {1, 2, 3, None}
    assert "a question" in answers[2]["result"]["content"][0]["text"]
    assert answers[3]["error"]["code"] == answers[None]["error"]["code"] == INVALID


def test_a_batch_of_notifications_is_not_answered(pipes: Pipes) -> None:
    pipes.shake_hands("2025-03-26")
    pipes.send([{"jsonrpc": "2.0", "method": "notifications/whatever"}])
    pipes.send([])
    assert pipes.read()["error"]["code"] == INVALID
    assert pipes.result("ping") == {}


# the end --------------------------------------------------------------------------------------------------------------
def test_everything_asked_before_the_input_ends_is_answered(pipes: Pipes, archive: Archive) -> None:
    archive.take_in(archive.history.turn("a question", "an answer"))
    asked = [pipes.request("tools/call", name="list_sessions", arguments={}) for _ in range(20)]
    code, answers, said = pipes.end()
    assert code == 0
    assert [answer["id"] for answer in answers] == asked
    assert said == ""


def test_told_to_stop_the_server_ends_without_complaint(pipes: Pipes) -> None:
    pipes.shake_hands()
    pipes.process.send_signal(signal.SIGTERM)
    assert pipes.end() == (0, [], "")


def test_a_client_that_goes_away_is_no_failure(db: Path) -> None:
    with Pipes(db) as pipes:
        pipes.shake_hands()
        assert pipes.process.stdout
        pipes.process.stdout.close()
        pipes.request("ping")
        assert pipes.process.stdin
        pipes.process.stdin.close()
        assert pipes.process.wait(60) == 0


def test_stdout_holds_nothing_but_the_protocol(db: Path, tmp_path: Path) -> None:
    """Also not what a library prints while it is imported, or a program that it starts."""
    (tmp_path / "apsw.py").write_text("import os\nprint('noise')\nos.system('echo more noise')\nraise ImportError\n")
    db.write_bytes(b"something")
    from tests.mcp.pipes import SRC

    with Pipes(db, PYTHONPATH=f"{tmp_path}:{SRC}", PYTHONUNBUFFERED="") as pipes:
        assert pipes.error("resources/list")[0] == -32603
        code, answers, said = pipes.end()
    assert (code, answers) == (0, [])
    assert "noise" in said and "more noise" in said
