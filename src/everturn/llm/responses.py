"""The wire format `/responses`: a history of items, some of them messages.

Each part keeps in `raw` the item it stands for; of a message, an item with only that piece of its content. Neighbours that
are pieces of one item are put together again, so that what came goes back as it came, known or not. Requests are made
not to be stored over there (`store`), unless `extra` says otherwise: the history is ours.

A streamed answer of the wire format `/responses`, put together from its events.

The last event carries the whole answer, and each item comes whole when it is done. The pieces are kept as well: they are
all there is of a stream that breaks off, and some servers leave the output out of the last event.

What `/responses` refuses in a history.

A request that goes on from one that is kept over there (`previous_response_id`, `conversation`) shows only what is new,
so a result may have its call elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import structs

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

#: What a piece is added to: the member of the item, the member of the event with the place in it, the text's name there.
_PIECES: dict[str, tuple[str, str, str, str]] = {
    "response.output_text.delta": ("content", "content_index", "output_text", "text"),
    "response.refusal.delta": ("content", "content_index", "refusal", "text"),
    "response.reasoning_text.delta": ("content", "content_index", "reasoning_text", "thinking"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "summary_text", "thinking"),
}
_ARGUMENTS = {
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
_ENDS = {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}
_SHOWN_ITEMS = ("function_call", "custom_tool_call")


class ResponsesAssembly:
    """See `wire.Assembly`."""

    def __init__(self, read: Callable[[Any], Reply], failure: Callable[[Any], WireFailure | None]) -> None:
        self.is_done = self.has_begun = False
        self._read, self._failure = read, failure
        self._response: dict[str, Any] = {}
        self._items: dict[int, dict[str, Any]] = {}

    def feed(self, data: str) -> list[Delta]:
        """See `wire.Assembly`."""
        if data.strip() == "[DONE]":
            return []
        event = decode_json(data)
        kind = word(event.get("type"))
        if kind == "error":
            raise StreamFailed(self._failure({"error": event.get("error") or event}) or WireFailure("error", "", False))
        if kind in _ENDS:
            return self._ended(event)
        if kind in ("response.created", "response.in_progress", "response.queued"):
            self._response = _event_object(event, "response")
        elif kind in ("response.output_item.added", "response.output_item.done"):
            return self._item(event, kind.endswith("added"))
        elif kind in _PIECES or kind in _ARGUMENTS:
            return self._piece(event, kind)
        return []

    def reply(self) -> Reply:
        """See `wire.Assembly`."""
        told = self._response.get("output")
        pieces = [self._items[place] for place in sorted(self._items)]
        output = told if isinstance(told, list) and told and self.is_done else pieces
        made = self._read({**self._response, "output": output})
        return made if self.is_done else structs.replace(made, stop="cut")

    def _ended(self, event: dict[str, Any]) -> list[Delta]:
        self._response = _event_object(event, "response")
        if event["type"] == "response.failed":
            raise StreamFailed(self._failure(self._response) or WireFailure("failed", "", False))
        self.is_done = True
        return []

    def _item(self, event: dict[str, Any], is_new: bool) -> list[Delta]:
        item = _event_object(event, "item")
        self._items[_event_index(event, "output_index")] = item
        self.has_begun = True
        if is_new and item.get("type") in _SHOWN_ITEMS:
            return [Delta("call", "", word(item.get("call_id")), word(item.get("name")))]
        return []

    def _piece(self, event: dict[str, Any], kind: str) -> list[Delta]:
        text = word(event.get("delta"))
        item = self._items.get(_event_index(event, "output_index"))
        if item is None:
            raise GarbledAnswer("a piece of an item that did not begin")
        if kind in _ARGUMENTS:
            member = _ARGUMENTS[kind]
            item[member] = word(item.get(member)) + text
            return [Delta("call", text, word(item.get("call_id")), word(item.get("name")))]
        member, place, block, shown = _PIECES[kind]
        _add_text(item, member, _event_index(event, place), block, text)
        return [Delta(shown, text)]


def _add_text(item: dict[str, Any], member: str, place: int, kind: str, text: str) -> None:
    blocks = item.get(member)
    blocks = list(blocks) if isinstance(blocks, list) else []
    name = "refusal" if kind == "refusal" else "text"
    if place >= len(blocks):
        blocks.append({"type": kind, name: ""} | ({"annotations": []} if kind == "output_text" else {}))
    last = blocks[min(place, len(blocks) - 1)]
    if isinstance(last, dict):
        last[name] = word(last.get(name)) + text
    item[member] = blocks


def _event_object(event: dict[str, Any], name: str) -> dict[str, Any]:
    value = event.get(name)
    if not isinstance(value, dict):
        raise GarbledAnswer(f"an event has no {name}")
    return dict(value)


def _event_index(event: dict[str, Any], name: str) -> int:
    index = event.get(name)
    if not isinstance(index, int) or index < 0:
        raise GarbledAnswer(f"an event has no {name}")
    return index


WIRE = "responses"
PATH = "/responses"

_PASSING = {"rate_limit_exceeded", "server_error", "overloaded_error", "rate_limit_error", "api_error", "timeout"}
_STOPS = {"max_output_tokens": "length", "max_tokens": "length", "content_filter": "refusal"}
#: Calls that are answered by the client, and where their arguments are. Others are kept as they are.
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS = {f"{kind}_output": kind for kind in _CALLS}
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_ROLES = {"developer": "system"}


def headers(key: str) -> dict[str, str]:
    """See `Wire`."""
    return {"authorization": f"Bearer {key}"} if key else {}


def body(request: ModelRequest, stream: bool = False) -> dict[str, Any]:
    """See `Wire`."""
    made: dict[str, Any] = {"model": request.model, "max_output_tokens": request.max_tokens, "store": False}
    if request.temperature is not None:
        made["temperature"] = request.temperature
    if request.system:
        made["instructions"] = request.system
    if request.tools:
        made["tools"] = [_tool_spec(tool) for tool in request.tools]
    if "reasoning" in request.extra:  # models that do not reason refuse to be asked for it
        made["include"] = ["reasoning.encrypted_content"]
    made |= ({"stream": True} if stream else {}) | request.extra
    made["input"] = _input_items(request.messages, made["store"] is not False)
    return made


# a history ------------------------------------------------------------------------------------------------------------


def message(wire: Mapping[str, Any]) -> ChatMessage:
    """See `Wire`: a message is an item."""
    item = dict(wire)
    return ChatMessage(_item_role(item), tuple(_read_parts(item)), word(item.get("id")), WIRE)


def history(message: ChatMessage, theirs: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """See `Wire`. `theirs` are the calls that go back as they came, with their type: results must fit to them."""
    items: list[dict[str, Any]] = []
    is_open = False  # the last item is a message that takes more of its content
    for part in message.parts:
        if message.wire == WIRE and isinstance(part.raw, dict):
            piece = part.raw
            if is_open and _is_same_shell(items[-1], piece):
                items[-1] = {**piece, "content": [*items[-1]["content"], *piece["content"]]}
            else:
                items.append(piece)
            is_open = isinstance(piece.get("content"), list) and _is_message(piece)
        else:
            items += _own_items(part, message, theirs or {})
            is_open = False
    return items


def _input_items(messages: tuple[ChatMessage, ...], is_stored: bool) -> list[dict[str, Any]]:
    theirs = {
        part.call_id: word(part.raw.get("type")) if isinstance(part.raw, dict) else "function_call"
        for one in messages
        for part in one.parts
        if one.wire == WIRE and part.kind == "call"
    }
    items = [item for one in messages for item in history(one, theirs)]
    return items if is_stored else list(_items_not_stored(items))


def _items_not_stored(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What is not kept over there cannot be found by its id: thoughts go back only with their content.

    The items behind such a thought go without their ids, which would ask for it.
    """
    lost = False
    for item in items:
        if item.get("type") == "reasoning":
            lost = not item.get("encrypted_content")
            if lost:
                continue
        lost = lost and _item_role(item) == "assistant"
        yield {name: value for name, value in item.items() if name != "id"} if lost else item


