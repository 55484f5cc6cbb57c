"""What `/responses` refuses in a history.

A request that goes on from one that is kept over there (`previous_response_id`, `conversation`) shows only what is new,
so a result may have its call elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from everturn.llm.wire import word

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
