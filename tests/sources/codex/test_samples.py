"""Each sample shows one thing, with its expected result beside it. `UPDATE_EXPECTED=1` rewrites these."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.model.conversation import CallEnd, Link, Message, TokenUsage, fingerprint
from everturn.sources.codex import SOURCE
from tests.sources.goldens import Whole, assert_claims_only, corpus, ingest, readings

SAMPLES = Path(__file__).parent / "samples"
MAIN, CHILD, OTHER = (f"01999c1a-0000-7000-8000-0000000000{end}" for end in ("a1", "b2", "c3"))


def whole_of(name: str) -> Whole:
    ((_, _, whole),) = readings(SOURCE, SAMPLES / f"{name}.jsonl")
    return whole


def results(whole: Whole) -> dict[str, CallEnd]:
    return {b.result.call_id: b.result for m in whole.all() for b in m.blocks if b.result is not None}


def named(whole: Whole, *kinds: str) -> list[Message]:
    return [message for message in whole.all() if message.kind in kinds]


def test_of_the_real_files_only_rollouts_are_claimed() -> None:
    assert_claims_only(SOURCE, "codex", "codex-tui-log")


def test_what_events_repeat_is_said_once() -> None:
    whole = whole_of("new-era")
    texts = whole.texts("prompt", "answer")
    assert len(texts) == len(set(texts)) == 6
    assert whole.texts("thinking")[0] == "**Looking for the gauge**"
    assert whole.census["event_msg/agent_message", "0.130.0", "known"] == 1


def test_a_repeating_event_counts_when_its_item_was_never_written() -> None:
    whole = whole_of("tokens-first")
    assert whole.texts("thinking") == ["**Measuring**", "**Never finished thought**"]
    said = [message.kind if not message.blocks else message.blocks[0].text for message in whole.all()]
    assert said.index("**Never finished thought**") == said.index("interrupted") - 1


def test_growing_counters_become_the_tokens_of_each_response_whether_written_before_or_after_it() -> None:
    for name, usages in (
        ("new-era", {"#1": TokenUsage(800, 50, 200), "#2": TokenUsage(500, 40, 1000), "#3": TokenUsage(100, 30, 1400)}),
        ("tokens-first", {"#1": TokenUsage(100, 10), "#2": TokenUsage(50, 15, 100), "#3": TokenUsage(50, 5, 100)}),
    ):
        found = {m.provider_id: m.usage for m in whole_of(name).all() if m.usage is not None}
        assert found == usages
        said = {m.provider_id for m in whole_of(name).all() if m.origin == "model"}
        assert said >= set(usages)


def test_calls_before_the_first_output_are_one_response() -> None:
    calls = [(m.provider_id, b.call.command) for m in whole_of("new-era").all() for b in m.blocks if b.call is not None]
    assert calls[:2] == [("#1", "cat gauge.txt"), ("#1", "rg -n tide src")]
    assert calls[2][0] == "#2"


def test_a_prompt_in_a_running_turn_is_queued_and_starts_none() -> None:
    prompts = [(m.kind, m.starts_turn) for m in whole_of("new-era").all() if m.origin == "human"]
    assert prompts == [("text", True), ("queued", False), ("text", True)]


def test_what_an_editor_puts_around_a_prompt_is_not_the_prompt() -> None:
    assert whole_of("tokens-first").texts("prompt") == ["measure the quay\n", "go on"]


def test_the_old_era_says_where_it_works_in_its_first_message() -> None:
    whole = whole_of("old-era")
    assert whole.facts[OTHER] == {"kind": "main", "branch": "main", "workspace": "/home/ada/pier"}
    assert [m.blocks[0].text for m in whole.all() if m.origin == "human"] == ["list the pier", "thanks"]
    assert {m.precision for m in whole.all()} == {"day"}  # the header has the only time
    assert all(m.at is not None for m in whole.all())
    call = next(b.call for m in whole.all() for b in m.blocks if b.call is not None)
    assert (call.kind, call.command) == ("shell", "ls 'pier one'")


@pytest.mark.parametrize(
    ("call", "error", "status", "duration"),
    [
        ("00", "exit_status", 1, 100),
        ("01", "timeout", 124, 1000),
        ("02", "", None, 1000),
        ("03", "", 0, 250),
        ("04", "rejected", None, None),
        ("05", "permission", 101, None),
        ("06", "interrupted", None, None),
        ("07", "unknown_tool", None, None),
        ("08", "invalid_input", None, None),
        ("09", "not_found", None, None),
        ("10", "", 0, 100),
        ("11", "", None, None),
        ("12", "other", None, None),
        ("13", "", None, None),
        ("14", "", None, 500),
    ],
)
def test_every_form_of_output_is_understood(call: str, error: str, status: int | None, duration: int | None) -> None:
    end = results(whole_of("outputs"))[f"call_out_{call}"]
    assert (end.is_error, end.error_class, end.exit_status) == (bool(error), error, status)
    assert end.duration_ms == duration


def test_a_patch_says_what_it_does_to_its_first_file() -> None:
    calls = {b.call.call_id: b.call for m in whole_of("outputs").all() for b in m.blocks if b.call is not None}
    assert (calls["call_out_09"].kind, calls["call_out_09"].path) == ("edit", "a.py")
    assert (calls["call_out_10"].kind, calls["call_out_10"].path) == ("delete", "old.py")
    assert calls["call_out_14"].name == "mcp__hub._fetch_pr"


def test_a_subagent_and_the_call_that_started_it_find_each_other() -> None:
    parent, child = whole_of("parent"), whole_of("subagent")
    hint = fingerprint("prompt", "Count the boats in the harbour")
    spawn = "call_SSSSSSSSSSSSSSSSSSSSSS01"
    assert Link("spawned", "", spawn, hint) in parent.links[MAIN]
    assert Link("spawned", CHILD, spawn) in parent.links[MAIN]
    assert results(parent)[spawn].child == CHILD
    assert child.links[CHILD] == [Link("subagent_of", MAIN, hint=hint)]
    assert child.facts[CHILD]["kind"] == "subagent"
    assert child.facts[CHILD]["parent"] == MAIN
    asked = [m for m in child.all() if m.starts_turn]
    assert [(m.origin, m.blocks[0].text) for m in asked] == [
        ("agent", "Count the boats in the harbour"),
        ("agent", "And the rafts?"),
    ]


def test_copies_in_a_fork_are_known_again_though_their_times_are_new() -> None:
    original, fork = whole_of("original"), whole_of("fork")
    first = [message.fingerprint for message in original.all()]
    second = [message.fingerprint for message in fork.all()]
    shared = len(second) - 3
    assert first[:shared] == second[:shared]
    assert not set(first) & set(second[shared:])
    assert fork.links[OTHER] == [Link("forked_from", MAIN)]
    assert len(set(first)) == len(first), "the same word said twice is two messages"


def test_inherited_history_is_counted_once() -> None:
    with ingest("codex", SAMPLES / "original.jsonl", SAMPLES / "fork.jsonl") as taken:
        ((fork,), (original,)) = taken.store.sessions_of("codex", OTHER), taken.store.sessions_of("codex", MAIN)
        assert (original.n_inherited, fork.n_inherited) == (0, 6)
        assert (original.tokens_out, fork.tokens_out) == (5, 4)
        assert taken.hits("anchored") == [MAIN]
        assert taken.hits("elsewhere") == [OTHER]


def test_a_compaction_is_a_mark_and_what_it_repeats_is_not_new() -> None:
    whole = whole_of("compaction")
    (mark,) = named(whole, "compaction")
    assert mark.blocks[0].text == "We measured the quay; the pier is next."
    assert whole.texts("prompt") == ["long work", "again"]
    facts = whole.facts[MAIN]
    assert (facts["title"], facts["title_rank"], facts["client"], facts["branch"]) == (
        "Quay and pier", 3, "0.131.0", "tides",
    )  # fmt: skip


def test_types_nobody_knows_are_kept_shown_and_counted() -> None:
    whole = whole_of("odd-items")
    unknown = {row[0] for row in whole.census if row[2] == "unknown"}
    assert unknown == {
        *("response_item/hologram", "event_msg/lighthouse_blinked", "tide_state", "mystery", "?"),
        "response_item/message",  # of a role that nobody has
    }
    said = [block.text for message in named(whole, "unknown") for block in message.blocks]
    assert said[:3] == ["a new kind of item", "green", "high water"]


def test_a_search_of_the_provider_is_a_call_that_went_well() -> None:
    with ingest("codex", SAMPLES / "odd-items.jsonl") as taken:
        (session,) = taken.store.sessions_of("codex", MAIN)
        calls = {(call.name, call.kind, call.status) for call in taken.store.calls(session.id)}
        assert calls == {
            ("web_search", "search", "ok"),
            ("web_search", "fetch", "ok"),
            ("local_shell", "shell", "ok"),
            ("tool_search", "search", "ok"),
            ("image_generation", "other", "ok"),
        }


def test_turns_calls_and_words_arrive_in_the_archive() -> None:
    with ingest("codex", SAMPLES / "new-era.jsonl") as taken:
        (session,) = taken.store.sessions_of("codex", MAIN)
        assert (session.n_turns, session.n_steps, session.n_calls, session.n_errors) == (2, 4, 3, 1)
        assert (session.tokens_in, session.tokens_out, session.tokens_cache_read) == (1400, 120, 2600)
        assert [step.n_calls for step in taken.store.steps(session.id)] == [2, 1, 0, 0]
        assert [turn.reported_ms for turn in taken.store.turns(session.id)] == [21500, None]
        assert {(a.action, a.path) for a in taken.store.artifacts(session.id)} == {
            ("read", "gauge.txt"),
            ("created", "src/reader.py"),
        }
        assert taken.hits("src/reader.py reads it") == [MAIN]


def test_the_log_of_the_screen_gives_what_was_typed_and_said() -> None:
    whole = whole_of("screen-log")
    assert list(whole.messages) == [f"{CHILD}/screen-log"]
    prompts = [(m.blocks[0].text, m.fidelity) for m in whole.all() if m.origin == "human"]
    assert prompts == [("Ho!'", "rendered"), ("mo (expanded)", "exact")]
    assert whole.texts("answer") == ["Ahoy!"]


@pytest.mark.few(12)
@pytest.mark.parametrize("path", corpus("codex", "codex-tui-log"))
def test_a_real_file_is_kept_whole_and_its_calls_are_paired(path: Path) -> None:
    with ingest("codex", path) as taken:
        ((_, version),) = taken.store.files()
        (session,) = taken.store.sessions_in(version.id)
        statuses = [call.status for call in taken.store.calls(session.id)]
        assert "orphan" not in statuses
        assert statuses.count("open") <= 1
        steps = taken.store.steps(session.id)
        assert sum(step.tokens_out for step in steps) == session.tokens_out
        assert taken.report.problems == 0
