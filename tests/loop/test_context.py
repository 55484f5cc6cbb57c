"""Context assembly: the newest first within the budget, exchanges whole, nothing cut without a word."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.llm import chat_completions
from everturn.llm.history_rules import certain_violations
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, ToolSpec
from everturn.loop.context import (
    LEFT_OUT,
    RECALLED,
    STATE,
    RequestContext,
    Sizes,
    assemble_context,
    context_budget,
    is_result,
)
from everturn.loop.request_prefix import digest_body
from tests.llm.histories import WIRES, messages_of, request, sent


def by_word() -> Sizes:
    return Sizes(count=lambda text: len(text.split()), margin=1.0)


def user(text: str) -> ChatMessage:
    return ChatMessage("user", (ChatPart("text", text),))


def answer(text: str) -> ChatMessage:
    return ChatMessage("assistant", (ChatPart("text", text),))


def step(number: int, result: str = "result", arguments: Any = None) -> list[ChatMessage]:
    call_id = f"c{number}"
    call = ChatPart("call", call_id=call_id, name="read", arguments=arguments or {"n": number})
    return [ChatMessage("assistant", (call,)), ChatMessage("tool", (ChatPart("result", result, call_id, "read"),))]


def talk(turns: int, words: int = 20) -> list[ChatMessage]:
    made = []
    for turn in range(turns):
        made += [
            user(f"prompt{turn} " + "w " * words),
            *step(turn, "r " * words),
            answer(f"answer{turn} " + "a " * words),
        ]
    return made


def texts(context: RequestContext) -> str:
    return " ".join(part.text for message in context.messages for part in message.parts)


def test_everything_is_in_view_when_it_fits() -> None:
    history = talk(5)
    context = assemble_context(history, 10_000, "Be brief.", sizes=by_word())
    assert context.messages == tuple(history) and context.system == "Be brief."
    assert (context.left_out, context.said, context.fits, context.append) == (0, (), True, None)


def test_the_budget_is_the_window_less_the_reserve() -> None:
    assert (
        context_budget(200_000) == 192_000 and context_budget(8_000, 4_000) == 4_000 and context_budget(8_000) == 4_000
    )


@pytest.mark.parametrize("most", range(60, 700, 20))
def test_the_newest_turns_are_kept_within_the_budget(most: int) -> None:
    history = talk(6)
    context = assemble_context(history, most, "Be brief.", sizes=by_word())
    assert context.tokens <= most and context.fits
    kept = [n for n in range(6) if f"prompt{n}" in texts(context)]
    assert kept == list(range(6 - len(kept), 6)) and context.left_out == len(history) - len(context.messages)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("seed", range(8))
def test_any_budget_gives_a_request_that_the_provider_takes(wire: str, seed: int) -> None:
    body = request(wire, seed, turns=5)
    history, sizes = messages_of(wire, body), Sizes()
    whole = sum(map(sizes.message, history))
    for most in range(100, whole + 200, max(1, whole // 10)):
        context = assemble_context(history, most, sizes=sizes)
        assert (
            context.tokens <= most
            and certain_violations(wire, sent(wire, context.messages or (user("x"),), body)) == []
        )
        assert not context.messages or not is_result(context.messages[0])


def test_state_stands_behind_the_system_prompt_and_is_always_there() -> None:
    context = assemble_context(talk(50), 300, "Be brief.", state="session:\n  id: x\n", sizes=by_word())
    assert context.system.startswith(f"Be brief.\n\n{STATE}\n\nsession:\n  id: x")
    assert context.system.endswith(
        f"{LEFT_OUT}\n\n{context.left_out} earlier messages of this session are not shown here."
    )


def test_tools_count_towards_the_budget() -> None:
    tools = [ToolSpec("read", "word " * 100, {})]
    less = assemble_context(talk(50), 400, tools=tools, sizes=by_word())
    assert less.tokens <= 400 and len(less.messages) < len(assemble_context(talk(50), 400, sizes=by_word()).messages)


def test_what_was_recalled_comes_after_the_turns() -> None:
    room = assemble_context(talk(2), 2_000, recalled="we chose SQLite", sizes=by_word())
    assert f"{RECALLED}\n\nwe chose SQLite" in room.system
    tight = assemble_context(talk(50), 400, recalled="old " * 300, sizes=by_word())
    assert RECALLED not in tight.system and "what was recalled is left out" in tight.said
    some = assemble_context(talk(1), 600, recalled="old " * 3000, sizes=by_word())
    assert some.tokens <= 600 and some.system.count("old") > 100 and "what was recalled is cut" in some.said


def test_a_long_turn_keeps_its_prompt_and_its_newest_exchanges() -> None:
    history = [user("the task"), *(message for n in range(40) for message in step(n, "r " * 20))]
    context = assemble_context(history, 400, sizes=by_word())
    assert context.messages[0] == history[0] and context.messages[-1] == history[-1]
    assert 5 < len(context.messages) < len(history) and context.tokens <= 400


def test_an_oversized_newest_result_is_cut_in_view_and_does_not_push_out_the_rest() -> None:
    history = [*talk(3), user("now this"), *step(99, "begin " + "x " * 50_000 + "end")]
    context = assemble_context(history, 1_000, sizes=by_word())
    assert context.tokens <= 1_000 and "prompt0" in texts(context) and "now this" in texts(context)
    shown = context.messages[-1].parts[0].text
    assert shown.startswith("begin") and shown.endswith("end") and "not shown here; the archive has the whole" in shown
    assert context.said == ("1 long text is cut in view; the archive has the whole",)
    assert len(history[-1].parts[0].text) > 100_000  # what was given is not touched


def test_an_oversized_newest_prompt_is_cut_in_view() -> None:
    context = assemble_context([*talk(3), user("begin " + "x " * 50_000)], 1_000, sizes=by_word())
    assert (
        context.tokens <= 1_000
        and context.messages[-1].parts[0].text.startswith("begin")
        and "prompt1" in texts(context)
    )


def test_an_oversized_older_result_does_not_end_the_window() -> None:
    history = [user("first"), *step(1, "x " * 50_000), answer("a"), user("second"), answer("b")]
    context = assemble_context(history, 1_000, sizes=by_word())
    assert len(context.messages) == len(history) and context.tokens <= 1_000


def test_long_arguments_are_cut_in_view() -> None:
    history = [user("write it"), *step(1, "done", {"path": "a.py", "content": "x " * 50_000})]
    context = assemble_context(history, 1_000, sizes=by_word())
    given = context.messages[1].parts[0].arguments
    assert given["path"] == "a.py" and "the archive has the whole" in given["content"] and context.tokens <= 1_000


def test_a_cut_message_of_a_provider_is_still_one_that_it_takes() -> None:
    call = {"id": "functions.read:0", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    wire: list[dict[str, Any]] = [
        {"role": "user", "content": "x " * 3000},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "functions.read:0", "content": "y " * 3000},
    ]
    context = assemble_context(list(map(chat_completions.message, wire)), 500, sizes=by_word())
    body = chat_completions.body(ModelRequest(context.messages))
    assert certain_violations("chat_completions", body) == [] and len(body["messages"]) == 3
    assert all(len(str(message["content"])) < 2_000 for message in body["messages"])


def test_a_history_that_begins_with_results_does_not() -> None:
    context = assemble_context([*step(1)[1:], answer("so"), *talk(1)], 10_000, sizes=by_word())
    assert context.messages[0] == answer("so") and context.left_out == 1


def test_append_only_leaves_everything_as_it_was_and_adds_the_state() -> None:
    history = [*talk(2), user("go on")]
    context = assemble_context(history, 10_000, "Be brief.", state="focus: x", sizes=by_word(), append_only=True)
    assert context.system == "Be brief." and context.messages[:-1] == tuple(history)
    assert context.append == context.messages[-1] and context.append.parts[0].text == f"{STATE}\n\nfocus: x"
    before = digest_body(sent("anthropic_messages", tuple(history))).prefix
    assert digest_body(sent("anthropic_messages", context.messages)).changed_parts(before) == []


def test_append_only_tells_the_same_state_once_and_never_between_call_and_answer() -> None:
    first = assemble_context([user("go")], 1_000, state="focus: x", sizes=by_word(), append_only=True)
    recorded = [*first.messages, answer("done"), user("more")]
    assert assemble_context(recorded, 1_000, state="focus: x", sizes=by_word(), append_only=True).append is None
    assert assemble_context(recorded, 1_000, state="focus: y", sizes=by_word(), append_only=True).append is not None
    waiting = [*recorded, *step(1)]
    assert assemble_context(waiting, 1_000, state="focus: y", sizes=by_word(), append_only=True).append is None


def test_append_only_says_when_it_does_not_fit() -> None:
    context = assemble_context(talk(50), 300, sizes=by_word(), append_only=True)
    assert not context.fits and len(context.messages) == 200 and "nothing may be left out" in context.said[0]


def test_each_message_is_counted_once() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text.split())

    sizes, history = Sizes(count, 1.0), talk(20)
    assemble_context(history, 10_000, sizes=sizes)
    first = len(counted)
    assemble_context([*history, user("next")], 10_000, sizes=sizes)
    assert len(counted) - first < 5 < first
