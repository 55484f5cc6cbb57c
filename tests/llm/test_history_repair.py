"""Repair: every broken history becomes a valid request, and no recorded success is told as a failure."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from everturn.llm import anthropic_messages, chat_completions
from everturn.llm.history_repair import NO_RECORD, repair_history
from everturn.llm.history_rules import validate_request
from everturn.llm.protocol import ChatMessage, ChatPart
from tests.llm.histories import WIRES, cuts, messages_of, request, sent, taken_up
from tests.model_rules import broken_rule

SERVER_WIRES = {"anthropic_messages": "messages", "chat_completions": "chat", "responses": "responses"}
ASK = ChatMessage("user", (ChatPart("text", "look"),))


def call(call_id: str, name: str = "read") -> ChatPart:
    return ChatPart("call", call_id=call_id, name=name, arguments={"p": call_id})


def said(*parts: ChatPart) -> ChatMessage:
    return ChatMessage("assistant", parts)


def gave(*ids: str, text: str = "ok", is_error: bool = False) -> ChatMessage:
    return ChatMessage("tool", tuple(ChatPart("result", text, call_id, is_error=is_error) for call_id in ids))


def told(messages: tuple[ChatMessage, ...]) -> dict[str, str]:
    return {part.call_id: part.text for message in messages for part in message.parts if part.kind == "result"}


@pytest.mark.few(8)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("seed", range(12))
def test_every_cut_of_a_valid_history_is_repaired_into_a_valid_request(wire: str, seed: int) -> None:
    body = request(wire, seed)
    for cut in cuts(messages_of(wire, body)):
        made = sent(wire, taken_up(cut, wire), body)
        assert validate_request(wire, made) == [] and broken_rule(SERVER_WIRES[wire], made) is None, json.dumps(made)


@pytest.mark.few(8)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("seed", range(12))
def test_repairing_twice_is_repairing_once(wire: str, seed: int) -> None:
    for cut in cuts(messages_of(wire, request(wire, seed))):
        once = repair_history(cut)
        again = repair_history(once.messages)
        assert again.messages == once.messages and again.mended == []


@pytest.mark.parametrize("wire", WIRES)
def test_a_valid_history_is_not_touched(wire: str) -> None:
    for seed in range(60):
        messages = messages_of(wire, request(wire, seed))
        fine = repair_history(messages)
        assert fine.messages == messages and fine.mended == [], f"seed {seed}"


def test_a_call_without_a_result_is_told_as_in_doubt() -> None:
    fixed = repair_history([ASK, said(call("a"), call("b")), gave("a")])
    assert told(fixed.messages) == {"a": "ok", "b": NO_RECORD}
    assert any("b (read)" in one for one in fixed.mended)


def test_of_two_results_the_success_is_told() -> None:
    fixed = repair_history([ASK, said(call("a")), gave("a", text="lost", is_error=True), gave("a", text="done")])
    assert told(fixed.messages) == {"a": "done"}
    assert sum(part.kind == "result" for message in fixed.messages for part in message.parts) == 1


def test_words_between_a_call_and_its_result_come_after_it() -> None:
    between = ChatMessage("user", (ChatPart("text", "wait"),))
    fixed = repair_history([ASK, said(call("a")), between, gave("a")])
    assert [message.role for message in fixed.messages] == ["user", "assistant", "tool", "user"]


def test_a_result_that_came_before_its_call_is_put_behind_it() -> None:
    fixed = repair_history([ASK, gave("a", text="early"), said(call("a")), ASK])
    assert told(fixed.messages) == {"a": "early"} and fixed.messages[2].parts[0].text == "early"


def test_a_result_without_a_call_is_left_out_and_said() -> None:
    fixed = repair_history([gave("gone"), ASK])
    assert fixed.messages == (ASK,) and fixed.mended == ["result gone has no call and is left out"]


def test_ids_that_are_used_again_are_told_apart() -> None:
    history = [ASK, said(call("0")), gave("0", text="one"), said(call("0")), gave("0", text="two")]
    fixed = repair_history(history)
    assert told(fixed.messages) == {"0": "one", "0_2": "two"} and repair_history(fixed.messages).mended == []


def test_a_call_that_stands_there_twice_is_sent_once() -> None:
    fixed = repair_history([ASK, said(call("a", "old"), call("a", "new")), gave("a")])
    assert [part.name for part in fixed.messages[1].parts] == ["new"] and told(fixed.messages) == {"a": "ok"}
    both = repair_history([ASK, said(call("a"), call("a")), gave("a", text="1"), gave("a", text="2")])
    assert told(both.messages) == {"a": "1", "a_2": "2"}


def test_the_same_result_in_two_places_stands_there_once() -> None:
    result = ChatPart("result", "x", "a")
    for wire in ("", "responses"):
        fixed = repair_history(
            [ASK, said(call("a")), ChatMessage("tool", (result,)), ChatMessage("tool", (result,))], wire=wire
        )
        assert [part for message in fixed.messages for part in message.parts if part.kind == "result"] == [result]


def test_a_renamed_call_is_renamed_in_what_is_kept_verbatim() -> None:
    def step(text: str) -> list[dict[str, Any]]:
        use = {"type": "tool_use", "id": "a", "name": "t", "input": {}}
        back = {"type": "tool_result", "tool_use_id": "a", "content": text}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [back]}]

    history = [{"role": "user", "content": "x"}, *step("1"), *step("2")]
    made = sent("anthropic_messages", repair_history(list(map(anthropic_messages.message, history))).messages)
    assert [block["tool_use_id"] for message in made["messages"][2::2] for block in message["content"]] == ["a", "a_2"]
    assert validate_request("anthropic_messages", made) == []


def test_a_made_result_fits_to_an_id_that_no_other_provider_would_take() -> None:
    spoken = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "functions.read:0", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}  # fmt: skip
    fixed = repair_history([ASK, chat_completions.message(spoken)])
    made = sent("chat_completions", fixed.messages)
    assert (
        made["messages"][-1]["tool_call_id"] == "functions.read:0" and validate_request("chat_completions", made) == []
    )


def test_half_an_answer_is_left_out_and_said() -> None:
    half = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": ""}]
    history = [anthropic_messages.message({"role": "assistant", "content": half}), ASK]
    fixed = repair_history([ASK, *history])
    assert fixed.messages == (ASK, ASK) and len(fixed.mended) == 2
    unsigned = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "so"}]
    fixed = repair_history([ASK, anthropic_messages.message({"role": "assistant", "content": unsigned}), ASK])
    assert [part.kind for part in fixed.messages[1].parts] == ["text"]


def test_answers_of_several_providers_are_made_valid_for_each() -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {}}]}
    spoken = {"role": "assistant", "content": "hm", "tool_calls": [
        {"id": "b", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}  # fmt: skip
    fixed = repair_history(
        [ASK, anthropic_messages.message(use), chat_completions.message(spoken), gave("b"), gave("a"), ASK]
    )
    assert [message.role for message in fixed.messages] == ["user", "assistant", "tool", "assistant", "tool", "user"]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("seed", range(40))
def test_a_history_out_of_order_and_with_doubles_is_repaired_too(wire: str, seed: int) -> None:
    dice, body = random.Random(seed), request(wire, seed)
    history = list(messages_of(wire, body))
    for _ in range(dice.randint(1, 4)):
        taken = history[dice.randrange(len(history))]
        history.insert(dice.randrange(len(history)), taken)
        history.pop(dice.randrange(len(history)))
    made = taken_up(tuple(history), wire)
    assert validate_request(wire, sent(wire, made, body)) == [] and repair_history(made, wire=wire).mended == []


def test_a_long_history_with_an_open_call_at_its_end_is_repaired_there_only() -> None:
    history = [one for n in range(1000) for one in (ASK, said(call(f"c{n}")), gave(f"c{n}"))]
    fixed = repair_history([*history, said(call("last"))])
    assert fixed.messages[:-2] == tuple(history) and told(fixed.messages)["last"] == NO_RECORD
