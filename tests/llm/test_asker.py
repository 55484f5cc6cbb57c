"""The one way to a model: redacted, within a budget, with a receipt for everything that was sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everturn.errors import BadAnswer, ModelBusy, ModelError, ModelRefused, ModelUnreachable, OverBudget
from everturn.llm import anthropic_messages, chat_completions
from everturn.llm.asker import (
    AskBudget,
    Asker,
    ThoughtFilter,
    request_tokens,
    split_thoughts,
    thought_words,
    without_thoughts,
)
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, Receipt, ReplyTokens, ToolSpec
from everturn.secrets.redaction import redact_text
from tests.llm.asking_models import asks, backend, ticking
from tests.model_server import ModelServer, bad_json, broken, busy, refuses
from tests.model_wires import Call, Says

CANARY = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
PASSWORD = "correct-horse-" + "battery7"
BOTH = pytest.mark.parametrize("wire", ["messages", "chat"])


def asker(server: ModelServer, wire: str = "messages", budget: AskBudget | None = None, **more: Any) -> Asker:
    return Asker(backend(server, wire, **more), budget or AskBudget(), redact_text, ticking())


def test_without_a_backend_nothing_is_sent() -> None:
    with ModelServer([Says("x")]) as server:
        nobody = Asker(None, AskBudget(), redact_text, ticking())
        with pytest.raises(ModelRefused, match="no model was named"):
            nobody.ask(asks(), "summary")
        with pytest.raises(ModelRefused, match="no model was named"):
            list(nobody.stream(asks(), "summary"))
    assert server.asked == [] and nobody.receipts == []


@BOTH
def test_a_receipt_says_what_a_request_cost(wire: str) -> None:
    kept: list[Receipt] = []
    with ModelServer([busy(), Says("fine", tokens=(120, 8), model="scripted-2")]) as server:
        one = Asker(backend(server, wire), AskBudget(), redact_text, ticking(25), kept.append)
        reply = one.ask(asks(), "turn summary")
    expected = Receipt("test", "scripted-2", "turn summary", ReplyTokens(120, 8), 2, 1000, 25, "end")
    assert kept == one.receipts == [expected]
    assert reply.usage == one.tokens_spent == ReplyTokens(120, 8)


@pytest.mark.parametrize(
    ("fault", "error", "stop", "tries", "may_cost"),
    [
        (busy(), ModelBusy, "busy", 3, False),
        (refuses(401), ModelRefused, "refused", 1, False),
        (broken(), ModelUnreachable, "unreachable", 3, True),
        (bad_json(), BadAnswer, "garbled", 1, True),
    ],
)
@pytest.mark.parametrize("is_whole", [True, False])
def test_what_failed_leaves_a_receipt_too(
    fault: Any, error: type[ModelError], stop: str, tries: int, may_cost: bool, is_whole: bool
) -> None:
    with ModelServer([fault] * 3) as server:
        one = asker(server)
        with pytest.raises(error):
            one.ask(asks(), "p") if is_whole else list(one.stream(asks(), "p"))
    receipt = one.receipts[0]
    assert (receipt.stop, receipt.tries, receipt.model, len(one.receipts)) == (stop, tries, "scripted", 1)
    assert receipt.usage == ReplyTokens(request_tokens(asks()) if may_cost else 0, source="estimate")


@BOTH
def test_tokens_that_nobody_counted_are_estimated_and_said_to_be(wire: str) -> None:
    with ModelServer([Says("some words of an answer", usage=False)]) as server:
        one = asker(server, wire)
        reply = one.ask(asks("a question of some words"), "p")
    assert reply.usage.source == "estimate" and reply.usage.input == request_tokens(asks("a question of some words"))
    assert 3 <= reply.usage.output <= 8


@BOTH
def test_a_cut_answer_is_counted_by_what_came(wire: str) -> None:
    with ModelServer([Says("word " * 40, cut_after=30)] * 3) as server:
        one = asker(server, wire)
        reply = one.ask(asks(), "p")
    receipt = one.receipts[0]
    assert reply.stop == receipt.stop == "cut" and receipt.tries == 3
    assert receipt.usage.source == "estimate" and receipt.usage.output >= 10


def test_a_stream_that_is_closed_early_leaves_a_receipt() -> None:
    with ModelServer([Says("word " * 50, drip=0.01)]) as server:
        one = asker(server)
        stream = one.stream(asks(), "p")
        assert next(stream).text == "word "
        stream.close()  # type: ignore[attr-defined]
    assert [receipt.stop for receipt in one.receipts] == ["closed"]
    assert one.tokens_spent.source == "estimate" and one.tokens_spent.input > 0


@pytest.mark.parametrize(
    ("budget", "words_"),
    [
        (AskBudget(requests=1), "limit of 1 request"),
        (AskBudget(input=125), "the limit is 125"),
        (AskBudget(output=60), "are left for an answer"),
        (AskBudget(tokens=200), "are left for an answer"),
        (AskBudget(requests=0), "limit of 0 requests"),
        (AskBudget(input=2), "the limit is 2"),
    ],
)
def test_what_would_go_over_the_budget_is_not_sent(budget: AskBudget, words_: str) -> None:
    with ModelServer(lambda asked: Says("fine", tokens=(120, 50))) as server:
        one = asker(server, budget=budget)
        with pytest.raises(OverBudget) as caught:
            for _ in range(2):
                one.ask(asks("some words to be sent", max_tokens=50), "p")
    assert words_ in str(caught.value)
    assert len(server.asked) == len(one.receipts) <= 1


def test_an_answer_may_have_what_is_left_of_the_budget() -> None:
    with ModelServer([Says("fine", tokens=(10, 700)), Says("fine")]) as server:
        one = asker(server, budget=AskBudget(output=1000))
        one.ask(asks(max_tokens=4000), "p")
        one.ask(asks(max_tokens=4000), "p")
    assert [asked.body["max_tokens"] for asked in server.asked] == [1000, 300]


def conversation(wire: str) -> ModelRequest:
    """Secrets in every place a text can be."""
    own: list[ChatMessage] = []
    if wire == "messages":
        blocks = [
            {"type": "thinking", "thinking": f"the token is {CANARY}", "signature": "s=="},
            {"type": "text", "text": f"I use {CANARY}", "citations": [{"cited_text": CANARY}]},
            {
                "type": "tool_use",
                "id": "t1",
                "name": "shell",
                "input": {"command": f"x\n{CANARY}", "password": PASSWORD},
            },
            {"type": "new_block", "content": CANARY},
        ]
        result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": CANARY}]}
        own = [anthropic_messages.message({"role": "assistant", "content": blocks}),
               anthropic_messages.message({"role": "user", "content": [result]})]  # fmt: skip
    else:
        given = json.dumps({"command": f"x\n{CANARY}", "password": PASSWORD})
        call = {"id": "t1", "type": "function", "function": {"name": "shell", "arguments": given}}
        said = {"role": "assistant", "content": f"I use {CANARY}", "reasoning_content": CANARY, "tool_calls": [call]}
        own = [chat_completions.message(said),
               chat_completions.message({"role": "tool", "tool_call_id": "t1", "content": CANARY})]  # fmt: skip
    foreign = ChatMessage(
        "assistant", (ChatPart("text", CANARY), ChatPart("call", call_id="t2", name="shell", arguments={"a": [CANARY]}))
    )
    return ModelRequest(
        (
            ChatMessage("user", (ChatPart("text", f"key {CANARY}"),)),
            *own,
            foreign,
            ChatMessage("tool", (ChatPart("result", CANARY, "t2", "shell"),)),
            ChatMessage("user", (ChatPart("text", "go on"),)),
        ),
        system=f"system {CANARY}",
        tools=(ToolSpec("shell", f"runs {CANARY}", {"type": "object", "description": CANARY}),),
        extra={"metadata": {"note": CANARY}},
    )


@BOTH
def test_no_secret_reaches_the_server(wire: str) -> None:
    with ModelServer([Says("fine"), Says("fine")], strict=True) as server:
        one = asker(server, wire)
        one.ask(conversation(wire), "p")
        list(one.stream(conversation(wire), "p"))
    for asked in server.asked:
        assert CANARY not in asked.text and PASSWORD not in asked.text
        assert asked.text.count("[REDACTED") >= 8
        assert "s==" not in asked.text  # a signature does not hold for a changed thought


def test_what_holds_no_secret_is_sent_as_it_came() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s=="},
        {"type": "tool_use", "id": "t1", "name": "shell", "input": {"z": 1, "a": 2}, "new": True},
    ]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "fine"}
    own: list[dict[str, Any]] = [{"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
    tools = (ToolSpec("shell", "runs", {}),)
    with ModelServer([Says("fine")], strict=True) as server:
        asker(server).ask(ModelRequest(tuple(map(anthropic_messages.message, own)), tools=tools), "p")
    assert json.dumps(server.asked[0].body["messages"]) == json.dumps(own)


@BOTH
def test_half_an_emoji_can_be_asked_about(wire: str) -> None:
    half = "\ud83d"
    call = ChatMessage("assistant", (ChatPart("call", call_id="c", name="f", arguments={half: [half, 1 << 70]}),))
    result = ChatMessage("tool", (ChatPart("result", half, "c", "f"),))
    with ModelServer([Says("fine"), Says("fine")], strict=True) as server:
        request = ModelRequest((*asks(half + "?").messages, call, result), half, (ToolSpec("f", half, {"x": half}),))
        assert asker(server, wire).ask(request, "p").text == "fine"
        assert backend(server, wire).ask(request).text == "fine"
    assert "\ufffd?" in server.asked[0].text


THOUGHTS = [
    ("<think>hm\nhm</think>\n\nThe answer", "hm\nhm", "The answer"),
    ("\n<thinking>a</thinking><think>b</think>The answer", "ab", "The answer"),
    ("Thinking...\nWell.\n...done thinking.\n\nThe answer", "Well.", "The answer"),
    ("Thinking...\nWell.\ndone thinking.\nThe answer", "Well.", "The answer"),
    ("Well, so.\n</think>\n\nThe answer", "Well, so.", "The answer"),
    ("<think>never ends", "never ends", ""),
    ("<THINK>x</THINK>The answer", "x", "The answer"),
    ("The answer", "", "The answer"),
    ("A tag <think>x</think> in the middle", "", "A tag <think>x</think> in the middle"),
    ("```\n<b>\n</think>\n```", "", "```\n<b>\n</think>\n```"),
    ("Thinking... is what I like", "", "Thinking... is what I like"),
    ("  indented", "", "  indented"),
    ("", "", ""),
]


@pytest.mark.parametrize(("text", "thought", "answer"), THOUGHTS)
def test_thinking_aloud_is_told_apart_from_the_answer(text: str, thought: str, answer: str) -> None:
    before, after = split_thoughts(text)
    assert (thought_words(before), after) == (thought, answer)
    assert before + after == text


@pytest.mark.parametrize(("text", "thought", "answer"), THOUGHTS)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_thinking_aloud_is_held_back_from_a_stream(text: str, thought: str, answer: str, size: int) -> None:
    thoughts = ThoughtFilter()
    said = "".join(thoughts.feed(text[at : at + size]) for at in range(0, len(text), size)) + thoughts.last()
    is_seen_at_the_end_only = text.startswith("Well, so.")
    assert said == answer or is_seen_at_the_end_only


def test_an_answer_is_given_out_as_soon_as_the_thought_is_over() -> None:
    thoughts = ThoughtFilter()
    pieces = ["<thi", "nk>a <b> c", "</b></th", "ink>", "\n", "It ", "is."]
    assert [thoughts.feed(piece) for piece in pieces] == ["", "", "", "", "", "It ", "is."]


@BOTH
def test_an_answer_comes_without_its_reasoning_and_goes_back_with_it(wire: str) -> None:
    says = Says("<think>let me see</think>\n\nIt is four.")
    with ModelServer([says, says]) as server:
        one = asker(server, wire)
        reply = one.ask(asks(), "p")
        deltas = list(one.stream(asks(), "p"))
    assert reply.text == "It is four."
    assert [part.text for part in reply.message.parts if part.kind == "thinking"] == ["let me see"]
    assert "".join(delta.text for delta in deltas if delta.kind == "text") == "It is four."
    assert deltas[-1].reply is not None and deltas[-1].reply.text == "It is four."
    if wire == "chat":
        assert chat_completions.history(reply.message)[0]["content"] == says.text


def test_an_answer_with_blocks_loses_its_reasoning_for_good() -> None:
    block = {"type": "text", "text": "<think>x</think>yes"}
    message = without_thoughts(anthropic_messages.message({"role": "assistant", "content": [block]}))
    assert anthropic_messages.history(message)[0]["content"] == [{"type": "text", "text": "yes"}]
    listed = without_thoughts(chat_completions.message({"role": "assistant", "content": [block]}))
    assert chat_completions.history(listed)[0]["content"] == [{"type": "text", "text": "yes"}]


def test_calls_are_given_back_untouched() -> None:
    with ModelServer([Says("<think>x</think>", (Call("f", {"a": 1}),))]) as server:
        reply = asker(server).ask(asks(tools=(ToolSpec("f", "", {}),)), "p")
    assert (reply.text, reply.stop, reply.calls[0].arguments) == ("", "calls", {"a": 1})
