"""Each sample is for one thing; what is expected of it stands beside it. `UPDATE_EXPECTED=1` writes that anew."""

from __future__ import annotations

from pathlib import Path

from everturn.model.conversation import CallEnd, CallStart, Link
from everturn.sources.factory_droid import SOURCE
from tests.sources.goldens import Whole, ingest, readings

SAMPLES = Path(__file__).parent / "samples"
SID = "0fac0000-0000-4000-8000-00000000000a"
CHILD = "0fac0000-0000-4000-8000-00000000000b"


def whole_of(name: str) -> Whole:
    ((_, _, whole),) = readings(SOURCE, SAMPLES / f"{name}.jsonl")
    return whole


def test_prompts_are_what_was_typed_and_the_human_gave_the_title() -> None:
    whole = whole_of("session")
    assert whole.texts("prompt") == ["Why is the crane slow?", "Raise it to 3"]
    assert whole.facts[SID] == {
        "kind": "main", "workspace": "/home/ada/quay", "title": "Crane speed", "title_rank": 3,
    }  # fmt: skip
    kinds = [(message.origin, message.kind) for message in whole.all() if message.kind not in ("text", "result")]
    assert kinds == [
        ("system", "notice"), ("system", "compaction"), ("injected", "context"), ("injected", "context"),
        ("system", "unknown"), ("system", "unknown"),
    ]  # fmt: skip


def test_calls_have_a_neutral_kind_and_results_say_how_they_went() -> None:
    blocks = [block for message in whole_of("session").all() for block in message.blocks]
    calls: dict[str, CallStart] = {block.call.call_id: block.call for block in blocks if block.call is not None}
    ends: dict[str, CallEnd] = {block.result.call_id: block.result for block in blocks if block.result is not None}
    assert [calls[f"t{n}"].kind for n in range(1, 7)] == ["read", "shell", "edit", "create", "task", "create"]
    assert calls["t2"].command == "./measure crane"
    assert calls["t4"].path == "notes/crane.md"
    assert [ends[f"t{n}"].error_class for n in range(1, 6)] == ["", "exit_status", "", "", ""]


def test_a_subagent_names_the_call_that_started_it() -> None:
    whole = whole_of("subagent")
    assert whole.links[CHILD] == [Link("subagent_of", SID, "t5")]
    assert whole.facts[CHILD]["parent"] == SID
    assert [message.origin for message in whole.all()] == ["agent", "model", "tool", "model"]


def test_types_nobody_knows_are_kept_shown_and_counted() -> None:
    whole = whole_of("session")
    assert {row[0] for row in whole.census if row[2] == "unknown"} == {"message/oracle", "lighthouse"}
    texts = [message.blocks[0].text for message in whole.all() if message.kind == "unknown"]
    assert texts == ["oracle\nwords of nobody", "green light"]


def test_turns_calls_and_words_arrive_in_the_archive() -> None:
    with ingest("factory_droid", SAMPLES / "session.jsonl", SAMPLES / "subagent.jsonl") as taken:
        (session,) = taken.store.sessions_of("factory_droid", SID)
        assert (session.n_turns, session.n_calls, session.n_errors) == (2, 6, 1)
        assert [step.n_calls for step in taken.store.steps(session.id)] == [2, 3, 0, 1]
        (child,) = taken.store.sessions_of("factory_droid", CHILD)
        assert (child.kind, child.n_calls) == ("subagent", 2)
        assert taken.hits("overload at noon") == [SID]
