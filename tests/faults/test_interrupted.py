"""Ctrl-C in the middle of a sync: one sentence, exit code 130, an archive that is whole, and the next sync goes on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from everturn.store.contract import open_store
from tests.faults.commands import Desktop, sentence
from tests.faults.scenes import SCENES, Scene, assert_equal, assert_whole, grown

pytestmark = [pytest.mark.needs("strace"), pytest.mark.usefixtures("traceable")]


@pytest.mark.few(1)
@pytest.mark.parametrize("write", [1, 30, 60])
def test_a_sync_that_is_interrupted_says_so_and_can_go_on(folder: Path, write: int) -> None:
    _assert_goes_on(folder, grown(folder / "scene"), write)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_a_sync_can_be_interrupted_at_any_time(folder: Path, name: str) -> None:
    scene = SCENES[name](folder / "scene")
    for write in range(5, 95, 9):
        _assert_goes_on(folder, scene, write)


def _assert_goes_on(folder: Path, scene: Scene, write: int) -> None:
    """Press Ctrl-C while the process is in the given write of the database."""
    shutil.rmtree(folder / "home", ignore_errors=True)
    desktop = Desktop(folder / "home", scene.root)
    if scene.archive.exists():
        shutil.copy(scene.archive, desktop.archive)
    pressing = ["strace", "-f", "-o", os.devnull, "-e", f"inject=pwrite64:signal=INT:when={write}"]
    stopped = desktop.run("sync", before=pressing)
    assert stopped.returncode == 130, (write, stopped.stdout, stopped.stderr)
    assert sentence(stopped.stderr) == "interrupted; nothing is lost, run it again to continue"
    store = open_store(str(desktop.archive))
    assert_whole(store, scene)
    store.close()
    assert desktop.run("sync").returncode == 0
    assert_equal(desktop.archive, scene)
