"""Sessions of typed slices."""

from __future__ import annotations

import threading
import tracemalloc
from dataclasses import dataclass
from typing import Any

import pytest

from everturn.errors import SnapshotRestoreError, UsageError
from everturn.evaluation.recorder import ConversationRecording, enable_conversation_recording, settle
from everturn.evaluation.session import EvaluationSession, append, replace_latest, upsert
from everturn.loop.conversation import ConversationMessage, ConversationState, StartedCall


@dataclass(frozen=True)
class Plan:
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    path: str
    times: int = 1


@dataclass(frozen=True)
class Opened:
    path: str


@dataclass
class Loose:
    value: int


def state(evaluation: str = "e") -> ConversationState:
    return ConversationState(evaluation, "ns", "key", ConversationMessage("system", "be exact"))


def test_reducers_append_replace_and_upsert() -> None:
    session = EvaluationSession()
    session.mutate(Plan).register(Plan, replace_latest)
    session.mutate(Seen).register(Seen, upsert(lambda one: one.path))
    session.mutate(Opened).register(Opened, append)
    for event in (Plan(("a",)), Plan(("b",)), Seen("x"), Seen("y"), Seen("x", 2), Opened("x"), Opened("x")):
        session.dispatch(event)
    assert session.query(Plan).all() == (Plan(("b",)),)
    assert session.query(Seen).all() == (Seen("x", 2), Seen("y"))
    assert session.query(Opened).all() == (Opened("x"), Opened("x"))
    assert session.query(Seen).where(lambda one: one.times > 1) == (Seen("x", 2),)
    assert session.query(Loose).latest() is None


def test_a_slice_may_take_events_of_other_types() -> None:
    session = EvaluationSession()

    def count(items: list[Any], event: Opened) -> None:
        items[:] = [Seen(event.path, (items[-1].times if items else 0) + 1)]

    session.mutate(Seen).register(Opened, count)
    session.dispatch(Opened("x"))
    session.dispatch(Opened("x"))
    assert session.query(Seen).latest() == Seen("x", 2)


def test_an_event_that_nobody_takes_is_an_error() -> None:
    with pytest.raises(UsageError, match="Opened"):
        EvaluationSession().dispatch(Opened("x"))


def test_a_slice_holds_only_frozen_dataclasses_of_its_type() -> None:
    with pytest.raises(UsageError, match="frozen"):
        EvaluationSession().mutate(Loose).register(Loose, append)
    with pytest.raises(UsageError, match="cannot hold"):
        EvaluationSession().mutate(Plan).seed([Seen("x")])  # type: ignore[list-item]


def test_rolling_back_sets_every_slice_back_and_leaves_logs_alone() -> None:
    session = EvaluationSession()
    session.mutate(Plan).register(Plan, replace_latest)
    session.mutate(Seen).register(Seen, append)
    session.mutate(Opened).register(Opened, append, policy="log")
    session.dispatch(Plan(("a",)))
    session.dispatch(Opened("before"))
    before = session.snapshot()
    for event in (Plan(("b",)), Seen("new"), Opened("after")):
        session.dispatch(event)
    session.mutate().rollback(before)
    assert session.query(Plan).latest() == Plan(("a",))
    assert session.query(Seen).all() == ()
    assert session.query(Opened).all() == (Opened("before"), Opened("after"))
    session.dispatch(Seen("later"))
    assert session.query(Seen).all() == (Seen("later"),)
    assert before.slices[0].items == (Plan(("a",)),)


def test_a_rollback_that_fails_changes_nothing() -> None:
    other = EvaluationSession()
    other.mutate(Plan).seed(Plan(("a",)))
    other.mutate(Seen).seed(Seen("x"))
    session = EvaluationSession()
    session.mutate(Plan).seed(Plan(("mine",)))
    with pytest.raises(SnapshotRestoreError, match="registered no such type"):
        session.mutate().rollback(other.snapshot())
    assert session.query(Plan).all() == (Plan(("mine",)),)


def test_a_snapshot_names_its_session_its_family_and_its_tags() -> None:
    parent = EvaluationSession(tags={"team": "blue"})
    child = EvaluationSession(parent=parent)
    child.mutate(Plan).seed(Plan(()))
    assert parent.snapshot().children_ids == (child.session_id,)
    assert (child.snapshot().parent_id, parent.snapshot().tags) == (parent.session_id, {"team": "blue"})
    parent.mutate().reset()
    child.mutate().reset()
    assert child.query(Plan).latest() is None and child.snapshot().slices == ()


