"""What `python -m tests.fuzz` has found, each as the smallest input that showed it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everturn.model.conversation import Link
from everturn.sources.contract import SourceCandidate, all_sources
from everturn.sources.terminal.screen import TerminalScreen
from tests.sources import goldens


def lines_of(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def test_a_block_whose_type_is_no_word_is_kept_as_unknown() -> None:
    content = [{"type": {"type": "text"}, "text": "walrus"}, {"type": ["tool_use"]}]
    record = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": content}}
    source, found = all_sources()["claude_code"], SourceCandidate(Path("s.jsonl"), "main", "s")
    whole = goldens.read(source, found, lines_of(record))
    assert [block.kind for message in whole.all() for block in message.blocks] == ["unknown", "unknown"]
    assert "walrus" in "".join(whole.texts("meta"))


@pytest.mark.parametrize("size", [200, 249, 250, 251, 255, 256, 257, 300, 600])
def test_a_sequence_that_never_ends_is_noise_wherever_it_is_cut(size: int) -> None:
    data = b"before\x1b[" + b"9" * size + b"mafter"
    whole = TerminalScreen(40, 30)
    whole.feed(data)
    for cut in range(1, len(data)):
        pieces = TerminalScreen(40, 30)
        pieces.feed(data[:cut])
        pieces.feed(data[cut:])
        assert pieces.lines() == whole.lines(), cut


def test_a_speaker_line_that_goes_on_in_the_next_piece_is_no_speaker() -> None:
    data = b"# Title\n_Exported on 5/19/2025 at 11:13:55 EDT from Cursor (0.50.4)_\n\n---\n\n**User**\n\nhi\n\n---\n\n**Cursor** x\n"
    source, found = all_sources()["cursor"], SourceCandidate(Path("export.md"), "main", "export")
    whole = goldens.read(source, found, data)
    assert [message.role for message in whole.all()] == ["system", "user"]
    for cut in range(len(data)):
        goldens.assert_same(goldens.read(source, found, data, [cut]), whole)


def test_a_session_said_to_go_on_from_another_is_linked_once_in_any_pieces() -> None:
    path = Path(__file__).parent / "chat_markdown" / "samples" / "restored.md"
    source, data = all_sources()["chat_markdown"], path.read_bytes()
    found = goldens.found_for(source, path, data)
    whole = goldens.read(source, found, data)
    assert [link for links in whole.links.values() for link in links].count(Link("continues", "session_2")) == 1
    for cut in range(0, len(data), 7):
        goldens.assert_same(goldens.read(source, found, data, [cut]), whole)


def test_a_parent_that_is_told_after_the_first_message_is_known_in_any_pieces() -> None:
    message = {"info": {"id": "m1", "role": "user", "sessionID": "ses_child", "time": {"created": 1}}, "parts": []}
    session = {
        "info": {"id": "ses_child", "parentID": "ses_top", "title": "look", "directory": "/d", "version": "1.18.0"}
    }
    data = lines_of(message, session)
    source, found = all_sources()["opencode"], SourceCandidate(Path("x#1"), "subagent", "ses_child")
    whole = goldens.read(source, found, data)
    for cut in range(1, len(data)):
        goldens.assert_same(goldens.read(source, found, data, [cut], [True]), whole)


@pytest.mark.parametrize("name", ["gemini", "goose"])
def test_a_number_of_any_length_is_read_and_viewed(name: str) -> None:
    records = {
        "gemini": '{"id":"a","timestamp":"2026-03-02T09:00:09Z","type":"gemini","content":"walrus","tokens":{"input":%s}}',
        "goose": '{"role":"user","created":%s,"content":[{"type":"text","text":"walrus"}]}',
    }
    data = (records[name] % ("9" * 5000)).encode() + b"\n"
    source = all_sources()[name]
    whole = goldens.read(source, SourceCandidate(Path("x.jsonl"), "main", "x"), data)
    goldens.assert_keeps_promises(source, data, whole)
    assert whole.texts("prompt", "answer") == ["walrus"]


def test_a_damaged_line_of_a_recording_keeps_to_the_words_of_the_archive() -> None:
    call = {"name": "Read", "kind": "walrus", "error_class": "odd", "action": "eaten", "status": "ok"}
    said = {
        "role": "nobody",
        "kind": "odd",
        "precision": "odd",
        "fidelity": "odd",
        "at": 5,
        "text": "hi",
        "calls": [call],
    }
    data = lines_of(
        {"talk": {"titles": 7, "workspace": ["x"]}}, {"said": said, "n": 1}, {"said": said | {"at": 2**70}},
        {"said": {"role": 1, "text": "walrus"}},
    )  # fmt: skip
    source = all_sources()["terminal"]
    whole = goldens.read(source, SourceCandidate(Path("x#1"), "main", "x"), data)
    goldens.assert_keeps_promises(source, data, whole)
    assert [(message.at, message.precision) for message in whole.all()] == [(5, "ms"), (None, ""), (None, "")]
    assert "walrus" in whole.texts("meta")[-1]


def test_words_queued_at_an_impossible_time_are_remembered() -> None:
    source, found = all_sources()["claude_code"], SourceCandidate(Path("s.jsonl"), "main", "s")
    record = {"type": "queue-operation", "operation": "enqueue", "content": "use port 8080", "timestamp": 2**70}
    reader = source.reader(found, b"")
    reader.feed(lines_of(record), 0, True)
    later = source.reader(found, reader.state()).feed(lines_of(record | {"operation": "remove"}), 0, True)
    assert [message.at for part in later.parts for message in part.messages] == [None]


def test_blanks_before_the_form_is_known_are_left_for_later() -> None:
    source, found = all_sources()["cursor"], SourceCandidate(Path("x"), "main", "x")
    data = b"\n\n# Title\n"
    whole = goldens.read(source, found, data)
    for cut in range(len(data)):
        goldens.assert_same(goldens.read(source, found, data, [cut]), whole)


def test_a_type_that_is_a_list_is_no_type() -> None:
    for name, line in {
        "kiro": b'{"kind": [1], "data": {}}\n{"kind":"Prompt"}\n',
        "grok": b'{"type": [1], "content": ""}\n',
    }.items():
        assert all_sources()[name].sniff(Path("x.jsonl"), line) is None
