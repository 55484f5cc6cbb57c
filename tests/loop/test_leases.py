"""Two processes never run one session at the same time, and the one that lost it cannot write."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everturn.clock import now
from everturn.errors import Busy, Conflict, EverturnError
from everturn.llm.protocol import Delta
from everturn.loop import leases
from everturn.loop.journal import Journal, JournalAbout, open_archive
from everturn.loop.leases import LeaseHolder, current_lease, this_process
from everturn.loop.loop import Loop, Watch
from everturn.loop.tools import tool
from everturn.store.contract import Store
from tests.loop.scripted_model import Model, calls, says
from tests.waiting import wait_until

HERE = LeaseHolder("box", os.getpid(), "", "here")
THERE = LeaseHolder("other box", 1, "", "there")


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now


def test_a_session_is_held_by_one(store: Store) -> None:
    first = Journal.open(store, "s1", holder=HERE)
    with pytest.raises(Busy, match="session s1"):
        Journal.open(store, "s1", holder=THERE)
    first.close()
    assert Journal.open(store, "s1", holder=THERE).past.token == 2


def test_a_lease_that_ran_out_can_be_taken_and_its_holder_cannot_write_any_more(store: Store) -> None:
    clock = Clock()
    first = Journal.open(store, "s1", holder=HERE, clock=clock, ttl=1000)
    first.accept("hello")
    clock.now += 999
    with pytest.raises(Busy):
        Journal.open(store, "s1", holder=THERE, clock=clock)
    clock.now += 1
    second = Journal.open(store, "s1", holder=THERE, clock=clock)
    with pytest.raises(Conflict):
        first.response(says("too late"))
    with pytest.raises(EverturnError, match="open it again"):
        first.accept("still too late")
    second.response(says("in time"))
    assert [message.role for message in second.past.messages] == ["user", "assistant"]
    first.close()
    assert current_lease(store, "s1").until > clock.now  # whoever lost it cannot give it up for the other


def test_a_lease_is_renewed_while_its_holder_waits(store: Store) -> None:
    clock = Clock()
    first = Journal.open(store, "s1", holder=HERE, clock=clock, ttl=1000)
    for _ in range(10):
        clock.now += 400
        first.renew()
    with pytest.raises(Busy):
        Journal.open(store, "s1", holder=THERE, clock=clock)
    Journal.open(store, "s1", holder=THERE, clock=clock, force=True)
    clock.now += 400
    with pytest.raises(Conflict):
        first.renew()


def test_a_slow_write_does_not_delay_the_next_renewal(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, renew = Clock(), leases.renew_lease
    journal = Journal.open(store, "s1", holder=HERE, clock=clock, ttl=1000)

    def renew_slowly(*arguments: Any) -> None:
        renew(*arguments)
        clock.now += 300  # what the write took

    monkeypatch.setattr(leases, "renew_lease", renew_slowly)
    for _ in range(3):
        before = clock.now = clock.now + 334
        journal.renew()
        assert current_lease(store, "s1").until == before + 1000
        clock.now = before
    journal.close()


def test_a_tool_that_takes_longer_than_the_lease_does_not_lose_it(tmp_path: Path) -> None:
    url, clock = str(tmp_path / "archive.db"), Clock()
    store, other = open_archive(url), open_archive(url)

    @tool
    def long() -> str:
        """Take three thirds of the lease, and then some."""
        for _ in range(4):
            clock.now += 400
            wait_until(lambda: current_lease(other, "s1").until >= clock.now + 1000)
        with pytest.raises(Busy):
            Journal.open(other, "s1", holder=THERE, clock=clock)
        return "still ours"

    journal = Journal.open(store, "s1", holder=HERE, clock=clock, ttl=1000)
    Loop(Model([calls(("a", "long")), says("ok")]), [long]).run(journal, "go")
    assert journal.past.messages[2].parts[0].text == "still ours"
    store.close()
    other.close()


def test_a_loop_that_lost_its_session_stops_before_it_runs_anything(archive: Store) -> None:
    journal = Journal.open(archive, "s1", holder=HERE)
    ran: list[int] = []

    @tool
    def act() -> None:
        """Act."""
        ran.append(1)

    model = Model([calls(("a", "act")), says("ok")])

    def taken_away(delta: Delta) -> None:
        Journal.open(archive, "s1", holder=THERE, force=True)

    with pytest.raises(Conflict):
        Loop(model, [act], watch=Watch(taken_away)).run(journal, "go")
    assert ran == []


def test_two_machines_that_begin_one_session_begin_it_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    look = Journal.__dict__["_load"].__func__

    def overtaken(cls: type[Journal], *given: Any) -> Any:
        """Between the look and the lease another machine comes, writes and goes."""
        late = look(cls, *given)
        monkeypatch.undo()
        with Journal.open(store, "s1", JournalAbout("other box")) as first:
            first.accept("first")
        return late

    monkeypatch.setattr(Journal, "_load", classmethod(overtaken))
    journal = Journal.open(store, "s1", JournalAbout("box"))
    assert [message.parts[0].text for message in journal.past.messages] == ["first"]
    assert len(store.files()) == 1


def test_the_same_holder_may_take_its_session_up_again(store: Store) -> None:
    first = Journal.open(store, "s1", holder=HERE)
    second = Journal.open(store, "s1", holder=HERE)
    with pytest.raises(Conflict):
        first.accept("from the old one")
    second.accept("from the new one")


def test_a_dead_process_of_this_machine_is_not_waited_for(archive: Store) -> None:
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    Journal.open(archive, "s1", holder=LeaseHolder("box", gone.pid, "", "gone"))
    Journal.open(archive, "s1", holder=HERE)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell when a process began")
def test_a_number_that_another_process_has_now_does_not_keep_a_lease(archive: Store) -> None:
    Journal.open(archive, "s1", holder=LeaseHolder("box", os.getpid(), "1", "before"))
    Journal.open(archive, "s1", holder=LeaseHolder("box", 1, "", "after"))
    mine = this_process("box")
    assert mine.started not in ("", "ended")


@pytest.mark.parametrize(("after_the_name", "started"), [
    ("S " + " ".join(str(n) for n in range(1, 50)), "19"),
    ("S " + " ".join(str(n) for n in range(1, 20)), "19"),
    ("S " + " ".join(str(n) for n in range(1, 19)), ""),  # too short to tell
    ("Z " + " ".join(str(n) for n in range(1, 50)), "ended"),
    ("", ""),
])  # fmt: skip
def test_the_start_of_a_process_is_field_22_of_its_stat(
    after_the_name: str, started: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stat").write_text(f"1 (a) Z (b) {after_the_name}\n")
    monkeypatch.setattr(leases, "Path", lambda _: tmp_path / "stat")
    assert this_process("box").started == started


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell when a process began")
def test_a_process_that_ended_and_was_not_waited_for_does_not_keep_a_lease(archive: Store) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
    Journal.open(archive, "s1", holder=LeaseHolder("box", other.pid, started, "before"))
    with pytest.raises(Busy):
        Journal.open(archive, "s1", holder=HERE)
    assert other.stdin is not None
    with other.stdin as stdin:
        stdin.write(b"\n")
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert Journal.open(archive, "s1", holder=HERE).past.token == 2
    other.wait()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell when a process began")
@pytest.mark.parametrize("ahead", [0, 3_600_000, -3_600_000])
def test_a_stopped_process_keeps_its_session_whatever_the_clocks_say(tmp_path: Path, ahead: int) -> None:
    url, begun = str(tmp_path / "archive.db"), tmp_path / "begun"
    open_archive(url).close()
    code = (
        "import pathlib, sys\nfrom everturn.loop.journal import *\n"
        f"journal = Journal.open(open_archive({url!r}), 's1', ttl=1)\n"
        f"pathlib.Path({str(begun)!r}).touch()\nsys.stdin.readline()\n"
        "journal.note('still mine')\njournal.close()\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], env=_here(), stdin=subprocess.PIPE)
    wait_until(begun.exists)
    os.kill(holder.pid, signal.SIGSTOP)
    store, clock = open_archive(url), lambda: now() + ahead
    with pytest.raises(Busy):
        Journal.open(store, "s1", clock=clock)
    os.kill(holder.pid, signal.SIGCONT)
    assert holder.stdin is not None
    with holder.stdin as stdin:
        stdin.write(b"\n")
    assert holder.wait(60) == 0
    with Journal.open(store, "s1", clock=clock) as journal:
        assert journal.past.token == 2
    store.close()


def test_a_journal_that_nobody_has_any_more_does_not_keep_its_session(archive: Store) -> None:
    lost = Journal.open(archive, "s1")
    with pytest.raises(Busy):
        Journal.open(archive, "s1")
    del lost
    gc.collect()
    assert Journal.open(archive, "s1").past.token == 2


def test_two_processes_that_want_one_session_get_it_one_after_the_other(tmp_path: Path) -> None:
    url = str(tmp_path / "archive.db")
    open_archive(url).close()
    code = (
        "import sys, time\nfrom everturn.loop.journal import *\nfrom everturn.errors import *\n"
        f"store = open_archive({url!r}); done = 0\n"
        "while done < 20:\n"
        "    try:\n"
        "        with Journal.open(store, 's1', JournalAbout(sys.argv[1])) as j:\n"
        "            j.note(f'{sys.argv[1]} {done}'); j.note('and'); done += 1\n"
        "    except Busy:\n        time.sleep(0.002)\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, name], env=_here()) for name in ("one", "two")]
    assert [process.wait(60) for process in both] == [0, 0]
    store = open_archive(url)
    journal = Journal.open(store, "s1")
    lines = store.read_raw(store.files()[0][1].id, 0, 1 << 20).splitlines()
    assert journal.past.count == len(lines) == 40 * 3 + 1
    assert journal.past.token == 41
    texts = [line for line in lines if b'"note"' in line]
    assert all(b'"and"' in after for after in texts[1::2])  # nobody wrote between the two of another
    store.close()


def _here() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
