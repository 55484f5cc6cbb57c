"""The store over any SQL database: the parts by subject, put together over a `Driver` and an `Index`.

An engine adds what only it can do (`check`, `backup`, `sizes`, `scrub`) and opens the database.

Takes things out of the archive for good. What is left in free pages and logs is up to the engine's `scrub`.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager

from everturn.store.analytics import AnalyticsPlane, AnalyticsStore
from everturn.store.checkpoints import CheckpointStore
from everturn.store.derived import DerivedStore
from everturn.store.driver import Driver
from everturn.store.index import Index
from everturn.store.index_search import IndexSearch
from everturn.store.kept import HookEventStore, KeptStore, ListStore
from everturn.store.ownership import OwnershipStore
from everturn.store.raw import Packer, RawStore
from everturn.store.session_queries import SessionQueries


class ErasureStore(RawStore, DerivedStore, ListStore):
    """The erasing part of a store over a driver."""

    def delete_file(self, source: int) -> None:
        """Remove a source file: all versions, chunks nobody else uses, everything derived, its sessions.

        Sessions of other files that had inherited from these take over, and their versions are marked to be derived
        again, because the index has no text for them (see `Ownership.release`).
        """
        versions = [version.id for version in reversed(self.versions(source))]
        for version in versions:
            self.drop_derived(version)
        for version in versions:
            self.driver.run('DELETE FROM "session" WHERE "version"=?', (version,))
            self.delete_chunks(version)
        self.drop_lists(self.file_by_id(source)[0].path)
        self.driver.run('DELETE FROM "version" WHERE "source"=?', (source,))
        self.driver.run('DELETE FROM "source_file" WHERE "id"=?', (source,))


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
