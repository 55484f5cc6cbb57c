"""Chats of VS Code Copilot: what the model sent, what was shown, and journals of changes."""

from __future__ import annotations

import json
import random
from pathlib import Path

from everturn.model.conversation import TokenUsage
from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.copilot_chat import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
DOCUMENTS = [SAMPLES / "agent.json", SAMPLES / "shown.json"]
JOURNAL = SAMPLES / "journal.jsonl"
AGENT = "5b1d2c3e-0000-4000-8000-000000000001"
SEALS = "5b1d2c3e-0000-4000-8000-000000000003"


def whole_of(path: Path) -> goldens.Whole:
    ((_, _, whole),) = goldens.readings(SOURCE, path)
    return whole


def test_calls_and_results_are_those_the_model_saw() -> None:
    with goldens.ingest("copilot_chat", SAMPLES / "agent.json") as taken:
        (session,) = taken.store.sessions_of("copilot_chat", AGENT)
        assert [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("read_file", "read", "ok", ""),
            ("read_file", "read", "error", "not_found"),
            ("run_in_terminal", "shell", "error", "exit_status"),
            ("run_in_terminal", "shell", "error", "rejected"),
        ]
        assert session.n_turns == 3
        assert taken.store.session(session.id)[1].title == "Counting walruses"
        assert taken.hits("make count") == [AGENT]
    whole = whole_of(SAMPLES / "agent.json")
    assert whole.texts("prompt") == ["count the walruses", "delete the otters", "and now?"]
    assert whole.texts("answer") == ["I read both files.", "There are three walruses."]
    assert [message.usage for message in whole.all() if message.usage] == [TokenUsage(4000, 120)]
    assert "interrupt" in {message.kind for message in whole.all()}


def test_without_rounds_the_answer_as_shown_is_read() -> None:
    whole = whole_of(SAMPLES / "shown.json")
    assert whole.texts("answer") == ["I look at herd.py first.", "I added an otter.", "Wait"]
    blocks = [block for message in whole.all() for block in message.blocks]
    calls = [(block.call.name, block.call.path or block.call.command) for block in blocks if block.call]
    assert calls[:2] == [("readFile", "/home/ann/zoo/herd.py"), ("run_in_terminal", "make count")]
    ends = [block.result for block in blocks if block.result]
    assert [end.error_class for end in ends] == ["", "exit_status", "permission", "rejected"]
    assert [message.usage for message in whole.all() if message.usage] == [TokenUsage(300, 40, 600)]


def test_a_journal_is_read_as_the_document_it_describes() -> None:
    with goldens.ingest("copilot_chat", JOURNAL) as taken:
        (session,) = taken.store.sessions_of("copilot_chat", SEALS)
        assert taken.store.session(session.id)[1].title == "Seals"
        assert taken.hits("seven seals") == [SEALS]
    assert whole_of(JOURNAL).texts("answer") == ["I think seven seals."]


def test_a_broken_journal_gives_what_it_can(tmp_path: Path) -> None:
    assert SOURCE.unpack is not None
    lines = JOURNAL.read_bytes().splitlines(keepends=True)
    for seed in range(40):
        dice = random.Random(seed)
        path = tmp_path / "x.jsonl"
        path.write_bytes(lines[0] + goldens.damaged(lines[1:], dice))
        for member in SOURCE.unpack(SourceCandidate(path, "container"), path):
            json.loads(b"".join(member.lines))


def test_chats_are_found_with_the_folder_of_their_window(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "Code" / "User" / "workspaceStorage" / "4f2a"
    (folder / "chatSessions").mkdir(parents=True)
    (folder / "workspace.json").write_text('{"folder": "file:///home/ann/my%20zoo"}')
    for path in (*DOCUMENTS, JOURNAL):
        (folder / "chatSessions" / path.name).write_bytes(path.read_bytes())
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux"))
    found = list(SOURCE.find(root))
    assert [one.kind for one in found] == ["main", "container", "main"]
    assert SOURCE.folder_of is not None
    assert {SOURCE.folder_of(one.path) for one in found} == {"/home/ann/my zoo"}
    assert SOURCE.folder_of(tmp_path / "a" / "b.json") == ""
    with goldens.ingest("copilot_chat", folder / "chatSessions" / JOURNAL.name) as taken:
        (session,) = taken.store.sessions_of("copilot_chat", SEALS)
        assert taken.store.session(session.id)[1].workspace == "/home/ann/my zoo"
