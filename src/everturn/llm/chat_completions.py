"""The wire format `/chat/completions`, used by many remote and local servers, and the rules it enforces on a history.

`raw` of a message is its skeleton: every member in its order, with the content and the calls moved into the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
    ToolSpec,
    WireFailure,
    as_count,
    as_text,
    content_text,
    decode_arguments,
    decode_json,
    encode_json,
    fit_id,
    join_values,
    part_as_text,
)

WIRE = "chat_completions"
PATH = "/chat/completions"

#: Members that hold thoughts; servers do not agree on a name.
_THOUGHTS = ("reasoning_content", "reasoning")
_STOPS = {
    "stop": "end", "tool_calls": "calls", "function_call": "calls", "length": "length", "content_filter": "refusal",
}  # fmt: skip
_PASSING = {"rate_limit_exceeded", "server_error", "overloaded_error", "rate_limit_error", "api_error", "timeout"}


def headers(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def body(request: ModelRequest, stream: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = {"model": request.model, "max_tokens": request.max_tokens}
    if request.temperature is not None:
        made["temperature"] = request.temperature
    system = [{"role": "system", "content": request.system}] if request.system else []
    theirs = frozenset(
        part.call_id for one in request.messages if one.wire == WIRE for part in one.parts if part.kind == "call"
    )
    made["messages"] = system + _wire_messages(request.messages, theirs)
    if request.tools:
        made["tools"] = [_tool_spec(tool) for tool in request.tools]
    if stream:
        made |= {"stream": True, "stream_options": {"include_usage": True}}
    made |= request.extra
    if "max_completion_tokens" in request.extra:  # some models accept the limit only by this name
        made["max_completion_tokens"] = made.pop("max_tokens")
    return made


# --- a history ---
def _wire_messages(messages: Iterable[ChatMessage], theirs: frozenset[str]) -> list[dict[str, Any]]:
    """Return the messages of a request. Images and files of foreign results follow the results, as the user's."""
    made: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for one in messages:
        wires = history(one, theirs)
        if waiting and wires and wires[0].get("role") != "tool":
            made.append({"role": "user", "content": waiting})
            waiting = []
        made += wires
        for part in one.parts if one.wire != WIRE else ():
            if part.kind == "result" and (found := attachments(part)):
                waiting.append({"type": "text", "text": f"[from the result of call {part.call_id}]"})
                waiting += [attachment_block(WIRE, image) for image in found]
    return [*made, {"role": "user", "content": waiting}] if waiting else made


def message(wire: Mapping[str, Any]) -> ChatMessage:
    skeleton = dict(wire)
    content, calls = wire.get("content"), wire.get("tool_calls")
    parts = [ChatPart("thinking", as_text(wire[name])) for name in _THOUGHTS if as_text(wire.get(name))][:1]
    if wire.get("role") == "tool":
        call_id, name = as_text(wire.get("tool_call_id")), as_text(wire.get("name"))
        parts.append(ChatPart("result", content_text(content), call_id, name, raw=content))
    elif isinstance(content, str):
        skeleton["content"] = ""
        parts += [ChatPart("text", content, raw=content)] if content else []
    elif isinstance(content, list):
        skeleton["content"] = []
        parts += map(_read_block, content)
    if as_text(wire.get("refusal")) and not content:  # not part of the content, so it does not go back into it
        parts.append(ChatPart("text", as_text(wire["refusal"]), raw=""))
    if isinstance(calls, list):
        skeleton["tool_calls"] = []
        parts += map(_read_call, calls)
    return ChatMessage(as_text(wire.get("role")) or "assistant", tuple(parts), as_text(wire.get("id")), WIRE, skeleton)


