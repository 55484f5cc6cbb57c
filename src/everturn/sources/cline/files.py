"""Find the files of tasks, recognise them by their content, and read the notes in `task_metadata.json`.

    <user>/globalStorage/<extension>/tasks/<task>/api_conversation_history.json   the history sent to the model
    …                                            /ui_messages.json                the panel shown to the human
    …                                            /task_metadata.json              files and models used

`<user>` is the user folder of an editor of the VS Code family. Folders behind symbolic links are not entered.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from everturn.model.conversation import Message
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.json_document import first_object
from everturn.sources.toolkit.line_reader import listing, mapping
from everturn.sources.toolkit.values import milliseconds, text_blocks, word

HISTORY, PANEL, METADATA = "api_conversation_history.json", "ui_messages.json", "task_metadata.json"

_ROLE = re.compile(rb'"role"\s*:\s*"(?:user|assistant)"')
_MARKS = re.compile(rb"<task>|<environment_details>|\[TASK RESUMPTION\]|<user_message>")
_TIME = re.compile(rb'"ts"\s*:\s*\d{1,15}')
_FOLDER = re.compile(rb"# Current (?:Working|Workspace) Directory \(((?:[^()\\\"]|\\\\)+)\)")


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    task = path.parent.name if path.name in (HISTORY, PANEL, METADATA) else path.stem
    first = first_object(head)
    if isinstance(first.get("files_in_context"), list):
        return SourceCandidate(path, "meta", f"{task}/{METADATA.removesuffix('.json')}", task)
    if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        return None
    if first.get("type") in ("say", "ask") and (first.get("type") in first or _TIME.search(head)):
        if path.name == PANEL and path.with_name(HISTORY).is_file():
            return SourceCandidate(path, "meta", f"{task}/{PANEL.removesuffix('.json')}", task)
        return SourceCandidate(path, "main", task)
    if _is_history(first, head) and (path.name == HISTORY or _MARKS.search(head)):
        return SourceCandidate(path, "main", task)
    return None


def _is_history(first: dict[str, Any], head: bytes) -> bool:
    """Return whether a list begins with a message; the first one may be longer than the bytes at hand."""
    return first.get("role") in ("user", "assistant") or (not first and _ROLE.search(head) is not None)


def workspace(head: bytes) -> str:
    match = _FOLDER.search(head)
    return match[1].replace(b"\\\\", b"\\").decode("utf-8", "replace") if match else ""


find = finder(sniff, HISTORY, PANEL, METADATA, deepest=10)


# --- task_metadata.json ---
_DATES = ("cline_edit_date", "user_edit_date", "cline_read_date", "roo_edit_date", "roo_read_date")


def file_message(element: dict[str, Any]) -> Message:
    """Return the message of a file that the task read or edited."""
    times = [milliseconds(element.get(key)) for key in _DATES]
    at, precision = max((one for one in times if one[0] is not None), default=(None, ""))
    blocks = text_blocks(word(element.get("path")), "meta")
    return Message("system", "system", "context", at, precision, blocks=blocks)


def is_file_note(element: dict[str, Any]) -> bool:
    return "path" in element and "record_state" in element


def find_version(key: str, value: Any) -> str:
    """Return the latest version of the extension that a member of the outer object names; "" when it names none."""
    if key != "environment_history":
        return ""
    versions = [word(mapping(one).get("cline_version")) for one in listing(value)]
    return next((version for version in reversed(versions) if version), "")
