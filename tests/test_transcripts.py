"""Made-up histories are what they say they are: checked by counting in the plainest way, and by the real reader."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everturn.derive.turns import grow_session
from everturn.model.archive import JournalTail, SessionGrowth
from everturn.model.conversation import SessionPart
from everturn.sources.contract import SourceCandidate, all_sources
from tests.transcript_truth import Deed, SessionTruth, Truth, tell
from tests.transcripts import alter_copy, alter_name, append_turn, stream_file, write_history


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    return write_history(tmp_path_factory.mktemp("history"), seed=7, sessions=12)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Every record, also of lines with several."""
    decoder = json.JSONDecoder()
    for line in path.read_text("utf-8").splitlines():
        at = 0
        while at < len(line):
            record, at = decoder.raw_decode(line, at)
            yield record


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    def tree(name: str, seed: int) -> dict[str, bytes]:
        root = tmp_path / name
        write_history(root, seed, sessions=4)
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.jsonl"))}

    assert tree("a", 1) == tree("b", 1)
    assert not set(tree("a", 1)) & set(tree("c", 2))


def test_lines_records_and_types_are_counted_right(truth: Truth) -> None:
    found = [record for path in truth.files for record in records(path)]
    assert truth.lines == sum(path.read_bytes().count(b"\n") for path in truth.files)
    assert len(found) == truth.lines + truth.glued
    assert Counter(record["type"] for record in found) == truth.types
    assert truth.glued > 0


def test_calls_and_tokens_are_what_the_files_hold(truth: Truth) -> None:
    for session in (one for one in truth.sessions.values() if one.kind != "sidechain"):
        own = [one for one in records(session.path) if session.kind == "subagent" or not one.get("isSidechain")]
        answers = [
            one["message"] for one in own if one["type"] == "assistant" and one["message"]["model"] != "<synthetic>"
        ]
        uses = [block["id"] for one in answers for block in one["content"] if block["type"] == "tool_use"]
        assert sorted(uses) == sorted(call.call_id for call in session.calls)
        last = {one["id"]: one["usage"] for one in answers}
        assert session.steps == len(last)
        assert session.tokens[1] == sum(usage["output_tokens"] for usage in last.values())
        assert session.tokens[2] == sum(usage["cache_read_input_tokens"] for usage in last.values())


def test_the_history_has_everything_it_promises(truth: Truth) -> None:
    sessions = list(truth.sessions.values())
    assert {session.kind for session in sessions} == {"main", "subagent", "sidechain"}
    assert {session.path.parent.name == "subagents" for session in sessions if session.kind == "subagent"} == {
        True,
        False,
    }
    assert {call.status for session in sessions for call in session.calls} == {"ok", "error", "open"}
    assert {"exit_status", "rejected", "cancelled"} <= {call.error_class for one in sessions for call in one.calls}
    assert {action for one in sessions for _, action, _ in one.artifacts} == {"read", "edited", "created", "deleted"}
    assert any(session.forked_from and session.shared for session in sessions)
    assert any(call.batch_size > 2 for session in sessions for call in session.calls)
    text = "".join(path.read_text("utf-8") for path in truth.files)
    for wanted in (
        "会话",
        "parse_json_line",
        "<command-name>",
        "<bash-input>",
        "isCompactSummary",
        "queued_command",
        "interrupted by user",
        "<task-notification>",
    ):
        assert wanted in text
    assert truth.notes


def test_results_stand_both_behind_all_calls_and_between_them(truth: Truth) -> None:
    shapes = set()
    for path in truth.files:
        order = [
            (one["type"], one["message"].get("id")) for one in records(path) if one["type"] in ("user", "assistant")
        ]
        by_id = defaultdict(list)
        for number, (kind, response) in enumerate(order):
            if kind == "assistant":
                by_id[response].append(number)
        shapes |= {numbers[-1] - numbers[0] + 1 == len(numbers) for numbers in by_id.values() if len(numbers) > 2}
    assert shapes == {True, False}


