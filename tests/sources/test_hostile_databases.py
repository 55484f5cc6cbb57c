"""Databases and compressed files that want to do harm. Memory stays bounded, none goes on forever, and each is told."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from everturn.sources.toolkit.sqlite_file import open_snapshot
from everturn.sources.toolkit.zstd_data import zstd_module
from everturn.store.contract import open_store
from tests.fuzz import seeds
from tests.sources.codex.test_files import NAME as ROLLOUT
from tests.sources.test_hostile_archives import MEASURED, MOST_MEMORY, deep

#: The databases by format: their name, and the table and column that hold words.
DATABASES = {
    "cursor": ("state.vscdb", "cursorDiskKV", "value"),
    "goose": ("sessions.db", "messages", "content_json"),
    "crush": ("crush.db", "messages", "parts"),
    "opencode": ("opencode.db", "part", "data"),
}
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n)"
Change = Callable[[sqlite3.Connection, str, str], object]


def columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")]


def as_view(query: str) -> Change:
    """A view in place of the table."""

    def change(database: sqlite3.Connection, table: str, column: str) -> None:
        names = columns(database, table)
        database.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        chosen = ", ".join(query if name == column else f"o.{name}" for name in names)
        more = ", n" if "n.i" in query else ""
        start = ENDLESS if more else ""
        database.execute(f"CREATE VIEW {table} AS {start} SELECT {chosen} FROM old_{table} o{more}")

    return change


def computed(expression: str) -> Change:
    """A column that is computed in place of the one that holds words, in many rows."""

    def change(database: sqlite3.Connection, table: str, column: str) -> None:
        names = [name for name in columns(database, table) if name != column]
        rows = database.execute(f"SELECT {','.join(names)} FROM {table}").fetchall()
        database.execute(f"DROP TABLE {table}")
        database.execute(f"CREATE TABLE {table} ({', '.join(names)}, {column} AS ({expression}))")
        marks = ",".join("?" * len(names))
        database.executemany(f"INSERT INTO {table} ({','.join(names)}) VALUES ({marks})", (rows * 20)[:20])

    return change


def valued(value: object) -> Change:
    one = "rowid=(SELECT MIN(rowid) FROM {table})"
    return lambda database, table, column: database.execute(
        f"UPDATE {table} SET {column}=? WHERE {one.format(table=table)}", (value,)
    )


CHANGES: dict[str, Change] = {
    "endless-view": as_view("n.i || ''"),
    "large-view": as_view("zeroblob(900000000)"),
    "computed-blob": computed("zeroblob(30000000)"),
    "computed-text": computed("replace(hex(zeroblob(3000000)), '0', 'ab')"),
    "large-value": valued(b" " * 40_000_000),
    "deep": valued('{"a":' + deep(100_000) + "}"),
    "wide": valued("[" + "[]," * 1_000_000 + "[]]"),
    "number": valued("9" * 100_000),
    "not-json": valued("\x1b]0;owned\x07 {"),
    "not-text": valued(b"\xff\xfe\x00"),
    "integer": valued(7),
    "no-table": lambda database, table, column: database.execute(f"DROP TABLE {table}"),
    "trigger": lambda database, table, column: database.execute(
        f"CREATE TRIGGER t AFTER DELETE ON {table} BEGIN INSERT INTO {table} SELECT * FROM {table}; END"
    ),
}
BYTES: dict[str, Callable[[bytes], bytes]] = {
    "torn": lambda data: data[: len(data) // 2],
    "head-only": lambda data: data[:100],
    "page-size": lambda data: data[:16] + b"\x02\x00" + data[18:],
    "garbage-page": lambda data: data[:4096] + bytes(range(256)) * 16 + data[8192:],
}


def hostile_databases(source: str, folder: Path) -> Iterator[tuple[str, Path]]:
    name, table, column = DATABASES[source]
    with tempfile.TemporaryDirectory() as made:
        sound = next(data for path, data in seeds._built(source, Path(made)) if path == name)
    for kind in (*CHANGES, *BYTES):
        place = folder / f"{source}-{kind}"
        place.mkdir(parents=True)
        (place / name).write_bytes(BYTES[kind](sound) if kind in BYTES else sound)
        if kind in CHANGES:
            with closing(sqlite3.connect(place / name)) as database:
                CHANGES[kind](database, table, column)
                database.commit()
        yield f"{source}-{kind}", place / name


def hostile_rollouts(folder: Path) -> Iterator[tuple[str, Path]]:
    zstd = zstd_module()
    sound = (seeds.SAMPLES / "codex" / "samples" / "new-era.jsonl").read_bytes()
    packed = zstd.compress(sound)
    line = b'{"type":"response_item","payload":'
    contents = {
        "zeros": zstd.compress(sound + bytes(120_000_000)),
        "one-line": zstd.compress(sound + line + b'"' + b"a" * 120_000_000),
        "many-lines": zstd.compress(sound + b"{}\n" * 40_000_000),
        "torn": packed[: len(packed) // 2],
        "garbage-after": packed + bytes(range(256)) * 20,
        "many-frames": zstd.compress(sound) + zstd.compress(b"{}\n") * 20_000,
        "skippable": b"\x50\x2a\x4d\x18" + (50).to_bytes(4, "little") + bytes(50) + packed,
        "large-window": b"\x28\xb5\x2f\xfd\x00\xff" + packed[6:],
        "deep": zstd.compress(sound + line + deep(100_000).encode() + b"}\n"),
        "nested": zstd.compress(zstd.compress(sound)),
    }
    for kind, data in contents.items():
        place = folder / f"codex-{kind}" / f"{ROLLOUT}.zst"
        place.parent.mkdir(parents=True)
        place.write_bytes(data)
        yield f"codex-{kind}", place


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of a process from /proc")
def test_each_is_told_and_memory_is_bounded(tmp_path: Path) -> None:
    given = [(name, path) for source in DATABASES for name, path in hostile_databases(source, tmp_path / "given")]
    given += hostile_rollouts(tmp_path / "given")
    assert len(given) >= 50
    env = {**os.environ, "EVERTURN_HOME": str(tmp_path / "home"), "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    peaks: dict[str, int] = {}
    untold, told = list[str](), dict[str, str]()
    for source in (*DATABASES, "codex"):
        paths = {str(path): name for name, path in given if name.startswith(f"{source}-")}
        words = [sys.executable, "-c", MEASURED, "add", *paths, "--as", source, "--json"]
        ran = subprocess.run(words, env=env, capture_output=True, check=False, timeout=600)
        assert b"Traceback" not in ran.stderr, ran.stderr.decode()[-2000:]
        peaks[source] = int(ran.stderr.decode().rpartition("VmHWM:")[2].split()[0]) * 1024
        report = json.loads(ran.stdout)["report"]
        told |= {paths.get(path, path): why for path, why in (*report["failed"], *report["skipped"], *report["doubts"])}
        with closing(open_store(str(tmp_path / "home" / "archive.db"))) as store:
            stored = {file.path for file, _ in store.files()}
        untold += [name for path, name in paths.items() if name not in told and path not in stored]
    assert untold == []
    assert {"codex-zeros", "codex-one-line", "codex-many-lines"} <= set(told)
    assert max(peaks.values()) <= MOST_MEMORY, {name: f"{peak >> 20} MB" for name, peak in peaks.items()}


@pytest.mark.parametrize(
    "schema",
    [
        f"CREATE VIEW t AS {ENDLESS} SELECT i AS a FROM n",
        "CREATE VIEW t AS SELECT 1 AS a",
        "CREATE TABLE s (b); INSERT INTO s VALUES (1); CREATE TABLE t (b, a AS (zeroblob(900000000))); INSERT INTO t (b) SELECT 1",
        "CREATE TABLE t (b, a AS (hex(zeroblob(9000000)))); INSERT INTO t (b) VALUES (1),(2),(3),(4),(5)",
    ],
)
def test_what_is_not_a_table_with_values_is_a_problem(tmp_path: Path, schema: str) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.executescript(schema)
    with open_snapshot(tmp_path / "a.db") as snapshot:
        assert sum(len(row["a"] or b"") for row in snapshot.rows("SELECT a FROM t")) < 40_000_000
        assert snapshot.problems
