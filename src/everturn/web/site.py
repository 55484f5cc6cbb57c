"""What one run of the server is: its archive, its settings as plain values, its token, its jobs.

The archive as the server sees it: asked in a few threads, each with a connection of its own.

`ask` runs a job that reads, with one view of the archive for as long as it takes; `change` one that writes. A connection
that has broken since the last question, or whose file was replaced, is opened anew.

Work that takes longer than a page may: restoring, verifying. Started by a page, watched by it, one at a time.

A job is a function that is told how to say how far it is. It is known by a random id for as long as the server runs; of
the finished ones the last few are held.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from everturn.clock import Clock, new_id, now
from everturn.errors import EverturnError, NothingFound, UsageError
from everturn.store.contract import Store, archive_identity, open_store

if TYPE_CHECKING:
    from everturn.llm.asker import Asker
    from everturn.model.archive import Session
    from everturn.sessions.messages import Sources
    from everturn.sources.contract import SearchPlaces


T = TypeVar("T")

#: Readers at the same time. More would only wait for the processor.
THREADS = 4


class WebArchive:
    """One archive and the threads that ask it."""

    def __init__(self, url: str, opened: Callable[[str], Store] | None = None) -> None:
        self.url = url
        self._open_it = opened or _open_existing
        self._threads = ThreadPoolExecutor(THREADS, "everturn-web")
        self._own = threading.local()
        self._all: list[Store] = []
        self._lock = threading.Lock()

    async def ask(self, job: Callable[[Store], T], one_view: bool = True) -> T:
        """What a job reads, in one of the threads; without `one_view` it may also write."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.now, job, one_view)

    async def change(self, job: Callable[[Store], T]) -> T:
        """What a job that writes gives back."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.aside, job)

    def now(self, job: Callable[[Store], T], one_view: bool = True) -> T:
        """What a job reads, in this thread. It only reads: where the connection has broken, it runs once more."""
        was_open = getattr(self._own, "store", None) is not None
        try:
            return self._run(job, one_view)
        except (NothingFound, UsageError):
            raise
        except EverturnError:
            self._close_own()
            if not was_open:
                raise
        return self._run(job, one_view)

    def aside(self, job: Callable[[Store], T]) -> T:
        """Run a job that writes, or a long one, with a connection for it alone."""
        with closing(self._open_it(self.url)) as store:
            return job(store)

    def close(self) -> None:
        """Let go of everything, after what was asked last."""
        self._threads.shutdown()
        for store in self._all:
            store.close()

    def _run(self, job: Callable[[Store], T], one_view: bool) -> T:
        store = self._own_store()
        with store.reading() if one_view else nullcontext():
            return job(store)

    def _own_store(self) -> Store:
        own = self._own
        now = archive_identity(self.url)
        if getattr(own, "store", None) is not None and now != own.identity:
            self._close_own()  # another file lies in its place, or none
        if getattr(own, "store", None) is None:
            own.store, own.identity = self._open_it(self.url), now
            with self._lock:
                self._all.append(own.store)
        store: Store = own.store
        return store

    def _close_own(self) -> None:
        store, self._own.store = getattr(self._own, "store", None), None
        if store is not None:
            with self._lock:
                self._all.remove(store)
            store.close()


def _open_existing(url: str) -> Store:
    return open_store(url, create=False)


_MOST_JOBS = 20
_MOST_WAITING = 8

#: Called with (done, total).
Step = Callable[[int, int], None]


class WebJob(Struct):
    """How far a piece of work is."""

    id: str
    name: str
    subject: str = ""  # what it is about: the same is not done twice at the same time
    state: str = "waiting"  # waiting | running | done | failed
    done: int = 0
    total: int = 0
    error: str = ""
    result: Any = None


class JobsStopped(EverturnError):
    """The server ends."""


class WebJobs:
    """The work of one run, in a thread of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "everturn-job")
        self._jobs: dict[str, WebJob] = {}
        self._lock = threading.Lock()
        self._ending = False

    def start(self, name: str, subject: str, work: Callable[[Step], Any]) -> WebJob:
        """Begin it, or give the one that is at it already. Raises Usage when too much is waiting."""
        with self._lock:
            going = [job for job in self._jobs.values() if job.state in ("waiting", "running")]
            same = next((job for job in going if (job.name, job.subject) == (name, subject)), None)
            if same is not None:
                return same
            if len(going) >= _MOST_WAITING:
                raise UsageError(f"{len(going)} jobs are waiting already; let one of them end first")
            job = WebJob(new_id(), name, subject)
            self._jobs[job.id] = job
            for old in list(self._jobs)[:-_MOST_JOBS]:
                if self._jobs[old].state in ("done", "failed"):
                    del self._jobs[old]
        self._thread.submit(self._run, job, work)
        return job

    def get(self, number: str) -> WebJob:
        """The job of an id. Raises NothingFound."""
        job = self._jobs.get(number)
        if job is None:
            raise NothingFound("there is no such job any more; start it again")
        return job

    def last(self, name: str, subject: str) -> WebJob | None:
        """The newest job of a kind about something."""
        found = [job for job in list(self._jobs.values()) if (job.name, job.subject) == (name, subject)]
        return found[-1] if found else None

    def close(self) -> None:
        """Stop at the next step."""
        self._ending = True
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: WebJob, work: Callable[[Step], Any]) -> None:
        def step(done: int, total: int) -> None:
            if self._ending:
                raise JobsStopped("the server ends")
            job.done, job.total = done, total

        job.state = "running"
        try:
            job.result = work(step)
            job.state = "done"
        except EverturnError as error:
            job.error, job.state = str(error), "failed"
        except Exception as error:  # told in the page; the server goes on
            job.error, job.state = f"this should not happen: {type(error).__name__}", "failed"


