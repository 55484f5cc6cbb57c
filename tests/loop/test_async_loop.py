"""The loop for asynchronous programs: one event loop, events, and cancellation that leaves a truthful journal."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from everturn.errors import ModelUnreachable
from everturn.loop.async_loop import AsyncLoop, LoopEvent
from everturn.loop.journal import Journal
from everturn.loop.loop import Loop, WaitingCall
from everturn.loop.settlement import INTERRUPTED_RESULT
from everturn.loop.subagent import subagent
from everturn.loop.tools import tool
from everturn.store.contract import SessionFilter, Store
from tests.loop.scripted_model import Model, calls, says


@tool
async def where() -> str:
    """Tell which event loop this is."""
    return str(id(asyncio.get_running_loop()))


def test_tools_run_in_the_event_loop_of_the_caller_and_events_tell_what_happens(archive: Store) -> None:
    async def work() -> tuple[list[LoopEvent], str]:
        with Journal.open(archive, "s") as journal:
            loop = AsyncLoop(Model([calls(("a", "where")), says("so it is")]), [where])
            return [event async for event in loop.stream(journal, "go")], str(id(asyncio.get_running_loop()))

    events, mine = asyncio.run(work())
    assert [event.kind for event in events] == ["call", "result", "text", "text", "text", "done"]
    assert (events[1].text, events[1].name) == (mine, "where")
    assert events[-1].outcome is not None and events[-1].outcome.state == "done" and events[-1].text == "so it is"


def test_many_sessions_run_at_the_same_time(tmp_path: Path) -> None:
    async def work() -> list[str]:
        loop = AsyncLoop(Model([calls(("a", "where")), says("done")]), [where])

        async def one(n: int) -> str:
            with Journal.open(tmp_path / "archive.db", f"s{n}") as journal:
                return (await loop.run(journal, "go")).state

        Journal.open(tmp_path / "archive.db").close()
        return await asyncio.gather(*map(one, range(3)))

    assert asyncio.run(work()) == ["done"] * 3


def test_cancelling_the_task_stops_the_tools_and_records_it(archive: Store) -> None:
    begun = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()

    async def work(journal: Journal) -> None:
        task = asyncio.ensure_future(AsyncLoop(Model([calls(("a", "wait"))]), [wait]).run(journal, "go"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Journal.open(archive, "s") as journal:
        asyncio.run(work(journal))
        assert [part.text for part in journal.past.messages[-1].parts] == [INTERRUPTED_RESULT]


def test_leaving_the_events_stops_the_turn(archive: Store) -> None:
    async def work(journal: Journal) -> None:
        events = AsyncLoop(Model([calls(("a", "where")), says("a long story")]), [where]).stream(journal, "go")
        async for event in events:
            if event.kind == "result":
                break
        await events.aclose()

    with Journal.open(archive, "s") as journal:
        asyncio.run(work(journal))
        journal.note("still ours")  # nobody else writes


def test_a_model_that_fails_is_told_as_an_outcome_and_raised_by_run(archive: Store) -> None:
    def fail() -> None:
        raise ModelUnreachable("m", "no connection")

    async def work(journal: Journal) -> LoopEvent:
        loop = AsyncLoop(Model([says("a b")], while_speaking=fail))
        with pytest.raises(ModelUnreachable):
            await loop.run(journal, "go")
        return [event async for event in loop.stream(journal)][-1]

    with Journal.open(archive, "s") as journal:
        last = asyncio.run(work(journal))
    assert last.outcome is not None and last.outcome.state == "failed"
    assert isinstance(last.outcome.error, ModelUnreachable)


def test_approvals_may_be_decided_in_the_event_loop(archive: Store) -> None:
    paid: list[int] = []

    @tool(approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    async def decide(call: WaitingCall) -> object:
        await asyncio.sleep(0)
        amount = call.arguments["amount"]
        return {"amount": 5} if amount == 500 else "too much" if amount > 500 else None if amount == 0 else True

    async def work(journal: Journal, *amounts: int) -> str:
        wanted = [(f"c{n}", "pay", {"amount": n}) for n in amounts]
        outcome = await AsyncLoop(Model([calls(*wanted), says("ok")]), [pay], decide=decide).run(journal, "go")
        return outcome.state

    with Journal.open(archive, "s") as journal:
        assert asyncio.run(work(journal, 1, 500, 501)) == "done"
        assert sorted(paid) == [1, 5]
        assert "too much" in journal.past.messages[2].parts[2].text
    with Journal.open(archive, "t") as journal:
        assert asyncio.run(work(journal, 0)) == "paused"


def test_a_subagent_is_a_session_of_its_own_and_is_continued_after_a_crash(tmp_path: Path) -> None:
    url = tmp_path / "archive.db"
    inner = Model([calls(("x", "where")), says("the answer of the child")])
    helper = subagent(Loop(inner, [where]), "helper", "Helps.")
    outer = Model([calls(("a", "helper", {"task": "find it"})), says("done")])

    async def work(journal: Journal) -> str:
        outcome = await AsyncLoop(outer, [helper]).run(journal, "go")
        return outcome.text + str(id(asyncio.get_running_loop()))

    with Journal.open(url, "parent") as journal:
        assert asyncio.run(work(journal)).startswith("done")
        told = journal.past.messages[2].parts[0].text
        store = journal.store
        with journal.alone:
            (child,) = [
                row for row, _ in store.sessions(SessionFilter(agent="journal"), 10)[0] if row.native_id != "parent"
            ]
            links = store.links_to("parent")
    assert told == "the answer of the child" and len(inner.asked) == 2
    assert child.native_id.startswith("parent/") and [link.relation for link in links] == ["subagent_of"]
