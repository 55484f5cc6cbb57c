"""What is forgotten is gone from every byte, and does not come back."""

from __future__ import annotations

import json
from pathlib import Path

from everturn.capture.writer import ArchiveWriter, rebuild_archive
from everturn.maintenance.forget import ForgetReport, forget_sessions, plan_forget
from everturn.maintenance.verify import verify_archive
from everturn.model.archive import Session
from everturn.store.contract import Store
from tests.capture.history import OTHER, SID, SOURCES, History, current, everything, hits, raw, run, sessions

CANARY = "quetzalcoatl"


def erase(store: Store, session: Session, keep_forks: bool = False) -> ForgetReport:
    return forget_sessions(ArchiveWriter(store, "box", "ann", 1_000_000), SOURCES, [session], keep_forks)


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_no_byte_of_a_forgotten_session_is_left(store: Store, history: History, tmp_path: Path) -> None:
    history.write(history.turn(f"{CANARY} ask", f"reply {CANARY}") * 3)
    history.write(history.turn("harmless", "talk", OTHER), OTHER)
    run(store, history)
    assert CANARY.encode() in stored(tmp_path / "archive")
    done = erase(store, current(store))
    assert (done.sessions, done.files) == ([SID], [str(history.file())])
    assert hits(store, CANARY) == []
    assert sessions(store) == []
    assert CANARY.encode() not in stored(tmp_path / "archive")
    assert hits(store, "harmless") == [(OTHER, 0)]
    assert verify_archive(store, "box", lambda *n: None).wrong == []


def test_a_later_sync_does_not_bring_it_back(store: Store, history: History, tmp_path: Path) -> None:
    history.write(history.turn(CANARY, "reply"))
    run(store, history)
    erase(store, current(store))
    history.grow(history.turn(f"more {CANARY}", "reply"))
    assert run(store, history).forgotten == 1
    assert sessions(store) == []
    assert CANARY.encode() not in stored(tmp_path / "archive")


def test_every_version_and_every_subagent_goes_with_it(store: Store, history: History) -> None:
    history.write(history.turn("first life", "x"))
    run(store, history)
    history.write(history.turn("second life", "y"))
    folder = history.project / SID / "subagents"
    folder.mkdir(parents=True)
    line = history.line("user", f"{CANARY} helper", isSidechain=True, agentId="a1b2c3d")
    (folder / "agent-a1b2c3d.jsonl").write_bytes(line)
    run(store, history)
    assert {row.native_id for row in plan_forget(store, current(store))} == {SID, f"{SID}/agent-a1b2c3d"}
    erase(store, current(store))
    assert store.files() == []
    assert (hits(store, "life"), hits(store, CANARY)) == ([], [])


def test_copies_in_forks_are_blanked_and_the_rest_of_the_fork_stays(
    store: Store, history: History, tmp_path: Path
) -> None:
    shared = history.turn(f"{CANARY} ask", "reply")
    history.write(shared)
    run(store, history)
    own = history.turn("own words", "stay", OTHER)
    history.write(history.fork(shared, OTHER) + own, OTHER)
    run(store, history)
    done = erase(store, current(store))
    assert done.forked_messages == 2
    kept = raw(store, history.file(OTHER))
    assert len(kept) == len(shared) + len(own)
    assert CANARY.encode() not in kept
    assert kept.endswith(own)
    assert hits(store, "own") == [(OTHER, 0)], "blanked records are no messages any more"
    assert verify_archive(store, "box", lambda *n: None).wrong == []
    history.grow(history.turn("and on", "it goes", OTHER), OTHER)
    run(store, history)
    assert hits(store, CANARY) == []
    assert hits(store, "goes") == [(OTHER, 3)]
    assert CANARY.encode() not in stored(tmp_path / "archive")


def test_records_that_are_no_messages_go_with_the_messages_they_lie_between(
    store: Store, history: History, tmp_path: Path
) -> None:
    progress = json.dumps({"type": "progress", "data": {"type": "bash_progress", "output": CANARY}}).encode() + b"\n"
    shared = history.turn("ask", "reply") + progress + history.turn("ask more", "reply") + progress
    history.write(shared)
    run(store, history)
    own = history.turn("own words", "stay", OTHER)
    history.write(history.fork(shared, OTHER) + own, OTHER)
    run(store, history)
    erase(store, current(store))
    assert CANARY.encode() not in raw(store, history.file(OTHER))
    third = "33333333-2222-4333-8444-555555555555"
    history.write(history.fork(shared, third) + history.turn("new", "part", third), third)
    run(store, history)
    assert CANARY.encode() not in raw(store, history.file(third))
    assert hits(store, "part") == [(third, 1)]
    assert verify_archive(store, "box", lambda *n: None).wrong == []


def test_a_fork_that_appears_after_the_forgetting_comes_without_the_forgotten_part(
    store: Store, history: History
) -> None:
    shared = history.turn(f"{CANARY} ask", "reply")
    history.write(shared)
    history.write(history.fork(shared, OTHER), OTHER)
    run(store, history)
    erase(store, current(store))
    third = "33333333-2222-4333-8444-555555555555"
    history.write(history.fork(shared, third) + history.turn("new", "part", third), third)
    run(store, history)
    assert hits(store, CANARY) == []
    assert CANARY.encode() not in raw(store, history.file(third))
    assert hits(store, "part") == [(third, 1)]
    before = list(everything(store))
    rebuild_archive(ArchiveWriter(store, "box", "ann", 0), SOURCES, lambda *n: None)
    assert list(everything(store)) == before


def test_forks_can_be_kept(store: Store, history: History) -> None:
    shared = history.turn(f"{CANARY} ask", "reply")
    history.write(shared)
    run(store, history)
    history.write(history.fork(shared, OTHER), OTHER)
    run(store, history)
    done = erase(store, current(store), keep_forks=True)
    assert done.kept_in == [OTHER]
    run(store, history)
    assert hits(store, CANARY) == [(OTHER, 0)]


def test_of_several_sessions_in_one_file_only_the_forgotten_one_goes(store: Store, tmp_path: Path) -> None:
    from everturn.capture.intake import SyncJob
    from everturn.capture.policy import Policy
    from everturn.capture.sync import add_paths
    from everturn.sources.contract import SearchPlaces, all_sources
    from tests.capture.history import ticking

    path = tmp_path / ".aider.chat.history.md"
    path.write_text(
        f"""
# aider chat started at 2026-01-01 10:00:00

> Aider v0.86.2

#### {CANARY} first question

An answer about {CANARY}.

# aider chat started at 2026-01-02 10:00:00

> Aider v0.86.2

#### second question

A harmless answer.
"""
    )
    one = SyncJob(store, all_sources(), SearchPlaces(tmp_path, {}, "linux"), Policy(), "box", "ann", ticking())
    assert add_paths(one, [path]).sessions == 2
    first, second = sorted(store.sessions_in(store.files()[0][1].id), key=lambda row: row.started or 0)
    done = forget_sessions(ArchiveWriter(store, "box", "ann", 0), all_sources(), [first])
    assert done.sessions == [first.native_id]
    assert hits(store, CANARY) == []
    assert [name for name, _ in hits(store, "harmless")] == [second.native_id]
    assert CANARY.encode() not in stored(tmp_path / "archive")
    with path.open("a") as file:
        file.write("\n#### third question\n\nAnother answer.\n")
    assert add_paths(one, [path]).failed == []
    assert [name for name, _ in hits(store, "third")] == [second.native_id]
    assert CANARY.encode() not in stored(tmp_path / "archive")
