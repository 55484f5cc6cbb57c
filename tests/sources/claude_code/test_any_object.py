"""Any JSON object is a record: whatever its fields hold, it is read, counted and can be viewed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.model import vocabulary
from everturn.sources.claude_code import SOURCE
from everturn.sources.contract import SourceCandidate
from tests.sources.claude_code.reading import read, samples
from tests.sources.goldens import with_odd_value

RECORDS = [
    json.loads(line)
    for path in samples()
    if path.stem not in ("broken-lines", "glued", "nul", "torn")
    for line in path.read_bytes().splitlines()
]
FOUND = SourceCandidate(Path("s.jsonl"), "main", "s")

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["", "user", "tool_result", "\ud800", "\0"]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=8,
)


@given(seed=st.integers(0, 2**64), values=st.lists(anything, min_size=1, max_size=3))
@settings(max_examples=300)
def test_an_odd_value_anywhere_is_read_all_the_same(seed: int, values: list[Any]) -> None:
    dice = random.Random(seed)
    record = dice.choice(RECORDS)
    for value in values:
        record = with_odd_value(record, value, dice)
    line = json.dumps(record).encode()
    assert_read(line)


@given(
    record=st.dictionaries(st.sampled_from(["type", "message", "uuid", "data", "attachment", "content", "x"]), anything)
)
@settings(max_examples=150)
def test_any_object_is_read(record: dict[str, Any]) -> None:
    assert_read(json.dumps(record).encode())


def assert_read(line: bytes) -> None:
    whole = read(FOUND, line + b"\n")
    assert (whole.lines, whole.glued) == (1, 0)
    assert sum(whole.census.values()) == 1
    assert not whole.problems
    messages = [message for found in whole.messages.values() for message in found]
    for message in messages:
        assert message.kind in vocabulary.MESSAGE_KINDS
        assert message.size == len(line)
        for block in message.blocks:
            block.text.encode()
        viewed = SOURCE.view(line)
        assert viewed is not None
        assert [block.text for block in viewed.blocks] == [block.text for block in message.blocks]
    for facts in whole.facts.values():
        for value in facts.values():
            assert isinstance(value, int) or "\0" not in value
