"""Finds sessions on disk, and knows them by their content wherever else they lie.

    <agent>/sessions/--<working folder>--/<time>_<session>.jsonl

`<agent>` is PI_CODING_AGENT_DIR or `~/.pi/agent`. Folders behind symbolic links are not entered, except `sessions` itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources import SearchPlaces, SourceCandidate, existing_folders, read_beginning

NAME = "pi"
HEAD = 64 << 10

_SESSIONS = "sessions"
_NAMED = re.compile(
    r".*[_-]([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl", re.IGNORECASE | re.DOTALL
)
_DEEPEST = 8


def roots(places: SearchPlaces) -> list[Path]:
    """Existing folders: named by the user, by the environment, and the usual one; each once, whatever leads to it."""
    wanted = [*places.extra.get(NAME, ())]
    named = places.env.get("PI_CODING_AGENT_DIR", "").strip()
    if named:
        wanted.append(places.home / named[2:] if named.startswith(("~/", "~\\")) else Path(named))
    return existing_folders([*wanted, places.home / ".pi" / "agent"])


def find(root: Path) -> Iterator[SourceCandidate]:
    """All sessions below a root: the client's folder, its `sessions`, or any folder with sessions."""
    sessions = root / _SESSIONS
    failures: list[OSError] = []
    yield from _walk(str(sessions if sessions.is_dir() else root), failures, 0, sure=sessions.is_dir())
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    header = _header(head)
    if header is None:
        return None
    named = _NAMED.fullmatch(path.name)
    return SourceCandidate(path, "main", header.get("id") or (named[1].lower() if named else path.stem))


def workspace(head: bytes) -> str:
    """The working folder that a file names; "" when its beginning names none."""
    return (_header(head) or {}).get("cwd", "")


def session_in(path: str) -> str:
    """The id of the session in a file, as far as the file's name tells."""
    named = _NAMED.fullmatch(path)
    return named[1].lower() if named else ""


def resume_command(native_id: str) -> list[str]:
    """The command that goes on with a session."""
    return ["pi", "--session", native_id]


def _header(head: bytes) -> dict[str, str] | None:
    """What the first line says; None when it is not the first line of a session."""
    if head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")[:1] != b"{":
        return None
    from everturn.sources.foreign import word
    from everturn.sources.linewise import records

    found = records(head[: head.find(b"\n") + 1] or head) or records(head)
    first = found[0] if found else {}
    is_header = first.get("type") == "session" and all(word(first.get(key)) for key in ("id", "timestamp", "cwd"))
    return {key: word(first[key]) for key in ("id", "cwd")} if is_header else None


def _walk(folder: str, failures: list[OSError], depth: int, sure: bool) -> Iterator[SourceCandidate]:
    folders = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.endswith(".jsonl") and (found := _file(entry, sure)) is not None:
                    yield found
    except OSError as failure:
        failures.append(failure)
    if depth < _DEEPEST:
        for path in folders:
            yield from _walk(path, failures, depth + 1, sure)


def _file(entry: os.DirEntry[str], sure: bool) -> SourceCandidate | None:
    if entry.is_symlink() and not entry.is_file():
        return None
    name = session_in(entry.name) if sure else ""
    return (
        SourceCandidate(Path(entry.path), "main", name) if name else sniff(Path(entry.path), read_beginning(entry.path))
    )
