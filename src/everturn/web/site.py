"""One run of the web server: its archive, its settings as plain values, its token, its jobs.

`WebJobs` runs work that takes longer than a page may, one job at a time: a page starts a job and polls it. A job is a
function that gets a callback for its progress. Of the finished jobs the last few are kept.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from everturn.clock import Clock, new_id, now
from everturn.errors import EverturnError, NothingFound, UsageError
from everturn.store.contract import Store
from everturn.store.pool import ArchivePool, open_existing
from everturn.web.live import LiveFeed, Watch

if TYPE_CHECKING:
    from everturn.llm.asker import Asker
    from everturn.model.archive import Session
    from everturn.sessions.messages import Sources
    from everturn.sources.contract import SearchPlaces


T = TypeVar("T")

#: Threads that read. More would only wait for the processor.
THREADS = 4


class WebArchive(ArchivePool):
    """One archive and the threads that read it."""

    def __init__(self, url: str, open_archive: Callable[[str], Store] = open_existing) -> None:
        super().__init__(url, open_archive)
        self._threads = ThreadPoolExecutor(THREADS, "everturn-web")

    async def ask(self, job: Callable[[Store], T], one_view: bool = True) -> T:
        """Run a job that reads (`ArchivePool.read`) in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.read, job, one_view)

    async def change(self, job: Callable[[Store], T]) -> T:
        """Run a job that writes in one of the threads, on a connection of its own."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.run_separately, job)

    def close(self) -> None:
        """Close the archive when the running jobs have ended."""
        self._threads.shutdown()
        super().close()


_MOST_JOBS = 20
_MOST_WAITING = 8

#: Called with (done, total).
Step = Callable[[int, int], None]


class WebJob(Struct):
    id: str
    name: str
    subject: str = ""  # the same name and subject do not run twice at a time
    state: str = "waiting"  # waiting | running | done | failed
    done: int = 0
    total: int = 0
    error: str = ""
    result: Any = None


class JobsStopped(EverturnError):
    """The server is stopping."""


class WebJobs:
    """The jobs of one run, in one thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "everturn-job")
        self._jobs: dict[str, WebJob] = {}
        self._lock = threading.Lock()
        self._ending = False

    def start(self, name: str, subject: str, work: Callable[[Step], Any]) -> WebJob:
        """Start a job, or return the one that is already running. Raises UsageError when too many wait."""
        with self._lock:
            going = [job for job in self._jobs.values() if job.state in ("waiting", "running")]
            same = next((job for job in going if (job.name, job.subject) == (name, subject)), None)
            if same is not None:
                return same
            if len(going) >= _MOST_WAITING:
                raise UsageError(f"{len(going)} jobs are already waiting; wait for one to finish")
            job = WebJob(new_id(), name, subject)
            self._jobs[job.id] = job
            for old in list(self._jobs)[:-_MOST_JOBS]:
                if self._jobs[old].state in ("done", "failed"):
                    del self._jobs[old]
        self._thread.submit(self._run, job, work)
        return job

    def get(self, number: str) -> WebJob:
        """Return the job of an id. Raises NothingFound."""
        job = self._jobs.get(number)
        if job is None:
            raise NothingFound("this job no longer exists; start it again")
        return job

    def last(self, name: str, subject: str) -> WebJob | None:
        found = [job for job in list(self._jobs.values()) if (job.name, job.subject) == (name, subject)]
        return found[-1] if found else None

    def close(self) -> None:
        """Stop the running job at its next step."""
        self._ending = True
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: WebJob, work: Callable[[Step], Any]) -> None:
        def step(done: int, total: int) -> None:
            if self._ending:
                raise JobsStopped("the server is stopping")
            job.done, job.total = done, total

        job.state = "running"
        try:
            job.result = work(step)
            job.state = "done"
        except EverturnError as error:
            job.error, job.state = str(error), "failed"
        except Exception as error:  # shown in the page; the server goes on
            job.error, job.state = f"internal error: {type(error).__name__}", "failed"


_MOST_CACHED = 300  # answers

#: Takes in what is new in the agents' files; returns the counts of its report.
SyncNow = Callable[["Store", Step], dict[str, Any]]

#: Opens a model of the config for a session, with a limit on its requests.
OpenModel = Callable[["Store", "Session", str], "Asker"]


def _ignore(text: str) -> None:
    """Drop a warning."""


@dataclass
class Site:
    """One run of the server. The command passes in what only a surface may read."""

    archive: WebArchive
    places: SearchPlaces
    machine: str = ""
    folder: Path | None = None  # of the archive, if it is a file
    models: tuple[str, ...] = ()  # names in the config
    open_model: OpenModel | None = None
    prices: Path | None = None  # the user's own price list
    clock: Clock = now
    warn: Callable[[str], None] = _ignore  # where a defect is reported
    token: str = field(default_factory=new_id)
    key: str = ""  # needed even to read; "": everybody on this machine may read
    sync: SyncNow | None = None  # None: the archive is shown as it is
    watch: Watch | None = None
    jobs: WebJobs = field(default_factory=WebJobs)
    _cache: dict[str, tuple[int, Any]] = field(default_factory=dict)  # answers with the time or size they hold for

    def __post_init__(self) -> None:
        self.live = LiveFeed(self.archive, self.watch)

    @property
    def sources(self) -> Sources:
        from everturn.sources.contract import all_sources

        return all_sources()

    @property
    def titles(self) -> Mapping[str, str]:
        return {name: source.title for name, source in self.sources.items()}

    def for_a_while(self, name: str, look: Callable[[], T], most: int = 60_000) -> T:
        """Return the cached value if it is younger than `most` milliseconds, else look it up."""
        at, value = self._cache.get(name, (0, None))
        if value is None or not 0 <= self.clock() - at < most:
            value = self._cache_value(name, self.clock(), look())
        found: T = value
        return found

    def until_it_grows(self, name: str, session: Session, look: Callable[[], T]) -> T:
        """Return the cached value of a session that has not grown, else look it up."""
        key = f"{name} {session.id}"
        size, value = self._cache.get(key, (-1, None))
        if size != session.n_messages:
            value = self._cache_value(key, session.n_messages, look())
        found: T = value
        return found

    def forget(self, *names: str) -> None:
        """Drop these values from the cache; without a name, all."""
        for name in names or tuple(self._cache):
            self._cache.pop(name, None)

    def _cache_value(self, key: str, stamp: int, value: Any) -> Any:
        self._cache.pop(key, None)
        self._cache[key] = stamp, value
        for old in list(self._cache)[:-_MOST_CACHED]:
            self._cache.pop(old, None)
        return value

    def close(self) -> None:
        """Stop the watch and the jobs, and close the archive."""
        self.live.close()
        self.jobs.close()
        self.archive.close()
