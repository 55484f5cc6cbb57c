"""A conversation as data: its fields, and back to the provider what the provider sent."""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, fields
from datetime import UTC, datetime
from typing import Any

import pytest

from everturn.errors import SnapshotRestoreError, UsageError
from everturn.llm.protocol import ChatMessage, ChatPart, Reply
from everturn.llm.protocol import ReplyTokens as Tokens
from everturn.loop.conversation import (
    ConversationMessage,
    ConversationState,
    ConversationTurn,
    ToolCallRecord,
    chat_messages,
    model_message,
    response_message,
    user_message,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def fields_of(cls: type) -> list[tuple[str, bool]]:
    """Names in order, and whether there is a default."""
    return [(one.name, one.default is not MISSING or one.default_factory is not MISSING) for one in fields(cls)]


def test_the_fields_are_those_of_the_document_and_what_was_added_has_a_default() -> None:
    message = [("role", False), ("content", False), ("tool_calls", True), ("tool_call_id", True), ("name", True)]
    turn = [("turn_number", False), ("assistant_message", False), ("tool_messages", True), ("provider_payload", True)]
    state = [("evaluation_id", False), ("prompt_ns", False), ("prompt_key", False), ("system_message", False)]
    assert fields_of(ToolCallRecord) == [("call_id", False), ("name", False), ("arguments", False)]
    assert fields_of(ConversationMessage)[:7] == [*message, ("created_at", True), ("message_id", True)]
    assert fields_of(ConversationTurn)[:6] == [*turn, ("evaluation_id", True), ("created_at", True)]
    assert fields_of(ConversationState)[:7] == [*state, ("turns", True), ("created_at", True), ("state_id", True)]
    for cls, own in ((ConversationMessage, 7), (ConversationTurn, 6), (ConversationState, 7)):
        assert all(has_default for _, has_default in fields_of(cls)[own:])


def test_a_message_is_frozen_and_has_an_id_and_an_aware_time_of_its_own() -> None:
    one, other = ConversationMessage("user", "hello"), ConversationMessage("user", "hello")
    assert one.message_id != other.message_id
    assert one.created_at.utcoffset() is not None
    with pytest.raises(FrozenInstanceError):
        one.content = "changed"  # type: ignore[misc]


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(UsageError, match="no time zone"):
        ConversationMessage("user", "hello", created_at=datetime(2026, 1, 2))  # noqa: DTZ001


@pytest.mark.parametrize(
    "parts",
    [
        (ChatPart("text", "plain"),),
        (ChatPart("text", ""),),
        (
            ChatPart("thinking", "hm", raw={"type": "thinking", "thinking": "hm", "signature": "c2ln"}),
            ChatPart("text", "so"),
        ),
        (ChatPart("opaque", raw={"type": "from_the_future", "deep": [{"a": None}, 1.5, "é\ud800"]}),),
        (ChatPart("text", "first"), ChatPart("call", "", "c1", "add", {"a": 1}), ChatPart("text", "then")),
        (ChatPart("call", "", "c1", "add", "not json"), ChatPart("call", "", "c2", "add", {}, raw={"id": "c2"})),
    ],
)
def test_a_response_goes_back_exactly_as_it_came(parts: tuple[ChatPart, ...]) -> None:
    for message in (
        ChatMessage("assistant", parts),
        ChatMessage("assistant", parts, "msg_1", "wire", {"phase": "final"}),
    ):
        told, payload = response_message(Reply(message, "end", Tokens(5, 7), "model-x"), NOON)
        assert model_message(told) == message
        assert told.created_at == NOON
        assert payload["model"] == "model-x" and payload["usage"]["output"] == 7


def test_the_arguments_of_a_call_are_kept_as_they_were_written() -> None:
    written = '{ "b":1,\n "a": 2.50 }'
    raw: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": written}}
    parts = (
        ChatPart("call", "", "c1", "add", {"b": 1, "a": 2.5}, raw=raw),
        ChatPart("call", "", "c2", "add", {}, raw={"call_id": "c2", "arguments": written}),
        ChatPart("call", "", "c3", "add", {"x": 1}),
    )
    told, _ = response_message(Reply(ChatMessage("assistant", parts)), NOON)
    assert [call.arguments for call in told.tool_calls] == [written, written, '{"x":1}']


def test_what_the_user_showed_is_kept_beside_what_was_said() -> None:
    picture = ChatPart("image", raw={"type": "image", "source": {"data": "AAAA"}})
    told = user_message((ChatPart("text", "look"), picture), NOON)
    assert told.content == "look"
    assert model_message(told) == ChatMessage("user", (ChatPart("text", "look"), picture))
    assert user_message((ChatPart("text", "only words"),), NOON).provider is None


def test_a_provider_message_that_is_none_is_an_error_and_not_dropped() -> None:
    with pytest.raises(SnapshotRestoreError, match="provider"):
        model_message(ConversationMessage("assistant", "words", provider={"parts": 5}))


def test_the_usual_form_has_every_message_in_order() -> None:
    call = ToolCallRecord("c1", "add", '{"a": 1}')
    turn = ConversationTurn(
        1,
        ConversationMessage("assistant", "adding", (call,)),
        (ConversationMessage("tool", "3", (), "c1", "add"),),
        user_messages=(ConversationMessage("user", "add"),),
    )
    system = ConversationMessage("system", "be exact")
    state = ConversationState("e", "ns", "key", system, (turn,), unanswered=(ConversationMessage("user", "and?"),))
    wire = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    assert chat_messages(state) == [
        {"role": "system", "content": "be exact"},
        {"role": "user", "content": "add"},
        {"role": "assistant", "content": "adding", "tool_calls": [wire]},
        {"role": "tool", "content": "3", "tool_call_id": "c1"},
        {"role": "user", "content": "and?"},
    ]


def test_the_calls_without_a_result_are_pending() -> None:
    asked = tuple(ToolCallRecord(name, "add", "{}") for name in "abc")
    turn = ConversationTurn(
        1, ConversationMessage("assistant", "", asked), (ConversationMessage("tool", "1", (), "b", "add"),)
    )
    assert [call.call_id for call in turn.pending] == ["a", "c"]
