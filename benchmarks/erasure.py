"""Words of forgotten sessions in every place that may hold them, also when `forget` is killed and completed later."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure, exact
from benchmarks.processes import Failed
from everturn.cli import main
from everturn.maintenance.forget import pending_erasures
from everturn.store.contract import open_store
from tests.canaries.places import TARGETS, Canaries, places_held, plant_home

PLACES = 40
KILLS = 100


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Plant, forget, look; then the same with kill -9 at random moments."""
    folder = corpora.folder / "erasure"
    whole = folder / "whole"
    word = plant_home(whole)
    held = places_held(whole, word)
    yield Figure(
        "places that hold a word before", len(held), "places", note=f"{len(word.words)} planted, bar ≥ {PLACES}"
    )
    yield exact(
        "words that were planted and not found before", sorted(set(word.words) - held), f"{len(word.words)} places"
    )
    once, took = _copy(whole, folder / "once"), time.monotonic()
    if _wait(_start(once, _forget)) != 0:
        raise Failed("forget failed")
    took = time.monotonic() - took
    yield exact("words found after forget", sorted(places_held(once, word)), f"{len(word.words)} places")
    yield from killed(whole, folder, word, took, KILLS)


def killed(whole: Path, folder: Path, word: Canaries, took: float, kills: int) -> Iterator[Figure]:
    """Kill `forget` at random moments of the time it took, let other commands go on, and look."""
    dice, struck, pending, left = random.Random(7), 0, 0, set[str]()
    for number in range(kills):
        home = _copy(whole, folder / "trial")
        child = _start(home, _forget)
        time.sleep(dice.uniform(0, took))
        os.kill(child, signal.SIGKILL)
        struck += _wait(child) != 0
        with closing(open_store(str(home / "archive.db"))) as store:
            pending += bool(pending_erasures(store))
        if _wait(_start(home, _complete)) != 0:
            left.add(f"kill {number}: could not be completed")
        left |= places_held(home, word)
    yield Figure("kills that hit a running forget", struck, f"of {kills}", note=f"{pending} left a pending erasure")
    yield exact("words found after it was completed", sorted(left), f"{kills} kills, {len(word.words)} places")


def _copy(whole: Path, home: Path) -> Path:
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(whole, home)
    return home


def _start(home: Path, work: Callable[[Path], int]) -> int:
    """Start a process that works on a home that is nobody's."""
    child = os.fork()
    if child:
        return child
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.environ.update(EVERTURN_HOME=str(home), HOME=str(home.parent / "nobody"))
    code = 1
    try:
        code = work(home)
    finally:
        os._exit(code)


def _forget(home: Path) -> int:
    return max(main(["forget", target, "--yes"]) for target in TARGETS)


def _complete(home: Path) -> int:
    """Run any command, which completes what was begun; then forget what was not begun."""
    code = main(["sessions"])
    for target in TARGETS:
        code = max(code, main(["forget", target, "--yes"]) % 3)  # 3: it is gone
    return code


def _wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
