"""The wire format `/responses`, a history of items, and the rules it enforces on it.

Each part keeps its item in `raw`; a part of a message keeps the item with only its own content block. Adjacent parts of one
item are joined again, so every item goes back as it came. Requests ask the provider not to store them (`store`), unless
`extra` says otherwise: the history is ours.

The last event of a stream carries the whole answer, and each item arrives whole when it is done. The deltas are kept too:
they are all there is of a stream that breaks off, and some servers leave the output out of the last event.

A request that continues a stored one (`previous_response_id`, `conversation`) shows only the new items, so a result may
have its call elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from everturn.llm import chat_completions
from everturn.llm.attachments import attachment_block, attachments
from everturn.llm.protocol import (
    BrokenRule,
    ChatMessage,
    ChatPart,
    Delta,
    GarbledAnswer,
    ModelRequest,
    Reply,
    StreamFailed,
    ToolSpec,
    WireFailure,
    as_text,
    content_text,
    decode_arguments,
    decode_json,
    encode_json,
    event_index,
    fit_id,
    object_member,
    part_as_text,
)

WIRE = "responses"
PATH = "/responses"
headers, failure = chat_completions.headers, chat_completions.failure

_STOPS = {"max_output_tokens": "length", "max_tokens": "length", "content_filter": "refusal"}
#: Calls that the client answers, and the member with their arguments. Others stay opaque.
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS = {f"{kind}_output": kind for kind in _CALLS}
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_ROLES = {"developer": "system"}


def body(request: ModelRequest, stream: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = {"model": request.model, "max_output_tokens": request.max_tokens, "store": False}
    if request.temperature is not None:
        made["temperature"] = request.temperature
    if request.system:
        made["instructions"] = request.system
    if request.tools:
        made["tools"] = [_tool_spec(tool) for tool in request.tools]
    if "reasoning" in request.extra:  # models without reasoning refuse this
        made["include"] = ["reasoning.encrypted_content"]
    made |= ({"stream": True} if stream else {}) | request.extra
    made["input"] = _input_items(request.messages, made["store"] is not False)
    return made


# --- a history ---
def message(wire: Mapping[str, Any]) -> ChatMessage:
    """See `Wire`. A message is an item."""
    item = dict(wire)
    return ChatMessage(_item_role(item), tuple(_read_parts(item)), as_text(item.get("id")), WIRE)


def history(message: ChatMessage, theirs: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """See `Wire`. `theirs` maps the calls that go back unchanged to their type: results must match them."""
    items: list[dict[str, Any]] = []
    is_open = False  # the last item is a message that may take more content
    for part in message.parts:
        if message.wire == WIRE and isinstance(part.raw, dict):
            item = part.raw
            if is_open and _is_same_shell(items[-1], item):
                items[-1] = {**item, "content": [*items[-1]["content"], *item["content"]]}
            else:
                items.append(item)
            is_open = isinstance(item.get("content"), list) and _is_message(item)
        else:
            items += _own_items(part, message, theirs or {})
            is_open = False
    return items


def _input_items(messages: tuple[ChatMessage, ...], is_stored: bool) -> list[dict[str, Any]]:
    theirs = {
        part.call_id: as_text(part.raw.get("type")) if isinstance(part.raw, dict) else "function_call"
        for one in messages
        for part in one.parts
        if one.wire == WIRE and part.kind == "call"
    }
    items = [item for one in messages for item in history(one, theirs)]
    return items if is_stored else list(_items_not_stored(items))


def _items_not_stored(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Drop thoughts that the provider cannot find: without storage they need their encrypted content.

    The items after such a thought lose their ids, which would refer to it.
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
    if role := as_text(item.get("role")):
        return _ROLES.get(role, role)
    return "tool" if as_text(item.get("type")).endswith("_output") else "assistant"


def _is_message(item: Mapping[str, Any]) -> bool:
    return item.get("type", "message") == "message" and "role" in item


def _is_same_shell(item: dict[str, Any], other: dict[str, Any]) -> bool:
    return isinstance(other.get("content"), list) and {**item, "content": None} == {**other, "content": None}


def _read_parts(item: dict[str, Any]) -> list[ChatPart]:
    kind, call_id = as_text(item.get("type")), as_text(item.get("call_id"))
    if kind in _CALLS:
        given = item.get(_CALLS[kind])
        given = decode_arguments(given) if kind == "function_call" and isinstance(given, str) else given
        return [ChatPart("call", call_id=call_id, name=as_text(item.get("name")), arguments=given, raw=item)]
    if kind in _RESULTS:
        return [ChatPart("result", content_text(item.get("output")), call_id, raw=item)]
    if kind == "reasoning":
        return [ChatPart("thinking", content_text(item.get("summary")) or content_text(item.get("content")), raw=item)]
    if not _is_message(item):
        return [ChatPart("opaque", raw=item)]
    content = item.get("content")
    if isinstance(content, list) and content:
        return [_read_content(block, {**item, "content": [block]}) for block in content]
    return [ChatPart("text", as_text(content), raw=item)]


def _read_content(block: Any, item: dict[str, Any]) -> ChatPart:
    kind = as_text(block.get("type")) if isinstance(block, dict) else ""
    if kind in _TEXTS:
        return ChatPart("text", as_text(block.get(_TEXTS[kind])), raw=item)
    return ChatPart("image" if kind == "input_image" else "opaque", raw=item)


def _own_items(part: ChatPart, message: ChatMessage, theirs: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return items for a part that did not come from this format."""
    call_id = part.call_id if part.call_id in theirs or message.wire == WIRE else fit_id(part.call_id)
    if part.kind == "call":
        given = encode_json(part.arguments)
        return [{"type": "function_call", "call_id": call_id, "name": part.name, "arguments": given}]
    if part.kind == "result":
        text = f"Error: {part.text}" if part.is_error else part.text
        blocks = [attachment_block(WIRE, one) for one in attachments(part)]
        words = [{"type": "input_text", "text": text}] if blocks and text else []
        output = words + blocks if blocks else text
        return [{"type": f"{theirs.get(call_id, 'function_call')}_output", "call_id": call_id, "output": output}]
    is_answer = message.role == "assistant"
    role = message.role if message.role in ("user", "assistant", "system", "developer") else "user"
    if not is_answer and (found := attachments(part)):
        return [{"type": "message", "role": role, "content": [attachment_block(WIRE, one) for one in found]}]
    if not (text := part_as_text(part)):
        return []
    block = {"type": "output_text" if is_answer else "input_text", "text": text}
    return [{"type": "message", "role": role, "content": [block | ({"annotations": []} if is_answer else {})]}]


