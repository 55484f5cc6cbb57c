"""Real processes, killed for real, on disks that fail: what was acknowledged is there and nothing happens twice.

Small versions of what `python -m benchmarks crash` does at hundreds of points.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from benchmarks.durable.images import images
from benchmarks.durable.scene import PARALLEL, Scene, effects, judge, kept, play, results
from benchmarks.durable.shim import Disk, Shim
from benchmarks.durable.victim import CALLS, Victim, points, victim
from everturn.loop import records
from everturn.loop.journal import Journal, open_archive
from everturn.loop.tools import Policy

BROKEN = "reading or writing it failed; check the disk, then run `everturn verify`"
FULL = "the disk is full; nothing half-written was kept: free some space and run it again"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive without anything in it."""
    path = tmp_path_factory.mktemp("empty") / "archive.db"
    open_archive(str(path)).close()
    return path


@pytest.fixture(scope="module")
def anybody() -> Iterator[Victim]:
    with victim() as one:
        yield one


def fresh(empty: Path, folder: Path) -> Scene:
    """The same beginning again."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(empty, folder / "archive.db")
    return Scene(str(folder / "archive.db"), folder)


def some(numbers: list[int], wanted: int) -> list[int]:
    """So many of them, evenly, the last included."""
    return sorted({numbers[-1 - n * len(numbers) // wanted] for n in range(min(wanted, len(numbers)))})


def assert_killed(codes: list[int]) -> None:
    """Results that come together are written together: a run may have fewer writes than the one that was counted."""
    assert set(codes) <= {-9, 0}
    assert codes.count(-9) * 2 >= len(codes)


@pytest.mark.parametrize(("policy", "wanted"), [("", "in_doubt"), ("reconcile", "settled"), ("retry", "ok")])
@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.needs("module:psycopg"))])
def test_a_process_killed_in_the_middle_of_parallel_calls_repeats_none(
    anybody: Victim, tmp_path: Path, request: pytest.FixtureRequest, engine: str, policy: Policy, wanted: str
) -> None:
    url = request.getfixturevalue("postgres_url") if engine == "postgres" else str(tmp_path / "archive.db")
    scene = Scene(url, tmp_path, PARALLEL, dies="b", policy=policy)
    assert anybody.play(url, tmp_path, steps=PARALLEL, dies="b", policy=policy)["code"] == -9
    assert effects(scene) == {"a": 1, "b": 1, "c": 1}
    wrong = judge(scene)
    assert wrong == (["b happened 2 times"] if policy == "retry" else [])  # as told to
    with closing(open_archive(url)) as store:
        assert {one.call_id: one.outcome for one in results(store).values()} == {
            "call_a": "ok", "call_b": wanted, "call_c": "ok",
        }  # fmt: skip


def test_the_scene_kills_its_process_only_after_the_other_results_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may take any time on a busy machine, and the policy `retry` repeats a call without a result."""
    scene = Scene(str(tmp_path / "archive.db"), tmp_path, PARALLEL, dies="b")
    durable, looks, written_now = Journal.write, count(1), threading.Event()
    told: list[set[str]] = []

    def hold_results(journal: Journal, *many: records.Record) -> None:
        if any(isinstance(record, records.ResultRecord) for record in many):
            assert written_now.wait(60)
        durable(journal, *many)

    def look_again(seconds: float) -> None:
        if next(looks) == 3:
            written_now.set()

    def note_death(pid: int, signal: int) -> None:
        lines = [records.parse_record(line, "") for line in scene.acks.read_bytes().splitlines()]
        told.append({record.call_id for record in lines if isinstance(record, records.ResultRecord)})
        written_now.set()

    monkeypatch.setattr(Journal, "write", hold_results)
    monkeypatch.setattr("benchmarks.durable.scene.time.sleep", look_again)
    monkeypatch.setattr("benchmarks.durable.scene.os.kill", note_death)
    assert play(scene).state == "done"
    assert told == [{"call_a", "call_c"}]


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.needs("strace")
@pytest.mark.parametrize("call", CALLS)
def test_a_process_killed_at_any_call_loses_nothing_and_repeats_nothing(empty: Path, tmp_path: Path, call: str) -> None:
    scene = fresh(empty, tmp_path / "counted")
    numbers = [n for kind, n in points(scene.url, scene.folder, tmp_path / "calls") if kind == call]
    assert numbers
    codes = []
    with victim("signal=KILL", call, numbers[-1]) as struck:
        for number in some(numbers, 6):
            scene = fresh(empty, tmp_path / "trial")
            codes.append(struck.play(scene.url, scene.folder, call, number)["code"])
            assert judge(scene) == [], (call, number)
    assert_killed(codes)


