"""Conversations inside databases and folders of small files, with a format that exists only here."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from everturn.capture.intake import SyncJob, SyncReport
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths, sync_all, writer_for
from everturn.maintenance.forget import forget_sessions
from everturn.maintenance.verify import verify_archive
from everturn.model.conversation import Block, Census, Message, ReadResult, SessionFacts, SessionPart
from everturn.sources.contract import Member, SearchPlaces, Source, SourceCandidate
from everturn.sources.toolkit.sqlite_file import open_snapshot
from everturn.store.contract import IndexQuery, Store
from tests.capture.history import everything, ticking


class LineReader:
    """`{"ask": …}` or `{"say": …}` per line."""

    def __init__(self, found: SourceCandidate) -> None:
        self.found = found

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        messages, at = [], 0
        while (end := data.find(b"\n", at)) >= 0:
            message = view(data[at:end])
            assert message is not None
            messages.append(
                Message(
                    **{f: getattr(message, f) for f in message.__struct_fields__}
                    | {"start": base + at, "size": end - at}
                )
            )
            at = end + 1
        part = SessionPart(self.found.native_id, SessionFacts(kind=self.found.kind), messages)
        return ReadResult(at, [part], [], [Census("line", "", "message", len(messages))], lines=len(messages))

    def state(self) -> bytes:
        return b""


def view(record: bytes) -> Message | None:
    value = json.loads(record)
    if "ask" in value:
        return Message("user", "human", blocks=(Block("text", value["ask"], "prompt"),), starts_turn=True)
    return Message("assistant", "model", blocks=(Block("text", value["say"], "answer"),))


def unpack(found: SourceCandidate, path: Path) -> Iterator[Member]:
    with open_snapshot(path) as database:
        names = [row["talk"] for row in database.rows("SELECT DISTINCT talk FROM line ORDER BY talk")]
        for name in names:
            rows = database.rows("SELECT text FROM line WHERE talk=? ORDER BY id", name)
            yield Member(name, (row["text"].encode() + b"\n" for row in rows), native_id=name)


def find(root: Path) -> Iterator[SourceCandidate]:
    for path in sorted(root.glob("*.talks")):
        wal = Path(f"{path}-wal")
        yield SourceCandidate(path, "container", stamp=wal.stat().st_mtime_ns if wal.exists() else 0)


TALKS = Source(
    name="talks", title="Talks", parser=1, roots=lambda places: [root for root in places.extra["talks"] if root.is_dir()],
    find=find, sniff=lambda path, head: SourceCandidate(path, "container") if path.suffix == ".talks" else None,
    reader=lambda found, state: LineReader(found), view=view, workspace=lambda head: "", unpack=unpack, is_database=True,
)  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    folder = tmp_path / "talks"
    folder.mkdir()
    connection = sqlite3.connect(folder / "a.talks")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE line(id INTEGER PRIMARY KEY, talk TEXT, text TEXT)")
    write(connection, "one", ask="first walrus", say="yes")
    write(connection, "two", ask="other zebra")
    yield connection
    connection.close()


def write(connection: sqlite3.Connection, talk: str, **lines: str) -> None:
    for kind, text in lines.items():
        connection.execute("INSERT INTO line(talk, text) VALUES (?, ?)", (talk, json.dumps({kind: text})))
    connection.commit()


def run(store: Store, folder: Path, policy: Policy | None = None) -> SyncReport:
    return sync_all(job(store, folder, policy))


def job(store: Store, folder: Path, policy: Policy | None = None) -> SyncJob:
    places = SearchPlaces(folder, {}, "linux", {"talks": (folder,)})
    return SyncJob(store, {"talks": TALKS}, places, policy or Policy(), "box", "ann", ticking())


def asked(store: Store, word: str) -> list[str]:
    return [store.session(hit.session)[0].native_id for hit in store.search(IndexQuery((((word,),),)))]


def test_each_conversation_in_a_live_database_is_a_session(
    any_store: Store, database: sqlite3.Connection, tmp_path: Path
) -> None:
    report = run(any_store, tmp_path / "talks")
    assert (report.sessions, report.messages, report.failed) == (2, 3, [])
    assert asked(any_store, "walrus") == ["one"]
    paths = sorted(Path(file.path).name for file, _ in any_store.files())
    assert paths == ["a.talks", "a.talks#one", "a.talks#two"]
    container = next(version for file, version in any_store.files() if file.kind == "container")
    assert any_store.read_raw(container.id, 0, 16) == b"SQLite format 3\0"
    again = run(any_store, tmp_path / "talks")
    assert (again.unchanged, again.files) == (1, 0)


def test_what_is_added_to_a_database_is_added_to_the_session(
    any_store: Store, database: sqlite3.Connection, tmp_path: Path
) -> None:
    run(any_store, tmp_path / "talks")
    write(database, "one", ask="second", say="otter")
    report = run(any_store, tmp_path / "talks")
    assert (report.messages, report.rewritten) == (2, 1), "the database itself changed in the middle"
    (session,) = any_store.sessions_of("talks", "one")
    assert (session.n_messages, session.n_turns) == (4, 2)
    assert asked(any_store, "otter") == ["one"]
    assert verify_archive(any_store, "box", lambda *n: None).wrong == []


def test_a_conversation_deleted_in_the_database_stays_here(
    any_store: Store, database: sqlite3.Connection, tmp_path: Path
) -> None:
    run(any_store, tmp_path / "talks")
    database.execute("DELETE FROM line WHERE talk='two'")
    database.commit()
    assert run(any_store, tmp_path / "talks").gone == 1
    assert asked(any_store, "zebra") == ["two"]
    states = {Path(file.path).name: file.state for file, _ in any_store.files()}
    assert states == {"a.talks": "live", "a.talks#one": "live", "a.talks#two": "gone"}


def test_a_deleted_or_moved_database_takes_its_conversations_with_it(
    store: Store, database: sqlite3.Connection, tmp_path: Path
) -> None:
    run(store, tmp_path / "talks")
    database.close()
    (tmp_path / "talks" / "a.talks").rename(tmp_path / "talks" / "b.talks")
    report = run(store, tmp_path / "talks")
    assert (report.moved, report.messages) == (1, 0)
    assert sorted(Path(file.path).name for file, _ in store.files()) == ["b.talks", "b.talks#one", "b.talks#two"]
    (tmp_path / "talks" / "b.talks").unlink()
    run(store, tmp_path / "talks")
    assert {file.state for file, _ in store.files()} == {"gone"}
    assert asked(store, "walrus") == ["one"]


def test_rows_are_made_again_from_the_kept_lines(store: Store, database: sqlite3.Connection, tmp_path: Path) -> None:
    from everturn.capture.writer import rebuild_archive

    run(store, tmp_path / "talks")
    before = list(everything(store))
    rebuild_archive(writer_for(job(store, tmp_path / "talks")), {"talks": TALKS}, lambda *n: None)
    assert list(everything(store)) == before
    assert asked(store, "walrus") == ["one"]


def test_forgetting_one_conversation_takes_the_database_copy_too(
    store: Store, database: sqlite3.Connection, tmp_path: Path
) -> None:
    run(store, tmp_path / "talks")
    (session,) = store.sessions_of("talks", "one")
    one = job(store, tmp_path / "talks")
    forget_sessions(writer_for(one), {"talks": TALKS}, [session])
    for _ in range(2):
        assert (asked(store, "walrus"), asked(store, "zebra")) == ([], ["two"])
        assert b"walrus" not in b"".join(path.read_bytes() for path in (tmp_path / "archive").iterdir())
        sync_all(job(store, tmp_path / "talks"))
    kept = {Path(file.path).name: version.mode for file, version in store.files()}
    assert kept == {"a.talks": "structure", "a.talks#two": "full"}


def test_under_rules_for_workspaces_the_database_itself_is_not_kept(
    store: Store, database: sqlite3.Connection, tmp_path: Path
) -> None:
    run(store, tmp_path / "talks", Policy(rules=(("/x", "off"),), unknown="full"))
    assert {file.kind: version.size for file, version in store.files() if file.kind == "container"} == {"container": 0}
    assert asked(store, "walrus") == ["one"]


def test_credentials_of_the_agent_are_not_copied(store: Store, database: sqlite3.Connection, tmp_path: Path) -> None:
    from dataclasses import replace

    database.execute("CREATE TABLE account(token TEXT)")
    database.execute("INSERT INTO account VALUES ('hush-hush-token')")
    database.commit()
    one = job(store, tmp_path / "talks")
    private = ("DELETE FROM account", "DELETE FROM a_table_of_tomorrow")
    sync_all(replace(one, sources={"talks": structs.replace(TALKS, private=private)}))
    (container,) = [version for file, version in store.files() if file.kind == "container"]
    kept = store.read_raw(container.id, 0, container.size)
    assert b"first walrus" in kept
    assert b"hush-hush-token" not in kept


def test_a_damaged_database_waits_in_quarantine(store: Store, tmp_path: Path) -> None:
    (tmp_path / "talks").mkdir()
    (tmp_path / "talks" / "a.talks").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    report = run(store, tmp_path / "talks")
    assert len(report.failed) == 1


def test_the_bytes_of_a_damaged_container_are_kept(store: Store, tmp_path: Path) -> None:
    def broken(found: SourceCandidate, path: Path) -> Iterator[Member]:
        raise OSError(5, "not a whole zip")

    folder = tmp_path / "talks"
    folder.mkdir()
    (folder / "half.talks").write_bytes(b"PK half of it")
    packed = structs.replace(TALKS, is_database=False, unpack=broken)
    report = sync_all(dataclasses.replace(job(store, folder), sources={"talks": packed}))
    assert [reason for _, reason in report.failed] == ["not a whole zip"]
    [(file, version)] = store.files()
    assert file.fail_reason == "not a whole zip"
    assert store.read_raw(version.id, 0, version.size) == b"PK half of it"


def test_two_sources_that_claim_one_file_are_named(store: Store, database: sqlite3.Connection, tmp_path: Path) -> None:
    from dataclasses import replace

    one = job(store, tmp_path / "talks")
    both = replace(one, sources={"talks": TALKS, "more": structs.replace(TALKS, name="more")})
    path = tmp_path / "talks" / "a.talks"
    report = add_paths(both, [path])
    assert (report.new, [where for where, why in report.skipped if "talks and more" in why]) == (0, [str(path)])
    assert add_paths(both, [path], "talks").sessions == 2
