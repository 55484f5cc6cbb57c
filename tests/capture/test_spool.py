"""What hooks have noted comes into the archive: all of it, once, and beside the transcript never a second time."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from everturn import hook
from everturn.capture import spool
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all, writer_for
from everturn.capture.writer import ArchiveWriter
from everturn.maintenance.forget import forget_sessions
from everturn.maintenance.merge import merge_archive
from everturn.model.archive import PHASES, Tombstone
from everturn.model.vocabulary import ERROR_CLASSES
from everturn.store.contract import Store, open_store
from everturn.store.sql_store import SqlStore
from tests.capture.history import OTHER, SID, SOURCES, History, current, job, run, sessions
from tests.transcripts import write_history

HERE = Path(__file__).parent
CODE = HERE.parent.parent / "src"
CORPUS = HERE.parent.parent.parent / "shared" / "corpus" / "hooks"
EVENTS = [json.loads(line) for line in (HERE / "recorded" / "events.jsonl").read_bytes().splitlines()]
RECORDED = EVENTS[0]["session_id"]
_nanoseconds = count(1_772_000_000_000_000_000, 1_000_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "spool"


def note(folder: Path, *events: dict[str, Any] | bytes) -> None:
    for event in events:
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        hook.append(str(folder), hook.event_line(data, True, next(_nanoseconds), 7))


def after(call: str, session: str = SID, **more: Any) -> dict[str, Any]:
    event = {"session_id": session, "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": call}
    return event | {"tool_input": {}, "tool_response": "x", "duration_ms": 5} | more


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def alone(store: Store) -> list[tuple[Any, ...]]:
    """The calls that only a hook has seen, as SQL sees them."""
    assert isinstance(store, SqlStore)
    return store.driver.all(
        'SELECT "session_id","tool_use_id","turn_id","is_error" FROM "hooked_invocations" ORDER BY 1,2'
    )


def batches(store: Store, session: str) -> list[list[str]]:
    """Return the parallel calls of a session as its agent reported them: call ids in order, batches by time."""
    calls: dict[str, list[str]] = {}
    for row in store.hook_events(session):
        if row.phase == "batch":
            calls.setdefault(row.batch, []).append(row.call_id)
    return list(calls.values())


# a real client --------------------------------------------------------------------------------------------------------
def test_the_batches_of_a_real_client_are_those_derived_from_its_transcript(
    history: History, store: Store, folder: Path
) -> None:
    note(folder, *EVENTS)
    drained = spool.drain_spool(store, folder)
    assert (drained.lines, drained.problems, left(folder)) == (len(EVENTS), [], [])
    history.write((HERE / "recorded" / "session.jsonl").read_bytes(), RECORDED)
    run(store, history)
    derived: dict[int, list[str]] = {}
    for call in store.calls(current(store, RECORDED).id):
        derived.setdefault(call.step, []).append(call.call_id)
    assert batches(store, RECORDED) == list(derived.values())
    assert sorted(map(len, derived.values())) == [1, 2, 3]
    assert spool.enrich_calls(store) == spool.EnrichReport(found=6, left=0)


def test_what_a_hook_says_of_a_call_agrees_with_the_transcript(history: History, store: Store, folder: Path) -> None:
    note(folder, *EVENTS)
    spool.drain_spool(store, folder)
    history.write((HERE / "recorded" / "session.jsonl").read_bytes(), RECORDED)
    run(store, history)
    ended = {row.call_id: row for row in store.hook_events(RECORDED) if row.phase in ("ended", "failed")}
    calls = store.calls(current(store, RECORDED).id)
    assert [(call.name, call.status == "error") for call in calls] == [
        (ended[call.call_id].tool, ended[call.call_id].phase == "failed") for call in calls
    ]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no recorded hook events beside the checkout")
def test_events_of_every_recorded_agent_become_rows(store: Store, folder: Path) -> None:
    for name in ("claude-code", "codex", "codex-notify", "gemini"):
        lines = [line for line in (CORPUS / f"{name}.jsonl").read_bytes().splitlines() if line.strip()]
        note(folder, *lines)
        drained = spool.drain_spool(store, folder)
        assert (drained.rows, drained.problems) == (len(lines), [])
        assert name == "codex-notify" or drained.paths
    assert {row.phase for row in store.hook_events()} == {"begun", "ended", "failed", "session"}


def test_the_batches_of_a_generated_history_are_the_same_from_hooks_and_from_its_files(
    history: History, store: Store, folder: Path
) -> None:
    truth = write_history(history.root, seed=5, sessions=4, turns=9, forks=False, subagents=False)
    run(store, history)
    for session in truth.sessions.values():
        made: list[list[str]] = []
        for call in session.calls:
            made += [[]] if call.batch == 0 else []
            made[-1].append(call.call_id)
        for batch in made:
            calls = [{"tool_name": "Bash", "tool_use_id": call} for call in batch]
            note(folder, {"session_id": session.native_id, "hook_event_name": "Batch", "tool_calls": calls})
        spool.drain_spool(store, folder)
        derived: dict[int, list[str]] = {}
        for row in store.calls(current(store, session.native_id).id):
            derived.setdefault(row.step, []).append(row.call_id)
        assert batches(store, session.native_id) == made == list(derived.values())
    assert any(call.batch_size > 1 for session in truth.sessions.values() for call in session.calls)
    assert spool.enrich_calls(store).left == 0


# the transcript is the truth ------------------------------------------------------------------------------------------
def test_a_call_counts_by_its_hook_until_the_transcript_has_it(
    history: History, any_store: Store, folder: Path
) -> None:
    store = any_store
    turn = history.tool_turn("do it", "make", "done")
    call = f"toolu_{history.n - 3}"
    note(folder, after(call), after("never-written", hook_event_name="Failed", error="x", tool_response=None))
    spool.drain_spool(store, folder)
    assert spool.enrich_calls(store) == spool.EnrichReport(found=0, left=2)
    assert alone(store) == [(SID, "never-written", None, 1), (SID, call, None, 0)]
    history.write(turn)
    run(store, history)
    assert spool.enrich_calls(store) == spool.EnrichReport(found=1, left=1)
    assert alone(store) == [(SID, "never-written", None, 1)]
    assert {row.own for row in store.hook_events() if row.call_id == call} == {current(store).id}


def test_a_call_of_a_subagent_is_found_though_the_hook_names_the_main_session(
    tmp_path: Path, history: History, store: Store, folder: Path
) -> None:
    truth = write_history(history.root, seed=2, sessions=4, turns=4, forks=False)
    child = next(one for one in truth.sessions.values() if one.kind == "subagent" and one.calls)
    note(folder, after(child.calls[0].call_id, child.parent, agent_id="a1"))
    spool.drain_spool(store, folder)
    run(store, history)
    assert spool.enrich_calls(store).found == 1
    (row,) = store.hook_events()
    assert row.own is not None and store.session(row.own)[0].native_id == child.native_id


def test_a_call_without_an_id_counts_only_where_there_is_no_transcript(
    history: History, any_store: Store, folder: Path
) -> None:
    nameless = {"hook_event_name": "AfterTool", "tool_name": "run", "tool_input": {}, "tool_response": {}}
    before = {"hook_event_name": "BeforeTool", "tool_name": "run", "tool_input": {}}
    for session in (SID, "elsewhere"):
        note(folder, before | {"session_id": session}, nameless | {"session_id": session})
    spool.drain_spool(any_store, folder)
    assert [row[0] for row in alone(any_store)] == [SID, "elsewhere"]
    history.write(history.turn("hello", "hi"))
    run(any_store, history)
    assert spool.enrich_calls(any_store) == spool.EnrichReport(found=1, left=1)
    assert [row[0] for row in alone(any_store)] == ["elsewhere"]


def test_what_was_heard_long_ago_is_not_looked_for_again(store: Store, folder: Path) -> None:
    note(folder, after("t1"))
    spool.drain_spool(store, folder)
    (row,) = store.hook_events()
    assert spool.enrich_calls(store, row.at + 1) == spool.EnrichReport()
    assert spool.enrich_calls(store, row.at).left == 1


def test_a_rebuild_leaves_what_was_heard_alone(history: History, store: Store, folder: Path) -> None:
    turn = history.tool_turn("do it", "make", "done")
    history.write(turn)
    run(store, history)
    note(folder, after(store.calls(current(store).id)[0].call_id))
    spool.drain_spool(store, folder)
    spool.enrich_calls(store)
    before = store.hook_events()
    with store.write():
        store.drop_derived(current(store).version)
    run(store, history)
    assert store.hook_events() == before and alone(store) == []


# once, and all of it --------------------------------------------------------------------------------------------------
def test_the_same_event_again_changes_nothing(any_store: Store, folder: Path) -> None:
    note(folder, *EVENTS)
    lines = (folder / hook.SPOOL).read_bytes()
    assert spool.drain_spool(any_store, folder).rows == 22
    before = any_store.hook_events()
    (folder / hook.SPOOL).write_bytes(lines * 2)
    assert spool.drain_spool(any_store, folder).rows == 0
    assert any_store.hook_events() == before


def test_a_drain_takes_what_an_earlier_one_has_left(store: Store, folder: Path) -> None:
    note(folder, after("t1"))
    (folder / hook.SPOOL).rename(folder / "taken-0123.jsonl")
    note(folder, after("t2"))
    assert spool.drain_spool(store, folder).rows == 2
    assert left(folder) == []


def test_there_may_be_no_spool(store: Store, folder: Path) -> None:
    assert spool.drain_spool(store, folder) == spool.DrainReport()


_DRAIN = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from everturn.capture import spool
from everturn.store import open_store
spool.GROUP = 3
print("ready", flush=True)
while True: spool.drain_spool(open_store(sys.argv[2]), Path(sys.argv[3]))
"""
_TELL = """
import sys; sys.path.insert(0, sys.argv[1])
from everturn import hook
for n in range(400):
    event = b'{"session_id":"s","tool_name":"x","tool_use_id":"%b-%d","hook_event_name":"E"}' % (sys.argv[3].encode(), n)
    hook.append(sys.argv[2], hook.event_line(event, True, n + 1, int(sys.argv[3])))
"""


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_when_drains_are_killed_while_agents_write(tmp_path: Path, folder: Path) -> None:
    db, dice = str(tmp_path / "archive.db"), random.Random(4)
    open_store(db).close()
    python = (sys.executable, "-I", "-c")
    agents = [subprocess.Popen([*python, _TELL, str(CODE), str(folder), str(n)]) for n in range(8)]
    kills = 0
    while kills < 6 or any(agent.poll() is None for agent in agents):
        with subprocess.Popen([*python, _DRAIN, str(CODE), db, str(folder)], stdout=subprocess.PIPE) as drain:
            assert drain.stdout is not None and drain.stdout.readline() == b"ready\n"
            time.sleep(dice.uniform(0, 0.1))
            drain.send_signal(signal.SIGKILL)
        kills += 1
    assert [agent.wait() for agent in agents] == [0] * 8
    store = open_store(db)
    assert spool.drain_spool(store, folder).problems == []
    assert sorted(row.ref for row in store.hook_events()) == sorted(f"{n}-{m}" for n in range(8) for m in range(400))
    assert left(folder) == []
    store.close()


