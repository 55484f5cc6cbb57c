"""`everturn.read`: the turns of a file are those that the archive would have, whatever its format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import everturn
from everturn.errors import MissingPath, NothingFound, UsageError
from everturn.store.contract import SessionFilter
from tests.sources.goldens import ingest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("factory_droid", HERE / "factory_droid" / "samples" / "session.jsonl"),
        ("cline", HERE / "cline" / "samples" / "1754000000000" / "api_conversation_history.json"),
        ("amp", HERE / "amp" / "samples" / "T-019b9d03-62e3-772f-9780-3e637f90ea01.json"),
    ],
)
def test_turns_and_calls_are_those_of_the_archive(source: str, path: Path) -> None:
    turns = everturn.read(path)
    with ingest(source, path) as taken:
        ((session, _),) = taken.store.sessions(SessionFilter())[0]
        rows = taken.store.turns(session.id)
        calls = [call for call in taken.store.calls(session.id) if call.status != "orphan"]
    assert [(turn.session_id, turn.index, turn.started_at) for turn in turns] == [
        (session.native_id, row.idx, row.started) for row in rows
    ]
    assert [(call.call_id, call.name, call.status, call.error_class, call.batch) for turn in turns for call in turn.calls] == [
        (call.call_id, call.name, call.status, call.error_class, call.position) for call in calls
    ]  # fmt: skip
    assert sum(turn.tokens_out for turn in turns) == session.tokens_out
    assert any(turn.prompt for turn in turns)
    assert any(call.output for turn in turns for call in turn.calls)


def test_a_file_that_is_no_transcript_and_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingPath):
        everturn.read(tmp_path / "nothing.jsonl")
    other = tmp_path / "shopping.json"
    other.write_text(json.dumps({"eggs": 12}))
    with pytest.raises(NothingFound, match="no transcript"):
        everturn.read(str(other))
    with pytest.raises(UsageError, match="no format"):
        everturn.read(other, source="papyrus")
