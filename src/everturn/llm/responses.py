"""The wire format `/responses`: a history of items, some of them messages.

Each part keeps in `raw` the item it stands for; of a message, an item with only that piece of its content. Neighbours that
are pieces of one item are put together again, so that what came goes back as it came, known or not. Requests are made
not to be stored over there (`store`), unless `extra` says otherwise: the history is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from everturn.llm import ChatMessage, ChatPart, ModelRequest, Reply, ReplyTokens, ToolSpec
from everturn.llm.responses_stream import ResponsesAssembly
from everturn.llm.wire import GarbledAnswer, WireFailure, arguments, encode_json, fit_id, number, part_as_text, word

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
