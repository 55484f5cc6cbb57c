"""A sync that reads with several processes leaves the same archive, byte for byte, as one that reads alone."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from everturn.capture import read_ahead
from everturn.capture.file_reader import FileCandidate
from everturn.capture.intake import Intake, SyncReport
from everturn.capture.policy import Policy
from everturn.capture.read_worker import FileRequest, prepare_file
from everturn.capture.sync import add_paths, sync_all
from everturn.sources.contract import all_sources
from everturn.store.contract import open_store
from tests.capture.history import FORMAT, SID, History, job
from tests.ready_archives import ServerArchives
from tests.waiting import wait_until

LONG = "aaaaaaaa-2222-4333-8444-555555555555"
DAMAGED = "bbbbbbbb-2222-4333-8444-555555555555"
FORK = "cccccccc-2222-4333-8444-555555555555"
_IMAGE = 900_000  # bytes that are read and stored and not indexed

_LAST_LINE = "read_worker.serve_requests"
#: Makes a worker die after the first piece of a file of several.
_MORTAL = """
whole = read_worker.prepare_file
def first_piece(request):
    for number, piece in enumerate(whole(request)):
        if number:
            os._exit(9)
        yield piece
read_worker.prepare_file = first_piece
"""


@pytest.fixture
def much(history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """A history that several processes read: forks, damage, equal names, and calls that end in a later piece."""
    monkeypatch.setattr(read_ahead, "LEAST", 1)
    monkeypatch.setattr(read_ahead, "LEAST_EACH", 1)
    monkeypatch.setattr(read_ahead, "_BATCH_FILES", 3)
    turns = history.turn("count the walruses", "three") + history.tool_turn("and the seals?", "ls seals", "a\nb")
    history.write(turns)
    history.write(history.fork(turns, FORK) + history.turn("paint them", "done", FORK), FORK)
    torn = history.fork(turns, DAMAGED)[:-40].replace(b'"uuid"', b'"uu\xffid"', 1) + b'{"torn'
    history.write(torn, DAMAGED)
    for number in range(12):
        sid = f"{number:08d}-3333-4333-8444-555555555555"
        history.write(history.tool_turn(f"prompt {number}", f"touch file{number}.py", "ok", sid), sid)
    history.write(_long_session(history), LONG)
    return history


def _long_session(history: History) -> bytes:
    """Some megabytes: every call is answered two images later."""
    lines = [history.line("user", "look at these", LONG)]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * _IMAGE}}
    for number in range(11):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "Write"}
        use["input"] = {"file_path": f"/home/ann/shop/{number}.txt", "content": f"line {number}\n"}  # type: ignore[assignment]
        lines.append(history.line("assistant", [use], LONG))
        if number > 1:
            back = {"type": "tool_result", "tool_use_id": f"toolu_{number - 2}", "content": "written"}
            lines.append(history.line("user", [back], LONG))
        lines.append(history.line("user", [image], LONG))
    return b"".join(lines)


@pytest.fixture
def take_in(much: History, tmp_path: Path) -> Callable[..., SyncReport]:
    """Sync into an archive of that name: a copy of one empty archive, so that keys and times are equal too."""
    empty = tmp_path / "empty.db"
    open_store(str(empty)).close()

    def take_in(name: str, processes: int, **more: Any) -> SyncReport:
        archive = tmp_path / name
        if not archive.exists():
            shutil.copy(empty, archive)
        with closing(open_store(str(archive))) as store:
            return sync_all(job(store, much, clock=lambda: 1_772_000_000_000, processes=processes, **more))

    return take_in


def _tables(archive: Path) -> dict[str, list[Any]]:
    """Everything in the file, also the pages of the index."""
    with closing(sqlite3.connect(archive)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
        plain = [name for name in names if name != "fts" and not name.startswith("sqlite_")]
        return {name: sorted(connection.execute(f'SELECT * FROM "{name}"'), key=repr) for name in plain}


def _assert_same(tmp_path: Path, one: str, other: str) -> None:
    expected, found = _tables(tmp_path / one), _tables(tmp_path / other)
    assert [name for name in expected if expected[name] != found[name]] == []


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The worker processes of a test."""
    processes: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        processes.append(popen(*words, **options))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    return processes