# what is not taken in -------------------------------------------------------------------------------------------------
def test_a_line_that_cannot_be_used_is_told_and_kept(store: Store, folder: Path) -> None:
    note(folder, after("t1"), b'{"session_id":"s2","prompt":"never clo', b"[]", {"hook_event_name": "Stop"})
    with (folder / hook.SPOOL).open("ab") as file:
        file.write(
            b'\n{"at":17,"pid":3,"session_id":"s3","to\n{"at":1e99,"pid":1}\n\xff\xfe\n{"at":' + b"9" * 30 + b"}\n"
        )
    note(folder, after("t2"))
    drained = spool.drain_spool(store, folder)
    assert [why for _, why in drained.problems] == [
        "the event could not be read",
        "the event could not be read",
        "the event names no session",
        *["not a line of the hook"] * 4,
    ]
    assert {row.call_id for row in store.hook_events(SID)} == {"t1", "t2"}
    (kept,) = left(folder)
    assert kept.startswith("broken-") and len((folder / kept).read_bytes().splitlines()) == 7


def test_a_line_longer_than_any_of_ours_does_not_stop_the_others(store: Store, folder: Path) -> None:
    note(folder, after("t1"))
    with (folder / hook.SPOOL).open("ab") as file:
        file.write(b"x" * 3_000_000)
    note(folder, after("t2"))
    assert spool.drain_spool(store, folder).problems
    assert [row.call_id for row in store.hook_events()] == ["t1", "t2"]


