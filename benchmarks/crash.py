"""kill -9 in the middle of parallel calls, at every write, and disks that fail, fill up or lose their power."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks import beside
from benchmarks.corpora import Corpora
from benchmarks.durable import edges
from benchmarks.durable.images import images
from benchmarks.durable.peer import PEERS, PeerPython, Unobtainable
from benchmarks.durable.peer import play as peer_play
from benchmarks.durable.scene import PARALLEL, Scene, effects, judge, kept, play, results
from benchmarks.durable.shim import Disk, Shim
from benchmarks.durable.sides import side_by_side
from benchmarks.durable.victim import Victim, points, victim
from benchmarks.figures import Figure, exact
from benchmarks.processes import Failed
from everturn.loop.journal import open_archive
from everturn.loop.tools import Policy

#: So many points are struck at; the first and the last among them.
POINTS = 220
#: Kills of sessions with odd ids, and rounds of stopped holders and of recoverers, on each engine.
KILLS, ROUNDS = 300, 20


def figures(corpora: Corpora) -> Iterator[Figure]:
    """All of it, without the peers."""
    with tempfile.TemporaryDirectory(prefix="everturn-crash-") as folder:
        place = _Place(Path(folder))
        yield from _parallel("SQLite", place)
        yield from _on_a_server(place)
        yield from _edges("SQLite", place.folder, str(place.fresh().url))
        yield _killed_by_calls(place)
        yield _killed_by_shim(place)
        yield _struck(place, "failing_sync", "syncs", "a sync fails", "EverturnError")
        yield _struck(place, "full_from", "writes", "the disk is full", "NoSpace")
        yield _failing_calls(place)
        yield _small_disk(place)
        yield from _powerless(place)


class _Place:
    """Fresh archives, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._empty = folder / "empty.db"
        open_archive(str(self._empty)).close()

    def fresh(self, archive: Path | None = None, **more: Any) -> Scene:
        """The same beginning again; the archive elsewhere if need be."""
        trial = self.folder / "trial"
        shutil.rmtree(trial, ignore_errors=True)
        trial.mkdir()
        archive = archive or trial / "archive.db"
        for rest in archive.parent.glob(f"{archive.name}*"):
            rest.unlink()
        shutil.copy(self._empty, archive)
        return Scene(str(archive), trial, **more)


# three parallel calls ---------------------------------------------------------------------------------------------------
def _parallel(engine: str, place: _Place, url: str = "") -> Iterator[Figure]:
    """After the effect of b, and the results of a and c, the process is killed; then the session is resumed."""
    kinds: tuple[tuple[Policy, str], ...] = (("", "in_doubt"), ("reconcile", "settled"))
    for policy, wanted in kinds:
        scene = place.fresh(steps=PARALLEL, policy=policy)
        if url:
            scene = Scene(f"{url}&schema=crash_{policy or 'ask'}", scene.folder, PARALLEL, policy=policy)
        with victim() as one:
            code = one.play(scene.url, scene.folder, steps=PARALLEL, dies="b", policy=policy)["code"]
        wrong = [] if code == -9 else ["it was not killed"]
        wrong += judge(scene)
        with closing(open_archive(scene.url)) as store:
            told = {name: result.outcome for name, result in results(store).items()}
        if told != {"call_a": "ok", "call_b": wanted, "call_c": "ok"}:
            wrong.append(f"the model was told {told}")
        counts = "/".join(str(effects(scene)[name]) for name in "abc")
        name = f"three parallel calls, killed, {engine}, {policy or 'no hints'}"
        yield exact(name, wrong, f"effects {counts}, b is told as {wanted}")


def _on_a_server(place: _Place) -> Iterator[Figure]:
    try:
        from tests.postgres_server import running

        with running() as url:
            yield from _parallel("PostgreSQL", place, url)
            yield from _edges("PostgreSQL", place.folder, f"{url}&schema=crash_edges")
    except (ImportError, RuntimeError) as failure:
        yield Figure("three parallel calls, killed, PostgreSQL", None, note=str(failure))