def _tool_spec(tool: ToolSpec) -> dict[str, Any]:
    return {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}


# --- an answer ---
def read(response: Any) -> Reply:
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(output, list):
        raise GarbledAnswer("it has no output")
    items = [item for item in output if isinstance(item, dict)]
    parts = tuple(part for item in items for part in _read_parts(item))
    made = ChatMessage("assistant", parts, as_text(response.get("id")), WIRE, {**response, "output": []})
    usage = chat_completions.usage_of(response.get("usage"), "input", "output")
    return Reply(made, _stop_reason(response, parts), usage, as_text(response.get("model")))


def _stop_reason(response: dict[str, Any], parts: tuple[ChatPart, ...]) -> str:
    if response.get("status") == "incomplete":
        details = response.get("incomplete_details")
        return _STOPS.get(as_text(details.get("reason")) if isinstance(details, dict) else "", "length")
    if any(_is_refusal(part.raw) for part in parts):
        return "refusal"
    return "calls" if any(part.kind == "call" for part in parts) else "end"


def _is_refusal(raw: Any) -> bool:
    content = raw.get("content") if isinstance(raw, dict) else None
    return isinstance(content, list) and any(isinstance(one, dict) and one.get("type") == "refusal" for one in content)


#: By type of a text delta: the member of the item, the index in the event, the type of the block, the kind of our delta.
_TEXT_DELTAS: dict[str, tuple[str, str, str, str]] = {
    "response.output_text.delta": ("content", "content_index", "output_text", "text"),
    "response.refusal.delta": ("content", "content_index", "refusal", "text"),
    "response.reasoning_text.delta": ("content", "content_index", "reasoning_text", "thinking"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "summary_text", "thinking"),
}
_ARGUMENTS = {"response.function_call_arguments.delta": "arguments", "response.custom_tool_call_input.delta": "input"}
_ENDS = {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}
_SHOWN_ITEMS = ("function_call", "custom_tool_call")