def _item_role(item: dict[str, Any]) -> str:
    if role := word(item.get("role")):
        return _ROLES.get(role, role)
    return "tool" if word(item.get("type")).endswith("_output") else "assistant"


def _is_message(item: Mapping[str, Any]) -> bool:
    return item.get("type", "message") == "message" and "role" in item


def _is_same_shell(item: dict[str, Any], piece: dict[str, Any]) -> bool:
    shell = {**item, "content": None}
    return isinstance(piece.get("content"), list) and shell == {**piece, "content": None}


def _read_parts(item: dict[str, Any]) -> list[ChatPart]:
    kind, call_id = word(item.get("type")), word(item.get("call_id"))
    if kind in _CALLS:
        given = item.get(_CALLS[kind])
        given = arguments(given) if kind == "function_call" and isinstance(given, str) else given
        return [ChatPart("call", call_id=call_id, name=word(item.get("name")), arguments=given, raw=item)]
    if kind in _RESULTS:
        return [ChatPart("result", _content_text(item.get("output")), call_id, raw=item)]
    if kind == "reasoning":
        return [
            ChatPart("thinking", _content_text(item.get("summary")) or _content_text(item.get("content")), raw=item)
        ]
    if not _is_message(item):
        return [ChatPart("opaque", raw=item)]
    content = item.get("content")
    if isinstance(content, list) and content:
        return [_read_content(block, {**item, "content": [block]}) for block in content]
    return [ChatPart("text", word(content), raw=item)]


