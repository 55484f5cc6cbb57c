"""Find chats, recognise them by their content, and turn the journal of a chat into its document.

    <user>/workspaceStorage/<hash>/chatSessions/<session>.json     a document
    <user>/workspaceStorage/<hash>/chatSessions/<session>.jsonl    a journal: the document, then changes to it
    <user>/workspaceStorage/<hash>/workspace.json                  the folder of the window
    <user>/globalStorage/emptyWindowChatSessions/…                 chats of windows without a folder

`<user>` is the user folder of an editor of the VS Code family. Each line of a journal is an object with a `kind`: 0 sets the
document to `v`; 1 sets the value at the path `k`; 2 appends the elements `v` to the list at `k`, after cutting it to `i`
elements if there is an `i`; 3 deletes the value at `k`. A journal is a container: its document is read in place of its lines.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everturn.sources.contract import Member, SourceCandidate, read_beginning, read_end
from everturn.sources.toolkit.chat_export import line
from everturn.sources.toolkit.file_search import find_files
from everturn.sources.toolkit.json_document import first_object, read_object
from everturn.sources.toolkit.line_reader import listing, mapping, single_record
from everturn.sources.toolkit.values import uri_path, word

WINDOW_FOLDER = "windowFolder"  # a member that `unpack` adds: the folder that a file beside the journal names

_FOLDERS = ("chatSessions", "emptyWindowChatSessions")
_DEEPEST = 5

_REQUESTS = re.compile(rb'"requests"\s*:\s*\[')
_VALUE = re.compile(rb'"v"\s*:\s*\{')
_CHANGE = re.compile(rb'^\{"kind":[0-3],', re.MULTILINE)  # a line of a journal, whose first one may be damaged
_OWN = re.compile(
    rb'"(requesterUsername|responderUsername|initialLocation|creationDate|sessionId|requestId|lastMessageDate)"\s*:'
)
_SESSION = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{1,200})"')
_EVIDENCE = 2
#: Members that change with every key the human presses; they are no part of the conversation.
_DRAFTS = frozenset(("inputState", "requests"))


def find(root: Path) -> Iterator[SourceCandidate]:
    return find_files(root, _pick_file, deepest=_DEEPEST)


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if not _REQUESTS.search(head) or len(set(_OWN.findall(head))) < _EVIDENCE:
        return None
    first = first_object(head)
    if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return None
    if (first.get("kind") == 0 and _VALUE.search(head)) or _CHANGE.search(head):
        return SourceCandidate(path, "container")
    if "kind" in first and "v" in first:
        return None
    return SourceCandidate(path, "main", _session_of(path, first))


def folder_of(path: Path) -> str:
    """Return the folder of the window in which a chat took place; "" for a window without one."""
    return uri_path(read_object(path.parent.parent / "workspace.json").get("folder"))


def unpack(candidate: SourceCandidate, path: Path) -> Iterator[Member]:
    document = replay(path)
    if "requests" not in document:
        raise OSError(errno.EINVAL, "no line of this journal holds the whole chat", str(path))
    name = word(document.get("sessionId")) or candidate.path.stem
    yield Member(name, _lines(document, folder_of(candidate.path)), native_id=name)


def replay(path: Path) -> dict[str, Any]:
    """Return the document that a journal describes. A line that does not fit the document so far is left out."""
    document: dict[str, Any] = {}
    with path.open("rb") as journal:
        for raw in journal:
            change = mapping(single_record(raw))
            if change.get("kind") == 0 and isinstance(change.get("v"), dict):
                document = change["v"]
            elif document:
                _apply(document, change)
    return document


def _apply(document: dict[str, Any], change: dict[str, Any]) -> None:
    keys = listing(change.get("k"))
    holder: Any = document
    for key in keys[:-1]:
        if not _has(holder, key):
            return
        holder = holder[key]
    if keys and change.get("kind") == 1:
        _set(holder, keys[-1], change.get("v"))
    elif keys and change.get("kind") == 2:
        _append(holder, keys[-1], change)
    elif keys and change.get("kind") == 3 and isinstance(holder, dict) and _has(holder, keys[-1]):
        del holder[keys[-1]]


def _has(holder: Any, key: Any) -> bool:
    if isinstance(holder, dict):
        return isinstance(key, str) and key in holder
    return isinstance(holder, list) and type(key) is int and 0 <= key < len(holder)


def _set(holder: Any, key: Any, value: Any) -> None:
    if _has(holder, key) or (isinstance(holder, dict) and isinstance(key, str)):
        holder[key] = value
    elif isinstance(holder, list) and type(key) is int and key == len(holder):
        holder.append(value)


def _append(holder: Any, key: Any, change: dict[str, Any]) -> None:
    if not _has(holder, key):
        _set(holder, key, [])
    if not _has(holder, key) or not isinstance(holder[key], list):
        return
    if type(change.get("i")) is int and change["i"] >= 0:
        del holder[key][change["i"] :]
    holder[key] += listing(change.get("v"))


def _lines(document: dict[str, Any], folder: str) -> Iterator[bytes]:
    """Yield the document with a request on each line. What changes as the chat grows comes after the requests."""
    head = {"sessionId": document.get("sessionId"), WINDOW_FOLDER: folder}
    yield line(head).rstrip(b"}\n") + b',"requests":[\n'
    separator = b""
    for request in listing(document.get("requests")):
        yield separator + line(request)
        separator = b","
    rest = {key: value for key, value in document.items() if key not in _DRAFTS and key != "sessionId"}
    yield b"]," + line(rest).lstrip(b"{") if rest else b"]}\n"


def _session_of(path: Path, first: dict[str, Any]) -> str:
    if name := word(first.get("sessionId")):
        return name
    found = [] if "requests" in first else _SESSION.findall(read_end(path))
    return found[-1].decode("utf-8", "replace") if found else path.stem


def _pick_file(entry: os.DirEntry[str]) -> SourceCandidate | None:
    path = Path(entry.path)
    if path.suffix not in (".json", ".jsonl") or path.parent.name not in _FOLDERS or not entry.is_file():
        return None
    return sniff(path, read_beginning(path))
