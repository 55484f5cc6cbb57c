"""One connection for every thread and every event loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from everturn.errors import EverturnError, UsageError
from everturn.integrations.archive import Archive
from everturn.store.sql_store import SqlStore


def add(store: SqlStore, owner: str) -> int:
    with store.write():
        return store.add_items("f", owner, [("", b"x")], 1)[0]


def test_many_threads_write_through_one_connection_in_order(archive: Archive) -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: archive.do(add, "o"), range(40)))
    assert sorted(numbers) == list(range(1, 41))


def test_the_work_is_done_in_a_thread_of_its_own(archive: Archive) -> None:
    places = {archive.do(lambda store: threading.get_ident()) for _ in range(3)}
    assert len(places) == 1 and threading.get_ident() not in places


def test_an_event_loop_is_not_held_up_and_sees_what_threads_wrote(archive: Archive) -> None:
    archive.do(add, "o")

    async def both() -> tuple[int, int]:
        return await archive.ado(add, "o"), await archive.ado(add, "o")

    assert asyncio.run(both()) == (2, 3)


def test_who_is_cancelled_is_told_when_the_work_is_done(archive: Archive) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(store: SqlStore) -> int:
        begun.set()
        go_on.wait(60)
        return add(store, "o")

    async def cancelled_twice() -> None:
        task = asyncio.create_task(archive.ado(slow))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled_twice())
    assert archive.do(lambda store: store.last_item("f", "o")) == 1


def test_what_the_work_raises_reaches_the_caller(archive: Archive) -> None:
    def wrong(store: SqlStore) -> None:
        raise LookupError("of the work")

    with pytest.raises(LookupError, match="of the work"):
        archive.do(wrong)
    with pytest.raises(LookupError, match="of the work"):
        asyncio.run(archive.ado(wrong))


def test_a_closed_archive_says_so(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive.db")
    archive.close()
    archive.close()
    with pytest.raises(EverturnError, match="was closed"):
        archive.do(add, "o")


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with (
        Archive(tmp_path / "archive.db", durability="hope") as archive,
        pytest.raises(UsageError, match="power or process"),
    ):
        archive.do(add, "o")
