"""Finds what Cursor keeps on disk, and knows it by its content wherever else it lies.

    <home>/.cursor/projects/<slug>/agent-transcripts/<id>/<id>.jsonl             a transcript
    <home>/.cursor/projects/<slug>/agent-transcripts/<id>/subagents/<id>.jsonl   of a subagent
    <user>/globalStorage/state.vscdb, <user>/workspaceStorage/<hash>/state.vscdb databases

Markdown exports lie where people put them. Folders behind symbolic links are not entered.

Takes the editor's databases apart: each conversation becomes lines, a head and then its bubbles as they stand there.

Three generations: `ItemTable` with chat tabs, `ItemTable` with composers that hold their bubbles, and `cursorDiskKV` with a
row per composer and a row per bubble. The head holds what does not change as a conversation goes on, so that its lines only
grow. Lists of prompts without answers (`aiService.prompts`) are no conversations; bubbles that their composer no longer
names are not part of one. Both are in the database itself, which is kept beside.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from everturn.sources.contract import Member, SearchPlaces, SourceCandidate, existing_folders
from everturn.sources.toolkit.json_document import DocumentItem, DocumentWalk, decode_item, entries, record
from everturn.sources.toolkit.sqlite_file import DatabaseSnapshot, beginnings, is_sqlite, open_snapshot, stamp
from everturn.sources.toolkit.values import milliseconds, word

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
    from everturn.sources.toolkit.json_document import decode_item

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


#: As bytes: a text that is not UTF-8 would be refused.
_VALUE = "CAST(value AS BLOB) AS value"
_COMPOSERS, _CHATS = "composer.composerData", "workbench.panel.aichat.view.aichat.chatdata"


def unpack(found: SourceCandidate, path: Path) -> Iterator[Member]:
    """Every conversation in a database."""
    folder = _workspace(found.path)
    with open_snapshot(path) as database:
        tables = database.tables()
        if "ItemTable" in tables:
            yield from _chats(_item(database, _CHATS), folder)
            yield from _composers(_item(database, _COMPOSERS), folder)
        if "cursorDiskKV" in tables:
            yield from _rows(database, folder)


def _chats(value: bytes, folder: str) -> Iterator[Member]:
    for tab in _elements(value, "tabs"):
        noted = record(decode_item(tab.raw)[0])
        name = word(noted.get("tabId"))
        bubbles = _elements(tab.raw, "bubbles")
        if name and bubbles:
            head = _head(name, "chat", folder, title=noted.get("chatTitle"))
            yield Member(name, _lines(head, (bubble.raw for bubble in bubbles)), native_id=name)


def _composers(value: bytes, folder: str) -> Iterator[Member]:
    for composer in _elements(value, "allComposers"):
        yield from _inline_composer(composer.raw, folder)


def _inline_composer(raw: bytes, folder: str) -> Iterator[Member]:
    """A composer that holds its bubbles itself."""
    noted = record(decode_item(raw)[0])
    name = word(noted.get("composerId"))
    bubbles = _elements(raw, "conversation")
    if name and bubbles:
        yield Member(name, _lines(_composer_head(name, noted, folder), (one.raw for one in bubbles)), native_id=name)


def _rows(database: DatabaseSnapshot, folder: str) -> Iterator[Member]:
    """Composers with a row of their own; so have their bubbles."""
    sql = f"SELECT key, {_VALUE} FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' ORDER BY key"
    names = [(str(row["key"]).partition(":")[2], _bytes(row["value"])) for row in database.rows(sql)]
    for name, raw in names:
        noted = record(decode_item(raw)[0])
        order = [word(record(one).get("bubbleId")) for one in entries(noted.get("fullConversationHeadersOnly"))]
        if not order:
            yield from _inline_composer(raw, folder)
        elif name:
            parent = _parent(noted)
            lines = _lines(_composer_head(name, noted, folder), _bubbles(database, name, order))
            yield Member(name, lines, "subagent" if parent else "main", name, parent)


def _bubbles(database: DatabaseSnapshot, composer: str, order: list[str]) -> Iterator[bytes]:
    for bubble in order:
        for row in database.rows(f"SELECT {_VALUE} FROM cursorDiskKV WHERE key=?", f"bubbleId:{composer}:{bubble}"):
            yield _bytes(row["value"])


def _composer_head(name: str, noted: dict[str, Any], folder: str) -> dict[str, Any]:
    place = record(record(noted.get("workspaceIdentifier")).get("uri"))
    folder = folder or word(place.get("fsPath")) or word(place.get("path"))
    model = word(record(noted.get("modelConfig")).get("modelName"))
    return _head(name, "composer", folder, noted.get("name"), noted.get("createdAt"), model, _parent(noted))


def _head(  # the order of the keys is part of the lines
    name: str, kind: str, folder: str, title: Any = "", created: Any = None, model: str = "", parent: str = ""
) -> dict[str, Any]:
    at, _ = milliseconds(created)
    told = {"title": word(title), "created": at, "workspace": folder, "model": model, "parent": parent}
    return {"conversation": name, "kind": kind, **{key: value for key, value in told.items() if value}}


def _lines(head: dict[str, Any], bubbles: Iterator[bytes]) -> Iterator[bytes]:
    yield msgspec.json.encode(head) + b"\n"
    for raw in bubbles:
        flat = raw.strip()
        if b"\n" in flat or not (flat.startswith(b"{") and flat.endswith(b"}")):
            yield msgspec.json.encode({"text": raw.decode("utf-8", "replace")}) + b"\n"
        else:
            yield b'{"bubble":' + flat + b"}\n"


def _parent(noted: dict[str, Any]) -> str:
    return word(record(noted.get("subagentInfo")).get("parentComposerId"))


def _item(database: DatabaseSnapshot, key: str) -> bytes:
    for row in database.rows(f"SELECT {_VALUE} FROM ItemTable WHERE key=?", key):
        return _bytes(row["value"])
    return b""


def _elements(value: bytes, key: str) -> list[DocumentItem]:
    return [item for item in DocumentWalk(key).split(value, 0, True) if not item.key]


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b""


def _workspace(path: Path) -> str:
    """The folder that a database in `workspaceStorage` belongs to."""
    try:
        noted = record(decode_item(path.with_name("workspace.json").read_bytes())[0])
    except OSError:
        return ""
    uri = urlsplit(word(noted.get("folder")))
    return unquote(uri.path) if uri.scheme == "file" else word(noted.get("folder"))
