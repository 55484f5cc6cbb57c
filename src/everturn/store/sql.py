"""The store over any SQL database: the parts by subject, put together over a `Driver` and an `Index`.

An engine adds what only it can do (`check`, `backup`, `sizes`, `scrub`) and opens the database.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager

from everturn.store.analytics import AnalyticsPlane, AnalyticsStore
from everturn.store.checkpoints import CheckpointStore
from everturn.store.driver import Driver
from everturn.store.erasing import ErasureStore
from everturn.store.hooked import HookEventStore
from everturn.store.index import Index
from everturn.store.kept import KeptStore
from everturn.store.ownership import OwnershipStore
from everturn.store.packing import Packer
from everturn.store.questions import SessionQueries
from everturn.store.searching import IndexSearch


class SqlStore(ErasureStore, SessionQueries, IndexSearch, KeptStore, CheckpointStore, AnalyticsStore, HookEventStore):
    """One archive in one SQL database. Not shared between threads."""

    def __init__(self, url: str, driver: Driver, index: Index) -> None:
        self.url = url
        self.driver = driver
        self.index = index
        self.ownership = OwnershipStore(driver, index)
        self.plane = AnalyticsPlane(driver)
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
