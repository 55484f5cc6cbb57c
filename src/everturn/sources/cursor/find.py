"""Finds what Cursor keeps on disk, and knows it by its content wherever else it lies.

    <home>/.cursor/projects/<slug>/agent-transcripts/<id>/<id>.jsonl             a transcript
    <home>/.cursor/projects/<slug>/agent-transcripts/<id>/subagents/<id>.jsonl   of a subagent
    <user>/globalStorage/state.vscdb, <user>/workspaceStorage/<hash>/state.vscdb databases

Markdown exports lie where people put them. Folders behind symbolic links are not entered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources import SearchPlaces, SourceCandidate, existing_folders
from everturn.sources.sqlitefile import beginnings, is_sqlite, stamp

NAME = "cursor"
DATABASE = "state.vscdb"

_TRANSCRIPTS = "agent-transcripts"
_DEEPEST = 8
_HEAD = 16 << 10

# Patterns are compiled when they are first needed: every start of the program imports this.
_LINE = rb'\s*\{\s*"role"\s*:\s*"(?:user|assistant)"\s*,\s*"message"\s*:\s*\{\s*"content"\s*:\s*\['
_EXPORT = rb"\s*# [^\n]*\n+_Exported on [^\n]{1,200} from Cursor(?: \([^()\n]{1,40}\))?_"
_FOLDER = rb'"workspace":("(?:[^"\\]|\\.)*")'


def roots(places: SearchPlaces) -> list[Path]:
    """Existing folders: named by the user, and the usual ones; each once."""
    wanted = [*places.extra.get(NAME, ()), places.home / ".cursor", _user_folder(places)]
    return existing_folders(wanted)


def find(root: Path) -> Iterator[SourceCandidate]:
    """All transcripts and databases below a root."""
    failures: list[OSError] = []
    starts = [root / name for name in ("projects", "globalStorage", "workspaceStorage") if (root / name).is_dir()]
    for start in starts or [root]:
        yield from _walk(str(start), start.name == _TRANSCRIPTS, failures, 0)
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    if is_sqlite(head):
        schema = beginnings(path, head)
        ours = b"cursorDiskKV" in schema or (path.name == DATABASE and b"ItemTable" in schema)
        return SourceCandidate(path, "container", stamp=stamp(path)) if ours else None
    start = head.removeprefix(b"\xef\xbb\xbf")
    if re.match(_LINE, start):
        return _transcript(path)
    return SourceCandidate(path, "main", path.stem) if re.match(_EXPORT, start) else None


def workspace(head: bytes) -> str:
    """The working folder that the lines of a conversation from a database begin with."""
    from everturn.sources.wholefile import decode_item

    found = re.search(_FOLDER, head.split(b"\n", 1)[0])
    value = decode_item(found[1])[0] if found else ""
    return value if isinstance(value, str) else ""


def _user_folder(places: SearchPlaces) -> Path:
    home = places.home
    if places.platform == "darwin":
        return home / "Library" / "Application Support" / "Cursor" / "User"
    if places.platform == "win32":
        return Path(places.env.get("APPDATA", "") or home / "AppData" / "Roaming") / "Cursor" / "User"
    return Path(places.env.get("XDG_CONFIG_HOME", "") or home / ".config") / "Cursor" / "User"


def _transcript(path: Path) -> SourceCandidate:
    above = path.parent
    if above.name == "subagents":
        return SourceCandidate(path, "subagent", path.stem, above.parent.name)
    return SourceCandidate(path, "main", path.stem)


def _walk(folder: str, transcripts: bool, failures: list[OSError], depth: int) -> Iterator[SourceCandidate]:
    folders = []
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry)
                elif (found := _file(entry, transcripts)) is not None:
                    yield found
    except OSError as failure:
        failures.append(failure)
    if depth < _DEEPEST:
        for entry in folders:
            yield from _walk(entry.path, transcripts or entry.name == _TRANSCRIPTS, failures, depth + 1)


def _file(entry: os.DirEntry[str], transcripts: bool) -> SourceCandidate | None:
    wanted = entry.name == DATABASE or (transcripts and entry.name.endswith(".jsonl"))
    if not wanted or not entry.is_file():
        return None
    try:
        with open(entry.path, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    return sniff(Path(entry.path), head)
