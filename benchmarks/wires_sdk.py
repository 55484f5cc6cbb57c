"""Run in an environment with the SDKs of Anthropic and OpenAI: sessions of an agent against a server that answers by dice."""

from __future__ import annotations

import base64
import importlib
import itertools
import random
import sys
from collections.abc import Callable
from typing import Any

_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
_TURNS = 4
_MOST = 6  # requests of one turn
_STREAMED = 0.4  # of the requests
_numbers = itertools.count(1)


def main() -> None:
    """Run sessions on one wire until so many requests were sent."""
    root, wire, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
    dice, sent = random.Random(wire), 0
    ask = {"messages": _anthropic, "chat": _chat, "responses": _responses}[wire](root)
    while sent < wanted:
        history: list[Any] = []
        for _ in range(_TURNS):
            history.append(_prompt(wire, dice))
            for _ in range(_MOST):
                sent += 1
                if not ask(history, dice):
                    break
            else:
                break  # calls without a result are not followed by a prompt
    print(sent)


def _anthropic(root: str) -> Callable[[list[Any], random.Random], bool]:
    client = importlib.import_module("anthropic").Anthropic(api_key="k", base_url=root, max_retries=0)
    own = {"type": "web_search_20250305", "name": "web_search"}
    tools = [{"name": "read", "description": "Read.", "input_schema": _SCHEMA}, own]

    def ask(history: list[Any], dice: random.Random) -> bool:
        is_on = int(history[0]["content"][0]["text"].split()[1]) % 2  # in some sessions
        thinking = {"type": "enabled", "budget_tokens": 1024} if is_on else {"type": "disabled"}
        given: Any = {"model": "m", "max_tokens": 2048, "tools": tools, "messages": history, "thinking": thinking}
        if dice.random() < _STREAMED:
            with client.messages.stream(**given) as events:
                answer = events.get_final_message()
        else:
            answer = client.messages.create(**given)
        history.append({"role": "assistant", "content": answer.content})
        calls = [block for block in answer.content if block.type == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": _anthropic_content(dice, "found")}
            for call in calls
        ]
        history += [{"role": "user", "content": results}] if results else []
        return bool(calls)

    return ask


def _chat(root: str) -> Callable[[list[Any], random.Random], bool]:
    client = importlib.import_module("openai").OpenAI(api_key="k", base_url=f"{root}/v1", max_retries=0)
    tools = [{"type": "function", "function": {"name": "read", "parameters": _SCHEMA}}]

    def ask(history: list[Any], dice: random.Random) -> bool:
        given: Any = {"model": "m", "tools": tools, "messages": history}
        if dice.random() < _STREAMED:
            with client.chat.completions.stream(**given) as events:
                answer = events.get_final_completion().choices[0].message
        else:
            answer = client.chat.completions.create(**given).choices[0].message
        history.append(answer)
        calls = answer.tool_calls or []
        history += [{"role": "tool", "tool_call_id": call.id, "content": "found"} for call in calls]
        return bool(calls)

    return ask


def _responses(root: str) -> Callable[[list[Any], random.Random], bool]:
    client = importlib.import_module("openai").OpenAI(api_key="k", base_url=f"{root}/v1", max_retries=0)
    tools = [{"type": "function", "name": "read", "parameters": _SCHEMA, "strict": False}, {"type": "web_search"}]

    def ask(history: list[Any], dice: random.Random) -> bool:
        given: Any = {"model": "m", "tools": tools, "input": history, "store": False}
        if dice.random() < _STREAMED:
            with client.responses.stream(**given) as events:
                answer = events.get_final_response()
        else:
            answer = client.responses.create(**given)
        history += answer.output
        calls = [item for item in answer.output if item.type == "function_call"]
        for call in calls:
            output = _responses_content(dice, "found") if dice.random() < 0.3 else "found"
            history.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
        return bool(calls)

    return ask


def _prompt(wire: str, dice: random.Random) -> dict[str, Any]:
    make = {"messages": _anthropic_content, "chat": _chat_content, "responses": _responses_content}[wire]
    return {"role": "user", "content": make(dice, f"Question {next(_numbers)}")}


def _data() -> str:
    """Content that is found again by its beginning."""
    return base64.b64encode(b"ATTACH%06d" % next(_numbers)).decode()


def _anthropic_content(dice: random.Random, text: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"type": "text", "text": text}]
    for kind, media in (("image", "image/png"), ("document", "application/pdf")):
        if dice.random() < 0.3:
            made.append({"type": kind, "source": {"type": "base64", "media_type": media, "data": _data()}})
    return made


def _chat_content(dice: random.Random, text: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if dice.random() < 0.3:
        made.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_data()}"}})
    if dice.random() < 0.3:
        file = {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{_data()}"}
        made.append({"type": "file", "file": file})
    return made


def _responses_content(dice: random.Random, text: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"type": "input_text", "text": text}]
    if dice.random() < 0.3:
        made.append({"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{_data()}"})
    if dice.random() < 0.3:
        data = f"data:application/pdf;base64,{_data()}"
        made.append({"type": "input_file", "filename": "a.pdf", "file_data": data})
    return made


if __name__ == "__main__":
    main()
