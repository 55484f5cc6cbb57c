"""What `/chat/completions` refuses in a history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from everturn.llm.wire import word

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
Found = tuple[str, str, str]


def broken_rules(body: Mapping[str, Any]) -> Iterator[Found]:
    """Each rule that is broken: name, place, sentence."""
    messages = [one for one in body.get("messages") or () if isinstance(one, dict)]
    if not messages:
        yield "no_messages", "messages", "at least one message is required"
        return
    open_calls: list[str] = []  # of the assistant message whose results are being read
    answered: set[str] = set()
    for place, message in enumerate(messages):
        where = f"messages.{place}"
        if message.get("role") == "tool":
            yield from _check_result(message, where, open_calls, answered)
            continue
        yield from _check_answered(open_calls, answered, where)
        yield from _check_content(message, where)
        yield from _check_calls(message, where)
        open_calls, answered = _call_ids(message), set()
    yield from _check_answered(open_calls, answered, "messages")
    if messages[-1].get("role") == "assistant" and not open_calls:
        yield "ends_on_assistant", f"messages.{len(messages) - 1}", "the last message must not be one of the assistant"


def _check_result(message: Mapping[str, Any], where: str, open_calls: list[str], answered: set[str]) -> Iterator[Found]:
    call_id = word(message.get("tool_call_id"))
    if call_id not in open_calls:
        yield "no_call", where, f"result {call_id} follows no message with such a call"
    elif call_id in answered:
        yield "two_results", where, f"call {call_id} has more than one result"
    if message.get("content") is None:
        yield "empty_message", where, "a result must have a content"
    answered.add(call_id)


def _check_answered(open_calls: list[str], answered: set[str], where: str) -> Iterator[Found]:
    for call_id in open_calls:
        if call_id not in answered:
            yield "no_result", where, f"call {call_id} has no result immediately after its message"


def _check_content(message: Mapping[str, Any], where: str) -> Iterator[Found]:
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        yield "role", where, "the role must be system, user, assistant or tool"
    elif role == "assistant":
        if not (content or message.get("tool_calls") or message.get("function_call") or message.get("refusal")):
            yield "empty_message", where, "a message of the assistant must have a content or calls"
    elif content is None or content == []:
        yield "empty_message", where, "a message must have a content"


def _check_calls(message: Mapping[str, Any], where: str) -> Iterator[Found]:
    calls = message.get("tool_calls")
    if calls is None:
        return
    if calls == []:
        yield "empty_calls", where, "a list of calls must not be empty"
    if message.get("role") != "assistant":
        yield "wrong_role", where, "only the assistant calls"
    ids = _call_ids(message)
    for call_id in sorted({one for one in ids if ids.count(one) > 1}):
        yield "repeated_id", where, f"two calls of one message have the id {call_id}"
    for call in calls:
        function = call.get("function", call.get("custom")) if isinstance(call, dict) else None
        given = function.get("arguments", function.get("input")) if isinstance(function, dict) else None
        if not isinstance(function, dict) or not word(function.get("name")) or not isinstance(given, str):
            yield "bad_call", where, "a call must have a name and a text as its arguments"
        if not (isinstance(call, dict) and word(call.get("id"))):
            yield "bad_id", where, "a call must have an id"


def _call_ids(message: Mapping[str, Any]) -> list[str]:
    calls = message.get("tool_calls")
    return [word(call.get("id")) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
