"""Sessions of Crush, in a database built from the sample."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.crush import SOURCE
from tests.fuzz.seeds import scripted_database
from tests.sources import goldens


def build_database(folder: Path) -> Path:
    """Make the database of a project."""
    path = folder / ".crush" / "crush.db"
    scripted_database(path, "crush").close()
    return path


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
