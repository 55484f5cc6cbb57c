"""What cannot be done is told in one sentence with the right exit code, and changes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from everturn.store.contract import open_store
from tests.capture.history import OTHER, SID, History, raw
from tests.faults.commands import Desktop, ended, sentence
from tests.faults.injection import HERE, environment
from tests.faults.scenes import sync_at

ORDINARY = [sys.executable, str(Path(__file__).with_name("ordinary.py"))]
BAD = "22222222-2222-4333-8444-555555555555"


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History(tmp_path / "agent")
    made.write(made.turn("ask", "answer"), SID)
    made.write(made.turn("other", "words"), OTHER)
    return made


@pytest.fixture
def desktop(tmp_path: Path, history: History) -> Desktop:
    return Desktop(tmp_path / "home", history.root)


@pytest.fixture
def full(desktop: Desktop) -> Desktop:
    """A machine with an archive of two sessions."""
    assert sync_at(desktop.archive, desktop.history).new == 2
    return desktop


@contextmanager
def held(archive: Path, sql: str) -> Iterator[None]:
    """Meanwhile another process has done this to the archive and not let go of it."""
    command = [sys.executable, "-m", "tests.faults.holder", str(archive), sql]
    holder = subprocess.Popen(
        command, cwd=HERE, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    with ended(holder):
        assert holder.stdout.readline() == "held\n"
        yield


# requests -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("words", [("show", "nosuch"), ("export", "nosuch", "--as", "raw"), ("forget", "nosuch")])
def test_an_unknown_session_is_told(full: Desktop, words: tuple[str, ...]) -> None:
    assert _refused(full, 3, *words) == (
        "no session 'nosuch' in the archive; `everturn sessions` lists them, `everturn sync` looks for new ones"
    )


def test_a_missing_path_is_told(full: Desktop) -> None:
    assert _refused(full, 2, "add", "/no/such/place") == "there is no file or folder /no/such/place; check the path"


@pytest.mark.parametrize("words", [("sessions",), ("show", "@last"), ("search", "ask"), ("verify",), ("rebuild",)])
def test_a_question_before_there_is_an_archive_is_told_and_makes_none(desktop: Desktop, words: tuple[str, ...]) -> None:
    assert _refused(desktop, 3, *words) == (
        f"there is no archive at {desktop.archive} yet; run `everturn sync` to make one, or name another with --db"
    )


# archives -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("words", [("sync",), ("sessions",), ("verify",), ("doctor",), ("rebuild",), ("forget", SID)])
def test_an_archive_of_a_newer_everturn_is_left_alone(full: Desktop, words: tuple[str, ...]) -> None:
    with apsw.Connection(str(full.archive)) as newer:
        newer.execute("INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (99, 'later', 'x', 0)")
        newer.execute("PRAGMA user_version=99")
    newer.close()
    told = _refused(full, 1, *words)
    assert told.startswith(f"{full.archive} was written by a newer everturn (schema 99, this one knows ")
    assert told.endswith("upgrade everturn, nothing was changed")


@pytest.mark.parametrize("words", [("sync",), ("sessions",)])
def test_a_file_that_is_no_database_is_left_alone(desktop: Desktop, words: tuple[str, ...]) -> None:
    desktop.archive.write_bytes(b"Dear diary, today I saved a file.\n" * 300)
    assert "cannot be used as an archive: it is not a database;" in _refused(desktop, 1, *words)


@pytest.mark.parametrize("words", [("sync",), ("sessions",)])
def test_a_database_of_another_program_is_left_alone(desktop: Desktop, words: tuple[str, ...]) -> None:
    other = apsw.Connection(str(desktop.archive))
    other.execute("CREATE TABLE bookmark (url TEXT); INSERT INTO bookmark VALUES ('x')")
    other.close()
    assert "cannot be used as an archive: it is a database of another program;" in _refused(desktop, 1, *words)


def test_a_folder_in_place_of_the_archive_is_told(desktop: Desktop) -> None:
    desktop.archive.mkdir()
    assert _refused(desktop, 1, "sync").startswith(f"{desktop.archive}")


@pytest.mark.few(1)
@pytest.mark.parametrize("words", [("sync",), ("rebuild",)])
def test_a_locked_archive_is_told(full: Desktop, history: History, words: tuple[str, ...]) -> None:
    history.grow(history.turn("more", "words"))
    with held(full.archive, "BEGIN IMMEDIATE"):
        assert _refused(full, 75, *words, program="tests.faults.impatient") == (
            f"{full.archive} is locked by another process; wait for it to finish and run this again"
        )
    assert full.run("sync").returncode == 0
    _assert_taken_in(full, history)


def test_a_lock_that_is_let_go_of_is_waited_for(full: Desktop, history: History) -> None:
    history.grow(history.turn("more", "words"))
    with held(full.archive, "BEGIN IMMEDIATE"):
        waiting = full.start("sync")
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(2)
    with ended(waiting):
        assert waiting.wait(60) == 0
    _assert_taken_in(full, history)


def test_an_archive_that_another_process_writes_can_be_read(full: Desktop) -> None:
    with held(full.archive, "BEGIN IMMEDIATE"):
        shown = full.run("sessions", program="tests.faults.impatient")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert SID[:8] in shown.stdout


@pytest.mark.few(1)
@pytest.mark.parametrize("words", [("sync",), ("sessions",)])
def test_an_archive_that_another_process_has_for_itself_is_told(full: Desktop, words: tuple[str, ...]) -> None:
    with held(full.archive, "PRAGMA locking_mode=EXCLUSIVE; CREATE TABLE mine (a); DROP TABLE mine"):
        assert "is locked by another process" in _refused(full, 75, *words, program="tests.faults.impatient")


def test_damage_in_the_archive_is_found_and_told(full: Desktop) -> None:
    with apsw.Connection(str(full.archive)) as vandal:
        vandal.execute("UPDATE blob SET data = zeroblob(length(data)) WHERE rowid = (SELECT min(rowid) FROM blob)")
    vandal.close()
    found = full.run("verify")
    assert found.returncode == 1
    assert "WRONG" in found.stdout
    assert sentence(found.stderr).startswith("the archive is damaged; ")


@pytest.mark.few(4)
@pytest.mark.parametrize("place", [100, 5000, 20_000])
@pytest.mark.parametrize("words", [("sync",), ("sessions",), ("search", "ask"), ("verify",), ("doctor",)])
def test_a_trampled_archive_is_told_and_never_ends_in_a_traceback(
    full: Desktop, place: int, words: tuple[str, ...]
) -> None:
    data = full.archive.read_bytes()
    full.archive.write_bytes(data[:place] + b"\xa5" * 3000 + data[place + 3000 :])
    told = full.run(*words)
    assert told.returncode in (0, 1, 4), told
    assert "Traceback" not in told.stderr
    assert "internal error" not in told.stderr


# sources --------------------------------------------------------------------------------------------------------------
def test_a_pipe_in_place_of_a_file_is_told_and_the_rest_is_taken_in(desktop: Desktop, history: History) -> None:
    os.mkfifo(history.file(BAD))
    assert _partly(desktop, history) == (
        f"could not archive {history.file(BAD)}: not a regular file; everturn will retry "
        "(`everturn sync --retry` retries now)"
    )


def test_a_pipe_with_any_name_does_not_hold_up_a_sync(desktop: Desktop, history: History) -> None:
    os.mkfifo(history.project / "notes.jsonl")
    assert desktop.run("sync", patience=20).returncode in (0, 4)
    _assert_taken_in(desktop, history)


def test_a_pipe_given_by_name_is_told(desktop: Desktop, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    refused = desktop.run("add", str(tmp_path / "pipe.jsonl"), patience=20)
    assert refused.returncode == 4
    assert sentence(refused.stderr).startswith(f"could not archive {tmp_path / 'pipe.jsonl'}: not a regular file")


@pytest.mark.parametrize("name", [f"{BAD}.jsonl", "x.jsonl", "agent-x.jsonl"])
def test_a_folder_named_like_a_file_does_not_hold_up_a_sync(desktop: Desktop, history: History, name: str) -> None:
    (history.project / name).mkdir()
    (history.project / name / f"{BAD}.jsonl").mkdir()
    assert desktop.run("sync").returncode == 0
    _assert_taken_in(desktop, history)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", [f"{BAD}.jsonl", "x.jsonl", "agent-x.jsonl"])
@pytest.mark.parametrize("target", ["nowhere", "itself"])
def test_a_link_that_leads_nowhere_does_not_hold_up_a_sync(
    desktop: Desktop, history: History, name: str, target: str
) -> None:
    link = history.project / name
    link.symlink_to(link if target == "itself" else target)
    assert desktop.run("sync").returncode in (0, 4)
    _assert_taken_in(desktop, history)


@pytest.mark.usefixtures("permissions")
def test_a_file_that_may_not_be_read_is_told_and_taken_in_later(desktop: Desktop, history: History) -> None:
    hidden = history.write(history.turn("hidden", "words"), BAD)
    hidden.chmod(0)
    assert _partly(desktop, history) == (
        f"could not archive {hidden}: Permission denied; everturn will retry (`everturn sync --retry` retries now)"
    )
    hidden.chmod(0o600)
    assert desktop.run("sync", "--retry").returncode == 0
    _assert_taken_in(desktop, history, SID, OTHER, BAD)


@pytest.mark.usefixtures("permissions")
def test_a_folder_that_may_not_be_read_is_told_and_its_files_do_not_count_as_gone(
    desktop: Desktop, history: History
) -> None:
    elsewhere = history.project.with_name("-elsewhere")
    elsewhere.mkdir()
    (elsewhere / f"{BAD}.jsonl").write_bytes(history.turn("hidden", "words", BAD))
    assert desktop.run("sync").returncode == 0
    elsewhere.chmod(0)
    try:
        told = desktop.run("sync", before=ORDINARY)
        assert told.returncode == 4
        assert f"everturn: left out {elsewhere}: Permission denied\n" in told.stderr
        store = open_store(str(desktop.archive))
        assert {file.state for file, _ in store.files()} == {"live"}
        store.close()
    finally:
        elsewhere.chmod(0o700)


@pytest.mark.usefixtures("permissions")
def test_given_files_that_may_not_be_read_are_told(desktop: Desktop, tmp_path: Path, history: History) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    shutil.copy(history.file(SID), folder / "good.jsonl")
    (folder / "hidden.jsonl").write_bytes(b"{}")
    (folder / "hidden.jsonl").chmod(0)
    told = desktop.run("add", str(folder), before=ORDINARY)
    assert told.returncode == 4
    assert "hidden.jsonl: Permission denied" in sentence(told.stderr)
    assert "hidden.jsonl' is not readable" in _refused(desktop, 2, "add", str(folder / "hidden.jsonl"), before=ORDINARY)


@pytest.mark.usefixtures("permissions")
def test_an_archive_that_may_not_be_written_is_told(full: Desktop, history: History) -> None:
    assert full.run("sync").returncode == 0  # makes the folders beside the archive
    history.grow(history.turn("more", "words"))
    full.archive.chmod(0o400)
    full.home.chmod(0o500)
    try:
        told = _refused(full, 1, "sync", before=ORDINARY)
    finally:
        full.home.chmod(0o700)
    assert str(full.archive) in told
    assert "permissions" in told


@pytest.mark.usefixtures("permissions")
def test_an_archive_that_may_not_be_read_is_told(full: Desktop) -> None:
    full.archive.chmod(0)
    told = full.run("sessions", before=ORDINARY)
    full.archive.chmod(0o600)
    assert told.returncode == 1
    assert sentence(told.stderr).startswith(f"{full.archive}: it cannot be opened; check that ")


@pytest.fixture
def permissions(tmp_path: Path) -> None:
    """Root must be able to let go of its rights."""
    closed = tmp_path / "closed"
    closed.write_text("")
    closed.chmod(0)
    if os.spawnv(os.P_WAIT, ORDINARY[0], [*ORDINARY, "/bin/cat", str(closed)]) == 0:
        pytest.skip("permissions do not apply to this user, and it cannot let go of that")


def _refused(
    desktop: Desktop, code: int, *words: str, before: list[str] | None = None, program: str = "everturn"
) -> str:
    """What a command says that cannot be done, having changed nothing."""
    there = desktop.fingerprint()
    done = desktop.run(*words, before=before or [], program=program)
    assert (done.returncode, done.stdout) == (code, ""), done
    assert desktop.fingerprint() == there
    return sentence(done.stderr)


def _partly(desktop: Desktop, history: History) -> str:
    """What a sync says that could do its work in part."""
    done = desktop.run("sync", before=ORDINARY)
    assert done.returncode == 4, done
    _assert_taken_in(desktop, history)
    return sentence(done.stderr)


def _assert_taken_in(desktop: Desktop, history: History, *sids: str) -> None:
    store = open_store(str(desktop.archive))
    for sid in sids or (SID, OTHER):
        assert raw(store, history.file(sid)) == history.file(sid).read_bytes()
    store.close()
