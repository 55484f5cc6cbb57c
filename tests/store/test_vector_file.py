"""Vectors in a file beside the archive."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from everturn.errors import BadVectors
from everturn.store.vector_file import (
    FULL,
    NearVectors,
    VectorFile,
    make_block,
    pack_vectors,
    sign_bits,
    sketch_block,
    trust_of,
    unpack_vector,
    vectors_place,
)

NAME = "archive.vectors.db"
ONE, TWO, THREE = pack_vectors([[1.0, 0.0], [0.0, 1.0], [0.6, -0.8]])


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[VectorFile]:
    made = VectorFile(tmp_path / NAME)
    yield made
    made.close()


def test_what_was_put_is_there_after_opening_again(vectors: VectorFile, tmp_path: Path) -> None:
    vectors.put(1, "g", [(0, ONE), (5, TWO)], 6)
    vectors.close()
    again = VectorFile(tmp_path / NAME)

    assert again.get(1, "g", [0, 1, 5]) == {0: ONE, 5: TWO}
    assert again.upto(1, "g") == 6
    again.close()


def test_vectors_of_another_generation_are_not_there_and_go_with_the_first_new_one(vectors: VectorFile) -> None:
    vectors.put(1, "old", [(0, ONE), (1, TWO)], 2)
    assert vectors.get(1, "new", [0, 1]) == {}
    assert vectors.upto(1, "new") == 0
    vectors.put(1, "new", [(1, THREE)], 2)

    assert vectors.get(1, "new", [0, 1]) == {1: THREE}
    assert vectors.get(1, "old", [0, 1]) == {}


def test_vectors_of_one_generation_add_up(vectors: VectorFile) -> None:
    vectors.put(1, "g", [(0, ONE)], 1)
    vectors.put(1, "g", [(1, TWO)], 2)

    assert vectors.get(1, "g", [0, 1]) == {0: ONE, 1: TWO}
    assert vectors.get(1, "g", []) == {}
    assert len(vectors.get(1, "g", range(2000))) == 2


def test_what_is_forgotten_stands_nowhere_in_the_folder(vectors: VectorFile, tmp_path: Path) -> None:
    canary = b"qzwvxkjyqzzvbnmq"
    vectors.put(1, "g", [(seq, canary * 8) for seq in range(500)], 500)
    vectors.put(2, "g", [(0, b"\1\1\1\1\1stays")], 1)
    assert any(canary in path.read_bytes() for path in tmp_path.iterdir())
    vectors.forget(1)

    assert not any(canary in path.read_bytes() for path in tmp_path.iterdir())
    assert vectors.get(2, "g", [0]) == {0: b"\1\1\1\1\1stays"}


def test_a_long_session_has_several_blocks_and_the_newest_come_first(vectors: VectorFile) -> None:
    for first in range(0, 600, 60):
        vectors.put(1, "g", [(seq, ONE) for seq in range(first, first + 60)], first + 60)
    vectors.put(2, "g", [(7, TWO)], 8)
    blocks = [(session, len(data) // (len(ONE) + 4)) for session, data in vectors.blocks([1, 2, 3])]

    assert blocks == [(2, 1), (1, 600 - 2 * FULL), (1, FULL), (1, FULL)]
    assert list(vectors.blocks([2])) == [(2, (7).to_bytes(4, "little") + TWO)]
    assert sorted(vectors.get(1, "g", range(1000))) == list(range(600))


def test_blocks_of_many_sessions_are_those_of_each(vectors: VectorFile) -> None:
    for session in range(300):
        vectors.put(session, "g", [(0, ONE if session % 2 else TWO)], 1)
    one_by_one = [block for session in range(298, -1, -2) for block in vectors.blocks([session])]

    assert list(vectors.blocks(range(0, 300, 2))) == one_by_one
    assert list(vectors.blocks(range(300))) == [*vectors.blocks(range(150, 300)), *vectors.blocks(range(150))]


def test_the_sum_follows_what_is_added_replaced_and_forgotten(vectors: VectorFile) -> None:
    vectors.put(1, "m/2/a", [(0, ONE), (1, TWO)], 2)
    vectors.put(2, "m/2/b", [(0, THREE)], 1)
    vectors.put(3, "other/2/c", [(0, TWO)], 1)
    n, total = vectors.centre("m/2")
    assert n == 3 and total == pytest.approx([1.6, 0.2], abs=0.02)
    vectors.put(1, "m/2/new", [(0, ONE)], 1)
    vectors.forget(2)
    n, total = vectors.centre("m/2")
    assert n == 1 and total == pytest.approx([1.0, 0.0], abs=1e-6)
    vectors.forget(1)

    assert vectors.centre("m/2") == (0, [])
    assert vectors.centre("other/2")[0] == 1


def test_vectors_of_the_older_layout_go_when_the_file_is_opened(tmp_path: Path) -> None:
    canary = b"qzwvxkjyqzzvbnmq" * 8
    with closing(sqlite3.connect(tmp_path / NAME)) as old:
        old.executescript(
            "CREATE TABLE embedded (session INTEGER PRIMARY KEY, generation TEXT, upto INTEGER, made INTEGER);"
            "CREATE TABLE vector (session INTEGER, seq INTEGER, data BLOB, PRIMARY KEY (session, seq)) WITHOUT ROWID;"
            "INSERT INTO embedded VALUES (1, 'g', 1, 1)"
        )
        old.execute("INSERT INTO vector VALUES (1, 0, ?)", (canary,))
        old.commit()
    opened = VectorFile(tmp_path / NAME, create=False)

    assert opened.held() == {} and opened.get(1, "g", [0]) == {}
    opened.close()
    assert canary not in (tmp_path / NAME).read_bytes()


WRITER = """
import sys
from pathlib import Path
from everturn.store.vector_file import pack_vectors
from everturn.store.vector_file import VectorFile
file = VectorFile(Path(sys.argv[1]))
packed = pack_vectors([[1.0, 2.0]])[0]
for seq in range(10**9):
    file.put(seq % 3, "m/2/g", [(seq, packed)], seq + 1)
    print(seq, flush=True)
