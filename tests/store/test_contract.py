"""The contract of a store: life, raw layer and kept layer. The derived layer is in test_contract_derived.py,
search in test_contract_search.py. Every engine passes all of it."""

from __future__ import annotations

import hashlib
import os
import random
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from everturn.errors import Conflict, NotAnArchive, NothingFound, UsageError
from everturn.model.archive import CensusRow, HookEvent, KeptRow, ProblemRow, Session, SourceFile, Tombstone, Version
from everturn.store.contract import Store, open_store
from everturn.store.raw import CHUNK, SEALED, ChunkPacker
from tests.store.building import answer, new_session, new_version, prompt, tell

SOME = random.Random(7).randbytes(3 * CHUNK)  # does not pack


# life -------------------------------------------------------------------------------------------------------------


def test_what_was_written_is_there_when_the_archive_is_opened_again(store_url: str, store: Store) -> None:
    with store.write():
        store.set_setting("colour", "green")
    store.close()
    again = open_store(store_url)
    assert again.setting("colour") == ("" if store_url == "memory:" else "green")
    again.close()


def test_an_error_inside_a_write_leaves_nothing_of_it(store: Store) -> None:
    version = new_version(store)
    with pytest.raises(RuntimeError), store.write():
        store.append_raw(version, 0, b"half")
        store.set_setting("colour", "green")
        session = store.open_session(Session(agent="a", native_id="n", version=version)).id
        raise RuntimeError("stop")
    assert store.chunks(version) == []
    assert store.setting("colour") == ""
    assert store.sessions_in(version) == []
    with pytest.raises(NothingFound):
        store.session(session)
    with store.write():
        store.append_raw(version, 0, b"whole")
    assert store.read_raw(version, 0, 5) == b"whole"


def test_a_reading_block_sees_one_view_while_others_write(store_url: str, store: Store) -> None:
    with store.write():
        store.set_setting("colour", "green")
    with closing(open_store(store_url)) as other, store.reading():
        assert store.setting("colour") == "green"
        with other.write():
            other.set_setting("colour", "red")
        assert store.setting("colour") == "green"
    assert store.setting("colour") == ("green" if store_url == "memory:" else "red")


def test_a_write_inside_a_write_joins_it(store: Store) -> None:
    with pytest.raises(RuntimeError), store.write():
        with store.write():
            store.set_setting("colour", "green")
        raise RuntimeError("stop")
    assert store.setting("colour") == ""


def test_settings_are_replaced(store: Store) -> None:
    assert store.setting("colour") == ""
    with store.write():
        store.set_setting("colour", "green")
        store.set_setting("colour", "blue")
    assert store.setting("colour") == "blue"


def test_a_whole_archive_has_no_problems(store: Store) -> None:
    tell(store, new_session(store), prompt("hello"))
    for quick in (True, False):
        health = store.check(quick)
        assert health.problems == []
        assert health.schema >= 1


def test_sizes_add_up(store: Store) -> None:
    version = new_version(store)
    with store.write():
        store.append_raw(version, 0, SOME)
    sizes = store.sizes()
    assert sizes["raw"] >= len(SOME)
    assert sizes["total"] == sizes["raw"] + sizes["index"] + sizes["rest"]
    assert min(sizes.values()) >= 0


def test_closing_twice_does_no_harm(store: Store, store_url: str) -> None:
    store.close()
    store.close()
    with closing(open_store(store_url)) as again:
        assert again.files() == []


# files and versions -----------------------------------------------------------------------------------------------


def test_a_file_has_the_columns_it_was_given(store: Store) -> None:
    row = SourceFile(0, "f", "box", "me", "/a b/é\udcff.jsonl", "main", "n", "p", "redacted", "gone", 0, "why", 3, 4)
    with store.write():
        row.id = store.add_file(row)
        version = Version(
            0, row.id, 1, "first", "full", 10, 20, 5, -1, -(1 << 63), 30, 1 << 62, b"\0h", b"t\xff", 2, b"\0s"
        )
        version.id = row.version = store.add_version(version)
    assert store.file("box", row.path) == (row, version)
    assert store.file_by_id(row.id) == (row, version)
    assert store.files() == store.files("box") == [(row, version)]
    assert store.files("elsewhere") == []
    assert store.file("elsewhere", row.path) is None
    assert store.version(version.id) == version


def test_a_file_without_a_version_has_an_empty_one(store: Store) -> None:
    with store.write():
        source = store.add_file(SourceFile(path="/a"))
    assert store.files()[0][1] == Version(source=source)


