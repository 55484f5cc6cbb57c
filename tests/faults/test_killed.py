"""A process that is killed at any call leaves an archive that is whole, and the next run makes up for it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pytest

from everturn.capture.deriving import rebuild
from everturn.capture.writing import Desk
from everturn.store import Store, open_store
from tests.faults.injection import count_calls, in_memory, injecting, skip_unless_traceable
from tests.faults.scenes import SCENES, SMALL, Scene, account, assert_whole, job_at, rewritten, sync_at

pytestmark = pytest.mark.needs("strace")

Point = tuple[str, int]  # the kind of call, and which one of them

#: So many points of each scene, in so many tests side by side.
MANY, PARTS = 210, 4


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    skip_unless_traceable()
    for module, name, size in SMALL:
        monkeypatch.setattr(module, name, size)


@pytest.fixture
def folder() -> Iterator[Path]:
    with in_memory() as made:
        yield made


@pytest.mark.parametrize("name", SCENES)
def test_a_sync_killed_now_and_then_loses_nothing(folder: Path, name: str) -> None:
    scene = SCENES[name](folder / "scene")
    for archive in _killed(folder, scene, "sync", _some(_points(folder, scene, "sync"), 16)):
        _assert_recovers(archive, scene)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", SCENES)
def test_a_sync_killed_at_many_points_loses_nothing(folder: Path, name: str, part: int) -> None:
    scene = SCENES[name](folder / "scene")
    points = _some(_points(folder, scene, "sync"), MANY)
    for archive in _killed(folder, scene, "sync", _part(points, part)):
        _assert_recovers(archive, scene)


def test_a_rebuild_killed_now_and_then_loses_nothing(folder: Path) -> None:
    scene = _taken_in(folder)
    for archive in _killed(folder, scene, "rebuild", _some(_points(folder, scene, "rebuild"), 16)):
        _assert_rebuilds(archive, scene)


@pytest.mark.slow
def test_a_rebuild_killed_at_many_points_loses_nothing(folder: Path) -> None:
    scene = _taken_in(folder)
    for archive in _killed(folder, scene, "rebuild", _some(_points(folder, scene, "rebuild"), 80)):
        _assert_rebuilds(archive, scene)


def _points(folder: Path, scene: Scene, work: str) -> list[Point]:
    """Every call the work makes."""
    counted = count_calls(folder / "calls", work, scene.copy_archive(folder / "counted" / "archive.db"), scene.root)
    return [(call, n + 1) for call, times in counted.items() for n in range(times)]


def _some(points: list[Point], wanted: int) -> list[Point]:
    """So many of them, evenly, the first and the last included."""
    assert len(points) >= wanted
    return [points[n * (len(points) - 1) // (wanted - 1)] for n in range(wanted)]


def _part(points: list[Point], part: int) -> list[Point]:
    """Neighbours stay together: the nearer the points, the fewer idle calls."""
    size = -(-len(points) // PARTS)
    return points[part * size : (part + 1) * size]


def _killed(folder: Path, scene: Scene, work: str, points: list[Point]) -> Iterator[Path]:
    """For each point the archive that a process killed there leaves behind."""
    for call, same in groupby(points, itemgetter(0)):
        numbers = [n for _, n in same]
        with injecting("signal=KILL", numbers[-1]) as injector:
            for n in numbers:
                archive = scene.copy_archive(folder / "trial" / "archive.db")
                outcome = injector.run(work, archive, scene.root, call, n)
                assert outcome.code == -9, (call, n, outcome)
                yield archive


def _assert_recovers(archive: Path, scene: Scene) -> None:
    store = open_store(str(archive))
    assert_whole(store, scene)
    store.close()
    assert sync_at(archive, scene.root).failed == []
    _assert_equal(archive, scene)


def _assert_equal(archive: Path, scene: Scene) -> None:
    store = open_store(str(archive))
    assert_whole(store, scene)
    assert account(store) == scene.wanted
    store.close()


# a rebuild: the bytes are not touched, and whatever comes next, a sync or another rebuild, finishes it ----------------
def _taken_in(folder: Path) -> Scene:
    """Everything is in the archive, of some files in two versions."""
    scene = rewritten(folder / "scene")
    sync_at(scene.archive, scene.root)
    return scene


def _assert_rebuilds(archive: Path, scene: Scene) -> None:
    store = open_store(str(archive))
    assert_whole(store, scene)
    store.close()
    sync_at(archive, scene.root)
    _assert_equal(archive, scene)
    store = open_store(str(archive))
    _rebuild(store, scene)
    assert account(store) == scene.wanted
    store.close()


def _rebuild(store: Store, scene: Scene) -> None:
    job = job_at(store, scene.root)
    rebuild(Desk(store, job.machine, job.owner, job.clock()), job.sources, lambda *numbers: None)