class ResponsesAssembly:
    """Assembles the events of a streamed answer."""

    def __init__(self) -> None:
        self.is_done = self.has_begun = False
        self._response: dict[str, Any] = {}
        self._items: dict[int, dict[str, Any]] = {}

    def feed(self, data: str) -> list[Delta]:
        if data.strip() == "[DONE]":
            return []
        event = decode_json(data)
        kind = as_text(event.get("type"))
        if kind == "error":
            raise StreamFailed(failure({"error": event.get("error") or event}) or WireFailure("error", "", False))
        if kind in _ENDS:
            return self._end(event)
        if kind in ("response.created", "response.in_progress", "response.queued"):
            self._response = dict(object_member(event, "response"))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            return self._add_item(event, kind.endswith("added"))
        elif kind in _TEXT_DELTAS or kind in _ARGUMENTS:
            return self._add_delta(event, kind)
        return []

    def reply(self) -> Reply:
        final = self._response.get("output")
        items = [self._items[index] for index in sorted(self._items)]
        output = final if isinstance(final, list) and final and self.is_done else items
        made = read({**self._response, "output": output})
        return made if self.is_done else structs.replace(made, stop="cut")

    def _end(self, event: dict[str, Any]) -> list[Delta]:
        self._response = dict(object_member(event, "response"))
        if event["type"] == "response.failed":
            raise StreamFailed(failure(self._response) or WireFailure("failed", "", False))
        self.is_done = True
        return []

    def _add_item(self, event: dict[str, Any], is_new: bool) -> list[Delta]:
        item = dict(object_member(event, "item"))
        self._items[event_index(event, "output_index")] = item
        self.has_begun = True
        if is_new and item.get("type") in _SHOWN_ITEMS:
            return [Delta("call", "", as_text(item.get("call_id")), as_text(item.get("name")))]
        return []

    def _add_delta(self, event: dict[str, Any], kind: str) -> list[Delta]:
        text = as_text(event.get("delta"))
        if (item := self._items.get(event_index(event, "output_index"))) is None:
            raise GarbledAnswer("a part of an item that was not started")
        if kind in _ARGUMENTS:
            member = _ARGUMENTS[kind]
            item[member] = as_text(item.get(member)) + text
            return [Delta("call", text, as_text(item.get("call_id")), as_text(item.get("name")))]
        member, place, block, shown = _TEXT_DELTAS[kind]
        _add_text(item, member, event_index(event, place), block, text)
        return [Delta(shown, text)]


def _add_text(item: dict[str, Any], member: str, place: int, kind: str, text: str) -> None:
    blocks = item.get(member)
    blocks = list(blocks) if isinstance(blocks, list) else []
    name = "refusal" if kind == "refusal" else "text"
    if place >= len(blocks):
        blocks.append({"type": kind, name: ""} | ({"annotations": []} if kind == "output_text" else {}))
    last = blocks[min(place, len(blocks) - 1)]
    if isinstance(last, dict):
        last[name] = as_text(last.get(name)) + text
    item[member] = blocks


