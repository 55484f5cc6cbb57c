"""Reading in any pieces gives what reading at once gives, and no damage stops a reader."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.contract import SourceCandidate
from everturn.sources.kimi import SOURCE
from tests.sources.goldens import (
    ODD_VALUES,
    assert_same_in_pieces,
    assert_survives,
    damaged,
    found_for,
    with_odd_value,
)

FILES = sorted((Path(__file__).parent / "samples").glob("*.jsonl"))
PIECES = [line for path in FILES for line in path.read_bytes().splitlines(keepends=True)]
RECORDS = [json.loads(line) for line in PIECES if line.endswith(b"\n")]
FOUND = SourceCandidate(Path("session.jsonl"), "main", "one")
AGENT = SourceCandidate(Path("wire.jsonl"), "subagent", "one/a", "one")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@given(seed=st.integers(0, 2**32), stopping=st.booleans())
@settings(max_examples=40)
def test_a_sample_reads_the_same_in_any_pieces(path: Path, seed: int, stopping: bool) -> None:
    data = path.read_bytes()
    assert_same_in_pieces(SOURCE, found_for(SOURCE, path, data), data, seed, stopping)


@given(seed=st.integers(0, 2**64))
@settings(max_examples=300)
def test_no_damage_stops_the_reader_or_escapes_the_count(seed: int) -> None:
    assert_survives(SOURCE, FOUND, damaged(PIECES, random.Random(seed)), seed)


@given(seed=st.integers(0, 2**64))
@settings(max_examples=300)
def test_an_odd_value_anywhere_is_read_all_the_same(seed: int) -> None:
    dice = random.Random(seed)
    records = [with_odd_value(dice.choice(RECORDS), dice.choice(ODD_VALUES), dice) for _ in range(4)]
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    for found in (FOUND, AGENT):
        assert_survives(SOURCE, found, data, seed)
    assert SOURCE.sniff(Path("x.jsonl"), data) is None or SOURCE.workspace(data) is not None


def test_the_state_stays_small() -> None:
    reader = SOURCE.reader(FOUND, b"")
    reader.feed(b"".join(line for line in PIECES if line.endswith(b"\n")) * 50, 0, True)
    assert len(reader.state()) < 300


def test_a_state_that_is_not_ours_is_a_fresh_start() -> None:
    for state in (b"\xff\xfe", b"{}", b"\x93\x01\x02\x03"):
        assert SOURCE.reader(FOUND, state).feed(b'{"type":"label"}\n', 0, True).consumed == 17