# edges ------------------------------------------------------------------------------------------------------------------
def _edges(engine: str, folder: Path, url: str) -> Iterator[Figure]:
    """Odd ids, stopped holders, wrong clocks, two recoverers: no effect twice, nothing untrue."""
    open_archive(url).close()
    here = folder / f"edges-{engine}"
    here.mkdir()
    wrong: list[str] = []
    kills, seed, kinds = edges.undisturbed(url, here), 0, ("empty", "equal", "reused")
    while kills.total < KILLS:
        for kind in kinds:
            wrong += edges.killed_with_ids(url, here, kind, seed, kills)
        seed += 1
    if kills.happened["in a call"] < kills.total / 4:
        wrong.append("too few of the kills strike in a call")
    where = ", ".join(f"{n} {name}" for name, n in kills.happened.most_common())
    note = f"{kills.total} kills in {seed * len(kinds)} sessions with ids {', '.join(kinds)}: {where}"
    yield exact(f"killed with odd call ids, {engine}", wrong, note)
    clocks = (0, 3_600_000, -3_600_000)
    wrong = [found for n in range(ROUNDS) for ahead in clocks for found in edges.stopped_holder(url, here, n, ahead)]
    yield exact(
        f"stopped and continued holders, {engine}", wrong, f"{ROUNDS} rounds each with a clock of 0, +1 h, -1 h"
    )
    wrong = [found for n in range(ROUNDS) for found in edges.two_recoverers(url, here, n)]
    yield exact(f"two recoverers at once, {engine}", wrong, f"{ROUNDS} rounds")


# killed at every write --------------------------------------------------------------------------------------------------
def _killed_by_calls(place: _Place) -> Figure:
    name = "killed at a system call that changes a file"
    if shutil.which("strace") is None:
        return Figure(name, None, note="strace is not installed; the next line does the same inside SQLite")
    scene = place.fresh()
    every = points(scene.url, scene.folder, place.folder / "calls")
    chosen = _some(every, POINTS)
    wrong, killed = [], 0
    for call, same in groupby(chosen, itemgetter(0)):
        numbers = [n for _, n in same]
        with victim("signal=KILL", call, numbers[-1]) as struck:
            for number in numbers:
                scene = place.fresh()
                outcome = struck.play(scene.url, scene.folder, call, number)
                killed += outcome["code"] == -9
                wrong += [f"{call} {number}: {one}" for one in [*_said(outcome), *judge(scene)]]
    return exact(name, wrong, f"{len(chosen)} of {len(every)} points, {killed} reached")


def _killed_by_shim(place: _Place) -> Figure:
    wrong, killed = [], 0
    with victim() as one:
        scene = place.fresh()
        total = _undisturbed(one, scene)["done"]
        chosen = _some(list(range(1, total + 1)), POINTS)
        for number in chosen:
            scene = place.fresh()
            outcome = one.play(scene.url, scene.folder, disk={"kill": number})
            killed += outcome["code"] == -9
            wrong += [f"{number}: {found}" for found in [*_said(outcome), *judge(scene)]]
    return exact("killed at a write of SQLite", wrong, f"{len(chosen)} of {total} points, {killed} reached")


def _undisturbed(one: Victim, scene: Scene) -> dict[str, int]:
    """What a run without any harm does to the disk."""
    outcome = one.play(scene.url, scene.folder, disk={})
    if "disk" not in outcome:
        raise Failed(f"the scene does not work at all: {outcome}")
    return dict(outcome["disk"])


def _said(outcome: dict[str, Any]) -> list[str]:
    """Whoever is killed says nothing."""
    return [f"{outcome['error']}: {outcome['sentence']}"] if "error" in outcome else []


def _struck(place: _Place, fault: str, counted: str, title: str, wanted: str) -> Figure:
    """What fails is told, and what was acknowledged before is there."""
    wrong, told = [], Counter[str]()
    with victim() as one:
        scene = place.fresh()
        total = _undisturbed(one, scene)[counted]
        chosen = _some(list(range(1, total + 1)), 60)
        for number in chosen:
            scene = place.fresh()
            outcome = one.play(scene.url, scene.folder, disk={fault: number})
            told[outcome.get("error", "nothing: it was over")] += 1
            wrong += [f"{number}: {found}" for found in judge(scene)]
    if set(told) - {wanted, "nothing: it was over"} or told[wanted] < len(chosen) // 2:
        wrong.append(f"told {dict(told)}")
    return exact(title, wrong, f"{len(chosen)} points, told: {', '.join(f'{n} × {name}' for name, n in told.items())}")


