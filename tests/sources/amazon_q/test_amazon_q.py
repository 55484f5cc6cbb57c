"""Conversations of Amazon Q CLI, in a database and saved by hand."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from everturn.sources.amazon_q import SOURCE
from everturn.sources.contract import SearchPlaces, SourceCandidate
from tests.fuzz.seeds import scripted_database
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zoo") / "data.sqlite3"
    scripted_database(path, "amazon_q").close()
    return path


def test_the_bytes_of_a_saved_conversation_are_kept() -> None:
    with goldens.ingest("amazon_q", SAMPLES / "saved.json") as taken:  # checks the bytes
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
        scripted_database(tmp_path / ".local" / "share" / name / "data.sqlite3", "amazon_q").close()
    roots = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux"))
    assert [found.path.parent.name for root in roots for found in SOURCE.find(root)] == ["amazon-q", "kiro-cli"]
    empty = tmp_path / "x.db"
    sqlite3.connect(empty).execute("CREATE TABLE conversations (name TEXT)").connection.close()
    assert SOURCE.unpack is not None
    assert list(SOURCE.unpack(SourceCandidate(empty, "container"), empty)) == []
