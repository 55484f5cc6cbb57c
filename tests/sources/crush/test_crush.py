"""Sessions of Crush, in a database built from the sample."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.crush import SOURCE
from tests.sources import goldens

SAMPLE = Path(__file__).parent / "samples" / "crush.sql"
FOUND = SourceCandidate(Path("crush.db#s-1"), "main", "s-1")


def build_database(folder: Path) -> Path:
    """Make the database of a project."""
    path = folder / ".crush" / "crush.db"
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.executescript(SAMPLE.read_text())
    connection.close()
    return path


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of the main session."""
    (_, data, _), _ = goldens.readings(SOURCE, build_database(tmp_path_factory.mktemp("zoo")))
    return data.splitlines(keepends=True)


def test_the_sample_reads_as_expected(tmp_path: Path) -> None:
    path = build_database(tmp_path).rename(tmp_path / "crush.db")  # the golden names no folder
    read = goldens.readings(SOURCE, path)
    goldens.assert_golden(SAMPLE, [goldens.shown(whole) for _, _, whole in read])
    for _, data, whole in read:
        goldens.assert_keeps_promises(SOURCE, data, whole)


def test_calls_say_what_became_of_them(tmp_path: Path) -> None:
    with goldens.ingest("crush", build_database(tmp_path)) as taken:
        (session,) = taken.store.sessions_of("crush", "s-1")
        assert [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("view", "read", "ok", ""),
            ("view", "read", "error", "not_found"),
            ("bash", "shell", "error", "exit_status"),
            ("agent", "task", "ok", ""),
        ]
        about = taken.store.session(session.id)[1]
        assert (session.n_turns, about.title, about.workspace) == (1, "Counting walruses", str(tmp_path))
        (child,) = taken.store.sessions_of("crush", "m-4$$call_4")
        assert (child.kind, taken.hits("three walruses")) == ("subagent", ["s-1"])


def test_the_database_of_the_working_folder_is_found(tmp_path: Path) -> None:
    path = build_database(tmp_path / "zoo")
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux", working=tmp_path / "zoo"))
    assert [found.path for found in SOURCE.find(root)] == [path]
    (named,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux", {"crush": (tmp_path,)}))
    assert [found.path for found in SOURCE.find(named)] == [path]


def test_a_database_of_another_shape_has_no_sessions(tmp_path: Path) -> None:
    assert SOURCE.unpack is not None
    path = tmp_path / "crush.db"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE sessions (id TEXT); INSERT INTO sessions VALUES ('x')")
    connection.close()
    assert list(SOURCE.unpack(SourceCandidate(path, "container"), path)) == []
    assert SOURCE.sniff(path, path.read_bytes()) is None


@given(seed=st.integers(0, 2**64))
@settings(max_examples=100)
def test_no_damage_stops_the_reader(lines: list[bytes], seed: int) -> None:
    goldens.assert_survives(SOURCE, FOUND, goldens.damaged(lines, random.Random(seed)), seed)


@given(seed=st.integers(0, 2**64), odd=st.sampled_from(goldens.ODD_VALUES))
@settings(max_examples=200)
def test_any_value_may_stand_anywhere(lines: list[bytes], seed: int, odd: Any) -> None:
    dice = random.Random(seed)
    records = [goldens.with_odd_value(json.loads(dice.choice(lines)), odd, dice) for _ in range(4)]
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    goldens.assert_survives(SOURCE, FOUND, data, seed)
