"""One archive for callers in any thread and event loop: a dedicated thread holds the connection and does the work.

Work is a plain function that takes the store first. It runs in the order of submission, one function at a time, and its
caller gets the return value or exception. A cancelled caller gets the cancellation when the work has ended: it is done or
it failed, never in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from os import PathLike, fspath
from typing import Concatenate, ParamSpec, TypeVar, cast

from everturn.capture import policy as user_rules
from everturn.clock import Clock, now
from everturn.errors import EverturnError
from everturn.loop.journal import open_archive
from everturn.store.contract import Store
from everturn.store.sql_store import SqlStore

P = ParamSpec("P")
R = TypeVar("R")
Work = Callable[Concatenate[SqlStore, P], R]


class Archive:
    """An archive by path or URL (`memory:` too), opened on first use.

    `durability` is `power` (every commit is synced) or `process` (a power failure may lose the last commits).
    `workspace` is the folder whose capture rules apply. Unless its mode is `full`, the archive is in memory and ends with
    the process: the state of a framework cannot be masked without breaking it.
    """

    def __init__(
        self, url: str | PathLike[str], durability: str = "power", clock: Clock = now, workspace: str = ""
    ) -> None:
        self.url, self.durability, self.clock, self.workspace = fspath(url), durability, clock, workspace
        self._pool = ThreadPoolExecutor(1, "everturn-archive")
        self._store: SqlStore | None = None
        self._closed = False

    def do(self, work: Work[P, R], *given: P.args, **named: P.kwargs) -> R:
        """Run `work`, wait, and return or raise its outcome."""
        return self._submit(partial(self._run_work, work, *given, **named)).result()

    async def ado(self, work: Work[P, R], *given: P.args, **named: P.kwargs) -> R:
        """Run `work` without blocking the event loop."""
        running = asyncio.wrap_future(self._submit(partial(self._run_work, work, *given, **named)))
        cancelled: asyncio.CancelledError | None = None
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError as cancellation:
                cancelled = cancelled or cancellation
        failure = running.exception()
        if cancelled is not None:
            raise cancelled
        if failure is not None:
            raise failure
        return running.result()

    def close(self) -> None:
        """Close the database when the submitted work is done. A second call does nothing."""
        if self._closed:
            return
        self._submit(self._close_store).result()
        self._closed = True
        self._pool.shutdown()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _submit(self, work: Callable[[], R]) -> Future[R]:
        if self._closed:
            raise EverturnError(f"{self.url} was closed; open it again")
        return self._pool.submit(work)

    def _run_work(self, work: Work[P, R], *given: P.args, **named: P.kwargs) -> R:
        if self._store is None:
            store = self._open_permitted()
            assert isinstance(store, SqlStore)
            self._store = store
        return work(self._store, *given, **named)

    def _open_permitted(self) -> Store:
        policy = user_rules.user_policy()
        mode = user_rules.live_mode(policy, self.url, self.workspace)
        if mode == "full":
            return open_archive(self.url, self.durability)
        if mode == "redacted":
            user_rules.warn_not_masked(self.url)
        return user_rules.memory_store()

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


def as_archive(archive: Archive | str | PathLike[str]) -> Archive:
    """Return an open archive, or one for a path or URL."""
    return archive if isinstance(archive, Archive) else Archive(archive)


def as_store(store: SqlStore) -> Store:
    """Return the same store typed as the full contract, which the engine implements."""
    return cast(Store, store)
