"""Sessions in the database and in the folder of small files."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.capture.intake import SyncJob, SyncReport
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all
from everturn.maintenance.verify import verify_archive
from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.opencode import SOURCE
from everturn.store.contract import Store, open_store
from tests.sources import goldens
from tests.sources.opencode.building import (
    BEGAN,
    CHILD,
    CONVERSATION,
    PARENT,
    SESSIONS,
    Rec,
    assistant,
    database,
    export,
    info,
    insert,
    put,
    storage,
    text,
    tool,
    user,
)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database that somebody has open."""
    (tmp_path / "data").mkdir()
    connection = database(tmp_path / "data" / "opencode.db", SESSIONS)
    yield connection
    connection.close()


@pytest.fixture
def store() -> Iterator[Store]:
    """An archive in memory."""
    opened = open_store("memory:")
    yield opened
    opened.close()


def run(store: Store, folder: Path) -> SyncReport:
    places = SearchPlaces(folder, {}, "linux", {"opencode": (folder,)})
    report = sync_all(SyncJob(store, {"opencode": SOURCE}, places, Policy(), "box", "ann", lambda: BEGAN))
    assert report.failed == report.skipped == []
    return report


def wholes(path: Path, found: SourceCandidate | None = None) -> dict[str, goldens.Whole]:
    """The reading of each session in a container."""
    read = goldens.readings(SOURCE, path, found)
    for one, data, whole in read:
        goldens.assert_keeps_promises(SOURCE, data, whole)
        assert list(whole.messages) == [one.native_id]
    return {one.native_id: whole for one, _, whole in read}


def said(whole: goldens.Whole) -> list[tuple[object, ...]]:
    """Return the parts of a read that must not depend on where a session is read from."""
    return [
        (m.role, m.origin, m.kind, m.at, m.fingerprint, m.provider_id, m.usage, m.starts_turn, [b.text for b in m.blocks])
        for m in whole.all()
    ]  # fmt: skip


# the same everywhere ----------------------------------------------------------------------------------------------------
def test_a_session_reads_the_same_wherever_it_is_kept(live: sqlite3.Connection, tmp_path: Path) -> None:
    places = [wholes(tmp_path / "data" / "opencode.db")]
    for early in (False, True):
        root = storage(tmp_path / f"early-{early}", early)
        found = {one.native_id: one for one in SOURCE.find(root)}
        assert set(found) == {PARENT, CHILD}
        places.append({name: wholes(one.path, one)[name] for name, one in found.items()})
    exports: dict[str, goldens.Whole] = {}
    for about, messages in SESSIONS:
        (tmp_path / "export.json").write_bytes(export(about, messages))
        ((_, _, exports[about["id"]]),) = goldens.readings(SOURCE, tmp_path / "export.json")
    for place in places:
        for name in (PARENT, CHILD):
            assert said(place[name]) == said(exports[name])
            assert place[name].facts == exports[name].facts
            assert place[name].links == exports[name].links


def test_a_session_kept_in_two_places_counts_once(live: sqlite3.Connection, store: Store, tmp_path: Path) -> None:
    storage(tmp_path / "data")
    run(store, tmp_path / "data")
    sessions = store.sessions_of("opencode", PARENT)
    assert len(sessions) == 2
    own = [session.n_messages - session.n_inherited for session in sessions]
    assert sorted(own) == [0, sessions[0].n_messages]
    assert sum(session.tokens_in for session in sessions) == 400


def test_a_fork_has_its_copies_from_the_original(live: sqlite3.Connection, store: Store, tmp_path: Path) -> None:
    fork = [
        {"info": {**one["info"], "id": one["info"]["id"].replace("msg_", "msg_9")}, "parts": one["parts"]}
        for one in CONVERSATION[:5]
    ]
    about = info("ses_fork", "Walrus hunt (fork #1)")
    row = (about["id"], "p1", None, "s", "/x", about["title"], "1.18.0", 0, None, BEGAN + 1, BEGAN)
    live.execute("INSERT INTO session VALUES (?,?,?,?,?,?,?,?,?,?,?)", row)
    insert(live, "ses_fork", [*fork, user(99, text("now the narwhal"))])
    run(store, tmp_path / "data")
    (session,) = store.sessions_of("opencode", "ses_fork")
    assert (session.n_messages, session.n_inherited) == (6, 5)


