"""A process that is killed at any call leaves an archive that is whole, and the next run makes up for it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pytest

from everturn.capture.writer import ArchiveWriter, rebuild_archive
from everturn.store import cipher
from everturn.store.cipher import KeySources, use_key_sources
from everturn.store.contract import Store, open_store
from tests.faults.injection import Point, injecting, points_of, some
from tests.faults.quick_scenes import QUICK_SCENES
from tests.faults.scenes import SCENES, Scene, account, assert_equal, assert_whole, job_at, rewritten, sync_at
from tests.faults.victim import convert, use_test_key
from tests.quick import QUICK

pytestmark = [pytest.mark.needs("strace"), pytest.mark.usefixtures("small_pieces", "traceable")]

#: So many points of each scene, in so many tests side by side.
MANY, PARTS = (32 if QUICK else 120), 4
POINTS, SEVERAL = (4, 10) if QUICK else (8, 30)


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("name", QUICK_SCENES)
def test_a_sync_killed_now_and_then_loses_nothing(folder: Path, name: str) -> None:
    scene = SCENES[name](folder / "scene")
    for archive in _killed(folder, scene, "sync", some(_points(folder, scene, "sync"), POINTS)):
        _assert_recovers(archive, scene)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", SCENES)
def test_a_sync_killed_at_many_points_loses_nothing(folder: Path, name: str, part: int) -> None:
    scene = SCENES[name](folder / "scene")
    points = some(_points(folder, scene, "sync"), MANY)
    assert len(set(points)) == MANY
    for archive in _killed(folder, scene, "sync", _part(points, part)):
        _assert_recovers(archive, scene)


@pytest.mark.slow
def test_a_rebuild_killed_now_and_then_loses_nothing(folder: Path) -> None:
    scene = _taken_in(folder)
    for archive in _killed(folder, scene, "rebuild", some(_points(folder, scene, "rebuild"), POINTS)):
        _assert_rebuilds(archive, scene)


@pytest.mark.slow
def test_a_rebuild_killed_at_many_points_loses_nothing(folder: Path) -> None:
    scene = _taken_in(folder)
    for archive in _killed(folder, scene, "rebuild", some(_points(folder, scene, "rebuild"), SEVERAL)):
        _assert_rebuilds(archive, scene)


@pytest.mark.slow
@pytest.mark.skipif(not cipher.is_available(), reason="the installed SQLite cannot encrypt")
@pytest.mark.parametrize("work", ["encrypt", "decrypt"])
def test_a_conversion_killed_at_any_call_leaves_the_old_archive_or_the_new_one(folder: Path, work: str) -> None:
    scene = _taken_in(folder)
    use_test_key()
    try:
        if work == "decrypt":
            convert(scene.archive, True)
        left = set()
        points = _points(folder, scene, work)
        last = max(point for point in points if point[0] == "pwrite64")  # the old file is overwritten after the swap
        for archive in _killed(folder, scene, work, sorted({*some(points, SEVERAL), last})):
            left.add(cipher.is_encrypted(archive))
            _assert_holds_everything(archive, scene)
            convert(archive, work == "encrypt")
            assert cipher.is_encrypted(archive) == (work == "encrypt")
            _assert_holds_everything(archive, scene)
            assert {path.name for path in archive.parent.iterdir()} <= {
                "archive.db",
                "archive.db-wal",
                "archive.db-shm",
            }
        assert left == {True, False}, "the points must lie on both sides of the swap"
    finally:
        use_key_sources(KeySources())


def _assert_holds_everything(archive: Path, scene: Scene) -> None:
    store = open_store(str(archive))
    assert_whole(store, scene)
    assert account(store) == scene.wanted
    store.close()


def _points(folder: Path, scene: Scene, work: str) -> list[Point]:
    return points_of(work, scene.copy_archive(folder / "counted" / "archive.db"), scene.root, folder / "calls")


def _part(points: list[Point], part: int) -> list[Point]:
    """Neighbours stay together: the nearer the points, the fewer idle calls."""
    size = -(-len(points) // PARTS)
    return points[part * size : (part + 1) * size]


def _killed(folder: Path, scene: Scene, work: str, points: list[Point]) -> Iterator[Path]:
    """For each point the archive that a process killed there leaves behind."""
    for call, same in groupby(points, itemgetter(0)):
        numbers = [n for _, n in same]
        with injecting("signal=KILL", numbers[-1], call) as injector:
            for n in numbers:
                archive = scene.copy_archive(folder / "trial" / "archive.db")
                outcome = injector.run(work, archive, scene.root, n)
                assert outcome.code == -9, (call, n, outcome)
                yield archive


def _assert_recovers(archive: Path, scene: Scene) -> None:
    store = open_store(str(archive))
    assert_whole(store, scene)
    store.close()
    assert sync_at(archive, scene.root).failed == []
    assert_equal(archive, scene)


# a rebuild: the bytes are not touched, and whatever comes next, a sync or another rebuild, finishes it ----------------
def _taken_in(folder: Path) -> Scene:
    """Everything is in the archive, of some files in two versions."""
    scene = rewritten(folder / "scene")
    sync_at(scene.archive, scene.root)
    return scene


def _assert_rebuilds(archive: Path, scene: Scene) -> None:
    _assert_recovers(archive, scene)
    store = open_store(str(archive))
    _rebuild(store, scene)
    assert account(store) == scene.wanted
    store.close()


def _rebuild(store: Store, scene: Scene) -> None:
    job = job_at(store, scene.root)
    rebuild_archive(ArchiveWriter(store, job.machine, job.owner, job.clock()), job.sources, lambda *numbers: None)
