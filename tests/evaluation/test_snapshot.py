"""Snapshots: all of a session as JSON, and strictly back."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as some

from everturn.errors import EverturnError, SnapshotRestoreError, UsageError
from everturn.evaluation.session import EvaluationSession
from everturn.evaluation.snapshot import Snapshot
from everturn.loop.conversation import (
    ConversationMessage,
    ConversationState,
    ConversationTurn,
    StartedCall,
    ToolCallRecord,
)

STATE = "everturn.loop.conversation:ConversationState"


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Leaf:
    name: str
    weight: float = 1.0


@dataclass(frozen=True)
class Tree:
    colour: Colour
    leaves: tuple[Leaf, ...]
    notes: Mapping[str, Leaf]
    kind: Literal["oak", 3]
    owner: Leaf | None
    size: int | str
    planted: datetime
    inner: Tree | None = None
    extra: Any = None


@dataclass(frozen=True)
class Picky:
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("secret words")


@dataclass(frozen=True)
class Bytes:
    data: bytes


@dataclass(frozen=True)
class Pair:
    both: tuple[int, str]


@dataclass(frozen=True)
class Free:
    value: Any


@dataclass(frozen=True)
class When:
    at: datetime


def conversation() -> ConversationState:
    call = ToolCallRecord("c1", "add", '{"a": 1}')
    turn = ConversationTurn(
        1,
        ConversationMessage("assistant", "adding", (call,), provider={"role": "assistant", "parts": []}),
        (ConversationMessage("tool", "3", (), "c1", "add", is_error=True),),
        {"model": "m", "usage": {"input": 1}},
        user_messages=(ConversationMessage("user", "add"),),
        started=(StartedCall("c1"),),
    )
    return ConversationState("e", "ns", "key", ConversationMessage("system", "be exact"), (turn,))


def holding(*items: Any) -> EvaluationSession:
    session = EvaluationSession(tags={"team": "blue"})
    for item in items:
        session.mutate(type(item)).seed(item)
    return session


def written(*items: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(holding(*items).snapshot().to_json())
    return found


def problems(value: Any, session: EvaluationSession | None = None) -> list[str]:
    """What is said about a snapshot that cannot be restored."""
    with pytest.raises(SnapshotRestoreError) as failure:
        (session or EvaluationSession()).mutate().rollback(Snapshot.from_json(json.dumps(value)))
    return failure.value.problems


def test_a_conversation_comes_back_as_it_was() -> None:
    state = conversation()
    session = EvaluationSession()
    session.mutate().rollback(Snapshot.from_json(holding(state).snapshot().to_json()))
    assert session.query(ConversationState).latest() == state


def test_the_envelope_is_that_of_the_document() -> None:
    value = written(conversation())
    assert sorted(value) == ["children_ids", "created_at", "parent_id", "policies", "slices", "tags", "version"]
    assert (value["version"], value["tags"], value["policies"]) == ("1", {"team": "blue"}, {STATE: "state"})
    assert datetime.fromisoformat(value["created_at"]).utcoffset() == timedelta(0)
    (one,) = value["slices"]
    assert (one["slice_type"], one["item_type"], len(one["items"])) == (STATE, STATE, 1)
    assert one["items"][0]["turns"][0]["assistant_message"]["tool_calls"][0]["arguments"] == '{"a": 1}'


def test_types_of_the_program_come_back_too() -> None:
    leaf = Leaf("é\n\ud800")
    inner = Tree(Colour.RED, (), {}, 3, None, "big", datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2))))
    tree = Tree(Colour.BLUE, (leaf, leaf), {"a": leaf}, "oak", leaf, 2**70, inner.planted, inner, {"x": [1, None]})
    session = holding(Tree(Colour.RED, (), {}, "oak", None, 1, inner.planted))
    session.mutate().rollback(Snapshot.from_json(holding(tree).snapshot().to_json()))
    assert session.query(Tree).all() == (tree,)


texts = some.text(max_size=12)
calls = some.builds(ToolCallRecord, texts, texts, texts)
moments = some.datetimes(timezones=some.just(UTC))
messages = some.builds(
    ConversationMessage,
    some.sampled_from(("system", "assistant", "user", "tool")),
    texts,
    some.lists(calls, max_size=2).map(tuple),
    some.none() | texts,
    some.none() | texts,
    moments,
    some.uuids(),
    some.booleans(),
    some.none() | some.dictionaries(texts, some.none() | some.booleans() | some.integers() | texts, max_size=3),
)
turns = some.builds(
    ConversationTurn,
    some.integers(1),
    messages,
    some.lists(messages, max_size=2).map(tuple),
    some.none(),
    texts,
    moments,
    some.lists(messages, max_size=2).map(tuple),
    some.lists(some.builds(StartedCall, texts, some.integers(1)), max_size=2).map(tuple),
)
states = some.builds(
    ConversationState, texts, texts, texts, messages, some.lists(turns, max_size=3).map(tuple), moments, some.uuids()
)


@given(states)
def test_every_conversation_comes_back_as_it_was(state: ConversationState) -> None:
    assert Snapshot.from_json(holding(state).snapshot().to_json()).slices[0].items == (state,)


def changed(change: Any) -> dict[str, Any]:
    value = written(conversation())
    change(value, value["slices"][0]["items"][0])
    return value


BAD: dict[str, tuple[Any, str]] = {
    "missing member": (lambda all, state: all.pop("tags"), "tags: missing"),
    "member too many": (lambda all, state: all.update(more=1), "more: no such field"),
    "wrong member": (lambda all, state: all.update(slices={}), "slices: expected a list, found an object"),
    "naive envelope": (lambda all, state: all.update(created_at="2026-01-01T00:00"), "created_at: a time without"),
    "bad policy": (lambda all, state: all["policies"].update(x="maybe"), "policies.x: expected one of state, log"),
    "bad parent": (lambda all, state: all.update(parent_id="me"), "parent_id: text does not fit"),
    "two slices": (lambda all, state: all["slices"].append(all["slices"][0]), "slices[1].slice_type: there twice"),
    "two types": (lambda all, state: all["slices"][0].update(item_type="a:B"), "slices[0].item_type: not the type"),
    "missing field": (lambda all, state: state.pop("prompt_ns"), "slices[0].items[0].prompt_ns: missing"),
    "field too many": (lambda all, state: state.update(__class__="x"), "slices[0].items[0].__class__: no such field"),
    "wrong type": (lambda all, state: state.update(prompt_key=5), "items[0].prompt_key: expected text, found a whole"),
    "truth is no number": (
        lambda all, state: state["turns"][0].update(turn_number=True),
        "turns[0].turn_number: expected a whole number, found true or false",
    ),
    "naive time": (lambda all, state: state.update(created_at="2026-01-01T00:00:00"), "created_at: a time without"),
    "no time": (lambda all, state: state.update(created_at="soon"), "created_at: expected a time in ISO 8601"),
    "no id": (lambda all, state: state.update(state_id="nobody"), "state_id: expected a UUID, found text"),
    "no role": (
        lambda all, state: state["system_message"].update(role="robot"),
        "system_message.role: expected one of system, assistant, user, tool",
    ),
    "deep inside": (
        lambda all, state: state["turns"][0]["assistant_message"]["tool_calls"][0].update(arguments={}),
        "turns[0].assistant_message.tool_calls[0].arguments: expected text, found an object",
    ),
    "inside what may be null": (
        lambda all, state: state["turns"][0].update(provider_payload=[]),
        "turns[0].provider_payload: a list does not fit",
    ),
    "an item that is none": (lambda all, state: all["slices"][0].update(items=[7]), "items[0]: expected an object"),
}


@pytest.mark.parametrize("name", BAD)
def test_every_bad_field_is_told_by_its_name(name: str) -> None:
    change, sentence = BAD[name]
    (problem,) = problems(changed(change))
    assert sentence in problem


def test_all_bad_fields_are_told_at_once() -> None:
    def spoil(whole: dict[str, Any], state: dict[str, Any]) -> None:
        state["prompt_ns"] = None
        state["turns"][0]["turn_number"] = "one"
        state["turns"][0]["tool_messages"][0]["created_at"] = "2026-01-01T00:00:00"
        state["turns"][0]["tool_messages"][0].pop("name")
        state["turns"][0]["surprise"] = 1

    found = problems(changed(spoil))
    assert len(found) == 5
    assert {one.rpartition(": ")[0].rpartition(".")[2] for one in found} == {
        "prompt_ns", "turn_number", "created_at", "name", "surprise",
    }  # fmt: skip


def test_what_is_wrong_is_told_without_a_word_of_what_is_in_it() -> None:
    def spoil(whole: dict[str, Any], state: dict[str, Any]) -> None:
        state["evaluation_id"] = ["hunter2"]
        state["system_message"]["role"] = "hunter2"
        state["say hunter2"] = 1

    assert "hunter2" not in " ".join(problems(changed(spoil)))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"text"', "{}", "[" * 100_000, "\x00", b"\xff\xfe"])
def test_what_is_no_snapshot_is_no_snapshot(text: str | bytes) -> None:
    with pytest.raises(SnapshotRestoreError):
        Snapshot.from_json(text)


@pytest.mark.parametrize("version", ["2", 1, None, ["1"]])
def test_an_unknown_version_is_refused_before_anything_else(version: Any) -> None:
    value = {**written(conversation()), "version": version, "a field of the future": 1}
    assert problems(value) == ["version: this everturn knows '1' only"]


def test_nothing_is_imported_or_made_because_a_snapshot_says_so() -> None:
    sys.modules.pop("antigravity", None)
    for name in ("antigravity:fly", "os:system", "tests.evaluation.test_snapshot:Leaf", "builtins:dict"):
        value = written(conversation())
        value["slices"][0].update(slice_type=name, item_type=name, items=[{"name": "x", "weight": 1.0}])
        assert problems(value) == ["slices[0].slice_type: this session has registered no such type"]
    assert "antigravity" not in sys.modules


def test_an_object_that_refuses_its_values_is_told_too() -> None:
    session = holding(Picky(1))
    value = written(Picky(1))
    value["slices"][0]["items"][0]["number"] = -1
    assert problems(value, session) == ["slices[0].items[0]: ValueError"]
    assert session.query(Picky).latest() == Picky(1)


@pytest.mark.parametrize("item", [Bytes(b""), Pair((1, "a"))])
def test_a_type_that_could_not_come_back_is_refused_when_it_is_registered(item: Any) -> None:
    with pytest.raises(UsageError, match="snapshot"):
        holding(item)


@pytest.mark.parametrize(
    "item",
    [Free(float("nan")), Free(b"bytes"), Free({1, 2} and object()), When(datetime(2026, 1, 1))],  # noqa: DTZ001
)
def test_what_json_cannot_say_is_refused_when_it_is_written(item: Any) -> None:
    with pytest.raises(UsageError, match="snapshot"):
        holding(item).snapshot().to_json()


def test_a_snapshot_does_not_change_when_the_session_does() -> None:
    session = holding(conversation())
    snapshot = session.snapshot()
    text = snapshot.to_json()
    session.mutate(ConversationState).clear()
    assert snapshot.to_json() == text
    value = json.loads(text)
    again = copy.deepcopy(value)
    restored = Snapshot.from_json(json.dumps(value))
    assert json.loads(restored.to_json()) == again


@given(some.recursive(some.none() | some.booleans() | some.integers() | texts, lambda inner: some.lists(inner) | some.dictionaries(texts, inner), max_leaves=8))  # fmt: skip
def test_no_json_at_all_makes_it_fail_in_another_way(value: Any) -> None:
    whole = written(conversation())
    whole["slices"][0]["items"] = [value]
    try:
        EvaluationSession().mutate().rollback(Snapshot.from_json(json.dumps(whole)))
    except EverturnError as failure:
        assert isinstance(failure, SnapshotRestoreError)
