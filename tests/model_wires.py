"""How a scripted answer looks on four wire formats, whole and as a stream of events (see `tests.model_server`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """A tool the model wants to call."""

    name: str
    arguments: Any = None  # an object, or a text that is sent as it is
    id: str = ""


@dataclass(frozen=True)
class Says:
    """One answer of the model. Several calls are parallel calls."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    stop: str = "end"  # end | length | refusal; with calls it is the provider's word for calls
    tokens: tuple[int, int] = (10, 5)  # in, out
    usage: bool = True  # whether the server tells them
    model: str = ""  # as in the request
    wait: float = 0.0  # seconds before the first byte
    drip: float = 0.0  # seconds between events
    cut_after: int | None = (
        None  # the connection breaks after so many events (of a stream) or bytes (of a whole answer)
    )


#: Answers of every shape.
VARIOUS = (
    Says("Two words"),
    Says("I look.", (Call("read", {"path": "a"}), Call("read", {"path": "b"}))),
    Says("So.", thinking="Let me see"),
    Says(calls=(Call("now"),), thinking="hm"),
    Says("Half", stop="length"),
    Says("No.", stop="refusal"),
    Says(),
)


@dataclass(frozen=True)
class Rendered:
    """An answer in a wire format: the whole body, and the events (name, data) of the same answer streamed."""

    whole: dict[str, Any]
    events: list[tuple[str, Any]]


def rendered(wire: str, says: Says, model: str, number: int) -> Rendered:
    """An answer on one of `messages`, `chat`, `responses`, `gemini`; ids come from the number of the request."""
    return {"messages": _messages, "chat": _chat, "responses": _responses, "gemini": _gemini}[wire](says, model, number)


def pieces(text: str) -> list[str]:
    """A text as it is streamed: word by word."""
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + [words[-1]] if text else []


def _calls(says: Says, number: int, prefix: str) -> Iterator[tuple[str, str, Any]]:
    for place, call in enumerate(says.calls, 1):
        yield call.id or f"{prefix}{number}_{place}", call.name, {} if call.arguments is None else call.arguments


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


# /v1/messages ---------------------------------------------------------------------------------------------------------


def _messages(says: Says, model: str, number: int) -> Rendered:
    blocks: list[dict[str, Any]] = []
    if says.thinking:
        blocks.append({"type": "thinking", "thinking": says.thinking, "signature": f"sig{number}=="})
    if says.text:
        blocks.append({"type": "text", "text": says.text})
    blocks += [
        {"type": "tool_use", "id": id, "name": name, "input": given}
        for id, name, given in _calls(says, number, "toolu_")
    ]
    usage = {"input_tokens": says.tokens[0], "output_tokens": says.tokens[1]} if says.usage else {}
    stop = "tool_use" if says.calls else {"end": "end_turn", "length": "max_tokens"}.get(says.stop, says.stop)
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model}
    whole = {**head, "content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage}
    start = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1} if usage else {}}
    events: list[Any] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(blocks):
        events += _block_events(index, block)
    events.append({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage})
    events.append({"type": "message_stop"})
    return Rendered(whole, [(event["type"], event) for event in events])