_MOST_CACHED = 300  # answers

#: Opens a model of the config for a session, with a limit on how often it is asked.
OpenModel = Callable[["Store", "Session", str], "Asker"]


def _say_nothing(text: str) -> None:
    """Nobody is there to be told."""


@dataclass
class Site:
    """One run. Whoever starts it passes in what only a surface may know."""

    archive: WebArchive
    places: SearchPlaces
    machine: str = ""
    folder: Path | None = None  # where the archive lies, if it is a file
    models: tuple[str, ...] = ()  # names in the config
    open_model: OpenModel | None = None
    prices: Path | None = None  # a file with prices of one's own
    clock: Clock = now
    warn: Callable[[str], None] = _say_nothing  # where a defect is told
    token: str = field(default_factory=new_id)
    key: str = ""  # who does not know it may not even read; empty: everybody on this machine may
    jobs: WebJobs = field(default_factory=WebJobs)
    _held: dict[str, tuple[int, Any]] = field(default_factory=dict)  # answers that are the same for a while

    @property
    def sources(self) -> Sources:
        """Every source."""
        from everturn.sources.contract import all_sources

        return all_sources()

    @property
    def titles(self) -> Mapping[str, str]:
        """What the agents are called by their names."""
        return {name: source.title for name, source in self.sources.items()}

    def for_a_while(self, name: str, look: Callable[[], T], most: int = 60_000) -> T:
        """What was found out less than a minute ago, else what is found out now."""
        at, value = self._held.get(name, (0, None))
        if value is None or not 0 <= self.clock() - at < most:
            value = self._cache_value(name, self.clock(), look())
        found: T = value
        return found

    def until_it_grows(self, name: str, session: Session, look: Callable[[], T]) -> T:
        """What was found out about a session as it is, else what is found out now."""
        key = f"{name} {session.id}"
        size, value = self._held.get(key, (-1, None))
        if size != session.n_messages:
            value = self._cache_value(key, session.n_messages, look())
        found: T = value
        return found

    def forget(self, *names: str) -> None:
        """Find these out again when they are asked for; everything when none is named."""
        for name in names or tuple(self._held):
            self._held.pop(name, None)

    def _cache_value(self, key: str, stamp: int, value: Any) -> Any:
        self._held.pop(key, None)
        self._held[key] = stamp, value
        for old in list(self._held)[:-_MOST_CACHED]:
            self._held.pop(old, None)
        return value

    def close(self) -> None:
        """End what runs and let go of the archive."""
        self.jobs.close()
        self.archive.close()
