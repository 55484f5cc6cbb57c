"""Ask the model, run what it calls, until there is an answer."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from everturn.errors import ModelUnreachable, UsageError
from everturn.llm.protocol import ChatMessage, ChatPart, Delta, ModelRequest, Reply
from everturn.loop import execution, settlement
from everturn.loop.async_loop import AsyncLoop
from everturn.loop.execution import Execution, ExecutionLimits
from everturn.loop.journal import Journal
from everturn.loop.loop import Budget, Loop, Watch
from everturn.loop.settlement import CallEnding
from everturn.loop.tools import Tool, ToolContext, tool
from everturn.store.contract import Store
from tests.loop.scripted_model import Model, calls, says
from tests.waiting import wait_until

LONGEST = 60  # seconds; no test waits that long unless something is wrong


@tool(read_only=True)
def add(first: int, second: int = 1) -> int:
    """Add two numbers."""
    return first + second


def told(journal: Journal) -> dict[str, tuple[str, bool]]:
    """What the model was told about each call."""
    return {
        part.call_id: (part.text, part.is_error)
        for message in journal.past.messages
        for part in message.parts
        if part.kind == "result"
    }


class Clock:
    """The clock of running calls, as many seconds ahead as a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        monkeypatch.setattr(execution, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + self.seconds))


def test_a_conversation_with_tools_goes_on_until_there_is_an_answer(store: Store) -> None:
    model = Model([calls(("a", "add", {"first": 1, "second": 2}), ("b", "add", {"first": 5})), says("three and six")])
    journal = Journal.open(store)
    outcome = Loop(model, [add], "be exact").run(journal, "add up")
    assert (outcome.state, outcome.text, outcome.requests) == ("done", "three and six", 2)
    assert (outcome.usage.input, outcome.usage.output) == (200, 20)
    assert told(journal) == {"a": ("3", False), "b": ("6", False)}
    assert (model.asked[0].system, model.asked[0].tools) == ("be exact", (add.spec,))
    assert [message.role for message in model.asked[1].messages] == ["user", "assistant", "tool"]
    again = Loop(model, [add], "be exact").resume(journal)
    assert (again.state, again.text, again.requests) == ("done", "three and six", 0)


def test_the_words_come_as_they_are_spoken(archive: Store) -> None:
    heard: list[Delta] = []
    Loop(Model([says("one two three")]), watch=Watch(heard.append)).run(Journal.open(archive), "count")
    assert [delta.text for delta in heard[:-1]] == ["one ", "two ", "three "]
    assert heard[-1].reply is not None


def test_calls_of_one_response_run_side_by_side(archive: Store) -> None:
    together = threading.Barrier(3)

    @tool
    def meet() -> str:
        """Wait for the others."""
        together.wait(LONGEST)
        return "met"

    journal = Journal.open(archive)
    Loop(Model([calls(("a", "meet"), ("b", "meet"), ("c", "meet")), says("ok")]), [meet]).run(journal, "meet")
    assert set(told(journal).values()) == {("met", False)}


def test_no_more_calls_run_at_once_than_allowed_and_some_only_alone(archive: Store) -> None:
    running, most, lock, together = [0], [0], threading.Lock(), threading.Barrier(2)
    beside: list[int] = []
    first_two: list[int] = []

    def body(note: list[int]) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        if note is first_two:
            together.wait(LONGEST)
        with lock:
            note.append(running[0])
            running[0] -= 1

    @tool
    def work(context: ToolContext) -> None:
        """Work."""
        body(first_two if context.call_id in "01" else [])

    @tool(alone=True)
    def careful() -> None:
        """Work alone."""
        body(beside)

    names = ["work", "work", "work", "careful", "work", "careful", "work"]
    journal = Journal.open(archive)
    model = Model([calls(*((str(n), name) for n, name in enumerate(names))), says("ok")])
    Loop(model, [work, careful], limits=ExecutionLimits(workers=2)).run(journal, "go")
    assert most[0] == 2
    assert beside == [1, 1]
    assert len(told(journal)) == len(names)


