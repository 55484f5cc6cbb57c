"""The drain that a hook leaves behind: alone, in time, and unnoticed by the agent."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from everturn.capture.drain import SCAN_LOCK, WHILE, drain_once
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.errors import NoArchive, OlderArchive
from everturn.hook import LOCK, SPOOL, _is_starting, append, event_line
from everturn.sources.contract import SearchPlaces
from everturn.store.contract import SessionFilter, open_store
from tests.capture.history import OTHER, SID, SOURCES, History

ROOT = Path(__file__).parent.parent.parent
HOOK = (sys.executable, "-c", "from everturn.hook import main; main()")


class Desk:
    """A home with a history in it, an archive, and a hook that knows where both are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.history = History(folder / "home" / ".claude")
        self.spool = folder / "ev" / "state" / "spool"

    @property
    def env(self) -> dict[str, str]:
        """What an agent would give its hooks."""
        home = str(self.folder / "home")
        return {"HOME": home, "EVERTURN_HOME": str(self.folder / "ev"), "PYTHONPATH": str(ROOT / "src")}

    def event(self, name: str, sid: str = SID) -> dict[str, Any]:
        path = str(self.history.file(sid))
        return {"session_id": sid, "transcript_path": path, "cwd": "/home/ann/shop", "hook_event_name": name}

    def hook(self, name: str, sid: str = SID, *words: str, **more: Any) -> None:
        data = json.dumps(self.event(name, sid)).encode()
        done = subprocess.run(
            [*HOOK, *words], input=data, env=self.env, capture_output=True, check=False, timeout=600, **more
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def job(self, store: Any) -> SyncJob:
        places = SearchPlaces(self.folder / "home", {}, "linux")
        return SyncJob(store, SOURCES, places, Policy(), "box", "ann", lambda: 1_800_000_000_000, spool=self.spool)

    def sizes(self) -> dict[str, int]:
        """Archived bytes by session; empty while there is no archive."""
        path = self.folder / "ev" / "archive.db"
        try:
            store = open_store(str(path), create=False, upgrade=False)
        except (NoArchive, OlderArchive):  # or one that is being made
            return {}
        try:
            rows, _ = store.sessions(SessionFilter(), 100)
            return {session.native_id: store.version(session.version).size for session, _ in rows}
        finally:
            store.close()

    def wait_for(self, wanted: dict[str, int]) -> None:
        """A detached process has no one to wait for it but us."""
        until = time.monotonic() + 60
        while self.sizes() != wanted:
            assert time.monotonic() < until, (self.sizes(), wanted)
            time.sleep(0.05)

    def wait_for_the_end(self) -> None:
        """Until no drain holds the lock any more and nothing is left."""
        until = time.monotonic() + 60
        while (self.spool / SPOOL).exists() or self.is_locked():
            assert time.monotonic() < until
            time.sleep(0.05)

    def is_locked(self) -> bool:
        if not (self.spool / LOCK).exists():
            return False
        with (self.spool / LOCK).open("r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
        return False

    def write(self, sid: str = SID) -> int:
        """One more turn of a session; how long its file is then."""
        lines = self.history.line("user", "hello", sid=sid) + self.history.line("user", "again", sid=sid)
        with self.history.file(sid).open("ab") as file:
            file.write(lines)
        return self.history.file(sid).stat().st_size


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_end_of_a_turn_brings_its_session_into_the_archive(desk: Desk) -> None:
    size = desk.write()
    desk.hook("Stop", SID, "--drain")
    desk.wait_for({SID: size})
    desk.wait_for_the_end()
    assert {path.name for path in desk.spool.iterdir()} <= {LOCK, SCAN_LOCK}


def test_a_call_is_archived_while_its_tool_runs(desk: Desk) -> None:
    """Nothing tells the end of the turn: the agent may be killed in the tool."""
    size = desk.write()
    desk.hook("PreToolUse", SID, "--drain-soon")
    desk.wait_for({SID: size})
    desk.wait_for_the_end()


def test_events_close_to_each_other_start_one_drain(desk: Desk) -> None:
    desk.write()
    desk.spool.mkdir(parents=True)
    lock = desk.spool / LOCK
    assert not _is_starting(str(lock)) and _is_starting(str(lock)) and lock.stat().st_mode & 0o777 == 0o600
    os.utime(lock, (time.time() - 1, time.time() - 1))
    assert not _is_starting(str(lock))


@pytest.mark.slow
def test_eight_sessions_that_end_at_once_are_all_archived(desk: Desk) -> None:
    names = [f"{n}1111111-2222-4333-8444-555555555555" for n in range(8)]
    wanted = {name: desk.write(name) for name in names}
    agents = []
    for name in names:
        given = json.dumps(desk.event("SessionEnd", name)).encode()
        agent = subprocess.Popen(
            [*HOOK, "--drain"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=desk.env
        )
        assert agent.stdin is not None
        agent.stdin.write(given)
        agents.append(agent)
    said = [agent.communicate(timeout=600) for agent in agents]
    assert said == [(b"", b"")] * 8 and [agent.returncode for agent in agents] == [0] * 8
    desk.wait_for(wanted)
    desk.wait_for_the_end()


def test_the_agent_does_not_wait_for_the_drain(desk: Desk) -> None:
    """The pipes of the hook are closed when it ends: whoever reads them to their end is not held up by the drain."""
    desk.write()
    with _Held(desk.spool / LOCK):
        desk.hook("Stop", SID, "--drain")  # `capture_output` reads to the end
        assert (desk.spool / SPOOL).exists()


def test_one_drain_leaves_the_rest_to_the_one_at_work(desk: Desk) -> None:
    desk.write()
    append(str(desk.spool), event_line(json.dumps(desk.event("Stop")).encode(), True, 1, 1))
    store = open_store("memory:")
    with _Held(desk.spool / LOCK):
        assert drain_once(desk.job(store), lambda seconds: None) == 0
    assert drain_once(desk.job(store), lambda seconds: None) >= 1
    assert not (desk.spool / SPOOL).exists()


def test_what_is_written_after_the_last_event_is_taken_in_too(desk: Desk) -> None:
    desk.write()
    append(str(desk.spool), event_line(json.dumps(desk.event("SessionEnd")).encode(), True, 1, 1))
    store = open_store("memory:")
    naps: list[int] = []

    def sleep(seconds: float) -> None:
        naps.append(len(naps))
        if len(naps) == 3:
            desk.write()

    drain_once(desk.job(store), sleep)
    session, _ = store.sessions(SessionFilter())[0][0]
    assert store.version(session.version).size == desk.history.file().stat().st_size
    assert len(naps) < 50, "it ends"


def test_a_line_that_came_while_the_lock_was_given_back_is_not_left(desk: Desk) -> None:
    size = desk.write()
    store = open_store("memory:")
    late = [event_line(json.dumps(desk.event("Stop")).encode(), True, 2, 2)]
    rounds: list[Mapping[str, str]] = []

    def settled(folders: Mapping[str, str]) -> None:
        rounds.append(folders)

    def sleep(seconds: float) -> None:
        if late and len(rounds) == 1:
            append(str(desk.spool), late.pop())

    append(str(desk.spool), event_line(json.dumps(desk.event("Stop")).encode(), True, 1, 1))
    drain_once(desk.job(store), sleep, settled)
    assert not (desk.spool / SPOOL).exists() and len(store.hook_events(SID)) == 2
    assert rounds[0] == {SID: "/home/ann/shop"}
    assert store.version(store.sessions(SessionFilter())[0][0][0].version).size == size


def test_only_what_was_named_is_looked_at_until_a_while_has_passed_or_a_session_begins(desk: Desk) -> None:
    store = open_store("memory:")
    now = [1_800_000_000_000]

    def heard(sid: str) -> dict[str, bool]:
        """Whether each session is in the archive as it is on disk, after an event of one."""
        append(str(desk.spool), event_line(json.dumps(desk.event("Stop", sid)).encode(), True, now[0], 1))
        job = desk.job(store)
        job.clock = lambda: now[0]
        drain_once(job, lambda seconds: None)
        rows, _ = store.sessions(SessionFilter(), 10)
        sizes = {row.native_id: store.version(row.version).size for row, _ in rows}
        return {sid: size == desk.history.file(sid).stat().st_size for sid, size in sizes.items()}

    for sid in (SID, OTHER):
        desk.write(sid)
    assert heard(SID) == {SID: True, OTHER: True}, "the first drain looks at everything"
    for sid in (SID, OTHER):
        desk.write(sid)
    assert heard(SID) == {SID: True, OTHER: False}
    now[0] += WHILE
    assert heard(SID) == {SID: True, OTHER: True}
    desk.write(OTHER)
    begun = "77777777-2222-4333-8444-555555555555"
    desk.write(begun)
    assert heard(begun) == {SID: True, OTHER: True, begun: True}


def test_what_an_agent_does_is_taken_in_while_a_scan_of_everything_runs(desk: Desk) -> None:
    store = open_store("memory:")
    desk.write()
    desk.write(OTHER)
    append(str(desk.spool), event_line(json.dumps(desk.event("PreToolUse")).encode(), True, 1, 1))
    with _Held(desk.spool / SCAN_LOCK):
        drain_once(desk.job(store), lambda seconds: None)
    assert [row.native_id for row, _ in store.sessions(SessionFilter())[0]] == [SID]
    seen: list[set[str]] = []

    def settled(folders: Mapping[str, str]) -> None:
        seen.append({row.native_id for row, _ in store.sessions(SessionFilter())[0]})

    begun = "77777777-2222-4333-8444-555555555555"
    desk.write(begun)
    append(str(desk.spool), event_line(json.dumps(desk.event("PreToolUse", begun)).encode(), True, 2, 1))
    drain_once(desk.job(store), lambda seconds: None, settled)
    assert seen[0] == {SID, begun} and seen[-1] == {SID, begun, OTHER}


def test_what_hangs_on_a_named_transcript_comes_with_it(desk: Desk) -> None:
    store = open_store("memory:")
    desk.write()
    for n in range(2):
        append(str(desk.spool), event_line(json.dumps(desk.event("Stop")).encode(), True, n + 1, 1))
        drain_once(desk.job(store), lambda seconds: None)
        folder = desk.history.project / SID / "subagents"
        folder.mkdir(parents=True, exist_ok=True)
        line = desk.history.line("user", "helper", isSidechain=True, agentId="a1b2c3d")
        (folder / "agent-a1b2c3d.jsonl").write_bytes(line)
        (folder.parent / "tool-results").mkdir(exist_ok=True)
        (folder.parent / "tool-results" / "b1.txt").write_text("a long output", "utf-8")
    paths = {Path(file.path).name for file, _ in store.files()}
    assert paths == {f"{SID}.jsonl", "agent-a1b2c3d.jsonl", "b1.txt"}


def test_a_full_disk_or_a_home_that_cannot_be_written_is_nothing_to_the_agent(desk: Desk) -> None:
    words = ("--drain", "--hints", "--where-you-were")
    desk.hook("Stop", SID, *words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    for place in ("/proc/nowhere", "/dev/null/x"):
        desk.hook("Stop", SID, *words, "--with", f"EVERTURN_HOME={place}")
    desk.hook("Stop", SID, *words, "--with", "EVERTURN_DB=/proc/nowhere/archive.db")
    size = desk.write()
    desk.hook("Stop", SID, "--drain")
    desk.wait_for({SID: size})
    desk.wait_for_the_end()


def test_a_module_in_the_agents_folder_is_not_taken_for_ours(desk: Desk, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for name in ("everturn.py", "json.py", "msgspec.py"):
        (work / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", "utf-8")
    size = desk.write()
    data = json.dumps(desk.event("Stop")).encode()
    command = [sys.executable, "-P", *HOOK[1:], "--drain"]  # as a program in another folder is run
    subprocess.run(command, input=data, env=desk.env, cwd=work, check=True)
    desk.wait_for({SID: size})
    assert not (tmp_path / "ran").exists()
    desk.wait_for_the_end()


class _Held:
    """The lock in somebody else's hands."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def __enter__(self) -> None:
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self.file)
