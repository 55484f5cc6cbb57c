"""Where logs are found, which session they belong to, and how one is known by its content."""

from __future__ import annotations

import json
from hashlib import md5
from pathlib import Path

from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.kimi import SOURCE
from tests.sources.goldens import put

EVENT = b'{"timestamp": 1782000000.5, "message": {"type": "TurnBegin", "payload": {"user_input": "hi"}}}\n'
RECORD = b'{"type":"context.append_message","message":{"role":"user","content":[]},"time":1785000000000}\n'


def test_roots_are_the_folders_of_both_clients_and_what_is_named_each_once(tmp_path: Path) -> None:
    assert SOURCE.roots(SearchPlaces(tmp_path, {}, "linux")) == []
    old, new, named = tmp_path / ".kimi", tmp_path / ".kimi-code", tmp_path / "named"
    for folder in (old, new, named):
        folder.mkdir()
    assert SOURCE.roots(SearchPlaces(tmp_path, {}, "linux")) == [old, new]
    given = SearchPlaces(tmp_path, {"KIMI_SHARE_DIR": "~/named"}, "linux", {"kimi": (new,)})
    assert SOURCE.roots(given) == [new, named, old]


def test_folders_name_the_session_and_the_subagent(tmp_path: Path) -> None:
    put(tmp_path / "sessions" / "0a" / "one" / "wire.jsonl", EVENT)
    put(tmp_path / "sessions" / "0a" / "one" / "context.jsonl", b'{"role":"user","content":"hi"}\n')
    put(tmp_path / "sessions" / "0a" / "one" / "subagents" / "a1" / "wire.jsonl", EVENT)
    put(tmp_path / "sessions" / "0a" / "one" / "subagents" / "a2" / "wire.jsonl", b"")
    put(tmp_path / "sessions" / "wd" / "two" / "agents" / "main" / "wire.jsonl", RECORD)
    put(tmp_path / "sessions" / "wd" / "two" / "agents" / "agent-0" / "wire.jsonl", RECORD)
    put(tmp_path / "outside" / "wire.jsonl", EVENT)
    assert {(found.kind, found.native_id, found.parent) for found in SOURCE.find(tmp_path)} == {
        ("main", "one", ""),
        ("subagent", "one/a1", "one"),
        ("main", "two", ""),
        ("subagent", "two/agent-0", "two"),
    }
    assert [found.native_id for found in SOURCE.find(tmp_path / "outside")] == ["outside"]


def test_the_working_folder_is_noted_beside_the_log(tmp_path: Path) -> None:
    assert SOURCE.folder_of is not None
    name = md5(b"/home/ada/ferry", usedforsecurity=False).hexdigest()
    put(tmp_path / "kimi.json", json.dumps({"work_dirs": [3, {"path": "/x"}, {"path": "/home/ada/ferry"}]}).encode())
    session = tmp_path / "sessions" / name / "one"
    assert SOURCE.folder_of(put(session / "wire.jsonl", EVENT)) == "/home/ada/ferry"
    assert SOURCE.folder_of(put(session / "subagents" / "a1" / "wire.jsonl", EVENT)) == "/home/ada/ferry"
    other = tmp_path / "sessions" / "wd" / "two"
    main = put(other / "agents" / "main" / "wire.jsonl", RECORD)
    assert SOURCE.folder_of(main) == ""
    put(other / "state.json", b'{"workDir": "/home/ada/harbour"}')
    assert SOURCE.folder_of(main) == "/home/ada/harbour"
    put(other / "state.json", b"[broken")
    assert SOURCE.folder_of(main) == ""


def test_a_log_is_known_by_its_events() -> None:
    path = Path("/x/y.jsonl")
    for own in (EVENT, RECORD, b'{"type":"metadata","protocol_version":"1.10"}\n'):
        assert SOURCE.sniff(path, own) == SourceCandidate(path, "main", "y")
    for other in (b"", b"text", b"[]", b"{}\n", b'{"type":"metadata"}\n', EVENT.replace(b"TurnBegin", b"Other")):
        assert SOURCE.sniff(path, other) is None