def test_an_intent_is_written_before_each_call_and_its_result_after(archive: Store) -> None:
    journal = Journal.open(archive)
    seen: list[list[str]] = []

    @tool
    def look(context: ToolContext) -> None:
        """See what the journal knows."""
        seen.append([one.name for one in journal.past.calls[context.call_id].intents])

    model = Model([calls(*((str(n), "look") for n in range(5))), says("ok")])
    Loop(model, [look], limits=ExecutionLimits(workers=2)).run(journal, "go")
    assert seen == [["look"]] * 5


def test_what_a_tool_raises_is_its_answer(archive: Store) -> None:
    @tool
    def fail() -> None:
        """Fail."""
        raise RuntimeError("no such luck")

    @tool
    def leave() -> None:
        """Try to leave."""
        raise SystemExit(3)

    journal = Journal.open(archive)
    replies = [
        calls(("a", "fail"), ("b", "leave"), ("c", "gone"), ("d", "add", {"first": "x"}), ("e", "add", "[")),
        says("ok"),
    ]
    Loop(Model(replies), [fail, leave, add]).run(journal, "go")
    answers = told(journal)
    assert answers["a"] == ("RuntimeError: no such luck", True)
    assert answers["b"] == ("SystemExit: 3", True)
    assert answers["c"] == ("there is no tool 'gone'; it was not run", True)
    assert answers["d"][0].startswith("invalid arguments: Expected `int`, got `str`")
    assert answers["e"] == ("invalid arguments: the arguments are not a JSON object; it was not run", True)
    classes = {call.call_id: call.error_class for call in archive.calls(1)}
    assert (classes["a"], classes["c"], classes["d"], classes["e"]) == (
        "other", "unknown_tool", "invalid_input", "invalid_input",
    )  # fmt: skip


def test_a_call_that_takes_too_long_is_told_to_stop_and_not_waited_for(archive: Store) -> None:
    stopped = threading.Event()

    @tool(timeout=0.05)
    def slow(context: ToolContext) -> str:
        """Wait until told."""
        stopped.set() if context.stop.wait(LONGEST) else None
        return "too late"

    journal = Journal.open(archive)
    outcome = Loop(Model([calls(("a", "slow"), ("b", "add", {"first": 1})), says("ok")]), [slow, add]).run(
        journal, "go"
    )
    assert outcome.state == "done"
    assert told(journal)["a"] == (settlement.timed_out_result(0.05), True)
    assert told(journal)["b"] == ("2", False)
    assert stopped.wait(LONGEST)
    assert archive.calls(1)[0].error_class == "timeout"