def _read_content(block: Any, piece: dict[str, Any]) -> ChatPart:
    kind = word(block.get("type")) if isinstance(block, dict) else ""
    if kind in _TEXTS:
        return ChatPart("text", word(block.get(_TEXTS[kind])), raw=piece)
    return ChatPart("image" if kind == "input_image" else "opaque", raw=piece)


def _content_text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(word(block.get("text")) for block in content if isinstance(block, dict))
    return word(content)


def _own_items(part: ChatPart, message: ChatMessage, theirs: Mapping[str, str]) -> list[dict[str, Any]]:
    """Items of our own for a part that did not come from this format."""
    call_id = part.call_id if part.call_id in theirs or message.wire == WIRE else fit_id(part.call_id)
    if part.kind == "call":
        given = encode_json(part.arguments)
        return [{"type": "function_call", "call_id": call_id, "name": part.name, "arguments": given}]
    if part.kind == "result":
        text = f"Error: {part.text}" if part.is_error else part.text
        return [{"type": f"{theirs.get(call_id, 'function_call')}_output", "call_id": call_id, "output": text}]
    text = part_as_text(part)
    if not text:
        return []
    is_answer = message.role == "assistant"
    role = message.role if message.role in ("user", "assistant", "system", "developer") else "user"
    block = {"type": "output_text" if is_answer else "input_text", "text": text}
    return [{"type": "message", "role": role, "content": [block | ({"annotations": []} if is_answer else {})]}]


def _tool_spec(tool: ToolSpec) -> dict[str, Any]:
    return {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}


# an answer ------------------------------------------------------------------------------------------------------------


def read(response: Any) -> Reply:
    """See `Wire`."""
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(output, list):
        raise GarbledAnswer("it has no output")
    items = [item for item in output if isinstance(item, dict)]
    parts = tuple(part for item in items for part in _read_parts(item))
    made = ChatMessage("assistant", parts, word(response.get("id")), WIRE, {**response, "output": []})
    return Reply(made, _stop(response, parts), _usage(response.get("usage")), word(response.get("model")))


def failure(response: Any) -> WireFailure | None:
    """See `Wire`."""
    said = response.get("error") if isinstance(response, dict) else None
    if isinstance(said, str):
        return WireFailure("", said, False)
    if not isinstance(said, dict):
        return None
    kinds = (word(said.get("code")), word(said.get("type")))
    return WireFailure(kinds[0] or kinds[1], word(said.get("message")), not _PASSING.isdisjoint(kinds))


def assembly() -> ResponsesAssembly:
    """See `Wire`."""
    return ResponsesAssembly(read, failure)


def _stop(response: dict[str, Any], parts: tuple[ChatPart, ...]) -> str:
    if response.get("status") == "incomplete":
        details = response.get("incomplete_details")
        return _STOPS.get(word(details.get("reason")) if isinstance(details, dict) else "", "length")
    if any(_is_refusal(part.raw) for part in parts):
        return "refusal"
    return "calls" if any(part.kind == "call" for part in parts) else "end"


