"""An archive that stays open: one connection per thread, reopened when it breaks or its file is replaced."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.errors import Busy, NoArchive, UsageError
from everturn.store.contract import Store, open_store
from everturn.store.pool import ArchivePool, open_existing


class CountedPool(ArchivePool):
    """A pool that counts the connections it opens."""

    def __init__(self, url: str) -> None:
        self.opened: list[Store] = []
        super().__init__(url, self._open_counted)

    def _open_counted(self, url: str) -> Store:
        self.opened.append(open_existing(url))
        return self.opened[-1]


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[CountedPool]:
    _create(tmp_path / "archive.db", "first")
    made = CountedPool(str(tmp_path / "archive.db"))
    yield made
    made.close()


def _create(path: Path, name: str) -> None:
    store = open_store(str(path))
    with store.write():
        store.set_setting("name", name)
    store.close()


def _name(store: Store) -> str:
    return store.setting("name")


class FailingJob:
    """A job that fails a number of times, then reads."""

    def __init__(self, error: Exception, failures: int = 1) -> None:
        self.error, self.failures, self.runs = error, failures, 0

    def __call__(self, store: Store) -> str:
        self.runs += 1
        if self.runs <= self.failures:
            raise self.error
        return _name(store)


def test_a_thread_keeps_its_connection(pool: CountedPool) -> None:
    assert [pool.read(_name) for _ in range(3)] == ["first"] * 3
    assert len(pool.opened) == 1


def test_every_thread_has_a_connection_of_its_own(pool: CountedPool) -> None:
    seen = [pool.read(lambda store: store)]
    thread = threading.Thread(target=lambda: seen.append(pool.read(lambda store: store)))
    thread.start()
    thread.join()
    assert seen == pool.opened
    assert len(set(map(id, seen))) == 2


def test_a_read_is_repeated_once_when_its_connection_broke(pool: CountedPool) -> None:
    pool.read(_name)
    job = FailingJob(Busy("the connection is gone"))
    assert pool.read(job) == "first"
    assert (job.runs, len(pool.opened)) == (2, 2)


def test_a_read_that_fails_twice_fails(pool: CountedPool) -> None:
    pool.read(_name)
    job = FailingJob(Busy("the connection is gone"), 2)
    with pytest.raises(Busy):
        pool.read(job)
    assert job.runs == 2


def test_a_read_on_a_new_connection_is_not_repeated(pool: CountedPool) -> None:
    job = FailingJob(Busy("the connection is gone"))
    with pytest.raises(Busy):
        pool.read(job)
    assert job.runs == 1


def test_a_mistake_of_the_caller_is_not_repeated(pool: CountedPool) -> None:
    pool.read(_name)
    job = FailingJob(UsageError("no such session"))
    with pytest.raises(UsageError):
        pool.read(job)
    assert (job.runs, len(pool.opened)) == (1, 1)


def test_a_replaced_file_is_opened_again(pool: CountedPool, tmp_path: Path) -> None:
    assert pool.read(_name) == "first"
    _create(tmp_path / "other.db", "second")
    os.replace(tmp_path / "other.db", pool.url)
    assert pool.read(_name) == "second"


def test_a_missing_archive_fails_one_read(tmp_path: Path) -> None:
    pool = ArchivePool(str(tmp_path / "archive.db"))
    with pytest.raises(NoArchive):
        pool.read(_name)
    _create(tmp_path / "archive.db", "first")
    assert pool.read(_name) == "first"
    pool.close()


def test_a_separate_job_has_a_connection_of_its_own_and_runs_once(pool: CountedPool) -> None:
    pool.read(_name)
    job = FailingJob(Busy("the connection is gone"))
    with pytest.raises(Busy):
        pool.run_separately(job)
    assert (job.runs, len(pool.opened)) == (1, 2)


def test_a_closed_pool_opens_again(pool: CountedPool) -> None:
    pool.read(_name)
    pool.close()
    assert pool.read(_name) == "first"
    assert len(pool.opened) == 2
