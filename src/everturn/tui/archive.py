"""The archive as the screens read it: in one thread, so that the keyboard never waits. Nothing is ever written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from everturn.clock import Clock, now
from everturn.store.contract import Store
from everturn.store.pool import ArchivePool, open_existing
from everturn.text.printable import one_line, printable

if TYPE_CHECKING:
    from everturn.sessions.messages import Sources

T = TypeVar("T")

#: Selectors that draw a character as a picture or as text; terminals do not agree how wide it is then.
_VARIATION_SELECTORS = dict.fromkeys((0xFE0E, 0xFE0F))


class ScreenArchive:
    """One archive, and the text of it as the screens show it."""

    def __init__(
        self, url: str, reveal: bool = False, clock: Clock = now, open_archive: Callable[[str], Store] = open_existing
    ) -> None:
        self._pool, self._reveal = ArchivePool(url, open_archive), reveal
        self._thread = ThreadPoolExecutor(1, "archive")
        self.clock = clock
        self.clean: Callable[[str], str] = str

    @property
    def sources(self) -> Sources:
        """Every source; imported when a message is rendered, as a list of sessions needs none."""
        from everturn.sources.contract import all_sources

        return all_sources()

    def open(self) -> None:
        """Open the archive before there is a screen, so that a failure is printed as for any other command."""
        self.clean = self.read(self._make_cleaner)

    def close(self) -> None:
        """Close the archive when the running jobs have ended."""
        self._thread.shutdown()
        self._pool.close()

    def read(self, job: Callable[[Store], T]) -> T:
        """Run a job that reads and wait for it; only while there is no screen."""
        return self._thread.submit(self._pool.read, job).result()

    async def ask(self, job: Callable[[Store], T]) -> T:
        """Run a job that reads, after those that were given before."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._pool.read, job)

    async def ask_separately(self, job: Callable[[Store], T]) -> T:
        """Run a long job that reads, beside the others."""
        return await asyncio.to_thread(self._pool.run_separately, job, True)

    def text(self, value: str, keep: str = "\n\t") -> str:
        """Return text of the archive without secrets and control characters."""
        return steady_text(printable(self.clean(value), keep))

    def line(self, value: str, width: int) -> str:
        """Return the beginning of a text on one line. Half a secret is not recognized, so the cut comes last."""
        return steady_text(one_line(self.clean(value), width))

    def _make_cleaner(self, store: Store) -> Callable[[str], str]:
        if self._reveal:
            return str
        from everturn.sessions.secrets import archive_cleaner

        return archive_cleaner(store)


def steady_text(text: str) -> str:
    """Return the text without variation selectors, which make the width of a character doubtful."""
    return text if text.isascii() else text.translate(_VARIATION_SELECTORS)