def _failing_calls(place: _Place) -> Figure:
    name = "fdatasync fails in the system (EIO)"
    if shutil.which("strace") is None:
        return Figure(name, None, note="strace is not installed")
    scene = place.fresh()
    numbers = [n for call, n in points(scene.url, scene.folder, place.folder / "calls") if call == "fdatasync"]
    wrong, told = [], Counter[str]()
    with victim("error=EIO", "fdatasync", numbers[-1]) as struck:
        for number in numbers:
            scene = place.fresh()
            outcome = struck.play(scene.url, scene.folder, "fdatasync", number)
            told[outcome.get("error", "nothing: it was over")] += 1
            wrong += [f"{number}: {found}" for found in judge(scene)]
    if told["EverturnError"] < len(numbers) // 2:
        wrong.append(f"told {dict(told)}")
    return exact(name, wrong, f"{len(numbers)} points, told: {', '.join(f'{n} × {one}' for one, n in told.items())}")


def _small_disk(place: _Place) -> Figure:
    """A real file system that is too small, where we may make one."""
    name, disk = "a file system that is full", place.folder / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(disk)]
    if os.name == "nt" or os.geteuid() or subprocess.run(words, check=False, capture_output=True).returncode:
        return Figure(name, None, note="no small file system can be made here: that takes root")
    wrong, told = [], Counter[str]()
    try:
        for room in range(4, 400, 20):  # kilobytes
            scene = place.fresh(archive=disk / "archive.db")
            used = sum(path.stat().st_blocks * 512 for path in disk.iterdir()) // 1024
            _resize(disk, f"{used + room}k")
            with victim() as one:
                told[one.play(scene.url, scene.folder).get("error", "nothing: there was room")] += 1
            _resize(disk, "16m")
            wrong += [f"{room} kB: {found}" for found in judge(scene)]
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    if set(told) - {"NoSpace", "nothing: there was room"} or not told["NoSpace"]:
        wrong.append(f"told {dict(told)}")
    return exact(name, wrong, f"20 sizes, told: {', '.join(f'{n} × {one}' for one, n in told.items())}")


def _resize(disk: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


def _powerless(place: _Place) -> Iterator[Figure]:
    """Every image a disk may have after the power failed, as far as patience goes."""
    for durability in ("power", "process"):
        scene = place.fresh(durability=durability)
        before, disk = {scene.url: Path(scene.url).read_bytes()}, Disk(noting=True)
        shim = Shim(disk)
        try:
            play(scene, disk.acked)
        finally:
            shim.close()
        lost: list[str] = []
        damaged: list[str] = []
        seen = 0
        for image in images(disk.ops, before, range(1, len(disk.ops) + 1, 7)):
            after = place.fresh()
            image.put(after.folder)
            seen += 1
            for found in kept(after):
                where = f"op {image.moment}, {image.choice}: {found}"
                (lost if found.startswith("acknowledged") else damaged).append(where)
        yield exact(f"power fails, durability {durability}: archive not whole", damaged, f"{seen} images")
        if durability == "power":
            yield exact("power fails, durability power: acknowledged and lost", lost, f"{seen} images")
        else:
            note = f"records in {seen} images: what is not promised, and shows that the images can"
            yield Figure("power fails, durability process: acknowledged and lost", len(lost), "lost", note=note)


def _some(every: list[Any], wanted: int) -> list[Any]:
    """So many, evenly, the first and the last included; all if there are fewer."""
    if len(every) <= wanted:
        return every
    return [every[n * (len(every) - 1) // (wanted - 1)] for n in range(wanted)]


# beside it --------------------------------------------------------------------------------------------------------------
def peers(folder: Path) -> Iterator[Figure]:
    """The same three calls in other systems, killed and continued in their own way."""
    try:
        python = PeerPython(folder / "peer")
    except Unobtainable as failure:
        yield Figure("three parallel calls, killed, in other systems", None, note=str(failure))
        return
    for number, peer in enumerate(PEERS):
        name = f"three parallel calls, killed, {peer.name}"
        try:
            played = peer_play(peer, python, folder / f"peer{number}")
        except (Unobtainable, subprocess.TimeoutExpired) as failure:
            yield Figure(name, None, note=f"{peer.how}: {failure}")
            continue
        counts = "/".join(str(played.effects[one]) for one in "abc")
        repeated = sum(n > 1 for n in played.effects.values())
        note = f"{peer.how}; effects {counts}, the model is told {played.told}"
        yield Figure(f"{name} {played.version}", repeated, "repeated", note=note)
    yield from side_by_side(python, folder / "sides")


if __name__ == "__main__":
    sys.exit(beside.run("crash", __doc__, figures, peers))
