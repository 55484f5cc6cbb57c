"""Histories with holes: programs that write as they like, and die where they like. The model is told the truth, once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import pytest

from benchmarks.durable.scene import invalid, refused_by_providers
from everturn.llm.history_repair import NO_RECORD, repair_history
from everturn.llm.protocol import ChatPart
from everturn.loop.execution import ExecutionLimits
from everturn.loop.journal import Journal, open_archive
from everturn.loop.journal_state import JournalEnd, JournalPlace, JournalState
from everturn.loop.loop import Loop
from everturn.loop.tools import tool
from everturn.loop.turn_log import LoggedTurn, TurnLog
from everturn.store.contract import Store
from tests.loop.scripted_model import Model, calls, says

CALLS = [{"id": name, "function": {"name": "act", "arguments": "{}"}} for name in "abc"]
MORE = [{"id": name, "function": {"name": "act", "arguments": "{}"}} for name in "ad"]  # an id that was used before

#: As a program with a loop of its own writes it: results late, words in the middle of calls, calls that nobody answers.
TALK = [
    LoggedTurn("user", "go"),
    LoggedTurn("assistant", "well", tool_calls=CALLS),
    LoggedTurn("tool", "a is done", tool_call_id="a"),
    LoggedTurn("user", "hurry up"),
    LoggedTurn("tool", "b is done", tool_call_id="b"),
    LoggedTurn("assistant", "I do"),
    LoggedTurn("user", "and the rest?"),
    LoggedTurn("assistant", "", tool_calls=MORE),
    LoggedTurn("tool", "c is done", tool_call_id="c"),
    LoggedTurn("tool", "d is done", tool_call_id="d"),
    LoggedTurn("user", "nothing yet?"),
    LoggedTurn("assistant", "no"),
    LoggedTurn("tool", "a is done again", tool_call_id="a"),
    LoggedTurn("user", "so?"),
]
ANSWERS = [says("?")] * 3 + [says("the end")] * 2


@tool
def act() -> str:
    """Do it."""
    return "acted"


def written(turns: Sequence[LoggedTurn]) -> tuple[Store, str]:
    ticks = count(1_700_000_000_000, 1000)
    log = TurnLog(open_archive("memory:"), lambda: next(ticks))
    session = log.create_session("/project", "model-1")
    for turn in turns:
        log.append_turn(session, turn)
    return log.store, session


def results(past: JournalState) -> Iterator[ChatPart]:
    return (part for message in past.messages for part in message.parts if part.kind == "result")


def lines_of(store: Store) -> int:
    return store.version(1).lines


@pytest.mark.parametrize("kept", range(1, len(TALK) + 1))
def test_a_conversation_in_any_order_that_ends_anywhere_is_gone_on_with(kept: int) -> None:
    store, session = written(TALK[:kept])
    model = Model(ANSWERS)
    with Journal.open(store, session) as journal:
        Loop(model, [act], interactive=False).run(journal, "and now?")
        told = {part.text: part.is_error for part in results(journal.past)}
        assert not journal.past.orphans
        assert not any("no recorded result" in one for one in repair_history(journal.past.history).mended)
    for turn in TALK[:kept]:
        assert turn.role != "tool" or told[turn.content or ""] is False  # a success on record is told as one
    assert model.asked
    for request in model.asked:
        assert refused_by_providers(request) == []
        assert invalid(request.messages) == []


@pytest.mark.parametrize("kept", range(1, len(TALK) + 1))
def test_what_had_to_be_said_is_written_once(kept: int) -> None:
    store, session = written(TALK[:kept])
    with Journal.open(store, session) as journal:
        Loop(Model(ANSWERS), [act], interactive=False).resume(journal)
        history = list(journal.past.history)
    before = lines_of(store)
    with Journal.open(store, session) as journal:
        assert journal.past.history == history
        Loop(Model(ANSWERS), [act], interactive=False).resume(journal)
        assert journal.past.history == history
    assert lines_of(store) == before + 1  # the lease


def test_a_call_that_the_model_went_on_without_is_told_to_be_in_doubt(store: Store) -> None:
    ticks = count(1_700_000_000_000, 1000)
    log = TurnLog(store, lambda: next(ticks))
    session = log.create_session("/project", "model-1")
    for turn in (*TALK[:3], LoggedTurn("assistant", "I went on")):
        log.append_turn(session, turn)
    with Journal.open(store, session) as journal:
        assert [call_id for _, call_id in journal.past.orphans] == ["b", "c"]
        Loop(Model([says("?")] * 2 + [says("ok")]), [act]).run(journal, "well?")
        told = {part.call_id: (part.text, part.is_error) for part in results(journal.past)}
    assert told == {"a": ("a is done", False), "b": (NO_RECORD, True), "c": (NO_RECORD, True)}
    ends = {call.call_id: call.error_class for call in store.calls(1)}
    assert (ends["b"], ends["c"]) == ("interrupted", "interrupted")
    with pytest.raises(Exception, match="no open call"):
        Journal.open(store, session).result("b", "after all")


def test_a_call_that_another_program_may_have_begun_is_not_begun_again() -> None:
    done: list[str] = []

    @tool(name="act")
    def again() -> str:
        """Do it."""
        done.append("effect")
        return "acted"

    store, session = written(TALK[:2])
    with Journal.open(store, session) as journal:
        assert {call.state for call in journal.past.open_calls} == {"in doubt"}
        outcome = Loop(Model([says("the end")]), [again], limits=ExecutionLimits(workers=1)).resume(journal)
    assert outcome.state == "paused" and done == []
    assert {waiting.why for waiting in outcome.waiting} == {"in_doubt"}


def test_a_result_that_comes_late_goes_to_its_own_call(store: Store) -> None:
    ticks = count(1_700_000_000_000, 1000)
    log = TurnLog(store, lambda: next(ticks))
    session = log.create_session("/project", "model-1")
    for turn in TALK[:9]:
        log.append_turn(session, turn)
    with Journal.open(store, session) as journal:
        roles = [message.role for message in journal.past.messages]
        assert roles == ["user", "assistant", "tool", "user", "assistant", "user", "assistant"]
        assert [part.text for part in journal.past.messages[2].parts] == ["a is done", "b is done", "c is done"]
        assert [(call.part.call_id, call.state) for call in journal.past.open_calls] == [
            ("a", "in doubt"), ("d", "in doubt"),
        ]  # fmt: skip


def test_any_record_may_have_been_forgotten() -> None:
    """What is left blank says nothing; what was said about it goes with it; the rest can be gone on with."""
    replies = [calls(("a", "act"), ("b", "act")), calls(("c", "act")), says("the end"), *[says("more")] * 3]
    whole = open_archive("memory:")
    with Journal.open(whole, "s1") as journal:
        Loop(Model(replies), [act], limits=ExecutionLimits(workers=1)).run(journal, "go")
    lines = whole.read_raw(1, 0, 1 << 20).splitlines(keepends=True)
    for gone in range(1, len(lines)):
        store = open_archive("memory:")
        left = [line if place != gone else b" " * (len(line) - 1) + b"\n" for place, line in enumerate(lines)]
        JournalEnd(store, "s1", JournalPlace(), ("", ""), lambda: 1).append(b"".join(left))
        model = Model(replies)
        with Journal.open(store, "s1") as journal:
            known = {part.text for part in results(journal.past)}
            assert Loop(model, [act], interactive=False).run(journal, "and?").state == "done"
            assert known <= {part.text for part in results(journal.past)}
        for request in model.asked:
            assert refused_by_providers(request) == []
