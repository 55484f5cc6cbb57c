"""Each sample is for one thing; what is expected of it stands beside it. `UPDATE_EXPECTED=1` writes that anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.model.conversation import CallEnd, Link
from everturn.sources.pi import SOURCE
from tests.sources.goldens import Whole, assert_claims_only, corpus, ingest, readings

SAMPLES = Path(__file__).parent / "samples"
SID = "d703a1a9-0000-4000-8000-00000000000b"


def whole_of(name: str) -> Whole:
    ((_, _, whole),) = readings(SOURCE, SAMPLES / f"{name}.jsonl")
    return whole


def test_of_the_real_files_only_sessions_are_claimed() -> None:
    assert_claims_only(SOURCE, "pi")


def test_branches_are_read_in_the_order_in_which_they_were_said() -> None:
    whole = whole_of("tree")
    assert whole.texts("prompt") == ["Read the gauge", "Just say it", "git status", "and now?"]
    summaries = [message.kind for message in whole.all() if message.kind in ("summary", "compaction")]
    assert summaries == ["summary", "compaction"]
    assert whole.facts[SID] == {
        "kind": "main", "workspace": "/home/ada/harbour", "title": "Tide tables", "title_rank": 3,
    }  # fmt: skip


def test_results_say_how_a_call_went() -> None:
    ends: dict[str, CallEnd] = {
        b.result.call_id: b.result for m in whole_of("tree").all() for b in m.blocks if b.result is not None
    }
    assert [ends[f"toolu_{n}"].error_class for n in range(1, 6)] == ["", "exit_status", "", "interrupted", "timeout"]
    assert ends["toolu_2"].exit_status == 127


def test_an_answer_that_was_stopped_is_an_interrupt_or_what_was_said_until_then() -> None:
    whole = whole_of("tree")
    stopped = [m for m in whole.all() if any("Request was aborted" in block.text for block in m.blocks)]
    assert [(m.kind, m.origin) for m in stopped] == [("text", "model"), ("interrupt", "system")]
    assert whole.all()[-3].kind == "notice"


def test_types_nobody_knows_are_kept_shown_and_counted() -> None:
    whole = whole_of("tree")
    assert {row[0] for row in whole.census if row[2] == "unknown"} == {"message/oracle", "lighthouse"}
    assert [m.blocks[0].text for m in whole.all() if m.kind == "unknown"] == ["words of nobody", "green light"]


def test_the_first_version_has_no_ids_and_names_the_file_it_was_branched_from() -> None:
    whole = whole_of("first-version")
    assert whole.links[SID] == [Link("forked_from", "d703a1a9-0000-4000-8000-00000000000a")]
    marks = [message.fingerprint for message in whole.all()]
    assert None not in marks
    assert len(set(marks)) == len(marks) == 4
    assert {row[1] for row in whole.census if row[0].startswith("message")} == {"v1"}


def test_turns_calls_and_words_arrive_in_the_archive() -> None:
    with ingest("pi", SAMPLES / "tree.jsonl") as taken:
        (session,) = taken.store.sessions_of("pi", SID)
        assert (session.n_turns, session.n_calls, session.n_errors) == (3, 5, 3)
        assert [step.n_calls for step in taken.store.steps(session.id)] == [2, 3, 0, 0]
        assert (session.tokens_in, session.tokens_out) == (12, 200)
        assert {(a.action, a.path) for a in taken.store.artifacts(session.id)} == {
            ("read", "gauge.txt"),
            ("edited", "tide.md"),
        }
        assert taken.hits("mind the wind") == [SID]


@pytest.mark.parametrize("path", corpus("pi"))
def test_a_real_file_is_kept_whole_and_its_calls_are_paired(path: Path) -> None:
    with ingest("pi", path) as taken:
        ((_, version),) = taken.store.files()
        (session,) = taken.store.sessions_in(version.id)
        statuses = [call.status for call in taken.store.calls(session.id)]
        assert "orphan" not in statuses
        assert statuses.count("open") < len(statuses) / 10
        assert session.n_turns > 50
        assert taken.report.problems == 0
