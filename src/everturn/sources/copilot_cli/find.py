"""Finds sessions on disk, and knows them by their content wherever else they lie.

    <home>/session-state/<session>/events.jsonl
    <home>/session-state/<session>.jsonl          of older clients

`<home>` is COPILOT_HOME, `~/.copilot`, or where older clients had it. Folders behind symbolic links are not entered, and
nothing below the folder of a session is looked at: the agent keeps its own files there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources import SearchPlaces, SourceCandidate, existing_folders, read_beginning

NAME = "copilot_cli"
HEAD = 64 << 10

_SESSIONS, _EVENTS = "session-state", "events.jsonl"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_BEGINNING = re.compile(rb'\s*\{"type":"session\.start","data":\{"sessionId":"([^"\\]{1,200})"')
_FOLDER = re.compile(rb'"cwd":("(?:[^"\\]|\\.){1,4096}")')
_FAMILIES = ("session.", "user.", "assistant.", "tool.", "hook.", "system.")
_DEEPEST = 8


def roots(places: SearchPlaces) -> list[Path]:
    """Existing folders: named by the user, by the environment, and the usual ones; each once, whatever leads to it."""
    wanted = [*places.extra.get(NAME, ())]
    named, older = places.env.get("COPILOT_HOME", "").strip(), places.env.get("XDG_STATE_HOME", "").strip()
    if named:
        wanted.append(places.home / named[2:] if named.startswith(("~/", "~\\")) else Path(named))
    wanted.append(places.home / ".copilot")
    if older:
        wanted.append(Path(older) / ".copilot")
    return existing_folders(wanted)


def find(root: Path) -> Iterator[SourceCandidate]:
    """All sessions below a root: the client's folder, its `session-state`, or any folder with sessions."""
    sessions = root / _SESSIONS
    failures: list[OSError] = []
    yield from _walk(str(sessions if sessions.is_dir() else root), failures, 0)
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    if head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")[:1] != b"{":
        return None
    session = _session(head)
    if session is None:
        return None
    named = _UUID.search(path.parent.name if path.name == _EVENTS else path.stem)
    return SourceCandidate(path, "main", session or (named[0].lower() if named else path.stem))


def workspace(head: bytes) -> str:
    """The working folder that a file names first; "" when its beginning names none."""
    from everturn.sources.foreign import decode_value, word

    found = _FOLDER.search(head)
    return word(decode_value(found[1])) if found is not None else ""


def resume_command(native_id: str) -> list[str]:
    """The command that goes on with a session. A subagent's cannot be; it leads to the session it hangs on."""
    return ["copilot", f"--resume={native_id.partition('/')[0]}"]


def _session(head: bytes) -> str | None:
    """The id of the session in a file that begins like this, "" when it does not say; None when it is no session."""
    from everturn.sources.foreign import word
    from everturn.sources.linewise import mapping, records

    found = records(head)
    if not found:
        begun = _BEGINNING.match(head)
        return begun[1].decode("utf-8", "replace") if begun else None
    first = found[0]
    kind, data = word(first.get("type")), mapping(first.get("data"))
    if kind == "session.start" and word(data.get("sessionId")):
        return word(data["sessionId"])
    is_event = first.keys() >= {"type", "data", "id", "timestamp", "parentId"} and kind.startswith(_FAMILIES)
    return "" if is_event and isinstance(first["data"], dict) else None


def _walk(folder: str, failures: list[OSError], depth: int) -> Iterator[SourceCandidate]:
    folders, is_session = [], False
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.endswith(".jsonl") and (found := _file(entry, os.path.basename(folder))) is not None:
                    is_session = is_session or entry.name == _EVENTS
                    yield found
    except OSError as failure:
        failures.append(failure)
    if depth < _DEEPEST and not is_session:
        for path in folders:
            yield from _walk(path, failures, depth + 1)


def _file(entry: os.DirEntry[str], folder: str) -> SourceCandidate | None:
    if entry.is_symlink() and not entry.is_file():
        return None
    if entry.name == _EVENTS and _UUID.fullmatch(folder):
        return SourceCandidate(Path(entry.path), "main", folder.lower())
    return sniff(Path(entry.path), read_beginning(entry.path))
