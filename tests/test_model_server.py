"""The scripted server itself: four wire formats, streamed and whole, and the rules of providers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.model_server import Asked, ModelServer, busy
from tests.model_wires import Call, Says

PATHS = {
    "messages": "/v1/messages",
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
}


def post(server: ModelServer, path: str, body: dict[str, Any]) -> tuple[int, str]:
    request = urllib.request.Request(server.root + path, json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=600) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize("wire", sorted(PATHS))
def test_every_wire_format_says_the_same_streamed_and_whole(wire: str) -> None:
    says = Says("Here it is.", (Call("read", {"path": "a"}), Call("read", {"path": "b"})), thinking="hm")
    with ModelServer([says, says]) as server:
        _, whole = post(server, PATHS[wire], {"model": "m"})
        path = PATHS[wire].replace(":generateContent", ":streamGenerateContent")
        _, events = post(server, path, {"model": "m", "stream": True})
    assert [asked.is_streamed for asked in server.asked] == [False, True]
    assert all(word in whole for word in ("Here it is.", "read", "hm")) and whole.count('"name": "read"') == 2
    assert events.startswith(("event: ", "data: ")) and "it " in events and "read" in events
    for line in events.splitlines():
        if line.startswith("data: ") and line != "data: [DONE]":
            json.loads(line.removeprefix("data: "))


def test_a_script_may_answer_what_it_is_asked() -> None:
    def script(asked: Asked) -> Says:
        return Says(f"{asked.number}: {asked.body['messages'][0]['content']}")

    with ModelServer(script) as server:
        said = [post(server, PATHS["chat"], {"messages": [{"content": word}]})[1] for word in ("a", "b")]
    assert "1: a" in said[0] and "2: b" in said[1]


def test_a_request_too_many_is_refused_and_counted() -> None:
    with ModelServer([busy(1)]) as server:
        assert [post(server, PATHS["chat"], {})[0] for _ in range(2)] == [429, 400]
    assert server.surplus == 1 and len(server.asked) == 2


CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "x"}
TEXT = {"type": "text", "text": "hi"}


@pytest.mark.parametrize(
    ("wire", "body", "words"),
    [
        ("messages", {"messages": [USE, {"role": "user", "content": [TEXT]}], "tools": [1]}, "without `tool_result`"),
        ("messages", {"messages": [{"role": "user", "content": [RESULT]}], "tools": [1]}, "unexpected `tool_use_id`"),
        (
            "messages",
            {"messages": [USE, {"role": "user", "content": [TEXT, RESULT]}], "tools": [1]},
            "at the beginning",
        ),
        ("messages", {"messages": [USE, {"role": "user", "content": [RESULT]}]}, "must define tools"),
        ("messages", {"messages": [{"role": "user", "content": ""}]}, "must be non-empty"),
        ("messages", {"messages": [{"role": "user", "content": []}]}, "non-empty content"),
        ("messages", {"messages": [{"role": "assistant", "content": "x"}]}, "end with a user message"),
        ("messages", {"messages": [USE, {"role": "user", "content": [RESULT, TEXT]}], "tools": [1]}, ""),
        ("chat", {"messages": [{"role": "assistant", "tool_calls": [CALL]}]}, "did not have response messages: a"),
        ("chat", {"messages": [{"role": "tool", "tool_call_id": "a"}]}, "must be a response to"),
        (
            "chat",
            {"messages": [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "a"}]},
            "",
        ),
        ("responses", {"input": [{"type": "function_call", "call_id": "a"}]}, "No tool output found"),
        ("responses", {"input": [{"type": "function_call_output", "call_id": "a"}]}, "No tool call found"),
        ("responses", {"input": "hi"}, ""),
    ],
)
def test_a_strict_server_refuses_what_providers_refuse(wire: str, body: dict[str, Any], words: str) -> None:
    with ModelServer([Says("fine")], strict=True) as server:
        status, said = post(server, PATHS[wire], body)
    assert (status, words in said) == (400 if words else 200, True)
