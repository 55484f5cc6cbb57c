"""Wire formats: what came from a provider goes back to it unchanged, streamed or not, known or not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.llm import anthropic_messages, chat_completions
from everturn.llm.protocol import ChatMessage, ChatPart, GarbledAnswer, ModelRequest, StreamFailed, ToolSpec, Wire
from tests.llm import wire_messages as made
from tests.model_rules import broken_rule
from tests.model_wires import VARIOUS, Call, Says, rendered

WIRES: dict[str, Wire] = {"messages": anthropic_messages, "chat": chat_completions}


def as_sent(value: Any) -> str:
    """The bytes on the wire: the order of members counts."""
    return json.dumps(value)


def streamed(wire: Wire, events: list[Any]) -> tuple[Any, list[Any]]:
    assembly = wire.assembly()
    deltas = [
        delta for event in events for delta in assembly.feed(event if isinstance(event, str) else json.dumps(event))
    ]
    return assembly.reply(), deltas


@given(made.anthropic_history)
def test_a_message_of_anthropic_goes_back_as_it_came(wire: dict[str, Any]) -> None:
    message = anthropic_messages.message(wire)
    assert as_sent(anthropic_messages.history(message)) == as_sent([wire])


@given(made.chat_history)
def test_a_chat_message_goes_back_as_it_came(wire: dict[str, Any]) -> None:
    message = chat_completions.message(wire)
    assert as_sent(chat_completions.history(message)) == as_sent([wire])


@given(made.anthropic_answers, st.integers(1, 9))
def test_a_streamed_answer_of_anthropic_is_the_whole_one(answer: dict[str, Any], size: int) -> None:
    whole = anthropic_messages.read(answer)
    reply, deltas = streamed(anthropic_messages, made.anthropic_events(answer, size))
    assert reply == whole
    assert "".join(delta.text for delta in deltas if delta.kind == "text") == whole.text
    sent = anthropic_messages.history(reply.message)
    assert as_sent(sent) == as_sent([{"role": "assistant", "content": answer["content"]}])


@given(made.chat_answers)
def test_a_chat_answer_goes_back_as_it_came(message: dict[str, Any]) -> None:
    reply = chat_completions.read({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    assert as_sent(chat_completions.history(reply.message)) == as_sent([message])
    assert [call.call_id for call in reply.calls] == [call["id"] for call in message.get("tool_calls", [])]


@pytest.mark.parametrize("name", ["messages", "chat"])
@pytest.mark.parametrize("says", VARIOUS)
def test_a_streamed_answer_says_what_the_whole_one_says(name: str, says: Says) -> None:
    answer = rendered(name, says, "m", 1)
    whole = WIRES[name].read(answer.whole)
    reply, deltas = streamed(WIRES[name], [data for _, data in answer.events])
    assert (reply.text, reply.calls, reply.stop, reply.usage) == (whole.text, whole.calls, whole.stop, whole.usage)
    assert reply.message.parts == whole.message.parts
    assert reply.stop == ("calls" if says.calls else says.stop)
    assert (reply.usage.input, reply.usage.output) == says.tokens
    spoken = "".join(delta.text for delta in deltas if delta.kind == "text")
    assert spoken == reply.text == says.text
    for call in reply.calls:
        pieces = [delta.text for delta in deltas if delta.kind == "call" and delta.call_id == call.call_id]
        assert json.loads("".join(pieces) or "{}") == call.arguments


@given(st.lists(st.one_of(st.text(max_size=20), st.just('{"type":"content_block_start"}'), st.just('{"choices":3}'))))
def test_an_assembly_reads_anything_or_says_it_is_garbled(events: list[str]) -> None:
    for wire in WIRES.values():
        assembly = wire.assembly()
        try:
            for event in events:
                assembly.feed(event)
        except (GarbledAnswer, StreamFailed):
            pass
        assert assembly.reply().stop in ("cut", "end")


@given(made.objects)
def test_an_answer_of_any_shape_is_read_or_garbled(answer: dict[str, Any]) -> None:
    for wire in WIRES.values():
        with pytest.raises(GarbledAnswer):
            wire.read({**answer, "content": None, "choices": []})
        wire.failure({"error": answer})


def test_arguments_that_are_no_json_are_kept_as_they_came() -> None:
    answer = rendered("chat", Says(calls=(Call("f", '{"a": '),)), "m", 1)
    assert chat_completions.read(answer.whole).calls[0].arguments == '{"a": '
    events = rendered("messages", Says(calls=(Call("f", '{"a": '),)), "m", 1).events
    reply, _ = streamed(anthropic_messages, [data for _, data in events])
    assert reply.calls[0].arguments == '{"a": ' and reply.calls[0].raw is None


def test_half_an_emoji_does_not_lose_the_answer() -> None:
    events = [f'{{"choices": [{{"delta": {{"content": "{text}"}}}}]}}' for text in ("a\\ud83d", "\\ude00b")]
    reply, _ = streamed(chat_completions, [*events, "[DONE]"])
    assert reply.text == "a\ufffd\ufffdb"


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    def chunk(id: str | None, text: str) -> dict[str, Any]:
        call = {"function": {"name": "f" if id else None, "arguments": text}} | ({"id": id} if id else {})
        return {"choices": [{"delta": {"tool_calls": [call]}}]}

    events = [chunk("a", '{"x":'), chunk(None, "1}"), chunk("b", "{}")]
    reply, _ = streamed(chat_completions, [*events, "[DONE]"])
    assert [(call.call_id, call.arguments) for call in reply.calls] == [("a", {"x": 1}), ("b", {})]
    assert reply.stop == "calls"


NEUTRAL = (
    ChatMessage("user", (ChatPart("text", "look"),)),
    ChatMessage(
        "assistant",
        (
            ChatPart("thinking", "hidden", raw={"type": "foreign"}),
            ChatPart("text", "I do."),
            ChatPart("call", call_id="call:1/x", name="read", arguments={"p": 1}),
            ChatPart("call", call_id="c2", name="read", arguments={"p": 2}),
        ),
        wire="elsewhere",
    ),
    ChatMessage("tool", (ChatPart("result", "one", "call:1/x", "read"),)),
    ChatMessage("tool", (ChatPart("result", "two", "c2", "read", is_error=True),)),
    ChatMessage("user", (ChatPart("text", "and now?"), ChatPart("text", "  "))),
)


@pytest.mark.parametrize("name", ["messages", "chat"])
def test_a_history_from_elsewhere_keeps_the_rules_of_the_provider(name: str) -> None:
    tools = (ToolSpec("read", "reads", {"type": "object"}),)
    body = WIRES[name].body(ModelRequest(NEUTRAL, "Be brief.", tools, "m", 100, 0.5, {"top_p": 1}), stream=True)
    assert broken_rule(name, body) is None
    assert "hidden" not in json.dumps(body) and "foreign" not in json.dumps(body)
    assert body["top_p"] == 1 and body["temperature"] == 0.5 and body["max_tokens"] == 100 and body["stream"] is True
    assert "Be brief." in json.dumps(body)


def test_results_of_one_response_go_into_one_message_with_the_next_words_behind_them() -> None:
    sent = anthropic_messages.body(ModelRequest(NEUTRAL))["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    kinds = [block["type"] for block in sent[2]["content"]]
    assert kinds == ["tool_result", "tool_result", "text"]
    assert sent[2]["content"][1]["is_error"] is True
    assert sent[1]["content"][1]["id"] == sent[2]["content"][0]["tool_use_id"] == "call_1_x"


def test_messages_of_the_provider_are_never_joined() -> None:
    own: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
           {"role": "user", "content": "more"}]  # fmt: skip
    request = ModelRequest(tuple(map(anthropic_messages.message, own)))
    assert anthropic_messages.body(request)["messages"] == own


def test_cached_tokens_are_counted_beside_the_others() -> None:
    used = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 80}}
    reply = chat_completions.read({"choices": [{"message": {"content": "x"}}], "usage": used})
    assert (reply.usage.input, reply.usage.cache_read, reply.usage.output) == (20, 80, 5)
    used = {"input_tokens": 20, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 7, "output_tokens": 5}
    reply = anthropic_messages.read({"content": [], "usage": used})
    assert (reply.usage.input, reply.usage.cache_read, reply.usage.cache_write) == (20, 80, 7)


def test_a_limit_by_its_newer_name_replaces_the_older_one() -> None:
    body = chat_completions.body(ModelRequest((), max_tokens=7, extra={"max_completion_tokens": 1}))
    assert body["max_completion_tokens"] == 7 and "max_tokens" not in body
