"""A disk that is full or broken is told in one sentence; nothing half-written stays, and the next run makes up for it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.capture.sync import sync_all
from everturn.errors import NoSpace
from everturn.store.contract import open_store
from everturn.store.sqlite import open_sqlite
from tests.faults.commands import Desktop, sentence
from tests.faults.injection import CALLS, injecting, points_of, some
from tests.faults.quick_scenes import QUICK_SCENES
from tests.faults.scenes import SCENES, Scene, assert_equal, assert_whole, first, grown, job_at, sync_at
from tests.quick import QUICK

FULL = "the disk is full; nothing half-written was kept: free some space and run it again"
BROKEN = "reading or writing it failed; check the disk, then run `everturn verify`"


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.needs("strace")
@pytest.mark.usefixtures("small_pieces", "traceable")
@pytest.mark.parametrize("name", QUICK_SCENES)
def test_a_disk_that_fills_up_now_and_then_costs_nothing(folder: Path, name: str) -> None:
    told = _struck(folder, SCENES[name](folder / "scene"), "error=ENOSPC", True, 4)
    assert told[FULL] >= 3
    assert set(told) <= {FULL, ""}


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.needs("strace")
@pytest.mark.usefixtures("small_pieces", "traceable")
@pytest.mark.parametrize("name", SCENES)
def test_a_disk_that_fills_up_at_many_points_costs_nothing(folder: Path, name: str) -> None:
    told = _struck(folder, SCENES[name](folder / "scene"), "error=ENOSPC", True, 12 if QUICK else 50)
    assert told[FULL] >= (9 if QUICK else 40)
    assert set(told) <= {FULL, ""}


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.needs("strace")
@pytest.mark.usefixtures("small_pieces", "traceable")
@pytest.mark.parametrize("name", QUICK_SCENES)
def test_one_failed_write_now_and_then_costs_nothing(folder: Path, name: str) -> None:
    told = _struck(folder, SCENES[name](folder / "scene"), "error=EIO", False, 4)
    assert told[BROKEN] >= 3
    assert set(told) <= {BROKEN, ""}


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.needs("strace")
@pytest.mark.usefixtures("small_pieces", "traceable")
@pytest.mark.parametrize("onwards", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("name", SCENES)
def test_failed_writes_at_many_points_cost_nothing(folder: Path, name: str, onwards: bool) -> None:
    told = _struck(folder, SCENES[name](folder / "scene"), "error=EIO", onwards, 12 if QUICK else 40)
    assert told[BROKEN] >= (9 if QUICK else 30)
    assert set(told) <= {BROKEN, ""}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SCENES)
def test_an_archive_that_may_not_grow_keeps_what_it_has(folder: Path, small_pieces: None, name: str) -> None:
    scene = SCENES[name](folder / "scene")
    least, most = _pages(scene.copy_archive(folder / "trial" / "archive.db")), _pages(scene.undisturbed)
    assert most > least
    for pages in range(least, most, max((most - least) // 8, 1)):
        archive = scene.copy_archive(folder / "trial" / "archive.db")
        store = open_sqlite(str(archive))
        store.driver.run(f"PRAGMA max_page_count={pages}")
        with pytest.raises(NoSpace, match=FULL):
            sync_all(job_at(store, scene.root))
        assert_whole(store, scene)
        store.driver.run("PRAGMA max_page_count=1000000")
        sync_all(job_at(store, scene.root))
        store.close()
        assert_equal(archive, scene)


@pytest.mark.few(1)
@pytest.mark.needs("strace")
@pytest.mark.usefixtures("traceable")
@pytest.mark.parametrize(("failure", "told"), [("ENOSPC", FULL), ("EIO", BROKEN)], ids=["full", "broken"])
def test_the_command_tells_what_the_disk_did_and_how_to_go_on(folder: Path, failure: str, told: str) -> None:
    scene = grown(folder / "scene")
    desktop = Desktop(folder / "home", scene.root)
    shutil.copy(scene.archive, desktop.archive)
    failing = ["strace", "-f", "-o", os.devnull, "-e", f"inject=pwrite64:error={failure}:when=40+"]
    refused = desktop.run("sync", before=failing)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert sentence(refused.stderr) == f"{desktop.archive}: {told}"
    assert desktop.run("sync").returncode == 0
    assert desktop.run("verify").returncode == 0
    assert_equal(desktop.archive, scene)


def test_a_file_system_that_is_really_full_is_told_and_left_whole(tmp_path: Path, small_disk: Path) -> None:
    scene = first(tmp_path / "scene")
    desktop = Desktop(tmp_path / "home", scene.root)
    archive = small_disk / "archive.db"
    refused = desktop.run("sync", "--db", str(archive))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert sentence(refused.stderr) == f"{archive}: {FULL}"
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    store = open_store(str(archive))
    assert_whole(store, scene)
    store.close()
    assert desktop.run("sync", "--db", str(archive)).returncode == 0
    assert_equal(archive, scene)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with little room."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=280k", "tmpfs", place], capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if made.returncode:
        pytest.skip("a file system may not be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)


def _pages(archive: Path) -> int:
    store = open_sqlite(str(archive))
    (pages,) = store.driver.one("PRAGMA page_count") or (0,)
    store.close()
    return int(pages)


def _struck(folder: Path, scene: Scene, fault: str, onwards: bool, wanted: int) -> Counter[str]:
    """Let calls fail at so many points of each kind; what was said, "" where the work went well all the same."""
    points = points_of("sync", scene.copy_archive(folder / "counted" / "archive.db"), scene.root, folder / "calls")
    told: Counter[str] = Counter()
    for call in CALLS:
        numbers = [n for _, n in some([point for point in points if point[0] == call], wanted)]
        with injecting(fault, numbers[-1], call, onwards) as injector:
            for n in numbers:
                archive = scene.copy_archive(folder / "trial" / "archive.db")
                outcome = injector.run("sync", archive, scene.root, n)
                told[outcome.sentence.removeprefix(f"{archive}: ")] += 1
                _assert_told_truly(archive, scene, outcome.done is not None)
    return told


def _assert_told_truly(archive: Path, scene: Scene, well: bool) -> None:
    """What was said to be done is there; what was not is done by the next run."""
    if not well:
        store = open_store(str(archive))
        assert_whole(store, scene)
        store.close()
        assert sync_at(archive, scene.root).failed == []
    assert_equal(archive, scene)
