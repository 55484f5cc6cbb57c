"""The rules of the providers: every valid request passes, and each rule finds what breaks it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.errors import ModelRefused
from everturn.llm import anthropic_messages, chat_completions
from everturn.llm.history_rules import certain_violations, validate_request
from everturn.llm.http_backend import Endpoint, HttpBackend
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, ToolSpec
from tests.llm.histories import WIRES, request
from tests.llm.wire_messages import objects
from tests.model_rules import broken_rule
from tests.model_server import ModelServer

TOOLS = [{"name": "t"}]
USER: dict[str, Any] = {"role": "user", "content": "hi"}
END: dict[str, Any] = {"role": "user", "content": "and?"}


def rules(wire: str, body: dict[str, Any]) -> list[str]:
    return [one.rule for one in validate_request(wire, body)]


@pytest.mark.parametrize("wire", WIRES)
def test_valid_requests_break_no_rule(wire: str) -> None:
    for seed in range(60):
        body = request(wire, seed)
        assert validate_request(wire, body) == [], f"seed {seed}"


def use(call_id: str = "a", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "t", "input": {}} | more


def result(call_id: str = "a") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "x"}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


TEXT = {"type": "text", "text": "w"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
SERVER = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([], "no_messages"),
        ([USER, assistant(use()), END], "no_result"),
        ([USER, assistant(use()), USER, user(result())], "results_first"),  # neighbours are one message
        ([USER, assistant(use()), user(TEXT, result())], "results_first"),
        ([USER, assistant(use()), user(result()), assistant(TEXT), user(result())], "no_call"),
        ([user(result())], "no_call"),
        ([USER, assistant(use()), user(result(), result())], "two_results"),
        ([USER, assistant(use(), use()), user(result())], "repeated_id"),
        ([USER, assistant(use("a:b")), user(result("a:b"))], "bad_id"),
        ([USER, assistant(use(input="x")), user(result())], "bad_call"),
        ([{"role": "user", "content": ""}], "empty_message"),
        ([user({"type": "text", "text": " "})], "empty_text"),
        ([USER, {"role": "tool", "content": "x"}], "role"),
        ([USER, user(THOUGHT)], "wrong_role"),
        ([USER, assistant(THOUGHT), END], "ends_on_thinking"),
        ([USER, assistant({"type": "thinking", "thinking": "hm"}, TEXT), END], "unsigned_thinking"),
        ([USER, assistant(SERVER, TEXT), END], "no_server_result"),
        ([USER, assistant(TEXT)], "ends_on_assistant"),
    ],
)
def test_each_rule_of_messages_finds_what_breaks_it(messages: list[dict[str, Any]], rule: str) -> None:
    assert rule in rules("anthropic_messages", {"messages": messages, "tools": TOOLS})


@pytest.mark.parametrize(
    "messages",
    [
        [USER, assistant(use()), assistant(TEXT), user(result())],  # one answer in two messages
        [USER, assistant(use("a"), use("b")), user(result("b")), user(result("a"), TEXT)],
        [USER, assistant(SERVER)],  # a paused answer
        [{"role": "assistant", "content": "Hello"}, USER, USER],
        [USER, {"role": "system", "content": "be quick"}, USER],
    ],
)
def test_what_providers_take_breaks_no_rule(messages: list[dict[str, Any]]) -> None:
    assert rules("anthropic_messages", {"messages": messages, "tools": TOOLS}) == []


def test_calls_need_tools_and_open_calls_their_thought() -> None:
    messages = [USER, assistant(use()), user(result())]
    assert rules("anthropic_messages", {"messages": messages}) == ["no_tools"]
    thinking = {"messages": messages, "tools": TOOLS, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    assert rules("anthropic_messages", thinking) == ["no_thinking"]
    thinking["messages"] = [USER, assistant(THOUGHT, use()), user(result())]
    assert rules("anthropic_messages", thinking) == []


def call(call_id: str = "a", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "t", "arguments": arguments}}


def test_what_providers_were_seen_to_accept_is_sent() -> None:
    again = [USER, assistant(use("a")), user(result("a")), assistant(use("a")), user(result("a"))]
    assert rules("anthropic_messages", {"messages": again, "tools": TOOLS}) == []
    in_flight = [USER, assistant(SERVER, TEXT), END]
    assert certain_violations("anthropic_messages", {"messages": in_flight}) == []
    search = {"type": "tool_search_call", "call_id": "a", "arguments": {}, "execution": "client"}
    found = {"type": "function_call_output", "call_id": "a", "output": "one tool"}
    assert rules("responses", {"input": [USER, search, found, END]}) == []


def calling(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def tool(call_id: str = "a", content: Any = "x") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([], "no_messages"),
        ([USER, calling(call())], "no_result"),
        ([USER, calling(call()), END], "no_result"),
        ([USER, calling(call("a"), call("b")), tool("a")], "no_result"),
        ([USER, calling(call()), {"role": "assistant", "content": "x"}, tool()], "no_call"),
        ([tool()], "no_call"),
        ([USER, calling(call()), tool(), tool()], "two_results"),
        ([USER, calling(call(), call()), tool()], "repeated_id"),
        ([USER, calling()], "empty_calls"),
        ([USER, calling(call(arguments={})), tool()], "bad_call"),
        ([USER, calling(call("")), tool("")], "bad_id"),
        ([USER, {**calling(call()), "role": "user"}, tool()], "wrong_role"),
        ([{"role": "user", "content": None}], "empty_message"),
        ([USER, {"role": "assistant", "content": None}, END], "empty_message"),
        ([USER, {"role": "assistant", "content": ""}, END], "empty_answer"),
        ([USER, calling(call()), tool(content=None)], "empty_message"),
        ([{"role": "robot", "content": "x"}], "role"),
        ([USER, {"role": "assistant", "content": "x"}], "ends_on_assistant"),
    ],
)
def test_each_rule_of_chat_finds_what_breaks_it(messages: list[dict[str, Any]], rule: str) -> None:
    assert rule in rules("chat_completions", {"messages": messages})


def test_ids_may_be_used_again_by_another_answer_in_chat() -> None:
    body = {"messages": [USER, calling(call()), tool(), calling(call()), tool()]}
    assert rules("chat_completions", body) == []


ASK = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "a", "name": "t", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "x"}
REASON = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}


@pytest.mark.parametrize(
    ("items", "rule"),
    [
        ([], "no_messages"),
        ([ASK, CALL], "no_result"),
        ([ASK, OUTPUT], "no_call"),
        ([ASK, OUTPUT, CALL], "no_call"),
        ([ASK, CALL, OUTPUT, OUTPUT], "two_results"),
        ([ASK, CALL, CALL, OUTPUT], "repeated_id"),
        ([ASK, REASON, CALL, REASON, CALL, OUTPUT], "repeated_item"),
        ([ASK, REASON], "ends_on_thinking"),
        ([ASK, REASON, ASK], "ends_on_thinking"),
        ([ASK, CALL, REASON, OUTPUT], "ends_on_thinking"),
        ([ASK, {**REASON, "encrypted_content": None}, CALL, OUTPUT], "unsigned_thinking"),
        ([ASK, {**CALL, "arguments": {}}, OUTPUT], "bad_call"),
        ([{"role": "robot", "content": "x"}], "role"),
        ([{"role": "user", "content": None}], "empty_message"),
    ],
)
def test_each_rule_of_responses_finds_what_breaks_it(items: list[dict[str, Any]], rule: str) -> None:
    assert rule in rules("responses", {"input": items, "store": False})


def test_a_request_that_goes_on_shows_only_what_is_new() -> None:
    assert rules("responses", {"input": [OUTPUT], "previous_response_id": "r"}) == []
    assert rules("responses", {"input": "hello"}) == []
    assert rules("responses", {"input": [ASK, CALL, {"role": "assistant", "content": "x"}, OUTPUT]}) == []


@settings(max_examples=40)
@given(st.sampled_from(sorted(WIRES)), st.lists(objects, max_size=4))
def test_a_request_of_any_shape_is_looked_at(wire: str, given: list[dict[str, Any]]) -> None:
    kinds = ["tool_use", "tool_result", "thinking", "function_call", "reasoning", "message"]
    shaped = [{**one, "type": kinds[n % 6], "role": "user", "content": [one]} for n, one in enumerate(given)]
    for one in (given, shaped):
        validate_request(wire, {"messages": one, "input": one})
    assert validate_request("another", {"messages": []}) == []


def test_what_the_server_refuses_is_found_before_it_is_sent() -> None:
    orphan = ChatMessage("assistant", (ChatPart("call", call_id="a", name="t", arguments={}),))
    with ModelServer([], strict=True) as server:
        for wire, base in ((anthropic_messages, server.root), (chat_completions, server.base)):
            backend = HttpBackend("local", "m", wire, Endpoint(base))
            with pytest.raises(ModelRefused, match="no result"):
                backend.ask(
                    ModelRequest(
                        (ChatMessage("user", (ChatPart("text", "?"),)), orphan), tools=(ToolSpec("t", "", {}),)
                    )
                )
    assert server.asked == []


def test_what_only_some_models_refuse_is_no_reason_not_to_send() -> None:
    body = {"messages": [USER, assistant(TEXT)]}
    assert (
        rules("anthropic_messages", body) == ["ends_on_assistant"]
        and certain_violations("anthropic_messages", body) == []
    )


def test_sentences_say_nothing_of_what_the_request_says() -> None:
    secret = {"messages": [user({"type": "text", "text": ""}), assistant(use(input={"k": "hunter2"}), THOUGHT), USER]}
    told = json.dumps([one.sentence for one in validate_request("anthropic_messages", secret)])
    assert told and "hunter2" not in told and broken_rule("messages", secret) is not None
