"""`everturn enrich`: calls that hooks have heard of get their turn from a transcript."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everturn import hook
from tests.capture.history import SID
from tests.cli.desk import Desk


@pytest.fixture
def heard(desk: Desk, tmp_path: Path) -> Desk:
    """Two calls that the hook has noted; one of them is in the transcript that is not taken in yet."""
    for number, call in enumerate(("c1", "gone")):
        event = {"session_id": SID, "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": call}
        data = json.dumps(event | {"tool_input": {}, "tool_response": "x"}).encode()
        hook.append(
            str(tmp_path / "state" / "spool"), hook.event_line(data, True, 1_772_000_000_000_000_000 + number, 7)
        )
    archive = desk.archive
    lines = [archive.history.line("user", "go"), archive.use("Bash", "c1"), archive.back("c1", "x")]
    archive.history.write(b"".join(lines))
    return desk


def test_a_call_that_the_transcript_has_is_found_and_named(heard: Desk) -> None:
    code, out, err = heard.run("enrich", "--transcript", str(heard.archive.history.file()))
    assert (code, err) == (0, "")
    assert out == "calls found in transcripts: 1; only heard of by the hook: 1\n"
    rows = heard.archive.store.hook_events(SID)
    assert {row.call_id: row.own is not None for row in rows} == {"c1": True, "gone": False}


def test_what_was_found_is_not_found_again(heard: Desk) -> None:
    words = ("enrich", "--transcript", str(heard.archive.history.file()), "--json")
    first, second = (json.loads(heard.run(*words)[1]) for _ in range(2))
    assert (first["found"], first["left"], first["heard"]) == (1, 1, 2)
    assert (second["found"], second["left"], second["heard"]) == (0, 1, 0)


def test_without_a_transcript_what_was_heard_is_kept(heard: Desk) -> None:
    code, out, _ = heard.run("enrich")
    assert code == 0 and "only heard of by the hook: 2" in out


def test_the_transcript_of_a_session_is_found_by_its_id(heard: Desk) -> None:
    other = heard.archive.history.file("77777777-2222-4333-8444-555555555555")
    other.write_bytes(heard.archive.history.turn("not heard of", "no", sid=other.stem))
    told = heard.json("enrich", "--claude-dir", str(heard.archive.history.root))
    assert (told["found"], told["left"]) == (1, 1)
    assert heard.archive.store.sessions_of("claude_code", other.stem) == []


def test_nothing_heard_is_no_answer(desk: Desk) -> None:
    assert desk.run("enrich")[0] == 3


def test_a_file_that_is_no_transcript_is_said(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk, eggs")
    code, _, err = desk.run("enrich", "--transcript", str(tmp_path / "notes.txt"))
    assert code == 3 and "notes.txt: no source knows this format" in err


def test_a_transcript_that_is_not_there_is_said(desk: Desk, tmp_path: Path) -> None:
    code, _, err = desk.run("enrich", "--transcript", str(tmp_path / "no.jsonl"))
    assert code == 2 and "there is no file" in err