def test_what_is_turned_off_leaves_no_row_and_names_no_file(store: Store, folder: Path) -> None:
    policy = Policy(rules=(("/home/ann/plans", "structure"),), exclude=("/home/ann/private",))
    off = {"cwd": "/home/ann/private/sub", "transcript_path": "/x/a.jsonl"}
    moved = {"cwd": "/tmp", "transcript_path": "/x/projects/-home-ann-private/b.jsonl"}
    kept = {"cwd": "/home/ann/plans", "transcript_path": "/x/c.jsonl"}
    note(folder, after("t1", **off), after("t2", **moved), after("t3", **kept), after("t4", **kept))
    drained = spool.drain_spool(store, folder, policy)
    assert (drained.off, drained.paths) == (2, ["/x/c.jsonl"])
    assert {row.call_id for row in store.hook_events()} == {"t3", "t4"}


def test_what_was_forgotten_does_not_come_back(store: Store, folder: Path) -> None:
    with store.write():
        store.bury([Tombstone("session", "any", SID, 1)])
    note(folder, after("t1"), after("t2", "other"))
    assert spool.drain_spool(store, folder).forgotten == 1
    assert [row.session for row in store.hook_events()] == ["other"]
    with store.write():
        store.drop_hook_events(["other"])
    assert store.hook_events() == []


