"""Persisted outputs and the notes beside a subagent's transcript."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.model.conversation import Link
from everturn.sources.claude_code import SOURCE, whole_files
from everturn.sources.contract import SourceCandidate
from tests.sources.claude_code.reading import read

SID = "0b5e7c1a-3f7d-4c55-9a3e-6f1d2b8c9e10"
OUTPUT = SourceCandidate(Path("toolu_01X.txt"), "output", f"{SID}/tool-results/toolu_01X.txt", SID)
NOTED = SourceCandidate(Path("agent-a1.meta.json"), "meta", f"{SID}/agent-a1.meta", SID)


def texts(found: SourceCandidate, data: bytes, cuts: list[int], stops: list[bool]) -> list[str]:
    result = read(found, data, cuts, stops)
    assert result.consumed == len(data)
    assert sum(result.census.values()) == result.lines
    messages = result.messages.get(found.native_id, [])
    for message in messages:
        viewed = SOURCE.view(data[message.start : message.start + message.size])
        assert viewed is not None
        assert [block.text for block in viewed.blocks] == [block.text for block in message.blocks]
    return [message.blocks[0].text for message in messages]


def test_an_output_is_one_message_that_hangs_on_its_call() -> None:
    data = "12:00 → 4.2\n18:00 → 0.9".encode()
    result = read(OUTPUT, data)
    (message,) = result.messages[OUTPUT.native_id]
    assert (message.role, message.origin, message.kind) == ("tool", "tool", "output")
    assert (message.start, message.size) == (0, len(data))
    assert message.blocks[0].field == "tool_output"
    assert result.links[OUTPUT.native_id] == [Link("output_of", SID, "toolu_01X")]
    assert result.facts[OUTPUT.native_id] == {"kind": "output", "parent": SID}


def test_an_output_with_a_short_name_hangs_on_its_session() -> None:
    found = SourceCandidate(Path("b7.txt"), "output", f"{SID}/tool-results/b7.txt", SID)
    assert read(found, b"x").links[found.native_id] == [Link("output_of", SID, "")]


def test_an_output_that_grows_is_never_read_twice() -> None:
    data = b"one\ntwo\nthree\n"
    assert texts(OUTPUT, data, [4, 6], [True, False]) == ["one\n", "two\nthree\n"]
    links = read(OUTPUT, data, [4, 8], [True, True]).links[OUTPUT.native_id]
    assert len(links) == 1


def test_a_long_output_is_cut_at_line_ends_and_never_inside_a_character(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_files, "_LONGEST", 10)
    assert texts(OUTPUT, b"12345\n12345\n12345678901234", [], []) == ["12345\n", "12345\n", "1234567890", "1234"]
    assert texts(OUTPUT, "123456789é123456789€".encode(), [], []) == ["123456789", "é12345678", "9€"]
    assert "".join(texts(OUTPUT, b"\x80" * 25, [], [])) == "\ufffd" * 25


def test_an_empty_output_says_nothing() -> None:
    assert read(OUTPUT, b"").messages == {}


def test_notes_about_a_subagent_are_context_about_it() -> None:
    data = b'{"agentType":"Explore","description":"Map the harbour"}'
    result = read(NOTED, data)
    (message,) = result.messages[NOTED.native_id]
    assert (message.role, message.kind, message.blocks[0].text) == ("system", "context", "Explore\nMap the harbour")
    assert result.links[NOTED.native_id] == [Link("about", f"{SID}/agent-a1")]
    assert texts(NOTED, data, [], []) == ["Explore\nMap the harbour"]
    assert texts(NOTED, b"not JSON", [], []) == ["not JSON"]