"""


def test_a_process_killed_while_it_writes_leaves_vectors_that_can_be_read(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / NAME)], stdout=subprocess.PIPE, env=env) as one:
        assert one.stdout is not None
        lines = [int(one.stdout.readline()) for _ in range(40)]
        one.kill()
        lines += [int(line) for line in one.stdout.read().split(b"\n")[:-1]]
    opened = VectorFile(tmp_path / NAME, create=False)
    held = opened.held()
    count = sum(made for _, _, made in held.values())

    assert count in (len(lines), len(lines) + 1)  # the last one may be written and not yet printed
    assert opened.centre("m/2")[0] == count
    assert sum(len(opened.get(session, "m/2/g", range(10**5))) for session in held) == count
    opened.close()


def test_packed_vectors_keep_their_direction_with_and_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [[3.0, -4.0, 0.0], [0.0, 0.0, 0.0], [1e-9, 2e-9, -3e-9], [0.5, -0.25, 0.125]]
    shares = [0.0, 0.5, 0.75, 1.0]
    packed = pack_vectors(given, shares)
    monkeypatch.setattr("everturn.store.vector_file.numpy_or_none", lambda: None)

    assert pack_vectors(given, shares) == packed
    assert [trust_of(one) for one in packed] == pytest.approx(shares, abs=0.002)
    assert unpack_vector(packed[0]) == pytest.approx([0.6, -0.8, 0.0], abs=0.005)
    assert unpack_vector(packed[1]) == [0.0, 0.0, 0.0]


@pytest.mark.skipif(sys.platform == "win32", reason="no permission bits there")
def test_the_file_is_its_owners_alone(vectors: VectorFile, tmp_path: Path) -> None:
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


def test_how_much_there_is_of_each_session_is_known_without_reading_it(vectors: VectorFile) -> None:
    vectors.put(1, "g", [(0, ONE), (2, TWO)], 3)
    vectors.put(1, "g", [(3, THREE)], 4)
    vectors.put(2, "h", [], 5)
    assert vectors.held() == {1: ("g", 4, 3), 2: ("h", 5, 0)}
    vectors.put(1, "h", [(0, ONE)], 1)
    assert vectors.held()[1] == ("h", 1, 1)


def test_two_that_make_the_same_vectors_at_once_count_them_once_and_do_not_lead_back(vectors: VectorFile) -> None:
    vectors.put(1, "g", [(0, ONE), (1, TWO), (2, THREE)], 3)
    vectors.put(1, "g", [(0, ONE), (1, TWO)], 2)
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


# many vectors ---------------------------------------------------------------------------------------------------------
MODEL, DIMENSIONS = "m/70", 70  # not a multiple of a word


def crowd(vectors: VectorFile, seed: int = 1) -> dict[tuple[int, int], list[float]]:
    """Put 40 sessions of 30 vectors each; those of a session are alike."""
    rolls = random.Random(seed)
    made: dict[tuple[int, int], list[float]] = {}
    for session in range(40):
        middle = [rolls.gauss(0, 1) for _ in range(DIMENSIONS)]
        some = [[number + rolls.gauss(0, 0.4) for number in middle] for _ in range(30)]
        vectors.put(session, f"{MODEL}/g", list(enumerate(pack_vectors(some))), 30)
        made |= {(session, seq): one for seq, one in enumerate(some)}
    return made


def near_sessions(vectors: VectorFile, query: list[float], **request: object) -> list[int]:
    near = NearVectors(MODEL, query, 20, **request)  # type: ignore[arg-type]
    return [session for session, _ in vectors.blocks_near(near)]


@pytest.mark.needs("module:numpy")
@pytest.mark.parametrize("seed", range(3))
def test_of_many_vectors_those_most_like_the_query_are_read(
    vectors: VectorFile, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    made = crowd(vectors, seed)
    assert near_sessions(vectors, made[7, 3]) == list(range(39, -1, -1))  # few: all are read
    monkeypatch.setattr("everturn.store.vector_file.FEW_VECTORS", 10)

    for session, seq in ((7, 3), (0, 0), (39, 29)):
        read = near_sessions(vectors, made[session, seq])
        assert session in read and len(read) <= 20
    assert near_sessions(vectors, made[7, 3], always={5, 6})[:2] == [6, 5]
    assert set(near_sessions(vectors, made[7, 3], sessions={1, 2, 7})) == {7}
    assert near_sessions(vectors, made[7, 3], sessions=set()) == []
    assert near_sessions(vectors, [1.0] * 200) == []  # of another model


@pytest.mark.needs("module:numpy")
def test_what_is_added_and_forgotten_is_noticed_also_from_elsewhere(
    vectors: VectorFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = crowd(vectors)
    monkeypatch.setattr("everturn.store.vector_file.FEW_VECTORS", 10)
    assert 7 in near_sessions(vectors, made[7, 3])
    vectors.forget(7)
    assert 7 not in near_sessions(vectors, made[7, 3])
    with closing(VectorFile(tmp_path / NAME)) as other:
        other.put(99, f"{MODEL}/g", [(0, pack_vectors([made[7, 3]])[0])], 1)
    assert 99 in near_sessions(vectors, made[7, 3])
    with closing(sqlite3.connect(tmp_path / NAME)) as raw:
        assert raw.execute("SELECT COUNT(*) FROM sketch WHERE session=7").fetchone() == (0,)


@pytest.mark.needs("module:numpy")
def test_equal_vectors_without_end_are_not_all_read(vectors: VectorFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everturn.store.vector_file.FEW_VECTORS", 10)
    (same,) = pack_vectors([[1.0] * DIMENSIONS])
    for session in range(60):
        vectors.put(session, f"{MODEL}/g", [(0, same)], 1)

    assert sorted(near_sessions(vectors, [1.0] * DIMENSIONS)) == list(range(40, 60))


@pytest.mark.needs("module:numpy")
def test_a_file_from_before_there_were_sketches_gets_them_when_it_is_opened(
    vectors: VectorFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = crowd(vectors)
    vectors.close()
    with closing(sqlite3.connect(tmp_path / NAME)) as old:
        sketches = old.execute("SELECT * FROM sketch").fetchall()
        old.executescript("DROP TABLE sketch; PRAGMA user_version=0")
    monkeypatch.setattr("everturn.store.vector_file.FEW_VECTORS", 10)

    with closing(VectorFile(tmp_path / NAME, create=False)) as opened:
        assert 7 in near_sessions(opened, made[7, 3])
    with closing(sqlite3.connect(tmp_path / NAME)) as new:
        assert new.execute("SELECT * FROM sketch").fetchall() == sketches


def test_a_sketch_is_the_same_with_and_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    rolls = random.Random(1)
    numbers = [[rolls.choice((-1.0, 0.0, 1.0)) for _ in range(DIMENSIONS)] for _ in range(5)]
    block = make_block(enumerate(pack_vectors(numbers)))
    with_numpy = sketch_block(block, DIMENSIONS)
    monkeypatch.setattr("everturn.store.vector_file.numpy_or_none", lambda: None)

    signs = b"".join(sign_bits([one > 0 for one in some]) for some in numbers)
    assert sketch_block(block, DIMENSIONS) == with_numpy == signs + b"\xff" * 5