def test_times_do_not_always_follow_the_lines(truth: Truth) -> None:
    stamps = [[one["timestamp"] for one in records(path) if "uuid" in one] for path in truth.files]
    assert any(times != sorted(times) for times in stamps)


def test_a_fork_has_the_same_records_under_another_session(truth: Truth) -> None:
    fork = next(session for session in truth.sessions.values() if session.forked_from)
    old, new = (
        {one["uuid"]: one for one in records(truth.sessions[name].path) if "uuid" in one}
        for name in (fork.forked_from, fork.native_id)
    )
    shared = set(old) & set(new)
    assert all(old[uuid]["timestamp"] == new[uuid]["timestamp"] for uuid in shared)
    assert {new[uuid]["sessionId"] for uuid in shared} == {fork.native_id}
    assert fork.shared == sum(old[uuid]["type"] in ("user", "assistant", "system", "attachment") for uuid in shared)


def test_marks_stand_nowhere_else(truth: Truth) -> None:
    texts = {path: path.read_text("utf-8") for path in truth.files}
    for session in truth.sessions.values():
        for mark in session.marks.values():
            holders = {path for path, text in texts.items() if re.search(rf"{mark}(?!\w)", text)}
            forks = {one.path for one in truth.sessions.values() if one.forked_from == session.native_id}
            assert holders - forks == {session.path}


# the real reader ------------------------------------------------------------------------------------------------------
def part_of(session: SessionTruth) -> SessionPart:
    """What our own reader makes of a session."""
    source = all_sources()["claude_code"]
    kind = "main" if session.kind == "sidechain" else session.kind
    name = session.path.stem if kind == "main" else session.native_id
    reader = source.reader(SourceCandidate(session.path, kind, name, session.parent if kind == "subagent" else ""), b"")
    reading = reader.feed(session.path.read_bytes(), 0, True)
    assert reading.problems == []
    return next(part for part in reading.parts if part.native_id == session.native_id)


def read(session: SessionTruth) -> SessionGrowth:
    """The rows of a session."""
    return grow_session(JournalTail(), part_of(session).messages)[0]


def test_our_own_reader_knows_the_sessions(truth: Truth) -> None:
    for session in truth.sessions.values():
        facts = part_of(session).facts
        wanted = session.kind, session.parent, session.workspace, session.client, session.title
        assert (facts.kind, facts.parent, facts.workspace, facts.client, facts.title) == wanted


def test_our_own_reader_finds_the_truth(truth: Truth) -> None:
    for session in truth.sessions.values():
        found = read(session)
        assert (len(found.turns), len(found.steps), len(found.messages)) == (
            session.turns,
            session.steps,
            session.messages,
        ), session
        assert found.n_prompts == session.prompts
        assert sum(step.tokens_out for step in found.steps) == session.tokens[1]
        assert [sum(step.tokens_in for step in found.steps), sum(step.tokens_cache_write for step in found.steps)] == [
            session.tokens[0],
            session.tokens[3],
        ]
        sizes = {step.idx: step.n_calls for step in found.steps}
        calls = {
            (c.call_id, c.name, c.turn, c.batch, sizes[c.step], c.status, c.error_class, c.duration_ms)
            for c in found.calls
        }
        assert calls == {
            (c.call_id, c.name, c.turn, c.batch, c.batch_size, c.status, c.error_class, c.duration_ms)
            for c in session.calls
        }
        assert sorted((one.turn, one.action, one.path) for one in found.artifacts) == sorted(session.artifacts)


# the rest -------------------------------------------------------------------------------------------------------------
def test_a_human_starts_a_turn_only_when_the_last_one_was_answered() -> None:
    def turns(*deeds: str) -> int:
        return tell(SessionTruth("s", Path()), [Deed(what, response="r") for what in deeds]).turns

    assert turns() == turns("known") == 0
    assert turns("other", "human", "human") == 1
    assert turns("human", "model", "result", "other", "queued", "model") == 1
    assert turns("human", "model", "human", "notice", "human") == 3


