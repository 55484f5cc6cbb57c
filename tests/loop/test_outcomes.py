"""An outcome says what happened, and what takes too long is stopped."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from everturn.errors import UsageError
from everturn.llm import anthropic_messages
from everturn.llm.protocol import ChatMessage, Reply
from everturn.loop.execution import Execution
from everturn.loop.journal import Journal
from everturn.loop.loop import Budget, Loop
from everturn.loop.records import IntendedCall
from everturn.loop.tools import ReconciledResult, ToolContext, tool
from everturn.store.contract import Store
from tests.llm.asking_models import asks, backend
from tests.loop.scripted_model import Model, calls, says
from tests.model_server import ModelServer
from tests.model_wires import Says
from tests.waiting import wait_until


@pytest.mark.parametrize(
    ("stop", "state"), [("end", "done"), ("length", "truncated"), ("refusal", "refused"), ("cut", "cut")]
)
def test_the_state_follows_the_reason_why_the_model_stopped(archive: Store, stop: str, state: str) -> None:
    model = Model([says("as far as it goes", stop)])
    with Journal.open(archive, "s") as journal:
        outcome = Loop(model).run(journal, "go")
        assert (outcome.state, outcome.text) == (state, "as far as it goes")
        assert outcome.reply is not None and outcome.reply.stop == stop
    if stop != "cut":  # which is asked again
        with Journal.open(archive, "s") as journal:
            again = Loop(model).resume(journal)
        assert (again.state, again.text, again.requests) == (state, outcome.text, 0)
        assert again.reply == outcome.reply


def test_a_session_that_was_never_asked_anything_is_idle(archive: Store) -> None:
    with Journal.open(archive, "s") as journal:
        outcome = Loop(Model([])).resume(journal)
    assert (outcome.state, outcome.text, outcome.reply) == ("idle", "", None)


def test_an_answer_that_the_provider_paused_goes_on_by_itself(archive: Store) -> None:
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    paused = {"type": "message", "role": "assistant", "stop_reason": "pause_turn", "content": [search]}
    model = Model([anthropic_messages.read(paused), says("found it")])
    with Journal.open(archive, "s") as journal:
        outcome = Loop(model).run(journal, "look it up")
    assert (outcome.state, outcome.text, outcome.requests) == ("done", "found it", 2)
    assert model.asked[1].messages[-1].parts[0].raw == search


def test_the_time_of_a_turn_cancels_the_request(archive: Store) -> None:
    with ModelServer([Says("never heard", wait=600)]) as server, Journal.open(archive, "s") as journal:
        model = backend(server, "chat")
        before = {one.name for one in threading.enumerate()}
        outcome = Loop(model, budget=Budget(seconds=0.3)).run(journal, "go")
        assert (outcome.state, outcome.requests) == ("over_budget", 0)
        for thread in threading.enumerate():  # the connection is closed, so nobody reads from it any more
            if thread.name == "model" and thread.name not in before:
                thread.join(60)
                assert not thread.is_alive()


def test_the_time_of_a_turn_stops_its_calls_and_leaves_the_others_for_later(
    archive: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    passed = (
        0.0  # seconds, beside those of the real clock: the time is over when the first call runs, however slow it was
    )
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + passed)
    monkeypatch.setattr(Execution, "_wait_seconds", lambda _: 0.02)

    @tool(alone=True)
    def work(name: str, context: ToolContext) -> str:
        """Work until it is told to stop."""
        nonlocal passed
        begun.append(name)
        if name == "long":
            passed += 600
            context.stop.wait(60)
        return name

    model = Model([calls(("a", "work", {"name": "long"}), ("b", "work", {"name": "short"})), says("both")])
    with Journal.open(archive, "s") as journal:
        outcome = Loop(model, [work], budget=Budget(seconds=600)).run(journal, "go")
        assert (outcome.state, begun, outcome.waiting) == ("over_budget", ["long"], ())
        again = Loop(model, [work]).resume(journal)
    assert (again.state, begun) == ("done", ["long", "short"])
    told = [part.text for part in model.asked[1].messages[-1].parts]
    assert told[0].startswith("timed out after ") and told[1] == "short"


def test_asynchronous_tools_share_one_event_loop(archive: Store) -> None:
    lock: list[asyncio.Event] = []

    @tool
    async def first() -> str:
        """Make something that belongs to the event loop, and wait for the other."""
        lock.append(asyncio.Event())
        await asyncio.wait_for(lock[0].wait(), 60)
        return "released"

    @tool
    async def second() -> str:
        """Use it."""
        while not lock:
            await asyncio.sleep(0.001)
        lock[0].set()
        return "set"

    model = Model([calls(("a", "first"), ("b", "second")), calls(("c", "second")), says("ok")])
    with Journal.open(archive, "s") as journal:
        Loop(model, [first, second]).run(journal, "go")
        results = [part.text for one in journal.past.messages for part in one.parts if part.kind == "result"]
    assert results == ["released", "set", "set"]


def test_a_tool_that_exits_does_not_end_the_event_loop_of_the_others(archive: Store) -> None:
    @tool
    async def leave() -> None:
        """Leave."""
        raise SystemExit(3)

    @tool
    async def stay() -> str:
        """Stay."""
        return "here"

    model = Model([calls(("a", "leave")), calls(("b", "stay")), says("ok")])
    with Journal.open(archive, "s") as journal:
        Loop(model, [leave, stay]).run(journal, "go")
        results = [part.text for one in journal.past.messages for part in one.parts if part.kind == "result"]
    assert results == ["SystemExit: 3", "here"]


def test_reconcile_and_approval_may_be_asynchronous(archive: Store) -> None:
    async def look(context: ToolContext, arguments: dict[str, Any]) -> ReconciledResult:
        await asyncio.sleep(0)
        return ReconciledResult(f"paid {arguments['amount']}")

    async def is_much(arguments: dict[str, Any]) -> bool:
        await asyncio.sleep(0)
        return bool(arguments["amount"] > 100)

    @tool(reconcile=look, approval=is_much)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount} now"

    model = Model([calls(("a", "pay", {"amount": 1}), ("b", "pay", {"amount": 200})), says("ok")])
    with Journal.open(archive, "s") as journal:
        part = model.replies[0].calls[0]
        journal.accept("go")
        journal.response(Reply(ChatMessage("assistant", (part,)), "calls"))
        journal.intend([IntendedCall("a", "pay")])  # and the process died
        outcome = Loop(Model([says(""), says("ok")]), [pay]).resume(journal)
        assert (outcome.state, [one.did for one in outcome.settled]) == ("done", ["reconciled"])
    with Journal.open(archive, "t") as journal:
        outcome = Loop(model, [pay]).run(journal, "go")
        assert [(one.call_id, one.why) for one in outcome.waiting] == [("b", "approval")]


def test_a_human_may_change_the_arguments_and_the_model_is_told(archive: Store) -> None:
    paid: list[int] = []

    @tool(approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    model = Model([calls(("a", "pay", {"amount": 900})), says("ok")])
    with Journal.open(archive, "s") as journal:
        assert Loop(model, [pay]).run(journal, "go").state == "paused"
        with pytest.raises(UsageError, match=r"pay has no argument amont; its arguments are amount"):
            journal.approve("a", arguments={"amont": 9})
        with pytest.raises(UsageError, match=r"pay needs amount; its arguments are amount"):
            journal.approve("a", arguments={})
        journal.approve("a", "ann", arguments={"amount": 9})
        outcome = Loop(model, [pay]).resume(journal)
    assert (outcome.state, paid) == ("done", [9])
    (told,) = model.asked[1].messages[-1].parts
    assert told.text == '[the human changed the arguments; the call ran with {"amount":9}]\npaid 9'


def test_changed_arguments_survive_a_crash(archive: Store) -> None:
    @tool(approval=True, policy="retry")
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    model = Model([calls(("a", "pay", {"amount": 900})), says("ok")])
    with Journal.open(archive, "s") as journal:
        Loop(model, [pay]).run(journal, "go")
        journal.approve("a", arguments={"amount": 9})
        journal.intend([IntendedCall("a", "pay")])  # and the process died
    with Journal.open(archive, "s") as journal:
        Loop(model, [pay]).resume(journal)
    assert model.asked[1].messages[-1].parts[0].text.endswith("paid 9")


def test_a_request_that_is_left_is_aborted_while_it_waits_for_its_answer() -> None:
    with ModelServer([Says("never heard", wait=600)]) as server:
        stream = backend(server, "messages").stream(asks())
        seen: list[BaseException | object] = []

        def read() -> None:
            try:
                seen.extend(stream)
            except BaseException as failure:
                seen.append(failure)

        thread = threading.Thread(target=read)
        thread.start()
        wait_until(lambda: server.asked)
        stream.abort()
        thread.join(60)
        assert not thread.is_alive() and len(server.asked) == 1