def _is_refusal(raw: Any) -> bool:
    content = raw.get("content") if isinstance(raw, dict) else None
    return isinstance(content, list) and any(isinstance(one, dict) and one.get("type") == "refusal" for one in content)


def _usage(used: Any) -> ReplyTokens:
    """Cached tokens are counted within the input on this wire; ours are beside it."""
    if not isinstance(used, dict):
        return ReplyTokens(source="estimate")
    details = used.get("input_tokens_details")
    cached = number(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return ReplyTokens(max(0, number(used.get("input_tokens")) - cached), number(used.get("output_tokens")), cached)


#: Calls that the client must answer, by an item of the same type with `_output` behind it.
CALLS = ("function_call", "custom_tool_call", "computer_call", "apply_patch_call")
_OUTPUT = "_output"
Found = tuple[str, str, str]


def broken_rules(body: Mapping[str, Any]) -> Iterator[Found]:
    """Each rule that is broken: name, place, sentence."""
    given = body.get("input")
    goes_on = bool(body.get("previous_response_id") or body.get("conversation") or body.get("prompt"))
    if not given and not goes_on:
        yield "no_messages", "input", "there must be an input"
    items = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    yield from _check_pairs(items, goes_on)
    yield from _check_item_ids(items)
    for place, item in enumerate(items):
        where = f"input.{place}"
        yield from _check_shape(item, where)
        if item.get("type") == "reasoning":
            yield from _check_thought(item, items[place + 1 : place + 2], where, body)


def is_from_model(item: Mapping[str, Any]) -> bool:
    """Whether an item is something the model said or did."""
    kind = word(item.get("type"))
    if kind in ("", "message"):
        return item.get("role") == "assistant"
    return not (kind.endswith(_OUTPUT) or kind in ("item_reference", "mcp_approval_response"))


def _check_pairs(items: list[dict[str, Any]], goes_on: bool) -> Iterator[Found]:
    calls: dict[tuple[str, str], int] = {}
    outputs: dict[tuple[str, str], int] = {}
    for place, item in enumerate(items):
        kind, call_id = word(item.get("type")), word(item.get("call_id"))
        pair = (kind.removesuffix(_OUTPUT), call_id)
        if kind in CALLS:
            if pair in calls:
                yield "repeated_id", f"input.{place}", f"two calls have the id {call_id}"
            calls.setdefault(pair, place)
        elif pair[0] in CALLS:
            if pair not in calls and not goes_on:
                yield "no_call", f"input.{place}", f"result {call_id} has no call before it"
            if pair in outputs:
                yield "two_results", f"input.{place}", f"call {call_id} has more than one result"
            outputs.setdefault(pair, place)
    for pair in [pair for pair in calls if pair not in outputs]:
        yield "no_result", f"input.{calls[pair]}", f"call {pair[1]} has no result"


def _check_item_ids(items: list[dict[str, Any]]) -> Iterator[Found]:
    seen: set[str] = set()
    for place, item in enumerate(items):
        item_id = word(item.get("id"))
        if item_id and item_id in seen:
            yield "repeated_item", f"input.{place}", f"the item {item_id} stands there twice"
        seen.add(item_id)


def _check_shape(item: Mapping[str, Any], where: str) -> Iterator[Found]:
    kind = word(item.get("type"))
    if kind in ("", "message"):
        if item.get("role") not in ("user", "assistant", "system", "developer"):
            yield "role", where, "the role must be user, assistant, system or developer"
        if item.get("content") is None:
            yield "empty_message", where, "a message must have a content"
    elif kind == "function_call" and not (
        word(item.get("name")) and word(item.get("call_id")) and isinstance(item.get("arguments"), str)
    ):
        yield "bad_call", where, "a call must have a name, an id and a text as its arguments"


def _check_thought(
    item: Mapping[str, Any], after: list[dict[str, Any]], where: str, body: Mapping[str, Any]
) -> Iterator[Found]:
    if not after or not is_from_model(after[0]):
        yield "ends_on_thinking", where, "a thought must be followed by what came of it"
    if body.get("store") is False and not item.get("encrypted_content"):
        yield "unsigned_thinking", where, "a thought that is not stored over there must bring its encrypted content"
