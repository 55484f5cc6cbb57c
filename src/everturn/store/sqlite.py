"""The archive in one SQLite file (or in memory): the shared store, and what only SQLite can do.

    archive.db, sqlite:archive.db     a file: write-ahead log, many readers and one writer at a time
    memory:                           the same engine without a file, for tests and trials

`durable` syncs the log at every commit. Without it the last transactions can be lost with the power, which does no harm
to what can be read again from its source; the database stays whole either way.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from everturn.clock import Clock, now
from everturn.errors import Busy, EverturnError, NotAnArchive, UsageError
from everturn.store import StoreHealth
from everturn.store.sql import SqlStore
from everturn.store.sqlite_driver import SqliteDriver
from everturn.store.sqlite_index import SqliteIndex
from everturn.store.sqlite_opening import copy_into, migration_copies, open_file, open_memory

_MOST_PROBLEMS = 20  # problems of a damaged database that are listed


def open_sqlite(
    url: str, create: bool = True, clock: Clock = now, durable: bool = False, upgrade: bool = True
) -> SqliteStore:
    """Open an archive, make it if there is none and `create` is set, bring it up to date."""
    if url == "memory:":
        return SqliteStore(url, open_memory(url, clock), None)
    path = Path(url.removeprefix("sqlite:").removeprefix("//"))
    return SqliteStore(url, open_file(path, url, create, clock, durable, upgrade), path)


class SqliteStore(SqlStore):
    """An archive in SQLite."""

    driver: SqliteDriver
    index: SqliteIndex

    def __init__(self, url: str, driver: SqliteDriver, path: Path | None) -> None:
        super().__init__(url, driver, SqliteIndex(driver))
        self._path = path

    def check(self, quick: bool = False) -> StoreHealth:
        """Ask SQLite whether the database is whole: pages, indexes, full text, references."""
        kind = "quick_check" if quick else "integrity_check"
        problems: list[str] = []
        try:
            problems += [str(row[0]) for row in self.driver.all(f"PRAGMA {kind}({_MOST_PROBLEMS})") if row[0] != "ok"]
            broken = self.driver.all("PRAGMA foreign_key_check")
            problems += [
                f"a row of {row[0]} names a row of {row[2]} that is not there" for row in broken[:_MOST_PROBLEMS]
            ]
        except NotAnArchive as failure:
            problems.append(str(failure))
        return StoreHealth("sqlite", self._schema_number(), problems)

    def backup(self, path: str) -> None:
        """Copy the whole archive into a new file while others go on writing."""
        place = Path(path)
        if place.exists():
            raise UsageError(f"{path} exists already; name a file that does not")
        copy_into(self.driver, place)

    def sizes(self) -> dict[str, int]:
        """Bytes by part: what raw chunks and index entries take, the rest, the whole file."""
        raw = self._number('SELECT SUM(LENGTH("data")) FROM "blob"')
        index = self._number("SELECT SUM(LENGTH(block)) FROM fts_data")
        index += self._number("SELECT SUM(LENGTH(sz)) FROM fts_docsize")
        total = self._number("PRAGMA page_count") * self._number("PRAGMA page_size")
        return {"raw": raw, "index": index, "rest": total - raw - index, "total": total}

    def scrub(self) -> None:
        """After deletions: no byte of what was deleted is left in the file, its log, or copies made before migrations."""
        with self.write():
            self.index.settle()
        self.driver.run("VACUUM")
        if self._path is None:
            return
        log = self.driver.one("PRAGMA wal_checkpoint(TRUNCATE)")
        if log is None or log[0]:
            raise Busy(self.url)
        if self._number("PRAGMA freelist_count"):
            raise EverturnError(f"{self.url} still has free pages with old content; run it again")
        for copy in migration_copies(self._path):
            copy.unlink(missing_ok=True)

    def _schema_number(self) -> int:
        with suppress(EverturnError):
            return self._number("PRAGMA user_version")
        return 0

    def _number(self, sql: str) -> int:
        row = self.driver.one(sql)
        return int(row[0] or 0) if row else 0
