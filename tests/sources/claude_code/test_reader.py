"""Facts that the reader combines from several records, and the parts it is made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everturn.sources.claude_code import SOURCE
from everturn.sources.claude_code.blocks import error_class, find_speaker, guess_speaker, unwrap
from everturn.sources.claude_code.reader_state import Queue, item_of
from everturn.sources.claude_code.records import ClaudeRecord
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit import line_reader
from tests.sources.claude_code.reading import read

MAIN = SourceCandidate(Path("s.jsonl"), "main", "s")


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def prompt(text: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "sessionId": "s", "message": {"role": "user", "content": text}, **more}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (prompt("hello"), ("human", "text", True)),
        (prompt("  <command-name>/x</command-name>"), ("human", "command", True)),
        (prompt("<command-name>/x</command-name>", isSidechain=True), ("agent", "command", True)),
        (prompt("<bash-input>ls</bash-input>"), ("human", "shell", True)),
        (prompt("<bash-stderr>no</bash-stderr>"), ("tool", "output", False)),
        (prompt("<local-command-stderr>no</local-command-stderr>"), ("system", "output", False)),
        (prompt("anything", isMeta=True), ("injected", "context", False)),
        (prompt("anything", isCompactSummary=True), ("injected", "summary", False)),
        (prompt("<system-reminder>x</system-reminder>"), ("injected", "context", False)),
        (prompt("<system-reminder>never closed"), ("injected", "context", False)),
        (prompt("<system-reminder>x</system-reminder> do it"), ("human", "text", True)),
        (prompt("<system-reminder>pasted", origin={"kind": "human"}), ("human", "text", True)),
        (prompt("go on", origin={"kind": "task-notification"}), ("agent", "notification", False)),
        (prompt("go on", origin={"kind": "something new"}), ("agent", "notification", False)),
        (prompt("go on", origin={"kind": "something new"}, isSidechain=True), ("agent", "text", True)),
        (prompt("go on", promptSource="system"), ("injected", "context", False)),
        (prompt("go on", promptSource="sdk"), ("human", "text", True)),
        (prompt("go on", isSidechain=True), ("agent", "text", True)),
        (prompt("go on", teamName="t", agentName="a"), ("agent", "text", True)),
        (prompt("go on", teamName="t", agentName="a", origin={"kind": "human"}), ("human", "text", True)),
        (prompt("<teammate-message x>"), ("agent", "notification", False)),
        (prompt("<teammate-message x>", teamName="t", agentName="a"), ("agent", "text", True)),
        (prompt("[Request interrupted by user]", isSidechain=True), ("system", "interrupt", False)),
        (prompt("[a list] of mine"), ("human", "text", True)),
        (prompt("Take this"), ("human", "text", True)),
        (prompt("<div>mine</div>"), ("human", "text", True)),
        (prompt([{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": "do"}]), ("human", "text", True)),
        (prompt([{"type": "text", "text": "[Request interrupted by user]"}]), ("system", "interrupt", False)),
        (prompt([{"type": "image", "source": {}}]), ("human", "text", True)),
    ],
)  # fmt: skip
def test_who_is_speaking_is_told_by_a_few_marks_and_the_first_words(
    record: dict[str, Any], expected: tuple[str, str, bool]
) -> None:
    message = SOURCE.view(json.dumps(record).encode())
    assert message is not None
    assert (message.origin, message.kind, message.starts_turn) == expected


def test_a_queued_word_that_is_heard_elsewhere_is_not_said_again() -> None:
    queue = Queue()
    for text in ("first", "<task-notification>x", "second"):
        queue.enqueue(item_of(text, 0, 1, None))
    queue.dequeue()  # "first", it seems
    queue.note_heard("<task-notification>x")  # but it was the notification
    removed = [queue.remove(None), queue.remove(None), queue.remove(None)]
    assert [item.text for item in removed if item] == ["first", "second"]
    assert queue.repeats("second ")
    assert not queue.repeats("second")


def test_a_removal_that_names_its_words_removes_only_those() -> None:
    queue = Queue()
    queue.enqueue(item_of("one", 0, 1, None))
    queue.enqueue(item_of("two", 1, 1, None))
    assert queue.remove("three") is None
    removed = queue.remove("two")
    assert removed is not None
    assert removed.start == 1
    assert [item.text for item in queue.waiting] == ["one"]


def test_a_flat_subagent_file_learns_from_its_records_where_it_belongs() -> None:
    found = SourceCandidate(Path("agent-a1.jsonl"), "subagent", "agent-a1", "")
    data = lines({"type": "mode", "mode": "normal"}, prompt("dig", isSidechain=True), prompt("deeper", sessionId="t"))
    whole = read(found, data, cuts=[5, 40], stops=[True, True])
    assert list(whole.messages) == ["s/agent-a1"]
    assert whole.facts["s/agent-a1"]["parent"] == "s"
    assert list(read(found, lines({"type": "what"}, prompt("dig"))).messages) == ["agent-a1"]


def test_a_sidechain_with_an_agent_id_is_that_agents_session() -> None:
    whole = read(MAIN, lines(prompt("dig", isSidechain=True, agentId="a9")))
    assert list(whole.messages) == ["s/agent-a9"]


def test_facts_are_the_first_folder_and_the_last_branch_and_client() -> None:
    one = prompt("a", cwd="/first", gitBranch="main", version="2.0.1")
    two = prompt("b", cwd="/second", gitBranch="next", version="2.0.2")
    for cuts in ([], [len(lines(one))]):
        facts = read(MAIN, lines(one, two), cuts, [True]).facts["s"]
        assert (facts["workspace"], facts["branch"], facts["client"]) == ("/first", "next", "2.0.2")


def test_of_a_very_long_line_the_beginning_is_indexed_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_reader, "LONG_LINE", 300)
    monkeypatch.setattr(line_reader, "LONG_TEXT", 20)
    blocks = [
        {"type": "text", "text": "w" * 400},
        {"type": "tool_use", "id": "t", "name": "Write", "input": {"file_path": "/a", "content": "c" * 400}},
    ]
    record = {"type": "assistant", "message": {"role": "assistant", "content": blocks}}
    whole = read(MAIN, lines(record, prompt("short")))
    text, call = whole.messages["s"][0].blocks
    assert (text.text, text.data) == ("w" * 20, None)
    assert call.call is not None
    assert (call.call.path, call.call.input, len(call.text)) == ("/a", None, 20)
    assert [problem.kind for problem in whole.problems] == ["indexed_in_part"]
    assert sum(whole.census.values()) == 2


def test_a_title_of_the_humans_is_not_replaced_by_a_models() -> None:
    custom, model = {"type": "custom-title", "customTitle": "mine"}, {"type": "ai-title", "aiTitle": "its"}
    for cuts in ([], [len(lines(custom))]):
        assert read(MAIN, lines(custom, model), cuts, [True]).facts["s"]["title"] == "mine"
        assert read(MAIN, lines(model, custom), cuts, [True]).facts["s"]["title"] == "mine"


def test_records_about_a_session_alone_make_no_message_and_can_be_viewed_as_none() -> None:
    for record in ({"type": "mode"}, {"type": "queue-operation", "operation": "dequeue"}, {"type": "pr-link"}):
        assert read(MAIN, lines(record)).messages == {}
        assert SOURCE.view(json.dumps(record).encode()) is None


def test_an_enqueued_prompt_can_be_viewed() -> None:
    record = {
        "type": "queue-operation",
        "operation": "enqueue",
        "content": "wait",
        "timestamp": "2026-03-01T09:00:01.500Z",
    }
    message = SOURCE.view(json.dumps(record).encode())
    assert message is not None
    assert (message.origin, message.kind, message.blocks[0].text, message.at) == (
        "human",
        "queued",
        "wait",
        1772355601500,
    )


def test_blocks_are_kept_as_found() -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "abc"}
    message = SOURCE.view(lines({"type": "assistant", "message": {"content": [block]}}).rstrip())
    assert message is not None
    assert message.blocks[0].data == block


def test_an_error_nobody_knows_is_other() -> None:
    assert error_class("the sky fell") == "other"
    assert error_class("") == "other"


def test_wrappers_are_told_from_the_words_behind_them() -> None:
    assert unwrap("<ide_a>x</ide_a> <ide_b>y</ide_b>\n\nfix") == ("<ide_a>x</ide_a> <ide_b>y</ide_b>", "fix")
    assert unwrap("plain") == ("", "plain")
    assert guess_speaker("<ide_a>x</ide_a>").kind == "context"
    assert find_speaker(ClaudeRecord(), [], False).starts_turn
