"""What holds for every format, whatever it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from everturn.sources import Places, Source, abilities, all_sources, beginning

NAMES = (
    "x.jsonl", "x.json", "x.md", "x.zip", "x.cast", "typescript", "opencode.db", "sessions.db", "state.vscdb", "events.jsonl",
    "conversations.json", "api_conversation_history.json", ".aider.chat.history.md", "session-2026-01-01T10-00-abcdef01.json",
)  # fmt: skip


@pytest.mark.parametrize("source", all_sources().values(), ids=lambda source: source.name)
def test_nobody_waits_for_a_pipe(source: Source, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "chats", tmp_path / "sessions", tmp_path / "projects" / "a"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            os.mkfifo(folder / name)
    assert all(found.path.exists() for found in source.find(tmp_path))


@pytest.mark.parametrize("source", all_sources().values(), ids=lambda source: source.name)
def test_a_machine_without_anything_has_no_folders(source: Source, tmp_path: Path) -> None:
    for platform in ("linux", "darwin", "win32"):
        assert source.roots(Places(tmp_path / "nobody", {}, platform)) == []


@pytest.mark.parametrize("source", all_sources().values(), ids=lambda source: source.name)
def test_nobody_claims_ordinary_files(source: Source, tmp_path: Path) -> None:
    for name, text in {
        "notes.txt": "milk, eggs\n",
        "a.py": "import os\n",
        "a.json": '{"a": 1}\n',
        "a.csv": "a,b\n1,2\n",
    }.items():
        assert source.sniff(tmp_path / name, text.encode()) is None


def test_every_source_says_what_it_can() -> None:
    for source in all_sources().values():
        assert abilities(source)[0] == "read"
        assert source.title
        assert source.parser >= 1


def test_the_beginning_of_what_cannot_be_read_is_nothing(tmp_path: Path) -> None:
    assert beginning(tmp_path) == b""
    assert beginning(tmp_path / "missing") == b""
    (tmp_path / "file").write_bytes(b"hello")
    assert beginning(tmp_path / "file", 4) == b"hell"