@pytest.fixture
def read_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that no worker read."""
    names: list[str] = []
    take = Intake.take

    def note_and_take(intake: Intake, candidate: FileCandidate) -> None:
        names.append(candidate.found.path.name)
        take(intake, candidate)

    monkeypatch.setattr(Intake, "take", note_and_take)
    return names


def test_the_archive_is_the_same_with_workers(
    take_in: Callable[..., SyncReport],
    tmp_path: Path,
    started: list[subprocess.Popen[bytes]],
    read_here: list[str],
) -> None:
    alone = take_in("alone.db", 1)
    assert started == []
    assert len(read_here) == alone.new
    read_here.clear()
    assert take_in("together.db", 3) == alone
    assert len(started) == 2
    assert read_here == []
    assert all(process.returncode is not None for process in started)
    _assert_same(tmp_path, "alone.db", "together.db")


def test_an_archive_on_a_server_is_the_same_with_workers(much: History, server_archives: ServerArchives) -> None:
    found = []
    for processes in (1, 3):
        with server_archives.one() as url:
            with closing(open_store(url)) as store:
                sync_all(job(store, much, clock=lambda: 1_772_000_000_000, processes=processes))
            found.append(_server_tables(url))
    alone, together = found

    assert len(alone["message"]) > 40 and alone["session"]
    assert len(alone["edit"]) == len(together["edit"]) > 5  # hashed with the key of the archive, which is in `setting`
    others = alone.keys() - {"edit", "setting"}
    assert [name for name in others if alone[name] != together[name]] == []


def _server_tables(url: str) -> dict[str, list[Any]]:
    """Every table of an archive on a server."""
    server, _, schema = url.rpartition("schema=")
    with psycopg.connect(server.rstrip("?&")) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname=%s", (schema,)).fetchall()
        return {
            name: sorted(map(repr, connection.execute(f'SELECT * FROM "{schema}"."{name}"'.encode()).fetchall()))
            for (name,) in names
        }


@pytest.mark.parametrize("program", ["os._exit(3)\n", _MORTAL], ids=["at once", "in a file"])
def test_workers_that_die_change_nothing(
    take_in: Callable[..., SyncReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    take_in("alone.db", 1)
    usual, _, rest = read_ahead._PROGRAM.partition(_LAST_LINE)
    monkeypatch.setattr(read_ahead, "_PROGRAM", f"{usual}{program}{_LAST_LINE}{rest}")
    take_in("together.db", 3)
    _assert_same(tmp_path, "alone.db", "together.db")


def test_an_interrupted_sync_ends_its_workers_and_the_next_one_completes_it(
    take_in: Callable[..., SyncReport], tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    def interrupt(done: int, *numbers: Any) -> None:
        if done == 14:
            raise KeyboardInterrupt

    take_in("alone.db", 1)
    with pytest.raises(KeyboardInterrupt):
        take_in("together.db", 3, progress=interrupt)
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)
    take_in("together.db", 3)
    _assert_same(tmp_path, "alone.db", "together.db")


@pytest.mark.slow
def test_a_file_that_another_process_takes_in_meanwhile_is_not_taken_in_twice(
    take_in: Callable[..., SyncReport], tmp_path: Path
) -> None:
    def meanwhile(done: int, *numbers: Any) -> None:
        if done == 3:
            take_in("together.db", 1)

    take_in("alone.db", 1)
    take_in("together.db", 3, progress=meanwhile)
    _assert_same(tmp_path, "alone.db", "together.db")


_VICTIM = """
import os, signal, sys
from pathlib import Path
from everturn.capture import read_ahead
from everturn.store.contract import open_store
from tests.capture.history import History, job
from everturn.capture.sync import sync_all
read_ahead.LEAST = read_ahead.LEAST_EACH = 1
popen, pids = read_ahead.subprocess.Popen, []
def start(*words, **options):
    process = popen(*words, **options)
    pids.append(process.pid)
    return process
