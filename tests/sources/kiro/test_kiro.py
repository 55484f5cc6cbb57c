"""Sessions of Kiro: lines of the CLI, documents of the editor."""

from __future__ import annotations

import json
from pathlib import Path

from everturn.sources.contract import SearchPlaces
from everturn.sources.kiro import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
PATHS = [SAMPLES / "5ea11111-0000-4000-8000-000000000001.jsonl"]


EDITOR = SAMPLES / "editor.json"


def test_a_document_of_the_editor_has_what_was_said() -> None:
    ((found, _, whole),) = goldens.readings(SOURCE, EDITOR)
    assert whole.texts("prompt") == ["paint the seals"]
    assert whole.texts("answer") == ["The seals are painted."]
    assert found.native_id.endswith("0002")


def test_calls_say_what_became_of_them() -> None:
    with goldens.ingest("kiro", PATHS[0]) as taken:
        (session,) = taken.store.sessions_of("kiro", "5ea11111-0000-4000-8000-000000000001")
        assert [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("fs_read", "read", "ok", ""),
            ("execute_bash", "shell", "error", "other"),
            ("write", "create", "ok", ""),
        ]


def test_sessions_are_found_in_their_folders(tmp_path: Path) -> None:
    folder = tmp_path / ".kiro" / "sessions" / "cli"
    folder.mkdir(parents=True)
    session = folder / PATHS[0].name
    session.write_bytes(PATHS[0].read_bytes())
    session.with_suffix(".json").write_text(json.dumps({"session_id": session.stem, "cwd": "/home/ann/zoo"}))
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux"))
    assert [found.path for found in SOURCE.find(root)] == [session]
    assert SOURCE.folder_of is not None
    assert SOURCE.folder_of(session) == "/home/ann/zoo"
    assert SOURCE.workspace(EDITOR.read_bytes()) == "/home/ann/zoo"


def test_a_damaged_first_line_does_not_hide_the_others() -> None:
    ((found, data, whole),) = goldens.readings(SOURCE, PATHS[0])
    first, *others = data.splitlines(keepends=True)
    for damaged in (bytes(len(first) - 1) + b"\n", b"{\n", first[: len(first) // 9] + b"\n"):
        read = goldens.read(SOURCE, found, damaged + b"".join(others))
        assert read.texts() == whole.texts()[-len(read.texts()) :]
        assert (len(read.all()), len(read.problems)) == (len(whole.all()) - 1, 1)
