"""A store over any SQL database: the parts by subject combined over a `Driver` and an `Index`, and the schema migrations.

An engine opens the database and adds what only it can do (`check`, `backup`, `sizes`, `scrub`).

Migrations only go forward, and none is half applied. Each engine has a folder `migrations/ENGINE` of `NNNN_name.sql`.
Applied ones are recorded in `schema_migrations` with a checksum: a file that changed after it was applied, or an unknown
number, means that this everturn must not touch the archive.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from everturn.errors import NewerArchive, NotAnArchive
from everturn.store.checkpoints import CheckpointStore
from everturn.store.derived import DerivedStore
from everturn.store.index import Index
from everturn.store.index_search import IndexSearch
from everturn.store.kept import HookEventStore, KeptStore, ListStore
from everturn.store.raw import Packer, RawStore
from everturn.store.session_queries import SessionQueries
from everturn.store.sql import Driver

#: Rows `(number, name, checksum)` of `schema_migrations`, in order.
Applied = Sequence[tuple[int, str, str]]

NOTE = "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)"
NOTED = "SELECT number, name, checksum FROM schema_migrations ORDER BY number"


class Migration(Struct, frozen=True):
    """One step of the schema."""

    number: int
    name: str
    sql: str
    checksum: str


@cache
def known_migrations(engine: str) -> tuple[Migration, ...]:
    """Return the schema steps of an engine that this version knows, in order."""
    # Not importlib.resources: it takes 8 ms to load, at the start of every command.
    files = sorted(Path(__file__).with_name("migrations").joinpath(engine).glob("*.sql"))
    return tuple(_migration(file.name, file.read_text(encoding="utf-8")) for file in files)


def pending_migrations(url: str, steps: Sequence[Migration], applied: Applied) -> list[Migration]:
    """Return the steps still to be applied. Raises NewerArchive or NotAnArchive before anything is changed."""
    newest = max((number for number, _, _ in applied), default=0)
    if newest > steps[-1].number:
        raise NewerArchive(url, newest, steps[-1].number)
    for (number, name, checksum), step in zip(applied, steps, strict=False):
        if (number, checksum) != (step.number, step.checksum):
            raise NotAnArchive(url, f"its schema step {number} ({name}) is not the one this everturn knows")
    return list(steps[len(applied) :])


def _migration(name: str, sql: str) -> Migration:
    number, _, rest = name.removesuffix(".sql").partition("_")
    return Migration(int(number), rest, sql, sha256(sql.replace("\r\n", "\n").encode()).hexdigest())


class SqlStore(
    RawStore, DerivedStore, ListStore, SessionQueries, IndexSearch, KeptStore, CheckpointStore, HookEventStore
):
    """One archive in one SQL database. Not shared between threads."""

    def __init__(self, url: str, driver: Driver, index: Index) -> None:
        self.url = url
        self.driver = driver
        self.index = index
        self.packer = Packer()
        self._recent = OrderedDict()

    def close(self) -> None:
        self.driver.close()

    def reading(self) -> AbstractContextManager[None]:
        return self.driver.reading()

    def write(self) -> AbstractContextManager[None]:
        return self.driver.write()

    def delete_file(self, source: int) -> None:
        """Delete a source file: all versions, chunks no other version uses, derived rows and sessions.

        Sessions of other files that inherited from these take over, and their versions are marked to be derived again,
        because the index has no text for them (see `OwnershipStore`).
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
