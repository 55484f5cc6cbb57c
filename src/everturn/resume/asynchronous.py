"""The asynchronous face of synchronous work: one thread of its own, one piece of work after another.

An archive's connection belongs to one thread, and there is nothing to be gained from two. Whoever is cancelled while
waiting is told so when the work has ended: it is done or it failed, never somewhere between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class OneThread:
    """Runs plain functions, in the order they are handed in."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, name)

    async def run(self, work: Callable[P, R], *given: P.args, **named: P.kwargs) -> R:
        """What `work` returns or raises, without holding up the event loop."""
        running = asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *given, **named))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # whoever was cancelled does not want to know
            raise

    def close(self) -> None:
        """Let the thread end when what was handed in is done."""
        self._pool.shutdown(wait=False)
