"""A transcript that was saved as one document: `{"loglines": […]}`."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.claude_code import SOURCE
from everturn.sources.claude_code.whole_files import form_of
from everturn.sources.contract import SourceCandidate
from tests.sources import goldens


def record(role: str, second: int, content: Any) -> dict[str, Any]:
    at = f"2026-03-01T10:00:{second:02d}.000Z"
    return {"type": role, "timestamp": at, "message": {"role": role, "content": content}}


LOGLINES: list[Any] = [
    record("user", 0, "count the walruses"),
    record("assistant", 2, [{"type": "text", "text": "I count."}, {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "zoo.py"}}]),
    record("user", 3, [{"type": "tool_result", "tool_use_id": "t1", "content": "herd = 3", "is_error": False}]),
    record("assistant", 5, [{"type": "text", "text": "Three."}]),
    {"type": "walrus-of-the-future", "timestamp": "2026-03-01T10:00:06.000Z", "words": "tusk"},
]  # fmt: skip
SHAPES = {
    "dense": json.dumps({"loglines": LOGLINES}, separators=(",", ":")).encode(),
    "spread": json.dumps({"loglines": LOGLINES}, indent=2).encode() + b"\n",
    "more": b"\xef\xbb\xbf" + json.dumps({"loglines": LOGLINES, "session": {"id": "x"}, "n": 1}, indent=1).encode(),
}
FOUND = SourceCandidate(Path("saved.json"), "main", "saved")


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_read_like_lines_are(shape: str) -> None:
    data = SHAPES[shape]
    assert SOURCE.sniff(Path("/x/saved.json"), data) == SourceCandidate(Path("/x/saved.json"), "main", "saved")
    whole = goldens.read(SOURCE, FOUND, data)
    goldens.assert_keeps_promises(SOURCE, data, whole, lines=False)
    said = [(message.role, message.origin, message.kind) for message in whole.all()]
    assert said == [
        ("user", "human", "text"), ("assistant", "model", "text"), ("tool", "tool", "result"), ("assistant", "model", "text"),
        ("system", "system", "unknown"),
    ]  # fmt: skip
    assert [block.call.path for message in whole.all() for block in message.blocks if block.call] == ["zoo.py"]
    assert whole.lines == len(LOGLINES) + (2 if shape == "more" else 0)
    assert whole.consumed == len(data)
    assert whole.problems == []
    assert (whole.census["(session)", "", "known"], whole.census["(n)", "", "known"]) == (
        (1, 1) if shape == "more" else (0, 0)
    )


@pytest.mark.parametrize("shape", SHAPES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=60)
def test_it_reads_the_same_in_any_pieces(shape: str, seed: int) -> None:
    goldens.assert_same_in_pieces(SOURCE, FOUND, SHAPES[shape], seed)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=200)
def test_no_damage_stops_the_reader(seed: int) -> None:
    dice = random.Random(seed)
    data = goldens.damaged([SHAPES[dice.choice(list(SHAPES))]], dice, most=1)
    goldens.assert_survives(SOURCE, FOUND, data, seed, lines=False)


def test_it_is_kept_byte_for_byte_and_searched(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    path.write_bytes(SHAPES["spread"])
    with goldens.ingest("claude_code", path) as taken:
        assert taken.hits("count the walruses") == ["saved"]
        (session, _) = taken.store.session(1)
        assert (session.n_turns, session.n_steps, session.n_calls) == (1, 2, 1)


@pytest.mark.parametrize(
    "text", ['{"loglines": []}', '{"loglines": [1]}', '{"loglines": [{"type": "user"}]}', '{"other": []}', "{", ""]
)
def test_other_documents_are_not_claimed(text: str) -> None:
    assert SOURCE.sniff(Path("/x/saved.json"), text.encode()) is None


def test_the_form_is_known_as_soon_as_it_can_be() -> None:
    start = b'\xef\xbb\xbf {\n "loglines" : ['
    assert [form_of(start[:n], last=False) for n in range(4, len(start))] == [""] * (len(start) - 4)
    assert form_of(start, last=False) == "document"
    assert form_of(b'{"type"', last=False) == "lines"
    assert form_of(b"\n", last=True) == "lines"
    assert form_of(b"", last=True) == ""


@pytest.mark.parametrize("path", goldens.corpus("claude-code-fixture"))
def test_a_real_fixture_is_claimed_by_this_source_alone_and_read_whole(path: Path) -> None:
    assert [name for name in goldens.claimants(path) if name != "messages"] == ["claude_code"]
    ((_, data, whole),) = goldens.readings(SOURCE, path)
    assert sum(whole.census.values()) == whole.lines + whole.glued
    assert whole.consumed == len(data)
    assert whole.all()
