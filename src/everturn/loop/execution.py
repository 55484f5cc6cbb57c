"""Execution of tool calls: planned, run in parallel, and recorded.

Each call runs in a thread of its own. The caller's thread starts calls, waits, and is the only one that writes: results
that arrive while it writes are written together next time, with the intents of the calls that follow. So no call ever gets
two results, and a call that ends after its timeout, or after the human stopped the turn, finds its result already written.
A thread cannot be killed: a tool learns of the stop by `ToolContext.stop`, an asynchronous one is cancelled.

`SettlementPlanner` decides about calls without a result. A decision of a human comes first. A call that was never begun
runs, or waits for approval. A call in doubt was begun and has no recorded result; it follows the policy of its tool:

    retry        run it again, with the same idempotency key
    reconcile    ask the tool's own `reconcile`: done (with its result), not done (then it runs), or unknown
    compensate   undo it by the tool's own `compensate`, and say so
    ask          wait for a human: approve (run again), deny (leave it), settle (state the result)
    fail         tell the model that the outcome is unknown

The default: a tool that can reconcile does; one that only reads or is idempotent is retried; all others ask, or fail where
there is nobody to ask. A missing tool is never run.
"""

from __future__ import annotations

import inspect
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from everturn.llm.protocol import ChatPart
from everturn.loop.journal import Journal
from everturn.loop.journal_state import IN_DOUBT, CallProgress
from everturn.loop.records import IntendedCall, IntentRecord, InterruptRecord, Record, ResultRecord
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
    return "retry" if tool.read_only or tool.idempotent else ""


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


@dataclass(frozen=True)
class ExecutionLimits:
    """The number of parallel calls, and the seconds a stopped turn waits for its tools."""

    workers: int = 8
    grace: float = 2.0


@dataclass
class _RunningCall:
    job: CallJob
    deadline: float | None
    cancel: Callable[[], None]


class Execution:
    """Runs one batch of calls. To stop it, set `cancelled` and put None into `inbox`."""

    def __init__(
        self,
        journal: Journal,
        limits: ExecutionLimits,
        cancelled: threading.Event,
        inbox: queue.SimpleQueue[Any],
        watch: Callable[[str, Any], None],
    ) -> None:
        self._journal, self._limits, self._cancelled, self._inbox, self._watch = (
            journal, limits, cancelled, inbox, watch,
        )  # fmt: skip
        self._running: dict[str, _RunningCall] = {}

    def run(self, jobs: Iterable[CallJob], finished: Iterable[CallEnding] = ()) -> None:
        """Run all jobs; `finished` are results that need no run."""
        try:
            self._run(deque(jobs), list(finished))
        except BaseException:
            for running in self._running.values():  # their results are no longer needed
                running.cancel()
            raise

    def _run(self, queued: deque[CallJob], done: list[CallEnding]) -> None:
        while (queued or self._running) and not self._cancelled.is_set():
            ready = self._take_ready(queued)
            self._write(done, ready)
            for job in ready:
                self._start(job)
            done = self._wait()
        if self._cancelled.is_set():
            self._stop(queued, done)
        else:
            self._write(done, [])

    def _take_ready(self, queued: deque[CallJob]) -> list[CallJob]:
        """Take the jobs that may run now. One that must run alone waits for the others, and they for it."""
        ready: list[CallJob] = []
        busy = [running.job for running in self._running.values()]
        while queued and len(busy) < self._limits.workers:
            if busy and (queued[0].tool.alone or busy[-1].tool.alone):
                break
            busy.append(queued[0])
            ready.append(queued.popleft())
        return ready

    def _start(self, job: CallJob) -> None:
        work = _CallThread(job, self._inbox)
        limit = job.tool.timeout
        deadline = time.monotonic() + limit if limit is not None else None
        self._running[job.part.call_id] = _RunningCall(job, deadline, work.cancel)
        self._watch("started", job.part)
        threading.Thread(target=work.run, name=f"call {job.part.name}", daemon=True).start()

    def _wait(self) -> list[CallEnding]:
        """Return the calls that ended or timed out: at least one, unless woken up."""
        self._journal.renew()
        endings = self._drain(self._wait_seconds())
        now = time.monotonic()
        for running in list(self._running.values()):
            if running.deadline is not None and running.deadline <= now:
                endings.append(self._give_up(running))
        return endings

    def _drain(self, patience: float) -> list[CallEnding]:
        endings = []
        try:
            item = self._inbox.get(timeout=max(patience, 0))
            while True:
                if item is not None and self._running.pop(item.part.call_id, None) is not None:
                    endings.append(item)
                item = self._inbox.get_nowait()
        except queue.Empty:
            return endings

    def _wait_seconds(self) -> float:
        """Return the seconds until the next deadline or lease renewal."""
        now = time.monotonic()
        deadlines = [one.deadline - now for one in self._running.values() if one.deadline is not None]
        return min([*deadlines, self._journal.ttl / 3000])

    def _give_up(self, running: _RunningCall) -> CallEnding:
        job = running.job
        self._running.pop(job.part.call_id)
        running.cancel()
        limit = job.tool.timeout or 0
        return CallEnding(job.part, job.of, timed_out_result(limit), True, "timeout", round(limit * 1000))

    def _stop(self, queued: Iterable[CallJob], done: list[CallEnding]) -> None:
        """Notify running tools, wait briefly for their results, and record the state of the rest."""
        for running in self._running.values():
            running.cancel()
        end = time.monotonic() + self._limits.grace
        while self._running and time.monotonic() < end:
            done += self._drain(end - time.monotonic())
        for running in self._running.values():
            done.append(CallEnding(running.job.part, running.job.of, INTERRUPTED_RESULT, True, "interrupted"))
        self._running.clear()
        done += [CallEnding(job.part, job.of, NOT_STARTED_RESULT, True, "not_started") for job in queued]
        self._write(done, [], InterruptRecord(text="the human stopped the turn"))

    def _write(self, done: list[CallEnding], ready: list[CallJob], *more: Record) -> None:
        """Write results, and the intents of the next calls, in one transaction."""
        written: list[Record] = [ending.record for ending in done]
        intended = tuple(job.intent for job in ready if not job.intended)
        if intended:
            written.append(IntentRecord(of=ready[0].of, calls=intended))
        written += more
        if written:
            self._journal.write(*written)
        for ending in done:
            self._watch("finished", ending)


