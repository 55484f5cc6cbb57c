"""Everything derived can be made again from the bytes, with the same result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from everturn.capture.intake import SyncJob
from everturn.capture.sync import sync_all, writer_for
from everturn.capture.writer import rebuild_archive
from everturn.sources.contract import SourceCandidate, SourceReader
from everturn.store.contract import Store, open_store
from tests.capture.history import (
    FORMAT,
    OTHER,
    SID,
    SOURCES,
    History,
    current,
    everything,
    hits,
    job,
    raw,
    run,
    ticking,
)


def fill(store: Store, history: History) -> None:
    shared = history.turn("common", "ground") + history.tool_turn("look", "cat a.py", "text of a.py")
    history.write(history.fork(shared, OTHER) + history.turn("own", "branch", OTHER), OTHER)
    run(store, history)
    history.write(shared + b"not json at all\n" + history.turn("later", "on"))
    run(store, history)
    history.write(shared[:-200])
    run(store, history)


def test_a_rebuild_gives_the_same_rows(store: Store, history: History) -> None:
    fill(store, history)
    before, found = (
        list(everything(store)),
        [hits(store, word) for word in ("common", "ground", "text", "later", "own")],
    )
    done = rebuild_archive(writer_for(job(store, history)), SOURCES, lambda *numbers: None)
    assert done == 3
    assert list(everything(store)) == before
    assert [hits(store, word) for word in ("common", "ground", "text", "later", "own")] == found
    assert all(found)


def test_a_rebuild_that_was_interrupted_is_finished_by_the_next_sync(store: Store, history: History) -> None:
    fill(store, history)
    before = list(everything(store))

    def stop(done: int, total: int, path: str) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild_archive(writer_for(job(store, history)), SOURCES, stop)
    assert list(everything(store)) != before
    run(store, history)
    assert list(everything(store)) == before


def with_parser(
    one: SyncJob, number: int, reader: Callable[[SourceCandidate, bytes], SourceReader] | None = None
) -> SyncJob:
    """The same job with a source of another parser version."""
    name, source = FORMAT, SOURCES[FORMAT]
    changed = structs.replace(source, parser=number)
    if reader is not None:
        changed = structs.replace(changed, reader=reader)
    return replace(one, sources={name: changed})


def test_a_newer_parser_makes_the_rows_again_also_of_old_versions_and_gone_files(
    store: Store, history: History
) -> None:
    fill(store, history)
    history.file(OTHER).unlink()
    run(store, history)
    before = list(everything(store))
    report = sync_all(with_parser(job(store, history), 99))
    assert (report.rederived, report.grown) == (3, 0)
    assert {v.parser for file, _ in store.files() for v in store.versions(file.id)} == {99}
    assert list(everything(store)) == before
    assert sync_all(with_parser(job(store, history), 99)).rederived == 0


class Broken:
    """A reader with a defect."""

    def feed(self, data: bytes, base: int, last: bool) -> None:
        raise ZeroDivisionError

    def state(self) -> bytes:
        return b""


def broken(found: SourceCandidate, state: bytes) -> SourceReader:
    return Broken()  # type: ignore[return-value]


def test_a_defect_in_a_reader_costs_no_byte_and_is_made_good_later(store: Store, history: History) -> None:
    path = history.write(history.turn("kept anyway", "yes"))
    clock = ticking()
    report = sync_all(with_parser(job(store, history, clock=clock), 1, broken))
    assert [why for _, why in report.failed] == ["the reader failed with ZeroDivisionError after byte 0"]
    assert raw(store, path) == path.read_bytes()
    history.grow(history.turn("more", "words"))
    assert run(store, history, clock=clock).waiting == 1
    late = lambda: clock() + 3_600_000  # noqa: E731
    assert run(store, history, clock=late).rederived == 1
    assert current(store).n_messages == 4
    assert hits(store, "kept") == [(SID, 0)]
    assert store.files()[0][0].fail_reason == ""


def test_a_giant_line_is_read_again_from_the_archive(tmp_path: Path, history: History) -> None:
    store = open_store("memory:")
    path = history.write(history.turn("big", "x " * 3_000_000) + history.turn("small", "y"))
    run(store, history)
    before = list(everything(store))
    rebuild_archive(writer_for(job(store, history)), SOURCES, lambda *numbers: None)
    assert list(everything(store)) == before
    assert raw(store, path) == path.read_bytes()