def test_no_word_and_no_path_of_an_event_gets_into_the_archive(tmp_path: Path, folder: Path) -> None:
    store = open_store(str(tmp_path / "archive.db"))
    place = {
        "cwd": "/zqcanary/shop",
        "transcript_path": "/zqcanary/a.jsonl",
        "agent_transcript_path": "/zqcanary/b.jsonl",
    }
    for event in EVENTS:
        note(folder, event | place | {"prompt": "zqcanary", "tool_response": "zqcanary"})
    drained = spool.drain_spool(store, folder)
    store.close()
    assert drained.rows and drained.paths == ["/zqcanary/a.jsonl", "/zqcanary/b.jsonl"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"zqcanary" in path.read_bytes()]


def test_rows_use_the_closed_words_and_hold_numbers_a_database_can(any_store: Store, folder: Path) -> None:
    note(folder, *EVENTS, after("t1", error="x", is_interrupt=True), after("t\x002", duration_ms=1e300))
    note(folder, after("t3", duration_ms=-5), after("t4", duration_ms=2.6))
    assert spool.drain_spool(any_store, folder).problems == []
    rows = any_store.hook_events()
    assert {row.phase for row in rows} == set(PHASES)
    assert {row.error_class for row in rows} <= set(ERROR_CLASSES) and "interrupted" in {
        row.error_class for row in rows
    }
    assert {row.call_id: row.duration_ms for row in rows}["t3"] is None
    assert {row.call_id: row.duration_ms for row in rows}["t4"] == 3


def test_forget_takes_what_was_heard_with_it(history: History, store: Store, folder: Path) -> None:
    history.write(history.tool_turn("do it", "make", "done"))
    wanted = job(store, history)
    sync_all(wanted)
    note(folder, after("t1"), after("t2", "other"))
    spool.drain_spool(store, folder)
    forget_sessions(writer_for(wanted), SOURCES, [current(store)])
    assert [row.session for row in store.hook_events()] == ["other"]


def test_a_merge_brings_what_was_heard_and_looks_for_its_calls_anew(
    history: History, store: Store, folder: Path
) -> None:
    note(folder, *EVENTS, after("t1", "gone"))
    spool.drain_spool(store, folder)
    history.write((HERE / "recorded" / "session.jsonl").read_bytes(), RECORDED)
    run(store, history)
    spool.enrich_calls(store)
    other = open_store("memory:")
    with other.write():
        other.bury([Tombstone("session", "any", "gone", 1)])
    for _ in range(2):
        merge_archive(ArchiveWriter(other, "box", "ann", 9), store, SOURCES, lambda *progress: None)
    assert {row.own for row in other.hook_events()} == {None} and {row.session for row in other.hook_events()} == {
        RECORDED
    }
    assert spool.enrich_calls(other) == spool.EnrichReport(found=6, left=0)
    assert len(other.hook_events()) == len(store.hook_events(RECORDED))
    other.close()


def test_a_folder_in_the_way_is_told(store: Store, folder: Path) -> None:
    (folder / "taken-x.jsonl").mkdir(parents=True)
    ((where, why),) = spool.drain_spool(store, folder).problems
    assert where.endswith("taken-x.jsonl") and why == os.strerror(21)


def test_a_sync_takes_in_what_was_heard_and_transcripts_that_lie_elsewhere(
    any_store: Store, history: History, folder: Path, tmp_path: Path
) -> None:
    history.file().write_bytes(history.tool_turn("fix it", "make", "done"))
    call = json.loads(history.file().read_bytes().splitlines()[1])["message"]["content"][0]["id"]
    elsewhere = tmp_path / "elsewhere" / f"{OTHER}.jsonl"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(history.turn("hello", "hi", OTHER))
    note(
        folder, after(call, transcript_path=str(history.file())), after("unheard", transcript_path=str(elsewhere)), b"{"
    )
    one = job(any_store, history)
    one.spool = folder
    report = sync_all(one)
    assert (report.new, len(report.skipped)) == (2, 1)
    assert [row.call_id for row in any_store.hook_events(SID) if row.own] == [call]
    assert len(sessions(any_store, OTHER)) == 1
    assert sync_all(one).new == 0
