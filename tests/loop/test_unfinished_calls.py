"""What a dead process left behind: each call is done, in doubt or not started, and is dealt with accordingly.

A process that dies is played by a journal that is opened again without having been closed; that real ones are no
different is the subject of `test_crashes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.durable.scene import invalid
from everturn.loop import settlement
from everturn.loop.execution import ExecutionLimits
from everturn.loop.journal import Journal, open_archive
from everturn.loop.journal_state import JournalEnd, JournalPlace
from everturn.loop.loop import Loop, Outcome, _LoopTurn
from everturn.loop.records import IntendedCall
from everturn.loop.tools import NotDone, ReconciledResult, Tool, ToolContext, tool
from everturn.store.contract import Store
from tests.loop.scripted_model import Model, calls, says
from tests.loop.test_loop import told


class World:
    """What tools have done, and how they were called."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.contexts: list[ToolContext] = []

    def tool(self, **hints: Any) -> Tool:
        """A tool that does something."""

        @tool(name="act", **hints)
        def act(context: ToolContext, what: str = "it") -> str:
            """Do something."""
            self.done.append(what)
            self.contexts.append(context)
            return f"did {what}"

        return act


REPLIES = [
    calls(("a", "act", {"what": "a"}), ("b", "act", {"what": "b"}), ("c", "act", {"what": "c"})),
    says("the end"),
]


def left_behind(store: Store) -> Journal:
    """`a` is done, `b` in doubt, `c` not started."""
    journal = Journal.open(store, "s1")
    journal.accept("go")
    journal.response(REPLIES[0], [IntendedCall("a", "act"), IntendedCall("b", "act")])
    journal.result("a", "did a")
    return Journal.open(store, "s1", force=True)


def resumed(store: Store, world: World, interactive: bool = False, **hints: Any) -> tuple[Outcome, Journal, Model]:
    journal, model = left_behind(store), Model(REPLIES)
    assert [call.state for call in journal.past.calls.values()] == ["done", "in doubt", "not started"]
    return Loop(model, [world.tool(**hints)], interactive=interactive).resume(journal), journal, model


def test_what_is_done_is_not_run_again_and_what_was_not_started_runs(store: Store) -> None:
    world = World()
    outcome, journal, model = resumed(store, world)
    assert (outcome.state, outcome.text) == ("done", "the end")
    assert world.done == ["c"]
    assert told(journal) == {"a": ("did a", False), "b": (settlement.IN_DOUBT_RESULT, True), "c": ("did c", False)}
    assert [(one.call_id, one.was, one.did) for one in outcome.settled] == [
        ("b", "in doubt", "fail"), ("c", "not started", "run"),
    ]  # fmt: skip
    (request,) = model.asked
    assert [part.call_id for part in request.messages[-1].parts] == ["a", "b", "c"]


@pytest.mark.parametrize("hints", [{"read_only": True}, {"idempotent": True}, {"policy": "retry"}])
def test_what_may_run_twice_is_tried_again_with_the_same_key(archive: Store, hints: dict[str, Any]) -> None:
    world = World()
    _, journal, _ = resumed(archive, world, **hints)
    assert sorted(world.done) == ["b", "c"]
    assert told(journal)["b"] == ("did b", False)
    again, first = sorted(world.contexts, key=lambda one: one.call_id)
    assert (again.is_resume, again.attempt, first.is_resume, first.attempt) == (True, 2, False, 1)
    assert again.idempotency_key != first.idempotency_key


@pytest.mark.parametrize("hint", ["read_only", "idempotent"])
def test_a_destructive_tool_is_not_tried_again_by_its_hints(archive: Store, hint: str) -> None:
    world = World()
    _, journal, _ = resumed(archive, world, destructive=True, **{hint: True})
    assert world.done == ["c"]
    assert told(journal)["b"] == (settlement.IN_DOUBT_RESULT, True)


def test_a_destructive_tool_is_tried_again_if_its_policy_says_so(archive: Store) -> None:
    world = World()
    resumed(archive, world, destructive=True, policy="retry")
    assert sorted(world.done) == ["b", "c"]