def test_asynchronous_tools_run_too_and_are_cancelled_when_their_time_is_up(
    archive: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    begun, clock = threading.Event(), Clock(monkeypatch)

    @tool
    async def quick(word: str) -> str:
        """Say it back when the other one runs, an hour later."""
        await asyncio.to_thread(begun.wait, LONGEST)
        clock.seconds = 3600
        return word

    @tool(timeout=1800)
    async def slow() -> None:
        """Wait."""
        begun.set()
        try:
            await asyncio.sleep(LONGEST)
        finally:
            ended.append("cancelled")

    journal = Journal.open(archive)
    Loop(Model([calls(("a", "quick", {"word": "hi"}), ("b", "slow")), says("ok")]), [quick, slow]).run(journal, "go")
    assert told(journal) == {"a": ("hi", False), "b": (settlement.timed_out_result(1800), True)}
    wait_until(lambda: ended == ["cancelled"])


def test_a_turn_that_is_stopped_tells_the_truth_about_every_call(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.open(store)
    running, over, clock, drain = threading.Event(), threading.Event(), Clock(monkeypatch), Execution._drain

    def drain_and_jump(running: Execution, patience: float) -> list[CallEnding]:
        endings = drain(running, patience)
        clock.seconds = 3600 if any(ending.part.call_id == "a" for ending in endings) else clock.seconds
        return endings

    monkeypatch.setattr(Execution, "_drain", drain_and_jump)

    @tool
    def polite(context: ToolContext) -> str:
        """Stop when told."""
        running.set()
        context.stop.wait(LONGEST)
        return "stopped half way"

    @tool
    def deaf() -> None:
        """Never listen."""
        over.wait(LONGEST)

    model = Model([calls(("a", "polite"), ("b", "deaf"), ("c", "add", {"first": 1})), says("I see")])
    loop = Loop(model, [polite, deaf, add], limits=ExecutionLimits(workers=2, grace=LONGEST))

    def stop() -> None:
        running.wait(LONGEST)
        loop.cancel()

    threading.Thread(target=stop).start()
    outcome = loop.run(journal, "go")
    over.set()
    assert outcome.state == "cancelled"
    assert told(journal) == {
        "a": ("stopped half way", False),
        "b": (settlement.INTERRUPTED_RESULT, True),
        "c": (settlement.NOT_STARTED_RESULT, True),
    }
    assert store.turns(1)[0].interrupted == 1
    assert loop.run(journal, "what happened?").text == "I see"


def test_ctrl_c_stops_the_turn_while_the_model_speaks(archive: Store) -> None:
    released = threading.Event()

    def speaking() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        released.wait(LONGEST)

    journal, model = Journal.open(archive), Model([says("one two three")], while_speaking=speaking)
    before = signal.getsignal(signal.SIGINT)
    outcome = Loop(model).run(journal, "count")
    released.set()
    assert outcome.state == "cancelled"
    assert signal.getsignal(signal.SIGINT) is before
    wait_until(lambda: model.closed == 1)
    assert [message.role for message in journal.past.messages] == ["user"]
    model.while_speaking = lambda: None
    assert Loop(model).resume(journal).text == "one two three"


def test_an_answer_that_breaks_off_is_no_part_of_the_history(archive: Store) -> None:
    journal, model = Journal.open(archive), Model([says("half an ans", "cut")])
    outcome = Loop(model).run(journal, "go")
    assert (outcome.state, outcome.reply) == ("cut", model.replies[0])
    model.replies = [says("the whole answer")]
    assert Loop(model).resume(journal).text == "the whole answer"
    assert model.asked[1].messages == model.asked[0].messages


def test_a_model_that_cannot_be_asked_leaves_a_session_that_goes_on(archive: Store) -> None:
    class Down(Model):
        def stream(self, request: ModelRequest) -> Any:
            raise ModelUnreachable("model", "no connection")

    journal = Journal.open(archive)
    with pytest.raises(ModelUnreachable):
        Loop(Down([])).run(journal, "hello?")
    assert Loop(Model([says("here")])).resume(journal).text == "here"


def test_a_call_that_needs_approval_waits_for_it_across_processes(store: Store) -> None:
    ran: list[str] = []

    @tool(approval=lambda arguments: arguments["what"] == "all")
    def delete(what: str) -> str:
        """Delete."""
        ran.append(what)
        return f"deleted {what}"

    model = Model([calls(("a", "delete", {"what": "all"}), ("b", "delete", {"what": "one"})), says("ok")])
    journal = Journal.open(store, "s1")
    outcome = Loop(model, [delete]).run(journal, "go")
    assert outcome.state == "paused"
    assert [(one.call_id, one.why, one.arguments) for one in outcome.waiting] == [("a", "approval", {"what": "all"})]
    assert ran == ["one"]
    journal.close()
    again = Journal.open(store, "s1")
    assert Loop(model, [delete]).resume(again).state == "paused"
    assert Loop(model, [delete]).run(again, "well?").state == "paused"
    with pytest.raises(UsageError, match="does not wait"):
        again.approve("b")
    again.approve("a", by="ann")
    again.close()
    last = Journal.open(store, "s1")
    assert Loop(model, [delete]).resume(last).state == "done"
    assert ran == ["one", "all"]
    assert told(last) == {"a": ("deleted all", False), "b": ("deleted one", False)}


def test_a_call_that_is_denied_is_not_run_and_the_model_is_told(archive: Store) -> None:
    @tool(approval=True)
    def delete() -> None:
        """Delete."""
        raise AssertionError("was run")

    journal, model = Journal.open(archive), Model([calls(("a", "delete")), says("ok")])
    Loop(model, [delete]).run(journal, "go")
    journal.deny("a", "not today")
    assert Loop(model, [delete]).resume(journal).state == "done"
    assert told(journal) == {"a": ("denied: the human did not allow this call; it was not run. not today", True)}
    assert archive.calls(1)[0].error_class == "rejected"


@pytest.mark.parametrize("budget", [Budget(requests=2), Budget(tokens=220), Budget(seconds=0)])
def test_a_budget_stops_it_between_two_requests(archive: Store, budget: Budget) -> None:
    journal = Journal.open(archive)
    model = Model([calls((f"c{n}", "add", {"first": n})) for n in range(5)] + [says("ok")])
    outcome = Loop(model, [add], budget=budget).run(journal, "go")
    assert outcome.state == "over_budget"
    assert outcome.requests == (0 if budget.seconds == 0 else 2)
    assert Loop(model, [add]).resume(journal).state == "done"


def test_the_asynchronous_face_runs_it_in_a_thread_and_stops_it_when_cancelled(archive: Store) -> None:
    running = threading.Event()

    @tool
    def wait(context: ToolContext) -> str:
        """Wait until told."""
        running.set()
        context.stop.wait(LONGEST)
        return "stopped"

    journal = Journal.open(archive)
    loop = AsyncLoop(Model([says("hello"), calls(("a", "wait"))]), [wait])

    async def main() -> None:
        assert (await loop.run(journal, "hi")).text == "hello"
        task = asyncio.ensure_future(loop.run(journal, "wait"))
        await asyncio.to_thread(running.wait, LONGEST)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert told(journal) == {"a": ("stopped", False)}


def test_what_is_not_text_is_given_to_the_model_as_json(archive: Store) -> None:
    values: dict[str, Any] = {"a": {"x": [1, None]}, "b": None, "c": b"ab", "d": {1, 2}, "e": object}

    @tool
    def give(key: str) -> Any:
        """Give."""
        return values[key]

    journal = Journal.open(archive)
    Loop(Model([calls(*((key, "give", {"key": key}) for key in values)), says("ok")]), [give]).run(journal, "go")
    answers = {key: text for key, (text, _) in told(journal).items()}
    assert answers == {"a": '{"x":[1,null]}', "b": "", "c": '"YWI="', "d": "[1,2]", "e": "<class 'object'>"}


def test_the_schema_of_a_tool_comes_from_its_signature() -> None:
    @tool(name="find", idempotent=True)
    def search(word: str, context: ToolContext, limit: int = 10, kinds: list[str] | None = None) -> str:
        """Find words."""
        return word

    assert search.spec.name == "find"
    assert search.spec.description == "Find words."
    assert set(search.parameters["properties"]) == {"word", "limit", "kinds"}
    assert search.parameters["required"] == ["word"]
    assert search.validate_arguments({"word": "x"}) == {"word": "x", "limit": 10, "kinds": None}
    odd: list[Any] = [{"word": 1}, {}, {"word": "x", "what": 1}, [], "x"]
    for wrong in odd:
        with pytest.raises(ValueError):
            search.validate_arguments(wrong)
    with pytest.raises(UsageError, match="no policy"):
        tool(policy="hope")(lambda: None)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="must have names"):
        tool(lambda *many: None)
    assert Tool(print, "plain").validate_arguments({"a": 1}) == {"a": 1}


def test_the_caller_may_put_the_request_together(archive: Store) -> None:
    model = Model([says("ok")])
    short = Loop(model, assemble=lambda past: ModelRequest((past.messages[-1],), "short"))
    short.run(Journal.open(archive), "go")
    assert model.asked == [ModelRequest((ChatMessage("user", (ChatPart("text", "go"),)),), "short")]


def test_a_response_that_names_a_call_twice_gets_one_result(archive: Store) -> None:
    ran: list[int] = []

    @tool
    def once() -> None:
        """Count."""
        ran.append(1)

    part = ChatPart("call", call_id="a", name="once", arguments={})
    twice = Reply(ChatMessage("assistant", (part, part)), "calls")
    journal = Journal.open(archive)
    Loop(Model([twice, says("ok")]), [once]).run(journal, "go")
    assert (ran, told(journal)) == ([1], {"a": ("", False)})
