"""What providers refuse in a history, in their own words (see `tests.model_server`, `strict=True`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def broken_rule(wire: str, body: dict[str, Any]) -> str | None:
    """The first rule a request breaks."""
    rules = {"messages": _messages, "chat": _chat, "responses": _responses}
    return next(rules[wire](body), None) if wire in rules else None


def _messages(body: dict[str, Any]) -> Iterator[str]:
    merged: list[tuple[str, list[dict[str, Any]]]] = []
    for place, message in enumerate(body.get("messages", [])):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            yield f"messages.{place}: all messages must have non-empty content except for the optional final assistant message"
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            yield f"messages.{place}: text content blocks must be non-empty"
        if merged and merged[-1][0] == message["role"]:
            merged[-1][1].extend(blocks)
        else:
            merged.append((message["role"], list(blocks)))
    kinds = {block["type"] for _, blocks in merged for block in blocks}
    if kinds & {"tool_use", "tool_result"} and not body.get("tools"):
        yield "Requests which include `tool_use` or `tool_result` blocks must define tools"
    if merged and merged[-1][0] == "assistant":
        yield "This model does not support assistant message prefill. The conversation must end with a user message."
    yield from _pairs(merged)


def _pairs(merged: list[tuple[str, list[dict[str, Any]]]]) -> Iterator[str]:
    for place, (_, blocks) in enumerate(merged):
        after = merged[place + 1][1] if place + 1 < len(merged) else []
        before = merged[place - 1][1] if place else []
        wanted = {block["id"] for block in blocks if block["type"] == "tool_use"}
        given = {block["tool_use_id"] for block in after if block["type"] == "tool_result"}
        if wanted - given:
            lost = ", ".join(sorted(wanted - given))
            yield f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {lost}"
        results = [block for block in blocks if block["type"] == "tool_result"]
        called = {block["id"] for block in before if block["type"] == "tool_use"}
        if any(block["tool_use_id"] not in called for block in results):
            yield f"messages.{place}: unexpected `tool_use_id` found in `tool_result` blocks"
        if blocks[: len(results)] != results:
            yield f"messages.{place}: Did not find {len(results)} `tool_result` block(s) at the beginning of this message"


def _chat(body: dict[str, Any]) -> Iterator[str]:
    open_calls: set[str] = set()
    for place, message in enumerate(body.get("messages", [])):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                yield f"messages with role 'tool' must be a response to a preceding message with 'tool_calls' (messages[{place}])"
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            break
        open_calls = {call["id"] for call in message.get("tool_calls") or ()}
    if open_calls:
        yield f"The following tool_call_ids did not have response messages: {', '.join(sorted(open_calls))}"


def _responses(body: dict[str, Any]) -> Iterator[str]:
    given = body.get("input")
    items = [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    for call_id in calls:
        if call_id not in outputs:
            yield f"No tool output found for function call {call_id}."
    for call_id in outputs:
        if call_id not in calls and not body.get("previous_response_id"):
            yield f"No tool call found for function call output with call_id {call_id}."
