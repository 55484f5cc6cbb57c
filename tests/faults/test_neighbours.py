"""Many processes take in the same files while another writes them: every line is there once, in order."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from everturn.capture.sync import sync_all
from everturn.maintenance.verify import verify_archive
from everturn.store.contract import Store, open_store
from tests.capture.history import History
from tests.faults.commands import Desktop, ended, sentence
from tests.faults.injection import HERE, environment
from tests.faults.neighbours import Stroke
from tests.faults.scenes import conversations, found, job_at, sync_at
from tests.quick import QUICK

WRITERS = 3 if QUICK else 8
TURNS = [10 if QUICK else 30, pytest.param(120, marks=pytest.mark.slow)]
SIDS = [f"{n}0000000-aaaa-4333-8444-555555555555" for n in range(1, 6)]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an archive that is not there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "archive.db")
    address: str = request.getfixturevalue("postgres_url")
    return address


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("turns", TURNS)
def test_many_processes_take_in_growing_files_and_every_line_is_there_once(
    tmp_path: Path, archive: str, turns: int
) -> None:
    history, stop = History(tmp_path / "agent"), tmp_path / "stop"
    for sid in SIDS[:3]:
        history.write(_lines(history, sid, turns), sid)
    plan = _plan(history, tmp_path, turns, 0.002)
    crowd = [_start("sync", archive, history.root, stop) for _ in range(WRITERS)]
    said: Counter[str] = Counter()
    with ended(*crowd), _writing(plan, stop, crowd) as writer:
        assert writer.wait(100) == 0
        for process in crowd:
            said.update(json.loads(process.communicate(timeout=100)[0]))
    assert said.pop("done") > 1
    assert set(said) <= {"Busy"}
    sync_at(archive, history.root)
    _assert_complete(archive, history)


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("turns", TURNS)
def test_whoever_looks_while_others_write_sees_a_whole_archive(tmp_path: Path, archive: str, turns: int) -> None:
    history, stop = History(tmp_path / "agent"), tmp_path / "stop"
    plan = _plan(history, tmp_path, turns, 0.002)
    sync_at(archive, history.root)
    lookers = [_start("look", archive, history.root, stop) for _ in range(2)]
    syncer = _start("sync", archive, history.root, stop)
    with ended(*lookers, syncer), _writing(plan, stop, [*lookers, syncer]):
        for process in lookers:
            said = json.loads(process.communicate(timeout=100)[0])
            assert set(said) <= {"done", "Busy"}
            assert said["done"] > 1


@pytest.mark.slow
def test_eight_commands_started_at_once_make_one_archive(tmp_path: Path) -> None:
    history = History(tmp_path / "agent")
    for sid in SIDS:
        history.write(_lines(history, sid, 20), sid)
    desktop = Desktop(tmp_path / "home", history.root)
    crowd = [desktop.start("sync") for _ in range(WRITERS)]
    with ended(*crowd):
        for process in crowd:
            _, stderr = process.communicate(timeout=100)
            assert process.returncode in (0, 75), stderr
            assert process.returncode == 0 or "is locked by another process" in sentence(stderr)
    assert any(process.returncode == 0 for process in crowd)
    _assert_complete(str(desktop.archive), history)


def test_a_file_that_two_processes_cannot_read_does_not_stop_the_later_one(two_of_us: TwoOfUs) -> None:
    history, one, two = two_of_us
    os.mkfifo(history.file(SIDS[0]))
    history.write(_lines(history, SIDS[1], 3), SIDS[1])
    late = job_at(two, history.root)
    late.progress = lambda *numbers: _take_in(one, history)
    report = sync_all(late)
    assert report.failed == [(str(history.file(SIDS[0])), "not a regular file")]
    assert [file.fail_reason for file, _ in two.files()] == ["not a regular file", ""]


def test_a_file_that_another_process_took_in_meanwhile_is_not_read_to_its_end(
    two_of_us: TwoOfUs, small_pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, one, two = two_of_us
    path = history.write(_lines(history, SIDS[0], 100), SIDS[0])
    begin = two.write

    def overtaken() -> AbstractContextManager[None]:
        _take_in(one, history)
        return begin()

    monkeypatch.setattr(two, "write", overtaken)
    report = sync_all(job_at(two, history.root))
    assert (report.failed, report.bytes_stored) == ([], 0)
    assert report.bytes_read < path.stat().st_size / 2
    assert verify_archive(two, "box", lambda *numbers: None).wrong == []


TwoOfUs = tuple[History, Store, Store]


@pytest.fixture
def two_of_us(tmp_path: Path) -> Iterator[TwoOfUs]:
    """A history, and the archive of it as two processes have it open."""
    stores = [open_store(str(tmp_path / "archive.db")) for _ in range(2)]
    yield History(tmp_path / "agent"), stores[0], stores[1]
    for store in stores:
        store.close()


def _take_in(store: Store, history: History) -> None:
    sync_all(job_at(store, history.root))


def _start(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.faults.neighbours", *map(str, words)]
    return subprocess.Popen(command, cwd=HERE, env=environment(), stdout=subprocess.PIPE, text=True)


@contextmanager
def _writing(plan: Path, stop: Path, crowd: list[subprocess.Popen[str]]) -> Iterator[subprocess.Popen[str]]:
    """A process that writes as planned, begun when all others are ready."""
    for process in crowd:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    writer = _start("write", plan, stop)
    with ended(writer):
        yield writer


def _plan(history: History, folder: Path, turns: int, pause: float) -> Path:
    """The lines of all files in turn, cut anywhere, as a list of writes."""
    chance = random.Random(7)
    strokes = []
    for n in range(turns):
        for sid in SIDS:
            data = history.tool_turn(f"ask {n}", f"cat part_{n}.py", f"answer {n} " * chance.randrange(1, 80), sid)
            cuts = sorted({0, len(data), *(chance.randrange(len(data)) for _ in range(chance.randrange(3)))})
            strokes += [Stroke(str(history.file(sid)), data[a:b], pause) for a, b in pairwise(cuts)]
    plan = folder / "plan.json"
    plan.write_bytes(msgspec.json.encode(strokes))
    return plan


def _lines(history: History, sid: str, turns: int) -> bytes:
    return b"".join(history.tool_turn(f"ask {n}", f"cat part_{n}.py", f"answer {n}", sid) for n in range(turns))


def _assert_complete(archive: str, history: History) -> None:
    """Nothing is wrong or left to do, and the rows are those of an archive that one process made at once."""
    store, alone = open_store(archive), open_store("memory:")
    seen = verify_archive(store, "box", lambda *numbers: None)
    assert (seen.wrong, seen.differs, seen.grown, seen.compared) == ([], [], 0, len(SIDS))
    sync_all(job_at(alone, history.root))
    assert conversations(store) == conversations(alone)
    assert found(store, "answer") == found(alone, "answer") != []
    store.close()
    alone.close()
