"""Decisions about calls without a result.

A decision of a human comes first. A call that was never begun runs, or waits for approval. A call in doubt was begun and
has no recorded result; it follows the policy of its tool:

    retry        run it again, with the same idempotency key
    reconcile    ask the tool's own `reconcile`: done (with its result), not done (then it runs), or unknown
    compensate   undo it by the tool's own `compensate`, and say so
    ask          wait for a human: approve (run again), deny (leave it), settle (state the result)
    fail         tell the model that the outcome is unknown

The default: a tool that can reconcile does; one that only reads or is idempotent is retried, unless it is destructive; all
others ask, or fail where there is nobody to ask. A missing tool is never run. `reconcile` and `approval` may be asynchronous.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from everturn.llm.protocol import ChatPart, encode_json
from everturn.loop.journal import Journal
from everturn.loop.journal_state import IN_DOUBT, CallProgress
from everturn.loop.records import IntendedCall, ResultRecord
from everturn.loop.tools import NotDone, ReconciledResult, Tool, ToolContext, make_idempotency_key

if TYPE_CHECKING:
    import asyncio


IN_DOUBT_RESULT = (
    "in doubt: this call was started, the process then ended, and its outcome is unknown. It may or may not have taken "
    "effect, wholly or in part. It was not repeated. Find out what happened before doing it again."
)
COMPENSATED_RESULT = (
    "in doubt, then undone: this call was started, the process then ended, and its outcome is unknown. "
    "What it may have done was undone."
)
NOT_STARTED_RESULT = "not started: the human stopped the turn before this call was started. It had no effect."
#: Before the result of a call whose arguments a human changed.
EDITED_NOTE = "[the human changed the arguments; the call ran with {}]\n"
INTERRUPTED_RESULT = (
    "interrupted: the human stopped the turn while this call was running, and its outcome is unknown. "
    "It may or may not have taken effect."
)


def choose_policy(tool: Tool | None, call: CallProgress, interactive: bool) -> str:
    """Return the policy for a call in doubt."""
    last = "ask" if interactive else "fail"
    if tool is None:
        return last
    if call.intents and call.intents[-1].purpose == "compensate":
        return "compensate" if tool.compensate else last
    policy = tool.policy or _policy_from_hints(tool)
    if policy in ("reconcile", "compensate") and getattr(tool, policy) is None:
        policy = ""
    return last if policy in ("", "ask") else policy


def timed_out_result(seconds: float) -> str:
    """Return the result of a call that took too long."""
    return (
        f"timed out after {seconds:g} s: the call was started and did not finish in time. "
        "It may or may not have taken effect, or may still do so."
    )


def denied_result(text: str) -> str:
    """Return the result of a call that a human did not allow."""
    return f"denied: the human did not allow this call; it was not run. {text}".strip()


def _policy_from_hints(tool: Tool) -> str:
    if tool.reconcile is not None:
        return "reconcile"
    return "retry" if (tool.read_only or tool.idempotent) and not tool.destructive else ""


@dataclass(frozen=True)
class CallJob:
    """A call to run. `intended`: the journal already holds its intent."""

    part: ChatPart
    of: int
    tool: Tool
    arguments: dict[str, Any]
    context: ToolContext
    purpose: str = "run"  # run | compensate
    intended: bool = False
    note: str = ""  # before the result: what the model does not know about the call

    @property
    def intent(self) -> IntendedCall:
        """Return the intent to record before it runs."""
        return IntendedCall(self.part.call_id, self.part.name, self.context.attempt, self.purpose)


@dataclass(frozen=True)
class CallEnding:
    """The result of a call, to be written."""

    part: ChatPart
    of: int
    text: str
    is_error: bool = False
    outcome: str = "ok"
    ms: int | None = None

    @property
    def record(self) -> ResultRecord:
        part = self.part
        return ResultRecord(
            of=self.of, call_id=part.call_id, name=part.name, text=self.text, is_error=self.is_error,
            outcome=self.outcome, ms=self.ms,
        )  # fmt: skip


@dataclass
class SettlementPlan:
    """Jobs, results and pauses for a set of calls."""

    jobs: list[CallJob] = field(default_factory=list)
    endings: list[CallEnding] = field(default_factory=list)
    waits: dict[str, list[str]] = field(default_factory=dict)  # reason → call ids that must wait for a human
    settlements: list[Settlement] = field(default_factory=list)


@dataclass(frozen=True)
class Settlement:
    """The decision about one call of an earlier process."""

    call_id: str
    name: str
    was: str  # in doubt | not started
    did: str  # run | retry | reconciled | compensate | fail | wait | denied | settled | refused


class SettlementPlanner:
    def __init__(
        self, journal: Journal, tools: Mapping[str, Tool], interactive: bool, coroutines: Coroutines | None = None
    ) -> None:
        self._journal, self._session, self._tools, self._interactive = journal, journal.session, tools, interactive
        self._coroutines = coroutines or Coroutines()

    def plan(self, calls: list[CallProgress]) -> SettlementPlan:
        plan = SettlementPlan()
        for call in calls:
            did = self._plan_call(plan, call)
            plan.settlements.append(Settlement(call.part.call_id, call.part.name, call.state, did))
        return plan

    def _plan_call(self, plan: SettlementPlan, call: CallProgress) -> str:
        if call.decision is not None:
            return self._plan_decided(plan, call)
        if call.waits:
            return "wait"
        if call.state == IN_DOUBT:
            return self._plan_in_doubt(plan, call)
        return self._plan_run(plan, call, approved=False)

    def _plan_decided(self, plan: SettlementPlan, call: CallProgress) -> str:
        assert call.decision is not None
        verdict, text = call.decision.verdict, call.decision.text
        if verdict == "approve":
            return self._plan_run(plan, call, approved=True)
        if verdict == "settle":
            _add_ending(plan, call, text, "settled", is_error=False)
            return "settled"
        if call.state == IN_DOUBT:
            _add_ending(plan, call, f"{IN_DOUBT_RESULT} {text}".strip(), "in_doubt")
        else:
            _add_ending(plan, call, denied_result(text), "denied")
        return "denied"

    def _plan_in_doubt(self, plan: SettlementPlan, call: CallProgress) -> str:
        tool = self._tools.get(call.part.name)
        policy = choose_policy(tool, call, self._interactive)
        if policy == "reconcile" and tool is not None:
            return self._reconcile(plan, call, tool)
        if policy == "retry":
            return self._plan_run(plan, call, approved=True)
        if policy == "compensate":
            return self._plan_run(plan, call, approved=True, purpose="compensate")
        return self._leave_in_doubt(plan, call, policy)

    def _reconcile(self, plan: SettlementPlan, call: CallProgress, tool: Tool) -> str:
        assert tool.reconcile is not None
        try:
            found = self._coroutines.wait(tool.reconcile(self._context(call), tool.validate_arguments(call.arguments)))
        except Exception:  # then the outcome is unknown
            found = None
        if isinstance(found, ReconciledResult):
            _add_ending(plan, call, found.text, "settled", found.is_error)
            return "reconciled"
        if isinstance(found, NotDone) or found is NotDone:
            return self._plan_run(plan, call, approved=True)
        return self._leave_in_doubt(plan, call, "ask" if self._interactive else "fail")

    def _leave_in_doubt(self, plan: SettlementPlan, call: CallProgress, policy: str) -> str:
        if policy == "ask":
            plan.waits.setdefault("in_doubt", []).append(call.part.call_id)
            return "wait"
        _add_ending(plan, call, IN_DOUBT_RESULT, "in_doubt")
        return "fail"

    def _plan_run(self, plan: SettlementPlan, call: CallProgress, approved: bool, purpose: str = "run") -> str:
        tool, part = self._tools.get(call.part.name), call.part
        if tool is None:
            return _refuse(plan, call, f"there is no tool {part.name!r}", "unknown_tool")
        try:
            arguments = tool.validate_arguments(call.arguments)
        except ValueError as failure:
            whose = (
                "invalid arguments" if call.edited is None else "the human changed the arguments, and they are invalid"
            )
            return _refuse(plan, call, f"{whose}: {failure}", "invalid")
        if not approved and self._needs_approval(tool, call.arguments):
            plan.waits.setdefault("approval", []).append(part.call_id)
            return "wait"
        note = EDITED_NOTE.format(encode_json(call.edited)) if call.edited is not None else ""
        plan.jobs.append(CallJob(part, call.of, tool, arguments, self._context(call), purpose, note=note))
        return purpose if purpose != "run" else "retry" if call.intents else "run"

    def _needs_approval(self, tool: Tool, arguments: Any) -> bool:
        try:
            return bool(self._coroutines.wait(tool.needs_approval(arguments)))
        except Exception:  # if unsure, ask a human
            return True

    def _context(self, call: CallProgress) -> ToolContext:
        call_id, attempt = call.part.call_id, len(call.intents) + 1
        key = make_idempotency_key(self._session, call.of, call_id)
        return ToolContext(call_id, self._session, attempt > 1, key, attempt, steps=self._journal)


def _refuse(plan: SettlementPlan, call: CallProgress, why: str, outcome: str) -> str:
    """End a call that cannot run. One in doubt stays in doubt: an earlier attempt may have taken effect."""
    if call.state == IN_DOUBT:
        _add_ending(plan, call, f"{IN_DOUBT_RESULT} It cannot be repeated: {why}.", "in_doubt")
    else:
        _add_ending(plan, call, f"{why}; it was not run", outcome)
    return "refused"


def _add_ending(plan: SettlementPlan, call: CallProgress, text: str, outcome: str, is_error: bool = True) -> None:
    plan.endings.append(CallEnding(call.part, call.of, text, is_error, outcome))


# --- One event loop for everything asynchronous that a loop runs: tools, `reconcile`, `compensate`, approvals ---
#: The event loop of the asynchronous program in whose turn this code runs, for loops inside its tools.
CALLER: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("caller", default=None)


class Coroutines:
    """Runs awaitables on one event loop, for callers in other threads. Without a loop, on the process's own."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop

    def wait(self, value: Any, started: Callable[[Callable[[], None]], None] = lambda cancel: None) -> Any:
        """Return the value, or wait for it if it is awaitable. `started` gets a function that cancels it.

        Raise asyncio.CancelledError if it was cancelled. Any other exception is raised here, never in the event loop.
        """
        if not inspect.isawaitable(value):
            return value
        import asyncio
        from concurrent.futures import CancelledError

        loop = self._loop or CALLER.get() or _background_loop()

        async def run() -> tuple[Any, BaseException | None]:
            task = asyncio.current_task()
            assert task is not None
            started(lambda: _call_soon(loop, task.cancel))
            try:
                return await value, None
            except asyncio.CancelledError:
                raise
            except BaseException as failure:  # an exit of a tool must not end the loop of all tools
                return None, failure

        try:
            result, failure = asyncio.run_coroutine_threadsafe(run(), loop).result()
        except CancelledError:
            raise asyncio.CancelledError from None
        if failure is not None:
            raise failure
        return result


def _call_soon(loop: asyncio.AbstractEventLoop, work: Callable[[], Any]) -> None:
    with suppress(RuntimeError):  # the event loop has ended, and the task with it
        loop.call_soon_threadsafe(work)


_lock = threading.Lock()
_background: tuple[int, asyncio.AbstractEventLoop] | None = None  # of which process


def _background_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of this process for asynchronous tools; a forked process gets its own."""
    global _background  # noqa: PLW0603 -- one loop per process is the point
    import asyncio

    with _lock:
        if _background is None or _background[0] != os.getpid():
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="everturn-tools", daemon=True).start()
            _background = (os.getpid(), loop)
        return _background[1]