def test_a_place_is_taken_once(store: Store) -> None:
    with store.write():
        store.add_file(SourceFile(machine="box", path="/a"))
        store.add_file(SourceFile(machine="other", path="/a"))
    with pytest.raises(Conflict), store.write():
        store.add_file(SourceFile(machine="box", path="/a"))
    assert len(store.files()) == 2


def test_columns_of_a_file_and_a_version_can_be_changed(store: Store) -> None:
    version = new_version(store, "/a")
    source = store.version(version).source
    with store.write():
        store.set_file(source, path="/b\udc80", state="gone")
        store.set_version(version, lines=3, state=b"\0")
    file = store.file_by_id(source)[0]
    assert (file.path, file.state) == ("/b\udc80", "gone")
    assert store.file("box", "/b\udc80") is not None
    assert (store.version(version).lines, store.version(version).state) == (3, b"\0")


def test_a_column_that_does_not_exist_is_a_mistake_of_the_caller(store: Store) -> None:
    version = new_version(store)
    with pytest.raises(TypeError):
        store.set_version(version, colour="green")
    with pytest.raises(TypeError):
        store.set_session(1)


def test_what_is_not_there_is_said_so(store: Store) -> None:
    for ask in (store.version, store.file_by_id, store.session):
        with pytest.raises(NothingFound):
            ask(77)


def test_a_new_version_supersedes_the_sessions_of_the_old_one(store: Store) -> None:
    old = new_version(store, "/a")
    session = new_session(store, "one", old)
    elsewhere = new_session(store, "two")
    new = new_version(store, "/a")
    current = new_session(store, "one", new)
    source = store.version(old).source
    assert [version.number for version in store.versions(source)] == [1, 2]
    assert store.file_by_id(source)[1].id == new
    states = {row: store.session(row)[0].state for row in (session, elsewhere, current)}
    assert states == {session: "superseded", elsewhere: "current", current: "current"}


def test_a_cursor_moves_only_from_where_it_is(store: Store) -> None:
    version = new_version(store)
    with store.write():
        store.move_cursor(version, 0, offset=10, size=9, tail=b"x")
    with pytest.raises(Conflict), store.write():
        store.move_cursor(version, 0, offset=20)
    row = store.version(version)
    assert (row.offset, row.size, row.tail) == (10, 9, b"x")


# bytes ------------------------------------------------------------------------------------------------------------


SAMPLES = {
    "nothing": b"",
    "nul": b"\0",
    "a line": b"line\n",
    "every byte": bytes(range(256)) * 5000,
    "noise": SOME,
    "just over two chunks": b"a" * (2 * CHUNK + 1),
}


@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES.keys())
def test_bytes_come_back_as_they_were(store: Store, data: bytes) -> None:
    version = new_version(store)
    with store.write():
        store.append_raw(version, 0, data)
    assert store.read_raw(version, 0, len(data)) == data
    assert b"".join(store.read_chunk(chunk.digest) for chunk in store.chunks(version)) == data


def test_bytes_are_the_same_however_they_were_split(store: Store) -> None:
    rnd = random.Random(3)
    data = rnd.randbytes(CHUNK) + b"text " * 200_000 + rnd.randbytes(5000)
    version = new_version(store)
    at = 0
    while at < len(data):
        size = rnd.choice((1, 100, 5000, 70_000, CHUNK, 300_000))
        with store.write():
            store.append_raw(version, at, data[at : at + size])
        at += size
    chunks = store.chunks(version)
    assert [chunk.start for chunk in chunks] == [sum(before.size for before in chunks[:n]) for n in range(len(chunks))]
    assert all(SEALED <= chunk.size <= CHUNK for chunk in chunks[:-1])
    assert store.read_raw(version, 0, len(data)) == data
    for _ in range(50):
        start, size = rnd.randrange(len(data)), rnd.randrange(2 * CHUNK)
        assert store.read_raw(version, start, size) == data[start : start + size]


def test_reading_beyond_the_end_gives_what_there_is(store: Store) -> None:
    version = new_version(store)
    with store.write():
        store.append_raw(version, 0, b"abc")
    assert store.read_raw(version, 1, 100) == b"bc"
    assert store.read_raw(version, 3, 1) == store.read_raw(version, 99, 1) == store.read_raw(version, 0, 0) == b""


