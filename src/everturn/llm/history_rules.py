"""What the wire formats ask of the pieces of a history, and the history without the pieces they refuse.

anthropic_messages   neighbours of one role are one message; empty texts, unsigned and last thoughts are refused
chat_completions     every message stands for itself; one of the assistant says or calls something
responses            results may stand anywhere behind their calls; a thought is followed by what came of it

What a provider would refuse in a request, found before it is sent.

The rules are those of the providers' documents and of their error messages, one module for each wire format. A rule that
holds for some models only is in `MODEL_DEPENDENT`: told, but no reason not to send. No rule is about sizes or prices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from everturn.llm import anthropic_messages, chat_completions, responses
from everturn.llm.anthropic_messages import is_server_result
from everturn.llm.protocol import ChatMessage, ChatPart
from everturn.llm.responses import CALLS

_OUTPUT = "_output"


class HistoryRules(Struct, frozen=True):
    """How a wire format reads a history."""

    wire: str
    joins: bool = False  # neighbours of the assistant are one answer
    anywhere: bool = False  # a result may stand anywhere behind its call
    repeats: bool = False  # another answer may use the ids of an earlier one again


_RULES_BY_WIRE = {
    "anthropic_messages": HistoryRules("anthropic_messages", joins=True),
    "chat_completions": HistoryRules("chat_completions", repeats=True),
    "responses": HistoryRules("responses", joins=True, anywhere=True),
}
#: What is right for each of them.
_STRICT = HistoryRules("")


def history_rules(messages: Sequence[ChatMessage], wire: str = "") -> HistoryRules:
    """Those of the format that all answers came in; the strictest where there are several, or none."""
    wires = {wire} if wire else {message.wire for message in messages if message.role == "assistant" and message.wire}
    return _RULES_BY_WIRE.get(wires.pop(), _STRICT) if len(wires) == 1 else _STRICT


def prune_history(messages: Sequence[ChatMessage], habits: HistoryRules, mended: list[str]) -> list[ChatMessage]:
    """The history without what cannot be sent."""
    made: list[ChatMessage] = []
    messages = _drop_repeated_items(messages, mended)
    lonely = _lonely_parts(messages)
    for run in _message_runs(messages, habits):
        is_last = run[-1] is messages[-1]
        bad = {
            id(part): why
            for message in run
            for part in message.parts
            if (why := _refusal_reason(part, message, lonely))
        }
        if run[0].role == "assistant":
            bad |= _lost_server_calls(run, is_last)
            bad |= _trailing_thoughts(run, bad)
        for message in run:
            made += _prune_message(message, bad, mended)
    return made


def _message_runs(messages: Sequence[ChatMessage], habits: HistoryRules) -> Iterator[list[ChatMessage]]:
    run: list[ChatMessage] = []
    for message in messages:
        if run and not (habits.joins and message.role == run[0].role == "assistant"):
            yield run
            run = []
        run.append(message)
    if run:
        yield run


def _prune_message(message: ChatMessage, bad: dict[int, str], mended: list[str]) -> Iterator[ChatMessage]:
    kept = tuple(part for part in message.parts if id(part) not in bad)
    mended += [bad[id(part)] for part in message.parts if bad.get(id(part))]
    changed = len(kept) != len(message.parts)
    made = structs.replace(message, parts=kept) if changed else message
    if (not kept and _is_refused_empty(message)) or (not message.wire and not any(map(_is_sent, kept))):
        mended += [] if changed else ["an empty message is left out"]
        return
    if message.wire == "chat_completions" and message.role == "assistant":
        yield from _prune_chat_answer(made, mended)
    elif kept or not message.parts:
        yield made


def _drop_repeated_items(messages: Sequence[ChatMessage], mended: list[str]) -> list[ChatMessage]:
    """Items that stand there twice, as in a history that was replayed: thoughts once, others without the same id."""
    seen: set[str] = set()
    made = []
    for message in messages:
        ids = {part.raw["id"] for part in message.parts if _has_item_id(part, message)}
        again = ids & seen
        seen |= ids
        if again:
            mended += [
                f"the item {item_id} stands there twice and is sent under its id once" for item_id in sorted(again)
            ]
            parts = tuple(
                structs.replace(part, raw={name: value for name, value in part.raw.items() if name != "id"})
                if _has_item_id(part, message) and part.raw["id"] in again
                else part
                for part in message.parts
                if not (part.kind == "thinking" and _has_item_id(part, message) and part.raw["id"] in again)
            )
            message = structs.replace(message, parts=parts)
        made.append(message)
    return made


def _has_item_id(part: ChatPart, message: ChatMessage) -> bool:
    return message.wire == "responses" and isinstance(part.raw, dict) and isinstance(part.raw.get("id"), str)


def _is_refused_empty(message: ChatMessage) -> bool:
    """Whether a message without any part is refused. A text may be empty in one format, a list in none."""
    content = message.raw.get("content") if isinstance(message.raw, dict) else None
    return message.wire in ("anthropic_messages", "responses") or (message.wire == "chat_completions" and content == [])


def _is_sent(part: ChatPart) -> bool:
    """Whether anything of a part of our own is sent."""
    return part.kind in ("call", "result", "image") or (part.kind == "text" and bool(part.text.strip()))


def _prune_chat_answer(message: ChatMessage, mended: list[str]) -> Iterator[ChatMessage]:
    raw = message.raw if isinstance(message.raw, dict) else {}
    if any(part.kind == "call" for part in message.parts):
        yield message
    elif raw.get("refusal") or any(part.kind != "thinking" and (part.text or part.raw) for part in message.parts):
        if raw.get("tool_calls") == []:
            mended.append("an empty list of calls is left out")
            raw = {name: value for name, value in raw.items() if name != "tool_calls"}
        yield structs.replace(message, raw=raw) if raw is not message.raw else message
    elif not raw.get("function_call"):
        mended.append("an answer that says and calls nothing is left out")
    else:
        yield message


def _refusal_reason(part: ChatPart, message: ChatMessage, lonely: set[int]) -> str:
    """Why a part cannot be sent; nothing when it can."""
    raw = part.raw if isinstance(part.raw, dict) else {}
    if part.kind == "call" and not (part.call_id and part.name):
        return "half a call, without id or name, is left out"
    if id(part) in lonely:
        return "a call or result that has lost the other is left out"
    if message.wire == "anthropic_messages":
        if part.kind == "text" and not part.text.strip():
            return "an empty text is left out"
        sealed = {"thinking": "signature", "redacted_thinking": "data"}.get(raw.get("type", ""))
        if part.kind == "thinking" and sealed and not raw.get(sealed):
            return "a thought without its signature is left out"
    return ""


def _trailing_thoughts(run: list[ChatMessage], bad: dict[int, str]) -> dict[int, str]:
    """Thoughts at the end of an answer: what came of them was never written."""
    gone: dict[int, str] = {}
    for message in reversed(run):
        if message.wire not in ("anthropic_messages", "responses"):
            return gone
        for part in reversed(message.parts):
            if id(part) in bad:
                continue
            if part.kind != "thinking":
                return gone
            gone[id(part)] = "a thought without what came of it is left out"
    return gone


def _lost_server_calls(run: list[ChatMessage], is_last: bool) -> dict[int, str]:
    """Tools that run at the provider: call and result stand in one answer. A paused one may still wait."""
    parts = [part for message in run for part in message.parts if part.kind == "opaque" and isinstance(part.raw, dict)]
    called = {part.raw.get("id"): part for part in parts if part.raw.get("type") == "server_tool_use"}
    answered = {part.raw.get("tool_use_id"): part for part in parts if is_server_result(part.raw)}
    lost = [part for call_id, part in answered.items() if call_id not in called]
    if not is_last:
        lost += [part for call_id, part in called.items() if call_id not in answered]
    return {
        id(part): "a call or result of the provider's own tool that has lost the other is left out" for part in lost
    }


def _lonely_parts(messages: Sequence[ChatMessage]) -> set[int]:
    """Calls and results of kinds whose results cannot be written by us, and that have lost the other."""
    calls: dict[Any, ChatPart] = {}
    lonely: dict[int, ChatPart] = {}
    for message in messages:
        for part in message.parts:
            if part.kind != "opaque" or not isinstance(part.raw, dict):
                continue
            kind, call_id = str(part.raw.get("type")), part.raw.get("call_id")
            if kind in CALLS:
                calls[kind, call_id] = lonely[id(part)] = part
            elif kind.removesuffix(_OUTPUT) in CALLS:
                call = calls.pop((kind.removesuffix(_OUTPUT), call_id), None)
                lonely.pop(id(call), None) if call is not None else lonely.update({id(part): part})
    return set(lonely)


#: Newer models do not go on with an answer that was begun for them; older ones do.
MODEL_DEPENDENT = frozenset({"ends_on_assistant"})

#: (rule, where, sentence)
Found = tuple[str, str, str]
_RULES: dict[str, Callable[[Mapping[str, Any]], Iterable[Found]]] = {
    "anthropic_messages": anthropic_messages.broken_rules,
    "chat_completions": chat_completions.broken_rules,
    "responses": responses.broken_rules,
}


class Violation(Struct, frozen=True):
    """One rule that a request breaks. Says nothing of what the request says."""

    rule: str
    where: str  # such as messages.3 or input.7
    sentence: str


def validate_request(wire: str, body: Mapping[str, Any]) -> list[Violation]:
    """Every rule of the wire format that the request breaks, in the order of the request. Nothing for other formats."""
    rules = _RULES.get(wire)
    return [Violation(*found) for found in rules(body)] if rules is not None else []


def certain_violations(wire: str, body: Mapping[str, Any]) -> list[Violation]:
    """The same without what only some models refuse."""
    return [one for one in validate_request(wire, body) if one.rule not in MODEL_DEPENDENT]
