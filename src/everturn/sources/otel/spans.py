"""Spans of an OTLP JSON file: their attributes as plain values, and the messages that they carry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from everturn.sources.toolkit.json_document import decode_item
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.values import count, decode_value, word

_LARGEST = 256 << 20
_CONVERSATION = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
_FLAT = re.compile(r"llm\.(input|output)_messages\.(\d{1,5})\.message\.(.+)")
_FLAT_CALL = re.compile(r"tool_calls\.(\d{1,5})\.tool_call\.(id|function\.name|function\.arguments)")


class GenAiSpan(Struct, frozen=True):
    """One span with its attributes."""

    conversation: str
    start: int  # milliseconds
    end: int
    order: int
    attributes: dict[str, Any]
    service: str = ""

    @property
    def operation(self) -> str:
        """What the span is: chat, execute_tool, invoke_agent, or messages that belong to no response."""
        told = word(self.attributes.get("gen_ai.operation.name"))
        kind = {"LLM": "chat", "TOOL": "execute_tool", "AGENT": "invoke_agent"}
        return told or kind.get(word(self.attributes.get("openinference.span.kind")), "")


def read_spans(path: Path) -> Iterator[GenAiSpan]:
    """Yield the spans of a file that are about a conversation with a model. Raises OSError."""
    if path.stat().st_size > _LARGEST:
        raise OSError(None, f"a file of more than {_LARGEST >> 20} MB of spans is not unpacked")
    data = path.read_bytes()
    for request in _requests(data):
        for resource in map(mapping, listing(request.get("resourceSpans"))):
            service = word(_attributes(mapping(resource.get("resource")).get("attributes")).get("service.name"))
            for scope in map(mapping, listing(resource.get("scopeSpans"))):
                for span in map(mapping, listing(scope.get("spans"))):
                    if (found := _span(span, service)) is not None:
                        yield found


def _requests(data: bytes) -> Iterator[Rec]:
    whole, trouble = decode_item(data) if data.lstrip()[:1] == b"{" else (None, "")
    if isinstance(whole, dict) and not trouble:
        yield whole
        return
    for line in data.splitlines():
        yield mapping(decode_item(line)[0]) if line.strip() else {}


def _span(span: Rec, service: str) -> GenAiSpan | None:
    attributes = _attributes(span.get("attributes"))
    if not any(name.startswith(("gen_ai.", "llm.", "openinference.")) for name in attributes):
        return None
    name = next((value for key in _CONVERSATION if (value := word(attributes.get(key)))), "") or word(
        span.get("traceId")
    )
    start, end = (_nanoseconds(span.get(f"{edge}TimeUnixNano")) for edge in ("start", "end"))
    return (
        GenAiSpan(name, start, end, count(attributes.get("everturn.seq")) or 0, attributes, service) if name else None
    )


def _nanoseconds(value: Any) -> int:
    text = str(value)
    return int(text) // 1_000_000 if text.isdigit() and len(text) <= 20 else 0


def _attributes(pairs: Any) -> dict[str, Any]:
    return {
        word(one.get("key")): _value(one.get("value")) for one in map(mapping, listing(pairs)) if word(one.get("key"))
    }


def _value(value: Any) -> Any:
    one = mapping(value)
    for kind in ("stringValue", "boolValue", "doubleValue"):
        if kind in one:
            return one[kind]
    if "intValue" in one:
        text = str(one["intValue"])
        return int(text) if text.lstrip("-").isdigit() and len(text) < 20 else 0
    if "arrayValue" in one:
        return [_value(item) for item in listing(mapping(one["arrayValue"]).get("values"))]
    return _attributes(mapping(one.get("kvlistValue")).get("values")) if "kvlistValue" in one else None


def messages_of(span: GenAiSpan, side: str) -> list[Rec]:
    """Return the input or the output messages of a span: `{"role", "parts"}` each."""
    given = span.attributes.get(f"gen_ai.{side}.messages")
    value = decode_value(given.encode("utf-8", "replace")) if isinstance(given, str) else given
    if isinstance(value, list):
        return [one for one in value if isinstance(one, dict)]
    return _flat_messages(span.attributes, side)


def _flat_messages(attributes: dict[str, Any], side: str) -> list[Rec]:
    """Return the messages that OpenInference spreads over attributes."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if (match := _FLAT.fullmatch(name)) and match[1] == side:
            found.setdefault(int(match[2]), {})[match[3]] = value
    return [_flat_message(found[number]) for number in sorted(found)]


def _flat_message(fields: dict[str, Any]) -> Rec:
    role = word(fields.get("role"))
    text = word(fields.get("content"))
    if role == "tool":
        part = {"type": "tool_call_response", "id": word(fields.get("tool_call_id")), "response": text}
        return {"role": "tool", "parts": [part]}
    parts: list[Rec] = [{"type": "text", "content": text}] if text else []
    calls: dict[int, dict[str, Any]] = {}
    for name, value in fields.items():
        if match := _FLAT_CALL.fullmatch(name):
            calls.setdefault(int(match[1]), {})[match[2]] = value
    for _, call in sorted(calls.items()):
        given = {"name": call.get("function.name"), "arguments": call.get("function.arguments")}
        parts.append({"type": "tool_call", "id": call.get("id"), **given})
    return {"role": role, "parts": parts}