def test_several_ranges_are_read_at_once_and_in_order(store: Store) -> None:
    one, other = new_version(store, "/a"), new_version(store, "/b")
    with store.write():
        store.append_raw(one, 0, SOME)
        store.append_raw(other, 0, b"abc")
    ranges = [(other, 1, 100), (one, CHUNK - 5, 10), (one, 0, 3), (other, 99, 1), (one, 0, 0), (other, 1, 100)]
    assert store.read_ranges(ranges) == [store.read_raw(*wanted) for wanted in ranges]
    assert store.read_ranges([]) == []


def test_the_last_chunk_grows_until_it_is_big_enough(store: Store) -> None:
    version = new_version(store)
    with store.write():
        store.append_raw(version, 0, SOME[: SEALED - 1])
        store.append_raw(version, SEALED - 1, b"x")
        assert [chunk.size for chunk in store.chunks(version)] == [SEALED]
        store.append_raw(version, SEALED, b"y")
    chunks = store.chunks(version)
    assert [chunk.size for chunk in chunks] == [SEALED, 1]
    assert chunks[1].digest == hashlib.sha256(b"y").digest()
    with pytest.raises(NotAnArchive):
        store.read_chunk(hashlib.sha256(SOME[: SEALED - 1]).digest())


def test_the_files_of_a_session_are_found_by_their_kind(store: Store) -> None:
    with store.write():
        for path, parent, kind in (
            ("/b", "one", "backup"),
            ("/a", "one", "backup"),
            ("/c", "one", "output"),
            ("/d", "two", "backup"),
        ):
            store.add_file(SourceFile(format="x", machine="box", path=path, kind=kind, parent=parent))
    assert [file.path for file, _ in store.files_of("x", "one", "backup")] == ["/a", "/b"]
    assert store.files_of("y", "one", "backup") == store.files_of("x", "three", "backup") == []


@pytest.mark.parametrize("sizes", [(3 * CHUNK,), (1, SEALED, 5, CHUNK, 0, 70_000), (SEALED - 1, 2 * CHUNK, 9)])
def test_bytes_packed_elsewhere_are_stored_as_those_packed_here(store: Store, sizes: tuple[int, ...]) -> None:
    here, elsewhere = new_version(store, "/here"), new_version(store, "/elsewhere")
    packer, at = ChunkPacker(), 0
    for size in sizes:
        with store.write():
            store.append_raw(here, at, SOME[at : at + size])
            store.append_packed(elsewhere, at, packer.pack(SOME[at : at + size]))
        at += size
    assert [replace(chunk, version=here) for chunk in store.chunks(elsewhere)] == store.chunks(here)
    assert store.read_raw(elsewhere, 0, at + 1) == SOME[:at]
    with pytest.raises(Conflict), store.write():
        store.append_packed(elsewhere, at + 1, packer.pack(b"x"))


def test_bytes_are_added_at_the_end_only(store: Store) -> None:
    version = new_version(store)
    with store.write():
        store.append_raw(version, 0, b"abc")
    for at in (0, 2, 4):
        with pytest.raises(Conflict), store.write():
            store.append_raw(version, at, b"x")
    assert store.read_raw(version, 0, 9) == b"abc"


def test_a_new_version_shares_the_whole_chunks_of_the_old_one(store: Store) -> None:
    old, new = new_version(store, "/a"), new_version(store, "/a")
    with store.write():
        store.append_raw(old, 0, SOME)
        shared = store.share_raw(old, new, 2 * CHUNK + 5)
        store.append_raw(new, shared, b"other")
    assert shared == 2 * CHUNK
    assert store.read_raw(new, 0, len(SOME)) == SOME[:shared] + b"other"
    assert store.read_raw(old, 0, len(SOME)) == SOME
    assert [chunk.digest for chunk in store.chunks(new)][:2] == [chunk.digest for chunk in store.chunks(old)][:2]
    empty = new_version(store, "/b")
    with store.write():
        assert store.share_raw(old, empty, 10) == 0


def test_bytes_that_are_the_same_are_stored_once_and_go_with_the_last_that_has_them(store: Store) -> None:
    versions = [new_version(store, path) for path in ("/a", "/b")]
    for version in versions:
        with store.write():
            store.append_raw(version, 0, SOME)
    assert [chunk.digest for chunk in store.chunks(versions[0])] == [
        chunk.digest for chunk in store.chunks(versions[1])
    ]
    with store.write():
        store.delete_file(store.version(versions[0]).source)
    assert store.read_raw(versions[1], 0, len(SOME)) == SOME
    with store.write():
        store.delete_file(store.version(versions[1]).source)
    with pytest.raises(NotAnArchive):
        store.read_chunk(hashlib.sha256(SOME[:CHUNK]).digest())


