"""Rules of the wire formats for a history: validation of a request, and removal of parts that a format refuses.

anthropic_messages   messages of one role in a row are one; empty texts, unsigned and trailing thoughts are refused
chat_completions     every message is separate; an assistant message has content or calls
responses            a result may be anywhere after its call; a thought is followed by output

The rules come from the providers' documents and error messages; each wire format holds its own. A rule that only some
models enforce is in `MODEL_DEPENDENT`: reported, but no reason not to send. No rule is about sizes or prices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    joins: bool = False  # consecutive assistant messages are one answer
    anywhere: bool = False  # a result may be anywhere after its call
    repeats: bool = False  # a later answer may reuse the ids of an earlier one


_RULES_BY_WIRE = {
    "anthropic_messages": HistoryRules("anthropic_messages", joins=True),
    "chat_completions": HistoryRules("chat_completions", repeats=True),
    "responses": HistoryRules("responses", joins=True, anywhere=True),
}
#: Valid for every format.
_STRICT = HistoryRules("")


def history_rules(messages: Sequence[ChatMessage], wire: str = "") -> HistoryRules:
    """Return the rules of the format of all answers; the strictest if there are several formats, or none."""
    wires = {wire} if wire else {message.wire for message in messages if message.role == "assistant" and message.wire}
    return _RULES_BY_WIRE.get(wires.pop(), _STRICT) if len(wires) == 1 else _STRICT


def prune_history(messages: Sequence[ChatMessage], rules: HistoryRules, mended: list[str]) -> list[ChatMessage]:
    """Return the history without parts that cannot be sent."""
    made: list[ChatMessage] = []
    messages = _drop_repeated_items(messages, mended)
    lonely = _lonely_parts(messages)
    for run in _message_runs(messages, rules):
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


def _message_runs(messages: Sequence[ChatMessage], rules: HistoryRules) -> Iterator[list[ChatMessage]]:
    run: list[ChatMessage] = []
    for message in messages:
        if run and not (rules.joins and message.role == run[0].role == "assistant"):
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
    """Send items that occur twice, as in a replayed history, under their id once; drop a repeated thought."""
    seen: set[str] = set()
    made = []
    for message in messages:
        ids = {part.raw["id"] for part in message.parts if _has_item_id(part, message)}
        again = ids & seen
        seen |= ids
        if again:
            mended += [f"the item {item_id} occurs twice and is sent with its id once" for item_id in sorted(again)]
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
    """Whether a message without parts is refused. One format accepts an empty text, none an empty list."""
    content = message.raw.get("content") if isinstance(message.raw, dict) else None
    return message.wire in ("anthropic_messages", "responses") or (message.wire == "chat_completions" and content == [])


def _is_sent(part: ChatPart) -> bool:
    """Whether a part of our own produces output."""
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
        mended.append("an answer without text and calls is left out")
    else:
        yield message


def _refusal_reason(part: ChatPart, message: ChatMessage, lonely: set[int]) -> str:
    """Return why a part cannot be sent, or ""."""
    raw = part.raw if isinstance(part.raw, dict) else {}
    if part.kind == "call" and not (part.call_id and part.name):
        return "an incomplete call, without an id or a name, is left out"
    if id(part) in lonely:
        return "a call without its result, or a result without its call, is left out"
    if message.wire == "anthropic_messages":
        if part.kind == "text" and not part.text.strip():
            return "an empty text is left out"
        sealed = {"thinking": "signature", "redacted_thinking": "data"}.get(raw.get("type", ""))
        if part.kind == "thinking" and sealed and not raw.get(sealed):
            return "thinking without its signature is left out"
    return ""


def _trailing_thoughts(run: list[ChatMessage], bad: dict[int, str]) -> dict[int, str]:
    """Find thoughts at the end of an answer: their output was never written."""
    gone: dict[int, str] = {}
    for message in reversed(run):
        if message.wire not in ("anthropic_messages", "responses"):
            return gone
        for part in reversed(message.parts):
            if id(part) in bad:
                continue
            if part.kind != "thinking":
                return gone
            gone[id(part)] = "thinking without the answer that followed is left out"
    return gone


def _lost_server_calls(run: list[ChatMessage], is_last: bool) -> dict[int, str]:
    """Find calls and results of provider tools without their counterpart. A paused answer may still wait."""
    parts = [part for message in run for part in message.parts if part.kind == "opaque" and isinstance(part.raw, dict)]
    called = {part.raw.get("id"): part for part in parts if part.raw.get("type") == "server_tool_use"}
    answered = {part.raw.get("tool_use_id"): part for part in parts if is_server_result(part.raw)}
    lost = [part for call_id, part in answered.items() if call_id not in called]
    if not is_last:
        lost += [part for call_id, part in called.items() if call_id not in answered]
    return {
        id(part): "a call of the provider's own tool without its result, or the reverse, is left out" for part in lost
    }


def _lonely_parts(messages: Sequence[ChatMessage]) -> set[int]:
    """Find unpaired calls and results of kinds whose results we cannot write."""
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


#: Newer models refuse to continue an answer that was begun for them; older ones accept it. A call of the provider's own tool
#: may be in flight. An empty text as an answer is accepted by OpenAI and refused by Mistral.
MODEL_DEPENDENT = frozenset({"ends_on_assistant", "no_server_result", "empty_answer"})

_RULES = {wire.WIRE: wire.broken_rules for wire in (anthropic_messages, chat_completions, responses)}


class Violation(Struct, frozen=True):
    """A rule that a request breaks. Never quotes the request."""

    rule: str
    where: str  # such as messages.3 or input.7
    sentence: str


def validate_request(wire: str, body: Mapping[str, Any]) -> list[Violation]:
    """Return every rule of the wire format that the request breaks, in order. Other formats have no rules."""
    check = _RULES.get(wire)
    return [Violation(*broken) for broken in check(body)] if check is not None else []


def certain_violations(wire: str, body: Mapping[str, Any]) -> list[Violation]:
    """Return the violations that every model refuses."""
    return [one for one in validate_request(wire, body) if one.rule not in MODEL_DEPENDENT]