def test_subagents_that_are_asked_the_same_at_the_same_time_are_two(store: Store, tmp_path: Path) -> None:
    errand = [user(16, text("Find the seal"))]
    other = [{"info": {**errand[0]["info"], "id": "msg_other"}, "parts": errand[0]["parts"]}]
    twins = [(info(CHILD, "a", PARENT), errand), (info("ses_twin", "b", PARENT), other)]
    (tmp_path / "data").mkdir()
    database(tmp_path / "data" / "opencode.db", twins).close()
    run(store, tmp_path / "data")
    assert [session.n_inherited for session in store.sessions_of("opencode", "ses_twin")] == [0]


# databases --------------------------------------------------------------------------------------------------------------
def test_a_live_database_is_taken_in_and_linked(live: sqlite3.Connection, store: Store, tmp_path: Path) -> None:
    report = run(store, tmp_path / "data")
    assert (report.sessions, report.subagents) == (1, 1)
    (parent,) = store.sessions_of("opencode", PARENT)
    (child,) = store.sessions_of("opencode", CHILD)
    assert (child.kind, child.parent, parent.kind) == ("subagent", PARENT, "main")
    turns = list(store.turns(parent.id))
    assert [turn.starter for turn in turns] == ["human"] * 5
    assert [turn.interrupted for turn in turns] == [0, 0, 1, 0, 0]
    assert [turn.compacted for turn in turns] == [0, 0, 1, 0, 0]
    calls = {call.call_id: call for call in store.calls(parent.id)}
    assert [calls[name].batch for name in ("call_a", "call_b", "call_c")] == [0, 1, 2]
    assert (calls["call_f"].step, calls["call_g"].status) == (-1, "open")
    artifacts = {(one.action, one.path.rpartition("/")[2]) for one in store.artifacts(parent.id)}
    assert artifacts == {("created", "a.py"), ("created", "b.py"), ("deleted", "c.py")}
    assert run(store, tmp_path / "data").unchanged == 1


def test_what_is_added_is_added_and_nothing_is_read_again(
    live: sqlite3.Connection, store: Store, tmp_path: Path
) -> None:
    run(store, tmp_path / "data")
    live.execute("UPDATE session SET time_updated=time_updated+5000, cost=0.7")
    insert(live, CHILD, [user(20, text("And the otter?")), assistant(21, text("Gone."), asked=20)])
    report = run(store, tmp_path / "data")
    assert (report.messages, report.grown) == (2, 1)
    (session,) = store.sessions_of("opencode", CHILD)
    assert (session.n_messages, session.n_turns, session.n_inherited) == (4, 2, 0)
    assert verify_archive(store, "box", lambda *n: None).wrong == []


def test_a_message_that_was_caught_half_written_is_read_again(
    live: sqlite3.Connection, store: Store, tmp_path: Path
) -> None:
    insert(live, CHILD, [assistant(30, text("Half"), time={"created": BEGAN + 30_000}, finish=None)])
    run(store, tmp_path / "data")
    whole = assistant(30, text("Half an otter is whole"))
    live.execute("UPDATE message SET data=? WHERE id='msg_000030'", (json.dumps(whole["info"]),))
    live.execute("UPDATE part SET data=? WHERE message_id='msg_000030'", (json.dumps(whole["parts"][0]),))
    live.commit()
    run(store, tmp_path / "data")
    older, newer = store.sessions_of("opencode", CHILD)
    assert {older.state, newer.state} == {"current", "superseded"}
    current = older if older.state == "current" else newer
    assert (current.n_messages, current.n_inherited) == (3, 2)