def test_an_emptied_file_keeps_only_how_far_it_was_read(store: Store) -> None:
    version = new_version(store, "/a")
    with store.write():
        store.append_raw(version, 0, SOME)
        store.set_version(version, offset=len(SOME))
    source = store.version(version).source
    with store.write():
        store.empty_file(source)
    assert (store.version(version).size, store.version(version).offset) == (0, len(SOME))
    assert store.chunks(version) == []
    assert store.file_by_id(source)[0].path == "/a"


def test_a_file_belongs_to_the_repository_that_was_named_last(store: Store) -> None:
    version, other = new_version(store, "/a"), new_version(store, "/b")
    source = store.version(version).source
    assert store.project_of(version) == ""
    for name in ("github.com/example/shop", "github.com/example/till"):
        with store.write():
            store.set_project_of(source, name)
        assert (store.project_of(version), store.project_of(other)) == (name, "")


def test_chunks_are_replaced_by_others_of_the_same_length(store: Store) -> None:
    first, second = new_version(store, "/a"), new_version(store, "/b")
    with store.write():
        store.append_raw(first, 0, SOME)
        store.append_raw(second, 0, SOME)
        store.read_raw(first, 0, len(SOME))
        store.put_chunks(first, [(CHUNK, b" " * CHUNK)])
    assert store.read_raw(first, 0, len(SOME)) == SOME[:CHUNK] + b" " * CHUNK + SOME[2 * CHUNK :]
    assert store.read_raw(second, 0, len(SOME)) == SOME
    for start, size in ((CHUNK, 5), (CHUNK + 1, CHUNK)):
        with pytest.raises(Conflict), store.write():
            store.put_chunks(first, [(start, b"x" * size)])


