"""Every call has an id of its own before it is written down, whatever the provider sends."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.llm import anthropic_messages, chat_completions, responses
from everturn.llm.history_repair import unique_calls
from everturn.llm.history_rules import certain_violations
from everturn.llm.protocol import ChatMessage, ChatPart, Reply, Wire
from everturn.loop import records
from everturn.loop.journal import Journal
from everturn.loop.loop import Loop
from everturn.loop.tools import tool
from everturn.store.contract import Store
from tests.loop.scripted_model import Model, calls, says

CHAT = {"choices": [{"message": {"role": "assistant", "tool_calls": [
    {"id": "", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 1}'}},
    {"type": "function", "function": {"name": "pay", "arguments": '{"amount": 2}'}},
]}, "finish_reason": "tool_calls"}]}  # fmt: skip
RESPONSES = {"output": [
    {"type": "function_call", "id": "fc_1", "call_id": "", "name": "pay", "arguments": '{"amount": 1}'},
    {"type": "function_call", "id": "fc_2", "call_id": "", "name": "pay", "arguments": '{"amount": 2}'},
]}  # fmt: skip
MESSAGES = {"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
    {"type": "tool_use", "id": "", "name": "pay", "input": {"amount": 1}},
    {"type": "tool_use", "id": "", "name": "pay", "input": {"amount": 2}},
]}  # fmt: skip


def run(archive: Store, *replies: Reply, session: str = "s") -> tuple[list[int], Model, Journal]:
    paid: list[int] = []

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    model = Model([*replies, says("done")])
    journal = Journal.open(archive, session)
    assert Loop(model, [pay]).run(journal, "pay").state == "done"
    return sorted(paid), model, journal


@pytest.mark.parametrize("ids", [("", ""), ("x", "x"), ("x", "y")])
def test_calls_without_an_id_of_their_own_run_once_each(archive: Store, ids: tuple[str, str]) -> None:
    reply = calls((ids[0], "pay", {"amount": 1}), (ids[1], "pay", {"amount": 2}))
    paid, model, _ = run(archive, reply)
    assert paid == [1, 2] and len(model.asked) == 2
    results = {part.call_id: part.text for part in model.asked[1].messages[-1].parts}
    assert sorted(results.values()) == ["paid 1", "paid 2"]


def test_an_id_that_every_response_uses_again_names_one_call_only(archive: Store) -> None:
    paid, model, journal = run(
        archive, calls(("call_0", "pay", {"amount": 1})), calls(("call_0", "pay", {"amount": 2}))
    )
    assert paid == [1, 2]
    sent = [part.call_id for one in model.asked[-1].messages for part in one.parts if part.kind == "call"]
    assert sent[0] == "call_0" and len(set(sent)) == 2
    journal.close()
    with Journal.open(archive, "s") as again:
        assert Loop(model).resume(again).text == "done"


def test_the_id_of_the_provider_is_kept_beside_ours(archive: Store) -> None:
    _, _, journal = run(archive, calls(("x", "pay", {"amount": 1}), ("x", "pay", {"amount": 2})))
    raw = archive.read_raw(archive.files()[0][1].id, 0, 1 << 20).splitlines()
    kept = [one for line in raw if isinstance(one := records.parse_record(line, "s"), records.ResponseRecord)]
    (ours,) = kept[0].given_ids
    assert kept[0].given_ids == {ours: "x"} and len(ours) == 9 and ours.isalnum()
    journal.close()


@pytest.mark.parametrize(
    ("wire", "response"), [(chat_completions, CHAT), (responses, RESPONSES), (anthropic_messages, MESSAGES)]
)
def test_what_goes_back_to_the_provider_has_the_new_ids_in_its_own_blocks(
    archive: Store, wire: Wire, response: dict[str, Any]
) -> None:
    paid, model, journal = run(archive, wire.read(response))
    assert paid == [1, 2]
    body = wire.body(model.asked[1])
    assert certain_violations(wire.WIRE, body) == []
    journal.close()


def test_a_call_that_is_repeated_word_for_word_is_one_call() -> None:
    part = ChatPart("call", call_id="x", name="pay", arguments={"amount": 1})
    reply = Reply(ChatMessage("assistant", (part, part)), "calls")
    same, given = unique_calls(reply, set(), iter(["a" * 9]).__next__)
    assert same is reply and given == {}
    other, given = unique_calls(reply, {"x"}, iter(["b" * 9]).__next__)
    assert [one.call_id for one in other.calls] == ["b" * 9] * 2 and given == {"b" * 9: "x"}
