"""One event loop for everything asynchronous that a loop runs: tools, `reconcile`, `compensate`, approvals.

Clients and locks of asynchronous libraries belong to the event loop they were made in, so all coroutines of a process run in
one: that of the caller (`AsyncLoop`), or else one in a thread of its own, started when it is first needed.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


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
    try:
        loop.call_soon_threadsafe(work)
    except RuntimeError:  # the event loop has ended, and the task with it
        pass


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
