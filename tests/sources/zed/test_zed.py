"""Threads of Zed, in a database built from the sample."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from everturn.sources.contract import PartlyUnread, SearchPlaces, SourceCandidate
from everturn.sources.zed import SOURCE
from tests.fuzz.seeds import scripted_database
from tests.sources import goldens


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zoo") / "threads.db"
    scripted_database(path, "zed").close()
    return path


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

    path = tmp_path / ".local" / "share" / "zed" / "threads" / "threads.db"
    scripted_database(path, "zed").close()
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
