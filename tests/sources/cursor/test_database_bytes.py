"""A database at rest is kept byte for byte, unless it holds, or held, credentials."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from everturn.sources.cursor import SOURCE
from everturn.sources.toolkit.sqlite_file import snapshot


def _database(path: Path, *keys: str) -> Path:
    with apsw.Connection(str(path)) as made:
        made.execute("PRAGMA page_size=4096")
        made.execute("CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)")
        for key in ("composer.composerData", *keys):
            made.execute("INSERT INTO ItemTable VALUES (?, ?)", (key, b"x" * 20_000))
        made.execute("DELETE FROM ItemTable WHERE key = 'gone'")  # leaves free pages
    made.close()
    return path


def test_a_database_without_credentials_comes_back_as_it_was(tmp_path: Path) -> None:
    path, copy = _database(tmp_path / "state.vscdb", "gone"), tmp_path / "copy"
    snapshot(path, copy, SOURCE.private)
    assert copy.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("delete", [False, True])
def test_credentials_are_left_out_also_where_only_their_remains_are_there(tmp_path: Path, delete: bool) -> None:
    path, copy = _database(tmp_path / "state.vscdb", "cursorAuth/accessToken"), tmp_path / "copy"
    if delete:
        with apsw.Connection(str(path)) as made:
            made.execute("DELETE FROM ItemTable WHERE key LIKE 'cursorAuth%'")
        made.close()
    snapshot(path, copy, SOURCE.private)
    assert b"cursorAuth" not in copy.read_bytes()
    assert b"composer" in copy.read_bytes()


def test_names_of_credentials_are_found_in_any_case_as_the_engine_finds_them(tmp_path: Path) -> None:
    path, copy = _database(tmp_path / "state.vscdb", "github.TOKEN"), tmp_path / "copy"
    snapshot(path, copy, SOURCE.private)
    assert b"github" not in copy.read_bytes()
    assert b"composer" in copy.read_bytes()


def test_a_table_that_must_not_be_kept_is_emptied_whatever_else_is_looked_for(tmp_path: Path) -> None:
    path, copy = _database(tmp_path / "state.vscdb"), tmp_path / "copy"
    with apsw.Connection(str(path)) as made:
        made.execute("CREATE TABLE vault (words TEXT)")
        made.execute("INSERT INTO vault VALUES ('open sesame')")
    made.close()
    snapshot(path, copy, ("DELETE FROM vault", "DELETE FROM ItemTable WHERE key LIKE '%nothing like it%'"))
    assert b"sesame" not in copy.read_bytes()
