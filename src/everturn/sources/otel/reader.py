"""Recognise, unpack and read files of spans.

`unpack` writes each conversation as lines, one message per line in the order of time: of the input of a response only what was
not said before, then its output with model and tokens, then the results of its tools.

Spans of an OTLP file, in JSON or protobuf: their attributes as plain values, and the messages that they carry. Protobuf is
read as the JSON that says the same.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from everturn.model.conversation import Block, Message, TokenUsage
from everturn.model.vocabulary import CALL_KINDS, FIELDS, MESSAGE_KINDS, ORIGINS
from everturn.sources.contract import Member, SourceCandidate
from everturn.sources.toolkit.chat_export import line
from everturn.sources.toolkit.json_document import decode_item
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.message_reader import Facts, RecordFormat, told_outcome, told_time, told_word
from everturn.sources.toolkit.values import (
    call_block,
    count,
    decode_value,
    digest,
    result_block,
    strings,
    text_blocks,
    unknown_block,
    unknown_message,
    word,
)

_OTLP = re.compile(rb'"resourceSpans"\s*:\s*\[')
_OWN = "everturn"
_NEEDS_PACKAGE = "spans in protobuf need the package opentelemetry-proto; run: pip install 'everturn[otel]'"
_ORIGINS = {"user": "human", "system": "injected", "assistant": "model", "tool": "tool"}
_USAGE = ("input_tokens", "output_tokens", "cache_read.input_tokens", "cache_creation.input_tokens")
_FLAT_USAGE = ("prompt", "completion", "prompt_details.cache_read", "prompt_details.cache_write")


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    is_otlp = is_protobuf(head) or (start.startswith(b"{") and _OTLP.search(start))
    is_about_models = any(mark in head for mark in (b"gen_ai.", b"llm.", b"openinference."))
    return SourceCandidate(path, "container", path.stem) if is_otlp and is_about_models else None


# --- conversations ---
def unpack(candidate: SourceCandidate, path: Path) -> Iterator[Member]:
    conversations: dict[str, list[GenAiSpan]] = {}
    for span in read_spans(path):
        conversations.setdefault(span.conversation, []).append(span)
    for name, spans in conversations.items():
        yield Member(name, _lines(name, spans), native_id=name)


def _lines(name: str, spans: list[GenAiSpan]) -> Iterator[bytes]:
    spans.sort(key=lambda span: (span.start, span.order, span.end))
    about = [span.attributes for span in spans if span.operation == "invoke_agent"] or [spans[0].attributes]
    facts = {"title": about[0].get("everturn.title"), "workspace": about[0].get("everturn.workspace")}
    agent = next((word(one.get("gen_ai.agent.name")) for one in about), "")
    yield line({"conversation": name, "agent": agent, "client": spans[0].service, **facts})
    said = _Said()
    for span in spans:
        yield from map(line, said.new_messages(span))


class _Said:
    """The messages of a conversation so far: clients repeat the whole of it with every request."""

    def __init__(self) -> None:
        self._order: list[str] = []
        self._known: set[str] = set()
        self._answered: set[str] = set()

    def new_messages(self, span: GenAiSpan) -> Iterator[Rec]:
        if span.operation == "execute_tool":
            yield from self._result(span)
            return
        if span.operation not in ("chat", "generate_content", "text_completion", "everturn.messages"):
            return
        for message in self._unsaid(messages_of(span, "input"), span.attributes.get("everturn.input") == "new"):
            yield {"message": message, "at": span.start}
        output = messages_of(span, "output")
        for number, message in enumerate(output):
            self._note(message)
            about = _response_facts(span) if number == 0 else {}
            yield {"message": message, "at": span.end or span.start, "response": f"{span.start}/{span.order}", **about}

    def _unsaid(self, messages: list[Rec], all_new: bool) -> Iterator[Rec]:
        marks = [_mark(message) for message in messages]
        known = len(self._order)
        is_whole = not all_new and len(marks) >= known and marks[:known] == self._order
        for message, mark in list(zip(messages, marks, strict=True))[known if is_whole else 0 :]:
            if not (all_new or is_whole or mark not in self._known):
                continue
            left = [part for part in listing(message.get("parts")) if not self._is_answered(mapping(part))]
            self._note(message)
            if left or not listing(message.get("parts")):
                yield {**message, "parts": left}

    def _is_answered(self, part: Rec) -> bool:
        return part.get("type") == "tool_call_response" and word(part.get("id")) in self._answered

    def _note(self, message: Rec) -> None:
        mark = _mark(message)
        self._order.append(mark)
        self._known.add(mark)
        for part in _parts(message):
            if part.get("type") == "tool_call_response":
                self._answered.add(word(part.get("id")))

    def _result(self, span: GenAiSpan) -> Iterator[Rec]:
        about = span.attributes
        call_id, result = (
            word(about.get("gen_ai.tool.call.id")),
            about.get("gen_ai.tool.call.result", about.get("output.value")),
        )
        if result is None or not call_id or call_id in self._answered or "everturn.seq" in about:
            return  # in spans of ours the result is in the input of the next response too, with all that is known of it
        part = {"type": "tool_call_response", "id": call_id, "response": result}
        if error := word(about.get("error.type")):
            part["error"] = error
        self._answered.add(call_id)
        yield {"message": {"role": "tool", "parts": [part]}, "at": span.end or span.start}


def _parts(message: Rec) -> list[Rec]:
    return [mapping(part) for part in listing(message.get("parts"))]


def _mark(message: Rec) -> str:
    return digest(word(message.get("role")), *strings(message.get("parts"), "type"))


def _response_facts(span: GenAiSpan) -> Rec:
    about = span.attributes
    tokens = [count(about.get(f"gen_ai.usage.{name}")) or 0 for name in _USAGE]
    if not any(tokens):
        tokens = [count(about.get(f"llm.token_count.{name}")) or 0 for name in _FLAT_USAGE]
    models = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
    model = next((word(about[name]) for name in models if word(about.get(name))), "")
    return {"model": model, "tokens": tokens} if any(tokens) else {"model": model}


# --- messages ---
def build(record: Rec) -> Message | None:
    """Return the message of a line."""
    if "conversation" in record:
        return None
    said = mapping(record.get("message"))
    own = mapping(said.get(_OWN))
    role = word(said.get("role"))
    field = told_word(own, "field", FIELDS, {"user": "prompt", "assistant": "answer"}.get(role, "meta"))
    blocks = tuple(block for part in listing(said.get("parts")) for block in _block(mapping(part), part, field))
    at, precision = told_time(own, own.get("at") or record.get("at"))
    about: dict[str, Any] = {"at": at, "precision": precision, "native_id": word(own.get("id")), "blocks": blocks}
    origin = told_word(own, "origin", ORIGINS, _ORIGINS.get(role, ""))
    if role == "assistant" and origin != "model":
        return Message("assistant", origin, told_word(own, "kind", MESSAGE_KINDS, "notice"), **about)
    if role == "assistant":
        return Message(
            "assistant", "model", told_word(own, "kind", MESSAGE_KINDS, "text"), provider_id=word(record.get("response")),
            model=word(record.get("model")), usage=_usage(record.get("tokens")), **about,
        )  # fmt: skip
    if role == "tool":
        return Message("tool", origin, told_word(own, "kind", MESSAGE_KINDS, "result"), **about)
    if role in ("user", "system"):
        starts = own.get("starts_turn") if isinstance(own.get("starts_turn"), bool) else role == "user"
        kind = told_word(own, "kind", MESSAGE_KINDS, "text" if role == "user" else "context")
        return Message(role, origin, kind, starts_turn=bool(starts), **about)
    return unknown_message(record)


def _block(part: Rec, found: Any, field: str) -> tuple[Block, ...]:
    kind = word(part.get("type"))
    if kind == "text":
        return text_blocks(word(part.get("content")), told_word(mapping(part.get(_OWN)), "field", FIELDS, field))
    if kind == "reasoning":
        return text_blocks(word(part.get("content")), "thinking", "thinking")
    if kind in ("tool_call", "server_tool_call"):
        tool = told_word(mapping(part.get(_OWN)), "kind", CALL_KINDS, "")
        return (call_block(word(part.get("id")), word(part.get("name")), part.get("arguments"), found, tool),)
    if kind in ("tool_call_response", "server_tool_call_response"):
        return (_result_block(part, found),)
    if kind in ("blob", "uri", "file"):
        shown = "image" if part.get("modality") == "image" else "document"
        return (Block(shown, word(part.get("uri")), "meta" if part.get("uri") else "", data=found),)
    return (unknown_block(found),)


def _result_block(part: Rec, found: Any) -> Block:
    own, response = mapping(part.get(_OWN)), part.get("response", part.get("result"))
    text = response if isinstance(response, str) else "\n".join(strings(response))
    failed = own.get("is_error") if isinstance(own.get("is_error"), bool) else True if part.get("error") else None
    return told_outcome(own, result_block(word(part.get("id")), text, failed, found))


def _usage(tokens: Any) -> TokenUsage | None:
    """Return the tokens of a response; those read from and written to the cache are part of the input."""
    numbers = [count(one) or 0 for one in listing(tokens)]
    if len(numbers) != len(_USAGE) or not any(numbers):
        return None
    given, output, read, written = numbers
    return TokenUsage(max(given - read - written, 0), output, read, written)


def _name(record: Rec) -> str:
    return word(mapping(record.get("message")).get("role")) or "head"


def _facts(record: Rec) -> Facts:
    if "conversation" not in record:
        return {}
    title = word(record.get("title"))
    return {
        "title": title, "title_rank": 1 if title else 0, "workspace": word(record.get("workspace")),
        "client": word(record.get("client")), "agent_name": word(record.get("agent")),
    }  # fmt: skip


_FORMAT = RecordFormat(build, _name, _facts)
reader, view = _FORMAT.reader, _FORMAT.view


# --- spans: their attributes as plain values, and the messages that they carry ---
_LARGEST = 256 << 20
_CONVERSATION = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
_FLAT = r"llm\.{}_messages\.(\d{{1,5}})\.message\.(.+)"
_FLAT_CONTENT = r"contents\.(\d{1,5})\.message_content\.(type|text|image\.image\.url)"
_FLAT_CALL = r"tool_calls\.(\d{1,5})\.tool_call\.(id|function\.name|function\.arguments)"


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
        """The operation of the span: chat, execute_tool, invoke_agent, or messages that belong to no response."""
        told = word(self.attributes.get("gen_ai.operation.name"))
        kind = {"LLM": "chat", "TOOL": "execute_tool", "AGENT": "invoke_agent"}
        return told or kind.get(word(self.attributes.get("openinference.span.kind")), "")


def read_spans(path: Path) -> Iterator[GenAiSpan]:
    """Yield the spans of a file that are about a conversation with a model. Raises OSError."""
    if path.stat().st_size > _LARGEST:
        raise OSError(None, f"a file of more than {_LARGEST >> 20} MB of spans is not unpacked")
    seen: set[tuple[str, str]] = set()  # programs send a request again if they got no answer
    for request in _requests(path.read_bytes()):
        for about, _, span in _parts_of(request):
            name = str(span.get("traceId")), str(span.get("spanId"))
            if name in seen:
                continue
            if span.get("spanId"):
                seen.add(name)
            service = word(_attributes(mapping(about.get("resource")).get("attributes")).get("service.name"))
            if (found := _span(span, service)) is not None:
                yield found


def split(body: bytes, media_type: str) -> Iterator[tuple[str, bytes]]:
    """See `WireForm.split`. Spans that are not about a model are left out."""
    try:
        requests = _protobuf_requests(body) if "protobuf" in media_type else _requests(body)
        lines: dict[str, list[Rec]] = {}
        for request in requests:
            for resource, scope, span in _parts_of(request):
                if (found := _span(span, "")) is not None:
                    one = {**resource, "scopeSpans": [{**scope, "spans": [span]}]}
                    lines.setdefault(found.conversation, []).append(one)
    except OSError as failure:
        raise ValueError(failure.strerror) from None
    return ((name, line({"resourceSpans": spans})) for name, spans in lines.items())


def _parts_of(request: Rec) -> Iterator[tuple[Rec, Rec, Rec]]:
    """Yield every span of a request with its resource and its scope."""
    for resource in map(mapping, listing(request.get("resourceSpans"))):
        for scope in map(mapping, listing(resource.get("scopeSpans"))):
            for span in map(mapping, listing(scope.get("spans"))):
                yield resource, scope, span


def _requests(data: bytes) -> Iterator[Rec]:
    if is_protobuf(data):
        yield from _protobuf_requests(data)
        return
    whole, trouble = decode_item(data) if data.lstrip()[:1] == b"{" else (None, "")
    if isinstance(whole, dict) and not trouble:
        yield whole
        return
    for text in data.splitlines():
        yield mapping(decode_item(text)[0]) if text.strip() else {}


# --- protobuf ---
_FIRST_FIELD = b"\n"  # number 1, with a length
_RESOURCE_FIELDS = b"\n\x12\x1a"  # resource, scope spans, address of the schema
_BYTE_FIELDS = ("traceId", "spanId", "parentSpanId")


def is_protobuf(head: bytes) -> bool:
    """Whether a file begins like a request in protobuf, or like several with their lengths (four bytes) before them."""
    start = head[4:] if head[:1] == b"\0" else head
    if start[:1] != _FIRST_FIELD:
        return False
    end = next((place for place in range(1, 6) if start[place : place + 1] < b"\x80"), 6)  # of the length
    return start[end + 1 : end + 2] in _RESOURCE_FIELDS and len(start) > end + 1


def _protobuf_requests(data: bytes) -> Iterator[Rec]:
    """Yield requests in protobuf as the JSON that says the same. Raises OSError."""
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ModuleNotFoundError:
        raise OSError(None, _NEEDS_PACKAGE) from None
    for part in _split_frames(data) if data[:1] == b"\0" else [data]:
        try:
            request = ExportTraceServiceRequest.FromString(part)
        except DecodeError:
            raise OSError(None, "it is not a whole request in protobuf") from None
        found: Rec = MessageToDict(request, use_integers_for_enums=True)
        for _, _, span in _parts_of(found):
            span |= {name: b64decode(span[name]).hex() for name in _BYTE_FIELDS if name in span}
        yield found


def _split_frames(data: bytes) -> Iterator[bytes]:
    """Yield the requests of a file of the Collector, which has the length before each of them."""
    at = 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


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
    return _flat_messages(span.attributes, side) or _plain_value(span.attributes, side)


def _plain_value(attributes: dict[str, Any], side: str) -> list[Rec]:
    """Return what a span of OpenInference has of a message if it has nothing but its text."""
    text, form = attributes.get(f"{side}.value"), word(attributes.get(f"{side}.mime_type"))
    if not isinstance(text, str) or not text or form == "application/json" or "everturn.seq" in attributes:
        return []
    return [{"role": "user" if side == "input" else "assistant", "parts": [{"type": "text", "content": text}]}]


def _flat_messages(attributes: dict[str, Any], side: str) -> list[Rec]:
    """Return the messages that OpenInference spreads over attributes."""
    return [_flat_message(fields) for fields in _group_by_number(attributes, _FLAT.format(side))]


def _group_by_number(attributes: dict[str, Any], pattern: str) -> list[dict[str, Any]]:
    """Return the attributes of each number in their names, by the rest of the name, in the order of the numbers."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if match := re.fullmatch(pattern, name):
            found.setdefault(int(match[1]), {})[match[2]] = value
    return [found[number] for number in sorted(found)]


def _flat_contents(fields: dict[str, Any]) -> list[Rec]:
    """Return the parts of a message that has several: texts, thoughts, and pictures by their address."""
    parts: list[Rec] = []
    for part in _group_by_number(fields, _FLAT_CONTENT):
        if picture := word(part.get("image.image.url")):
            parts.append({"type": "uri", "modality": "image", "uri": picture})
        elif text := word(part.get("text")):
            parts.append({"type": "reasoning" if part.get("type") == "reasoning" else "text", "content": text})
    return parts


def _flat_message(fields: dict[str, Any]) -> Rec:
    role = word(fields.get("role"))
    text = word(fields.get("content"))
    if role == "tool":
        part = {"type": "tool_call_response", "id": word(fields.get("tool_call_id")), "response": text}
        return {"role": "tool", "parts": [part]}
    parts: list[Rec] = [{"type": "text", "content": text}] if text else _flat_contents(fields)
    for call in _group_by_number(fields, _FLAT_CALL):
        given = {"name": call.get("function.name"), "arguments": call.get("function.arguments")}
        parts.append({"type": "tool_call", "id": call.get("id"), **given})
    return {"role": role, "parts": parts}
