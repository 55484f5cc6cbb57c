"""Finds sessions on disk, and knows them by their content wherever else they lie.

    <data>/sessions/sessions.db      all sessions, since version 1.10
    <data>/sessions/<name>.jsonl     one session

`<data>` is `~/.local/share/goose` on Linux and macOS, `%APPDATA%\\Block\\goose\\data` on Windows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources import SearchPlaces, SourceCandidate, existing_folders, read_beginning
from everturn.sources.sqlitefile import beginnings, is_sqlite, stamp

NAME = "goose"
_HEAD_SIZE = 16 << 10
_SCHEMA = (b"CREATE TABLE sessions", b"CREATE TABLE messages", b"content_json", b"working_dir")

# Patterns are compiled when they are first needed: every start of the program imports this.
_FIRST = rb'\s*\{(?=[^\n]*"working_dir"\s*:)(?=[^\n]*"(?:message_count|description)"\s*:)(?![^\n]*"role"\s*:)'
_FOLDER = rb'"working_dir"\s*:\s*("(?:[^"\\]|\\.)*")'


def roots(places: SearchPlaces) -> list[Path]:
    """Existing folders: named by the user, by the environment, and the usual one; each once."""
    wanted = list(places.extra.get(NAME, ()))
    moved = places.env.get("GOOSE_PATH_ROOT", "").strip()
    wanted += [Path(moved) / "data" / "sessions"] if moved else []
    if places.platform == "win32":
        base = Path(places.env.get("APPDATA", "") or places.home / "AppData" / "Roaming") / "Block" / "goose" / "data"
    else:
        base = Path(places.env.get("XDG_DATA_HOME", "") or places.home / ".local" / "share") / "goose"
    wanted.append(base / "sessions")
    return existing_folders(wanted)


def find(root: Path) -> Iterator[SourceCandidate]:
    """The database and the files of lines in a folder, or in its `sessions`."""
    for folder in (root, root / "sessions"):
        if not folder.is_dir() or (folder != root and folder.is_symlink()):
            continue
        with os.scandir(folder) as entries:
            names = sorted(
                entry.path for entry in entries if entry.name.endswith((".jsonl", ".db")) and entry.is_file()
            )
        for name in names:
            found = sniff(Path(name), read_beginning(name))
            if found is not None:
                yield found


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    if is_sqlite(head):
        schema = beginnings(path, head)
        ours = all(words in schema for words in _SCHEMA)
        return SourceCandidate(path, "container", stamp=stamp(path)) if ours else None
    return SourceCandidate(path, "main", path.stem) if re.match(_FIRST, head) else None


def workspace(head: bytes) -> str:
    """The working folder that the first line names."""
    from everturn.sources.wholefile import decode_item

    found = re.search(_FOLDER, head.split(b"\n", 1)[0])
    value = decode_item(found[1])[0] if found else ""
    return value if isinstance(value, str) else ""


def resume_command(native_id: str) -> list[str]:
    """The command that goes on with a session."""
    return ["goose", "session", "--resume", "--session-id", native_id]
