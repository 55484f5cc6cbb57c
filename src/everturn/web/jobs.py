"""Work that takes longer than a page may: restoring, verifying. Started by a page, watched by it, one at a time.

A job is a function that is told how to say how far it is. It is known by a random id for as long as the server runs; of
the finished ones the last few are held.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec import Struct

from everturn.clock import new_id
from everturn.errors import EverturnError, NothingFound, UsageError

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
