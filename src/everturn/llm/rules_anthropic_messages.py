"""What `/v1/messages` refuses in a history.

Neighbours of one role count as one message there, and so they are put together before calls and results are looked at:
roles need not alternate, and results of one answer may stand in several messages as long as nothing is between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from everturn.llm.wire import word

_ID = re.compile(r"[A-Za-z0-9_-]+")
_THOUGHTS = ("thinking", "redacted_thinking")
_ROLES = ("user", "assistant", "system")
Found = tuple[str, str, str]


class _RoleRun(Struct):
    """Neighbours of one role."""

    role: str
    where: str
    blocks: list[Mapping[str, Any]]
    is_last: bool = False

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        """The blocks of one type."""
        return [block for block in self.blocks if block.get("type") == kind]


def broken_rules(body: Mapping[str, Any]) -> Iterator[Found]:
    """Each rule that is broken: name, place, sentence."""
    messages = [one for one in body.get("messages") or () if isinstance(one, dict)]
    if not messages:
        yield "no_messages", "messages", "at least one message is required"
        return
    for place, message in enumerate(messages):
        yield from _check_contents(message, f"messages.{place}", place == len(messages) - 1)
    turns = _merge_neighbours(messages)
    yield from _check_tools(turns, body)
    yield from _check_ids(turns)
    for place, turn in enumerate(turns):
        yield from _check_pairs(
            turn, turns[place - 1] if place else None, turns[place + 1] if turn is not turns[-1] else None
        )
        if turn.role == "assistant":
            yield from _check_thoughts(turn)
            yield from _check_server_tools(turn)
    yield from _check_end(turns, body)


def _message_blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _merge_neighbours(messages: list[dict[str, Any]]) -> list[_RoleRun]:
    turns: list[_RoleRun] = []
    for place, message in enumerate(messages):
        if turns and turns[-1].role == message.get("role"):
            turns[-1].blocks += _message_blocks(message)
        else:
            turns.append(_RoleRun(word(message.get("role")), f"messages.{place}", _message_blocks(message)))
    turns[-1].is_last = True
    return turns


def _check_contents(message: Mapping[str, Any], where: str, is_last: bool) -> Iterator[Found]:
    role, blocks = message.get("role"), _message_blocks(message)
    if role not in _ROLES:
        yield "role", where, "the role must be user or assistant"
    if not blocks and not (is_last and role == "assistant"):
        yield "empty_message", where, "a message must not be empty, except a last one of the assistant"
    if any(block.get("type") == "text" and not word(block.get("text")).strip() for block in blocks):
        yield "empty_text", where, "a text must not be empty"
    if role != "assistant" and any(block.get("type") in (*_THOUGHTS, "tool_use") for block in blocks):
        yield "wrong_role", where, "only the assistant thinks and calls"
    if role != "user" and any(block.get("type") == "tool_result" for block in blocks):
        yield "wrong_role", where, "results belong into a message of the user"


def _check_tools(turns: list[_RoleRun], body: Mapping[str, Any]) -> Iterator[Found]:
    uses = any(turn.of("tool_use") or turn.of("tool_result") for turn in turns)
    if uses and not body.get("tools"):
        yield "no_tools", "tools", "a request with calls or results in it must define tools"


def _check_ids(turns: list[_RoleRun]) -> Iterator[Found]:
    seen: set[str] = set()
    for turn in turns:
        for call in turn.of("tool_use"):
            call_id = word(call.get("id"))
            if not _ID.fullmatch(call_id):
                yield "bad_id", turn.where, "the id of a call has letters, digits, _ and - only"
            if call_id in seen:
                yield "repeated_id", turn.where, f"two calls have the id {call_id}"
            if not word(call.get("name")) or not isinstance(call.get("input"), dict):
                yield "bad_call", turn.where, f"call {call_id} must have a name and an object as its input"
            seen.add(call_id)


def _check_pairs(turn: _RoleRun, before: _RoleRun | None, after: _RoleRun | None) -> Iterator[Found]:
    answered = {word(one.get("tool_use_id")) for one in after.of("tool_result")} if after is not None else set()
    for call_id in [word(one.get("id")) for one in turn.of("tool_use")]:
        if call_id not in answered:
            yield "no_result", turn.where, f"call {call_id} has no result immediately after"
    called = {word(one.get("id")) for one in before.of("tool_use")} if before is not None else set()
    results = turn.of("tool_result")
    for place, result in enumerate(results):
        call_id = word(result.get("tool_use_id"))
        if call_id not in called:
            yield "no_call", turn.where, f"result {call_id} has no call immediately before"
        if any(one.get("tool_use_id") == call_id for one in results[:place]):
            yield "two_results", turn.where, f"call {call_id} has more than one result"
    if any(block.get("type") != "tool_result" for block in turn.blocks[: len(results)]):
        yield "results_first", turn.where, "results must come before anything else"


def _check_thoughts(turn: _RoleRun) -> Iterator[Found]:
    if turn.blocks and turn.blocks[-1].get("type") in _THOUGHTS:
        yield "ends_on_thinking", turn.where, "the last block of the assistant must not be a thought"
    for block in turn.blocks:
        sealed = {"thinking": "signature", "redacted_thinking": "data"}.get(word(block.get("type")))
        if sealed is not None and not word(block.get(sealed)):
            yield "unsigned_thinking", turn.where, "a thought must keep its signature"


def _check_server_tools(turn: _RoleRun) -> Iterator[Found]:
    """Tools that run over there have call and result in one message; a paused answer may still wait for one."""
    called = [word(one.get("id")) for one in turn.of("server_tool_use")]
    answered = [word(block.get("tool_use_id")) for block in turn.blocks if is_server_result(block)]
    if not turn.is_last and any(call_id not in answered for call_id in called):
        yield "no_server_result", turn.where, "a call of a tool that runs at the provider has no result in its message"
    if any(call_id not in called for call_id in answered):
        yield "no_server_call", turn.where, "a result of a tool that runs at the provider has no call in its message"


def is_server_result(block: Mapping[str, Any]) -> bool:
    """Whether a block is the result of a tool that runs at the provider."""
    kind = word(block.get("type"))
    return kind.endswith("_tool_result") and kind != "mcp_tool_result" and "tool_use_id" in block


def _check_end(turns: list[_RoleRun], body: Mapping[str, Any]) -> Iterator[Found]:
    last = turns[-1]
    paused = last.blocks and last.blocks[-1].get("type") not in ("text", "tool_use", *_THOUGHTS)
    if last.role == "assistant" and not paused:
        yield "ends_on_assistant", last.where, "the last message must be one of the user"
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return
    current = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    if current is None or not current.of("tool_use") or not last.of("tool_result"):
        return
    if current.blocks[0].get("type") not in _THOUGHTS:
        yield "no_thinking", current.where, "with thinking the answer whose calls are open must begin with its thought"
