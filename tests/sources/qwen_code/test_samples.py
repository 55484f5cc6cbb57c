"""Each sample is for one thing; what is expected of it stands beside it. `UPDATE_EXPECTED=1` writes that anew."""

from __future__ import annotations

from pathlib import Path

from everturn.model.conversation import CallEnd, Link
from everturn.sources.qwen_code import SOURCE
from tests.sources.goldens import Whole, ingest, readings

SAMPLES = Path(__file__).parent / "samples"
SID = "5b1f0c9e-0000-4000-8000-000000000001"
AGENT = f"{SID}/explore-7f3c"


def whole_of(name: str) -> Whole:
    ((_, _, whole),) = readings(SOURCE, SAMPLES / f"{name}.jsonl")
    return whole


def test_prompts_are_what_was_typed_and_a_title_of_the_human_is_the_last() -> None:
    whole = whole_of("session")
    assert whole.texts("prompt") == [
        "Why is the tide table wrong?", "mind the wind", "/about", "Draw a chart", "Write it as a list",
    ]  # fmt: skip
    assert whole.facts[SID] == {
        "kind": "main", "workspace": "/home/ada/harbour", "branch": "main", "client": "0.18.2", "title": "Tides",
        "title_rank": 3,
    }  # fmt: skip


def test_results_say_how_a_call_went() -> None:
    ends: dict[str, CallEnd] = {
        b.result.call_id: b.result for m in whole_of("session").all() for b in m.blocks if b.result is not None
    }
    assert [ends[f"c{n}"].error_class for n in range(1, 8)] == [
        "", "exit_status", "", "", "not_found", "", "interrupted",
    ]  # fmt: skip
    assert ends["c2"].exit_status == 3
    assert [ends[name].action for name in ("c3", "c4", "c5")] == ["edited", "created", ""]


def test_thoughts_count_once_whether_or_not_the_answer_includes_them() -> None:
    usages = [message.usage for message in whole_of("session").all() if message.usage is not None]
    assert [(use.input, use.output, use.cache_read) for use in usages[:2]] == [(600, 60, 400), (200, 80, 1000)]


def test_a_rewind_takes_back_the_turns_after_the_record_it_names() -> None:
    (mark,) = [message for message in whole_of("session").all() if message.takes_back]
    assert (mark.kind, mark.takes_back) == ("notice", 1)


def test_an_edit_tells_the_file_as_it_was() -> None:
    assert SOURCE.original is not None
    told = [SOURCE.original(line) for line in (SAMPLES / "session.jsonl").read_bytes().splitlines()]
    assert [text for text in told if text is not None] == ["3.1 m\n", ""]


def test_records_of_a_subagent_are_joined_into_responses() -> None:
    answers = [message for message in whole_of("agent-explore-7f3c").all() if message.origin == "model"]
    assert [message.provider_id for message in answers] == ["a-03", "a-03", "a-03", "a-08"]
    (link,) = whole_of("agent-explore-7f3c").links[AGENT]
    spawned = next(link for link in whole_of("session").links[SID] if link.relation == "spawned")
    assert (link.native_id, link.hint, spawned.call_id) == (SID, spawned.hint, "c6")


def test_a_branch_names_the_session_it_was_forked_from() -> None:
    assert whole_of("branch").links == {SID.replace("0001", "0002"): [Link("forked_from", SID)]}


def test_types_nobody_knows_are_kept_shown_and_counted() -> None:
    whole = whole_of("session")
    assert {row[0] for row in whole.census if row[2] == "unknown"} == {"system/lighthouse", "buoy"}
    texts = [m.blocks[0].text for m in whole.all() if m.kind == "unknown"]
    assert texts == ["green light", "user\nwords of nobody"]


def test_turns_calls_and_words_arrive_in_the_archive() -> None:
    with ingest("qwen_code", SAMPLES / "session.jsonl", SAMPLES / "agent-explore-7f3c.jsonl") as taken:
        (session,) = taken.store.sessions_of("qwen_code", SID)
        assert (session.n_turns, session.n_calls, session.n_errors) == (3, 7, 3)
        assert [step.n_calls for step in taken.store.steps(session.id)][:3] == [2, 3, 2]
        (agent,) = taken.store.sessions_of("qwen_code", AGENT)
        assert (agent.n_calls, agent.n_errors) == (2, 1)
        assert [step.n_calls for step in taken.store.steps(agent.id)] == [2, 0]
        assert taken.hits("mind the wind") == [SID]
