"""A streamed answer of the wire format `/responses`, put together from its events.

The last event carries the whole answer, and each item comes whole when it is done. The pieces are kept as well: they are
all there is of a stream that breaks off, and some servers leave the output out of the last event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from everturn.llm import Delta, Reply
from everturn.llm.wire import GarbledAnswer, StreamFailed, WireFailure, decode_json, word

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
