"""The loop for asynchronous programs: its tools run in the caller's event loop, and its progress comes as events.

    loop = AsyncLoop(backend, tools)
    async for event in loop.stream(journal, "…"):
        print(event.kind, event.text)

The loop itself runs in a thread; tools, `reconcile`, approvals and `decide` that are asynchronous run in the event loop of the
caller. Cancelling the task, or leaving the iteration, stops the turn in order: the request is closed, tools are cancelled,
and known results are written before the cancellation goes on. One `AsyncLoop` may run many sessions at the same time.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, Unpack

from everturn.errors import ModelError
from everturn.llm.protocol import Backend, ChatPart, Delta
from everturn.loop.execution import ExecutionLimits
from everturn.loop.journal import Journal
from everturn.loop.loop import Assemble, Budget, Loop, Outcome, WaitingCall, Watch
from everturn.loop.model_request import RequestView
from everturn.loop.settlement import CALLER, Coroutines
from everturn.loop.tools import Tool


@dataclass(frozen=True)
class LoopEvent:
    """One thing that happened in a turn.

    text       words of the answer
    thinking   words of a thought
    call       a tool began: `name`, `arguments`
    result     a tool ended: `text`, `is_error`
    waiting    a call waits for a human: `name`, `arguments`
    done       the turn ended: `outcome`; the last event
    """

    kind: Literal["text", "thinking", "call", "result", "waiting", "done"]
    text: str = ""
    call_id: str = ""
    name: str = ""
    arguments: Any = None
    is_error: bool = False
    outcome: Outcome | None = None


class LoopOptions(TypedDict, total=False):
    """Further options of an `AsyncLoop`, as fields of `Loop`."""

    budget: Budget
    limits: ExecutionLimits
    interactive: bool
    watch: Watch
    assemble: Assemble | None
    view: RequestView
    decide: Callable[[WaitingCall], Any] | None
    output: Any


class AsyncLoop:
    """A `Loop` with asynchronous methods; the options are those of `Loop`."""

    def __init__(
        self, backend: Backend, tools: Sequence[Tool] = (), system: str = "", **options: Unpack[LoopOptions]
    ) -> None:
        self._loop = Loop(backend, tools, system, **options)

    async def run(self, journal: Journal, prompt: str | Sequence[ChatPart]) -> Outcome:
        """See `Loop.run`."""
        return await self._run_to_end(journal, prompt)

    async def resume(self, journal: Journal) -> Outcome:
        """See `Loop.resume`."""
        return await self._run_to_end(journal, None)

    async def stream(
        self, journal: Journal, prompt: str | Sequence[ChatPart] | None = None
    ) -> AsyncGenerator[LoopEvent, None]:
        """Yield what happens. Without a prompt the session is resumed. A failing model ends it with an outcome `failed`.

        To leave the iteration before its end, use `async with contextlib.aclosing(loop.stream(…)) as events`: the turn has
        then been stopped when the block ends. After a bare `break`, Python stops it some time later.
        """
        home, events = asyncio.get_running_loop(), asyncio.Queue[LoopEvent | None]()

        def tell(event: LoopEvent | None) -> None:
            home.call_soon_threadsafe(events.put_nowait, event)

        loop = self._own_loop(_make_watch(tell, self._loop.watch))
        running = asyncio.ensure_future(asyncio.to_thread(_work, loop, journal, prompt, tell, home))
        try:
            while (event := await events.get()) is not None:
                yield event
            outcome = await asyncio.shield(running)
        except ModelError as error:
            outcome = Outcome("failed", error=error)
        finally:
            if not running.done():
                loop.cancel()
                await _settle(running)
        for call in outcome.waiting:
            yield LoopEvent("waiting", call.why, call.call_id, call.name, call.arguments)
        yield LoopEvent("done", outcome.text, outcome=outcome)

    async def _run_to_end(self, journal: Journal, prompt: str | Sequence[ChatPart] | None) -> Outcome:
        async with aclosing(self.stream(journal, prompt)) as events:
            outcome = [event.outcome async for event in events][-1]
        assert outcome is not None
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def _own_loop(self, watch: Watch) -> Loop:
        """Return a loop for one turn, so that turns of several sessions do not stop each other."""
        coroutines = Coroutines(asyncio.get_running_loop())
        return replace(
            self._loop, watch=watch, coroutines=coroutines, _cancelled=threading.Event(), _inbox=queue.SimpleQueue()
        )


def _work(
    loop: Loop, journal: Journal, prompt: Any, tell: Callable[[LoopEvent | None], None], home: asyncio.AbstractEventLoop
) -> Outcome:
    CALLER.set(home)  # in a context of this thread's own
    try:
        return loop.resume(journal) if prompt is None else loop.run(journal, prompt)
    finally:
        tell(None)


async def _settle(running: asyncio.Future[Any]) -> None:
    """Wait until the thread has ended, however often the waiting is cancelled."""
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            continue
    running.exception()


def _make_watch(tell: Callable[[LoopEvent], None], own: Watch) -> Watch:
    def delta(one: Delta) -> None:
        own.delta(one)
        if one.kind in ("text", "thinking") and one.text:
            tell(LoopEvent("text" if one.kind == "text" else "thinking", one.text))

    def call(event: str, about: Any) -> None:
        own.call(event, about)
        if event == "started":
            tell(LoopEvent("call", "", about.call_id, about.name, about.arguments))
        else:
            part = about.part
            tell(LoopEvent("result", about.text, part.call_id, part.name, part.arguments, about.is_error))

    return Watch(delta, call)
