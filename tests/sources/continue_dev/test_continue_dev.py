"""Sessions of Continue: prompts with their context, calls with what became of them."""

from __future__ import annotations

import json
from pathlib import Path

from everturn.model.conversation import TokenUsage
from everturn.sources.continue_dev import SOURCE
from everturn.sources.contract import SearchPlaces
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
AGENT, OLDER = SAMPLES / "agent.json", SAMPLES / "older.json"
PATHS = [AGENT, OLDER]
IDS = {path: json.loads(path.read_bytes())["sessionId"] for path in PATHS}


def whole_of(path: Path) -> goldens.Whole:
    ((_, _, whole),) = goldens.readings(SOURCE, path)
    return whole


def test_calls_say_what_became_of_them() -> None:
    with goldens.ingest("continue_dev", AGENT) as taken:
        (session,) = taken.store.sessions_of("continue_dev", IDS[AGENT])
        calls = [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)]
        assert calls == [
            ("read_file", "read", "ok", ""),
            ("read_file", "read", "error", "not_found"),
            ("run_terminal_command", "shell", "error", "rejected"),
            ("run_terminal_command", "shell", "open", ""),
        ]
        assert session.n_turns == 1
        about = taken.store.session(session.id)[1]
        assert (about.title, about.workspace) == ("Counting walruses", "/home/ann/my zoo")
        assert taken.hits("three walruses") == [IDS[AGENT]]
    whole = whole_of(AGENT)
    assert whole.texts("prompt") == ["count the walruses"]
    assert whole.texts("thinking") == ["two files", "three then"]
    assert whole.texts("tool_output").count("herd = 3") == 1
    assert [message.usage for message in whole.all() if message.usage] == [TokenUsage(300, 40, 600)]


def test_older_sessions_have_one_call_per_answer_or_its_result_as_a_message() -> None:
    with goldens.ingest("continue_dev", OLDER) as taken:
        (session,) = taken.store.sessions_of("continue_dev", IDS[OLDER])
        calls = [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)]
        assert calls == [
            ("builtin_read_file", "read", "ok", ""),
            ("builtin_run_terminal_command", "shell", "error", "exit_status"),
        ]
    assert whole_of(OLDER).texts("answer") == ["I look.", "I run it.", "Seven seals."]


def test_sessions_are_found_without_their_list(tmp_path: Path) -> None:
    folder = tmp_path / ".continue" / "sessions"
    folder.mkdir(parents=True)
    for path in PATHS:
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "sessions.json").write_text(json.dumps([{"sessionId": "x", "title": "y", "workspaceDirectory": "/z"}]))
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux"))
    assert [found.native_id for found in SOURCE.find(root)] == [IDS[path] for path in PATHS]
    assert SOURCE.workspace(AGENT.read_bytes()) == "/home/ann/my zoo"


def test_a_long_session_is_recognised_by_its_end(tmp_path: Path) -> None:
    session = json.loads(OLDER.read_bytes())
    session["history"][0]["message"]["content"] = "seal " * 40_000
    path = tmp_path / "long.json"
    path.write_text(json.dumps(session))
    found = SOURCE.sniff(path, path.read_bytes()[: goldens.HEAD])
    assert found is not None
    assert found.native_id == IDS[OLDER]
