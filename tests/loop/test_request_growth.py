"""A session that grows: its requests are those that would be prepared from scratch, only new messages are formed."""

from __future__ import annotations

import random
from typing import Any

import pytest

from everturn.llm.history_rules import certain_violations
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest
from everturn.loop.context import BLOCK
from everturn.loop.journal_state import JournalState
from everturn.loop.model_request import PreparedRequest, RequestView, prepare_request
from tests.llm.histories import TOOLS, WIRES, messages_of, request
from tests.loop.scripted_model import Model


class Formed(Model):
    """A model of one wire format. It counts the messages that it forms."""

    def __init__(self, wire: str, window: int, adds_bodies: bool) -> None:
        super().__init__([], window=window)
        self.wire, self.adds_bodies, self.formed = wire, adds_bodies, 0

    def body(self, request: ModelRequest) -> dict[str, Any]:
        self.formed += len(request.messages)
        return WIRES[self.wire].body(request)


def session(dice: random.Random, wires: list[str], length: int, faults: float) -> list[ChatMessage]:
    """Histories one after another: of one format or of several; with faults, some ids come again and messages are lost."""
    made: list[ChatMessage] = []
    while len(made) < length:
        wire = dice.choice(wires)
        seed = dice.randrange(2) if dice.random() < 3 * faults else dice.randrange(1 << 30)
        more = list(messages_of(wire, request(wire, seed, turns=dice.randint(1, 6))))
        if more and dice.random() < faults:
            del more[dice.randrange(len(more))]
        made += [ours(message) if dice.random() < 0.7 else message for message in more]
        if more and more[-1].role != "assistant":
            made.append(ChatMessage("assistant", (ChatPart("text", f"answer {len(made)}"),)))
    return made


def ours(message: ChatMessage) -> ChatMessage:
    """A prompt or results as a loop records them, not as a provider has them."""
    if message.role == "assistant" or any(part.kind not in ("text", "result") for part in message.parts):
        return message
    parts = tuple(ChatPart(one.kind, one.text, one.call_id, one.name, is_error=one.is_error) for one in message.parts)
    return ChatMessage("tool" if any(one.kind == "result" for one in parts) else message.role, parts)


def state(messages: list[ChatMessage], last: PreparedRequest | None) -> JournalState:
    return JournalState(
        "s", messages=list(messages), tools=TOOLS, system="Be brief.", sent=last.sent if last is not None else None
    )


@pytest.mark.few(6)
@pytest.mark.parametrize("wires", [*([wire] for wire in WIRES), list(WIRES)], ids="-".join)
@pytest.mark.parametrize(("window", "faults"), [(800, 0.0), (4_000, 0.0), (4_000, 0.1), (100_000, 0.0), (100_000, 0.1)])
def test_a_growing_session_has_the_requests_of_one_prepared_from_scratch(
    wires: list[str], window: int, faults: float
) -> None:
    dice = random.Random(f"{wires} {window} {faults}")
    for wire in wires:
        messages = session(dice, wires, 60, faults)
        growing, view = state([], None), RequestView(reserve=100, state=lambda past: "a" * (len(past.messages) // 20))
        backend, last = Formed(wire, window, adds_bodies=True), None
        for place, message in enumerate(messages):
            growing.messages.append(message)
            if message.role == "assistant" or dice.random() < 0.2:
                continue
            scratch = state(messages[: place + 1], last)
            expected = prepare_request(scratch, Formed(wire, window, adds_bodies=False), view, 100)
            assert prepare_request(growing, backend, view, 100) == expected
            growing.sent, last = expected.sent, expected


def test_only_new_messages_are_formed_and_the_view_moves_by_blocks() -> None:
    backend, past = Formed("chat_completions", 6_000, adds_bodies=True), state([], None)
    formed, begins = [], []
    for number in range(400):
        past.messages.append(ChatMessage("user", (ChatPart("text", f"question {number} " + "word " * 40),)))
        before = backend.formed
        made = prepare_request(past, backend, RequestView(reserve=100), 100)
        formed.append(backend.formed - before)
        begins.append(past.messages.index(made.request.messages[0]))
        past.sent = made.sent
        past.messages.append(ChatMessage("assistant", (ChatPart("text", f"answer {number}"),)))
    assert max(formed) <= 4  # the new answer and the new question, also where the view was cut
    assert begins == sorted(begins) and begins[-1] > 600
    assert all(begin % BLOCK == 0 for begin in begins)
    assert len(set(begins)) <= 2 + begins[-1] // BLOCK


@pytest.mark.parametrize("wire", WIRES)
def test_an_id_that_comes_again_later_is_told_apart_as_from_scratch(wire: str) -> None:
    backend, growing, last = Formed(wire, 0, adds_bodies=True), state([], None), None
    for number in range(6):
        asks = ChatMessage("assistant", (ChatPart("call", call_id=f"x{number % 4}", name="read", arguments={}),))
        growing.messages += [ChatMessage("user", (ChatPart("text", f"question {number}"),)), asks]
        growing.messages.append(ChatMessage("tool", (ChatPart("result", "found", f"x{number % 4}"),)))
        expected = prepare_request(state(growing.messages, last), Formed(wire, 0, False), RequestView(), 100)
        assert prepare_request(growing, backend, RequestView(), 100) == expected
        assert bool(expected.said) == (number >= 4 and wire != "chat_completions")
        growing.sent, last = expected.sent, expected
        growing.messages.append(ChatMessage("assistant", (ChatPart("text", "so it is"),)))


@pytest.mark.parametrize("wire", WIRES)
def test_in_one_long_turn_the_prompt_stays_in_view_and_only_new_messages_are_formed(wire: str) -> None:
    backend, past, view = Formed(wire, 6_000, adds_bodies=True), state([], None), RequestView(reserve=100)
    prompt = ChatMessage("user", (ChatPart("text", "do it all"),))
    past.messages.append(prompt)
    formed, begins, last = [], [], None
    for number in range(300):
        before = backend.formed
        made = prepare_request(past, backend, view, 100)
        formed.append(backend.formed - before)
        if number % 10 == 0:
            assert made == prepare_request(state(past.messages, last), Formed(wire, 6_000, False), view, 100)
            assert not certain_violations(wire, WIRES[wire].body(made.request))
        assert made.request.messages[0] == prompt
        begins.append(past.messages.index(made.request.messages[1]) if number else 0)
        past.sent, last = made.sent, made
        ids = [f"c{number}.{n}" for n in range(1 + number % 3)]
        past.messages.append(
            ChatMessage("assistant", tuple(ChatPart("call", call_id=one, name="read", arguments={}) for one in ids))
        )
        past.messages += [ChatMessage("tool", (ChatPart("result", "word " * 40, one),)) for one in ids]
    assert begins == sorted(begins) and begins[-1] > 300
    assert len(set(begins)) <= 2 + begins[-1] // BLOCK  # it moves by blocks
    assert sum(n > 8 for n in formed) <= len(set(begins))  # more than the new ones only where it has moved
    past.messages.append(ChatMessage("assistant", (ChatPart("text", "done"),)))
    past.messages.append(ChatMessage("user", (ChatPart("text", "go on"),)))
    after = prepare_request(past, backend, view, 100).request.messages
    assert after[0] == prompt and len(after) > 20  # a new message does not displace what was just done
