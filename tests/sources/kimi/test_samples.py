"""Each sample is for one client; what is expected of it stands beside it. `UPDATE_EXPECTED=1` writes that anew."""

from __future__ import annotations

from pathlib import Path

from everturn.model.conversation import CallEnd, Link
from everturn.sources.kimi import SOURCE
from tests.sources.goldens import Whole, assert_keeps_promises, ingest, readings

SAMPLES = Path(__file__).parent / "samples"
FILES = sorted(SAMPLES.glob("*.jsonl"))


def whole_of(name: str) -> Whole:
    ((_, _, whole),) = readings(SOURCE, SAMPLES / f"{name}.jsonl")
    return whole


def ends_of(whole: Whole) -> dict[str, CallEnd]:
    return {b.result.call_id: b.result for m in whole.all() for b in m.blocks if b.result is not None}


def test_prompts_of_both_clients_are_what_was_typed() -> None:
    assert whole_of("cli").texts("prompt") == [
        "Why does the ferry leak?", "mind the paint", "never sink it", "Which paint?", "Paint it",
    ]  # fmt: skip
    whole = whole_of("code")
    assert whole.texts("prompt") == ["Where is the buoy?", "use the radar", "Wrong question"]
    prompts = [message for message in whole.all() if message.origin == "human"]
    assert [(message.kind, message.starts_turn) for message in prompts] == [
        ("text", True), ("queued", False), ("text", True),
    ]  # fmt: skip


def test_results_say_how_a_call_went() -> None:
    ends = ends_of(whole_of("cli"))
    assert [ends[f"k{n}"].error_class for n in range(1, 6)] == ["", "exit_status", "", "rejected", ""]
    assert ends["k2"].exit_status == 4
    ends = ends_of(whole_of("code"))
    assert [ends[f"c{n}"].error_class for n in range(1, 4)] == ["", "timeout", ""]


def test_parts_calls_and_tokens_of_one_step_are_one_response() -> None:
    responses: dict[str, list[str]] = {}
    for message in whole_of("code").all():
        if message.origin == "model":
            what = "tokens" if message.usage is not None else message.blocks[0].kind
            responses.setdefault(message.provider_id, []).append(what)
    assert list(responses.values()) == [
        ["thinking", "text", "call", "call", "tokens"], ["call", "tokens"], ["text", "tokens"], ["tokens"], ["text"],
    ]  # fmt: skip


def test_an_undo_takes_back_turns_and_a_compaction_has_a_summary() -> None:
    whole = whole_of("code")
    assert [message.takes_back for message in whole.all() if message.takes_back] == [1]
    assert whole.texts("summary") == ["The buoy is north of the pier."]


def test_a_subagent_with_a_log_of_its_own_is_named_and_not_read_twice() -> None:
    whole = whole_of("cli")
    assert Link("spawned", "cli/a1234567", "k5") in whole.links["cli"]
    assert list(whole.messages) == ["cli"]
    whole = whole_of("old")
    assert whole.links["old/o1"] == [Link("subagent_of", "old", "o1")]
    assert [block.text for message in whole.messages["old/o1"] for block in message.blocks] == [
        "I ask around.", "Grep\nweld", "Bo", "Bo welded.",
    ]  # fmt: skip


def test_the_rest_of_arguments_that_were_cut_off_is_part_of_the_same_response(tmp_path: Path) -> None:
    call = '{"type": "ToolCall", "payload": {"id": "c", "function": {"name": "ReadFile", "arguments": "{\\"path\\": \\"tide"}}}'
    rest = '{"type": "ToolCallPart", "payload": {"arguments_part": "table.md\\"}"}}'
    step = '{"type": "StepBegin", "payload": {"n": 1}}'
    log = tmp_path / "cut.jsonl"
    log.write_text("".join(f'{{"timestamp": 1782000000.5, "message": {event}}}\n' for event in (step, call, rest)))
    ((_, data, whole),) = readings(SOURCE, log)
    assert_keeps_promises(SOURCE, data, whole)
    first, second = whole.all()
    assert first.provider_id == second.provider_id
    assert [block.text for block in second.blocks] == ['table.md"}']
    assert {row[2] for row in whole.census} == {"known", "message"}


def test_types_nobody_knows_are_kept_shown_and_counted() -> None:
    for name, kind, text in (("cli", "Lighthouse", "green light"), ("code", "lantern.lit", "red light")):
        whole = whole_of(name)
        assert {row[0] for row in whole.census if row[2] == "unknown"} == {kind}
        assert [message.blocks[0].text for message in whole.all() if message.kind == "unknown"] == [text]


def test_turns_calls_tokens_and_words_arrive_in_the_archive() -> None:
    with ingest("kimi", *FILES) as taken:
        (session,) = taken.store.sessions_of("kimi", "cli")
        assert (session.n_turns, session.n_calls, session.n_errors) == (2, 5, 2)
        assert (session.tokens_in, session.tokens_out) == (2100, 82)
        assert [step.n_calls for step in taken.store.steps(session.id)][:3] == [2, 3, 0]
        (session,) = taken.store.sessions_of("kimi", "code")
        assert session.tokens_out == 116
        (child,) = taken.store.sessions_of("kimi", "old/o1")
        assert (child.kind, child.n_calls, child.tokens_out) == ("subagent", 1, 5)
        assert taken.hits("frame 7") == ["cli"]
