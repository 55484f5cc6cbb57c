"""Keep open pages up to date: the archive follows the agents' files, and open pages are told.

`LiveFeed` runs the watch of the command in a thread of its own, notices what other processes write, and sends an event to
every open page (server-sent events). An event only says that something changed: a page asks for what is new itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from threading import Event, Thread
from typing import Any

import msgspec

from everturn.errors import EverturnError
from everturn.model.vocabulary import SESSION_KINDS
from everturn.store.contract import SessionFilter, Store
from everturn.store.pool import ArchivePool

#: Follows the agents' files until the event is set, and calls back whenever something was taken in.
Watch = Callable[[Store, Event, Callable[[], None]], None]

_LOOK_SECONDS = 0.5  # between two looks at what other processes wrote
_BEAT_SECONDS = 15.0  # between two signs of life, so that a browser notices a server that ended
_AGAIN_SECONDS = 5.0  # after a watch that failed


class LiveFeed:
    """The events of one run of the server. `publish` may be called from any thread."""

    def __init__(self, archive: ArchivePool, watch: Watch | None = None) -> None:
        self._archive, self._watch = archive, watch
        self._pages: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._stop = Event()
        self._threads: list[Thread] = []
        self.number = 0  # of changes published: a page that is told of another than its own asks for what is new
        self.problem = ""  # why the watch does not run, or ""

    @property
    def is_watching(self) -> bool:
        return self._watch is not None and not self.problem

    def start(self) -> None:
        """Begin to watch, and to notice what others write."""
        jobs = [self._notice, *([self._keep_watching] if self._watch is not None else [])]
        self._threads = [Thread(target=job, name="everturn-live", daemon=True) for job in jobs]
        for thread in self._threads:
            thread.start()

    def publish(self) -> None:
        """Tell every open page that something changed."""
        self.number += 1
        for loop, changed in list(self._pages):
            try:
                loop.call_soon_threadsafe(changed.set)
            except RuntimeError:  # that loop has ended
                self._pages.discard((loop, changed))

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the events for one page until the server is stopping."""
        page = (asyncio.get_running_loop(), asyncio.Event())
        self._pages.add(page)
        try:
            yield b"retry: 1000\n" + self._event()
            while not self._stop.is_set():
                try:
                    await asyncio.wait_for(page[1].wait(), _BEAT_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                page[1].clear()
                if not self._stop.is_set():
                    yield self._event()
        finally:
            self._pages.discard(page)

    def end_events(self) -> None:
        """End the events of all pages, so that the server can stop."""
        self._stop.set()
        self.publish()

    def close(self) -> None:
        """Stop the watch and wait for it."""
        self.end_events()
        for thread in self._threads:
            thread.join(30)

    def _event(self) -> bytes:
        data = {"change": self.number, "watching": self.is_watching, "problem": self.problem}
        return b"data: " + msgspec.json.encode(data) + b"\n\n"

    def _keep_watching(self) -> None:
        watch = self._watch
        while watch is not None and not self._stop.is_set():
            try:
                self.problem = ""
                self._archive.run_separately(lambda store: watch(store, self._stop, self.publish))
            except Exception as error:  # shown on pages; the server goes on
                self.problem = str(error) if isinstance(error, EverturnError) else type(error).__name__
                self.publish()
                self._stop.wait(_AGAIN_SECONDS)

    def _notice(self) -> None:
        """Publish what other processes wrote, while somebody looks."""
        seen: Any = None
        while not self._stop.wait(_LOOK_SECONDS):
            if not self._pages:
                continue
            try:
                now = self._archive.read(_newest_sessions)
            except EverturnError:
                continue
            if seen is not None and now != seen:
                self.publish()
            seen = now


def _newest_sessions(store: Store) -> list[tuple[int, int, int | None]]:
    rows, _ = store.sessions(SessionFilter(kinds=SESSION_KINDS), 5)
    return [(session.id, session.n_messages, session.ended) for session, _ in rows]
