"""`everturn encrypt`, `decrypt` and `rekey`: nothing of the archive stays readable without its key."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from everturn.capture.hook_answer import WHERE, prepare_context
from everturn.capture.policy import Policy
from everturn.errors import WrongKey
from everturn.loop.journal import Journal, JournalAbout, open_archive
from everturn.store import cipher
from everturn.store.cipher import KeySources, _in_use, use_key_sources
from everturn.store.contract import open_store
from everturn.store.conversion import convert_file
from everturn.store.vector_file import VectorFile, pack_vectors
from tests.capture.history import SID
from tests.cli.desk import Desk

pytestmark = pytest.mark.skipif(not cipher.is_available(), reason="the installed SQLite cannot encrypt")

WORD = "qzwvxkjyq"


@pytest.fixture(autouse=True)
def no_keys() -> Iterator[None]:
    yield
    use_key_sources(KeySources())


@pytest.fixture
def full(desk: Desk, tmp_path: Path) -> Desk:
    """An archive whose word is in every kind of file that we write beside it."""
    history = desk.archive.history
    desk.take_in(history.turn(f"ask {WORD}", f"reply {WORD}"), history.tool_turn("run", f"echo {WORD}", WORD))
    with Journal.open(desk.archive.store, "chat-1", JournalAbout(workspace="/w"), policy=Policy()) as journal:
        journal.accept(f"a chat about {WORD}")
    desk.archive.store.close()
    (tmp_path / "handed-over").mkdir()
    (tmp_path / "handed-over" / "session.jsonl").write_text(WORD)
    (tmp_path / "chats").mkdir()
    (tmp_path / "chats" / "chat_20260301_100000_chat-1.md").write_text(WORD)
    prepare_context(str(tmp_path / "state" / "context"), "/w", WHERE, WORD)
    assert desk.run("backup", str(tmp_path / "backup.db"))[0] == 0
    with closing(open_store(str(desk.db))) as store:
        store.backup(f"{desk.db}.before-0003")
    return desk


def holders(folder: Path, word: str = WORD) -> list[str]:
    """The files below a folder that hold a word, but for the agent's own."""
    found = [path for path in folder.rglob("*") if path.is_file() and "agent" not in path.parts]
    return sorted(str(path.relative_to(folder)) for path in found if word.encode() in path.read_bytes())


def key_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-key")


def test_after_encrypt_no_file_holds_a_word_and_everything_is_found(full: Desk, tmp_path: Path) -> None:
    assert {"archive.db", "backup.db", "archive.db.before-0003", "handed-over/session.jsonl"} <= set(holders(tmp_path))
    code, out, _ = full.run("encrypt", "--key", f"file:{key_file(tmp_path)}", "--yes", "--json")
    assert code == 0 and json.loads(out)["left"] == []
    assert holders(tmp_path) == []
    assert key_file(tmp_path).stat().st_mode & 0o777 == 0o600
    assert full.json("search", WORD)["items"]
    assert full.run("verify")[0] == 0
    with closing(open_store(f"{tmp_path / 'backup.db'}", create=False)) as backup:
        assert backup.sessions_of("claude_code", SID)
    # The log, a new backup and a new copy are encrypted too.
    with closing(open_store(str(full.db))) as store:
        with store.write():
            store.set_setting("canary", WORD)
        assert (tmp_path / "archive.db-wal").exists()
        assert full.run("backup", str(tmp_path / "second.db"))[0] == 0
        assert holders(tmp_path) == []


def test_decrypt_brings_back_the_same_archive(full: Desk, tmp_path: Path) -> None:
    before = full.json("sessions", "--all")["items"]
    full.run("encrypt", "--key", f"file:{key_file(tmp_path)}", "--yes")
    assert full.json("sessions", "--all")["items"] == before
    assert full.run("decrypt", "--yes")[0] == 0
    assert not any(cipher.is_encrypted(path) for path in tmp_path.glob("*.db*"))
    key_file(tmp_path).unlink()
    assert full.json("sessions", "--all")["items"] == before
    assert full.run("verify")[0] == 0