def test_a_giant_line_is_cut_without_a_copy_of_it(store: Store) -> None:
    version = new_version(store)
    data = b"0123456789abcdef" * (1 << 20)
    with store.write():
        store.append_raw(version, 0, b"head\n")
        tracemalloc.start()
        store.append_raw(version, 5, data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < len(data) // 4
    assert store.read_raw(version, len(data) - 15, 20) == data[-20:]
    assert len(store.chunks(version)) == len(data) // CHUNK + 1


# what sources report ----------------------------------------------------------------------------------------------


def test_problems_are_kept_in_order_and_provisional_ones_can_be_cleared(store: Store) -> None:
    one, two = new_version(store, "/a"), new_version(store, "/b")
    rows = [
        ProblemRow(one, 20, 5, "torn_tail", "no line end", 1),
        ProblemRow(one, 10, 5, "invalid_json", "it ends early"),
        ProblemRow(one, 10, 5, "invalid_json", "it ends early"),
        ProblemRow(two, 0, 1, "torn_tail", "no line end", 1),
    ]
    with store.write():
        store.add_problems(rows)
    assert store.problems(one) == [rows[1], rows[2], rows[0]]
    assert len(store.problems()) == 4
    assert len(store.problems(limit=3)) == 3
    with store.write():
        store.clear_provisional(one)
    assert store.problems() == [rows[1], rows[2], rows[3]]


def test_a_census_adds_up(store: Store) -> None:
    old = new_version(store, "/a")
    new, other = new_version(store, "/a"), new_version(store, "/b")
    with store.write():
        for version in (old, new, other):
            store.add_census([CensusRow(version, "user", "1.0", "message", 2), CensusRow(version, "x", "", "known", 1)])
        store.add_census([CensusRow(new, "user", "1.0", "message", 5)])
    assert store.census(new) == [CensusRow(new, "user", "1.0", "message", 7), CensusRow(new, "x", "", "known", 1)]
    # The superseded version is not counted.
    assert store.census() == [CensusRow(0, "user", "1.0", "message", 9), CensusRow(0, "x", "", "known", 2)]


# kept -------------------------------------------------------------------------------------------------------------


def test_what_is_kept_is_replaced_by_its_key(store: Store) -> None:
    title = KeptRow("title", "a", "s1", "", '"one"', 5)
    pin = KeptRow("pin", "a", "s1", "", "true", 6)
    note = KeptRow("note", "a", "s2", "k", "{}", 7)
    with store.write():
        for row in (title, pin, note, replace(title, value='"two"')):
            store.keep(row)
    assert store.kept("title") == [replace(title, value='"two"')]
    assert store.kept(subject="s1") == [pin, replace(title, value='"two"')]
    assert store.kept("note", "s1") == []
    assert len(store.kept()) == 3


def test_tombstones_are_kept_once(store: Store) -> None:
    rows = [Tombstone("session", "a", "s1", 5), Tombstone("message", "a", str(1 << 62), 5)]
    with store.write():
        store.bury(rows)
        store.bury([replace(rows[0], at=9)])
    assert store.tombstones() == [rows[1], replace(rows[0], at=9)]


def test_what_is_kept_about_a_session_can_be_dropped_by_kind_or_as_a_whole(store: Store) -> None:
    rows = [KeptRow(kind, agent, "s1", "", "{}", 5) for kind in ("note", "title") for agent in ("", "a", "b")]
    other = KeptRow("note", "a", "s2", "", "{}", 5)
    with store.write():
        for row in (*rows, other):
            store.keep(row)
        store.drop_kept("a", "s1", ["note"])
    assert [(row.kind, row.agent) for row in store.kept(subject="s1")] == [
        ("note", "b"), ("title", ""), ("title", "a"), ("title", "b"),
    ]  # fmt: skip
    with store.write():
        store.drop_kept("a", "s1")
    assert [(row.kind, row.agent) for row in store.kept(subject="s1")] == [("note", "b"), ("title", "b")]
    assert store.kept(subject="s2") == [other]


def test_a_hook_event_is_added_once_and_comes_back_in_order_of_time(store: Store) -> None:
    rows = [
        HookEvent("s1", "c2", "Post", "ended", "c2", "Bash", at=7),
        HookEvent("s1", "c1", "Post", "ended", "c1", at=5),
    ]
    other = HookEvent("s2", "@1-1", "Start", "session", at=6)
    assert store.last_hook_event("nobody") is None
    with store.write():
        assert store.add_hook_events([*rows, other]) == 3
        assert store.add_hook_events([replace(rows[0], at=99), HookEvent("s1", "c2", "Pre", "begun", "c2", at=4)]) == 1
    assert [(row.ref, row.event, row.at) for row in store.hook_events("s1")] == [
        ("c2", "Pre", 4),
        ("c1", "Post", 5),
        ("c2", "Post", 7),
    ]
    assert len(store.hook_events()) == 4
    with store.write():
        store.drop_hook_events(["s1", "nobody"])
    assert store.hook_events() == [other]


def test_hook_events_alone_are_the_calls_that_the_archive_does_not_have(store: Store) -> None:
    session = new_session(store, "s1")
    tell(store, session, prompt("hello"), answer("", None, "c1"))
    events = [
        HookEvent("s1", "c1", "Post", "ended", "c1", at=5),
        HookEvent("s1", "c2", "Post", "ended", "c2", at=6),
        HookEvent("s2", "c3", "Post", "ended", "c3", at=7),
        HookEvent("s2", "@1-1", "Start", "session", at=7),
    ]
    with store.write():
        store.add_hook_events(events)
    assert store.unmatched_hook_calls() == {"s1": 2, "s2": 1}
    assert store.unmatched_hook_calls(since=6) == {"s1": 1, "s2": 1}
    with store.write():
        store.match_hook_events(["s1", "s2"])
    assert store.unmatched_hook_calls() == {"s1": 1, "s2": 1}
    assert [row.own for row in store.hook_events("s1")] == [session, None]


def test_a_rebuild_does_not_touch_what_is_kept(store: Store) -> None:
    version = new_version(store)
    session = new_session(store, "one", version)
    tell(store, session, prompt("hello"))
    with store.write():
        store.keep(KeptRow("title", "agent", "one", "", "{}", 5))
        store.append_raw(version, 0, b"raw")
        store.drop_derived(version)
    assert len(store.kept()) == 1
    assert store.read_raw(version, 0, 3) == b"raw"


def test_a_backup_is_an_archive_or_is_refused(store_url: str, store: Store, tmp_path: Path) -> None:
    version = new_version(store)
    with store.write():
        store.append_raw(version, 0, SOME)
    copy = str(tmp_path / "copy.db")
    if store_url.startswith("postgres"):
        with pytest.raises(UsageError):
            store.backup(copy)
        return
    store.backup(copy)
    assert os.stat(copy).st_mode & 0o777 == 0o600
    opened = open_store(copy, create=False)
    assert opened.read_raw(version, 0, len(SOME)) == SOME
    opened.close()
    with pytest.raises(UsageError):
        store.backup(copy)
