"""Finds sessions on disk, recognizes them elsewhere by their content, and knows the client's retention and resume command.

    <home>/.gemini/tmp/<project>/chats/session-<time>-<id>.json      a document
    <home>/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl     lines
    <home>/.gemini/tmp/<project>/chats/<session>/<id>.jsonl          subagents of that session
    <home>/.gemini/tmp/<project>/.project_root                       the working folder of the project

`logs.json` beside `chats` holds prompts only and is no transcript. Folders behind symbolic links are not entered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources.contract import HEAD, Retention, SourceCandidate, read_beginning, read_end
from everturn.sources.toolkit.file_search import find_in_folders

NAME = "gemini"

_FOLDERS = ("tmp", "data")
_KEY = re.compile(rb'"(sessionId|projectHash|kind|type)"\s*:\s*"((?:[^"\\]|\\.){1,200})"')
_ARRAY = re.compile(rb'"messages"\s*:\s*\[')
_OWN_MESSAGE = re.compile(rb'"type"\s*:\s*"(?:user|gemini)"')
_TAIL = 64 << 10
_DIRECTORY = re.compile(rb'"directories"\s*:\s*\[\s*("(?:[^"\\]|\\.){1,4096}")')
_CWD = re.compile(rb"\[current working directory ([^\]\"\\]{1,4096})\]")
#: In the context that the client puts before the first prompt, as text or as the text of a JSON string.
_LISTED = re.compile(rb"\*\*Workspace Directories:\*\*(?:\s|\\[nrt]){1,8}-[ \t]{1,4}((?:[^\"\\\r\n]|\\[^nr]){1,4096})")
_ROOT_MARK = ".project_root"
_AGE = re.compile(r"(\d{1,6})([hdwm])")
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30}


def find(root: Path) -> Iterator[SourceCandidate]:
    """Yield all sessions below a root: a configuration folder, or any folder with `chats` in it."""
    return find_in_folders(root, _FOLDERS, _pick_file)


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    keys = _header(head)
    session, kind = keys.get("sessionId", ""), keys.get("kind", "")
    if "type" in keys or not session or "projectHash" not in keys:
        session = _session_after_messages(path, head)
        if not session:
            return None
    above = path.parent
    nested = above.parent.name == "chats"
    if kind == "subagent" or nested:
        return SourceCandidate(path, "subagent", session, above.name if nested else "")
    return SourceCandidate(path, "main", session)


def _session_after_messages(path: Path, head: bytes) -> str:
    """Return the session of a document that another program wrote again, with its messages before its header; "" for none."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{") or not _ARRAY.search(start) or not _OWN_MESSAGE.search(start):
        return ""
    keys = dict(_KEY.findall(start[-_TAIL:] if len(head) < HEAD else read_end(path, _TAIL)))
    return keys[b"sessionId"].decode("utf-8", "replace") if keys.keys() >= {b"sessionId", b"projectHash"} else ""


def workspace(head: bytes) -> str:
    """Return the working folder if the beginning of a file names it: the header only has its hash."""
    from everturn.sources.toolkit.json_document import decode_item

    if found := _DIRECTORY.search(head):
        value, _ = decode_item(found[1])
        return value if isinstance(value, str) else ""
    if listed := _LISTED.search(head):
        value, _ = decode_item(b'"' + listed[1].strip() + b'"')
        return value if isinstance(value, str) else listed[1].strip().decode("utf-8", "replace")
    return named[1].decode("utf-8", "replace") if (named := _CWD.search(head)) else ""


def folder_of(path: Path) -> str:
    """Return the working folder that the client has noted beside the chats of a project."""
    for folder in path.parents[1:4]:
        if (mark := read_beginning(folder / _ROOT_MARK, 4096).strip()) and b"\n" not in mark:
            return os.fsdecode(mark)
    return ""


def retention(root: Path) -> Retention | None:
    """Return how long the client keeps sessions, if its settings say so."""
    from everturn.sources.toolkit.json_document import read_object
    from everturn.sources.toolkit.line_reader import mapping

    path = root / "settings.json"
    rule = mapping(mapping(read_object(path).get("general")).get("sessionRetention"))
    age = _AGE.fullmatch(str(rule.get("maxAge", "")))
    if rule.get("enabled") is False or age is None:
        return None
    return Retention(int(int(age[1]) * _DAYS[age[2]]), f"{path}: general.sessionRetention.maxAge")


def resume_command(native_id: str) -> list[str]:
    return ["gemini", "--resume", native_id]


def _header(head: bytes) -> dict[str, str]:
    """Return the keys before the messages (of the first line, in a file of lines) that identify a session."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{"):
        return {}
    line = start.split(b"\n", 1)[0].rstrip()
    messages = _ARRAY.search(start)
    end = len(line) if len(line) > 1 and line.endswith(b"}") else messages.start() if messages else len(start)
    before = start[: min(end, messages.start()) if messages else end]
    return {key.decode(): value.decode("utf-8", "replace") for key, value in reversed(_KEY.findall(before))}


def _pick_file(start: Path, entry: os.DirEntry[str]) -> SourceCandidate | None:
    path = Path(entry.path)
    in_chats = start.name == "chats" or "chats" in path.parent.relative_to(start).parts
    if in_chats and entry.name.endswith((".json", ".jsonl")) and entry.is_file():
        return sniff(path, read_beginning(path))
    return None