read_ahead.subprocess.Popen = start
def die(done, *numbers):
    if done == 14:
        os.write(1, " ".join(map(str, pids)).encode())
        os.kill(os.getpid(), signal.SIGKILL)
history = History.__new__(History)
history.root = Path(sys.argv[2])
sync_all(job(open_store(sys.argv[1]), history, clock=lambda: 1_772_000_000_000, processes=3, progress=die))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_a_killed_sync_leaves_no_workers_and_the_next_one_completes_it(
    take_in: Callable[..., SyncReport], much: History, tmp_path: Path
) -> None:
    take_in("alone.db", 1)
    shutil.copy(tmp_path / "empty.db", tmp_path / "together.db")
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = [sys.executable, "-c", _VICTIM, str(tmp_path / "together.db"), str(much.root)]
    victim = subprocess.run(words, env=env, stdout=subprocess.PIPE, check=False)
    assert victim.returncode == -signal.SIGKILL
    pids = victim.stdout.decode().split()
    assert len(pids) == 2
    wait_until(lambda: not any(map(_is_running, pids)))
    take_in("together.db", 3)
    _assert_same(tmp_path, "alone.db", "together.db")


def _is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_files_of_one_name_and_other_formats_stay_what_they_are(
    much: History, tmp_path: Path, started: list[subprocess.Popen[bytes]], read_here: list[str]
) -> None:
    for folder, text in (("a", "count the walruses"), ("b", "paint the seals"), ("c", "count the walruses")):
        (much.root / folder).mkdir()
        line = '{"role":"user","message":{"content":[{"type":"text","text":"%s"}]}}\n' % text  # noqa: UP031
        (much.root / folder / "full.jsonl").write_text(line)
    shutil.copy(much.file(), tmp_path / "copy.jsonl")
    for name in ("alone.db", "together.db"):
        read_here.clear()
        open_store(str(tmp_path / "first.db")).close()
        shutil.copy(tmp_path / "first.db", tmp_path / name)
        with closing(open_store(str(tmp_path / name))) as store:
            work = job(store, much, clock=lambda: 1, processes=3 if name == "together.db" else 1)
            report = add_paths(replace(work, sources=all_sources()), [much.root, tmp_path / "copy.jsonl"])
            assert (report.failed, report.skipped) == ([], [])
    assert len(started) == 2
    assert read_here == ["full.jsonl"] * 3  # only the archive knows whether there is another one
    _assert_same(tmp_path, "alone.db", "together.db")


def _no_worker() -> Iterator[None]:
    raise AssertionError("a worker was started")


def test_a_small_sync_and_one_with_rules_start_no_process(
    take_in: Callable[..., SyncReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "_Worker", _no_worker)
    take_in("rules.db", 3, policy=Policy(exclude=("/elsewhere/*",)))
    take_in("redacted.db", 3, policy=Policy("redacted"))
    monkeypatch.setattr(read_ahead, "LEAST", 24 << 20)
    take_in("small.db", 3)


def test_a_worker_gives_back_what_it_must_not_read(much: History, tmp_path: Path) -> None:
    def prepared(path: Path, **changes: Any) -> list[Any]:
        found = {"kind": "main", "native_id": path.stem, "parent": ""} | changes
        return list(prepare_file(FileRequest(0, FORMAT, os.fsencode(path), columns={}, **found)))

    assert [piece is None for piece in prepared(much.file(LONG))] == [False, False, False]
    assert prepared(much.file(), native_id=SID)[0].last
    assert prepared(tmp_path / "not there.jsonl") == [None]
    (tmp_path / "full.jsonl").write_bytes(much.file().read_bytes())
    assert prepared(tmp_path / "full.jsonl") == [None]  # only the archive knows whether there is another one
    endless = tmp_path / f"{SID}.jsonl"
    endless.write_bytes(much.line("user", "x" * (17 << 20)))
    assert prepared(endless) == [None]
