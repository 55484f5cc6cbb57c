"""Reading in any pieces gives what reading at once gives, and no damage stops a reader."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.claude_code import SOURCE
from everturn.sources.contract import SourceCandidate
from tests.quick import QUICK
from tests.sources.claude_code.reading import Whole, corpus, found_for, read, samples, shown

SMALL = [path for path in corpus() if path.stat().st_size < 100_000]
STATE_LIMIT = 300_000


def assert_same(one: Whole, other: Whole) -> None:
    assert shown(one)["problems"] == shown(other)["problems"]
    assert one.census == other.census
    assert (one.lines, one.glued, one.consumed) == (other.lines, other.glued, other.consumed)
    assert one.messages == other.messages
    assert one.links == other.links
    assert one.facts == other.facts


@pytest.mark.few(8)
@pytest.mark.parametrize("path", samples(), ids=lambda path: path.stem)
@given(seed=st.integers(0, 2**32), stopping=st.booleans())
@settings(max_examples=40)
def test_a_sample_reads_the_same_in_any_pieces(path: Path, seed: int, stopping: bool) -> None:
    data = path.read_bytes()
    found, dice = found_for(path, data), random.Random(seed)
    cuts = sorted(dice.sample(range(len(data)), min(dice.randint(1, 12), len(data) - 1)))
    stops = [stopping and dice.random() < 0.7 for _ in cuts]
    assert_same(read(found, data, cuts, stops), read(found, data))


@pytest.mark.parametrize("name", ["glued", "nul", "torn", "queue-old"])
def test_a_file_that_grows_byte_by_byte_reads_the_same(name: str) -> None:
    path = next(path for path in samples() if path.stem == name)
    data = path.read_bytes()
    found, cuts = found_for(path, data), range(1, len(data))
    assert_same(read(found, data, cuts, [True] * len(data)), read(found, data))


@pytest.mark.skipif(not SMALL, reason="no real transcripts beside the checkout")
@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_a_real_transcript_reads_the_same_in_any_pieces(path: Path) -> None:
    data = path.read_bytes()
    found, dice = found_for(path, data), random.Random(path.stem)
    at_once = read(found, data)
    for _ in range(6):
        cuts = sorted(dice.sample(range(len(data)), 20))
        assert_same(read(found, data, cuts, [dice.random() < 0.7 for _ in cuts]), at_once)


@pytest.mark.parametrize("path", samples() + corpus(), ids=lambda path: path.stem)
def test_the_state_stays_small(path: Path) -> None:
    data = path.read_bytes()
    reader = SOURCE.reader(found_for(path, data), b"")
    reader.feed(data, 0, True)
    assert len(reader.state()) < 10_000


@pytest.mark.slow
def test_the_state_stays_bounded_however_much_there_is_to_remember() -> None:
    lines = []
    many = 3000 if QUICK else 6000
    for n in range(many):
        uuid = f"{n:08x}-1111-4222-8333-{n:012x}"
        lines.append(
            f'{{"type":"user","uuid":"{uuid}","isSidechain":true,"sessionId":"s","message":{{"content":"{n}"}}}}'
        )
        lines.append(f'{{"type":"queue-operation","operation":"enqueue","content":"{n} {"word " * 20}"}}')
        lines.append(f'{{"type":"summary","summary":"title {n}","leafUuid":"gone-{n}"}}')
    reader = SOURCE.reader(SourceCandidate(Path("s.jsonl"), "main", "s"), b"")
    reading = reader.feed("\n".join(lines).encode(), 0, True)
    assert len(reader.state()) < STATE_LIMIT
    queued = [message for part in reading.parts for message in part.messages if message.kind == "queued"]
    assert len(queued) > many - 2000  # what there was no room for was said at once, not lost


def test_a_state_that_is_not_ours_is_a_fresh_start() -> None:
    found = SourceCandidate(Path("s.jsonl"), "main", "s")
    for state in (b"\xff\xfe", b"{}", b"\x93\x01\x02\x03"):
        assert SOURCE.reader(found, state).feed(b'{"type":"mode"}\n', 0, True).consumed == 16


PIECES = [line for path in samples() for line in path.read_bytes().splitlines(keepends=True)]


STRAY = [b"\n", b"\r\n", b'"', b"{", b"}", b"[", b"\\", b"\xff", b"\xef\xbb\xbf", b"\\ud800"]


def damaged(dice: random.Random) -> bytes:
    """A transcript-like file that something bad has happened to."""
    data = b"".join(dice.choices(PIECES, k=dice.randint(1, 6)))
    for _ in range(dice.randint(1, 6)):
        at, size = dice.randrange(len(data) + 1), dice.randint(1, 80)
        before, hit, after = data[:at], data[at : at + size], data[at + size :]
        harms = [
            before + bytes([dice.randrange(256)]) + hit[1:] + after,
            before + after,
            before + hit + hit + after,
            before + bytes(size) + hit + after,
            before + bytes(len(hit)) + after,
            before,
            before + dice.choice(STRAY) + hit + after,
        ]
        data = dice.choice(harms)
    return data


@given(seed=st.integers(0, 2**64))
@settings(max_examples=1000)
def test_no_damage_stops_the_reader_or_escapes_the_count(seed: int) -> None:
    dice = random.Random(seed)
    data = damaged(dice)
    found = SourceCandidate(
        Path("0b5e7c1a-3f7d-4c55-9a3e-6f1d2b8c9e10.jsonl"), "main", "0b5e7c1a-3f7d-4c55-9a3e-6f1d2b8c9e10"
    )
    whole = read(found, data)
    assert sum(whole.census.values()) == whole.lines + whole.glued
    assert data.count(b"\n") <= whole.lines <= data.count(b"\n") + 1
    left = data[whole.consumed :]
    assert b"\n" not in left
    assert not left.strip() or [(p.start, p.size) for p in whole.tail] == [(whole.consumed, len(left))]
    for message in (message for messages in whole.messages.values() for message in messages):
        assert SOURCE.view(data[message.start : message.start + message.size]) is not None
    cuts = sorted(dice.sample(range(len(data)), min(5, len(data)))) if data else []
    assert_same(read(found, data, cuts, [dice.random() < 0.5 for _ in cuts]), whole)
    for problem in whole.problems + whole.tail:
        assert 0 <= problem.start <= problem.start + problem.size <= len(data)