def test_the_key_of_a_call_is_the_same_in_every_attempt(archive: Store) -> None:
    keys: list[str] = []
    for _ in range(3):
        journal = left_behind(archive) if not keys else Journal.open(archive, "s1", force=True)
        world = World()
        turn = _LoopTurn(Loop(Model(REPLIES), [world.tool(idempotent=True)]), journal)
        jobs = turn._planner.plan(journal.past.open_calls).jobs
        keys.append(jobs[0].context.idempotency_key)
        journal.intend([IntendedCall("b", "act", len(keys) + 1)])
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_a_tool_that_can_find_out_is_asked_what_happened(store: Store) -> None:
    found: list[tuple[str, Any]] = []

    def look(context: ToolContext, arguments: dict[str, Any]) -> ReconciledResult:
        found.append((context.call_id, arguments))
        return ReconciledResult("b was done")

    world = World()
    outcome, journal, _ = resumed(store, world, reconcile=look)
    assert found == [("b", {"what": "b"})]
    assert told(journal)["b"] == ("b was done", False)
    assert world.done == ["c"]
    assert outcome.settled[0].did == "reconciled"


def test_a_tool_that_finds_out_that_nothing_happened_runs(archive: Store) -> None:
    world = World()
    _, journal, _ = resumed(archive, world, reconcile=lambda context, arguments: NotDone())
    assert sorted(world.done) == ["b", "c"]
    assert told(journal)["b"] == ("did b", False)


def _unknown(context: ToolContext, arguments: dict[str, Any]) -> None:
    return None


def _broken(context: ToolContext, arguments: dict[str, Any]) -> None:
    raise OSError("no connection")


@pytest.mark.parametrize("look", [_unknown, _broken])
def test_what_cannot_be_found_out_stays_in_doubt(archive: Store, look: Callable[..., None]) -> None:
    world = World()
    _, journal, _ = resumed(archive, world, reconcile=look)
    assert told(journal)["b"] == (settlement.IN_DOUBT_RESULT, True)
    assert world.done == ["c"]


def test_with_somebody_to_ask_a_call_in_doubt_waits(store: Store) -> None:
    world = World()
    outcome, journal, model = resumed(store, world, interactive=True)
    assert outcome.state == "paused"
    assert [(one.call_id, one.why) for one in outcome.waiting] == [("b", "in_doubt")]
    assert world.done == ["c"]
    count = journal.past.count
    again = Journal.open(store, "s1", force=True)
    assert Loop(model, [world.tool()]).resume(again).state == "paused"
    assert again.past.count == count + 1  # the lease; the pause is not written twice
    again.approve("b")
    assert Loop(model, [world.tool()]).resume(again).state == "done"
    assert world.done == ["c", "b"]


def test_a_human_may_say_what_became_of_it(archive: Store) -> None:
    world = World()
    _, journal, model = resumed(archive, world, interactive=True)
    journal.settle("b", "the parcel has arrived", by="ann")
    assert Loop(model, [world.tool()]).resume(journal).state == "done"
    assert told(journal)["b"] == ("the parcel has arrived", False)
    assert world.done == ["c"]


def test_a_human_may_leave_it_at_that(archive: Store) -> None:
    world = World()
    _, journal, model = resumed(archive, world, interactive=True)
    journal.deny("b", "leave it")
    assert Loop(model, [world.tool()]).resume(journal).state == "done"
    assert told(journal)["b"] == (f"{settlement.IN_DOUBT_RESULT} leave it", True)


def test_an_approval_holds_for_one_attempt(archive: Store) -> None:
    world = World()
    _, journal, model = resumed(archive, world, interactive=True)
    journal.approve("b")
    journal.intend([IntendedCall("b", "act", 2)])  # and dies again
    again = Journal.open(archive, "s1", force=True)
    outcome = Loop(model, [world.tool()]).resume(again)
    assert (outcome.state, outcome.waiting[0].why) == ("paused", "in_doubt")
    assert world.done == ["c"]


def test_a_call_in_doubt_can_be_undone(store: Store) -> None:
    undone: list[str] = []

    def undo(context: ToolContext, arguments: dict[str, Any]) -> str:
        undone.append(arguments["what"])
        return "b was taken back"

    world = World()
    _, journal, _ = resumed(store, world, policy="compensate", compensate=undo)
    assert undone == ["b"]
    assert told(journal)["b"] == (f"{settlement.COMPENSATED_RESULT} b was taken back", True)


def test_an_undoing_that_was_cut_short_is_begun_again(archive: Store) -> None:
    journal = left_behind(archive)
    journal.intend([IntendedCall("b", "act", 2, "compensate")])
    again, undone = Journal.open(archive, "s1", force=True), []

    def undo(context: ToolContext, arguments: dict[str, Any]) -> None:
        undone.append(arguments["what"])
        raise OSError("cannot be undone")

    # Whatever the policy is now: what was begun is finished.
    Loop(Model(REPLIES), [World().tool(read_only=True, compensate=undo)]).resume(again)
    assert undone == ["b"]
    assert told(again)["b"][0].endswith("Undoing it was tried and failed: OSError: cannot be undone")


