"""A conversation with a model as plain data: messages, the turns they form, and the whole state.

All classes are frozen, neutral to providers, and JSON (see `evaluation.snapshot`). `content` and `tool_calls` are readable
by people and any provider; `provider` is the message as its provider sent it, verbatim, with everything this version does
not know (thinking, signatures, encrypted items): `model_message` returns it unchanged. A turn here is one model response
with the results of its calls and the user messages before it; `turn_number` counts from 1. Times are aware.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from everturn.clock import new_id, now
from everturn.errors import SnapshotRestoreError, UsageError
from everturn.llm.protocol import ChatMessage, ChatPart, Reply, decode_arguments, encode_json
from everturn.model.conversation import prepared

Role = Literal["system", "assistant", "user", "tool"]

#: Any JSON value.
JSONValue = Any


def aware_now() -> datetime:
    """Return the current time, aware."""
    return aware_time(now())


def aware_time(ms: int) -> datetime:
    """Return a time in ms UTC as an aware datetime."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def new_uuid() -> UUID:
    """Return a random id."""
    return UUID(new_id())


@dataclass(frozen=True)
class ToolCallRecord:
    """A tool call made by the assistant."""

    call_id: str
    name: str
    arguments: str  # JSON, as it came


@dataclass(frozen=True)
class ConversationMessage:
    """A single message in a conversation."""

    role: Role
    content: str
    tool_calls: tuple[ToolCallRecord, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None  # of the tool, for role="tool"
    created_at: datetime = field(default_factory=aware_now)
    message_id: UUID = field(default_factory=new_uuid)
    is_error: bool = False  # for role="tool": the call failed
    provider: Mapping[str, JSONValue] | None = None  # the whole message, if `content` is not all of it

    def __post_init__(self) -> None:
        _check_aware(self.created_at)


@dataclass(frozen=True)
class StartedCall:
    """A call that was about to run: from then on it may have taken effect."""

    call_id: str
    attempt: int = 1
    purpose: str = "run"  # run | compensate


@dataclass(frozen=True)
class ConversationTurn:
    """One turn: the prompt, the assistant's response, the results of its calls."""

    turn_number: int
    assistant_message: ConversationMessage
    tool_messages: tuple[ConversationMessage, ...] = ()
    provider_payload: Mapping[str, JSONValue] | None = None  # of the response: model, stop, usage
    evaluation_id: str = field(default_factory=new_id)
    created_at: datetime = field(default_factory=aware_now)
    user_messages: tuple[ConversationMessage, ...] = ()  # since the turn before
    started: tuple[StartedCall, ...] = ()  # calls that were begun; without a result they are in doubt

    def __post_init__(self) -> None:
        _check_aware(self.created_at)

    @property
    def pending(self) -> tuple[ToolCallRecord, ...]:
        """Return the calls without a result."""
        done = {message.tool_call_id for message in self.tool_messages}
        return tuple(call for call in self.assistant_message.tool_calls if call.call_id not in done)


@dataclass(frozen=True)
class ConversationState:
    """Complete conversation history for an evaluation."""

    evaluation_id: str
    prompt_ns: str
    prompt_key: str
    system_message: ConversationMessage
    turns: tuple[ConversationTurn, ...] = ()
    created_at: datetime = field(default_factory=aware_now)
    state_id: UUID = field(default_factory=new_uuid)
    unanswered: tuple[ConversationMessage, ...] = ()  # user messages after the last turn

    def __post_init__(self) -> None:
        _check_aware(self.created_at)

    @property
    def messages(self) -> Iterator[ConversationMessage]:
        """Yield all messages in order, without the system message."""
        for turn in self.turns:
            yield from turn.user_messages
            yield turn.assistant_message
            yield from turn.tool_messages
        yield from self.unanswered


# --- to and from the neutral form of `llm` ---
def user_message(parts: tuple[ChatPart, ...], when: datetime) -> ConversationMessage:
    is_plain = len(parts) == 1 and parts[0] == ChatPart("text", parts[0].text)
    verbatim = None if is_plain else _message_json(ChatMessage("user", parts))
    text = "\n".join(part.text for part in parts if part.kind == "text")
    return ConversationMessage("user", text, created_at=when, provider=verbatim)


def response_message(reply: Reply, when: datetime) -> tuple[ConversationMessage, Mapping[str, JSONValue]]:
    """Return a response and the payload of its provider."""
    message = reply.message
    calls = tuple(ToolCallRecord(part.call_id, part.name, call_arguments_json(part)) for part in reply.calls)
    made = ConversationMessage("assistant", reply.text, calls, created_at=when)
    if model_message(made) != message:
        made = replace(made, provider=_message_json(message))
    return made, {"model": reply.model, "stop": reply.stop, "usage": msgspec.to_builtins(reply.usage)}


def model_message(message: ConversationMessage) -> ChatMessage:
    """Return the message for a model: as its provider sent it if known, otherwise made from its content."""
    if message.provider is not None:
        try:
            return msgspec.convert(message.provider, prepared(ChatMessage))
        except (msgspec.ValidationError, TypeError) as failure:
            raise SnapshotRestoreError([f"message {message.message_id}: provider: {failure}"]) from failure
    if message.role == "tool":
        part = ChatPart(
            "result", message.content, message.tool_call_id or "", message.name or "", is_error=message.is_error
        )
        return ChatMessage("tool", (part,))
    words = (ChatPart("text", message.content),) if message.content or not message.tool_calls else ()
    calls = tuple(
        ChatPart("call", "", call.call_id, call.name, decode_arguments(call.arguments)) for call in message.tool_calls
    )
    return ChatMessage(message.role, words + calls)


def chat_messages(state: ConversationState) -> list[dict[str, Any]]:
    """Return the conversation in the common form: role, content, tool_calls, tool_call_id."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": state.system_message.content}]
    for message in state.messages:
        row: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.tool_calls:
            row["tool_calls"] = [
                {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.tool_calls
            ]
        if message.role == "tool":
            row["tool_call_id"] = message.tool_call_id
        messages.append(row)
    return messages


def call_arguments_json(part: ChatPart) -> str:
    """Return the arguments of a call as the provider wrote them, or its object as JSON."""
    raw = part.raw if isinstance(part.raw, Mapping) else {}
    function = raw.get("function")
    for place in (raw, function if isinstance(function, Mapping) else {}):
        if isinstance(place.get("arguments"), str):
            return str(place["arguments"])
    return encode_json(part.arguments)


def _message_json(message: ChatMessage) -> dict[str, JSONValue]:
    """Return the whole message as JSON without empty members; `model_message` is its inverse."""
    return {**_drop_empty(message), "parts": [_drop_empty(part) for part in message.parts]}


def _drop_empty(one: ChatMessage | ChatPart) -> dict[str, JSONValue]:
    built: dict[str, JSONValue] = msgspec.to_builtins(one)
    return {name: value for name, value in built.items() if value is not None and value != "" and value is not False}


def _check_aware(when: datetime) -> None:
    if when.tzinfo is None:
        raise UsageError(f"the time {when.isoformat()} has no time zone; give an aware one, such as datetime.now(UTC)")
