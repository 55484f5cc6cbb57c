"""The ids of calls: each names one call, and a result names its call.

Some servers number the calls of every answer from zero; some send an id twice within one answer. Where a wire format does
not take that, later ones get a number behind the id, call and result alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import structs

from everturn.llm import ChatMessage, ChatPart
from everturn.llm.pieces import HistoryRules
from everturn.llm.wire import fit_id

_FITS = re.compile(r"[A-Za-z0-9_-]+")
#: The member of a provider's block that holds the id of the call.
_MEMBERS = ("call_id", "tool_use_id", "tool_call_id", "id")


def with_unique_ids(messages: Sequence[ChatMessage], habits: HistoryRules, mended: list[str]) -> list[ChatMessage]:
    """The history with an id of its own for every call that needs one."""
    seen: set[str] = set()
    given: dict[str, list[str]] = {}  # the new ids for the results of an id
    made = []
    for place, message in enumerate(messages):
        if message.role == "assistant" and any(part.kind == "call" for part in message.parts):
            message = _drop_doubles(message, messages[place + 1 :], mended)
            seen = set() if habits.repeats else seen
            made.append(_rename_calls(message, seen, given, habits, mended))
        elif any(given.get(part.call_id) for part in message.parts if part.kind == "result"):
            made.append(_rename_results(message, given))
        else:
            made.append(message)
    return made


def with_call_id(message: ChatMessage, place: int, call_id: str) -> ChatMessage:
    """The message with another call id in one of its parts, in what is kept verbatim too."""
    part = message.parts[place]
    raw, around = part.raw, message.raw
    if isinstance(raw, dict):
        names = _MEMBERS if part.kind == "call" else _MEMBERS[:-1]
        member = next((name for name in names if raw.get(name) == part.call_id), "")
        raw = {**raw, member: call_id} if member else raw
    if isinstance(around, dict) and part.kind == "result" and around.get("tool_call_id") == part.call_id:
        around = {**around, "tool_call_id": call_id}
    parts = list(message.parts)
    parts[place] = structs.replace(part, call_id=call_id, raw=raw)
    return structs.replace(message, parts=tuple(parts), raw=around)


def _rename_calls(
    message: ChatMessage, seen: set[str], given: dict[str, list[str]], habits: HistoryRules, mended: list[str]
) -> ChatMessage:
    for call_id in {part.call_id for part in message.parts if part.kind == "call"}:
        given.pop(call_id, None)
    fits = habits.wire not in ("anthropic_messages", "") or message.wire == ""
    for place, part in enumerate(message.parts):
        if part.kind != "call":
            continue
        wanted = part.call_id if fits or _FITS.fullmatch(part.call_id) else fit_id(part.call_id)
        new = _free_id(wanted, seen)
        seen.add(new)
        given.setdefault(part.call_id, []).append(new)
        if new != part.call_id:
            mended.append(f"call {part.call_id} ({part.name}) is sent as {new}, since each call needs an id of its own")
            message = with_call_id(message, place, new)
    return message


def _rename_results(message: ChatMessage, given: dict[str, list[str]]) -> ChatMessage:
    for place, part in enumerate(message.parts):
        names = given.get(part.call_id) if part.kind == "result" else None
        if names:
            new = names.pop(0) if len(names) > 1 else names[0]
            message = with_call_id(message, place, new) if new != part.call_id else message
    return message


def _free_id(call_id: str, seen: set[str]) -> str:
    number, new = 2, call_id
    while new in seen:
        number, new = number + 1, f"{call_id}_{number}"
    return new


def _drop_doubles(message: ChatMessage, after: Sequence[ChatMessage], mended: list[str]) -> ChatMessage:
    """Of calls with one id within one answer, as many as have results; the last ones, since those were run."""
    ids = [part.call_id for part in message.parts if part.kind == "call"]
    if len(set(ids)) == len(ids):
        return message
    gone: list[ChatPart] = []
    for call_id in dict.fromkeys(ids):
        results = _count_results(call_id, after)
        doubles = [part for part in message.parts if part.kind == "call" and part.call_id == call_id]
        gone += doubles[: len(doubles) - max(1, results)]
    mended += [f"call {part.call_id} ({part.name}) stands there twice; the last one is sent" for part in gone]
    lost = {id(part) for part in gone}
    return structs.replace(message, parts=tuple(part for part in message.parts if id(part) not in lost))


def _count_results(call_id: str, after: Sequence[ChatMessage]) -> int:
    count = 0
    for message in after:
        for part in message.parts:
            if part.call_id == call_id and part.kind == "call":
                return count
            count += part.call_id == call_id and part.kind == "result"
    return count
