"""What is particular to SQLite: the file, its permissions, migrations, locks, a full disk, and that erased is erased."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from everturn.errors import Busy, EverturnError, NoSpace, NotAnArchive
from everturn.model.archive import Artifact, Call, IndexRow, SessionText
from everturn.model.vocabulary import FIELDS
from everturn.store import sql, sql_store, sqlite
from everturn.store.contract import IndexQuery
from everturn.store.sqlite import SqliteStore, open_sqlite
from everturn.store.sqlite_index import SHORT, expression
from tests.store.building import answer, growth_of, look_for, new_session, new_version, places, prompt, result, tell


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "archive.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = open_sqlite(str(path))
    yield opened
    opened.close()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_columns_are_the_fields_of_the_rows(store: SqliteStore) -> None:
    own_columns = {"link": ("stated",)}
    described = [thing for thing in vars(sql).values() if isinstance(thing, sql.Table)]
    assert len(described) > 10
    for table in described:
        rows = store.driver.all(f'SELECT name FROM pragma_table_info("{table.name}")')
        assert tuple(row[0] for row in rows) == table.columns + own_columns.get(table.name, ())


def test_the_tables_of_structure_hold_no_content(store: SqliteStore) -> None:
    session = new_session(store)
    said = [prompt("CANARY"), answer("CANARY", None, "c", provider_id="r"), result("c", "CANARY", failed=True)]
    growth = growth_of(store, session, said)
    growth.artifacts = [Artifact(0, 1, 1, 0, 0, "read", "/CANARY")]
    with store.write():
        store.append(session, growth)
        store.set_text(SessionText(session, "CANARY", 0, "CANARY", "/CANARY", "CANARY", "CANARY"))
    every = [table for table in vars(sql).values() if isinstance(table, sql.Table)]
    holding = {table.name for table in every if "CANARY" in repr(store.driver.all(table.select))}
    assert holding == {"session_text", "artifact"}
    assert "CANARY" not in repr(store.driver.all("SELECT * FROM invocations"))


# questions that must not look at everything -----------------------------------------------------------------------


def plan(store: SqliteStore, sql: str, n: int) -> str:
    return " | ".join(str(row[3]) for row in store.driver.all(f"EXPLAIN QUERY PLAN {sql}", [0] * n))


def test_nothing_asked_for_every_batch_looks_at_a_whole_table(store: SqliteStore) -> None:
    asked: list[str] = []

    def note(sql: str, n: int) -> None:
        if sql.lstrip().startswith(("SELECT", "UPDATE", "DELETE")):
            asked.append(plan(store, sql, n))

    first, fork = new_session(store, "first"), new_session(store, "fork")
    with pytest.MonkeyPatch.context() as patch:
        spy(patch, note)
        for session in (fork, first, fork):
            seq = store.tail(session).next_seq
            tell(store, session, prompt("a", seq), answer("b", seq + 1, f"c{seq}"), result(f"c{seq}", "x", seq + 2))
        store.turns(first, 0, 0)
        store.steps(first, 0)
        store.calls(first, 0)
        list(store.messages(first, 1, 1))
    assert len(asked) > 20
    assert [one for one in asked if "SCAN" in one and "VIRTUAL" not in one] == []


def spy(patch: pytest.MonkeyPatch, note: object) -> None:
    """Show every statement of the shared code to `note`, except the ones it asks itself."""
    driver = sqlite.SqliteDriver
    for name in ("all", "one", "run", "many"):
        real = getattr(driver, name)

        def shown(self: object, sql: str, params: object = (), real: object = real) -> object:
            if not sql.startswith("EXPLAIN"):
                note(sql, sql.count("?"))  # type: ignore[operator]
            return real(self, sql, params)  # type: ignore[operator]

        patch.setattr(driver, name, shown)


# several at once --------------------------------------------------------------------------------------------------


def test_a_second_writer_waits_and_then_says_that_it_is_busy(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_MS", 50)
    other = open_sqlite(str(path))
    with store.write():
        store.set_setting("a", "1")
        with pytest.raises(Busy), other.write():
            other.set_setting("a", "2")
        assert other.setting("a") == "", "readers do not wait, and see what was there before"
    with other.write():
        other.set_setting("a", "2")
    assert store.setting("a") == "2"
    other.close()


def test_a_second_writer_goes_on_when_the_first_is_done(path: Path, store: SqliteStore) -> None:
    begun, done = threading.Event(), []

    def second() -> None:
        other = open_sqlite(str(path))
        begun.set()
        with other.write():
            done.append(other.setting("a"))
        other.close()

    thread = threading.Thread(target=second)
    with store.write():
        thread.start()
        begun.wait()
        store.set_setting("a", "1")
    thread.join()
    assert done == ["1"]


MAKE = """
import sys
from everturn.store.sqlite import open_sqlite
store = open_sqlite(sys.argv[1])
with store.write():
    store.set_setting(sys.argv[2], "here")
