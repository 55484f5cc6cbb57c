"""The archive as the server sees it: opened when first asked for, read only, never made, never brought up to date.

An agent's client starts the server before anything else, perhaps before the first sync. So a missing archive is an error
of one call and the next call looks again; one that was replaced or whose connection broke is opened anew. Used by one
thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from everturn.clock import Clock, now
from everturn.errors import EverturnError, NothingFound, UsageError

if TYPE_CHECKING:
    from everturn.model.archive import Session
    from everturn.recall.meaning import MeaningSearch
    from everturn.sources import Source
    from everturn.store import Store

T = TypeVar("T")


class McpArchive:
    """One archive, and what "this session" and "this workspace" mean to whoever asks.

    `session` and `workspace` were given by whoever set the server up; `folder` is where it runs.
    """

    #: What a search needs to look at meaning too, by whoever set the server up; None: words alone.
    meaning: Callable[[Store], MeaningSearch | None] = staticmethod(lambda store: None)

    def __init__(self, url: str, session: str = "", workspace: str = "", folder: str = "", clock: Clock = now) -> None:
        self.url, self.session, self.workspace, self.folder, self.clock = url, session, workspace, folder, clock
        self._store: Store | None = None
        self._identity: tuple[int, int] | None = None

    def ask(self, job: Callable[[Store], T]) -> T:
        """Let a job read one view of the archive, whatever is written meanwhile.

        A connection that was good a call ago may have broken since: then the job, which only reads, runs once more.
        """
        was_open = self._store is not None
        try:
            return self._run(job)
        except (NothingFound, UsageError):
            raise
        except EverturnError:
            self.close()
            if not was_open:
                raise
        return self._run(job)

    def current(self, store: Store) -> Session | None:
        """The session that is meant when none is named: the one given, else the newest of the given workspace."""
        if self.session:
            from everturn.recall.sessions import resolve_session

            return resolve_session(store, self.session)
        if self.workspace:
            from everturn.store import SessionFilter

            rows, _ = store.sessions(SessionFilter(workspace=self.workspace), 1)
            return rows[0][0] if rows else None
        return None

    def close(self) -> None:
        """Let go of it; the next question opens it again."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _run(self, job: Callable[[Store], T]) -> T:
        store = self._open_store()
        with store.reading():
            return job(store)

    def _open_store(self) -> Store:
        from everturn.store.identity import archive_identity

        found = archive_identity(self.url)
        if self._store is not None and found != self._identity:
            self.close()  # another file lies in its place, or none
        if self._store is None:
            from everturn.store import open_store

            self._store = open_store(self.url, create=False, upgrade=False)
            self._identity = found
        return self._store


def sources() -> Mapping[str, Source]:
    """Every source, for the words of messages."""
    from everturn.sources import all_sources

    return all_sources()


def clean(text: str) -> str:
    """Words of the archive as they may leave it: secrets masked, nothing that a terminal would act on."""
    from everturn.derive.printable import printable
    from everturn.derive.redact import redact_text

    return printable(redact_text(text))