def test_a_process_killed_at_any_write_loses_nothing_and_repeats_nothing(
    empty: Path, tmp_path: Path, anybody: Victim
) -> None:
    scene = fresh(empty, tmp_path / "trial")
    whole = anybody.play(scene.url, scene.folder, disk={})
    assert whole["state"] == "done"
    codes = []
    for number in some(list(range(1, whole["disk"]["done"] + 1)), 12):
        scene = fresh(empty, tmp_path / "trial")
        codes.append(anybody.play(scene.url, scene.folder, disk={"kill": number})["code"])
        assert judge(scene) == [], number
    assert_killed(codes)


def test_a_sync_that_fails_is_told_and_never_tried_again(empty: Path, tmp_path: Path, anybody: Victim) -> None:
    scene = fresh(empty, tmp_path / "trial")
    syncs = anybody.play(scene.url, scene.folder, disk={})["disk"]["syncs"]
    for number in some(list(range(1, syncs - 7)), 6):  # the last ones are those of closing
        scene = fresh(empty, tmp_path / "trial")
        outcome = anybody.play(scene.url, scene.folder, disk={"failing_sync": number})
        assert outcome["sentence"] == f"{scene.url}: {BROKEN}"
        assert judge(scene) == [], number


@pytest.mark.slow
def test_a_disk_that_fills_up_is_told_and_costs_nothing(empty: Path, tmp_path: Path, anybody: Victim) -> None:
    scene = fresh(empty, tmp_path / "trial")
    writes = anybody.play(scene.url, scene.folder, disk={})["disk"]["writes"]
    for number in some(list(range(1, writes // 2)), 6):
        scene = fresh(empty, tmp_path / "trial")
        outcome = anybody.play(scene.url, scene.folder, disk={"full_from": number})
        assert outcome["sentence"] == f"{scene.url}: {FULL}"
        assert judge(scene) == [], number


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["power", "process"])
def test_what_is_promised_to_survive_the_power_does(empty: Path, tmp_path: Path, durability: str) -> None:
    lost = whole = 0
    scene = fresh(empty, tmp_path / "scene")
    before = {scene.url: empty.read_bytes()}
    disk = Disk(noting=True)
    shim = Shim(disk)
    try:
        play(Scene(scene.url, scene.folder, durability=durability), disk.acked)
    finally:
        shim.close()
    for image in images(disk.ops, before, range(1, len(disk.ops), 37)):
        after = fresh(empty, tmp_path / "image")
        image.put(after.folder)
        wrong = kept(after)
        assert [one for one in wrong if not one.startswith("acknowledged")] == []
        lost, whole = lost + bool(wrong), whole + 1
    assert whole >= 50
    if durability == "power":
        assert lost == 0
    else:
        assert lost  # so the images do show what a power failure costs whoever did not ask for more


@pytest.mark.slow
def test_the_judge_sees_what_is_wrong(empty: Path, tmp_path: Path) -> None:
    """A judge that never finds anything proves nothing."""
    scene = fresh(empty, tmp_path / "scene")
    assert play(scene).state == "done"
    assert judge(scene) == []
    with scene.ledger.open("a") as ledger:
        ledger.write("a\n")
    with scene.acks.open("a") as acks:
        acks.write('{"type":"note","n":99}\n')
    assert judge(scene)[0].startswith("acknowledged and lost")
    assert judge(scene)[1] == "a happened 2 times"
    scene.ledger.write_text("")
    assert "a was reported as done and did not happen" in judge(scene)
    assert os.path.exists(scene.url)
