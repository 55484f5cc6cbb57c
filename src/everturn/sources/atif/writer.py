"""Write a session as a trajectory, version 1.7.

A result goes into the step of its call, as the standard demands, wherever it was in the session. A step is one response of
the model, one message of a person, or one of the client.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from everturn.model.conversation import Block, Message, SessionPart, TokenUsage
from everturn.text.times import iso

_SCHEMA = "ATIF-v1.7"
_USUAL = {"user": ("user", "human", "text", "prompt", True), "system": ("system", "injected", "context", "meta", False)}


def write(part: SessionPart) -> str:
    """Return the document."""
    return "".join(write_pieces(part))


def write_pieces(part: SessionPart) -> Iterator[str]:
    """Yield the document in lines: a head, one line per step, and the end."""
    facts = part.facts
    steps = _Steps(part.messages).steps
    model = next((step["model_name"] for step in reversed(steps) if "model_name" in step), "")
    agent = {"name": facts.agent_name or "unknown", "version": facts.client or "unknown"} | (
        {"model_name": model} if model else {}
    )
    head = {"schema_version": _SCHEMA, "session_id": part.native_id, "agent": agent}
    own = {name: value for name in ("title", "workspace", "branch") if (value := getattr(facts, name))}
    yield _json(head)[:-1] + ',"steps":[\n'
    for number, step in enumerate(steps or [{"source": "system", "message": ""}], 1):
        yield _json({"step_id": number} | step) + (",\n" if number < len(steps) else "\n")
    tail = {"final_metrics": _totals(part.messages, len(steps))} | ({"extra": {"everturn": own}} if own else {})
    yield "]," + _json(tail)[1:] + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Steps:
    """Messages as steps, in order."""

    def __init__(self, messages: list[Message]) -> None:
        self.steps: list[dict[str, Any]] = []
        self._by_call: dict[str, dict[str, Any]] = {}
        self._response: tuple[str, dict[str, Any]] | None = None
        for message in messages:
            self._add(message)

    def _add(self, message: Message) -> None:
        if message.role == "assistant" and message.origin == "model":
            self._add_response(message)
            return
        rest = [block for block in message.blocks if block.result is None]
        own = [block for block in message.blocks if block.result is not None and not self._answer(block)]
        if rest or own or not message.blocks:
            self._add_other(message, rest, own)

    def _add_response(self, message: Message) -> None:
        """Add a response of the model; messages of one response are one step."""
        name = message.provider_id
        if self._response is not None and name and self._response[0] == name:
            step = self._response[1]
        else:
            step = _add_time({"source": "agent", "message": ""}, message, {"response": name, "kind": message.kind})
            self.steps.append(step)
            self._response = name, step
        _append(step, "message", [block.text for block in message.blocks if block.field == "answer"])
        _add_more(step, [block for block in message.blocks if block.field not in ("answer", "thinking")])
        _append(step, "reasoning_content", [block.text for block in message.blocks if block.field == "thinking"])
        if message.model:
            step["model_name"] = message.model
        for block in message.blocks:
            if block.call is not None:
                step.setdefault("tool_calls", []).append(_call(block))
                self._by_call[block.call.call_id] = step
        if message.usage is not None:
            step["metrics"] = _metrics(message.usage)
        for block in message.blocks:
            if block.result is not None and not self._answer(block):
                step.setdefault("observation", {"results": []})["results"].append(_result(block, ""))

    def _answer(self, block: Block) -> bool:
        """Put a result into the step of its call; return False if there is no such step."""
        assert block.result is not None
        step = self._by_call.get(block.result.call_id)
        if step is None or not block.result.call_id:
            return False
        step.setdefault("observation", {"results": []})["results"].append(_result(block, block.result.call_id))
        return True

    def _add_other(self, message: Message, blocks: list[Block], results: list[Block]) -> None:
        source = "user" if message.origin == "human" else "system"
        fields = [block.field for block in blocks if block.field]
        field = "prompt" if "prompt" in fields else next(iter(fields), _USUAL[source][3])
        found = (message.role, message.origin, message.kind, field, message.starts_turn)
        names = ("role", "origin", "kind", "field", "starts_turn")
        own = {name: value for name, value, usual in zip(names, found, _USUAL[source], strict=True) if value != usual}
        text = "\n\n".join(block.text for block in blocks if block.text and block.field in (field, ""))
        step = _add_time({"source": source, "message": text}, message, own)
        _add_more(step, [block for block in blocks if block.field not in (field, "")])
        if results:
            step["observation"] = {"results": [_result(block, "") for block in results]}
        self.steps.append(step)


def _add_time(step: dict[str, Any], message: Message, own: dict[str, Any]) -> dict[str, Any]:
    if message.at is not None:
        step["timestamp"] = iso(message.at)
    more = {"id": message.native_id, "reported_ms": message.reported_ms}
    if message.at is not None and message.precision != "ms":
        more["precision"] = message.precision
    own = {
        name: value
        for name, value in (own | more).items()
        if value not in ("", None) and (name, value) != ("kind", "text")
    }
    return step | ({"extra": {"everturn": own}} if own else {})


def _add_more(step: dict[str, Any], blocks: list[Block]) -> None:
    """Add texts that the standard has no place for: what a program put around a prompt, remarks beside an answer."""
    texts = [
        [block.field, block.text]
        for block in blocks
        if block.text and block.field and block.call is None and block.result is None
    ]
    if texts:
        step.setdefault("extra", {}).setdefault("everturn", {}).setdefault("more", []).extend(texts)


def _append(step: dict[str, Any], key: str, texts: list[str]) -> None:
    if joined := "\n\n".join(filter(None, [step.get(key, ""), *texts])):
        step[key] = joined


def _call(block: Block) -> dict[str, Any]:
    call = block.call
    assert call is not None
    is_object = isinstance(call.input, dict)
    own = {"kind": call.kind} | ({} if is_object or call.input is None else {"input": call.input})
    return {
        "tool_call_id": call.call_id or call.name, "function_name": call.name, "arguments": call.input if is_object else {},
        "extra": {"everturn": own},
    }  # fmt: skip


def _result(block: Block, call_id: str) -> dict[str, Any]:
    end = block.result
    assert end is not None
    own: dict[str, Any] = {"is_error": end.is_error}
    for name in ("error_class", "exit_status", "duration_ms", "child"):
        if (value := getattr(end, name)) not in ("", None):
            own[name] = value
    if not call_id and end.call_id:
        own["call_id"] = end.call_id
    return ({"source_call_id": call_id} if call_id else {}) | {"content": block.text, "extra": {"everturn": own}}


def _metrics(usage: TokenUsage) -> dict[str, Any]:
    found: dict[str, Any] = {
        "prompt_tokens": usage.input + usage.cache_read + usage.cache_write, "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read,
    }  # fmt: skip
    if usage.cache_write:
        found["extra"] = {"cache_write_tokens": usage.cache_write, "cache_write_tokens_1h": usage.cache_write_1h}
    return found


def _totals(messages: list[Message], steps: int) -> dict[str, int]:
    spent = {
        message.provider_id or str(number): message.usage for number, message in enumerate(messages) if message.usage
    }
    rows = [_metrics(usage) for usage in spent.values()]
    totals = {
        f"total_{name}": sum(row[name] for row in rows)
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
    }
    return totals | {"total_steps": steps}