class _CallThread:
    def __init__(self, job: CallJob, inbox: queue.SimpleQueue[Any]) -> None:
        self._job, self._inbox = job, inbox
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def run(self) -> None:
        job, started_at = self._job, time.monotonic()
        ending = self._run_call()
        ms = round((time.monotonic() - started_at) * 1000)
        self._inbox.put(replace(ending, ms=ms if job.purpose == "run" else None))

    def cancel(self) -> None:
        """Tell the tool that its result is no longer needed."""
        self._job.context.stop.set()
        loop, task = self._loop, self._task
        if loop is not None and task is not None:
            try:
                loop.call_soon_threadsafe(task.cancel)
            except RuntimeError:  # it has already ended
                pass

    def _run_call(self) -> CallEnding:
        import asyncio

        job = self._job
        if job.purpose == "compensate":
            return self._compensate()
        try:
            given = {job.tool.context: job.context} if job.tool.context else {}
            value = self._await_value(job.tool.fn(**job.arguments, **given))
        except asyncio.CancelledError:
            return CallEnding(job.part, job.of, INTERRUPTED_RESULT, True, "interrupted")
        except BaseException as failure:  # an exception of a tool is its result
            return CallEnding(job.part, job.of, _failure_text(failure), True, "error")
        return CallEnding(job.part, job.of, show_result(value))

    def _compensate(self) -> CallEnding:
        job = self._job
        assert job.tool.compensate is not None
        try:
            note = self._await_value(job.tool.compensate(job.context, job.arguments))
        except BaseException as failure:
            text = f"{IN_DOUBT_RESULT} Undoing it was tried and failed: {_failure_text(failure)}"
            return CallEnding(job.part, job.of, text, True, "in_doubt")
        return CallEnding(job.part, job.of, f"{COMPENSATED_RESULT} {note or ''}".strip(), True, "compensated")

    def _await_value(self, value: Any) -> Any:
        if not inspect.isawaitable(value):
            return value
        import asyncio

        async def await_value() -> Any:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            if self._job.context.stop.is_set():
                raise asyncio.CancelledError
            return await value

        return asyncio.run(await_value())


def show_result(value: Any) -> str:
    """Return the result of a tool as text for the model."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _failure_text(failure: BaseException) -> str:
    return f"{type(failure).__name__}: {failure}"


# --- planning ---
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
    def __init__(self, session: str, tools: Mapping[str, Tool], interactive: bool) -> None:
        self._session, self._tools, self._interactive = session, tools, interactive

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
            found = tool.reconcile(self._context(call), tool.checked(call.part.arguments))
        except Exception:  # then the outcome is unknown
            found = None
        if isinstance(found, ReconciledResult):
            _add_ending(plan, call, found.text, "settled", found.is_error)
            return "reconciled"
        if isinstance(found, NotDone):
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
            _add_ending(plan, call, f"there is no tool {part.name!r}; it was not run", "unknown_tool")
            return "refused"
        try:
            arguments = tool.checked(part.arguments)
        except ValueError as failure:
            _add_ending(plan, call, f"invalid arguments: {failure}; it was not run", "invalid")
            return "refused"
        if not approved and _needs_approval(tool, part.arguments):
            plan.waits.setdefault("approval", []).append(part.call_id)
            return "wait"
        plan.jobs.append(CallJob(part, call.of, tool, arguments, self._context(call), purpose))
        return purpose if purpose != "run" else "retry" if call.intents else "run"

    def _context(self, call: CallProgress) -> ToolContext:
        call_id, attempt = call.part.call_id, len(call.intents) + 1
        return ToolContext(
            call_id, self._session, attempt > 1, make_idempotency_key(self._session, call.of, call_id), attempt
        )


def _add_ending(plan: SettlementPlan, call: CallProgress, text: str, outcome: str, is_error: bool = True) -> None:
    plan.endings.append(CallEnding(call.part, call.of, text, is_error, outcome))


def _needs_approval(tool: Tool, arguments: Any) -> bool:
    try:
        return tool.needs_approval(arguments)
    except Exception:  # if unsure, ask a human
        return True
