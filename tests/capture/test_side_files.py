"""Files beside the transcripts that belong to a session: archived with it, found, brought back, and erased with it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all
from everturn.capture.writer import ArchiveWriter
from everturn.maintenance.forget import forget_sessions
from everturn.model.vocabulary import SESSION_KINDS
from everturn.resume.originals import find_originals
from everturn.sessions.messages import read_messages
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, Store, open_store
from tests import broken
from tests.capture.history import FORMAT, OTHER, SID, WORKSPACE, History, current, run, ticking

PLAN, PASTE = "Plan: tame the WALRUS", "pasted OCELOT " * 20


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Two sessions; a plan, a pasted text and prompts of the first, prompts of both."""
    made = History(tmp_path / "agent")
    for folder in ("plans", "paste-cache"):
        (made.root / folder).mkdir()
    (made.root / "plans" / "calm-otter.md").write_text(PLAN)
    (made.root / "paste-cache" / "abc123.txt").write_text(PASTE)
    made.write(made.turn("tame it", "done", slug="calm-otter"))
    made.write(made.turn("other", "done", OTHER, cwd="/home/ann/private"), OTHER)
    pasted = {"1": {"id": 1, "type": "text", "contentHash": "abc123"}}
    typed = [
        {"display": "the KESTREL", "pastedContents": pasted, "timestamp": 1, "project": WORKSPACE, "sessionId": SID},
        {"display": "the MARMOT", "pastedContents": {}, "timestamp": 2, "project": "/home/ann/private", "sessionId": OTHER},
        {"display": "the old LEMUR", "pastedContents": {}, "timestamp": 0, "project": WORKSPACE},
    ]  # fmt: skip
    (made.root / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in typed))
    return made


def words(store: Store) -> dict[str, str]:
    """The words of every side file, by the name of it."""
    rows, _ = store.sessions(SessionFilter(kinds=SESSION_KINDS))
    return {
        session.native_id: "\n".join(
            block.text for _, message in read_messages(store, all_sources(), session) for block in message.blocks
        )
        for session, _ in rows
        if session.kind == "meta"
    }


def test_they_are_archived_with_their_session_and_brought_back_with_it(history: History, tmp_path: Path) -> None:
    store = open_store("memory:")
    assert run(store, history).failed == []
    found = words(store)
    assert found["plans/calm-otter.md"] == PLAN and found["paste-cache/abc123.txt"] == PASTE
    assert "KESTREL" in found[f"{SID}/history.jsonl"] and "MARMOT" not in found[f"{SID}/history.jsonl"]
    assert "LEMUR" in found["history.jsonl/-home-ann-shop"]
    assert run(store, history).unchanged
    gone = [history.file(), history.root / "plans" / "calm-otter.md", history.root / "paste-cache" / "abc123.txt"]
    kept = [path.read_bytes() for path in gone]
    for path in gone:
        path.unlink()
    run(store, history)
    places = SearchPlaces(tmp_path, {}, "linux", {FORMAT: (history.root,)})
    back = {
        one.path: b"".join(one.pieces(store))
        for one in find_originals(store, all_sources()[FORMAT], current(store), places)
    }
    assert [back[path] for path in gone] == kept
    store.close()


def test_forgetting_a_session_erases_them(history: History) -> None:
    store = open_store("memory:")
    run(store, history)
    forget_sessions(ArchiveWriter(store, "box", "ann", 1), all_sources(), [current(store)])
    run(store, history)
    left = "\n".join(words(store).values())
    assert not any(word in left for word in ("WALRUS", "OCELOT", "KESTREL")) and "MARMOT" in left
    raw = b"".join(store.read_raw(version.id, 0, version.size) for _, version in store.files())
    assert b"KESTREL" not in raw and b"WALRUS" not in raw and b"OCELOT" not in raw
    store.close()


@pytest.mark.parametrize(
    ("policy", "there", "absent"),
    [
        (Policy(exclude=("/home/ann/shop",)), ["MARMOT"], ["WALRUS", "OCELOT", "KESTREL", "LEMUR"]),
        (Policy(exclude=("/home/ann/private",)), ["WALRUS", "OCELOT", "KESTREL"], ["MARMOT"]),
        (Policy("structure"), [], ["WALRUS", "OCELOT", "KESTREL", "MARMOT", "LEMUR"]),
    ],
)
def test_the_rules_of_a_workspace_hold_for_them(
    history: History, policy: Policy, there: list[str], absent: list[str]
) -> None:
    store = open_store("memory:")
    run(store, history, policy)
    raw = b"".join(store.read_raw(version.id, 0, version.size) for _, version in store.files()).decode()
    assert [word for word in (*there, *absent) if word in raw] == there
    store.close()


def test_memories_and_goals_of_codex_belong_to_their_sessions(tmp_path: Path) -> None:
    home, session = tmp_path / ".codex", "019a0000-1111-7222-8333-444455556666"
    folder = home / "sessions" / "2026" / "01" / "05"
    folder.mkdir(parents=True)
    (folder / broken.whole("codex").name).write_bytes(broken.whole("codex").data)
    (home / "memories" / "rollout_summaries").mkdir(parents=True)
    (home / "memories" / "MEMORY.md").write_text("remember the WALRUS")
    about = home / "memories" / "rollout_summaries" / "one.md"
    about.write_text(f"thread_id: {session}\ncwd: /home/ann/shop\n\nthe OCELOT")
    with closing(sqlite3.connect(home / "goals_1.sqlite")) as database, database:
        database.execute("CREATE TABLE thread_goals (thread_id TEXT, objective TEXT, tokens_used INTEGER)")
        database.execute("INSERT INTO thread_goals VALUES (?, 'tame the KESTREL', 7)", (session,))
    store = open_store("memory:")
    places = SearchPlaces(tmp_path, {}, "linux")
    job = SyncJob(store, {"codex": all_sources()["codex"]}, places, Policy(), "box", "ann", ticking())
    assert sync_all(job).failed == []
    found = words(store)
    assert (
        found["memories/MEMORY.md"] == "remember the WALRUS" and "OCELOT" in found["memories/rollout_summaries/one.md"]
    )
    assert "KESTREL" in found[f"{session}/goal.json"] and "tokens_used" not in found[f"{session}/goal.json"]
    assert sync_all(job).new == 0
    forget_sessions(ArchiveWriter(store, "box", "ann", 1), all_sources(), [store.sessions_of("codex", session)[0]])
    sync_all(job)
    assert set(words(store)) == {"memories/MEMORY.md"}
    store.close()