"""


def test_several_processes_may_make_the_archive_at_once(path: Path) -> None:
    started = [subprocess.Popen([sys.executable, "-c", MAKE, str(path), str(n)]) for n in range(8)]
    assert [process.wait() for process in started] == [0] * 8
    store = open_sqlite(str(path), create=False)
    assert [store.setting(str(n)) for n in range(8)] == ["here"] * 8
    assert store.driver.all("SELECT COUNT(*) FROM schema_migrations") == [(len(sql_store.known_migrations("sqlite")),)]
    store.close()


# when things go wrong ---------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_nothing_half_written_and_the_archive_usable(store: SqliteStore) -> None:
    version = new_version(store)
    pages = store.driver.one("PRAGMA page_count")
    assert pages is not None
    store.driver.one(f"PRAGMA max_page_count={pages[0] + 20}")
    with pytest.raises(NoSpace), store.write():
        store.append_raw(version, 0, b"small")
        store.append_raw(version, 5, os.urandom(1_000_000))
    assert store.chunks(version) == []
    store.driver.one("PRAGMA max_page_count=1000000")
    with store.write():
        store.append_raw(version, 0, b"small")
    assert store.read_raw(version, 0, 5) == b"small"
    assert store.check().problems == []


class Failing(apsw.VFSFile):
    """A disk that fails when told so."""

    code = 0

    def xWrite(self, data: bytes, offset: int) -> None:
        if Failing.code:
            raise apsw.IOError(os.strerror(Failing.code))
        super().xWrite(data, offset)


class FailingDisk(apsw.VFS):
    def __init__(self) -> None:
        super().__init__("failing", base="")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> Failing:
        return Failing("", name, flags)

    def xGetLastError(self) -> tuple[int, str]:
        return Failing.code, ""


@pytest.mark.parametrize(("code", "sentence"), [(errno.EIO, "check the disk"), (errno.ENOSPC, "free some space")])
def test_after_an_input_or_output_error_the_connection_is_not_used_again(
    store: SqliteStore, path: Path, code: int, sentence: str
) -> None:
    disk = FailingDisk()
    connection = apsw.Connection(str(path), vfs="failing")
    driver = sqlite.SqliteDriver(connection, "here")
    Failing.code = code
    try:
        with pytest.raises(EverturnError, match=sentence) as caught:
            driver.run("INSERT INTO setting VALUES ('a', 'b')")
        assert isinstance(caught.value, NoSpace) == (code == errno.ENOSPC)
        Failing.code = 0
        with pytest.raises(EverturnError, match="cannot be used any more"):
            driver.all("SELECT 1")
    finally:
        Failing.code = 0
        driver.close()
        disk.unregister()
    assert store.setting("a") == ""


def test_a_damaged_archive_is_reported(path: Path) -> None:
    store = open_sqlite(str(path))
    tell(store, new_session(store), *[prompt(f"word{n}", n) for n in range(3000)])
    store.close()
    data = bytearray(path.read_bytes())
    for page in range(len(data) // 4096 * 2 // 3, len(data) // 4096, 3):
        data[page * 4096 : page * 4096 + 2000] = b"\xff" * 2000
    path.write_bytes(data)
    store = open_sqlite(str(path))
    assert store.check().problems != []
    store.close()


def test_a_damaged_index_is_reported(store: SqliteStore) -> None:
    tell(store, new_session(store), prompt("hello world"))
    with store.write():
        store.driver.run("UPDATE fts_data SET block = zeroblob(length(block)) WHERE id > 100")
    assert store.check().problems != []


def test_bytes_that_do_not_match_their_checksum_are_refused(store: SqliteStore) -> None:
    version = new_version(store)
    with store.write():
        store.append_raw(version, 0, b"hello" * 100)
    digest = store.chunks(version)[0].digest
    for damage in (b"\x00other", b"\x01other", b"\x07", b""):
        with store.write():
            store.driver.run('UPDATE "blob" SET "data"=?', (damage,))
        with pytest.raises(NotAnArchive):
            store.read_chunk(digest)
        with pytest.raises(NotAnArchive):
            store.read_raw(version, 0, 5)


def test_a_row_that_names_nothing_is_reported(store: SqliteStore) -> None:
    store.driver.one("PRAGMA foreign_keys=OFF")
    with store.write():
        store.driver.run(sql.CALLS.insert, sql.CALLS.values(Call(session=99)))
    assert store.check().problems == ["a row of call names a row of session that is not there"]


# erased is erased -------------------------------------------------------------------------------------------------

CANARY = "canaryQ7x"


def test_after_scrubbing_no_byte_of_what_was_deleted_is_left_anywhere(path: Path, store: SqliteStore) -> None:
    noise = os.urandom(3000).hex()
    doomed, kept = new_version(store, "/doomed"), new_version(store, "/kept")
    for version, word in ((doomed, CANARY), (kept, "other")):
        session = new_session(store, word, version)
        with store.write():
            store.append_raw(version, 0, f"{noise} {word} {os.urandom(30000).hex()}".encode())
        for n in range(40):
            growth = growth_of(
                store, session, [prompt(f"{word} {word}{n} {noise[n * 9 : n * 9 + 40]}", n + version * 100)]
            )
            growth.artifacts = [Artifact(0, n, 0, 0, 0, "read", f"/{word}")]
            with store.write():
                store.append(session, growth)
                store.set_text(SessionText(session, f"{word} {n}", 0, word, f"/{word}", word, word))
    path.with_name("archive.db.before-0001").write_text(CANARY)
    assert traces(path)
    with store.write():
        store.delete_file(store.version(doomed).source)
    store.scrub()
    assert traces(path) == []
    assert len(look_for(store, "other", limit=100)) == 41
    assert store.check().problems == []


def test_after_scrubbing_no_byte_of_blanked_messages_is_left_anywhere(path: Path, store: SqliteStore) -> None:
    version = new_version(store)
    session = new_session(store, "one", version)
    before, after = b"x" * 50, os.urandom(70).hex().encode()
    with store.write():
        store.append_raw(version, 0, before + CANARY.encode() + after)
    tell(store, session, prompt("one"), prompt(f"two {CANARY}"), prompt("three"))
    with store.write():
        store.put_chunks(version, [(0, before + b" " * len(CANARY) + after)])
        store.drop_derived(version)
    tell(store, session, prompt("one"), prompt("three"))
    store.scrub()
    assert traces(path) == []
    assert [hit.seq for hit in look_for(store, "three")] == [1]


def test_scrubbing_says_that_it_is_busy_when_somebody_still_reads(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_MS", 50)
    mine, reader = open_sqlite(str(path)), open_sqlite(str(path))
    tell(mine, new_session(mine), prompt("hello"))
    rows = reader.driver.each("SELECT 1 FROM schema_migrations UNION ALL SELECT 2")
    next(rows)
    with pytest.raises(Busy):
        mine.scrub()
    del rows
    mine.scrub()
    mine.close()
    reader.close()


def traces(path: Path) -> list[str]:
    """Files with the word in any spelling the index knows."""
    words = (CANARY.encode(), CANARY.lower().encode())
    return [name for name, data in contents(path.parent).items() if any(word in data for word in words)]


# the index --------------------------------------------------------------------------------------------------------


def test_a_request_is_written_in_the_language_of_fts5() -> None:
    query = IndexQuery(((("a", "b*"), ("c",)), (("d",),)), (("e", "f"),), ("answer", "prompt"))
    assert (
        expression(query.groups, query.without, query.fields)
        == '{prompt answer} : ((("a b" * OR "c") AND ("d")) NOT ("e f"))'
    )


def test_a_session_is_one_range_of_entries(store: SqliteStore) -> None:
    one, two = new_session(store, "one"), new_session(store, "two")
    for session in (one, two):
        tell(store, session, prompt("apple"), prompt("apple"))
        with store.write():
            store.set_text(SessionText(session, title="apple"))
    with store.write():
        store.index.remove_session(one)
    assert {hit.session for hit in look_for(store, "apple")} == {two}
    assert store.driver.all("SELECT rowid FROM fts") == [(two << 12,), (two << 12 | 1,), (two << 12 | 0xFFF,)]


def test_messages_of_a_long_session_are_found_and_taken_out_like_all_others(store: SqliteStore) -> None:
    session = new_session(store)
    last = SHORT.last
    rows = [(last, "apple"), (last + 1, "apple"), (last + 70_000, "apple pie")]
    with store.write():
        store.index.add(session, [IndexRow(seq, (text, *[None] * (len(FIELDS) - 1))) for seq, text in rows])
        store.index.add_session(session, "apple")
    found = {(session, -1), (session, last), (session, last + 1), (session, last + 70_000)}
    assert places(look_for(store, "apple")) == found
    assert places(store.search(IndexQuery(((("apple",),),), session=session))) == found
    assert store.index.estimate(("apple",), (), 100, 0, session) == 4
    with store.write():
        store.index.remove(session, [last, last + 1])
    assert places(look_for(store, "apple")) == {(session, -1), (session, last + 70_000)}
    with store.write():
        store.index.remove_session(session)
    assert look_for(store, "apple") == []


def test_the_parts_of_many_writes_are_merged_and_everything_stays_found(store: SqliteStore) -> None:
    session, most = new_session(store), 32
    for seq in range(3 * most):
        with store.write():
            store.index.add(session, [IndexRow(seq, (f"apple{seq} pie", *[None] * (len(FIELDS) - 1)))])
        ((parts,),) = store.driver.all("SELECT COUNT(DISTINCT segid) FROM fts_idx")
        assert parts <= most
    assert store.index.count_words(["pie"], 1000) == {"pie": 3 * most}
    assert all(places(look_for(store, f"apple{seq}")) == {(session, seq)} for seq in range(3 * most))


def test_what_was_taken_out_is_gone_from_tables_of_earlier_versions_too(store: SqliteStore) -> None:
    session = new_session(store)
    store.driver.run("INSERT INTO fts_wide (rowid, prompt) VALUES (?, 'walrusword'), (99, 'fish')", (session << 24,))
    with store.write():
        store.index.remove_session(session)
    store.scrub()
    left = b"".join(row[0] for row in store.driver.all("SELECT block FROM fts_wide_data"))
    assert b"walrusword" not in left
    assert b"fish" in left
