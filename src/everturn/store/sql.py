"""The store over any SQL database: the parts by subject, put together over a `Driver` and an `Index`.

An engine adds what only it can do (`check`, `backup`, `sizes`, `scrub`) and opens the database.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager

from everturn.store.analytics import Analytics, Plane
from everturn.store.checkpoints import Checkpoints
from everturn.store.driver import Driver
from everturn.store.erasing import Erasing
from everturn.store.hooked import HookedEvents
from everturn.store.index import Index
from everturn.store.kept import KeptThings
from everturn.store.ownership import Ownership
from everturn.store.packing import Packer
from everturn.store.questions import Questions
from everturn.store.searching import Searching


class SqlStore(Erasing, Questions, Searching, KeptThings, Checkpoints, Analytics, HookedEvents):
    """One archive in one SQL database. Not shared between threads."""

    def __init__(self, url: str, driver: Driver, index: Index) -> None:
        self.url = url
        self.driver = driver
        self.index = index
        self.ownership = Ownership(driver, index)
        self.plane = Plane(driver)
        self.packer = Packer()
        self._recent = OrderedDict()

    def close(self) -> None:
        """Let go of the database. May be called twice."""
        self.driver.close()

    def reading(self) -> AbstractContextManager[None]:
        """One view of the archive for the whole block, whatever others write meanwhile. Nothing is written in it."""
        return self.driver.reading()

    def write(self) -> AbstractContextManager[None]:
        """One write transaction: there as a whole, or not at all. Raises Busy, NoSpace."""
        return self.driver.write()
