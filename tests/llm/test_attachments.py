"""Images and files cross from every wire format to every other, in messages and in results."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.llm import anthropic_messages, chat_completions, responses
from everturn.llm.attachments import attachments
from everturn.llm.history_rules import certain_violations
from everturn.llm.protocol import ModelRequest, ToolSpec, Wire

PNG, PDF = "iVBORw0KGgo=", "JVBERi0xLjQ="
TOOLS = (ToolSpec("look", "looks", {"type": "object"}),)

#: The same two attachments as each format has them: an image, and a PDF with a name.
BLOCKS: dict[str, list[dict[str, Any]]] = {
    "anthropic_messages": [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}, "title": "a.pdf"},
    ],
    "chat_completions": [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
    ],
    "responses": [
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
    ],
}  # fmt: skip
WIRES: dict[str, Wire] = {
    "anthropic_messages": anthropic_messages, "chat_completions": chat_completions, "responses": responses,
}  # fmt: skip
TEXT = {"anthropic_messages": "text", "chat_completions": "text", "responses": "input_text"}


def asked(wire: str) -> list[dict[str, Any]]:
    """A question with attachments; where results may hold some, a call whose result has them too."""
    question = {"role": "user", "content": [{"type": TEXT[wire], "text": "What is it?"}, *BLOCKS[wire]]}
    if wire == "anthropic_messages":
        call = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
        result = {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": [{"type": "text", "text": "see"}, *BLOCKS[wire]],
        }
        return [question, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    if wire == "responses":
        call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
        output = [{"type": "input_text", "text": "see"}, *BLOCKS[wire]]
        return [question, call, {"type": "function_call_output", "call_id": "c1", "output": output}]
    return [question]


def found_blocks(value: Any, kinds: set[str]) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [one for item in value for one in found_blocks(item, kinds)]
    if not isinstance(value, dict):
        return []
    own = [value] if value.get("type") in kinds else []
    return own + [one for item in value.values() for one in found_blocks(item, kinds)]


@pytest.mark.parametrize("source", WIRES)
@pytest.mark.parametrize("target", WIRES)
def test_every_attachment_arrives(source: str, target: str) -> None:
    history = asked(source)
    request = ModelRequest(tuple(map(WIRES[source].message, history)), tools=TOOLS)
    body = WIRES[target].body(request)
    sent = body["input" if target == "responses" else "messages"]
    kinds = {block["type"] for block in BLOCKS[target]}
    times = 2 if source != "chat_completions" else 1
    assert found_blocks(sent, kinds) == BLOCKS[target] * times
    assert certain_violations(target, body) == []
    if source == target:
        assert sent == history


@pytest.mark.parametrize("target", WIRES)
def test_what_cannot_cross_is_named_and_text_files_cross_as_text(target: str) -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "nine jars"}, "title": "a"},
        {"type": "document", "source": {"type": "file", "file_id": "f1"}, "title": "secret.pdf"},
    ]
    message = anthropic_messages.message({"role": "user", "content": blocks})
    text = str(WIRES[target].body(ModelRequest((message,))))
    assert "nine jars" in text and "secret.pdf" in text
    chat = {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,bmluZSBqYXJz"}}
    other = chat_completions.message({"role": "user", "content": [chat, {"type": "input_audio", "input_audio": {}}]})
    text = str(WIRES[target].body(ModelRequest((other,))))
    assert target == "chat_completions" or ("nine jars" in text and "[audio]" in text)


def test_odd_blocks_are_no_attachments() -> None:
    for block in ({"type": "image"}, {"type": "file", "file": 3}, {"type": 5}, {}, {"type": "input_file"}):
        part = chat_completions.message({"role": "user", "content": [block]}).parts[0]
        for one in attachments(part):
            assert not one.data and not one.url