def test_several_threads_may_use_one_session() -> None:
    session = EvaluationSession()
    session.mutate(Seen).register(Seen, upsert(lambda one: one.path))

    def work(number: int) -> None:
        for m in range(50):
            session.dispatch(Seen(f"{number}/{m}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(session.query(Seen).all()) == 200


# recording ------------------------------------------------------------------------------------------------------------
def recording_of(session: EvaluationSession) -> ConversationRecording:
    enable_conversation_recording(session)
    found = session.slice(ConversationState)
    assert isinstance(found, ConversationRecording)
    return found


def test_each_message_is_there_as_soon_as_it_was_said() -> None:
    session = EvaluationSession()
    recording = recording_of(session)
    recording.begin(state())
    recording.user(ConversationMessage("user", "add"))
    assert [one.content for one in session.query(ConversationState).all()[0].messages] == ["add"]
    recording.response(ConversationMessage("assistant", "adding"))
    recording.start_call(StartedCall("c1"))
    recording.result(ConversationMessage("tool", "3", (), "c1", "add"))
    recording.user(ConversationMessage("user", "thanks"))
    found = session.query(ConversationState).latest()
    assert found is not None
    assert [one.content for one in found.messages] == ["add", "adding", "3", "thanks"]
    assert (found.turns[0].turn_number, found.turns[0].evaluation_id) == (1, "e")
    assert found.turns[0].started == (StartedCall("c1"),)


def test_a_conversation_that_was_seeded_goes_on_where_it_was() -> None:
    first = recording_of(EvaluationSession())
    first.begin(state())
    for number in range(3):
        first.user(ConversationMessage("user", f"question {number}"))
        first.response(ConversationMessage("assistant", f"answer {number}"), {"model": "m"})
    whole = first.items()[-1]
    session = EvaluationSession()
    session.mutate(ConversationState).seed(whole)
    enable_conversation_recording(session)
    assert session.query(ConversationState).latest() == whole
    recording_of(session).response(ConversationMessage("assistant", "more"))
    longer = session.query(ConversationState).latest()
    assert longer is not None and longer.turns[:3] == whole.turns and longer.turns[3].turn_number == 4


def test_an_earlier_conversation_of_the_session_is_not_dropped() -> None:
    session = EvaluationSession()
    recording = recording_of(session)
    recording.begin(state("one"))
    recording.user(ConversationMessage("user", "first"))
    recording.begin(state("two"))
    session.dispatch(state("three"))
    assert [one.evaluation_id for one in session.query(ConversationState).all()] == ["one", "two", "three"]
    recording.begin(session.query(ConversationState).all()[0])
    assert [one.evaluation_id for one in session.query(ConversationState).all()] == ["two", "three", "one"]
    assert session.query(ConversationState).all()[-1].unanswered[0].content == "first"


def test_recording_costs_the_same_however_long_the_conversation_is() -> None:
    recording = recording_of(EvaluationSession())
    recording.begin(state())

    def turn() -> None:
        recording.user(ConversationMessage("user", "x"))
        recording.response(ConversationMessage("assistant", "y"))
        recording.result(ConversationMessage("tool", "z", (), "c", "t"))

    def memory(times: int) -> int:
        """Bytes at the peak of recording so many turns, beyond what stays."""
        tracemalloc.start()
        try:
            for _ in range(times):
                turn()
            held, peak = tracemalloc.get_traced_memory()
            return peak - held
        finally:
            tracemalloc.stop()

    for _ in range(20_000):
        turn()
    # A tuple of all turns would take 160 kB each time; lists that grow take their turn now and then.
    assert min(memory(5) for _ in range(5)) < 20_000


def test_nothing_can_be_recorded_before_a_conversation_has_begun() -> None:
    recording = recording_of(EvaluationSession())
    with pytest.raises(UsageError):
        recording.user(ConversationMessage("user", "hello"))
    recording.begin(state())
    with pytest.raises(UsageError):
        recording.result(ConversationMessage("tool", "3", (), "c1", "add"))
    with pytest.raises(UsageError, match="no open call"):
        settle(EvaluationSession(), "c1", "it was done")
