"""Captures of `stream-json`: sessions, subagents between the lines, and how a run ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.derive.turns import grow_session
from everturn.model.archive import JournalTail
from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.stream_json import SOURCE
from tests.sources.goldens import (
    Whole,
    assert_claims_only,
    assert_keeps_promises,
    assert_same_in_pieces,
    corpus,
    ingest,
    readings,
)

FOLDER = Path(__file__).parent / "samples"
CHILD = "aaaa-1/toolu_1"


def sample(name: str) -> Whole:
    ((_, _, whole),) = readings(SOURCE, FOLDER / f"{name}.jsonl")
    return whole


def test_a_subagent_is_a_session_of_its_own() -> None:
    whole = sample("run")
    assert [(link.relation, link.native_id, link.call_id) for link in whole.links["aaaa-1"]] == [
        ("spawned", CHILD, "toolu_1")
    ]
    assert [(link.relation, link.native_id) for link in whole.links[CHILD]] == [("subagent_of", "aaaa-1")]
    assert [message.origin for message in whole.messages[CHILD]] == ["agent", "model", "tool"]
    main, child = (grow_session(JournalTail(), whole.messages[name])[0] for name in ("aaaa-1", CHILD))
    assert [(call.kind, call.status) for call in main.calls + child.calls] == [("task", "ok"), ("read", "ok")]
    assert [(step.tokens_in, step.tokens_out) for step in main.steps] == [(3, 9), (30, 6)]


def test_the_end_of_a_run_is_not_the_answer_again() -> None:
    whole = sample("run")
    assert whole.texts("answer") == ["Looking.", "The total is never set."]
    assert [message.reported_ms for message in whole.all() if message.reported_ms] == [5123]
    data = b'{"type":"result","subtype":"success","duration_ms":1,"result":"Only this.","session_id":"s"}\n'
    with_only_a_result = SOURCE.reader(SourceCandidate(Path("x"), native_id="s"), b"").feed(data, 0, True)
    assert with_only_a_result.parts[0].messages[0].blocks[0].field == "answer"


def test_only_what_a_human_typed_is_a_prompt() -> None:
    whole = sample("odd")
    assert whole.texts("prompt") == ["count to three"]
    kinds = [(message.origin, message.kind) for message in whole.all()]
    assert kinds == [
        ("system", "notice"), ("human", "text"), ("injected", "context"), ("injected", "context"), ("system", "notice"),
        ("system", "compaction"), ("model", "text"), ("tool", "result"), ("system", "unknown"), ("system", "notice"),
    ]  # fmt: skip


def test_calls_of_one_response_are_parallel_and_failures_are_told() -> None:
    growth, _ = grow_session(JournalTail(), sample("odd").all())
    assert [(call.batch, call.status, call.error_class) for call in growth.calls] == [
        (0, "ok", ""),
        (1, "error", "not_found"),
    ]


def test_parts_of_a_message_are_not_messages() -> None:
    assert sample("run").census["stream_event", "2.1.44", "known"] == 1
    assert sample("odd").census["hologram", "", "unknown"] == 1


def test_captures_are_found_in_named_folders_and_known_by_content(tmp_path: Path) -> None:
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "run.log").write_bytes((FOLDER / "run.jsonl").read_bytes())
    (tmp_path / "ci" / "other.jsonl").write_text('{"type":"user","message":{},"sessionId":"x"}\n')
    places = SearchPlaces(tmp_path, {}, "linux", {"stream_json": (tmp_path / "ci",)})
    assert [one for root in SOURCE.roots(places) for one in SOURCE.find(root)] == [
        SourceCandidate(tmp_path / "ci" / "run.log", "main", "aaaa-1")
    ]
    assert SOURCE.workspace((FOLDER / "run.jsonl").read_bytes()) == "/home/ann/shop"
    assert SOURCE.resume_command is not None
    assert SOURCE.resume_command("aaaa-1") == ["claude", "--resume", "aaaa-1"]


def test_a_capture_is_searched_in_the_archive() -> None:
    with ingest("stream_json", FOLDER / "run.jsonl") as taken:
        assert taken.hits("fix the till") == ["aaaa-1"]
        assert taken.hits("read till.py") == ["aaaa-1", CHILD]


@pytest.mark.parametrize("path", corpus("claude-code-streamjson"))
def test_a_real_capture_is_read_whole(path: Path) -> None:
    """The one there is was kept by a server of tools: it names the client and what it asked for, nothing was said."""
    ((found, data, whole),) = readings(SOURCE, path)
    assert_keeps_promises(SOURCE, data, whole)
    assert_same_in_pieces(SOURCE, found, data, 7)
    assert {message.kind for message in whole.all()} == {"notice"}
    with ingest("stream_json", path) as taken:
        assert taken.report.sessions == 1


def test_only_captures_are_taken_for_captures() -> None:
    assert_claims_only(SOURCE, "claude-code-streamjson")
