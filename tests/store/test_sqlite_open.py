"""Opening an archive in SQLite: whose file it is, what is refused, and how an older one is brought up to date."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from everturn.errors import EverturnError, NewerArchive, NoArchive, NoSpace, NotAnArchive
from everturn.store import sql_store, sqlite
from everturn.store.cipher import is_encrypted
from everturn.store.contract import open_store
from everturn.store.sql_store import Migration
from everturn.store.sqlite import SqliteStore, open_sqlite
from tests.store.building import new_session, prompt, tell


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


# the file ---------------------------------------------------------------------------------------------------------


def test_only_the_owner_can_read_the_archive_and_what_belongs_to_it(path: Path, store: SqliteStore) -> None:
    tell(store, new_session(store), prompt("hello"))
    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == ["archive.db", "archive.db-shm", "archive.db-wal"]
    assert {mode(file) for file in files} == {0o600}
    assert mode(path.parent) == 0o700


def test_a_folder_that_was_there_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    open_sqlite(str(tmp_path / "a.db")).close()
    assert mode(tmp_path) == 0o755


#: Whether another process may lock the bytes that SQLite locks for readers.
IS_FREE = """
import fcntl, sys
try:
    fcntl.lockf(open(sys.argv[1], "r+b"), fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
except OSError:
    sys.exit(1)
"""


def is_free(path: Path) -> bool:
    return not subprocess.run([sys.executable, "-c", IS_FREE, str(path)], check=False).returncode


@pytest.mark.parametrize("look", [is_encrypted, lambda path: open_sqlite(str(path)).close()])
def test_a_second_look_at_the_file_releases_no_lock_of_this_process(
    path: Path, store: SqliteStore, look: Callable[[Path], object]
) -> None:
    """Without its lock, the next process that closes the archive may delete the log under the one that writes."""
    tell(store, new_session(store), prompt("hello"))
    look(path)
    assert not is_free(path)
    store.close()
    assert is_free(path)


def test_the_switch_to_the_log_waits_for_another_process(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite answers this one statement at once, whatever the timeout."""
    path.parent.mkdir()
    other = apsw.Connection(str(path))
    other.execute(f"PRAGMA application_id={sqlite.APPLICATION_ID}; BEGIN IMMEDIATE")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        other.execute("ROLLBACK")

    monkeypatch.setattr(sqlite, "sleep", pause)
    open_sqlite(str(path)).close()
    assert len(pauses) == 1
    other.close()


@pytest.mark.parametrize("prefix", ["", "sqlite:", "sqlite://"])
def test_an_archive_is_named_by_its_path(path: Path, prefix: str) -> None:
    open_store(f"{prefix}{path}").close()
    assert path.exists()


def test_an_archive_that_must_exist_is_not_made(path: Path) -> None:
    with pytest.raises(NoArchive, match="yet; run `everturn sync`"):
        open_sqlite(str(path), create=False)
    assert not path.parent.exists()


def test_an_empty_file_becomes_an_archive_only_when_one_may_be_made(tmp_path: Path) -> None:
    empty = tmp_path / "a.db"
    empty.touch()
    with pytest.raises(NoArchive):
        open_sqlite(str(empty), create=False)
    assert empty.read_bytes() == b""
    open_sqlite(str(empty)).close()
    open_sqlite(str(empty), create=False).close()


def test_an_archive_left_half_made_is_finished(path: Path) -> None:
    path.parent.mkdir()
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA application_id={sqlite.APPLICATION_ID}")
    connection.close()
    store = open_sqlite(str(path))
    assert store.check().problems == []
    store.close()


def test_a_database_of_another_program_is_not_touched(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    before = contents(path.parent)
    with pytest.raises(NotAnArchive, match="another program"):
        open_sqlite(str(path))
    assert contents(path.parent) == before


def test_the_log_of_another_program_is_not_touched(path: Path, tmp_path: Path) -> None:
    busy = tmp_path / "busy.db"
    other = sqlite3.connect(busy)
    other.execute("PRAGMA journal_mode=WAL")
    other.execute("CREATE TABLE mine (x)")
    other.commit()
    path.parent.mkdir()
    path.write_bytes(busy.read_bytes())
    log = path.with_name("archive.db-wal")
    log.write_bytes((tmp_path / "busy.db-wal").read_bytes())
    other.close()
    before = path.read_bytes(), log.read_bytes()
    with pytest.raises(NotAnArchive, match="another program"):
        open_sqlite(str(path))
    assert (path.read_bytes(), log.read_bytes()) == before
    assert before[1]


@pytest.mark.parametrize("data", [b"hello, I am a text file\n" * 100, b"\0" * 8192, b"x"], ids=["text", "nul", "x"])
def test_a_file_that_is_no_database_is_not_touched(path: Path, data: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(NotAnArchive):
        open_sqlite(str(path))
    assert contents(path.parent) == {str(path): data}


def test_a_place_where_nothing_can_be_made_is_said_so_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "a.db", tmp_path):
        with pytest.raises(EverturnError) as caught:
            open_sqlite(str(place))
        assert str(place) in str(caught.value)
        assert "Traceback" not in str(caught.value)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the owner of everything may write everywhere")
def test_a_folder_that_may_not_be_written_is_said_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(EverturnError, match="Permission denied"):
        open_sqlite(str(tmp_path / "a.db"))
    tmp_path.chmod(0o700)


# migrations -------------------------------------------------------------------------------------------------------


def a_step(number: int, sql: str) -> Migration:
    return Migration(number, f"step{number}", sql, f"checksum{number}")


@pytest.fixture
def more_steps(monkeypatch: pytest.MonkeyPatch) -> list[Migration]:
    """What an everturn knows; this one has everything in its first step, however many there really are."""
    known = sql_store.known_migrations("sqlite")
    steps = [Migration(1, "first", "\n".join(step.sql for step in known), known[0].checksum)]
    monkeypatch.setattr(sql_store, "known_migrations", lambda engine: tuple(steps))
    return steps


def test_a_new_archive_gets_every_step_and_no_copy(path: Path, more_steps: list[Migration]) -> None:
    more_steps.append(a_step(2, "CREATE TABLE extra (x)"))
    store = open_sqlite(str(path), clock=lambda: 77)
    assert store.driver.all("SELECT number, applied_at FROM schema_migrations") == [(1, 77), (2, 77)]
    assert store.check().schema == 2
    store.close()
    assert [file.name for file in path.parent.iterdir()] == ["archive.db"]


def test_an_older_archive_is_brought_up_to_date_with_a_copy_beside_it(path: Path, more_steps: list[Migration]) -> None:
    store = open_sqlite(str(path))
    session = new_session(store)
    tell(store, session, prompt("hello"))
    store.close()
    more_steps += [a_step(2, "CREATE TABLE extra (x)"), a_step(3, "INSERT INTO extra VALUES (5)")]
    store = open_sqlite(str(path))
    assert store.driver.all("SELECT x FROM extra") == [(5,)]
    assert len(list(store.messages(session))) == 1
    store.close()
    copy = path.with_name("archive.db.before-0002")
    assert sorted(path.parent.iterdir()) == [path, copy]
    assert mode(copy) == 0o600
    del more_steps[1:]
    older = open_sqlite(str(copy), create=False)
    assert older.check().schema == 1
    assert len(list(older.messages(session))) == 1
    older.close()


def test_a_step_that_fails_leaves_the_archive_as_it_was(path: Path, more_steps: list[Migration]) -> None:
    open_sqlite(str(path)).close()
    more_steps += [
        a_step(2, "CREATE TABLE extra (x)"),
        a_step(3, "CREATE TABLE more (x); INSERT INTO nowhere VALUES (1)"),
    ]
    with pytest.raises(EverturnError):
        open_sqlite(str(path))
    del more_steps[2:]
    store = open_sqlite(str(path))
    assert store.driver.all("SELECT name FROM sqlite_schema WHERE name IN ('extra', 'more')") == [("extra",)]
    assert store.check().schema == 2
    store.close()


def test_without_room_for_a_copy_nothing_is_changed(
    path: Path, more_steps: list[Migration], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_sqlite(str(path)).close()
    before = contents(path.parent)
    more_steps.append(a_step(2, "CREATE TABLE extra (x)"))
    usage = type("usage", (), {"free": path.stat().st_size})
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(NoSpace, match="free space"):
        open_sqlite(str(path))
    assert contents(path.parent) == before


def test_an_archive_of_a_newer_everturn_is_not_touched(path: Path, more_steps: list[Migration]) -> None:
    more_steps.append(a_step(2, "CREATE TABLE extra (x)"))
    open_sqlite(str(path)).close()
    before = contents(path.parent)
    more_steps.pop()
    with pytest.raises(NewerArchive, match="schema 2, this one knows 1"):
        open_sqlite(str(path))
    assert contents(path.parent) == before


def test_an_archive_with_a_step_we_do_not_know_is_not_touched(path: Path, more_steps: list[Migration]) -> None:
    open_sqlite(str(path)).close()
    before = contents(path.parent)
    more_steps[0] = Migration(1, "first", more_steps[0].sql, "another checksum")
    with pytest.raises(NotAnArchive, match="schema step 1"):
        open_sqlite(str(path))
    assert contents(path.parent) == before


def test_steps_are_numbered_without_a_gap() -> None:
    steps = sql_store.known_migrations("sqlite")
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
