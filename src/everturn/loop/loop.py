"""The agent loop: ask the model, run its calls, repeat until there is an answer. It survives its process at any point.

Everything is in the journal before it takes effect, so `resume` continues wherever a process was killed: calls with a
result are not run again, calls in doubt follow their tool's policy, the others run, and the model learns the truth about
each, once. A resumed process that is killed can be resumed again.

    with Journal.open(open_archive(url)) as journal:
        outcome = Loop(backend, tools).run(journal, "…")

The model gets as much of the session as fits, in a form that providers accept (`model_request`); `view` adds to it. Calls
that another program left without a result get one that says so, once.

Ctrl-C, or `cancel` from another thread, stops the turn in order: the stream is closed, tools are notified, known results
are written. A second Ctrl-C does not wait. The core is synchronous; `AsyncLoop` is its asynchronous face.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from everturn.clock import new_id
from everturn.errors import BadAnswer, EverturnError, UsageError
from everturn.llm.history_repair import NO_RECORD, unique_calls
from everturn.llm.protocol import Backend, ChatPart, Delta, ModelRequest, Reply, ReplyTokens
from everturn.loop import records
from everturn.loop.execution import Execution, ExecutionLimits
from everturn.loop.journal import Journal
from everturn.loop.journal_state import CallProgress, JournalState
from everturn.loop.model_request import PreparedRequest, RequestView, ask_model, compare_request, prepare_request
from everturn.loop.records import IntendedCall, PauseRecord, Record
from everturn.loop.settlement import Coroutines, Settlement, SettlementPlan, SettlementPlanner
from everturn.loop.tools import Tool, output_request, read_output


@dataclass(frozen=True)
class Budget:
    """Limits of one `run` or `resume`. None means no limit."""

    requests: int | None = 100
    tokens: int | None = None  # input and output
    seconds: float | None = None  # then the request is cancelled, and calls that run time out
    answer: int = 0  # tokens of one response; 0: the limit of the backend


OutcomeState = Literal[
    "done", "truncated", "refused", "paused", "cut", "over_budget", "cancelled", "idle", "failed"
]  # fmt: skip
WaitingReason = Literal["approval", "in_doubt"]


@dataclass(frozen=True)
class WaitingCall:
    """A call that waits for a human: `Journal.approve`, `deny` or `settle` it, then `resume`."""

    call_id: str
    name: str
    arguments: Any
    why: WaitingReason


@dataclass(frozen=True)
class Outcome:
    """The result of a `run` or `resume`.

    done         the model answered
    truncated    the answer reached its limit of tokens; ask the model to go on
    refused      the model or its provider declined to answer
    paused       calls wait for a human
    cut          the connection broke off; `resume` asks again
    over_budget  the budget is spent; `resume` continues with a new one
    cancelled    the human stopped it
    idle         nothing was asked: `run` was never called, or its process ended before the message was recorded
    failed       the model could not be asked; `error` says why (`run` and `resume` raise it instead)
    """

    state: OutcomeState
    text: str = ""
    reply: Reply | None = None  # the last response
    waiting: tuple[WaitingCall, ...] = ()
    settled: tuple[Settlement, ...] = ()  # decisions about the calls of a dead process
    requests: int = 0
    usage: ReplyTokens = field(default_factory=ReplyTokens)
    said: tuple[str, ...] = ()  # parts of the history that were left out, cut or mended in the requests
    error: EverturnError | None = None
    output: Any = None  # the answer as `Loop.output`


@dataclass(frozen=True)
class Watch:
    """Callbacks for progress, called in the thread that runs the loop."""

    delta: Callable[[Delta], None] = lambda delta: None
    call: Callable[[str, Any], None] = lambda event, about: None  # ("started", Part) and ("finished", Ending)


#: Default tokens of one response.
_ANSWER = 4096

#: Builds the request from the journal, in place of `view`.
Assemble = Callable[[JournalState], ModelRequest]


@dataclass
class Loop:
    """A model, its tools and their limits. One loop runs one session at a time."""

    backend: Backend
    tools: Sequence[Tool] = ()
    system: str = ""
    budget: Budget = Budget()
    limits: ExecutionLimits = field(default_factory=ExecutionLimits)
    interactive: bool = True  # a human can decide about calls in doubt
    watch: Watch = Watch()
    assemble: Assemble | None = None
    view: RequestView = field(default_factory=RequestView)
    decide: Callable[[WaitingCall], Any] | None = None  # see `_LoopTurn._decide`; may be asynchronous
    output: Any = None  # a dataclass, msgspec struct or pydantic model for the answer: `Outcome.output`
    coroutines: Coroutines = field(default_factory=Coroutines, repr=False)
    _cancelled: threading.Event = field(default_factory=threading.Event)
    _inbox: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        names: set[str] = set()
        for one in self.tools:
            if not isinstance(one, Tool):
                raise UsageError(f"{getattr(one, '__name__', repr(one))} is no tool; decorate it with @tool")
            if one.name in names:
                raise UsageError(f"two tools have the name {one.name}; say @tool(name=…) for one of them")
            names.add(one.name)

    def run(self, journal: Journal, prompt: str | Sequence[ChatPart]) -> Outcome:
        """Take a message of the human and continue until there is an answer.

        Calls that an earlier process left behind are settled first. If one of them waits for a human, the outcome
        is `paused` and the message is not taken.
        """
        return self._run(journal, prompt)

    def resume(self, journal: Journal) -> Outcome:
        """Continue from wherever the session stopped."""
        return self._run(journal)

    def cancel(self) -> None:
        """Stop the running turn. May be called from any thread and from a signal handler."""
        self._cancelled.set()
        self._inbox.put(None)

    def _run(self, journal: Journal, prompt: str | Sequence[ChatPart] | None = None) -> Outcome:
        self._cancelled.clear()
        with _on_interrupt(self.cancel):
            turn = _LoopTurn(self, journal)
            if (stopped := turn.settle()) is not None:
                return stopped
            turn.close_orphans()
            if prompt is not None:
                turn.accept(prompt)
            return turn.converse()


class _LoopTurn:
    """One `run` or `resume`."""

    def __init__(self, loop: Loop, journal: Journal) -> None:
        self._loop, self._journal, self._past = loop, journal, journal.past
        self._tools = {tool.name: tool for tool in loop.tools}
        self._planner = SettlementPlanner(journal, self._tools, loop.interactive, loop.coroutines)
        self._first_request, self._spent = self._past.requests, self._past.usage
        self._ends = None if loop.budget.seconds is None else time.monotonic() + loop.budget.seconds
        self._settled: list[Settlement] = []
        self._said: dict[str, None] = {}
        self._asked_for_output = False

    def accept(self, prompt: str | Sequence[ChatPart]) -> None:
        """Write the message, and the setup if it has changed, in one transaction."""
        parts = (ChatPart("text", prompt),) if isinstance(prompt, str) else tuple(prompt)
        if not any(part.kind != "text" or part.text.strip() for part in parts):
            raise UsageError("the message is empty; say what the model is to do")
        setup = records.SetupRecord(system=self._system(), tools=tuple(tool.spec for tool in self._loop.tools))
        same = (setup.system, setup.tools) == (self._past.system, self._past.tools)
        self._journal.write(*([] if same else [setup]), records.UserRecord(parts=parts))

    def _system(self) -> str:
        system, request = self._loop.system, output_request(self._loop.output)
        return system if request in system else "\n\n".join(filter(None, [system, request]))

    def settle(self) -> Outcome | None:
        """Settle the calls left behind. Return an outcome if the turn ends there."""
        while (stopped := self._settle_once()) is not None and stopped.state == "paused" and self._decide(stopped):
            continue
        return stopped

    def _decide(self, stopped: Outcome) -> bool:
        """Ask `Loop.decide` about the calls that wait. Return whether it decided about one.

        It returns True (run it), False (do not), a dict (run it with these arguments), a text (of a call in doubt: its
        result; else the reason why not), or None (it goes on waiting).
        """
        decided: list[Record] = []
        for call in stopped.waiting if self._loop.decide is not None else ():
            assert self._loop.decide is not None
            verdict = self._loop.coroutines.wait(self._loop.decide(call))
            if isinstance(verdict, dict):
                self._check_decided(call, verdict)
            if verdict is not None:
                decided.append(_decision(self._past.response, call, verdict))
        if decided:
            self._journal.write(*decided)
        return bool(decided)

    def _check_decided(self, call: WaitingCall, arguments: dict[str, Any]) -> None:
        try:
            if call.name in self._tools:
                self._tools[call.name].validate_arguments(arguments)
        except ValueError as failure:
            raise UsageError(f"`decide` returned arguments that {call.name} does not take: {failure}") from failure

    def _settle_once(self) -> Outcome | None:
        calls = self._past.open_calls
        if not calls:
            return None
        plan = self._planner.plan(calls)
        self._settled += plan.settlements
        pauses: list[Record] = [
            PauseRecord(of=self._past.response, why=why, calls=tuple(ids)) for why, ids in plan.waits.items()
        ]
        if pauses:
            self._journal.write(*pauses)
        return self._execute(plan)

    def close_orphans(self) -> None:
        """Record an unknown outcome for calls that were abandoned, so that it is reported only once."""
        lost: list[Record] = [
            records.ResultRecord(
                of=call.of, call_id=call.part.call_id, name=call.part.name, text=NO_RECORD, is_error=True, outcome="in_doubt"
            )
            for call in self._past.orphans.values()
            if call.part.call_id and call.part.name  # an incomplete call is not sent and needs no result
        ]  # fmt: skip
        if lost:
            self._journal.write(*lost)

    def converse(self) -> Outcome:
        """Ask the model and run its calls in turn."""
        while self._past.awaits_model:
            if (over := self._budget_stop()) is not None:
                self._journal.note(over, "budget")
                return self._make_outcome("over_budget")
            prepared = self._prepare_request()
            asked = ask_model(
                self._loop.backend, prepared.request, self._loop._cancelled, self._new_inbox(), self._loop.watch.delta,
                self._renew_lease, self._ends,
            )  # fmt: skip
            if asked.reply is None and asked.is_late:
                return self._stop_late("".join(asked.words))
            if asked.reply is None:
                words = "".join(asked.words)
                cut: list[Record] = [records.PartialRecord(text=words, why="the human stopped it")] if words else []
                self._journal.write(*cut, records.InterruptRecord(text="the human stopped the turn"))
                return self._make_outcome("cancelled")
            if asked.reply.stop == "cut":
                self._journal.write(records.PartialRecord(text=asked.reply.text, why="the stream broke off"))
                return self._make_outcome("cut", asked.reply, asked.reply.text)
            if (stopped := self._run_reply(asked.reply, prepared)) is not None:
                return stopped
        return self._check_output(self._make_end())

    def _check_output(self, outcome: Outcome) -> Outcome:
        """Return the outcome with its typed output. The model gets one chance to correct it."""
        if self._loop.output is None or outcome.state != "done":
            return outcome
        try:
            return replace(outcome, output=read_output(outcome.text, self._loop.output))
        except ValueError as failure:
            if self._asked_for_output or outcome.requests == 0:
                return replace(
                    outcome, error=BadAnswer(self._loop.backend.name, f"not the output asked for: {failure}")
                )
            self._asked_for_output = True
            self._journal.inject(f"That is not the output asked for: {failure}. Answer again.", records.ASK_AGAIN)
            return self.converse()

    # --- one response ---
    def _run_reply(self, reply: Reply, to: PreparedRequest) -> Outcome | None:
        """Write the response with the intents of the calls that start at once, and run its calls."""
        number = self._past.count
        reply, given_ids = unique_calls(reply, self._past.call_ids, new_id)
        plan = self._plan(reply, number)
        intend: list[IntendedCall] = [job.intent for job in plan.jobs if job.intended]
        self._journal.response(reply, intend, plan.waits.get("approval", ()), to.sent, given_ids)
        if self._past.response != number:  # another thread wrote a record first
            plan = self._plan(reply, self._past.response)
        if not reply.calls:
            return None
        stopped = self._execute(plan)
        decided = stopped is not None and stopped.state == "paused" and self._decide(stopped)
        return self.settle() if decided else stopped

    def _plan(self, reply: Reply, number: int) -> SettlementPlan:
        once = {part.call_id: part for part in reply.calls}.values()
        plan = self._planner.plan([CallProgress(part, number) for part in once])
        at_once = _count_immediate(plan, self._loop.limits.workers)
        plan.jobs = [replace(job, intended=n < at_once) for n, job in enumerate(plan.jobs)]
        return plan

    def _execute(self, plan: SettlementPlan) -> Outcome | None:
        loop = self._loop
        execution = Execution(
            self._journal, loop.limits, loop._cancelled, self._new_inbox(), loop.watch.call, loop.coroutines, self._ends
        )
        execution.run(plan.jobs, plan.endings)
        if loop._cancelled.is_set():
            return self._make_outcome("cancelled")
        if any(not call.waits for call in self._past.open_calls):
            return self._stop_late("")
        return self._make_outcome("paused") if self._past.open_calls else None

    def _stop_late(self, words: str) -> Outcome:
        """Record that the time of the turn is over, with the beginning of an answer."""
        partial: list[Record] = [records.PartialRecord(text=words, why="the time budget is spent")] if words else []
        note = records.NoteRecord(kind="budget", text=self._budget_stop() or "stopped: the time budget is spent")
        self._journal.write(*partial, note)
        return self._make_outcome("over_budget")

    def _prepare_request(self) -> PreparedRequest:
        loop, past = self._loop, self._past
        if loop.assemble is not None:
            made = compare_request(past, loop.backend, loop.view, loop.assemble(past))
        else:
            made = prepare_request(
                past, loop.backend, loop.view, loop.budget.answer or loop.backend.max_tokens or _ANSWER
            )
        if made.append:
            self._journal.inject(made.append, "state")
        self._said |= dict.fromkeys(made.said)
        return made

    def _budget_stop(self) -> str | None:
        budget, past = self._loop.budget, self._past
        if budget.requests is not None and past.requests - self._first_request >= budget.requests:
            return f"stopped: {budget.requests} requests were allowed"
        used = self._turn_usage()
        if budget.tokens is not None and used.input + used.output >= budget.tokens:
            return f"stopped: {budget.tokens} tokens were allowed"
        if budget.seconds is not None and self._ends is not None and time.monotonic() >= self._ends:
            return f"stopped: {budget.seconds:g} seconds were allowed"
        return None

    def _turn_usage(self) -> ReplyTokens:
        now, before = self._past.usage, self._spent
        return ReplyTokens(
            now.input - before.input, now.output - before.output,
            now.cache_read - before.cache_read, now.cache_write - before.cache_write,
        )  # fmt: skip

    def _new_inbox(self) -> queue.SimpleQueue[Any]:
        """Return an inbox without leftovers."""
        self._loop._inbox = queue.SimpleQueue()
        return self._loop._inbox

    def _renew_lease(self) -> float:
        self._journal.renew()
        return self._journal.ttl / 3000

    def _make_end(self) -> Outcome:
        """Return the outcome of a session in which nothing is left to do."""
        reply = self._past.reply
        if reply is None or not self._past.messages:
            return self._make_outcome("idle")
        return self._make_outcome(_ENDS.get(reply.stop, "done"), reply, reply.text)

    def _make_outcome(self, state: OutcomeState, reply: Reply | None = None, text: str = "") -> Outcome:
        past = self._past
        waiting = tuple(
            WaitingCall(call.part.call_id, call.part.name, call.arguments, cast(WaitingReason, call.waits))
            for call in past.open_calls
            if call.waits
        )
        requests = past.requests - self._first_request
        return Outcome(
            state, text, reply, waiting, tuple(self._settled), requests, self._turn_usage(), tuple(self._said)
        )


def _decision(response: int, call: WaitingCall, verdict: Any) -> Record:
    if isinstance(verdict, str):
        word = "settle" if call.why == "in_doubt" else "deny"
        return records.DecisionRecord(of=response, call_id=call.call_id, verdict=word, text=verdict)
    if isinstance(verdict, dict):
        return records.DecisionRecord(of=response, call_id=call.call_id, verdict="approve", arguments=verdict)
    return records.DecisionRecord(of=response, call_id=call.call_id, verdict="approve" if verdict else "deny")


#: The outcome of a response that ends a turn, by its stop reason.
_ENDS: dict[str, OutcomeState] = {"length": "truncated", "refusal": "refused", "cut": "cut"}


def _count_immediate(plan: SettlementPlan, workers: int) -> int:
    """Count the calls that start together with the response, so that their intents are written with it."""
    for n, job in enumerate(plan.jobs[:workers]):
        if job.tool.alone:
            return max(n, 1)
    return min(len(plan.jobs), workers)


@contextmanager
def _on_interrupt(cancel: Callable[[], None]) -> Iterator[None]:
    """Stop the turn on the first Ctrl-C and restore the handler for the second. Only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, before)
        cancel()

    if before is None:  # not set by Python
        yield
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
