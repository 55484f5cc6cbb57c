"""The numbers as files: the same bytes each time, the same rows in CSV and Parquet, and no word of a conversation."""

from __future__ import annotations

import csv
import io
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from everturn.analytics import counts
from everturn.errors import EverturnError
from everturn.export.analytics_tables import as_csv, as_parquet
from everturn.model.analytics import PLANE
from everturn.store.contract import Store, open_store
from tests.analytics.tool_sessions import told
from tests.quick import some
from tests.store.building import new_session


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store("memory:")
    for n in range(3):
        told(
            opened, new_session(opened, f"session {n}", kind="subagent" if n else "main"), "Read Edit!", "Edit", "Bash?"
        )
    counts.catch_up(opened)
    yield opened
    opened.close()


def test_csv_has_every_table_with_its_columns(store: Store) -> None:
    for table in PLANE:
        names, *rows = csv.reader(io.StringIO(b"".join(as_csv(store, table)).decode()))
        assert names == list(table.columns) and rows
        expected = [["" if value is None else str(value) for value in row] for row in store.plane_rows(table)]
        assert rows == expected


@pytest.mark.needs("module:duckdb")
def test_parquet_has_the_same_rows_with_their_types(store: Store, tmp_path: Path) -> None:
    import duckdb

    types = {"text": "VARCHAR", "integer": "BIGINT"}
    for table in some(PLANE, 4):
        file = tmp_path / f"{table.name}.parquet"
        file.write_bytes(b"".join(as_parquet(store, table)))
        with duckdb.connect() as base:
            found = base.read_parquet(str(file))
            assert dict(zip(found.columns, map(str, found.types), strict=True)) == {
                name: types[kind] for name, kind in table.columns.items()
            }
            assert found.fetchall() == list(store.plane_rows(table))


@pytest.mark.needs("module:duckdb")
def test_the_same_archive_gives_the_same_bytes(store: Store) -> None:
    for table in some(PLANE, 4):
        assert b"".join(as_csv(store, table)) == b"".join(as_csv(store, table))
        assert b"".join(as_parquet(store, table)) == b"".join(as_parquet(store, table))


def test_without_duckdb_it_says_what_to_install(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(EverturnError, match=r"everturn\[parquet\]"):
        as_parquet(store, PLANE[0])


def test_any_program_that_knows_sqlite_reads_the_views(tmp_path: Path) -> None:
    """The promise to other programs: plain tables and views without functions of ours."""
    path = tmp_path / "archive.db"
    archive = open_store(str(path))
    told(archive, new_session(archive), "Read", "Edit!", "Edit")
    counts.catch_up(archive)
    archive.close()
    with closing(sqlite3.connect(path)) as plain:
        for table in PLANE:
            assert plain.execute(f'SELECT * FROM "{table.name}"').fetchall(), table.name
