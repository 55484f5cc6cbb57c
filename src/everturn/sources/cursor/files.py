"""Find transcripts and databases of Cursor, recognise them by their content, and unpack the databases.

    <home>/.cursor/projects/<slug>/agent-transcripts/<id>/<id>.jsonl             a transcript
    <home>/.cursor/projects/<slug>/agent-transcripts/<id>/subagents/<id>.jsonl   of a subagent
    <user>/globalStorage/state.vscdb, <user>/workspaceStorage/<hash>/state.vscdb databases

Markdown exports are wherever people put them. Folders behind symbolic links are not entered.

`unpack` writes each conversation of a database as lines: a head, then its bubbles unchanged. There are three generations:
`ItemTable` with chat tabs, `ItemTable` with composers that hold their bubbles, and `cursorDiskKV` with one row per composer
and one per bubble. The head holds only facts that never change, so that lines are only appended. Lists of prompts without
answers (`aiService.prompts`) are no conversations, and bubbles that their composer no longer names are not part of one; both
remain in the database, which the archive keeps beside the lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from everturn.sources.contract import Member, SourceCandidate, read_beginning
from everturn.sources.toolkit.file_search import find_in_folders
from everturn.sources.toolkit.json_document import DocumentItem, DocumentWalk, decode_item, first_object, read_object
from everturn.sources.toolkit.line_reader import listing, mapping
from everturn.sources.toolkit.sqlite_file import DatabaseSnapshot, beginnings, is_sqlite, stamp, unpacked_snapshot
from everturn.sources.toolkit.values import milliseconds, word

DATABASE = "state.vscdb"

_TRANSCRIPTS = "agent-transcripts"
_LINE = rb'\s*\{\s*"role"\s*:\s*"(?:user|assistant)"\s*,\s*"message"\s*:\s*\{\s*"content"\s*:\s*\['
_EXPORT = rb"\s*# [^\n]*\n+_Exported on [^\n]{1,200} from Cursor(?: \([^()\n]{1,40}\))?_"


def find(root: Path) -> Iterator[SourceCandidate]:
    return find_in_folders(root, ("projects", "globalStorage", "workspaceStorage"), _pick_file)


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if is_sqlite(head):
        schema = beginnings(path, head)
        is_cursor = b"cursorDiskKV" in schema or (path.name == DATABASE and b"ItemTable" in schema)
        return SourceCandidate(path, "container", stamp=stamp(path)) if is_cursor else None
    start = head.removeprefix(b"\xef\xbb\xbf")
    is_transcript = re.match(_LINE, start) is not None or _is_line(first_object(start))
    if is_transcript and path.parent.name == "subagents":
        return SourceCandidate(path, "subagent", path.stem, path.parent.parent.name)
    is_conversation = is_transcript or re.match(_EXPORT, start)
    return SourceCandidate(path, "main", path.stem) if is_conversation else None


def _is_line(record: dict[str, Any]) -> bool:
    """Return whether a record is a line of a transcript: a role and a message of blocks, and no envelope around them."""
    is_bare = record.get("role") in ("user", "assistant") and not record.keys() & {
        "type",
        "uuid",
        "sessionId",
        "content",
    }
    return is_bare and isinstance(mapping(record.get("message")).get("content"), list)


def _pick_file(start: Path, entry: os.DirEntry[str]) -> SourceCandidate | None:
    """Return the candidate for a database, or for a transcript in a folder of transcripts."""
    if entry.name != DATABASE:
        is_transcript = (
            entry.name.endswith(".jsonl") and _TRANSCRIPTS in Path(entry.path).relative_to(start.parent).parts
        )
        if not is_transcript:
            return None
    return sniff(Path(entry.path), read_beginning(entry.path)) if entry.is_file() else None


# --- databases ---
#: Selects a value as bytes: SQLite would refuse a text that is not UTF-8.
_VALUE = "CAST(value AS BLOB) AS value"
_COMPOSERS, _CHATS = "composer.composerData", "workbench.panel.aichat.view.aichat.chatdata"


def unpack(candidate: SourceCandidate, path: Path) -> Iterator[Member]:
    folder = _workspace_folder(candidate.path)
    with unpacked_snapshot(path) as database:
        tables = database.tables()
        if "ItemTable" in tables:
            for tab in _elements(_read_item(database, _CHATS), "tabs"):
                yield from _unpack_chat(tab.raw, folder)
            for composer in _elements(_read_item(database, _COMPOSERS), "allComposers"):
                yield from _unpack_composer(composer.raw, folder)
        if "cursorDiskKV" in tables:
            yield from _unpack_rows(database, folder)


def _unpack_chat(raw: bytes, folder: str) -> Iterator[Member]:
    chat = mapping(decode_item(raw)[0])
    name = word(chat.get("tabId"))
    return _with_bubbles(_head(name, "chat", folder, title=chat.get("chatTitle")), name, raw, "bubbles")


def _unpack_composer(raw: bytes, folder: str) -> Iterator[Member]:
    composer = mapping(decode_item(raw)[0])
    name = word(composer.get("composerId"))
    return _with_bubbles(_composer_head(name, composer, folder), name, raw, "conversation")


def _with_bubbles(head: dict[str, Any], name: str, raw: bytes, key: str) -> Iterator[Member]:
    """Yield a conversation that holds its bubbles itself, if it has any."""
    bubbles = _elements(raw, key)
    if name and bubbles:
        yield Member(name, _lines(head, (bubble.raw for bubble in bubbles)), native_id=name)


def _unpack_rows(database: DatabaseSnapshot, folder: str) -> Iterator[Member]:
    """Yield the conversations of composers that have a row of their own, as do their bubbles."""
    sql = f"SELECT key, {_VALUE} FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' ORDER BY key"
    rows = [(str(row["key"]).partition(":")[2], _bytes(row["value"])) for row in database.rows(sql)]
    for name, raw in rows:
        composer = mapping(decode_item(raw)[0])
        order = [word(mapping(one).get("bubbleId")) for one in listing(composer.get("fullConversationHeadersOnly"))]
        if not order:
            yield from _unpack_composer(raw, folder)
        elif name:
            parent = _parent_id(composer)
            lines = _lines(_composer_head(name, composer, folder), _read_bubbles(database, name, order))
            yield Member(name, lines, "subagent" if parent else "main", name, parent)


def _read_bubbles(database: DatabaseSnapshot, composer: str, order: list[str]) -> Iterator[bytes]:
    for bubble in order:
        for row in database.rows(f"SELECT {_VALUE} FROM cursorDiskKV WHERE key=?", f"bubbleId:{composer}:{bubble}"):
            yield _bytes(row["value"])


def _composer_head(name: str, composer: dict[str, Any], folder: str) -> dict[str, Any]:
    uri = mapping(mapping(composer.get("workspaceIdentifier")).get("uri"))
    folder = folder or word(uri.get("fsPath")) or word(uri.get("path"))
    model = word(mapping(composer.get("modelConfig")).get("modelName"))
    title, created = composer.get("name"), composer.get("createdAt")
    return _head(name, "composer", folder, title, created, model, _parent_id(composer))


def _head(  # the order of the keys is part of the lines
    name: str, kind: str, folder: str, title: Any = "", created: Any = None, model: str = "", parent: str = ""
) -> dict[str, Any]:
    at, _ = milliseconds(created)
    facts = {"title": word(title), "created": at, "workspace": folder, "model": model, "parent": parent}
    return {"conversation": name, "kind": kind, **{key: value for key, value in facts.items() if value}}


def _lines(head: dict[str, Any], bubbles: Iterator[bytes]) -> Iterator[bytes]:
    yield msgspec.json.encode(head) + b"\n"
    for raw in bubbles:
        flat = raw.strip()
        if b"\n" in flat or not (flat.startswith(b"{") and flat.endswith(b"}")):
            yield msgspec.json.encode({"text": raw.decode("utf-8", "replace")}) + b"\n"
        else:
            yield b'{"bubble":' + flat + b"}\n"


def _parent_id(composer: dict[str, Any]) -> str:
    return word(mapping(composer.get("subagentInfo")).get("parentComposerId"))


def _read_item(database: DatabaseSnapshot, key: str) -> bytes:
    for row in database.rows(f"SELECT {_VALUE} FROM ItemTable WHERE key=?", key):
        return _bytes(row["value"])
    return b""


def _elements(value: bytes, key: str) -> list[DocumentItem]:
    return [item for item in DocumentWalk(key).split(value, 0, True) if not item.key]


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b""


def _workspace_folder(path: Path) -> str:
    """Return the folder that a database in `workspaceStorage` belongs to."""
    folder = word(read_object(path.with_name("workspace.json")).get("folder"))
    uri = urlsplit(folder)
    return unquote(uri.path) if uri.scheme == "file" else folder