def _block_events(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    empty: dict[str, dict[str, Any]] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty[block["type"]]}}
    if block["type"] == "text":
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    elif block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        text = _as_text(block["input"])
        halves = [text[: len(text) // 2], text[len(text) // 2 :]]
        deltas = [{"type": "input_json_delta", "partial_json": half} for half in halves]
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


# /chat/completions ----------------------------------------------------------------------------------------------------


def _chat(says: Says, model: str, number: int) -> Rendered:
    head = {"id": f"chatcmpl-{number}", "created": 1, "model": model}
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": _as_text(given)}}
        for id, name, given in _calls(says, number, "call_")
    ]
    message: dict[str, Any] = {"role": "assistant", "content": says.text or (None if calls else "")}
    if says.thinking:
        message["reasoning_content"] = says.thinking
    if says.stop == "refusal":
        message |= {"content": None, "refusal": says.text}
    if calls:
        message["tool_calls"] = calls
    finish = "tool_calls" if calls else {"end": "stop", "refusal": "stop"}.get(says.stop, says.stop)
    told, answered = says.tokens
    usage = {"prompt_tokens": told, "completion_tokens": answered, "total_tokens": told + answered}
    counted = {"usage": usage} if says.usage else {}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    whole = {**head, "object": "chat.completion", "choices": [choice], **counted}
    text_in = "refusal" if says.stop == "refusal" else "content"
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in pieces(says.thinking)]
    deltas += [{text_in: piece} for piece in pieces(says.text)]
    deltas += [delta for index, call in enumerate(calls) for delta in _call_deltas(index, call)]
    chunk = {**head, "object": "chat.completion.chunk"}
    events: list[Any] = [{**chunk, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    events.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if says.usage:
        events.append({**chunk, "choices": [], **counted})
    return Rendered(whole, [("", event) for event in [*events, "[DONE]"]])


def _call_deltas(index: int, call: dict[str, Any]) -> Iterator[dict[str, Any]]:
    text = call["function"]["arguments"]
    first = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
    yield {"tool_calls": [first]}
    for half in (text[: len(text) // 2], text[len(text) // 2 :]):
        yield {"tool_calls": [{"index": index, "function": {"arguments": half}}]}


# /responses -----------------------------------------------------------------------------------------------------------


def _responses(says: Says, model: str, number: int) -> Rendered:
    items: list[dict[str, Any]] = []
    if says.thinking:
        summary = [{"type": "summary_text", "text": says.thinking}]
        items.append(
            {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": f"enc{number}"}
        )
    if says.text:
        kind = "refusal" if says.stop == "refusal" else "output_text"
        said = {"type": kind, "refusal" if kind == "refusal" else "text": says.text}
        content = [said if kind == "refusal" else {**said, "annotations": []}]
        head = {"type": "message", "id": f"msg_{number}", "status": "completed", "role": "assistant"}
        items.append({**head, "content": content})
    for place, (id, name, given) in enumerate(_calls(says, number, "call_"), 1):
        call = {"type": "function_call", "id": f"fc_{number}_{place}", "call_id": id, "name": name}
        items.append({**call, "arguments": _as_text(given), "status": "completed"})
    told, answered = says.tokens
    usage = {"input_tokens": told, "output_tokens": answered, "total_tokens": told + answered}
    usage_details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    is_short = says.stop == "length"
    whole: dict[str, Any] = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": "incomplete" if is_short else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_short else None,
        "output": items,
        "usage": {**usage, **usage_details} if says.usage else None,
    }
    start = {**whole, "status": "in_progress", "output": [], "usage": None}
    events: list[Any] = [{"type": "response.created", "response": start}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": {**item, **_hollow(item)}})
        events += _item_deltas(index, item)
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{whole['status']}", "response": whole})
    numbered = [{**event, "sequence_number": place} for place, event in enumerate(events)]
    return Rendered(whole, [(event["type"], event) for event in numbered])


def _hollow(item: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, dict[str, Any]] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "reasoning": {"summary": []},
    }
    return empty[item["type"]]


def _item_deltas(index: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    at = {"item_id": item["id"], "output_index": index}
    if item["type"] == "message":
        said, at = item["content"][0], {**at, "content_index": 0}
        name = "refusal" if said["type"] == "refusal" else "text"
        kind = "response.refusal" if name == "refusal" else "response.output_text"
        yield {"type": "response.content_part.added", **at, "part": {**said, name: ""}}
        for piece in pieces(said[name]):
            yield {"type": f"{kind}.delta", **at, "delta": piece, "logprobs": []}
        yield {"type": f"{kind}.done", **at, name: said[name], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": said}
    elif item["type"] == "function_call":
        yield {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]}
        yield {
            "type": "response.function_call_arguments.done",
            **at,
            "name": item["name"],
            "arguments": item["arguments"],
        }
    else:
        said, at = item["summary"][0], {**at, "summary_index": 0}
        yield {"type": "response.reasoning_summary_part.added", **at, "part": {**said, "text": ""}}
        for piece in pieces(said["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **at, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **at, "text": said["text"]}
        yield {"type": "response.reasoning_summary_part.done", **at, "part": said}


# generateContent ------------------------------------------------------------------------------------------------------


def _gemini(says: Says, model: str, number: int) -> Rendered:
    told, answered = says.tokens
    usage = {"promptTokenCount": told, "candidatesTokenCount": answered, "totalTokenCount": told + answered}
    tail = {"modelVersion": model, "responseId": f"r{number}", **({"usageMetadata": usage} if says.usage else {})}
    finish = {"end": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}[says.stop]

    def answer(parts: list[dict[str, Any]], last: bool) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
        return {"candidates": [candidate | ({"finishReason": finish} if last else {})], **tail}

    thought = [{"text": says.thinking, "thought": True}] if says.thinking else []
    calls = [{"functionCall": {"name": name, "args": given}} for _, name, given in _calls(says, number, "")]
    said = [{"text": says.text}] if says.text else []
    streamed: list[dict[str, Any]] = [*thought, *({"text": piece} for piece in pieces(says.text)), *calls]
    events = [answer([part], place == len(streamed)) for place, part in enumerate(streamed, 1)] or [answer([], True)]
    return Rendered(answer([*thought, *said, *calls], True), [("", event) for event in events])