def test_a_wrong_or_missing_key_is_one_sentence(full: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full.run("encrypt", "--key", f"file:{key_file(tmp_path)}", "--yes")
    whole = full.db.read_bytes()
    monkeypatch.setenv("EVERTURN_KEY", "command:printf " + "0" * 64)
    code, out, err = full.run("sessions")
    assert (code, out) == (1, "") and "belongs to another key" in err and err.count("\n") == 1
    monkeypatch.setenv("EVERTURN_KEY", "passphrase")
    assert "set EVERTURN_PASSPHRASE" in full.run("sync")[2]
    monkeypatch.setenv("EVERTURN_KEY", "file:/no/such/file")
    assert "cannot be read" in full.run("sessions")[2]
    monkeypatch.delenv("EVERTURN_KEY")
    (tmp_path / "config.toml").unlink()
    code, _, err = full.run("sessions")
    assert code == 1 and "is encrypted and no key is configured" in err
    assert full.db.read_bytes() == whole


def test_rekey_changes_the_key_of_every_file(full: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full.run("encrypt", "--key", f"file:{key_file(tmp_path)}", "--yes")
    assert full.run("rekey", "--key", f"file:{key_file(tmp_path)}")[0] == 2
    monkeypatch.setenv("EVERTURN_NEW_PASSPHRASE", "correct horse")
    assert full.run("rekey", "--key", "passphrase")[0] == 0
    key_file(tmp_path).unlink()
    monkeypatch.setenv("EVERTURN_PASSPHRASE", "correct horse")
    assert full.json("search", WORD)["items"]
    with closing(open_store(str(tmp_path / "backup.db"), create=False)) as backup:
        assert backup.sessions_of("claude_code", SID)
    monkeypatch.setenv("EVERTURN_NEW_PASSPHRASE", "battery staple")
    assert full.run("rekey", "--key", "passphrase")[0] == 0
    assert "belongs to another key" in full.run("sessions")[2]
    monkeypatch.setenv("EVERTURN_PASSPHRASE", "battery staple")
    assert full.json("search", WORD)["items"]
    assert holders(tmp_path) == []


def test_an_interrupted_rekey_reads_everything_and_is_completed(full: Desk, tmp_path: Path) -> None:
    old, new = key_file(tmp_path), key_file(tmp_path).with_suffix(".new")
    full.run("encrypt", "--key", f"file:{old}", "--yes")
    new.write_text("ab" * 32)
    new.chmod(0o600)
    full.run("config", "set", "encryption.previous", f"file:{old}")
    full.run("config", "set", "encryption.key", f"file:{new}")
    assert full.json("search", WORD)["items"]
    use_key_sources(KeySources(f"file:{new}", f"file:{old}"))
    convert_file(full.db, "ab" * 32)  # and killed here
    assert full.json("search", WORD)["items"]
    code, out, _ = full.run("rekey", "--json")
    assert code == 0 and str(tmp_path / "backup.db") in json.loads(out)["items"]
    old.unlink()
    assert full.json("search", WORD)["items"]
    with closing(open_store(str(tmp_path / "backup.db"), create=False)) as backup:
        assert backup.sessions_of("claude_code", SID)


def test_nothing_is_changed_while_another_program_has_it_open(
    full: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everturn.store.sqlite.BUSY_MS", 50)
    with closing(open_store(str(full.db))):
        code, _, err = full.run("encrypt", "--key", f"file:{key_file(tmp_path)}", "--yes")
    assert code == 75 and "locked by another process" in err
    assert not cipher.is_encrypted(full.db) and holders(tmp_path)
    assert full.run("encrypt", "--yes")[0] == 0, "the key is configured already"
    assert holders(tmp_path) == []


def test_a_new_archive_is_encrypted_from_its_first_byte_and_forget_works_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path))
    monkeypatch.setenv("EVERTURN_KEY", "passphrase")
    monkeypatch.setenv("EVERTURN_PASSPHRASE", "correct horse")
    use_key_sources(KeySources("passphrase", ask=lambda: "correct horse"))
    desk = Desk(tmp_path, capsys)
    desk.take_in(desk.archive.history.turn(f"ask {WORD}", "reply"))
    assert holders(tmp_path) == [] and desk.archive.store.sessions_of("claude_code", SID)
    desk.archive.store.close()
    assert desk.run("forget", SID, "--yes")[0] == 0
    assert desk.run("search", WORD)[0] == 3


def test_the_library_opens_an_encrypted_archive(full: Desk, tmp_path: Path) -> None:
    full.run("encrypt", "--key", f"file:{key_file(tmp_path)}", "--yes")
    _in_use.clear()  # as in a new process: the config file is read
    with closing(open_archive(str(full.db))) as store, Journal.open(store, "chat-1", policy=Policy()) as journal:
        journal.accept("go on")
    use_key_sources(KeySources(f"command:{sys.executable} -c 'print(\"x\")'"))
    with pytest.raises(WrongKey):
        open_store(str(full.db))


def test_vectors_are_encrypted_like_their_archive(full: Desk, tmp_path: Path) -> None:
    path = tmp_path / "archive.vectors.db"
    mark = b"generation-of-vectors"
    with closing(VectorFile(path)) as vectors:
        vectors.put(1, mark.decode(), [(0, pack_vectors([[1.0, 0.5]])[0])], 1)
    assert mark in path.read_bytes()
    full.run("encrypt", "--key", f"file:{key_file(tmp_path)}", "--yes")
    assert mark not in path.read_bytes()
    with closing(VectorFile(path, create=False)) as vectors:
        assert vectors.upto(1, mark.decode()) == 1
    path.unlink()
    with closing(VectorFile(path)) as vectors:
        vectors.put(1, mark.decode(), [(0, pack_vectors([[1.0, 0.5]])[0])], 1)
    assert mark not in path.read_bytes()


def test_files_that_are_not_ours_stay_and_are_named(full: Desk, tmp_path: Path) -> None:
    own = tmp_path / "chats" / "notes of mine.md"
    own.write_text("mine")
    code, out, _ = full.run("encrypt", "--key", f"file:{key_file(tmp_path)}", "--yes", "--json")
    assert code == 4 and [row["path"] for row in json.loads(out)["left"]] == [str(own)]
    assert own.read_text() == "mine" and holders(tmp_path) == []


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("", "say where the key is kept"),
        ("elsewhere", "is none of"),
        ("command:no-such-program-of-ours", "cannot be run"),
        ("command:false", "failed with exit code"),
        ("command:true", "holds no key"),
        ("file:/proc/nowhere/key", "cannot be written"),
    ],
)
def test_a_source_without_a_key_changes_nothing(full: Desk, tmp_path: Path, source: str, sentence: str) -> None:
    code, _, err = full.run("encrypt", *(["--key", source] if source else []), "--yes")
    assert code in (1, 2) and sentence in err
    assert not cipher.is_encrypted(full.db) and not (tmp_path / "config.toml").exists()


def test_a_key_file_that_others_can_read_is_refused(full: Desk, tmp_path: Path) -> None:
    full.run("encrypt", "--key", f"file:{key_file(tmp_path)}", "--yes")
    os.chmod(key_file(tmp_path), 0o644)
    assert "can be read by others" in full.run("sessions")[2]


@pytest.mark.needs("module:keyring")
def test_a_key_may_be_in_the_system_keyring(full: Desk, tmp_path: Path) -> None:
    import keyring
    from keyring.backend import KeyringBackend

    class Memory(KeyringBackend):
        priority = 1
        held: dict[tuple[str, str], str] = {}

        def get_password(self, service: str, username: str) -> str | None:
            return self.held.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.held[service, username] = password

    before = keyring.get_keyring()
    keyring.set_keyring(Memory())  # type: ignore[no-untyped-call]
    try:
        assert full.run("encrypt", "--key", "keyring:work", "--yes")[0] == 0
        assert len(Memory.held["everturn", "work"]) == 64
        assert holders(tmp_path) == [] and full.json("search", WORD)["items"]
    finally:
        keyring.set_keyring(before)
