"""Takes things out of the archive for good. What is left in free pages and logs is up to the engine's `scrub`."""

from __future__ import annotations

from everturn.store.derived import DerivedStore
from everturn.store.items import ListStore
from everturn.store.raw import RawStore


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
