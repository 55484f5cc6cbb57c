"""Vectors in a file beside the archive."""

from __future__ import annotations

import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from everturn.errors import BadVectors
from everturn.retrieval.meaning import VectorSet
from everturn.store.vector_file import VectorFile, vectors_place

NAME = "archive.vectors.db"


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[VectorFile]:
    made = VectorFile(tmp_path / NAME)
    yield made
    made.close()


def test_what_was_put_is_there_after_opening_again(vectors: VectorFile, tmp_path: Path) -> None:
    face: VectorSet = vectors
    face.put(1, "g", [(0, b"\1\2"), (5, b"\3\4")], 6)
    vectors.close()
    again = VectorFile(tmp_path / NAME)

    assert again.get(1, "g", [0, 1, 5]) == {0: b"\1\2", 5: b"\3\4"}
    assert again.upto(1, "g") == 6
    again.close()


def test_vectors_of_another_generation_are_not_there_and_go_with_the_first_new_one(vectors: VectorFile) -> None:
    vectors.put(1, "old", [(0, b"\1"), (1, b"\2")], 2)
    assert vectors.get(1, "new", [0, 1]) == {}
    assert vectors.upto(1, "new") == 0
    vectors.put(1, "new", [(1, b"\3")], 2)

    assert vectors.get(1, "new", [0, 1]) == {1: b"\3"}
    assert vectors.get(1, "old", [0, 1]) == {}


def test_vectors_of_one_generation_add_up(vectors: VectorFile) -> None:
    vectors.put(1, "g", [(0, b"\1")], 1)
    vectors.put(1, "g", [(1, b"\2")], 2)

    assert vectors.get(1, "g", [0, 1]) == {0: b"\1", 1: b"\2"}
    assert vectors.get(1, "g", []) == {}
    assert len(vectors.get(1, "g", range(2000))) == 2


def test_what_is_forgotten_stands_nowhere_in_the_folder(vectors: VectorFile, tmp_path: Path) -> None:
    canary = b"qzwvxkjyqzzvbnmq"
    vectors.put(1, "g", [(seq, canary * 8) for seq in range(500)], 500)
    vectors.put(2, "g", [(0, b"stays" * 8)], 1)
    assert any(canary in path.read_bytes() for path in tmp_path.iterdir())
    vectors.forget(1)

    assert not any(canary in path.read_bytes() for path in tmp_path.iterdir())
    assert vectors.get(2, "g", [0]) == {0: b"stays" * 8}


@pytest.mark.skipif(sys.platform == "win32", reason="no permission bits there")
def test_the_file_is_its_owners_alone(vectors: VectorFile, tmp_path: Path) -> None:
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


def test_how_much_there_is_of_each_session_is_known_without_reading_it(vectors: VectorFile) -> None:
    vectors.put(1, "g", [(0, b"\1"), (2, b"\2")], 3)
    vectors.put(1, "g", [(3, b"\3")], 4)
    vectors.put(2, "h", [], 5)
    assert vectors.held() == {1: ("g", 4, 3), 2: ("h", 5, 0)}
    vectors.put(1, "h", [(0, b"\1")], 1)
    assert vectors.held()[1] == ("h", 1, 1)


def test_two_that_make_the_same_vectors_at_once_count_them_once_and_do_not_lead_back(vectors: VectorFile) -> None:
    vectors.put(1, "g", [(0, b"\1"), (1, b"\2"), (2, b"\3")], 3)
    vectors.put(1, "g", [(0, b"\1"), (1, b"\2")], 2)
    assert vectors.held() == {1: ("g", 3, 3)}


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("content", [b"something else entirely, long enough to be looked at" * 20, b"SQLite format 3"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes, create: bool) -> None:
    (tmp_path / NAME).write_bytes(content)

    with pytest.raises(BadVectors, match="delete it"):
        VectorFile(tmp_path / NAME, create)


def test_another_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / NAME)) as other:
        other.executescript("CREATE TABLE embedded (x)")
    before = (tmp_path / NAME).read_bytes()

    with pytest.raises(BadVectors):
        VectorFile(tmp_path / NAME, create=False)
    assert (tmp_path / NAME).read_bytes() == before


def test_every_archive_has_a_file_of_its_own() -> None:
    data = Path("/data")
    assert vectors_place("/x/archive.db", data, "") == Path("/x/archive.vectors.db")
    assert vectors_place("sqlite:/x/laptop", data, "") == Path("/x/laptop.vectors.db")
    assert vectors_place("postgresql://u@h/d", data, "ab12") == Path("/data/ab12.vectors.db")
    assert vectors_place("postgresql://u@h/d", data, "") is None
    assert vectors_place("memory:", data, "") is None
