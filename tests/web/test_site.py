"""Work that takes a while: one thing at a time, the same thing once, its end told whatever it is."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from everturn.errors import NothingFound, UsageError
from everturn.web.site import WebJob, WebJobs


@pytest.fixture
def jobs() -> object:
    made = WebJobs()
    yield made
    made.close()


def ended(jobs: WebJobs, job: WebJob) -> WebJob:
    while jobs.get(job.id).state in ("waiting", "running"):
        threading.Event().wait(0.005)
    return jobs.get(job.id)


def waiting_for(gate: threading.Event) -> Callable[[object], str]:
    def work(step: object) -> str:
        gate.wait(30)
        return "done"

    return work


def test_a_job_tells_how_far_it_is_and_what_it_gave(jobs: WebJobs) -> None:
    def work(step: Callable[[int, int], None]) -> str:
        step(1, 2)
        return "all of it"

    job = ended(jobs, jobs.start("read", "x", work))
    assert (job.state, job.done, job.total, job.result) == ("done", 1, 2, "all of it")
    assert jobs.last("read", "x") is job


def test_the_same_is_not_begun_twice_at_the_same_time(jobs: WebJobs) -> None:
    gate = threading.Event()
    first = jobs.start("read", "x", waiting_for(gate))
    assert jobs.start("read", "x", waiting_for(gate)) is first
    assert jobs.start("read", "y", waiting_for(gate)) is not first
    gate.set()
    ended(jobs, first)
    assert jobs.start("read", "x", waiting_for(gate)) is not first


def test_too_many_are_refused(jobs: WebJobs) -> None:
    gate = threading.Event()
    for number in range(8):
        jobs.start("read", str(number), waiting_for(gate))
    with pytest.raises(UsageError, match="already waiting"):
        jobs.start("read", "one more", waiting_for(gate))
    gate.set()


def test_a_failure_is_told_without_a_word_of_content(jobs: WebJobs) -> None:
    def fails(step: object) -> None:
        raise UsageError("this is how")

    def breaks(step: object) -> None:
        raise KeyError("a secret of the transcript")

    assert ended(jobs, jobs.start("a", "", fails)).error == "this is how"
    assert ended(jobs, jobs.start("b", "", breaks)).error == "internal error: KeyError"


def test_only_the_last_ones_are_held(jobs: WebJobs) -> None:
    first = ended(jobs, jobs.start("read", "0", lambda step: 0))
    for number in range(1, 40):
        ended(jobs, jobs.start("read", str(number), lambda step: 0))
    with pytest.raises(NothingFound):
        jobs.get(first.id)


def test_closing_stops_a_job_at_its_next_step() -> None:
    jobs, begun = WebJobs(), threading.Event()

    def endless(step: Callable[[int, int], None]) -> None:
        while True:
            step(0, 1)
            begun.set()
            threading.Event().wait(
                0.001
            )  # steps are apart from each other: a loop without a pause would keep the lock from `close`

    job = jobs.start("read", "", endless)
    begun.wait(30)
    jobs.close()
    assert (job.state, job.error) == ("failed", "the server is stopping")