def test_a_long_file_has_the_asked_size_and_no_line_twice(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    streamed = stream_file(path, 2_000_000, seed=3)
    assert streamed.size == path.stat().st_size
    assert 2_000_000 <= streamed.size < 2_200_000
    lines = path.read_bytes().splitlines()
    assert len(lines) == len(set(lines)) == streamed.lines
    found = [json.loads(line) for line in lines]
    assert len({one["uuid"] for one in found}) == len(found)
    assert {one["sessionId"] for one in found} == {streamed.session_id}
    assert len({one["message"].get("id") for one in found} - {None}) == streamed.steps
    answers = [block for one in found for block in one["message"]["content"] if isinstance(block, dict)]
    assert Counter(block["type"] for block in answers)["tool_use"] == streamed.calls
    assert len({block["content"] for block in answers if block["type"] == "tool_result"}) == streamed.calls


def test_an_appended_turn_is_a_turn_more(tmp_path: Path) -> None:
    truth = write_history(tmp_path, sessions=1, turns=2)
    (session,) = (one for one in truth.sessions.values() if one.kind == "main")
    before = read(session)
    added = [append_turn(session.path, n) for n in range(2)]
    assert added[0] != added[1]
    assert len(read(session).turns) == len(before.turns) + 2
    assert len(read(session).calls) == len(before.calls) + 2
    assert session.path.read_bytes().endswith(b"".join(added))


def test_an_appended_turn_does_not_stick_to_a_line_that_was_left_open(tmp_path: Path) -> None:
    path = tmp_path / "11111111-2222-4333-8444-555555555555.jsonl"
    path.write_bytes(b'{"type":"mode"}')
    append_turn(path)
    assert len(list(records(path))) == path.read_bytes().count(b"\n") == 5


def test_a_copy_has_other_ids_and_words_and_the_same_shape(truth: Truth) -> None:
    lines = [line for path in truth.files[:6] for line in path.read_bytes().splitlines()]
    original, copy, other = ([alter_copy(line, n) for line in lines] for n in (0, 1, 2))
    assert original == lines
    assert all(b"uuid" not in line for line in set(copy) & set(lines))
    assert len(set(copy) - set(lines)) > len(lines) // 2
    assert copy != other

    def shape(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shape(item) for key, item in value.items()}
        return [shape(item) for item in value] if isinstance(value, list) else type(value)

    for before, after in zip(lines, copy, strict=True):
        if b"}{" not in before:
            assert shape(json.loads(before)) == shape(json.loads(after))


def test_a_copy_hangs_together_as_the_original_does(truth: Truth, tmp_path: Path) -> None:
    for session in truth.sessions.values():
        if session.kind != "main":
            continue
        path = tmp_path / alter_name(session.path.name, 5)
        path.write_bytes(b"".join(alter_copy(line, 5) for line in session.path.read_bytes().splitlines(keepends=True)))
        copy = read(SessionTruth(path.stem, path))
        assert (len(copy.turns), len(copy.steps), len(copy.messages)) == (
            session.turns,
            session.steps,
            session.messages,
        )
        assert Counter(call.status for call in copy.calls) == Counter(call.status for call in session.calls)
        assert not {call.call_id for call in copy.calls} & {call.call_id for call in session.calls}


def test_a_file_has_another_name_in_every_copy() -> None:
    for name in ("11111111-2222-4333-8444-555555555555.jsonl", "agent-a1bd4eab42ab8a6c5.meta.json", "notes.jsonl"):
        names = [alter_name(name, n) for n in range(20)]
        assert names[0] == name
        assert len(set(names)) == 20
        assert all(other.endswith(name[name.index(".") :]) for other in names)
