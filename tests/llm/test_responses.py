"""The wire format /responses: items go back as they came, streamed or not, and results of ours fit to them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.llm import responses
from everturn.llm.history_rules import validate_request
from everturn.llm.http_backend import Endpoint, HttpBackend, Patience
from everturn.llm.protocol import ChatMessage, ChatPart, GarbledAnswer, ModelRequest, Reply, StreamFailed, ToolSpec
from tests.llm.histories import WIRES, messages_of, request, sent
from tests.llm.wire_messages import objects, texts, unknown_blocks, words
from tests.model_server import ModelServer
from tests.model_wires import VARIOUS, Call, Says, rendered

blocks = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["input_text", "output_text"]), "text": texts, "annotations": st.just([])}
    ),
    st.fixed_dictionaries({"type": st.just("refusal"), "refusal": texts}),
    st.fixed_dictionaries({"type": st.just("input_image"), "image_url": words}),
    unknown_blocks,
)
items = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "developer"]), "content": texts}),
    st.fixed_dictionaries(
        {"id": words, "type": st.just("message"), "content": st.lists(blocks, max_size=3), "role": st.just("user")}
    ),
    st.fixed_dictionaries({"type": st.just("function_call"), "call_id": words, "name": words, "arguments": texts}),
    st.fixed_dictionaries({"type": st.just("custom_tool_call"), "call_id": words, "name": words, "input": texts}),
    st.fixed_dictionaries({"type": st.just("function_call_output"), "call_id": words, "output": texts | st.lists(blocks)}),
    st.fixed_dictionaries({"type": st.just("reasoning"), "id": words, "summary": st.just([]), "encrypted_content": words}),
    st.fixed_dictionaries({"type": st.just("item_reference"), "id": words}),
    unknown_blocks,
    objects,
)  # fmt: skip


def streamed(events: list[Any]) -> tuple[Reply, list[Any]]:
    assembly = responses.assembly()
    deltas = [delta for event in events for delta in assembly.feed(json.dumps(event))]
    return assembly.reply(), deltas


@given(items)
def test_an_item_goes_back_as_it_came(item: dict[str, Any]) -> None:
    assert json.dumps(responses.history(responses.message(item))) == json.dumps([item])


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("seed", range(20))
def test_a_whole_history_goes_back_as_it_came(wire: str, seed: int) -> None:
    body = request(wire, seed)
    again = sent(wire, messages_of(wire, body), body)
    name = "input" if wire == "responses" else "messages"
    assert json.dumps(again[name]) == json.dumps(body[name])


@pytest.mark.parametrize("says", VARIOUS)
def test_a_streamed_answer_says_what_the_whole_one_says(says: Says) -> None:
    answer = rendered("responses", says, "m", 1)
    whole = responses.read(answer.whole)
    reply, deltas = streamed([data for _, data in answer.events])
    assert reply == whole
    assert reply.stop == ("calls" if says.calls else says.stop) and reply.text == says.text
    assert (reply.usage.input, reply.usage.output) == says.tokens
    assert "".join(delta.text for delta in deltas if delta.kind == "text") == says.text
    assert "".join(delta.text for delta in deltas if delta.kind == "thinking") == says.thinking
    for call in reply.calls:
        pieces = [delta.text for delta in deltas if delta.kind == "call" and delta.call_id == call.call_id]
        assert json.loads("".join(pieces) or "{}") == call.arguments
    assert responses.history(reply.message) == answer.whole["output"]


def test_a_stream_that_breaks_off_gives_what_came() -> None:
    says = Says("One two three", (Call("read", {"p": 1}),), thinking="well now")
    events = [data for _, data in rendered("responses", says, "m", 1).events]
    for end in range(1, len(events)):
        reply, deltas = streamed(events[:end])
        assert reply.stop == "cut"
        assert reply.text == "".join(delta.text for delta in deltas if delta.kind == "text")


def test_a_last_event_without_the_output_does_not_lose_it() -> None:
    events = [data for _, data in rendered("responses", Says("Hello"), "m", 1).events]
    events[-1] = {**events[-1], "response": {**events[-1]["response"], "output": []}}
    assert streamed(events)[0].text == "Hello"


def test_a_failed_answer_is_told() -> None:
    assembly = responses.assembly()
    failed = {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "sorry"}}}
    with pytest.raises(StreamFailed) as caught:
        assembly.feed(json.dumps(failed))
    assert caught.value.failure.passes and caught.value.failure.says == "sorry"
    with pytest.raises(StreamFailed):
        assembly.feed('{"type": "error", "code": "rate_limit_exceeded", "message": "slow"}')


kinds = st.sampled_from(
    ["response.created", "response.output_item.added", "response.output_text.delta", "response.completed", "x", "error"]
)
events = st.builds(lambda kind, more: {**more, "type": kind}, kinds, objects)


@settings(max_examples=40)
@given(st.lists(events | objects, max_size=5))
def test_an_assembly_reads_anything_or_says_it_is_garbled(given: list[dict[str, Any]]) -> None:
    assembly = responses.assembly()
    try:
        for event in given:
            assembly.feed(json.dumps(event))
    except (GarbledAnswer, StreamFailed):
        pass
    assert assembly.reply().stop in ("cut", "end", "length")


def test_results_of_ours_fit_to_calls_of_theirs() -> None:
    calls = [
        {"type": "function_call", "call_id": "functions.a:0", "name": "read", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c:1", "name": "patch", "input": "words"},
    ]
    results = ChatMessage(
        "tool", (ChatPart("result", "one", "functions.a:0"), ChatPart("result", "two", "c:1", is_error=True))
    )
    body = responses.body(ModelRequest((*map(responses.message, calls), results)))
    assert body["input"][2:] == [
        {"type": "function_call_output", "call_id": "functions.a:0", "output": "one"},
        {"type": "custom_tool_call_output", "call_id": "c:1", "output": "Error: two"},
    ]
    assert validate_request("responses", body) == []


def test_a_thought_that_is_kept_nowhere_is_not_sent_nor_asked_for() -> None:
    answer = rendered("responses", Says("So.", thinking="hm"), "m", 1).whole
    answer["output"][0].pop("encrypted_content")
    messages = (
        ChatMessage("user", (ChatPart("text", "?"),)),
        responses.read(answer).message,
        ChatMessage("user", (ChatPart("text", "!"),)),
    )
    body = responses.body(ModelRequest(messages))
    assert [item["type"] for item in body["input"]] == ["message", "message", "message"]
    assert "id" not in body["input"][1] and validate_request("responses", body) == []
    stored = responses.body(ModelRequest(messages, extra={"store": True}))
    assert [item.get("id") for item in stored["input"]] == [None, "rs_1", "msg_1", None]


def test_a_request_asks_for_sealed_thoughts_where_the_model_thinks() -> None:
    assert "include" not in responses.body(ModelRequest(()))
    body = responses.body(
        ModelRequest((), "Be brief.", (ToolSpec("t", "d", {}),), "m", 7, 0.5, {"reasoning": {"effort": "low"}})
    )
    assert body["include"] == ["reasoning.encrypted_content"] and body["store"] is False
    assert body["instructions"] == "Be brief." and body["max_output_tokens"] == 7


def test_cached_tokens_are_counted_beside_the_others() -> None:
    used = {"input_tokens": 100, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 80}}
    usage = responses.read({"output": [], "usage": used}).usage
    assert (usage.input, usage.cache_read, usage.output) == (20, 80, 5)


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_conversation_with_calls_is_taken_by_a_strict_server(is_streamed: bool) -> None:
    script = [Says("I look.", (Call("read", {"p": 1}), Call("read", {"p": 2})), thinking="hm"), Says("Done.")]
    with ModelServer(script, strict=True) as server:
        endpoint = Endpoint(server.base, Patience(tries=1), is_streamed=is_streamed)
        backend = HttpBackend("local", "m", responses, endpoint)
        asked = ChatMessage("user", (ChatPart("text", "look"),))
        first = backend.ask(ModelRequest((asked,)))
        results = ChatMessage("tool", tuple(ChatPart("result", "x", call.call_id) for call in first.calls))
        last = backend.ask(ModelRequest((asked, first.message, results)))
    assert last.text == "Done." and [item["type"] for item in server.asked[1].body["input"]] == [
        "message", "reasoning", "message", "function_call", "function_call", "function_call_output", "function_call_output"
    ]  # fmt: skip
