"""Databases and compressed files that want to do harm. Memory stays bounded, none goes on forever, and each is told."""

from __future__ import annotations

import json
import os
import random
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
from everturn.store.contract import IndexQuery, open_store
from tests.fuzz import seeds
from tests.quick import some
from tests.sources.codex.test_files import NAME as ROLLOUT
from tests.sources.test_hostile_archives import MEASURED, MOST_MEMORY, deep, zipped

#: The databases by format: their name, and the table and column that hold words.
DATABASES = {
    "cursor": ("state.vscdb", "cursorDiskKV", "value"),
    "goose": ("sessions.db", "messages", "content_json"),
    "crush": ("crush.db", "messages", "parts"),
    "opencode": ("opencode.db", "part", "data"),
    "zed": ("threads.db", "threads", "data"),
    "amazon_q": ("data.sqlite3", "conversations_v2", "value"),
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


def hostile_threads(folder: Path) -> Iterator[tuple[str, Path]]:
    """Databases of Zed whose threads are compressed, and want to be more than they are."""
    zstd = zstd_module()
    with tempfile.TemporaryDirectory() as made:
        sound = next(data for path, data in seeds._built("zed", Path(made)) if path == "threads.db")
    thread = b'{"version":"0.3.0","title":"t","messages":'
    contents = {
        "packed-zeros": zstd.compress(thread + b'["' + b"a" * 400_000_000 + b'"]}'),
        "packed-wide": zstd.compress(thread + b"[" + b"[]," * 10_000_000 + b"[]]}"),
        "packed-long": zstd.compress(thread + b'["' + "\U0001f600".encode() * 7_000_000 + b'"]}'),
        "packed-long-broken": zstd.compress(thread + b'["' + "\U0001f600".encode() * 7_000_000 + b"]}"),
        "packed-deep": zstd.compress(thread + deep(100_000).encode() + b"}"),
        "packed-torn": zstd.compress(thread + b"[]}")[:-5],
        "packed-twice": zstd.compress(zstd.compress(thread + b"[]}")),
        "packed-window": b"\x28\xb5\x2f\xfd\x00\xff" + bytes(20),
    }
    for kind, data in contents.items():
        place = folder / f"zed-{kind}" / "threads.db"
        place.parent.mkdir(parents=True)
        place.write_bytes(sound)
        with closing(sqlite3.connect(place)) as database:
            database.execute("UPDATE threads SET data_type='zstd', data=?", (data,))
            database.commit()
        yield f"zed-{kind}", place


def hostile_logs(folder: Path) -> Iterator[tuple[str, Path]]:
    """Archives of Inspect."""
    head = json.dumps({"eval": {"task": "zoo", "run_id": "r", "model": "m"}}).encode()
    sound = json.dumps({"id": "walrus", "epoch": 1, "messages": [{"role": "user", "content": "count"}]}).encode()
    start = sound[:-1] + b',"more":'
    samples: dict[str, list[tuple[str, bytes]]] = {
        "zeros": [("samples/a.json", sound), ("samples/b.json", start + b" " * 100_000_000 + b"1}")],
        "long": [("samples/b.json", start + b'"' + random.Random(1).randbytes(20_000_000).hex().encode() + b'"}')],
        "wide": [("samples/b.json", start + b"[" + b"[]," * 10_000_000 + b"[]]}")],
        "deep": [("samples/b.json", start + deep(100_000).encode() + b"}")],
        "many": [(f"samples/{n}.json", b"{}") for n in range(21_000)],
        "same": [(f"samples/{n}.json", sound) for n in range(500)],
        "names": [
            ("../../samples/a.json", sound),
            ("samples/\x1b]0;owned\x07.json", sound),
            ("/samples/c.json", sound),
        ],
        "odd": [("samples/a.json", b'{"id":[[]],"epoch":{},"messages":{"role":7}}'), ("samples/b.json", b"[1,2]")],
        "torn": [("samples/a.json", sound), ("samples/b.json", sound[:-9])],
        "not-text": [("samples/a.json", sound.replace(b"count", b"\xff\xfe\x00"))],
    }
    for kind, members in samples.items():
        place = folder / f"inspect_eval-{kind}" / "log.eval"
        place.parent.mkdir(parents=True)
        zipped(("header.json", head), *members)(place)
        yield f"inspect_eval-{kind}", place
    packed = place.read_bytes()
    for kind, data in {"cut": packed[: len(packed) // 2], "garbage": packed[:60] + bytes(500)}.items():
        other = folder / f"inspect_eval-{kind}" / "log.eval"
        other.parent.mkdir(parents=True)
        other.write_bytes(data)
        yield f"inspect_eval-{kind}", other
    document = folder / "inspect_eval-document" / "log.json"
    document.parent.mkdir(parents=True)
    document.write_bytes(head[:-1] + b',"samples":[' + sound + b"," + start + b"[" + b"[]," * 8_000_000 + b"[]]}")
    yield "inspect_eval-document", document


def hostile_folders(folder: Path) -> Iterator[tuple[str, Path]]:
    """Conversations of OpenHands: a folder with a file for each event."""
    event = b'{"id":"e1","kind":"MessageEvent","source":"user","llm_message":{"role":"user","content":"count"}'
    state = b'{"id":"c","agent":{"llm":{"model":"m"}},"workspace":{"working_dir":"/zoo"}}'
    events: dict[str, list[bytes]] = {
        "large": [event + b',"more":"' + b"a" * 200_000_000 + b'"}'],
        "wide": [event + b',"more":[' + b"[]," * 8_000_000 + b"[]]}"],
        "long-broken": [event + b',"more":"' + "\U0001f600".encode() * 7_000_000],
        "deep": [event + b',"more":' + deep(100_000).encode() + b"}"],
        "many": [event + b"}"] * 5_000,
        "torn": [event], "not-text": [b"\xff\xfe\x00"], "list": [b"[[1]]"], "lines": [event.replace(b",", b",\n") + b"}"],
        "no-state": [event + b"}"], "large-state": [event + b"}"], "link": [event + b"}"], "pipe": [event + b"}"],
    }  # fmt: skip
    for kind, contents in events.items():
        place = folder / f"openhands-{kind}" / "c0ffee" / "base_state.json"
        (place.parent / "events").mkdir(parents=True)
        place.write_bytes({"no-state": b"{", "large-state": b"[" + b"1," * 100_000_000}.get(kind, state))
        for number, data in enumerate(contents):
            (place.parent / "events" / f"event-{number:05}-x.json").write_bytes(data)
        if kind == "link":
            (folder / "secret.json").write_text('{"kind":"MessageEvent","secret":"walrusword"}')
            (place.parent / "events" / "event-99999-x.json").symlink_to(folder / "secret.json")
        if kind == "pipe":
            os.mkfifo(place.parent / "events" / "event-99999-x.json")
        yield f"openhands-{kind}", place


#: What is not read of these, and has to be told.
TOLD = {
    "codex-zeros", "codex-one-line", "codex-many-lines", "zed-endless-view", "zed-computed-blob", "zed-large-value", "zed-deep",
    "zed-not-json", "zed-packed-zeros", "zed-packed-wide", "zed-packed-deep", "zed-packed-torn", "zed-packed-twice",
    "zed-packed-window", "amazon_q-deep", "amazon_q-not-json",
    "inspect_eval-zeros", "inspect_eval-wide", "inspect_eval-deep", "inspect_eval-many", "inspect_eval-torn", "inspect_eval-cut",
    "inspect_eval-garbage", "inspect_eval-document", "openhands-large", "openhands-link", "openhands-pipe", "openhands-no-state",
    "openhands-large-state",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of a process from /proc")
def test_each_is_told_and_memory_is_bounded(tmp_path: Path) -> None:
    given = [(name, path) for source in DATABASES for name, path in hostile_databases(source, tmp_path / "given")]
    makers = (hostile_rollouts, hostile_threads, hostile_logs, hostile_folders)
    given += [one for make in makers for one in make(tmp_path / "given")]
    assert len(given) >= 100
    env = {**os.environ, "EVERTURN_HOME": str(tmp_path / "home"), "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    peaks: dict[str, int] = {}
    untold, told = list[str](), dict[str, str]()
    chosen = some((*DATABASES, "codex", "inspect_eval", "openhands"), 4)
    for source in chosen:
        paths = {str(path): name for name, path in given if name.startswith(f"{source}-")}
        words = [sys.executable, "-c", MEASURED, "add", *paths, "--as", source, "--json"]
        ran = subprocess.run(words, env=env, capture_output=True, check=False, timeout=600)
        assert b"Traceback" not in ran.stderr, ran.stderr.decode()[-2000:]
        peaks[source] = int(ran.stderr.decode().rpartition("VmHWM:")[2].split()[0]) * 1024
        report = json.loads(ran.stdout)["report"]
        told |= {paths.get(path, path): why for path, why in (*report["failed"], *report["skipped"], *report["doubts"])}
        with closing(open_store(str(tmp_path / "home" / "archive.db"))) as store:
            stored = {file.path for file, _ in store.files()}
            assert not store.search(IndexQuery(((("walrusword",),),)))
        untold += [name for path, name in paths.items() if name not in told and path not in stored]
    assert untold == []
    assert {name for name in TOLD if name.partition("-")[0] in chosen} - set(told) == set()
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
