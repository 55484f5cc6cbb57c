"""Whatever happened to a file, it is taken in byte for byte, every record is accounted for, and nothing stops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.capture.sync import sync_all
from everturn.capture.writer import ArchiveWriter, rebuild_archive
from everturn.maintenance.verify import verify_archive
from everturn.store.contract import Store, open_store
from tests.capture.history import SID, History
from tests.faults.damage import DAMAGES, Damage
from tests.faults.scenes import account, conversations, job_at
from tests.transcripts import write_history

damages = st.lists(st.tuples(st.sampled_from(DAMAGES), st.integers(0, 2**32)), min_size=1, max_size=5)


@given(which=st.integers(0, 99), harm=damages)
@settings(max_examples=40)
def test_a_damaged_file_is_kept_and_accounted_for(which: int, harm: list[tuple[Damage, int]]) -> None:
    _assert_kept(_damaged(which, 0, harm))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, 5))
@given(which=st.integers(0, 99), harm=damages)
@settings(max_examples=100)
def test_hundreds_of_damaged_files_are_kept_and_accounted_for(
    part: int, which: int, harm: list[tuple[Damage, int]]
) -> None:
    _assert_kept(_damaged(which, part, harm))


@given(which=st.integers(0, 99), harm=damages, cuts=st.lists(st.floats(0, 1), min_size=1, max_size=3))
@settings(max_examples=25)
def test_a_damaged_file_that_grows_gives_the_same_rows_as_at_once(
    which: int, harm: list[tuple[Damage, int]], cuts: list[float]
) -> None:
    _assert_same_in_pieces(_damaged(which, 5, harm), cuts)


@pytest.mark.slow
@given(which=st.integers(0, 99), harm=damages, cuts=st.lists(st.floats(0, 1), min_size=1, max_size=3))
@settings(max_examples=150)
def test_many_damaged_files_that_grow_give_the_same_rows_as_at_once(
    which: int, harm: list[tuple[Damage, int]], cuts: list[float]
) -> None:
    _assert_same_in_pieces(_damaged(which, 6, harm), cuts)


@cache
def _transcripts() -> list[bytes]:
    """Files as clients of several ages leave them."""
    with TemporaryDirectory() as folder:
        write_history(Path(folder), seed=11, sessions=6, turns=4, bytes_per_output=200)
        return [path.read_bytes() for path in sorted(Path(folder).rglob("*.jsonl"))]


def _damaged(which: int, part: int, harm: list[tuple[Damage, int]]) -> bytes:
    files = _transcripts()
    data = files[which % len(files)]
    for damage, seed in harm:
        data = damage(data, Random(f"{part} {seed}")) or b"\n"
    return data


@contextmanager
def _at_hand() -> Iterator[tuple[Path, Path]]:
    """A history with one file to be written."""
    with TemporaryDirectory() as folder:
        history = History(Path(folder) / "agent")
        yield history.root, history.file(SID)


@contextmanager
def _archive() -> Iterator[Store]:
    store = open_store("memory:")
    try:
        yield store
    finally:
        store.close()


def _assert_kept(data: bytes) -> None:
    with _at_hand() as (root, path), _archive() as store:
        path.write_bytes(data)
        report = sync_all(job_at(store, root))
        assert report.failed == []
        _assert_accounted_for(store, data)
        before = account(store)
        job = job_at(store, root)
        rebuild_archive(ArchiveWriter(store, job.machine, job.owner, job.clock()), job.sources, lambda *numbers: None)
        assert account(store) == before


def _assert_accounted_for(store: Store, data: bytes) -> None:
    ((_, version),) = store.files()
    assert store.read_raw(version.id, 0, version.size) == data
    assert version.lines - data.count(b"\n") in (0, 1)
    assert sum(row.n for row in store.census(version.id)) == version.lines + version.glued
    seen = verify_archive(store, "box", lambda *numbers: None)
    assert (seen.wrong, seen.differs, seen.compared, seen.grown) == ([], [], 1, 0)


def _assert_same_in_pieces(data: bytes, cuts: list[float]) -> None:
    with _at_hand() as (root, path), _archive() as at_once, _archive() as by_pieces:
        for cut in sorted(cuts):
            path.write_bytes(data[: int(cut * len(data))])
            sync_all(job_at(by_pieces, root))
        path.write_bytes(data)
        sync_all(job_at(by_pieces, root))
        sync_all(job_at(at_once, root))
        assert conversations(by_pieces) == conversations(at_once)
