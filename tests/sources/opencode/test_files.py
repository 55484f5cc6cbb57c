"""Finding sessions, and recognizing files by their content."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from everturn.sources.contract import SearchPlaces
from everturn.sources.opencode import SOURCE
from tests.sources.opencode.building import CHILD, PARENT, SESSIONS, database, export, lines, storage


def places(home: Path, platform: str = "linux", **env: str) -> SearchPlaces:
    return SearchPlaces(home, env, platform)


def sniffed(path: Path) -> tuple[str, str] | None:
    with path.open("rb") as file:
        found = SOURCE.sniff(path, file.read(64 << 10))
    return (found.kind, found.native_id) if found else None


@pytest.mark.parametrize(
    ("platform", "folder", "variable"),
    [
        ("linux", ".local/share", ""),
        ("linux", "elsewhere", "XDG_DATA_HOME"),
        ("darwin", ".local/share", ""),
        ("darwin", "Library/Application Support", ""),
        ("win32", ".local/share", ""),
        ("win32", "AppData/Local", "LOCALAPPDATA"),
        ("win32", "AppData/Roaming", "APPDATA"),
    ],
)
def test_the_data_folder_is_found_on_every_platform(tmp_path: Path, platform: str, folder: str, variable: str) -> None:
    data = tmp_path / folder / "opencode"
    data.mkdir(parents=True)
    env = {variable: str(tmp_path / folder)} if variable else {}
    assert SOURCE.roots(places(tmp_path, platform, **env)) == [data]


def test_a_database_named_by_the_environment_is_a_root_and_each_root_counts_once(tmp_path: Path) -> None:
    data = tmp_path / ".local" / "share" / "opencode"
    data.mkdir(parents=True)
    own = tmp_path / "mine.sqlite"
    database(own, SESSIONS).close()
    env = {"OPENCODE_DB": str(own), "XDG_DATA_HOME": str(tmp_path / ".local" / "share")}
    assert SOURCE.roots(places(tmp_path, **env)) == [own, data]
    assert [found.path for found in SOURCE.find(own)] == [own]
    assert SOURCE.roots(places(tmp_path / "nobody", OPENCODE_DB="relative.db")) == []


def test_everything_in_a_data_folder_is_found(tmp_path: Path) -> None:
    database(tmp_path / "opencode.db", SESSIONS).close()
    database(tmp_path / "opencode-dev.db", SESSIONS).close()
    (tmp_path / "auth.json").write_text("{}")
    storage(tmp_path)
    storage(tmp_path, early=True)
    found = list(SOURCE.find(tmp_path))
    assert [one.path.name for one in found if one.kind == "container"] == ["opencode-dev.db", "opencode.db"]
    assert sorted(one.native_id for one in found if one.kind == "bundle") == sorted([PARENT, PARENT, CHILD, CHILD])
    assert list(SOURCE.find(tmp_path / "storage")) == [
        one for one in found if one.path.is_relative_to(tmp_path / "storage")
    ]
    assert list(SOURCE.find(tmp_path / "nothing")) == []


def test_folders_behind_links_are_not_entered(tmp_path: Path) -> None:
    outside = storage(tmp_path / "outside")
    inside = tmp_path / "inside"
    inside.mkdir()
    os.symlink(outside / "storage", inside / "storage")
    (inside / "project").mkdir()
    os.symlink(outside, inside / "project" / "linked")
    assert list(SOURCE.find(inside)) == []


def test_the_stamp_follows_the_newest_file(tmp_path: Path) -> None:
    root = storage(tmp_path)
    for path in root.rglob("*"):
        os.utime(path, ns=(10**18, 10**18))
    for name in ("todo", "session_diff", f"message/{PARENT}"):
        path = next(iter(sorted((root / "storage" / name).iterdir(), reverse=True)))
        os.utime(path, ns=(2 * 10**18, 2 * 10**18))
        stamps = {found.native_id: found.stamp for found in SOURCE.find(root)}
        assert stamps == {PARENT: 2 * 10**18, CHILD: 10**18}
        os.utime(path, ns=(10**18, 10**18))


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_cannot_be_listed_does_not_stop_the_rest(tmp_path: Path) -> None:
    root = storage(tmp_path)
    closed = root / "storage" / "session" / "a"
    closed.mkdir(mode=0)
    names = set()
    with pytest.raises(PermissionError):
        for found in SOURCE.find(root):
            names.add(found.native_id)
    assert names == {PARENT, CHILD}


def test_files_are_known_by_their_content_wherever_they_lie(tmp_path: Path) -> None:
    root = storage(tmp_path / "copied")
    assert sniffed(next(root.rglob(f"session/p1/{PARENT}.json"))) == ("bundle", PARENT)
    assert sniffed(next(root.rglob("msg_000001.json"))) is None
    assert sniffed(next(root.rglob("prt_000001_00.json"))) is None
    assert sniffed(next(root.rglob(f"todo/{PARENT}.json"))) is None
    early = storage(tmp_path / "early", early=True)
    assert sniffed(next(early.rglob(f"info/{CHILD}.json"))) == ("bundle", CHILD)
    for name, data in (
        ("a", export(*SESSIONS[0])),
        ("b.txt", lines(*SESSIONS[0])),
        ("c", b"\xef\xbb\xbf" + export(*SESSIONS[0])),
    ):
        (tmp_path / name).write_bytes(data)
        assert sniffed(tmp_path / name) == ("main", PARENT)
    database(tmp_path / "renamed.sqlite", SESSIONS).close()
    assert sniffed(tmp_path / "renamed.sqlite") == ("container", "")


@pytest.mark.parametrize(
    "content",
    [
        b'{"messages": [{"role": "user", "content": "ses_1", "id": "msg_1"}]}',
        b'{"info": {"id": "x"}, "messages": []}',
        b'{"parts": [{"text": "hi"}], "role": "user"}',
        b"# Title\n\nsome **Session ID:** ses_1\n",
        b'{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{"id":"prt_1"}}',
        b'{"role":"user","sessionId":"ses_1"}\n',
        b"",
        b"{",
        b"\0\0",
    ],
)
def test_files_of_others_are_not_claimed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    assert sniffed(tmp_path / "x") is None


def test_databases_of_others_are_not_claimed(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE session(id TEXT)")
    connection.close()
    assert sniffed(tmp_path / "other.db") is None
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    assert sniffed(tmp_path / "broken.db") is None


def test_a_file_names_its_workspace(tmp_path: Path) -> None:
    assert SOURCE.workspace(export(*SESSIONS[0])) == "/home/ann/otter"
    assert SOURCE.workspace(b'{"session":{"id":"ses_1","directory":"C:\\\\ann\\\\x"}}\n') == "C:\\ann\\x"
    assert SOURCE.workspace(b"# Title") == ""


def test_a_session_can_be_taken_up_again() -> None:
    assert SOURCE.resume_command is not None
    assert SOURCE.resume_command(PARENT) == ["opencode", "--session", PARENT]


def test_importing_the_source_loads_no_reader_and_no_driver() -> None:
    code = (
        "import sys, everturn.sources.opencode\n"
        "heavy = [name for name in sys.modules if name.startswith('everturn.sources.opencode.') or name == 'apsw']\n"
        "print(sorted(heavy))"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert seen.strip() == "['everturn.sources.opencode.files']"
