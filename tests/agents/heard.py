"""What a model was told in a request, on each of the four wire formats, in one form: who says what, in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.model_server import Asked


@dataclass(frozen=True)
class Heard:
    """One piece of a request."""

    kind: str  # user | assistant | call | result | thinking
    text: str  # what was said; of a call its name and arguments; of a result its output
    call: str = ""  # id of the call

    def __str__(self) -> str:
        return f"{self.kind}: {self.text[:200]}"


def heard(asked: Asked) -> list[Heard]:
    """The conversation in a request, without what the client says as the system."""
    return [piece for piece in _WIRES[asked.wire](asked.body) if piece.text]


def tools(asked: Asked) -> list[str]:
    """The names of the tools that are offered."""
    found = [tool.get("function", tool) for tool in asked.body.get("tools", [])]
    declared = [one for tool in found for one in tool.get("functionDeclarations", [])]
    return [tool["name"] for tool in [*found, *declared] if "name" in tool]


def _messages(body: dict[str, Any]) -> Iterator[Heard]:
    for message in body["messages"]:
        if message["role"] == "system":
            continue
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            kind = block["type"]
            if kind == "tool_use":
                yield Heard("call", f"{block['name']} {json.dumps(block['input'])}", block["id"])
            elif kind == "tool_result":
                yield Heard("result", _text(block.get("content")), block["tool_use_id"])
            elif kind in ("text", "thinking"):
                yield Heard(message["role"] if kind == "text" else kind, block[kind])


def _chat(body: dict[str, Any]) -> Iterator[Heard]:
    for message in body["messages"]:
        role, text = message["role"], _text(message.get("content"))
        if role == "tool":
            yield Heard("result", text, message["tool_call_id"])
        elif role in ("user", "assistant"):
            yield Heard(role, text)
        for call in message.get("tool_calls", ()):
            yield Heard("call", f"{call['function']['name']} {call['function']['arguments']}", call["id"])


def _responses(body: dict[str, Any]) -> Iterator[Heard]:
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "message" and item["role"] in ("user", "assistant"):
            for part in item["content"]:
                yield Heard(item["role"], part.get("text", ""))
        elif kind in ("function_call", "custom_tool_call"):
            yield Heard("call", f"{item['name']} {item.get('arguments', item.get('input'))}", item["call_id"])
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield Heard("result", _text(item["output"]), item["call_id"])
        elif kind == "reasoning":
            yield Heard("thinking", json.dumps(item))


def _gemini(body: dict[str, Any]) -> Iterator[Heard]:
    for content in body["contents"]:
        role = "assistant" if content["role"] == "model" else "user"
        for part in content["parts"]:
            if "functionCall" in part:
                call = part["functionCall"]
                yield Heard("call", f"{call['name']} {json.dumps(call.get('args'))}", call.get("id", ""))
            elif "functionResponse" in part:
                result = part["functionResponse"]
                yield Heard("result", json.dumps(result["response"]), result.get("id", ""))
            elif "text" in part:
                yield Heard("thinking" if part.get("thought") else role, part["text"])


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(_text(part) for part in content)
    return content.get("text", "") if isinstance(content, dict) else content or ""


_WIRES: dict[str, Callable[[dict[str, Any]], Iterator[Heard]]] = {
    "messages": _messages,
    "chat": _chat,
    "responses": _responses,
    "gemini": _gemini,
}
