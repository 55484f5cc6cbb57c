"""The wire format `/v1/messages`, and the rules it enforces on a history.

`raw` of a message is its skeleton: every member in its order, with the content moved into the parts. Blocks go back as
they came, with signatures and unknown members.

For the rules, consecutive messages of one role count as one message: roles need not alternate, and the results of one
answer may be in several messages as long as nothing comes between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from everturn.llm.attachments import attachment_block, attachments
from everturn.llm.protocol import (
    BrokenRule,
    ChatMessage,
    ChatPart,
    Delta,
    GarbledAnswer,
    ModelRequest,
    Reply,
    ReplyTokens,
    StreamFailed,
    WireFailure,
    as_count,
    as_text,
    content_text,
    decode_arguments,
    decode_json,
    encode_json,
    event_index,
    fit_id,
    join_values,
    object_member,
    part_as_text,
)

WIRE = "anthropic_messages"
PATH = "/v1/messages"
VERSION = "2023-06-01"

_STOPS = {
    "end_turn": "end", "stop_sequence": "end", "pause_turn": "pause", "tool_use": "calls", "max_tokens": "length",
    "model_context_window_exceeded": "length", "refusal": "refusal",
}  # fmt: skip
_PASSING = {"overloaded_error", "rate_limit_error", "api_error", "timeout_error"}


def headers(key: str) -> dict[str, str]:
    return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})


def body(request: ModelRequest, stream: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = {"model": request.model, "max_tokens": request.max_tokens}
    if request.temperature is not None:
        made["temperature"] = request.temperature
    if request.system:
        made["system"] = request.system
    made["messages"] = _join_results(request.messages)
    if request.tools:
        made["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
    return made | ({"stream": True} if stream else {}) | request.extra


# --- a history ---
def message(wire: Mapping[str, Any]) -> ChatMessage:
    skeleton, content = dict(wire), wire.get("content")
    parts: tuple[ChatPart, ...] = ()
    if isinstance(content, str):
        skeleton["content"] = ""
        parts = (ChatPart("text", content, raw=content),) if content else ()
    elif isinstance(content, list):
        skeleton["content"] = []
        parts = tuple(map(_read_part, content))
    return ChatMessage(as_text(wire.get("role")) or "assistant", parts, as_text(wire.get("id")), WIRE, skeleton)


def history(message: ChatMessage) -> list[dict[str, Any]]:
    """See `Wire`. Of an answer only role and content go back: the endpoint refuses the other members."""
    if message.wire == WIRE and isinstance(message.raw, dict):
        is_answer = message.raw.get("type") == "message"
        made = {"role": message.role, "content": []} if is_answer else dict(message.raw)
        if isinstance(made.get("content"), str):
            made["content"] = "".join(part.raw for part in message.parts if isinstance(part.raw, str))
        elif "content" in made:
            made["content"] = [
                block for part in message.parts for block in (_own_blocks(part) if part.raw is None else [part.raw])
            ]
        return [made]
    role = "assistant" if message.role == "assistant" else "user"
    ordered = sorted(message.parts, key=lambda part: part.kind != "result")  # results must come first
    blocks = [block for part in ordered for block in _own_blocks(part)]
    return [{"role": role, "content": blocks}] if blocks else []


def _join_results(messages: tuple[ChatMessage, ...]) -> list[dict[str, Any]]:
    """Put the results of one response into one message, as the endpoint requires.

    Only messages of our own are joined: the provider's go back unchanged.
    """
    made: list[dict[str, Any]] = []
    can_join = False
    for one in messages:
        is_ours = one.wire != WIRE
        for wire in history(one):
            if is_ours and can_join and wire["role"] == "user":
                made[-1]["content"] += wire["content"]
            else:
                made.append(wire)
            can_join = is_ours and made[-1]["role"] == "user" and _has_results(made[-1])
    return made


def _has_results(wire: dict[str, Any]) -> bool:
    return any(block.get("type") == "tool_result" for block in wire["content"])


def _read_part(block: Any) -> ChatPart:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text":
        return ChatPart("text", as_text(block.get("text")), raw=block)
    if kind in ("thinking", "redacted_thinking"):
        return ChatPart("thinking", as_text(block.get("thinking")), raw=block)
    if kind == "tool_use":
        call_id, name = as_text(block.get("id")), as_text(block.get("name"))
        return ChatPart("call", call_id=call_id, name=name, arguments=block.get("input"), raw=block)
    if kind == "tool_result":
        text, failed = content_text(block.get("content")), block.get("is_error") is True
        return ChatPart("result", text, as_text(block.get("tool_use_id")), is_error=failed, raw=block)
    return ChatPart("image" if kind == "image" else "opaque", raw=block)


def _own_blocks(part: ChatPart) -> list[dict[str, Any]]:
    """Return blocks for a part that did not come from this format."""
    if part.kind == "call":
        given = part.arguments if isinstance(part.arguments, dict) else {"text": encode_json(part.arguments)}
        return [{"type": "tool_use", "id": fit_id(part.call_id), "name": part.name, "input": given}]
    if part.kind == "result":
        blocks = [attachment_block(WIRE, one) for one in attachments(part)]
        words = [{"type": "text", "text": part.text}] if blocks and part.text.strip() else []
        content = words + blocks if blocks else part.text
        made = {"type": "tool_result", "tool_use_id": fit_id(part.call_id), "content": content}
        return [made | ({"is_error": True} if part.is_error else {})]
    if found := attachments(part):
        return [attachment_block(WIRE, one) for one in found]
    text = part_as_text(part)
    return [{"type": "text", "text": text}] if text.strip() else []  # the endpoint refuses empty texts


# --- an answer ---
def read(response: Any) -> Reply:
    if not isinstance(response, dict) or not isinstance(response.get("content"), list):
        raise GarbledAnswer("it has no content")
    made = message(response)
    stop = _STOPS.get(as_text(response.get("stop_reason")), "end")
    return Reply(made, stop, _usage(response.get("usage")), as_text(response.get("model")))


def failure(response: Any) -> WireFailure | None:
    error = response.get("error") if isinstance(response, dict) else None
    if not isinstance(error, dict):
        return None
    kind = as_text(error.get("type"))
    return WireFailure(kind, as_text(error.get("message")), kind in _PASSING)


class AnthropicAssembly:
    """Assembles streamed blocks into a message."""

    def __init__(self) -> None:
        self.is_done = self.has_begun = False
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._is_stopped = False

    def feed(self, data: str) -> list[Delta]:
        event = decode_json(data)
        kind = event.get("type")
        if kind == "error":
            raise StreamFailed(failure(event) or WireFailure("error", "", False))
        if kind == "message_start":
            self._message = dict(object_member(event, "message"))
        elif kind == "content_block_start":
            return self._start_block(event)
        elif kind == "content_block_delta":
            return self._add_delta(event)
        elif kind == "message_delta":
            self._change_message(event)
        elif kind == "message_stop":
            self._finish_message()
        return []

    def reply(self) -> Reply:
        blocks = [self._block(place) for place in sorted(self._blocks)]
        made = read({**self._message, "content": blocks})
        broken = {place for place, text in self._inputs.items() if isinstance(decode_arguments(text), str)}
        parts = tuple(
            ChatPart("call", call_id=part.call_id, name=part.name, arguments=self._inputs[place])
            if place in broken
            else part
            for place, part in zip(sorted(self._blocks), made.message.parts, strict=True)
        )
        whole = ChatMessage("assistant", parts, made.message.id, WIRE, made.message.raw)
        stop = made.stop if self.is_done or self._is_stopped else "cut"
        return Reply(whole, stop, made.usage, made.model)

    def _start_block(self, event: dict[str, Any]) -> list[Delta]:
        block = dict(object_member(event, "content_block"))
        self._blocks[event_index(event, "index")] = block
        self.has_begun = True
        if block.get("type") == "tool_use":
            return [Delta("call", "", as_text(block.get("id")), as_text(block.get("name")))]
        text = as_text(block.get("text"))
        return [Delta("text", text)] if block.get("type") == "text" and text else []

    def _add_delta(self, event: dict[str, Any]) -> list[Delta]:
        """Add a delta to its block. Each delta names the member it extends, so unknown kinds work too."""
        delta, place = object_member(event, "delta"), event_index(event, "index")
        if (block := self._blocks.get(place)) is None:
            raise GarbledAnswer("a part of a block that was not started")
        if delta.get("type") == "input_json_delta":
            text = as_text(delta.get("partial_json"))
            self._inputs[place] = self._inputs.get(place, "") + text
            is_call = block.get("type") == "tool_use"
            return [Delta("call", text, as_text(block.get("id")), as_text(block.get("name")))] if is_call else []
        if delta.get("type") == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
            return []
        for name, value in delta.items():
            if name != "type":
                block[name] = join_values(block.get(name), value)
        kind = {"text_delta": "text", "thinking_delta": "thinking"}.get(as_text(delta.get("type")), "")
        return [Delta(kind, as_text(delta.get(kind)))] if kind else []

    def _change_message(self, event: dict[str, Any]) -> None:
        delta = object_member(event, "delta")
        self._message |= delta
        self._is_stopped = self._is_stopped or bool(delta.get("stop_reason"))
        if isinstance(event.get("usage"), dict):
            before = self._message.get("usage")
            known = {name: value for name, value in event["usage"].items() if value is not None}
            self._message["usage"] = {**(before if isinstance(before, dict) else {}), **known}

    def _finish_message(self) -> None:
        if not self._message:
            raise GarbledAnswer("it ends before it starts")
        self.is_done = True

    def _block(self, place: int) -> dict[str, Any]:
        given = decode_arguments(self._inputs[place]) if place in self._inputs else None
        return {**self._blocks[place], "input": given} if isinstance(given, dict) else self._blocks[place]


assembly = AnthropicAssembly


def _usage(used: Any) -> ReplyTokens:
    if not isinstance(used, dict):
        return ReplyTokens(source="estimate")
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    given, output, cache_read, cache_write = (as_count(used.get(name)) for name in names)
    return ReplyTokens(given, output, cache_read, cache_write)


# --- the rules ---
_ID = re.compile(r"[A-Za-z0-9_-]+")
_THOUGHTS = ("thinking", "redacted_thinking")
_ROLES = ("user", "assistant", "system")


class _RoleRun(Struct):
    """Consecutive messages of one role."""

    role: str
    where: str
    blocks: list[Mapping[str, Any]]
    is_last: bool = False

    def blocks_of(self, kind: str) -> list[Mapping[str, Any]]:
        return [block for block in self.blocks if block.get("type") == kind]


def broken_rules(body: Mapping[str, Any]) -> Iterator[BrokenRule]:
    """Yield each broken rule: name, location, sentence."""
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
            turns.append(_RoleRun(as_text(message.get("role")), f"messages.{place}", _message_blocks(message)))
    turns[-1].is_last = True
    return turns


def _check_contents(message: Mapping[str, Any], where: str, is_last: bool) -> Iterator[BrokenRule]:
    role, blocks = message.get("role"), _message_blocks(message)
    if role not in _ROLES:
        yield "role", where, "the role must be user or assistant"
    if not blocks and not (is_last and role == "assistant"):
        yield "empty_message", where, "a message must not be empty, except a last one of the assistant"
    if any(block.get("type") == "text" and not as_text(block.get("text")).strip() for block in blocks):
        yield "empty_text", where, "a text must not be empty"
    if role != "assistant" and any(block.get("type") in (*_THOUGHTS, "tool_use") for block in blocks):
        yield "wrong_role", where, "only the assistant may have thinking and calls"
    if role != "user" and any(block.get("type") == "tool_result" for block in blocks):
        yield "wrong_role", where, "results must be in a message of the user"


def _check_tools(turns: list[_RoleRun], body: Mapping[str, Any]) -> Iterator[BrokenRule]:
    uses = any(turn.blocks_of("tool_use") or turn.blocks_of("tool_result") for turn in turns)
    if uses and not body.get("tools"):
        yield "no_tools", "tools", "a request with calls or results must define tools"


def _check_ids(turns: list[_RoleRun]) -> Iterator[BrokenRule]:
    for turn in turns:
        seen: set[str] = set()  # a later answer may use the ids of an earlier one
        for call in turn.blocks_of("tool_use"):
            call_id = as_text(call.get("id"))
            if not _ID.fullmatch(call_id):
                yield "bad_id", turn.where, "the id of a call may have letters, digits, _ and - only"
            if call_id in seen:
                yield "repeated_id", turn.where, f"two calls have the id {call_id}"
            if not as_text(call.get("name")) or not isinstance(call.get("input"), dict):
                yield "bad_call", turn.where, f"call {call_id} must have a name, and an object as input"
            seen.add(call_id)


def _check_pairs(turn: _RoleRun, before: _RoleRun | None, after: _RoleRun | None) -> Iterator[BrokenRule]:
    answered = (
        {as_text(one.get("tool_use_id")) for one in after.blocks_of("tool_result")} if after is not None else set()
    )
    for call_id in [as_text(one.get("id")) for one in turn.blocks_of("tool_use")]:
        if call_id not in answered:
            yield "no_result", turn.where, f"call {call_id} has no result immediately after"
    called = {as_text(one.get("id")) for one in before.blocks_of("tool_use")} if before is not None else set()
    results = turn.blocks_of("tool_result")
    for place, result in enumerate(results):
        call_id = as_text(result.get("tool_use_id"))
        if call_id not in called:
            yield "no_call", turn.where, f"result {call_id} has no call immediately before"
        if any(one.get("tool_use_id") == call_id for one in results[:place]):
            yield "two_results", turn.where, f"call {call_id} has more than one result"
    if any(block.get("type") != "tool_result" for block in turn.blocks[: len(results)]):
        yield "results_first", turn.where, "results must come before anything else"


def _check_thoughts(turn: _RoleRun) -> Iterator[BrokenRule]:
    if turn.blocks and turn.blocks[-1].get("type") in _THOUGHTS:
        yield "ends_on_thinking", turn.where, "the last block of the assistant must not be thinking"
    for block in turn.blocks:
        sealed = {"thinking": "signature", "redacted_thinking": "data"}.get(as_text(block.get("type")))
        if sealed is not None and not as_text(block.get(sealed)):
            yield "unsigned_thinking", turn.where, "thinking must keep its signature"


def _check_server_tools(turn: _RoleRun) -> Iterator[BrokenRule]:
    """Check tools that run at the provider: call and result are in one message. A paused answer may still wait for one."""
    called = [as_text(one.get("id")) for one in turn.blocks_of("server_tool_use")]
    answered = [as_text(block.get("tool_use_id")) for block in turn.blocks if is_server_result(block)]
    if not turn.is_last and any(call_id not in answered for call_id in called):
        sentence = "a call of a tool that runs at the provider has no result in its message"
        yield "no_server_result", turn.where, sentence
    if any(call_id not in called for call_id in answered):
        yield "no_server_call", turn.where, "a result of a tool that runs at the provider has no call in its message"


def is_server_result(block: Mapping[str, Any]) -> bool:
    """Whether a block is the result of a tool that runs at the provider."""
    kind = as_text(block.get("type"))
    return kind.endswith("_tool_result") and kind != "mcp_tool_result" and "tool_use_id" in block


def _check_end(turns: list[_RoleRun], body: Mapping[str, Any]) -> Iterator[BrokenRule]:
    last = turns[-1]
    paused = last.blocks and last.blocks[-1].get("type") not in ("text", "tool_use", *_THOUGHTS)
    if last.role == "assistant" and not paused:
        yield "ends_on_assistant", last.where, "the last message must be one of the user"
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return
    current = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    if current is None or not current.blocks_of("tool_use") or not last.blocks_of("tool_result"):
        return
    if current.blocks[0].get("type") not in _THOUGHTS:
        yield (
            "no_thinking",
            current.where,
            "with thinking enabled, an answer with open calls must begin with its thinking",
        )
