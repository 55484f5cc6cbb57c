"""A file is read in pieces that follow each other without a gap, and each says where the next one begins."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from msgspec import structs

from everturn.capture import file_reader as module
from everturn.capture.file_reader import FilePiece, ReaderStart, is_read, probes, read_pieces, start_reader
from everturn.capture.policy import Policy
from everturn.capture.scan import look_at_file
from everturn.model.archive import Version
from everturn.model.conversation import ReadResult
from everturn.sources.contract import SourceCandidate
from everturn.store.contract import Store, open_store
from tests.capture.history import FORMAT, SID, SOURCES, History, current, raw, run

BATCH = 1500


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", BATCH)


@pytest.fixture
def memory() -> Iterator[Store]:
    store = open_store("memory:")
    yield store
    store.close()


def first_intake(store: Store, path: Path, mode: str) -> ReaderStart:
    """The intake of a file that the archive does not know."""
    candidate = look_at_file(SOURCES[FORMAT], SourceCandidate(path, "main", SID), None)
    with path.open("rb") as file:
        return start_reader(store, candidate, mode, file)


def all_pieces(store: Store, path: Path, mode: str) -> list[FilePiece]:
    intake = first_intake(store, path, mode)
    with path.open("rb") as file:
        return list(read_pieces(store, intake, file))


@pytest.mark.parametrize("mode", ["full", "structure"])
def test_pieces_follow_each_other_without_a_gap(mode: str, memory: Store, history: History) -> None:
    path = history.write(b"".join(history.turn(f"ask {n}", "reply") for n in range(12)))
    data, found = path.read_bytes(), all_pieces(memory, path, mode)
    assert len(found) > 3
    assert b"".join(piece.stored for piece in found) == data
    assert [piece.last for piece in found] == [False] * (len(found) - 1) + [True]
    assert sum(len(part.messages) for piece in found for part in piece.reading.parts) == 24
    end = 0
    for piece in found:
        assert (piece.offset, piece.at, piece.failed) == (end, end, "")
        assert 0 < len(piece.stored) <= BATCH
        end += len(piece.stored)
        assert (piece.changes["offset"], piece.changes["size"]) == (end, end)
        assert piece.changes["parsed"] == data.rfind(b"\n", 0, end) + 1
        assert piece.changes["parser"] == SOURCES[FORMAT].parser


def test_only_the_last_piece_makes_a_file_look_unchanged(memory: Store, history: History) -> None:
    """A sync that was killed between two pieces is followed by one that goes on."""
    path = history.write(b"".join(history.turn(f"ask {n}", "reply") for n in range(12)))
    *before, last = all_pieces(memory, path, "full")
    assert before and {piece.changes["mtime_ns"] for piece in before} == {0}
    assert all("file_size" not in piece.changes for piece in before)
    info = path.stat()
    assert (last.changes["mtime_ns"], last.changes["file_size"]) == (info.st_mtime_ns, info.st_size)


def test_without_bytes_of_its_own_a_piece_ends_with_a_line(memory: Store, history: History) -> None:
    path = history.write(b"".join(history.turn(f"ask {n}", "reply") for n in range(12)))
    assert all(piece.stored.endswith(b"\n") for piece in all_pieces(memory, path, "structure"))
    assert not all(piece.stored.endswith(b"\n") for piece in all_pieces(memory, path, "full"))


@pytest.mark.parametrize("mode", ["full", "structure"])
def test_a_line_longer_than_a_piece_is_read_whole(mode: str, memory: Store, history: History) -> None:
    long = history.line("user", "word " * BATCH)
    path = history.write(long + b"".join(history.turn(f"ask {n}", "reply") for n in range(12)))
    found = all_pieces(memory, path, mode)
    assert len(long) <= len(found[0].stored) + BATCH and len(found[0].stored) < len(long) + BATCH
    assert b"".join(piece.stored for piece in found) == path.read_bytes()
    assert sum(len(part.messages) for piece in found for part in piece.reading.parts) == 25


@pytest.mark.parametrize(("mode", "kept"), [("full", True), ("structure", False)])
def test_half_a_line_at_the_end_is_only_stored_where_all_bytes_are(
    mode: str, kept: bool, memory: Store, history: History
) -> None:
    whole, half = history.turn("a", "b"), history.line("user", "c")[:-20]
    (piece,) = all_pieces(memory, history.write(whole + half), mode)
    assert piece.stored == whole + half * kept
    assert (piece.changes["offset"], piece.changes["parsed"]) == (len(piece.stored), len(whole))
    assert piece.last


def test_an_empty_file_is_one_empty_piece(memory: Store, history: History) -> None:
    (piece,) = all_pieces(memory, history.write(b""), "full")
    assert (piece.stored, piece.last, piece.changes["offset"]) == (b"", True, 0)


def test_a_file_that_has_grown_since_is_not_read_yet_to_its_end(memory: Store, history: History) -> None:
    path = history.write(history.turn("a", "b"))
    intake = first_intake(memory, path, "full")
    with path.open("rb") as file:
        assert not is_read(intake, file)
    run(memory, history)
    row = memory.file("box", str(path))
    assert row is not None
    known = look_at_file(SOURCES[FORMAT], SourceCandidate(path, "main", SID), row)
    with path.open("rb") as file:
        intake = start_reader(memory, known, "full", file)
        assert intake.reason == "" and is_read(intake, file)
        history.grow(b"\n")
        assert not is_read(intake, file)


def test_a_grown_file_is_told_from_a_rewritten_one_by_its_first_and_last_kilobyte() -> None:
    data = bytes(range(256)) * 20
    seen = probes(io.BytesIO(data), 4000)
    assert probes(io.BytesIO(data + b"more"), 4000) == seen
    changed = [bytes([*data[:at], data[at] ^ 1, *data[at + 1 :]]) for at in (0, 1023, 1024, 2975, 2976, 3999, 4000)]
    told = [probes(io.BytesIO(one), 4000) for one in changed]
    assert [one["head"] != seen["head"] for one in told] == [True, True, False, False, False, False, False]
    assert [one["tail"] != seen["tail"] for one in told] == [False, False, False, False, True, True, False]


def test_a_file_is_compared_whole_when_it_is_another_one(store: Store, history: History) -> None:
    """A change between the first and the last kilobyte, in a file that has grown and has another inode."""
    data = b"".join(history.turn(f"ask {n}", "reply") for n in range(12))
    path = history.write(data)
    run(store, history)
    other = data.replace(b'"ask 6"', b'"ask 7"') + history.turn("more", "reply")
    path.with_suffix(".new").write_bytes(other)
    path.with_suffix(".new").rename(path)
    assert run(store, history).rewritten == 1
    assert (raw(store, path, 1), raw(store, path, 2)) == (data, other)
    assert current(store).n_turns == 13


@pytest.mark.parametrize(("mode", "shares"), [("full", True), ("redacted", False)])
def test_a_rewritten_file_begins_with_the_chunks_it_has_in_common(
    mode: str, shares: bool, store: Store, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 4 << 20)
    old = b"".join(history.turn(f"ask {n}", "reply " * 2000) for n in range(60))
    path = history.write(old)
    run(store, history, Policy(mode=mode))
    path.write_bytes(old[:-500] + b"x\n")
    row = store.file("box", str(path))
    assert row is not None
    *common, _ = store.chunks(row[1].id)
    with path.open("rb") as file:
        intake = start_reader(store, look_at_file(SOURCES[FORMAT], SourceCandidate(path, "main", SID), row), mode, file)
        first = next(read_pieces(store, intake, file))
    assert common and (intake.reason, intake.old_version) == ("truncated", row[1].id)
    assert intake.shared == sum(chunk.size for chunk in common) * shares
    assert (first.stored == b"", first.last) == (shares, not shares)
    if shares:
        assert (first.changes["offset"], first.changes["parser"]) == (intake.shared, module.UNFINISHED)


def test_a_version_that_was_never_written_starts_anew(memory: Store, history: History) -> None:
    path = history.write(history.turn("a", "b"))
    run(memory, history)
    row = memory.file("box", str(path))
    assert row is not None
    candidate = look_at_file(SOURCES[FORMAT], SourceCandidate(path, "main", SID), (row[0], Version()))
    with path.open("rb") as file:
        intake = start_reader(memory, candidate, "full", file)
    assert (intake.reason, intake.version.number) == ("first", 1)


class Counting:
    """A reader that takes whatever it gets; it breaks at one of the pieces."""

    def __init__(self, breaks_at: int = 0) -> None:
        self.fed = 0
        self.breaks_at = breaks_at

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        self.fed += 1
        if self.fed == self.breaks_at:
            raise ZeroDivisionError
        return module.empty_result(len(data))

    def state(self) -> bytes:
        return b"%d" % self.fed


def read_by(reader: Counting, store: Store, path: Path) -> Iterator[FilePiece]:
    source = structs.replace(SOURCES[FORMAT], reader=lambda found, state: reader)
    with path.open("rb") as file:
        intake = start_reader(store, look_at_file(source, SourceCandidate(path, "main", SID), None), "full", file)
        yield from islice(read_pieces(store, intake, file), 50)


def test_each_piece_has_the_state_of_its_reader(memory: Store, history: History) -> None:
    found = list(read_by(Counting(), memory, history.write(b"x" * 99 + b"\n" + b"y\n" * BATCH)))
    assert [piece.changes["state"] for piece in found] == [b"1", b"2", b"3"]


def test_a_reader_that_broke_is_not_asked_again(memory: Store, history: History) -> None:
    reader = Counting(breaks_at=2)
    found = list(read_by(reader, memory, history.write(b"y\n" * BATCH * 2)))
    assert [bool(piece.failed) for piece in found] == [False, True, False, False]
    assert reader.fed == 2 and found[1].changes["parser"] == -1


def test_a_file_is_read_to_the_size_it_had_at_first(memory: Store, history: History) -> None:
    data = b"y\n" * (BATCH - 100)
    path = history.write(data)
    found = []
    for piece in read_by(Counting(), memory, path):
        found.append(piece)
        history.grow(b"z\n" * 10)
    assert b"".join(piece.stored for piece in found) == data


def test_a_file_that_is_cut_while_it_is_read_ends_there(memory: Store, history: History) -> None:
    path = history.write(b"y\n" * BATCH * 40)
    found = []
    for piece in read_by(Counting(), memory, path):
        found.append(piece)
        os.truncate(path, BATCH)
    assert [piece.last for piece in found] == [False] * (len(found) - 1) + [True]
    assert found[-1].stored == b"" and len(found) < 50
