"""Each sample is for one thing; what is expected of it stands beside it. `UPDATE_EXPECTED=1` writes that anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.model.conversation import CallEnd, Link, TokenUsage
from everturn.sources.copilot_cli import SOURCE
from tests.sources.goldens import Whole, assert_claims_only, corpus, ingest, readings

SAMPLES = Path(__file__).parent / "samples"
SID = "378ab881-0000-4000-8000-00000000000a"


def whole_of(name: str) -> Whole:
    ((_, _, whole),) = readings(SOURCE, SAMPLES / f"{name}.jsonl")
    return whole


def results(whole: Whole) -> dict[str, CallEnd]:
    return {b.result.call_id: b.result for m in whole.all() for b in m.blocks if b.result is not None}


def test_of_the_real_files_only_sessions_are_claimed() -> None:
    assert_claims_only(SOURCE, "copilot-cli")


def test_only_what_was_typed_is_the_prompt() -> None:
    whole = whole_of("turn")
    assert whole.texts("prompt") == ["How high is the tide?", "in metres", "and now?", "go on"]
    kinds = [(message.kind, message.starts_turn) for message in whole.all() if message.origin == "human"]
    assert kinds == [("text", True), ("queued", False), ("text", True), ("text", True)]
    around = whole.all()[3].blocks[1]
    assert (around.field, around.text.startswith("<current_datetime>")) == ("meta", True)


def test_a_call_that_begins_and_a_thought_that_comes_again_are_not_new() -> None:
    whole = whole_of("turn")
    assert whole.census["tool.execution_start", "1.0.40", "known"] == 3
    assert whole.census["assistant.reasoning", "1.0.40", "known"] == 1
    assert whole.texts("thinking") == ["The gauge knows."]
    assert whole_of("marks").texts("thinking") == ["A thought of its own."]


def test_results_say_how_a_call_went() -> None:
    ends = results(whole_of("turn"))
    assert (ends["call_1"].is_error, ends["call_1"].exit_status) == (False, None)
    assert (ends["call_2"].error_class, ends["call_2"].exit_status) == ("exit_status", 127)
    assert ends["call_5"].error_class == "rejected"


def test_tokens_are_those_of_each_response() -> None:
    used = [(m.provider_id, m.usage) for m in whole_of("turn").all() if m.usage is not None]
    assert used == [
        ("m1", TokenUsage(output=40)),
        ("m2", TokenUsage(output=30)),
        ("m2", TokenUsage(300, 30, 600, 100)),
        ("m3", TokenUsage(output=5)),
    ]


def test_a_subagent_is_a_session_of_its_own() -> None:
    whole = whole_of("subagent")
    child, older = f"{SID}/ag-1", f"{SID}/call_old"
    assert set(whole.messages) == {SID, child, older}
    assert whole.links[SID][:1] == [Link("spawned", child, "call_t")]
    assert whole.links[child] == [Link("subagent_of", SID)]
    assert whole.facts[child] == {"kind": "subagent", "parent": SID, "agent_name": "Explore Agent"}
    assert [message.origin for message in whole.messages[child]] == ["agent", "model", "tool", "model"]
    assert next(block.text for m in whole.messages[older] for block in m.blocks) == "bash\nls pier"
    assert [b.text for m in whole.messages[SID] for b in m.blocks if b.field == "answer"] == ["There are two."]


def test_types_nobody_knows_are_kept_shown_and_counted() -> None:
    whole = whole_of("marks")
    assert {row[0] for row in whole.census if row[2] == "unknown"} == {"tide.turned", "?"}
    assert "ebb tide" in whole.texts("meta")
    (mark,) = [message for message in whole.all() if message.kind == "compaction"]
    assert mark.blocks[0].text == "We measured the quay."


def test_what_the_human_ran_is_no_call_of_the_model() -> None:
    whole = whole_of("marks")
    shell = [(message.origin, message.kind) for message in whole.all() if message.kind in ("shell", "output")]
    assert shell == [("human", "shell"), ("tool", "output")]
    assert "call_u" not in results(whole)


def test_turns_calls_and_words_arrive_in_the_archive() -> None:
    with ingest("copilot_cli", SAMPLES / "turn.jsonl") as taken:
        (session,) = taken.store.sessions_of("copilot_cli", SID)
        assert (session.n_turns, session.n_steps, session.n_calls, session.n_errors) == (2, 3, 5, 2)
        assert [step.n_calls for step in taken.store.steps(session.id)] == [3, 2, 0]
        assert (session.tokens_in, session.tokens_out, session.tokens_cache_read) == (300, 75, 600)
        assert {(a.action, a.path) for a in taken.store.artifacts(session.id)} == {
            ("read", "/home/ada/harbour/gauge.txt"),
            ("created", "tide.md"),
        }
        assert [turn.interrupted for turn in taken.store.turns(session.id)] == [0, 1]
        assert taken.hits("4.2 metres") == [SID]
        assert taken.store.session(session.id)[1].title == "Height of the tide"


@pytest.mark.parametrize("path", corpus("copilot-cli"))
def test_a_real_file_is_kept_whole_and_its_calls_are_paired(path: Path) -> None:
    with ingest("copilot_cli", path) as taken:
        ((_, version),) = taken.store.files()
        (session,) = taken.store.sessions_in(version.id)
        assert {call.status for call in taken.store.calls(session.id)} <= {"ok", "error"}
        assert session.n_turns >= 1
        assert taken.report.problems == 0
