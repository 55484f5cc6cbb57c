"""Valid requests of each wire format, made by dice: every kind of block, parallel calls, thoughts, neighbours of one role.

`request(wire, seed)` is the same for the same seed. Each ends as a request does: with words of the user or with results.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from everturn.llm import anthropic_messages, chat_completions, responses
from everturn.llm.history_repair import repair_history
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest, ToolSpec, Wire

WIRES: dict[str, Wire] = {
    "anthropic_messages": anthropic_messages,
    "chat_completions": chat_completions,
    "responses": responses,
}
TOOLS = tuple(ToolSpec(name, f"to {name}", {"type": "object", "properties": {}}) for name in ("read", "write", "run"))
PNG = "iVBORw0KGgo="
_WORDS = "look at the file then run its tests — why is “naïve” red? 修正 ok".split()


def request(wire: str, seed: int, turns: int = 3) -> dict[str, Any]:
    """A request that the provider takes."""
    dice = random.Random(f"{wire} {seed}")
    return _MAKERS[wire](dice, turns)


def messages_of(wire: str, body: dict[str, Any]) -> tuple[ChatMessage, ...]:
    """Its history in the neutral form."""
    return tuple(map(WIRES[wire].message, body["input" if wire == "responses" else "messages"]))


def sent(wire: str, messages: tuple[ChatMessage, ...], like: dict[str, Any] | None = None) -> dict[str, Any]:
    """A request with this history, and everything else as in another one."""
    kept = {name: value for name, value in (like or {}).items() if name not in ("messages", "input")}
    return WIRES[wire].body(ModelRequest(messages, tools=TOOLS, model="m", extra=kept))


def cuts(messages: tuple[ChatMessage, ...]) -> list[tuple[ChatMessage, ...]]:
    """What a crash, a lost record or a window leaves of a history: each end, each beginning, each part missing."""
    left = [messages[:end] for end in range(1, len(messages))] + [messages[start:] for start in range(1, len(messages))]
    for place, message in enumerate(messages):
        for end in range(message.role == "tool", len(message.parts)):
            left.append((*messages[:place], _with(message, message.parts[:end])))
        for gone, part in enumerate(message.parts):
            if part.kind in ("result", "call"):
                kept = message.parts[:gone] + message.parts[gone + 1 :]
                less = [_with(message, kept)] if kept or message.role != "tool" else []
                left.append((*messages[:place], *less, *messages[place + 1 :]))
    return left


def taken_up(messages: tuple[ChatMessage, ...], wire: str = "") -> tuple[ChatMessage, ...]:
    """A broken history, repaired into a request."""
    repaired = repair_history(asked(messages), wire=wire).messages
    again = asked(repaired)
    return repaired if len(again) == len(repaired) else repair_history(again, wire=wire).messages


def asked(messages: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...]:
    """The history as a request: when it would end with the assistant, the user says something."""
    is_open = not messages or messages[-1].role in ("assistant", "system")
    return (*messages, ChatMessage("user", (ChatPart("text", "go on"),))) if is_open else messages


def _with(message: ChatMessage, parts: tuple[ChatPart, ...]) -> ChatMessage:
    return ChatMessage(message.role, parts, message.id, message.wire, message.raw)


def _text(dice: random.Random) -> str:
    return " ".join(dice.choices(_WORDS, k=dice.randint(1, 9)))


def _given(dice: random.Random) -> dict[str, Any]:
    return {"path": f"src/{dice.randint(1, 99)}.py", "n": [dice.randint(0, 9), None, {"é": _text(dice)}]}


def _ids(dice: random.Random, prefix: str) -> Callable[[], str]:
    return lambda: prefix + "".join(dice.choices("abcdefghijkmnpqrstuvwxyzABCDEFGH0123456789", k=24))


def _some(dice: random.Random, share: float) -> bool:
    return dice.random() < share


# /v1/messages ---------------------------------------------------------------------------------------------------------


def _anthropic(dice: random.Random, turns: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    new_id = _ids(dice, "toolu_")
    is_thinking = _some(dice, 0.5)
    for turn in range(turns):
        if turn == 1 and _some(dice, 0.2):
            messages.append({"role": "user", "content": _text(dice)})  # neighbours of one role
        messages.append({"role": "user", "content": _anthropic_prompt(dice)})
        for _ in range(dice.randint(0, 3)):
            messages += _anthropic_step(dice, new_id, is_thinking)
        if messages[-1]["role"] == "user" and turn < turns - 1 and _some(dice, 0.8):
            messages += _anthropic_answer(dice, is_thinking)
    body: dict[str, Any] = {"model": "m", "max_tokens": 100, "system": "Be brief.", "messages": messages}
    return body | {"tools": anthropic_messages.body(ModelRequest((), tools=TOOLS))["tools"]}


def _anthropic_prompt(dice: random.Random) -> Any:
    if _some(dice, 0.5):
        return _text(dice)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    linked = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    new = {"type": "new_kind", "deep": {"er": [1, None, "ü"]}}
    text = {"type": "text", "text": _text(dice), "cache_control": {"type": "ephemeral"}}
    return [text, *dice.sample([image, linked, new], dice.randint(0, 2))]


def _anthropic_thoughts(dice: random.Random) -> list[dict[str, Any]]:
    thought = {"type": "thinking", "thinking": _text(dice), "signature": f"sig{dice.random()}"}
    hidden = {"type": "redacted_thinking", "data": f"enc{dice.random()}"}
    return dice.choice([[thought], [hidden], [thought, hidden]])


def _anthropic_answer(dice: random.Random, is_thinking: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = _anthropic_thoughts(dice) if is_thinking else []
    if _some(dice, 0.3):
        call_id = f"srvtoolu_{dice.randint(1, 10**9)}"
        blocks.append({"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": "q"}})
        blocks.append(
            {"type": "web_search_tool_result", "tool_use_id": call_id, "content": [{"encrypted_content": "x"}]}
        )
    if not blocks and _some(dice, 0.3):
        return [{"role": "assistant", "content": _text(dice)}]
    blocks.append({"type": "text", "text": _text(dice), "citations": [{"cited_text": "x"}]})
    if len(blocks) > 1 and _some(dice, 0.2):  # one answer in two messages
        return [{"role": "assistant", "content": blocks[:-1]}, {"role": "assistant", "content": blocks[-1:]}]
    return [{"role": "assistant", "content": blocks}]


def _anthropic_step(dice: random.Random, new_id: Callable[[], str], is_thinking: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = _anthropic_thoughts(dice) if is_thinking else []
    if _some(dice, 0.5):
        blocks.append({"type": "text", "text": _text(dice)})
    calls: list[dict[str, Any]] = [
        {"type": "tool_use", "id": new_id(), "name": dice.choice(TOOLS).name, "input": _given(dice)}
        for _ in range(dice.randint(1, 3))
    ]
    blocks += calls
    if _some(dice, 0.2):  # words after calls
        blocks.append({"type": "text", "text": _text(dice)})
    results = [_anthropic_result(dice, call["id"]) for call in calls]
    dice.shuffle(results)
    more = [{"type": "text", "text": _text(dice)}] if _some(dice, 0.2) else []
    if len(results) > 1 and _some(dice, 0.2):
        ends = [{"role": "user", "content": results[:1]}, {"role": "user", "content": [*results[1:], *more]}]
    else:
        ends = [{"role": "user", "content": [*results, *more]}]
    return [{"role": "assistant", "content": blocks}, *ends]


def _anthropic_result(dice: random.Random, call_id: str) -> dict[str, Any]:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    content = dice.choice([_text(dice), [{"type": "text", "text": _text(dice)}, image], ""])
    return {"type": "tool_result", "tool_use_id": call_id, "content": content} | (
        {"is_error": True} if _some(dice, 0.2) else {}
    )


# /chat/completions ----------------------------------------------------------------------------------------------------


def _chat(dice: random.Random, turns: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}] if _some(dice, 0.5) else []
    new_id = _ids(dice, "call_")
    if repeats := _some(dice, 0.2):  # servers that number the calls of every answer
        new_id = iter(f"functions.read:{n % 4}" for n in range(10**6)).__next__
    for turn in range(turns):
        messages.append({"role": "user", "content": _chat_prompt(dice)})
        for _ in range(dice.randint(0, 3)):
            messages += _chat_step(dice, new_id, 3 if not repeats else 2)
        if turn < turns - 1 and _some(dice, 0.8):
            answer: dict[str, Any] = {"role": "assistant", "content": _text(dice), "refusal": None}
            messages.append(answer | ({"reasoning_content": _text(dice)} if _some(dice, 0.3) else {}))
            if _some(dice, 0.1):
                messages.append({"role": "assistant", "content": _text(dice)})
    return {"model": "m", "messages": messages, "tools": chat_completions.body(ModelRequest((), tools=TOOLS))["tools"]}


def _chat_prompt(dice: random.Random) -> Any:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    new = {"type": "new_kind", "deep": [None, 1]}
    return dice.choice([_text(dice), [{"type": "text", "text": _text(dice)}, dice.choice([image, new])]])


def _chat_step(dice: random.Random, new_id: Callable[[], str], most: int) -> list[dict[str, Any]]:
    calls = [
        {
            "id": new_id(),
            "type": "function",
            "function": {"name": dice.choice(TOOLS).name, "arguments": json.dumps(_given(dice))},
        }
        for _ in range(dice.randint(1, most))
    ]
    said = {
        "role": "assistant",
        "content": dice.choice([None, _text(dice)]),
        "tool_calls": calls,
        "new_member": {"a": 1},
    }
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": dice.choice([_text(dice), ""])} for call in calls
    ]
    dice.shuffle(results)
    return [said, *results]


# /responses -----------------------------------------------------------------------------------------------------------


def _responses(dice: random.Random, turns: int) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    new_id = _ids(dice, "call_")
    item_id = _ids(dice, "")
    is_thinking = _some(dice, 0.5)
    for turn in range(turns):
        items.append(_responses_prompt(dice))
        for _ in range(dice.randint(0, 3)):
            items += _responses_step(dice, new_id, item_id, is_thinking)
        if turn < turns - 1:
            items += _responses_answer(dice, item_id, is_thinking)
    tools = responses.body(ModelRequest((), tools=TOOLS))["tools"]
    return {"model": "m", "store": False, "instructions": "Be brief.", "tools": tools, "input": items}


def _responses_prompt(dice: random.Random) -> dict[str, Any]:
    if _some(dice, 0.4):
        return {"role": dice.choice(["user", "user", "developer"]), "content": _text(dice)}
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"}
    new = {"type": "new_kind", "deep": [None, 1]}
    text = {"type": "input_text", "text": _text(dice)}
    return {"type": "message", "role": "user", "content": [text, *dice.sample([image, new, text], dice.randint(0, 2))]}


def _responses_thought(dice: random.Random, item_id: Callable[[], str]) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": _text(dice)} for _ in range(dice.randint(0, 2))]
    return {
        "type": "reasoning",
        "id": f"rs_{item_id()}",
        "summary": summary,
        "encrypted_content": f"enc{dice.random()}",
    }


def _responses_said(dice: random.Random, item_id: Callable[[], str]) -> dict[str, Any]:
    blocks = [{"type": "output_text", "text": _text(dice), "annotations": []} for _ in range(dice.randint(1, 2))]
    return {"type": "message", "id": f"msg_{item_id()}", "role": "assistant", "status": "completed", "content": blocks}


def _responses_answer(dice: random.Random, item_id: Callable[[], str], is_thinking: bool) -> list[dict[str, Any]]:
    items = [_responses_thought(dice, item_id)] if is_thinking else []
    if _some(dice, 0.3):
        items.append(
            {"type": "web_search_call", "id": f"ws_{item_id()}", "status": "completed", "action": {"query": "q"}}
        )
    return [*items, _responses_said(dice, item_id)]


def _responses_step(
    dice: random.Random, new_id: Callable[[], str], item_id: Callable[[], str], is_thinking: bool
) -> list[dict[str, Any]]:
    items = [_responses_thought(dice, item_id)] if is_thinking else []
    items += [_responses_said(dice, item_id)] if _some(dice, 0.3) else []
    results = []
    for _ in range(dice.randint(1, 3)):
        call_id, name = new_id(), dice.choice(TOOLS).name
        kind, member, given = dice.choice(
            [("function_call", "arguments", json.dumps(_given(dice))), ("custom_tool_call", "input", _text(dice))]
        )
        items.append({"type": kind, "id": f"fc_{item_id()}", "call_id": call_id, "name": name, member: given})
        output = dice.choice([_text(dice), "", [{"type": "input_text", "text": _text(dice)}]])
        results.append({"type": f"{kind}_output", "call_id": call_id, "output": output})
    if _some(dice, 0.2):  # words after calls, results after the words
        items.append(_responses_said(dice, item_id))
    dice.shuffle(results)
    return [*items, *results]


_MAKERS: dict[str, Callable[[random.Random, int], dict[str, Any]]] = {
    "anthropic_messages": _anthropic,
    "chat_completions": _chat,
    "responses": _responses,
}