assembly = ResponsesAssembly


# --- the rules ---
#: Calls that the client must answer with an item whose type ends in `_output`.
CALLS = ("function_call", "custom_tool_call", "computer_call", "apply_patch_call")
_OUTPUT = "_output"


def broken_rules(body: Mapping[str, Any]) -> Iterator[BrokenRule]:
    """Yield each broken rule: name, location, sentence."""
    given = body.get("input")
    is_continued = bool(body.get("previous_response_id") or body.get("conversation") or body.get("prompt"))
    if not given and not is_continued:
        yield "no_messages", "input", "there must be an input"
    items = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    yield from _check_pairs(items, is_continued)
    yield from _check_item_ids(items)
    for place, item in enumerate(items):
        where = f"input.{place}"
        yield from _check_shape(item, where)
        if item.get("type") == "reasoning":
            yield from _check_thought(item, items[place + 1 : place + 2], where, body)


def is_from_model(item: Mapping[str, Any]) -> bool:
    kind = as_text(item.get("type"))
    if kind in ("", "message"):
        return item.get("role") == "assistant"
    return not (kind.endswith(_OUTPUT) or kind in ("item_reference", "mcp_approval_response"))


def _check_pairs(items: list[dict[str, Any]], is_continued: bool) -> Iterator[BrokenRule]:
    calls: dict[tuple[str, str], int] = {}
    outputs: dict[tuple[str, str], int] = {}
    # Calls of other tools, which a plain output may answer.
    kinds = ((as_text(item.get("type")), item.get("call_id")) for item in items)
    others = {call_id for kind, call_id in kinds if kind.endswith("_call") and kind not in CALLS}
    for place, item in enumerate(items):
        kind, call_id = as_text(item.get("type")), as_text(item.get("call_id"))
        pair = (kind.removesuffix(_OUTPUT), call_id)
        if kind in CALLS:
            if pair in calls:
                yield "repeated_id", f"input.{place}", f"two calls have the id {call_id}"
            calls.setdefault(pair, place)
        elif pair[0] in CALLS:
            if pair not in calls and call_id not in others and not is_continued:
                yield "no_call", f"input.{place}", f"result {call_id} has no call before it"
            if pair in outputs:
                yield "two_results", f"input.{place}", f"call {call_id} has more than one result"
            outputs.setdefault(pair, place)
    for pair in [pair for pair in calls if pair not in outputs]:
        yield "no_result", f"input.{calls[pair]}", f"call {pair[1]} has no result"


def _check_item_ids(items: list[dict[str, Any]]) -> Iterator[BrokenRule]:
    seen: set[str] = set()
    for place, item in enumerate(items):
        if (item_id := as_text(item.get("id"))) and item_id in seen:
            yield "repeated_item", f"input.{place}", f"the item {item_id} occurs twice"
        seen.add(item_id)


def _check_shape(item: Mapping[str, Any], where: str) -> Iterator[BrokenRule]:
    kind = as_text(item.get("type"))
    if kind in ("", "message"):
        if item.get("role") not in ("user", "assistant", "system", "developer"):
            yield "role", where, "the role must be user, assistant, system or developer"
        if item.get("content") is None:
            yield "empty_message", where, "a message must have content"
    elif kind == "function_call" and not (
        as_text(item.get("name")) and as_text(item.get("call_id")) and isinstance(item.get("arguments"), str)
    ):
        yield "bad_call", where, "a call must have a name, an id, and text as arguments"


def _check_thought(
    item: Mapping[str, Any], after: list[dict[str, Any]], where: str, body: Mapping[str, Any]
) -> Iterator[BrokenRule]:
    if not after or not is_from_model(after[0]):
        yield "ends_on_thinking", where, "thinking must be followed by the item that it led to"
    if body.get("store") is False and not item.get("encrypted_content"):
        yield "unsigned_thinking", where, "thinking that the provider does not store must include its encrypted content"
