"""The archive as the screens see it: asked in one thread, so that the keyboard is never waited for.

`ask` runs a job that reads, one after the other, each with one view of the archive. `aside` runs a long one in a thread and
with a connection of its own, so that the screens go on meanwhile. Nothing is ever written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from everturn.clock import Clock, now
from everturn.store.contract import Store
from everturn.text.printable import one_line, printable

if TYPE_CHECKING:
    from everturn.sessions.messages import Sources

T = TypeVar("T")

#: Asks a character to be drawn as a picture or as text; terminals do not agree how wide it is then.
_VARIATION_SELECTORS = dict.fromkeys((0xFE0E, 0xFE0F))


class ScreenArchive:
    """One archive, and how its words are shown."""

    def __init__(self, open_it: Callable[[], Store], reveal: bool = False, clock: Clock = now) -> None:
        self._open_it, self._reveal = open_it, reveal
        self._thread = ThreadPoolExecutor(1, "archive")
        self.clock = clock
        self.clean: Callable[[str], str] = _same_text

    @property
    def sources(self) -> Sources:
        """Every source, for the words of messages; a list of sessions does without."""
        from everturn.sources.contract import all_sources

        return all_sources()

    def open(self) -> None:
        """Open it, before there is a screen: what cannot be opened is said on the terminal as everywhere."""
        self._thread.submit(self._open).result()

    def close(self) -> None:
        """Let go of it, after what was asked last."""
        self._thread.submit(self._store.close).result()
        self._thread.shutdown()

    def now(self, job: Callable[[Store], T]) -> T:
        """What a job reads, waited for: while there is no screen."""
        return self._thread.submit(self._run, job).result()

    async def ask(self, job: Callable[[Store], T]) -> T:
        """What a job reads."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, job)

    async def aside(self, job: Callable[[Store], T]) -> T:
        """What a long job gives, while others go on."""
        return await asyncio.to_thread(self._run_aside, job)

    def text(self, value: str, keep: str = "\n\t") -> str:
        """Words of the archive, fit to be shown."""
        return steady_text(printable(self.clean(value), keep))

    def line(self, value: str, width: int) -> str:
        """The beginning of some words on one line, fit to be shown. A secret is known by its whole: cut comes last."""
        return steady_text(one_line(self.clean(value), width))

    def _open(self) -> None:
        self._store = self._open_it()
        if not self._reveal:
            from everturn.sessions.secrets import archive_cleaner

            self.clean = archive_cleaner(self._store)

    def _run(self, job: Callable[[Store], T]) -> T:
        with self._store.reading():
            return job(self._store)

    def _run_aside(self, job: Callable[[Store], T]) -> T:
        with closing(self._open_it()) as store, store.reading():
            return job(store)


def steady_text(text: str) -> str:
    """The text without what makes the width of a character doubtful."""
    return text if text.isascii() else text.translate(_VARIATION_SELECTORS)


def _same_text(text: str) -> str:
    return text
