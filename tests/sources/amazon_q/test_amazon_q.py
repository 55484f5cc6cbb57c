"""Conversations of Amazon Q CLI, in a database and saved by hand."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.amazon_q import SOURCE
from everturn.sources.contract import SearchPlaces, SourceCandidate
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
    return build_database(tmp_path_factory.mktemp("zoo") / "data.sqlite3", "data.sql")


def test_the_database_reads_as_expected(database: Path) -> None:
    read = goldens.readings(SOURCE, database)
    goldens.assert_golden(SAMPLES / "data.sql", [goldens.shown(whole) for _, _, whole in read])
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


def test_a_saved_conversation_reads_as_expected() -> None:
    path = SAMPLES / "saved.json"
    ((_, data, whole),) = goldens.readings(SOURCE, path)
    goldens.assert_golden(path, goldens.shown(whole))
    goldens.assert_keeps_promises(SOURCE, data, whole)
    with goldens.ingest("amazon_q", path) as taken:  # checks that the bytes of the file are kept
        assert taken.report.failed == []


def test_calls_say_what_became_of_them(database: Path) -> None:
    with goldens.ingest("amazon_q", database) as taken:
        (session,) = taken.store.sessions_of("amazon_q", "c0ffee00-0000-4000-8000-000000000001")
        assert [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("fs_read", "read", "ok", ""),
            ("execute_bash", "shell", "error", "other"),
            ("", "other", "orphan", "other"),
        ]
        assert (session.n_turns, taken.store.session(session.id)[1].workspace) == (2, "/home/ann/zoo")
        (old,) = taken.store.sessions_of("amazon_q", "c0ffee00-0000-4000-8000-000000000002")
        assert (old.n_turns, taken.store.session(old.id)[1].workspace) == (1, "/home/ann/old zoo")
        (held,) = [version for file, version in taken.store.files() if file.kind == "container"]
        assert b"not a token" not in taken.store.read_raw(held.id, 0, held.size)


def test_the_databases_of_both_programs_are_found(tmp_path: Path) -> None:
    for name in ("amazon-q", "kiro-cli"):
        build_database(tmp_path / ".local" / "share" / name / "data.sqlite3", "data.sql")
    roots = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux"))
    assert [found.path.parent.name for root in roots for found in SOURCE.find(root)] == ["amazon-q", "kiro-cli"]
    empty = tmp_path / "x.db"
    sqlite3.connect(empty).execute("CREATE TABLE conversations (name TEXT)").connection.close()
    assert SOURCE.unpack is not None
    assert list(SOURCE.unpack(SourceCandidate(empty, "container"), empty)) == []
