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
from tests.sources.goldens import assert_same, assert_survives, damaged, found_for, read

FILES = sorted((Path(__file__).parent / "samples").glob("*.jsonl"))
LINES = {path.stem: path.read_bytes().splitlines(keepends=True) for path in FILES}
FOUND = SourceCandidate(Path("rollout.jsonl"), "main", "01999c1a-0000-7000-8000-0000000000a1")
LOG = SourceCandidate(Path("session.jsonl"), "main", "01999c1a-0000-7000-8000-0000000000a1/screen-log")


@pytest.mark.parametrize("name", ["broken", "tokens-first", "screen-log"])
def test_a_file_that_grows_line_by_line_and_byte_by_byte_reads_the_same(name: str) -> None:
    path = next(path for path in FILES if path.stem == name)
    data = path.read_bytes()
    found, cuts = found_for(SOURCE, path, data), range(1, len(data), 7)
    assert_same(read(SOURCE, found, data, cuts, [True] * len(data)), read(SOURCE, found, data))


@given(seed=st.integers(0, 2**64))
@settings(max_examples=150)
def test_no_damage_stops_the_reader_of_the_screen_log(seed: int) -> None:
    assert_survives(SOURCE, LOG, damaged(LINES["screen-log"], random.Random(seed), 40), seed)


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
