"""Finds tasks on disk, and knows their files by their content wherever else they lie.

    <user>/globalStorage/<extension>/tasks/<task>/api_conversation_history.json   the conversation
    …                                            /ui_messages.json                what the human was shown
    …                                            /task_metadata.json              files and models used

`<user>` is the user folder of the editor; there are many editors of one kind. Folders behind symbolic links are not entered.

What the extension notes about a task: `task_metadata.json`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everturn.model.conversation import Block, Message
from everturn.sources.contract import SearchPlaces, SourceCandidate, existing_folders, read_beginning
from everturn.sources.toolkit.json_document import entries, record
from everturn.sources.toolkit.values import milliseconds, word

NAME = "cline"
HISTORY, PANEL, METADATA = "api_conversation_history.json", "ui_messages.json", "task_metadata.json"

_EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline")
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Code - OSS", "Cursor", "Windsurf")
_REMOTE = (".vscode-remote", ".vscode-server", ".cursor-server")
_DEEPEST = 10
_HEAD = 16 << 10

_ROLE = re.compile(rb'\s*\[\s*\{[^{}\[\]]{0,400}?"role"\s*:\s*"(?:user|assistant)"')
_TOLD = re.compile(rb"<task>|<environment_details>|\[TASK RESUMPTION\]|<user_message>")
_SHOWN = re.compile(rb'\s*\[\s*\{\s*"ts"\s*:\s*\d{1,15}\s*,\s*"type"\s*:\s*"(?:say|ask)"')
_NOTED = re.compile(rb'\s*\{\s*"files_in_context"\s*:\s*\[')
_FOLDER = re.compile(rb"# Current (?:Working|Workspace) Directory \(((?:[^()\\\"]|\\\\)+)\)")


def roots(places: SearchPlaces) -> list[Path]:
    """Existing task folders: named by the user, and those of every editor at its usual place; each once."""
    wanted = list(places.extra.get(NAME, ()))
    for folder in _user_folders(places):
        wanted += [folder / "globalStorage" / extension / "tasks" for extension in _EXTENSIONS]
    own = places.env.get("CLINE_DIR", "").strip()
    wanted += [Path(own) / "data" / "tasks"] if own else []
    wanted.append(places.home / ".cline" / "data" / "tasks")
    return existing_folders(wanted)


def find(root: Path) -> Iterator[SourceCandidate]:
    """The files of every task below a root."""
    failures: list[OSError] = []
    yield from _walk(str(root), failures, 0)
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    start = head.removeprefix(b"\xef\xbb\xbf")
    task = path.parent.name if path.name in (HISTORY, PANEL, METADATA) else path.stem
    if _NOTED.match(start):
        return SourceCandidate(path, "meta", f"{task}/{METADATA.removesuffix('.json')}", task)
    if _SHOWN.match(start):
        if path.name == PANEL and path.with_name(HISTORY).is_file():
            return SourceCandidate(path, "meta", f"{task}/{PANEL.removesuffix('.json')}", task)
        return SourceCandidate(path, "main", task)
    if _ROLE.match(start) and (path.name == HISTORY or _TOLD.search(start)):
        return SourceCandidate(path, "main", task)
    return None


def workspace(head: bytes) -> str:
    """The working folder that the beginning of a file names; "" when it names none."""
    found = _FOLDER.search(head)
    return found[1].replace(b"\\\\", b"\\").decode("utf-8", "replace") if found else ""


def _user_folders(places: SearchPlaces) -> list[Path]:
    home = places.home
    if places.platform == "darwin":
        base = home / "Library" / "Application Support"
    elif places.platform == "win32":
        base = Path(places.env.get("APPDATA", "") or home / "AppData" / "Roaming")
    else:
        base = Path(places.env.get("XDG_CONFIG_HOME", "") or home / ".config")
    remote = [home / name / "data" / "User" for name in _REMOTE]
    return [*(base / editor / "User" for editor in _EDITORS), *remote, home / ".local/share/code-server/User"]


def _walk(folder: str, failures: list[OSError], depth: int) -> Iterator[SourceCandidate]:
    folders, files = _list_folder(folder, failures)
    for path in files:
        found = sniff(Path(path), read_beginning(path))
        if found is not None:
            yield found
    if depth < _DEEPEST:
        for inner in folders:
            yield from _walk(inner, failures, depth + 1)


def _list_folder(folder: str, failures: list[OSError]) -> tuple[list[str], list[str]]:
    """The folders in a folder, and the files with a name of ours."""
    folders, files = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name in (HISTORY, PANEL, METADATA) and entry.is_file():
                    files.append(entry.path)
    except OSError as failure:
        failures.append(failure)
    return sorted(folders), sorted(files)


_DATES = ("cline_edit_date", "user_edit_date", "cline_read_date", "roo_edit_date", "roo_read_date")


def noted_file(element: dict[str, Any]) -> Message:
    """A file that the task had to do with."""
    times = [milliseconds(element.get(key)) for key in _DATES]
    at, precision = max((one for one in times if one[0] is not None), default=(None, ""))
    path = word(element.get("path"))
    blocks = (Block("text", path, "meta"),) if path else ()
    return Message("system", "system", "context", at, precision, blocks=blocks)


def is_noted_file(element: dict[str, Any]) -> bool:
    """Whether an element is of that kind."""
    return "path" in element and "record_state" in element


def version_in(key: str, value: Any) -> str:
    """The version of the extension that a value of the outer object names last."""
    if key != "environment_history":
        return ""
    versions = [word(record(one).get("cline_version")) for one in entries(value)]
    return next((version for version in reversed(versions) if version), "")