def test_a_row_that_is_no_json_is_kept_and_counted(live: sqlite3.Connection, tmp_path: Path) -> None:
    live.execute("UPDATE message SET data='{broken' WHERE id='msg_000016'")
    live.execute("UPDATE part SET data='[1,\n2]' WHERE message_id='msg_000017'")
    live.commit()
    whole = wholes(tmp_path / "data" / "opencode.db")[CHILD]
    assert [message.kind for message in whole.all()] == ["unknown", "text"]
    assert "Find the seal" in whole.texts("meta")[0]
    assert sum(n for (_, _, disposition), n in whole.census.items() if disposition == "unknown") == 2


def test_a_database_without_the_expected_tables_or_columns_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "opencode.db") as connection:
        connection.execute("CREATE TABLE session(id TEXT, colour TEXT)")
        connection.execute("CREATE TABLE message(id TEXT, session_id TEXT, data TEXT)")
        connection.execute("INSERT INTO session VALUES ('ses_1', 'green')")
        connection.execute("""INSERT INTO message VALUES ('msg_1', 'ses_1', '{"role":"user"}')""")
    connection.close()
    whole = wholes(tmp_path / "opencode.db")["ses_1"]
    assert [(m.role, m.at, m.fingerprint is not None) for m in whole.all()] == [("user", None, True)]
    with sqlite3.connect(tmp_path / "opencode-dev.db") as connection:
        connection.execute("CREATE TABLE other(id TEXT)")
    connection.close()
    assert wholes(tmp_path / "opencode-dev.db") == {}


# the second generation ----------------------------------------------------------------------------------------------------
def newer(connection: sqlite3.Connection, session: str, seq: int, kind: str, **data: object) -> None:
    time = {"time": {"created": BEGAN + seq * 1000, "completed": BEGAN + seq * 1000 + 300}}
    row = (f"msg_n{seq:05}", session, kind, seq, BEGAN, BEGAN, json.dumps({**time, **data}))
    connection.execute("INSERT INTO session_message VALUES (?,?,?,?,?,?,?)", row)
    connection.commit()


def test_messages_of_the_second_generation_are_read_too(tmp_path: Path) -> None:
    live = database(tmp_path / "opencode.db", [(info(PARENT, "t"), [])])
    newer(
        live, PARENT, 1, "user", text="Find it", files=[{"uri": "file:///a.png", "mime": "image/png", "name": "a.png"}]
    )
    newer(live, PARENT, 2, "model-switched", model={"id": "m"})
    called = {
        "type": "tool",
        "id": "call_1",
        "name": "bash",
        "time": {"created": BEGAN, "ran": BEGAN, "completed": BEGAN + 9},
    }
    went = {"status": "completed", "input": {"command": "ls"}, "content": [{"type": "text", "text": "sea.py"}],
            "structured": {"exit": 0}}  # fmt: skip
    failed = {
        "status": "error",
        "input": {},
        "content": [],
        "structured": {},
        "error": {"type": "unknown", "message": "timed out"},
    }
    newer(
        live, PARENT, 3, "assistant", agent="build", model={"id": "m-2", "providerID": "p"},
        content=[{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "There."}, {**called, "state": went},
                 {**called, "id": "call_2", "state": failed}],
        tokens={"input": 5, "output": 6, "reasoning": 1, "cache": {"read": 0, "write": 0}}, snapshot={"files": ["x.py"]},
        error={"type": "unknown", "message": "no more credit"},
    )  # fmt: skip
    newer(live, PARENT, 4, "shell", callID="call_3", command="pwd", output="/home")
    newer(live, PARENT, 5, "compaction", reason="auto", summary="all about seals", recent="")
    newer(live, PARENT, 6, "synthetic", text="go on")
    newer(live, PARENT, 7, "dance", text="jig")
    live.close()
    whole = wholes(tmp_path / "opencode.db")[PARENT]
    assert [(m.role, m.origin, m.kind) for m in whole.all()] == [
        ("user", "human", "text"),
        ("assistant", "model", "text"),
        ("assistant", "system", "notice"),
        ("assistant", "human", "shell"),
        ("user", "system", "compaction"),
        ("user", "injected", "context"),
        ("system", "system", "unknown"),
    ]
    answer = whole.all()[1]
    assert answer.usage is not None
    assert (answer.model, answer.usage.output) == ("m-2", 7)
    ends = [block.result for message in whole.all() for block in message.blocks if block.result is not None]
    assert [(end.call_id, end.error_class, end.duration_ms) for end in ends] == [
        ("call_1", "", 9),
        ("call_2", "timeout", 9),
        ("call_3", "", 300),
    ]
    assert whole.texts("summary") == ["all about seals"]
    assert whole.census["switch", "1.18.0", "known"] == 1


