"""An archive that stays open for a long time: one connection per thread, reopened when it breaks.

The web server, the MCP server and the screens read an archive for hours. Meanwhile the database server may drop a
connection, and another process may replace the file. So a read that fails on a connection that had worked before is
repeated once on a new connection, and a replaced file is noticed before the next read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import closing, nullcontext
from typing import TypeVar

from everturn.errors import EverturnError, NothingFound, UsageError
from everturn.store.contract import Store, open_store

T = TypeVar("T")


def open_existing(url: str) -> Store:
    """Open an archive that must exist, and upgrade its schema if it is older."""
    return open_store(url, create=False)


class ArchivePool:
    """The connections to one archive. Every method may be called from any thread."""

    def __init__(self, url: str, open_archive: Callable[[str], Store] = open_existing) -> None:
        self.url = url
        self._open_archive = open_archive
        self._lock = threading.Lock()
        self._open: dict[int, tuple[Store, object]] = {}  # by thread: the connection, and the identity of its file

    def read(self, job: Callable[[Store], T], one_view: bool = True) -> T:
        """Run a job that only reads, on the connection of this thread. It may run twice: see the module.

        The job sees one view of the archive, whatever is written meanwhile. Without `one_view` it sees every change,
        and may bring derived rows up to date.
        """
        was_open = threading.get_ident() in self._open
        try:
            return _run(job, self._connection(), one_view)
        except (NothingFound, UsageError):
            raise
        except EverturnError:
            self._close_connection()
            if not was_open:
                raise
        return _run(job, self._connection(), one_view)

    def run_separately(self, job: Callable[[Store], T], one_view: bool = False) -> T:
        """Run a job that writes or takes long, once, on a connection of its own."""
        with closing(self._open_archive(self.url)) as store:
            return _run(job, store, one_view)

    def close(self) -> None:
        """Close every connection; the next read opens one again."""
        with self._lock:
            connections, self._open = list(self._open.values()), {}
        for store, _ in connections:
            store.close()

    def _connection(self) -> Store:
        thread, identity = threading.get_ident(), archive_identity(self.url)
        if thread in self._open and self._open[thread][1] != identity:
            self._close_connection()  # the file was replaced or removed
        if thread not in self._open:
            store = self._open_archive(self.url)
            with self._lock:
                self._open[thread] = store, identity
        return self._open[thread][0]

    def _close_connection(self) -> None:
        with self._lock:
            connection = self._open.pop(threading.get_ident(), None)
        if connection is not None:
            connection[0].close()


def _run(job: Callable[[Store], T], store: Store, one_view: bool) -> T:
    with store.reading() if one_view else nullcontext():
        return job(store)


def archive_identity(url: str) -> tuple[int, int] | None:
    """Return device and inode of an archive file, or None without one. Another file may replace an archive left open."""
    try:
        info = os.stat(url)
    except (OSError, ValueError):
        return None
    return info.st_dev, info.st_ino
