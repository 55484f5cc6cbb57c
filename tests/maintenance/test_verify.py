"""Verify finds what is wrong and says nothing when all is well."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from everturn.maintenance.verify import verify_archive
from everturn.store.contract import Store, open_store
from tests.capture.history import History, run


def quiet(*numbers: object) -> None:
    pass


def test_a_whole_archive_has_nothing_wrong(store: Store, history: History) -> None:
    history.write(history.turn("a", "b") + b'{"type":"torn')
    run(store, history)
    history.grow(b'"}\n' + history.turn("c", "d"))
    run(store, history)
    found = verify_archive(store, "box", quiet)
    assert (found.wrong, found.differs, found.compared, found.records) == ([], [], 1, 5)


def test_a_changed_byte_in_the_archive_is_found(tmp_path: Path, history: History) -> None:
    path = tmp_path / "a.db"
    store = open_store(str(path))
    history.write(history.turn("a", "b"))
    run(store, history)
    store.close()
    with sqlite3.connect(path) as database:
        (data,) = database.execute("SELECT data FROM blob").fetchone()
        database.execute("UPDATE blob SET data=?", (data[:-1] + bytes([data[-1] ^ 1]),))
    database.close()
    found = verify_archive(open_store(str(path)), "box", quiet)
    assert len(found.wrong) == 1
    assert "bytes 0" in found.wrong[0]


def test_a_source_changed_in_the_middle_is_found_and_the_next_sync_keeps_both(store: Store, history: History) -> None:
    path = history.write(b"".join(history.turn(f"ask {n}", "reply " * 100) for n in range(50)))
    run(store, history)
    data = path.read_bytes()
    middle = len(data) // 2
    info = path.stat()
    with path.open("r+b") as file:
        file.seek(middle)
        file.write(b"Z")
    import os

    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert run(store, history).unchanged == 1, "a stat cannot see this"
    assert len(verify_archive(store, "box", quiet).differs) == 1
    assert run(store, history).rewritten == 1
    assert verify_archive(store, "box", quiet).differs == []


def test_files_of_other_machines_and_deleted_ones_are_not_compared(store: Store, history: History) -> None:
    path = history.write(history.turn("a", "b"))
    run(store, history)
    assert verify_archive(store, "another", quiet).compared == 0
    path.unlink()
    found = verify_archive(store, "box", quiet)
    assert (found.gone, found.wrong, found.differs) == (1, [], [])
