"""Threads of Zed, in a database built from the sample."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.contract import PartlyUnread, SearchPlaces, SourceCandidate
from everturn.sources.zed import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"


def build_database(path: Path, sample: str) -> Path:
    """Make a database of the sample."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript((SAMPLES / sample).read_text("utf-8"))
    connection.close()
    return path


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_database(tmp_path_factory.mktemp("zoo") / "threads.db", "threads.sql")


def test_the_database_reads_as_expected(database: Path) -> None:
    read = goldens.readings(SOURCE, database)
    goldens.assert_golden(SAMPLES / "threads.sql", [goldens.shown(whole) for _, _, whole in read])
    for _, data, whole in read:
        goldens.assert_keeps_promises(SOURCE, data, whole)


@given(seed=st.integers(0, 2**64), odd=st.sampled_from(goldens.ODD_VALUES))
@settings(max_examples=150)
def test_no_damage_or_odd_value_stops_the_reader(database: Path, seed: int, odd: Any) -> None:
    dice = random.Random(seed)
    found, data, _ = dice.choice(goldens.readings(SOURCE, database))
    lines = data.splitlines(keepends=True)
    goldens.assert_survives(SOURCE, found, goldens.damaged(lines, dice), seed)
    records = [goldens.with_odd_value(json.loads(dice.choice(lines)), odd, dice) for _ in range(4)]
    goldens.assert_survives(SOURCE, found, b"".join(json.dumps(one).encode() + b"\n" for one in records), seed)


def test_calls_say_what_became_of_them(database: Path) -> None:
    with goldens.ingest("zed", database) as taken:
        (session,) = taken.store.sessions_of("zed", "th-1")
        assert [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("read_file", "read", "ok", ""),
            ("terminal", "shell", "error", "exit_status"),
        ]
        assert (session.tokens_in, session.tokens_out, session.tokens_cache_read) == (10, 20, 300)
        about = taken.store.session(session.id)[1]
        assert (about.title, about.workspace, session.model) == ("Counting", "/home/ann/zoo", "claude-x")
        (child,) = taken.store.sessions_of("zed", "th-2")
        assert (child.kind, child.parent, child.n_calls, child.n_errors) == ("subagent", "th-1", 1, 0)


def test_a_compressed_thread_reads_like_a_plain_one(database: Path, tmp_path: Path) -> None:
    from everturn.sources.toolkit.zstd_data import zstd_module

    path = build_database(tmp_path / ".local" / "share" / "zed" / "threads" / "threads.db", "threads.sql")
    connection = sqlite3.connect(path)
    (data,) = connection.execute("SELECT data FROM threads WHERE id='th-1'").fetchone()
    connection.execute("UPDATE threads SET data=?, data_type='zstd' WHERE id='th-1'", (zstd_module().compress(data),))
    connection.commit()
    connection.close()
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux"))
    (found,) = SOURCE.find(root)
    assert goldens.unpacked(SOURCE, found, path)[0][1] == goldens.readings(SOURCE, database)[0][1]
    odd = tmp_path / "other.db"
    sqlite3.connect(odd).execute("CREATE TABLE threads (name TEXT)").connection.close()
    assert SOURCE.unpack is not None
    with pytest.raises(PartlyUnread, match="table of threads"):
        list(SOURCE.unpack(SourceCandidate(odd, "container"), odd))
