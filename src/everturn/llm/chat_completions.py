"""The wire format `/chat/completions`, spoken by many servers, on the net and on this machine.

A message's `raw` is its own skeleton: every member in its order, with the content and the calls taken out into the parts.

What `/chat/completions` refuses in a history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from everturn.llm.protocol import (
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
    arguments,
    decode_json,
    encode_json,
    fit_id,
    number,
    part_as_text,
    word,
)

WIRE = "chat_completions"
PATH = "/chat/completions"

#: Where servers put what the model thought; there is no agreed name.
_THOUGHTS = ("reasoning_content", "reasoning")
_STOPS = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "refusal",
}
_PASSING = {"rate_limit_exceeded", "server_error", "overloaded_error", "rate_limit_error", "api_error", "timeout"}


def headers(key: str) -> dict[str, str]:
    """See `Wire`."""
    return {"authorization": f"Bearer {key}"} if key else {}


def body(request: ModelRequest, stream: bool = False) -> dict[str, Any]:
    """See `Wire`."""
    made: dict[str, Any] = {"model": request.model, "max_tokens": request.max_tokens}
    if request.temperature is not None:
        made["temperature"] = request.temperature
    system = [{"role": "system", "content": request.system}] if request.system else []
    theirs = frozenset(
        part.call_id for one in request.messages if one.wire == WIRE for part in one.parts if part.kind == "call"
    )
    made["messages"] = system + [one for message in request.messages for one in history(message, theirs)]
    if request.tools:
        made["tools"] = [_tool_spec(tool) for tool in request.tools]
    if stream:
        made |= {"stream": True, "stream_options": {"include_usage": True}}
    made |= request.extra
    if "max_completion_tokens" in request.extra:  # some models take the limit by this name only
        made["max_completion_tokens"] = made.pop("max_tokens")
    return made


# a history ------------------------------------------------------------------------------------------------------------


def message(wire: Mapping[str, Any]) -> ChatMessage:
    """See `Wire`."""
    skeleton = dict(wire)
    content, calls = wire.get("content"), wire.get("tool_calls")
    parts = [ChatPart("thinking", word(wire[name])) for name in _THOUGHTS if word(wire.get(name))][:1]
    if wire.get("role") == "tool":
        parts.append(
            ChatPart(
                "result", _content_text(content), word(wire.get("tool_call_id")), word(wire.get("name")), raw=content
            )
        )
    elif isinstance(content, str):
        skeleton["content"] = ""
        parts += [ChatPart("text", content, raw=content)] if content else []
    elif isinstance(content, list):
        skeleton["content"] = []
        parts += map(_read_block, content)
    if word(wire.get("refusal")) and not content:  # told beside the content, so nothing of it goes back into that
        parts.append(ChatPart("text", word(wire["refusal"]), raw=""))
    if isinstance(calls, list):
        skeleton["tool_calls"] = []
        parts += map(_read_call, calls)
    return ChatMessage(word(wire.get("role")) or "assistant", tuple(parts), word(wire.get("id")), WIRE, skeleton)


def history(message: ChatMessage, theirs: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """See `Wire`. `theirs` are the ids of calls that go back as they came: results of our own must fit to them."""
    if message.wire == WIRE and isinstance(message.raw, dict):
        return [_verbatim_message(message, message.raw)]
    results = [_result_message(part, theirs) for part in message.parts if part.kind == "result"]
    text = "".join(part_as_text(part) for part in message.parts if part.kind != "result")
    calls = [_own_call(part) for part in message.parts if part.kind == "call"]
    if calls:
        return [*results, {"role": message.role, "content": text or None, "tool_calls": calls}]
    return [*results, {"role": message.role, "content": text}] if text else results


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
    """What stands for a part in the content; thoughts of our own making do not."""
    return part.text if part.raw is None and part.kind == "text" else part.raw


def _read_block(block: Any) -> ChatPart:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text":
        return ChatPart("text", word(block.get("text")), raw=block)
    return ChatPart("image" if kind == "image_url" else "opaque", raw=block)


def _read_call(call: Any) -> ChatPart:
    made = call.get("function") if isinstance(call, dict) else None
    if not isinstance(made, dict):
        return ChatPart("call", call_id=word(call.get("id")) if isinstance(call, dict) else "", arguments={}, raw=call)
    given = made.get("arguments")
    return ChatPart(
        "call",
        call_id=word(call.get("id")),
        name=word(made.get("name")),
        arguments=arguments(given) if isinstance(given, str) else given or {},
        raw=call,
    )


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


def _content_text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(word(block.get("text")) for block in content if isinstance(block, dict))
    return word(content)


# an answer ------------------------------------------------------------------------------------------------------------


def read(response: Any) -> Reply:
    """See `Wire`."""
    choices = response.get("choices") if isinstance(response, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise GarbledAnswer("it has no choices")
    said = choices[0].get("message")
    if not isinstance(said, dict):
        raise GarbledAnswer("its choice has no message")
    made = message(said)
    made = ChatMessage("assistant", made.parts, word(response.get("id")), WIRE, made.raw)
    stop = _stop_reason(choices[0].get("finish_reason"), made.parts, said.get("refusal"))
    return Reply(made, stop, _usage(response.get("usage")), word(response.get("model")))


def failure(response: Any) -> WireFailure | None:
    """See `Wire`."""
    said = response.get("error") if isinstance(response, dict) else None
    if isinstance(said, str):
        return WireFailure("", said, False)
    if not isinstance(said, dict):
        return None
    kind = word(said.get("code")) or word(said.get("type"))
    passes = not {word(said.get("code")), word(said.get("type"))}.isdisjoint(_PASSING)
    return WireFailure(kind, word(said.get("message")), passes)


def assembly() -> CompletionAssembly:
    """See `Wire`."""
    return CompletionAssembly()


class CompletionAssembly:
    """Puts streamed chunks together into the message they would have been."""

    def __init__(self) -> None:
        self.is_done = self.has_begun = False
        self._message: dict[str, Any] = {"role": "assistant"}
        self._calls: dict[int, dict[str, Any]] = {}
        self._id = self._model = self._finish = ""
        self._used: Any = None

    def feed(self, data: str) -> list[Delta]:
        """See `wire.Assembly`."""
        if data.strip() == "[DONE]":
            self.is_done = True
            return []
        chunk = decode_json(data)
        if (said := failure(chunk)) is not None:
            raise StreamFailed(said)
        if not isinstance(chunk.get("choices"), list):
            raise GarbledAnswer("a chunk has no choices")
        self._id, self._model = self._id or word(chunk.get("id")), self._model or word(chunk.get("model"))
        self._used = chunk.get("usage") or self._used
        mine = [one for one in chunk["choices"] if isinstance(one, dict) and not one.get("index")]
        return [delta for choice in mine for delta in self._choice(choice)]

    def reply(self) -> Reply:
        """See `wire.Assembly`. A stream that gave its reason for stopping is whole, also without the last mark."""
        said = dict(self._message)
        if self._calls:
            said["tool_calls"] = [call for _, call in sorted(self._calls.items())]
        said.setdefault("content", None)
        made = message(said)
        made = ChatMessage("assistant", made.parts, self._id, WIRE, made.raw)
        ended = self.is_done or self._finish
        stop = _stop_reason(self._finish, made.parts, said.get("refusal")) if ended else "cut"
        return Reply(made, stop, _usage(self._used), self._model)

    def _choice(self, choice: dict[str, Any]) -> Iterable[Delta]:
        self._finish = word(choice.get("finish_reason")) or self._finish
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        for name, value in delta.items():
            if name == "tool_calls" and isinstance(value, list):
                yield from map(self._call, filter(_is_object, value))
            elif value is not None and name != "role":
                yield from self._member(name, value)

    def _member(self, name: str, value: Any) -> Iterable[Delta]:
        before = self._message.get(name)
        joins = isinstance(value, str | list) and type(before) is type(value)
        self._message[name] = before + value if joins else value
        if isinstance(value, str) and value and name in ("content", "refusal", *_THOUGHTS):
            self.has_begun = True
            yield Delta("thinking" if name in _THOUGHTS else "text", value)

    def _call(self, piece: dict[str, Any]) -> Delta:
        self.has_begun = True
        place = piece.get("index")
        place = place if isinstance(place, int) else self._place(word(piece.get("id")))
        call = self._calls.setdefault(place, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call["id"] = word(piece.get("id")) or call["id"]
        call |= {name: value for name, value in piece.items() if name not in ("index", "id", "type", "function")}
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        text = word(function.get("arguments"))
        call["function"]["name"] += word(function.get("name"))
        call["function"]["arguments"] += text
        return Delta("call", text, call["id"], call["function"]["name"])

    def _place(self, call_id: str) -> int:
        """Some servers give no index: a new id is a new call, none goes on with the last one."""
        known = {call["id"]: place for place, call in self._calls.items()}
        last = max(self._calls, default=-1)
        return known.get(call_id, last + 1) if call_id else max(last, 0)


def _stop_reason(finish: Any, parts: tuple[ChatPart, ...], refusal: Any) -> str:
    if refusal:
        return "refusal"
    stop = _STOPS.get(word(finish), "end")
    return "calls" if stop == "end" and any(part.kind == "call" for part in parts) else stop


def _usage(used: Any) -> ReplyTokens:
    """Cached tokens are counted within the prompt on this wire; ours are beside it."""
    if not isinstance(used, dict):
        return ReplyTokens(source="estimate")
    details = used.get("prompt_tokens_details")
    cached = number(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return ReplyTokens(
        max(0, number(used.get("prompt_tokens")) - cached), number(used.get("completion_tokens")), cached
    )


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


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
