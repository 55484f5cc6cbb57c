"""The archive as the server sees it: asked in a few threads, each with a connection of its own.

`ask` runs a job that reads, with one view of the archive for as long as it takes; `change` one that writes. A connection
that has broken since the last question, or whose file was replaced, is opened anew.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from typing import TypeVar

from everturn.errors import EverturnError, NothingFound, UsageError
from everturn.store import Store, open_store
from everturn.store.identity import archive_identity

T = TypeVar("T")

#: Readers at the same time. More would only wait for the processor.
THREADS = 4


class WebArchive:
    """One archive and the threads that ask it."""

    def __init__(self, url: str, opened: Callable[[str], Store] | None = None) -> None:
        self.url = url
        self._open_it = opened or _open_existing
        self._threads = ThreadPoolExecutor(THREADS, "everturn-web")
        self._own = threading.local()
        self._all: list[Store] = []
        self._lock = threading.Lock()

    async def ask(self, job: Callable[[Store], T], one_view: bool = True) -> T:
        """What a job reads, in one of the threads; without `one_view` it may also write."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.now, job, one_view)

    async def change(self, job: Callable[[Store], T]) -> T:
        """What a job that writes gives back."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.aside, job)

    def now(self, job: Callable[[Store], T], one_view: bool = True) -> T:
        """What a job reads, in this thread. It only reads: where the connection has broken, it runs once more."""
        was_open = getattr(self._own, "store", None) is not None
        try:
            return self._run(job, one_view)
        except (NothingFound, UsageError):
            raise
        except EverturnError:
            self._close_own()
            if not was_open:
                raise
        return self._run(job, one_view)

    def aside(self, job: Callable[[Store], T]) -> T:
        """Run a job that writes, or a long one, with a connection for it alone."""
        with closing(self._open_it(self.url)) as store:
            return job(store)

    def close(self) -> None:
        """Let go of everything, after what was asked last."""
        self._threads.shutdown()
        for store in self._all:
            store.close()

    def _run(self, job: Callable[[Store], T], one_view: bool) -> T:
        store = self._own_store()
        with store.reading() if one_view else nullcontext():
            return job(store)

    def _own_store(self) -> Store:
        own = self._own
        now = archive_identity(self.url)
        if getattr(own, "store", None) is not None and now != own.identity:
            self._close_own()  # another file lies in its place, or none
        if getattr(own, "store", None) is None:
            own.store, own.identity = self._open_it(self.url), now
            with self._lock:
                self._all.append(own.store)
        store: Store = own.store
        return store

    def _close_own(self) -> None:
        store, self._own.store = getattr(self._own, "store", None), None
        if store is not None:
            with self._lock:
                self._all.remove(store)
            store.close()


def _open_existing(url: str) -> Store:
    return open_store(url, create=False)
