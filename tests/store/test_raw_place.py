"""Chunks in a place outside of the database: a folder, and an object store that speaks S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.request import Request, urlopen

import pytest

from everturn.cli import main
from everturn.errors import EverturnError, NotAnArchive, UsageError
from everturn.model.archive import SourceFile, Version
from everturn.store.contract import Store
from everturn.store.raw import CHUNK, FolderPlace, open_place, set_place

if TYPE_CHECKING:
    from everturn.store.sql_store import SqlStore

DATA = bytes(range(256)) * (CHUNK // 128)  # two chunks


@pytest.fixture(
    params=["folder", pytest.param("s3", marks=[pytest.mark.needs("module:moto"), pytest.mark.needs("module:obstore")])]
)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "folder":
        yield str(tmp_path / "raw")
        return
    from moto.server import ThreadedMotoServer

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    urlopen(Request(f"http://{host}:{port}/everturn", method="PUT")).close()
    yield f"s3://everturn/raw?endpoint=http://{host}:{port}"
    server.stop()


def new_version(store: Store, path: str) -> int:
    source = store.add_file(SourceFile(format="claude_code", machine="box", path=path))
    return store.add_version(Version(source=source))


def test_bytes_are_kept_outside_and_gone_when_they_are_released(store: Store, place: str) -> None:
    made = cast("SqlStore", store)
    with store.write():
        before = new_version(store, "/before")
        store.append_raw(before, 0, b"in the database")
        set_place(store, place)
    with store.write():
        one, other = new_version(store, "/one"), new_version(store, "/other")
        for version in (one, other):
            store.append_raw(version, 0, DATA)
        store.append_raw(one, len(DATA), b"short")
        store.append_raw(one, len(DATA) + 5, b" and longer")  # replaces the short chunk
    assert store.read_raw(before, 0, 100) == b"in the database"
    assert store.read_raw(one, 0, 1 << 30) == DATA + b"short and longer"
    assert store.read_ranges([(one, 5, 10), (other, CHUNK - 2, 4)]) == [DATA[5:15], DATA[CHUNK - 2 : CHUNK + 2]]
    kept = open_place(place)
    digests = {chunk.digest for version in (one, other) for chunk in store.chunks(version)}
    assert all(kept.get(digest) for digest in digests) and len(digests) < 5
    with pytest.raises(ZeroDivisionError), store.write():
        made.delete_chunks(one)
        1 / 0  # noqa: B018 -- rolls back
    assert all(kept.get(digest) for digest in digests), "what is rolled back deletes nothing"
    with store.write():
        made.delete_chunks(one)
    assert store.read_raw(other, 0, 1 << 30) == DATA
    left = {chunk.digest for chunk in store.chunks(other)}
    assert {digest for digest in digests if kept.get(digest)} == left
    with pytest.raises(UsageError), store.write():
        set_place(store, "/elsewhere")
    kept.delete(next(iter(left)))
    made._recent.clear()
    with pytest.raises(NotAnArchive, match="missing in its place"):
        store.read_raw(other, 0, 1 << 30)


def test_a_place_that_cannot_be_used_is_refused(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for wrong, error in (("relative", UsageError), (str(tmp_path / "file"), EverturnError)):
        with pytest.raises(error), store.write():
            set_place(store, wrong)
    assert store.setting("raw place") == ""


def test_an_administrator_chooses_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db, folder = str(tmp_path / "team.db"), tmp_path / "raw"
    assert main(["admin", "init", "--db", db]) == 0
    assert main(["admin", "raw", str(folder), "--db", db]) == 0
    assert main(["admin", "raw", str(tmp_path / "other"), "--db", db]) == 2
    assert FolderPlace(folder).get(bytes(32)) is None
