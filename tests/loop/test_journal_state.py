"""A journal that holds only its newest messages gives the same history as one that holds all, as far back as it goes."""

from __future__ import annotations

import random

import pytest

from everturn.llm.protocol import ChatMessage, ChatPart, Reply
from everturn.loop import records
from everturn.loop.journal_state import JournalState


def fold(states: list[JournalState], turns: int, seed: int) -> None:
    """The same records into each: prompts, answers, calls with results, and injected text."""
    chance, number = random.Random(seed), 0

    def give(record: records.Record) -> None:
        nonlocal number
        record.n = number
        number += 1
        for state in states:
            state.take(record)

    for turn in range(turns):
        give(records.UserRecord(parts=(ChatPart("text", f"question {turn} " + "x" * chance.randrange(200)),)))
        if chance.random() < 0.3:
            give(states[0].injection(f"hint {turn}", "hint"))
        if chance.random() < 0.5:
            call = ChatPart("call", "", f"c{turn}", "look", {"path": "y" * chance.randrange(100)})
            response = number
            give(records.ResponseRecord(reply=Reply(ChatMessage("assistant", (call,)), "calls")))
            give(records.ResultRecord(of=response, call_id=f"c{turn}", text="z" * chance.randrange(300)))
        give(records.ResponseRecord(reply=Reply(ChatMessage("assistant", (ChatPart("text", f"answer {turn}"),)))))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_held_is_the_end_of_the_history(seed: int) -> None:
    whole, held = JournalState("s"), JournalState("s", hold=2_000)
    fold([whole, held], 300, seed)
    assert held.dropped and len(held.messages) + held.dropped == len(whole.messages)
    assert held.history == whole.history[-len(held.history) :] and held.messages[0].role == "user"
    size = sum(len(part.text) for message in held.messages for part in message.parts)
    assert 1_000 < size <= 3 * 2_000 + 600
    assert held.injection("more", "hint").kind == whole.injection("more", "hint").kind
    assert sum(kind.startswith(records.INJECTED) for kind in held.states) <= len(held.messages)


def test_without_a_limit_everything_is_held() -> None:
    whole = JournalState("s")
    fold([whole], 50, 0)
    assert not whole.dropped and whole.messages[0].parts[0].text.startswith("question 0 ")
