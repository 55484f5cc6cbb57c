"""Translation: a history of one provider is valid for another, with all its words, calls, results and images."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from everturn.llm import anthropic_messages
from everturn.llm.history_rules import validate_request
from everturn.llm.history_translation import translate_history
from everturn.llm.protocol import ChatMessage, ChatPart
from tests.llm.histories import PNG, WIRES, messages_of, request, sent

PAIRS = [(one, other) for one in WIRES for other in WIRES if one != other]
ASK = ChatMessage("user", (ChatPart("text", "look"),))


def parts(messages: tuple[ChatMessage, ...], kind: str) -> list[ChatPart]:
    return [part for message in messages for part in message.parts if part.kind == kind]


def images(value: Any) -> int:
    return json.dumps(value).count(PNG) + json.dumps(value).count("https://example.org/a.png")


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("seed", range(20))
def test_a_translated_history_is_valid_and_whole(one: str, other: str, seed: int) -> None:
    before = messages_of(one, request(one, seed))
    after = translate_history(before, one, other)
    body = sent(other, after.messages)
    assert validate_request(other, body) == []
    text = json.dumps(body, ensure_ascii=False)
    for part in parts(before, "text") + parts(before, "result"):
        assert json.dumps(part.text, ensure_ascii=False)[1:-1] in text
    assert len(parts(after.messages, "call")) == len(parts(before, "call")) == len(after.ids)
    assert len(parts(after.messages, "result")) == len(parts(before, "result"))
    assert images(body) == images(sent(one, before))
    gone = len(parts(before, "thinking")) + len(parts(before, "opaque"))
    assert sum("system message" not in why for why in after.dropped) == gone


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("seed", range(10))
def test_nothing_sealed_by_one_provider_is_sent_to_another(one: str, other: str, seed: int) -> None:
    text = json.dumps(sent(other, translate_history(messages_of(one, request(one, seed)), one, other).messages))
    assert not re.search(r'"(signature|encrypted_content|redacted_thinking|reasoning_content)"|rs_|srvtoolu_', text)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_there_and_back_again_nothing_more_is_lost(one: str, other: str) -> None:
    for seed in range(10):
        there = translate_history(messages_of(one, request(one, seed)), one, other)
        back = translate_history(there.messages, other, one)
        assert back.dropped == [] or set(back.dropped) == {
            "the role of a system message within the history: its words go as the user's"
        }
        assert validate_request(one, sent(one, back.messages)) == []
        words = Counter(part.text for part in parts(there.messages, "text"))
        assert Counter(part.text for part in parts(back.messages, "text")) == words


def test_ids_are_written_in_the_way_of_the_provider_call_and_result_alike() -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_01Ab", "name": "t", "input": {}}]}
    back = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01Ab", "content": "x"}]}
    history = [ASK, *map(anthropic_messages.message, (use, back))]
    made = translate_history(history, "anthropic_messages", "chat_completions")
    assert made.ids == {"call_01Ab": "toolu_01Ab"} and parts(made.messages, "result")[0].call_id == "call_01Ab"
    again = translate_history(made.messages, "chat_completions", "anthropic_messages")
    assert parts(again.messages, "call")[0].call_id == parts(again.messages, "result")[0].call_id == "toolu_01Ab"
    short = translate_history(history, "anthropic_messages", "chat_completions", nine=True)
    assert re.fullmatch("[A-Za-z0-9]{9}", parts(short.messages, "result")[0].call_id)
    assert short == translate_history(history, "anthropic_messages", "chat_completions", nine=True)


def test_ids_that_collide_are_told_apart() -> None:
    ids = ["call_x", "toolu_x", "x" * 90, "x" * 91, "functions.read:0", "call_x"]
    history = [ASK]
    for place, call_id in enumerate(ids):
        history.append(ChatMessage("assistant", (ChatPart("call", call_id=call_id, name="t", arguments={}),)))
        history.append(ChatMessage("tool", (ChatPart("result", str(place), call_id),)))
    made = translate_history(history, "", "anthropic_messages")
    assert list(made.ids.values()) == ids and all(len(new) <= 40 for new in made.ids)
    calls, results = parts(made.messages, "call"), parts(made.messages, "result")
    assert [call.call_id for call in calls] == [result.call_id for result in results]
    assert validate_request("anthropic_messages", sent("anthropic_messages", made.messages)) == []


def test_an_image_within_a_result_goes_behind_the_results() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    uses = [{"type": "tool_use", "id": name, "name": "t", "input": {}} for name in "ab"]
    backs = [{"type": "tool_result", "tool_use_id": name, "content": [image]} for name in "ab"]
    history = [
        ASK,
        *map(anthropic_messages.message, ({"role": "assistant", "content": uses}, {"role": "user", "content": backs})),
    ]
    body = sent("chat_completions", translate_history(history, "anthropic_messages", "chat_completions").messages)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "tool", "user"]
    assert [block["type"] for block in body["messages"][-1]["content"]] == ["image_url", "image_url"]


def test_an_image_that_is_stored_with_its_provider_is_dropped_and_said() -> None:
    linked = {"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}
    made = translate_history([anthropic_messages.message(linked)], "anthropic_messages", "responses")
    assert made.dropped == ["an image that is stored with its provider"] and made.messages[0].parts[0].text == "[image]"


def test_an_open_call_stays_open() -> None:
    open_call = ChatMessage(
        "assistant", (ChatPart("call", call_id="call_a", name="t", arguments={}),), wire="chat_completions"
    )
    made = translate_history([ASK, open_call], "chat_completions", "anthropic_messages")
    assert parts(made.messages, "result") == [] and len(parts(made.messages, "call")) == 1


def test_a_history_for_its_own_provider_is_the_same() -> None:
    messages = messages_of("responses", request("responses", 1))
    assert translate_history(messages, "responses", "responses").messages == messages