def test_a_tool_that_is_gone_is_never_run_and_its_call_stays_in_doubt(archive: Store) -> None:
    journal = left_behind(archive)
    Loop(Model(REPLIES), [], interactive=False).resume(journal)
    assert told(journal)["b"] == (settlement.IN_DOUBT_RESULT, True)
    assert told(journal)["c"] == ("there is no tool 'act'; it was not run", True)


def test_a_call_in_doubt_that_cannot_run_again_stays_in_doubt(archive: Store) -> None:
    journal = left_behind(archive)

    @tool(policy="retry")
    def act(other: int) -> str:  # the program was changed meanwhile
        """Act."""
        return ""

    Loop(Model(REPLIES), [act]).resume(journal)
    text, is_error = told(journal)["b"]
    assert (
        is_error and text.startswith(settlement.IN_DOUBT_RESULT) and "It cannot be repeated: invalid arguments" in text
    )
    assert told(journal)["c"][0].endswith("it was not run")


def test_a_new_message_settles_what_was_left_first(archive: Store) -> None:
    journal, world = left_behind(archive), World()
    model = Model([*REPLIES, says("more")])
    outcome = Loop(model, [world.tool()], interactive=False).run(journal, "and then?")
    assert outcome.text == "the end"
    assert [message.role for message in model.asked[0].messages] == ["user", "assistant", "tool", "user"]


def test_a_process_that_dies_while_it_resumes_is_resumed_again(archive: Store) -> None:
    """At every write of the resumed process."""
    for survived in range(1, 5):
        session, world = f"s{survived}", World()
        journal = Journal.open(archive, session)
        journal.accept("go")
        journal.response(REPLIES[0], [IntendedCall("a", "act"), IntendedCall("b", "act")])
        journal.result("a", "did a")
        again = Journal.open(archive, session, force=True)
        _dying_after(again, survived)
        try:
            Loop(Model(REPLIES), [world.tool()], interactive=False).resume(again)
        except Dead:
            pass
        last = Journal.open(archive, session, force=True)
        assert Loop(Model(REPLIES), [world.tool()], interactive=False).resume(last).text == "the end"
        assert told(last)["a"] == ("did a", False)
        assert told(last)["b"] == (settlement.IN_DOUBT_RESULT, True)
        assert len(told(last)) == 3
        assert world.done.count("c") == 1 or told(last)["c"][0] == settlement.IN_DOUBT_RESULT
        assert world.done.count("c") <= 1


class Dead(BaseException):
    pass


def _dying_after(journal: Journal, writes: int) -> None:
    write, left = journal.write, [writes]

    def dying(*records: Any) -> None:
        if not left[0]:
            raise Dead
        left[0] -= 1
        write(*records)

    journal.write = dying  # type: ignore[method-assign]


def test_a_journal_that_ends_after_any_record_can_be_gone_on_with() -> None:
    """Also between records that are always written together: nothing hangs on their being so."""
    replies = [
        calls(("a", "act", {"what": "a"}), ("b", "gone"), ("c", "act", {"what": "c"})),
        calls(("d", "act", {"what": "d"})),
        says("the end"),
    ]
    whole = open_archive("memory:")
    with Journal.open(whole, "s1") as journal:
        Loop(Model(replies), [World().tool()], limits=ExecutionLimits(workers=1), interactive=False).run(journal, "go")
        wanted = journal.past.messages
    lines = whole.read_raw(1, 0, 1 << 20).splitlines(keepends=True)
    assert len(lines) > 12
    for kept in range(3, len(lines)):
        store = open_archive("memory:")
        JournalEnd(store, "s1", JournalPlace(), ("", ""), lambda: 1).append(b"".join(lines[:kept]))
        world, model = World(), Model(replies)
        with Journal.open(store, "s1") as journal:
            before = list(journal.past.messages)
            assert Loop(model, [world.tool()], interactive=False).resume(journal).state == "done"
            after = journal.past.messages
        assert after[: len(before)] == before
        assert [message.role for message in after] == [message.role for message in wanted]
        for request in model.asked:
            assert invalid(request.messages) == []
        done = sum(b'"type":"result"' in line for line in lines[:kept])
        assert len(world.done) <= 4 - done
        store.close()
    whole.close()
