"""Reading in any pieces gives what reading at once gives, and no damage stops a reader."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.codex import SOURCE
from everturn.sources.contract import SourceCandidate
from tests.sources.goldens import (
    ODD_VALUES,
    assert_same,
    assert_same_in_pieces,
    assert_survives,
    corpus,
    damaged,
    found_for,
    read,
    with_odd_value,
)

FILES = sorted((Path(__file__).parent / "samples").glob("*.jsonl"))
LINES = {path.stem: path.read_bytes().splitlines(keepends=True) for path in FILES}
PIECES = [line for name, lines in LINES.items() for line in lines if name != "screen-log"]
RECORDS = [json.loads(line) for name, lines in LINES.items() for line in lines if name != "broken"]
FOUND = SourceCandidate(Path("rollout.jsonl"), "main", "01999c1a-0000-7000-8000-0000000000a1")
LOG = SourceCandidate(Path("session.jsonl"), "main", "01999c1a-0000-7000-8000-0000000000a1/screen-log")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@given(seed=st.integers(0, 2**32), stopping=st.booleans())
@settings(max_examples=40)
def test_a_sample_reads_the_same_in_any_pieces(path: Path, seed: int, stopping: bool) -> None:
    data = path.read_bytes()
    assert_same_in_pieces(SOURCE, found_for(SOURCE, path, data), data, seed, stopping)


@pytest.mark.parametrize("name", ["broken", "tokens-first", "screen-log"])
def test_a_file_that_grows_line_by_line_and_byte_by_byte_reads_the_same(name: str) -> None:
    path = next(path for path in FILES if path.stem == name)
    data = path.read_bytes()
    found, cuts = found_for(SOURCE, path, data), range(1, len(data), 7)
    assert_same(read(SOURCE, found, data, cuts, [True] * len(data)), read(SOURCE, found, data))


@pytest.mark.parametrize("path", corpus("codex", "codex-tui-log"))
def test_a_real_file_reads_the_same_in_any_pieces(path: Path) -> None:
    data = path.read_bytes()
    assert_same_in_pieces(SOURCE, found_for(SOURCE, path, data), data, len(data))


@given(seed=st.integers(0, 2**64))
@settings(max_examples=300)
def test_no_damage_stops_the_reader_or_escapes_the_count(seed: int) -> None:
    assert_survives(SOURCE, FOUND, damaged(PIECES, random.Random(seed)), seed)


@given(seed=st.integers(0, 2**64))
@settings(max_examples=150)
def test_no_damage_stops_the_reader_of_the_screen_log(seed: int) -> None:
    assert_survives(SOURCE, LOG, damaged(LINES["screen-log"], random.Random(seed), 40), seed)


@given(seed=st.integers(0, 2**64))
@settings(max_examples=300)
def test_an_odd_value_anywhere_is_read_all_the_same(seed: int) -> None:
    dice = random.Random(seed)
    records = [with_odd_value(dice.choice(RECORDS), dice.choice(ODD_VALUES), dice) for _ in range(4)]
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    found = LOG if seed % 5 == 0 else FOUND
    assert_survives(SOURCE, found, data, seed)
    assert SOURCE.sniff(Path("x.jsonl"), data) is None or SOURCE.workspace(data) is not None


def test_the_state_stays_bounded_however_much_there_is_to_remember() -> None:
    lines = []
    for n in range(3000):
        call = {"type": "function_call", "name": "spawn_agent", "call_id": f"c{n}", "arguments": '{"message":"go"}'}
        lines.append(json.dumps({"timestamp": "t", "type": "response_item", "payload": call}))
        event = {"type": "agent_reasoning", "text": f"{n} " + "thought " * 500}
        lines.append(json.dumps({"timestamp": "t", "type": "event_msg", "payload": event}))
    reader = SOURCE.reader(FOUND, b"")
    reader.feed("\n".join(lines).encode(), 0, True)
    assert len(reader.state()) < 100_000


def test_a_state_that_is_not_ours_is_a_fresh_start() -> None:
    for state in (b"\xff\xfe", b"{}", b"\x93\x01\x02\x03"):
        for found in (FOUND, LOG):
            assert SOURCE.reader(found, state).feed(b'{"record_type":"state"}\n', 0, True).consumed == 24
