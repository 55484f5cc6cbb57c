"""Write a session as OTLP JSON: one request with one span per line.

A session is a trace: `invoke_agent` around all of it, a `chat` span for every response with what was said since the one
before, an `execute_tool` span for every call with a result. Ids are hashes, so writing twice gives the same spans. Messages
after the last response, and what the conventions have no role for, are in spans of their own (`everturn.messages`).
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from everturn.errors import EverturnError
from everturn.model.conversation import Block, Message, SessionPart

_INTERNAL, _CLIENT = 1, 3
_FINISH = "stop"
_IDS = ("traceId", "spanId", "parentSpanId")
#: The kind of a span for programs that read OpenInference.
_KINDS = {"invoke_agent": "AGENT", "chat": "LLM", "execute_tool": "TOOL"}


def write(part: SessionPart) -> str:
    """Return the text of the file."""
    return "".join(write_pieces(part))


def write_pieces(part: SessionPart) -> Iterator[str]:
    """Yield one line per span."""
    return _Trace(part).lines()


def pack(lines: bytes) -> bytes:
    """Return lines of a file as one request in protobuf: requests that follow each other are one. Raises EverturnError."""
    try:
        from google.protobuf.json_format import ParseDict
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ModuleNotFoundError:
        raise EverturnError(
            "spans in protobuf need the package opentelemetry-proto; run: pip install 'everturn[otel]'"
        ) from None
    packed = []
    for line in lines.splitlines():
        request = json.loads(line)
        for resource in request["resourceSpans"]:
            for span in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
                # Ids are hexadecimal in OTLP and base64 in the JSON of protobuf.
                span |= {name: b64encode(bytes.fromhex(span[name])).decode() for name in _IDS if name in span}
        packed.append(ParseDict(request, ExportTraceServiceRequest()).SerializeToString())
    return b"".join(packed)


class _Trace:
    """The spans of one session."""

    def __init__(self, part: SessionPart) -> None:
        self._part = part
        self._trace = sha256(f"{part.facts.agent_name}/{part.native_id}".encode("utf-8", "replace")).hexdigest()[:32]
        self._root = self._span_id("root")
        self._seq = 0
        times = [message.at for message in part.messages if message.at is not None]
        self._last, self._end = min(times, default=0), max(times, default=0)

    def lines(self) -> Iterator[str]:
        facts = self._part.facts
        about = {
            "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": facts.agent_name, "everturn.title": facts.title,
            "everturn.workspace": facts.workspace, "input.value": _text_of(self._part.messages, "prompt"),
            "output.value": _text_of(self._part.messages[::-1], "answer"),
        }  # fmt: skip
        yield self._line(f"invoke_agent {facts.agent_name}", _INTERNAL, self._last, self._end, about, self._root)
        waiting: list[Message] = []
        calls: dict[str, Block] = {}
        for group in _responses(self._part.messages):
            if not _is_response(group[0]):
                waiting += group
                yield from self._tools(group, calls)
                continue
            yield self._chat(waiting, group)
            waiting = []
            calls |= {block.call.call_id: block for one in group for block in one.blocks if block.call is not None}
            yield from self._tools(group, calls)
        if waiting:
            yield self._messages(waiting)

    def _chat(self, before: list[Message], response: list[Message]) -> str:
        model = next((one.model for one in response if one.model), "")
        usage = next((one.usage for one in response if one.usage is not None), None)
        about: dict[str, Any] = {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": model, "gen_ai.response.model": model,
            "gen_ai.input.messages": _json([_message(one) for one in before]), "everturn.input": "new",
            "gen_ai.output.messages": _json([_message(one) | {"finish_reason": _FINISH} for one in response]),
            "llm.model_name": model,
        }  # fmt: skip
        if usage is not None:
            about |= {
                "gen_ai.usage.input_tokens": usage.input + usage.cache_read + usage.cache_write,
                "gen_ai.usage.output_tokens": usage.output, "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
                "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
                "llm.token_count.prompt": usage.input + usage.cache_read + usage.cache_write,
                "llm.token_count.completion": usage.output,
                "llm.token_count.prompt_details.cache_read": usage.cache_read,
                "llm.token_count.prompt_details.cache_write": usage.cache_write,
            }  # fmt: skip
        return self._line(f"chat {model}", _CLIENT, *self._times([*before, *response]), about)

    def _messages(self, messages: list[Message]) -> str:
        about = {
            "gen_ai.operation.name": "everturn.messages", "everturn.input": "new",
            "gen_ai.input.messages": _json([_message(one) for one in messages]),
        }  # fmt: skip
        return self._line("everturn.messages", _INTERNAL, *self._times(messages), about)

    def _tools(self, messages: list[Message], calls: dict[str, Block]) -> Iterator[str]:
        """Yield a span for every call that these messages answer; the result itself is also in the next input."""
        for message in messages:
            for block in message.blocks:
                if block.result is None or (call := calls.get(block.result.call_id)) is None or call.call is None:
                    continue
                about = {
                    "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.call.name,
                    "gen_ai.tool.call.id": call.call.call_id, "gen_ai.tool.type": "function",
                    "gen_ai.tool.call.arguments": _json(call.call.input), "gen_ai.tool.call.result": block.text,
                    "error.type": block.result.error_class, "tool.name": call.call.name,
                }  # fmt: skip
                yield self._line(f"execute_tool {call.call.name}", _INTERNAL, *self._times([message]), about)

    def _times(self, messages: list[Message]) -> tuple[int, int]:
        """Return the first and the last time of messages, never before what was written last: the order is kept."""
        known = [message.at for message in messages if message.at is not None]
        start = max(self._last, min(known, default=self._last))
        self._last = start
        return start, max(start, max(known, default=start))

    def _line(self, name: str, kind: int, start: int, end: int, about: dict[str, Any], span_id: str = "") -> str:
        self._seq += 1
        name_of, kind_of = self._part.native_id, _KINDS.get(about["gen_ai.operation.name"], "CHAIN")
        attributes = {
            "gen_ai.conversation.id": name_of, "session.id": name_of, "openinference.span.kind": kind_of,
            "everturn.seq": self._seq, **about,
        }  # fmt: skip
        span = {
            "traceId": self._trace, "spanId": span_id or self._span_id(str(self._seq)), "name": name.strip(), "kind": kind,
            "startTimeUnixNano": str(start * 1_000_000), "endTimeUnixNano": str(end * 1_000_000),
            "attributes": [_pair(key, value) for key, value in attributes.items() if value != ""],
            "status": {"code": 2} if about.get("error.type") else {},
        }  # fmt: skip
        if not span_id:
            span["parentSpanId"] = self._root
        resource = {"attributes": [_pair("service.name", self._part.facts.client or "everturn")]}
        scope = {"scope": {"name": "everturn"}, "spans": [span]}
        return _json({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}) + "\n"

    def _span_id(self, name: str) -> str:
        return sha256(f"{self._trace}/{name}".encode()).hexdigest()[:16]


def _responses(messages: list[Message]) -> Iterator[list[Message]]:
    """Yield the messages of one response together, also if others came in between, which then follow; all others alone."""
    group: list[Message] = []
    between: list[Message] = []
    for message in messages:
        if group and not _is_response(message) and not message.starts_turn:
            between.append(message)
        elif group and _is_response(message) and message.provider_id == group[0].provider_id != "":
            group.append(message)
        else:
            yield from [group] if group else []
            yield from ([one] for one in between)
            group, between = ([message], []) if _is_response(message) else ([], [])
            yield from [] if group else [[message]]
    yield from [group] if group else []
    yield from ([one] for one in between)


def _text_of(messages: list[Message], field: str) -> str:
    """Return the first text of a field, which a list of traces shows."""
    texts = (block.text for one in messages for block in one.blocks if block.field == field and block.text)
    return next(texts, "")


def _is_response(message: Message) -> bool:
    return message.role == "assistant" and message.origin == "model"


def _pair(key: str, value: Any) -> dict[str, Any]:
    kind = {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}
    return {"key": key, "value": kind}


def _message(message: Message) -> dict[str, Any]:
    role = message.role if message.role in ("user", "assistant", "system", "tool") else "system"
    usual_field = {"user": "prompt", "assistant": "answer"}.get(role, "meta")
    parts = [part for block in message.blocks for part in _parts(block, usual_field)]
    usual = {
        "user": ("human", "text", True), "system": ("injected", "context", False), "tool": ("tool", "result", False),
        "assistant": ("model", "text", False),
    }  # fmt: skip
    own: dict[str, Any] = {"at": message.at, "id": message.native_id}
    if message.at is not None and message.precision != "ms":
        own["precision"] = message.precision
    found = (message.origin, message.kind, message.starts_turn)
    names = ("origin", "kind", "starts_turn")
    own |= {name: value for name, value, one in zip(names, found, usual[role], strict=True) if value != one}
    return {
        "role": role,
        "parts": parts,
        "everturn": {key: value for key, value in own.items() if value not in ("", None)},
    }


def _parts(block: Block, usual_field: str) -> list[dict[str, Any]]:
    if block.call is not None:
        call = block.call
        part = {"type": "tool_call", "id": call.call_id, "name": call.name, "arguments": call.input}
        return [part | {"everturn": {"kind": call.kind}}]
    if block.result is not None:
        end = block.result
        own: dict[str, Any] = {"is_error": end.is_error}
        names = ("error_class", "exit_status", "duration_ms")
        own |= {name: value for name in names if (value := getattr(end, name)) not in ("", None)}
        return [{"type": "tool_call_response", "id": end.call_id, "response": block.text, "everturn": own}]
    if block.kind == "thinking":
        return [{"type": "reasoning", "content": block.text}] if block.text else []
    if block.kind in ("image", "document"):
        return [{"type": "file", "modality": block.kind, "file_id": block.text or block.kind}]
    if not block.text:
        return []
    own_field = {"everturn": {"field": block.field}} if block.field not in (usual_field, "") else {}
    return [{"type": "text", "content": block.text, **own_field}]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
