"""An archive whose index is of an earlier version: found before and after it is derived again."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.model.archive import SessionText
from everturn.store import sql_store, sqlite_index
from everturn.store.sqlite import SqliteStore, open_sqlite
from everturn.store.sqlite_index import older_shelf
from tests.store.building import look_for, new_session, new_version, places, prompt, tell


@pytest.fixture(params=[1, 6], ids=["before stems", "before short numbers"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sessions in an archive of an earlier schema."""
    steps = sql_store.known_migrations("sqlite")
    path = tmp_path / "archive.db"
    with monkeypatch.context() as patch:
        patch.setattr(sql_store, "known_migrations", lambda engine: steps[: request.param])
        patch.setattr(sqlite_index, "SHORT", older_shelf("fts"))
        store = open_sqlite(str(path))
        _change_columns(store, "ADD COLUMN {} NOT NULL DEFAULT {}")
        for name in ("one", "two"):
            version = new_version(store, f"/{name}")
            session = new_session(store, name, version)
            tell(store, session, prompt("parsing apples"))
            with store.write():
                store.set_text(SessionText(session, title="about parsing"))
                store.set_version(version, parser=3)
        with store.write():
            store.set_setting("parsers", "a=3")
        _change_columns(store, "DROP COLUMN {}")
        store.close()
    return path


def _change_columns(store: SqliteStore, change: str) -> None:
    """Add the columns that rows of today have to tables of an earlier schema, or take them out."""
    for table, column, kind, value in (
        ("message", "taken_back", "INTEGER", "0"),
        ("turn", "taken_back", "INTEGER", "0"),
        ("session_text", "slug", "TEXT", "''"),
    ):
        name = f"{column} {kind}" if change.startswith("ADD") else column
        store.driver.run(f'ALTER TABLE "{table}" {change.format(name, value)}')


def has_old(store: SqliteStore) -> bool:
    return store.driver.one("SELECT 1 FROM sqlite_schema WHERE name IN ('fts_old', 'fts_wide')") is not None


def test_what_was_found_before_is_found_after_the_migration(path: Path) -> None:
    store = open_sqlite(str(path))
    assert places(look_for(store, "parsing")) == {(1, 0), (1, -1), (2, 0), (2, -1)}
    assert store.index.total() == 4
    store.close()


def test_every_version_is_out_of_date_after_the_migration(path: Path) -> None:
    store = open_sqlite(str(path))
    assert [version.parser for _, version in store.files()] == [0, 0]
    assert store.setting("parsers") == ""
    store.close()


def test_what_is_derived_again_moves_into_the_new_index_and_the_old_one_goes_when_it_is_empty(path: Path) -> None:
    store = open_sqlite(str(path))
    for session in (1, 2):
        with store.write():
            store.drop_derived(store.session(session)[0].version)
        tell(store, session, prompt("parsing apples"))
        found = {(1, 0), (2, 0), (2, -1)} if session == 1 else {(1, 0), (2, 0)}
        assert places(look_for(store, "parsing")) == found
    assert places(look_for(store, "parser OR parses")) == {(1, 0), (2, 0)}
    assert not has_old(store)
    assert store.check().problems == []
    store.close()


def test_a_new_archive_keeps_no_old_index(tmp_path: Path) -> None:
    store = open_sqlite(str(tmp_path / "new.db"))
    tell(store, new_session(store), prompt("apples"))
    assert not has_old(store)
    store.close()