def history(message: ChatMessage, theirs: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """See `Wire`. `theirs` are the ids of calls that go back unchanged: results of our own must match them."""
    if message.wire == WIRE and isinstance(message.raw, dict):
        return [_verbatim_message(message, message.raw)]
    results = [_result_message(part, theirs) for part in message.parts if part.kind == "result"]
    text = "".join(part_as_text(part) for part in message.parts if part.kind != "result")
    if message.role != "assistant" and any(attachments(part) for part in message.parts if part.kind != "result"):
        return [*results, {"role": message.role, "content": list(_own_content(message))}]
    calls = [_own_call(part) for part in message.parts if part.kind == "call"]
    if calls:
        return [*results, {"role": message.role, "content": text or None, "tool_calls": calls}]
    return [*results, {"role": message.role, "content": text}] if text else results


def _own_content(message: ChatMessage) -> Iterator[dict[str, Any]]:
    for part in message.parts:
        if part.kind != "result" and (found := attachments(part)):
            yield from (attachment_block(WIRE, one) for one in found)
        elif part.kind != "result" and (text := part_as_text(part)):
            yield {"type": "text", "text": text}


def _verbatim_message(message: ChatMessage, skeleton: dict[str, Any]) -> dict[str, Any]:
    made = dict(skeleton)
    if message.role == "tool":
        made["content"] = next((part.raw for part in message.parts if part.kind == "result"), made.get("content"))
        return made
    raws = [_part_content(part) for part in message.parts if part.kind != "call"]
    if isinstance(made.get("content"), str):
        made["content"] = "".join(raw for raw in raws if isinstance(raw, str))
    elif isinstance(made.get("content"), list):
        made["content"] = [{"type": "text", "text": raw} if isinstance(raw, str) else raw for raw in raws if raw]
    if isinstance(made.get("tool_calls"), list):
        calls = [part for part in message.parts if part.kind == "call"]
        made["tool_calls"] = [
            _own_call(part) | {"id": part.call_id} if part.raw is None else part.raw for part in calls
        ]
    return made


def _part_content(part: ChatPart) -> Any:
    """Return the content of a part. Thoughts of our own have none."""
    return part.text if part.raw is None and part.kind == "text" else part.raw


def _read_block(block: Any) -> ChatPart:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text":
        return ChatPart("text", as_text(block.get("text")), raw=block)
    return ChatPart("image" if kind == "image_url" else "opaque", raw=block)


def _read_call(call: Any) -> ChatPart:
    call_id, made = (as_text(call.get("id")), call.get("function")) if isinstance(call, dict) else ("", None)
    if not isinstance(made, dict):
        return ChatPart("call", call_id=call_id, arguments={}, raw=call)
    given = made.get("arguments")
    given = decode_arguments(given) if isinstance(given, str) else given or {}
    return ChatPart("call", call_id=call_id, name=as_text(made.get("name")), arguments=given, raw=call)


def _own_call(part: ChatPart) -> dict[str, Any]:
    function = {"name": part.name, "arguments": encode_json(part.arguments)}
    return {"id": fit_id(part.call_id), "type": "function", "function": function}


def _result_message(part: ChatPart, theirs: frozenset[str]) -> dict[str, Any]:
    text = f"Error: {part.text}" if part.is_error else part.text
    call_id = part.call_id if part.call_id in theirs else fit_id(part.call_id)
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _tool_spec(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


# --- an answer ---
def read(response: Any) -> Reply:
    choices = response.get("choices") if isinstance(response, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise GarbledAnswer("it has no choices")
    answer = choices[0].get("message")
    if not isinstance(answer, dict):
        raise GarbledAnswer("its choice has no message")
    made = message(answer)
    made = ChatMessage("assistant", made.parts, as_text(response.get("id")), WIRE, made.raw)
    stop = _stop_reason(choices[0].get("finish_reason"), made.parts, answer.get("refusal"))
    return Reply(made, stop, usage_of(response.get("usage")), as_text(response.get("model")))


def failure(response: Any) -> WireFailure | None:
    error = response.get("error") if isinstance(response, dict) else None
    if isinstance(error, str):
        return WireFailure("", error, False)
    if not isinstance(error, dict):
        return None
    kind = as_text(error.get("code")) or as_text(error.get("type"))
    passes = not {as_text(error.get("code")), as_text(error.get("type"))}.isdisjoint(_PASSING)
    return WireFailure(kind, as_text(error.get("message")), passes)


class CompletionAssembly:
    """Assembles streamed chunks into a message."""

    def __init__(self) -> None:
        self.is_done = self.has_begun = False
        self._message: dict[str, Any] = {"role": "assistant"}
        self._calls: dict[int, dict[str, Any]] = {}
        self._id = self._model = self._finish = ""
        self._used: Any = None

    def feed(self, data: str) -> list[Delta]:
        if data.strip() == "[DONE]":
            self.is_done = True
            return []
        chunk = decode_json(data)
        if (error := failure(chunk)) is not None:
            raise StreamFailed(error)
        if not isinstance(chunk.get("choices"), list):
            raise GarbledAnswer("a chunk has no choices")
        self._id, self._model = self._id or as_text(chunk.get("id")), self._model or as_text(chunk.get("model"))
        self._used = chunk.get("usage") or self._used
        mine = [one for one in chunk["choices"] if isinstance(one, dict) and not one.get("index")]
        return [delta for choice in mine for delta in self._add_choice(choice)]

    def reply(self) -> Reply:
        """See `ReplyAssembly`. A stream with a finish reason is complete, even without the end marker."""
        answer = dict(self._message)
        if self._calls:
            answer["tool_calls"] = [call for _, call in sorted(self._calls.items())]
        answer.setdefault("content", None)
        made = message(answer)
        made = ChatMessage("assistant", made.parts, self._id, WIRE, made.raw)
        ended = self.is_done or self._finish
        stop = _stop_reason(self._finish, made.parts, answer.get("refusal")) if ended else "cut"
        return Reply(made, stop, usage_of(self._used), self._model)

    def _add_choice(self, choice: dict[str, Any]) -> Iterable[Delta]:
        self._finish = as_text(choice.get("finish_reason")) or self._finish
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        for name, value in delta.items():
            if name == "tool_calls" and isinstance(value, list):
                yield from (self._add_call(one) for one in value if isinstance(one, dict))
            elif value is not None and name != "role":
                yield from self._add_member(name, value)

    def _add_member(self, name: str, value: Any) -> Iterable[Delta]:
        self._message[name] = join_values(self._message.get(name), value)
        if isinstance(value, str) and value and name in ("content", "refusal", *_THOUGHTS):
            self.has_begun = True
            yield Delta("thinking" if name in _THOUGHTS else "text", value)

    def _add_call(self, chunk_call: dict[str, Any]) -> Delta:
        self.has_begun = True
        place = chunk_call.get("index")
        place = place if isinstance(place, int) else self._call_index(as_text(chunk_call.get("id")))
        call = self._calls.setdefault(place, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call["id"] = as_text(chunk_call.get("id")) or call["id"]
        call |= {name: value for name, value in chunk_call.items() if name not in ("index", "id", "type", "function")}
        function = chunk_call.get("function")
        function = function if isinstance(function, dict) else {}
        text = as_text(function.get("arguments"))
        call["function"]["name"] += as_text(function.get("name"))
        call["function"]["arguments"] += text
        return Delta("call", text, call["id"], call["function"]["name"])

    def _call_index(self, call_id: str) -> int:
        """Return the index of a call. Without one from the server, a new id starts a call and no id continues the last."""
        known = {call["id"]: place for place, call in self._calls.items()}
        last = max(self._calls, default=-1)
        return known.get(call_id, last + 1) if call_id else max(last, 0)


assembly = CompletionAssembly


def _stop_reason(finish: Any, parts: tuple[ChatPart, ...], refusal: Any) -> str:
    if refusal:
        return "refusal"
    stop = _STOPS.get(as_text(finish), "end")
    return "calls" if stop == "end" and any(part.kind == "call" for part in parts) else stop


def usage_of(used: Any, given: str = "prompt", made: str = "completion") -> ReplyTokens:
    """Count cached tokens apart: the wire includes them in those it was given."""
    if not isinstance(used, dict):
        return ReplyTokens(source="estimate")
    details = used.get(f"{given}_tokens_details")
    cached = as_count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    fresh = max(0, as_count(used.get(f"{given}_tokens")) - cached)
    return ReplyTokens(fresh, as_count(used.get(f"{made}_tokens")), cached)


# --- the rules ---
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def broken_rules(body: Mapping[str, Any]) -> Iterator[BrokenRule]:
    """Yield each broken rule: name, location, sentence."""
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


def _check_result(
    message: Mapping[str, Any], where: str, open_calls: list[str], answered: set[str]
) -> Iterator[BrokenRule]:
    call_id = as_text(message.get("tool_call_id"))
    if call_id not in open_calls:
        yield "no_call", where, f"result {call_id} follows no message with such a call"
    elif call_id in answered:
        yield "two_results", where, f"call {call_id} has more than one result"
    if message.get("content") is None:
        yield "empty_message", where, "a result must have content"
    answered.add(call_id)


def _check_answered(open_calls: list[str], answered: set[str], where: str) -> Iterator[BrokenRule]:
    for call_id in open_calls:
        if call_id not in answered:
            yield "no_result", where, f"call {call_id} has no result immediately after its message"


def _check_content(message: Mapping[str, Any], where: str) -> Iterator[BrokenRule]:
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        yield "role", where, "the role must be system, user, assistant or tool"
    elif role == "assistant":
        if not (content or message.get("tool_calls") or message.get("function_call") or message.get("refusal")):
            # OpenAI accepts an empty text and refuses null; Mistral refuses both.
            rule = "empty_answer" if content == "" else "empty_message"
            yield rule, where, "a message of the assistant must have content or calls"
    elif content is None or content == []:
        yield "empty_message", where, "a message must have content"


def _check_calls(message: Mapping[str, Any], where: str) -> Iterator[BrokenRule]:
    if (calls := message.get("tool_calls")) is None:
        return
    if calls == []:
        yield "empty_calls", where, "a list of calls must not be empty"
    if message.get("role") != "assistant":
        yield "wrong_role", where, "only the assistant may call tools"
    ids = _call_ids(message)
    for call_id in sorted({one for one in ids if ids.count(one) > 1}):
        yield "repeated_id", where, f"two calls of one message have the id {call_id}"
    for call in calls:
        function = call.get("function", call.get("custom")) if isinstance(call, dict) else None
        given = function.get("arguments", function.get("input")) if isinstance(function, dict) else None
        if not isinstance(function, dict) or not as_text(function.get("name")) or not isinstance(given, str):
            yield "bad_call", where, "a call must have a name, and text as arguments"
        if not (isinstance(call, dict) and as_text(call.get("id"))):
            yield "bad_id", where, "a call must have an id"


def _call_ids(message: Mapping[str, Any]) -> list[str]:
    calls = message.get("tool_calls")
    return [as_text(call.get("id")) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
