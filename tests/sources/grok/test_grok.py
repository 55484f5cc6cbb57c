"""Sessions of Grok Build."""

from __future__ import annotations

import json
from pathlib import Path

from everturn.sources.contract import SearchPlaces
from everturn.sources.grok import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
PATHS = [SAMPLES / "chat_history.jsonl"]


def test_calls_say_what_became_of_them() -> None:
    with goldens.ingest("grok", PATHS[0]) as taken:
        (session,) = taken.store.sessions_of("grok", "samples")
        assert [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("read_file", "read", "ok", ""),
            ("run_terminal_cmd", "shell", "error", "exit_status"),
            ("web_search", "search", "open", ""),
        ]
        assert (session.n_turns, session.n_prompts, taken.hits("count the walruses")) == (1, 2, ["samples"])


def test_sessions_are_found_with_their_working_folder(tmp_path: Path) -> None:
    session = tmp_path / ".grok" / "sessions" / "%2Fhome%2Fann%2Fzoo" / "0191-x" / "chat_history.jsonl"
    session.parent.mkdir(parents=True)
    session.write_bytes(PATHS[0].read_bytes())
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux"))
    assert [(found.path, found.native_id) for found in SOURCE.find(root)] == [(session, "0191-x")]
    assert SOURCE.folder_of is not None
    assert SOURCE.folder_of(session) == "/home/ann/zoo"
    (session.parent / "summary.json").write_text(json.dumps({"cwd": "/home/ann/other"}))
    assert SOURCE.folder_of(session) == "/home/ann/other"