def test_a_message_kept_by_both_generations_is_read_once(live: sqlite3.Connection, tmp_path: Path) -> None:
    row = ("msg_000016", CHILD, "user", 1, BEGAN, BEGAN, '{"text":"Find the seal"}')
    live.execute("INSERT INTO session_message VALUES (?,?,?,?,?,?,?)", row)
    live.commit()
    assert len(wholes(tmp_path / "data" / "opencode.db")[CHILD].all()) == 2


# folders ------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("early", [False, True])
def test_every_file_of_a_session_can_be_put_back_as_it_was(tmp_path: Path, early: bool) -> None:
    root = storage(tmp_path / "data", early)
    bad = next(root.rglob("prt_000005_01.json"))
    bad.write_bytes(b'{"text": "\xff"}')
    restored: dict[str, bytes] = {}
    for found in SOURCE.find(root):
        for _, data in goldens.unpacked(SOURCE, found, found.path):
            for line in data.splitlines():
                for file in files_in(json.loads(line)):
                    raw = base64.b64decode(file["base64"]) if "base64" in file else file["text"].encode()
                    restored[file["file"]] = raw
    top = root / "project" / "otter" / "storage" if early else root / "storage"
    there = {path.relative_to(top).as_posix(): path.read_bytes() for path in top.rglob("*.json")}
    assert restored == there


def files_in(value: object) -> Iterator[Rec]:
    if isinstance(value, dict):
        if "file" in value and ("text" in value or "base64" in value):
            yield value
        else:
            for inside in value.values():
                yield from files_in(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from files_in(inside)


def test_a_folder_is_read_again_when_a_part_in_it_changed(store: Store, tmp_path: Path) -> None:
    root = storage(tmp_path / "data")
    assert run(store, root).subagents == 1
    assert run(store, root).unchanged == 2
    part = next(root.rglob("prt_000015_01.json"))
    done = {**json.loads(part.read_text()), **tool("bash", "call_g", {"command": "sleep 9"}, "slept", exit=0)}
    put(part, done)
    info_file = root / "storage" / "message" / PARENT / "msg_000015.json"
    put(
        info_file,
        {**json.loads(info_file.read_text()), "time": {"created": BEGAN + 15_000, "completed": BEGAN + 16_000}},
    )
    report = run(store, root)
    assert (report.unchanged, report.messages) == (1, 17)
    current = next(one for one in store.sessions_of("opencode", PARENT) if one.state == "current")
    assert (current.n_messages, current.n_inherited) == (17, 16)
    assert {call.status for call in store.calls(current.id)} == {"ok", "error"}


def test_a_deleted_session_stays_in_the_archive(store: Store, tmp_path: Path) -> None:
    root = storage(tmp_path / "data")
    run(store, root)
    shutil.rmtree(root / "storage" / "message" / CHILD)
    next(root.rglob(f"session/p1/{CHILD}.json")).unlink()
    assert run(store, root).gone == 1
    assert store.sessions_of("opencode", CHILD)[0].n_messages == 2


def test_damaged_and_missing_files_do_not_stop_the_rest(tmp_path: Path) -> None:
    root = storage(tmp_path / "data")
    (root / "storage" / "message" / PARENT / "msg_000001.json").write_bytes(b"{")
    shutil.rmtree(root / "storage" / "part" / "msg_000002")
    next(root.rglob(f"session/p1/{PARENT}.json")).write_bytes(b"")
    found = next(one for one in SOURCE.find(root) if one.native_id == PARENT)
    whole = wholes(found.path, found)[PARENT]
    assert [message.kind for message in whole.all()[:3]] == ["unknown", "text", "text"]
    assert whole.all()[1].blocks == ()
    assert len(whole.all()) == 17
