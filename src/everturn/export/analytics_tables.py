"""The analytics plane as files: CSV, or Parquet if duckdb is installed. They hold no content.

There is one file per table of `PLANE`, in the order of its key, so that the same archive gives the same bytes. A missing
value is an empty field in CSV. docs/analytics.md describes the columns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from everturn.errors import EverturnError
from everturn.model.analytics import PlaneTable
from everturn.store.contract import Store

_ROWS_PER_CHUNK = 2000
_NULL = "\\N"
_TYPES = {"text": "VARCHAR", "integer": "BIGINT"}


def as_csv(store: Store, table: PlaneTable) -> Iterator[bytes]:
    return _csv_chunks(list(table.columns), store.plane_rows(table), "")


def as_parquet(store: Store, table: PlaneTable) -> Iterator[bytes]:
    if find_spec("duckdb") is None:
        raise EverturnError("Parquet needs duckdb, which is not installed; run: pip install 'everturn[parquet]'")
    return _write_parquet(store, table)


def _write_parquet(store: Store, table: PlaneTable) -> Iterator[bytes]:
    import duckdb

    types = {name: _TYPES[kind] for name, kind in table.columns.items()}
    with TemporaryDirectory(prefix="everturn-") as folder:
        plain, packed = Path(folder, "table.csv"), Path(folder, "table.parquet")
        with plain.open("wb") as file:
            file.writelines(_csv_chunks(list(types), store.plane_rows(table), _NULL))
        with duckdb.connect() as base:
            base.execute("SET threads=1")  # the order of the rows, and so the bytes, must be the same every time
            found = base.read_csv(str(plain), header=True, dtype=types, na_values=_NULL, all_varchar=False)
            found.write_parquet(str(packed), compression="zstd")
        yield packed.read_bytes()


def _csv_chunks(names: Sequence[str], rows: Iterable[Sequence[Any]], null: str) -> Iterator[bytes]:
    page = io.StringIO(newline="")
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(names)
    for number, row in enumerate(rows, 1):
        writer.writerow([null if value is None else value for value in row])
        if number % _ROWS_PER_CHUNK == 0:
            yield _take_bytes(page)
    yield _take_bytes(page)


def _take_bytes(page: io.StringIO) -> bytes:
    data = page.getvalue().encode("utf-8", "replace")
    page.seek(0)
    page.truncate()
    return data
