"""Find, unpack and read the sessions of Crush.

    <project>/.crush/crush.db     all sessions of a project

Crush keeps no list of projects: the database of the working folder is found, and those below the folders that the user
names. `unpack` writes each session as lines: a head, then its messages in order, with their parts. A session that another
one started (a subagent) names its parent. Token counters belong to whole sessions and change with every message: they
are left to the database, which the archive keeps beside the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, Message, fingerprint
from everturn.sources.contract import Member, SourceCandidate
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.json_document import decode_item
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    Rec,
    RecordPlace,
    add,
    listing,
    mapping,
    single_record,
)
from everturn.sources.toolkit.sqlite_file import (
    DatabaseSnapshot,
    Row,
    decode_text,
    select_list,
    sniff_database,
    unpacked_snapshot,
)
from everturn.sources.toolkit.values import (
    call_block,
    message_digest,
    milliseconds,
    plain,
    result_block,
    text_blocks,
    tool_kind,
    unknown_block,
    unknown_message,
    word,
)

_FOLDER = ".crush"
_SCHEMA = (b"TABLE sessions", b"TABLE messages", b"parent_session_id", b"prompt_tokens", b"parts BLOB")
_KINDS = {
    "todos": "plan",
    "sourcegraph": "search",
    "download": "fetch",
    "agentic_fetch": "fetch",
    "job_output": "shell",
}
_ATTACHED = frozenset(("binary", "image_url"))


# --- files ---
def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    return sniff_database(path, head, *_SCHEMA)


find = finder(sniff, "crush.db", deepest=6)


def folder_of(path: Path) -> str:
    """Return the folder of the project."""
    return str(path.parent.parent) if path.parent.name == _FOLDER else ""


# --- the database ---
_HEAD_COLUMNS = ("id", "parent_session_id", "title", "created_at")
_MESSAGE_COLUMNS = ("id", "role", "parts", "model", "provider", "created_at", "finished_at", "is_summary_message")
_NUMBERS = ("created_at", "finished_at", "is_summary_message")


def unpack(candidate: SourceCandidate, path: Path) -> Iterator[Member]:
    with unpacked_snapshot(path) as database:
        head = [name for name in _HEAD_COLUMNS if name in database.columns("sessions")]
        columns = [name for name in _MESSAGE_COLUMNS if name in database.columns("messages")]
        if "id" not in head or "parts" not in columns or "session_id" not in database.columns("messages"):
            return
        for row in list(database.rows(f"SELECT {select_list(head, _NUMBERS)} FROM sessions ORDER BY rowid")):
            name, parent = (decode_text(row.get(key)) or "" for key in ("id", "parent_session_id"))
            kind = "subagent" if parent else "main"
            head_line = {"session": row["id"], "workspace": folder_of(candidate.path) or None, **row}
            yield Member(str(name), _lines(database, head_line, columns), kind, str(name), str(parent))


def _lines(database: DatabaseSnapshot, session: Row, columns: list[str]) -> Iterator[bytes]:
    yield _encode_row(session)
    texts = select_list(columns, _NUMBERS)
    sql = f"SELECT {texts} FROM messages WHERE CAST(session_id AS BLOB)=? ORDER BY created_at,rowid"
    for row in database.rows(sql, session["id"]):
        yield _encode_row(row)


def _encode_row(row: Row) -> bytes:
    """Return a row as one line; its parts become JSON if they are."""
    value = {key: _parts(item) if key == "parts" else decode_text(item) for key, item in row.items()}
    return msgspec.json.encode({key: item for key, item in value.items() if item is not None}) + b"\n"


def _parts(raw: Any) -> Any:
    value, trouble = decode_item(raw) if isinstance(raw, bytes) else (None, "")
    return value if isinstance(value, list) and not trouble else decode_text(raw)


# --- messages ---
def view(record: bytes) -> Message | None:
    return _build(value) if (value := single_record(record)) is not None else None


def _build(row: Rec) -> Message:
    role, parts = word(row.get("role")), listing(row.get("parts"))
    at, precision = milliseconds(row.get("created_at"))
    about = (at, precision, word(row.get("id")))
    if row.get("is_summary_message") == 1:
        return Message("system", "injected", "summary", *about, blocks=_blocks(parts, "summary"))
    if role == "user":
        hidden = any(mapping(mapping(part).get("data")).get("hidden") is True for part in parts)
        origin, field = ("injected", "meta") if hidden else ("human", "prompt")
        return Message("user", origin, "text", *about, blocks=_blocks(parts, field), starts_turn=not hidden)
    if role == "assistant":
        return Message("assistant", "model", "text", *about, about[2], word(row.get("model")), _blocks(parts, "answer"))
    if role == "tool":
        return Message("tool", "tool", "result", *about, blocks=_blocks(parts, "meta"))
    if role == "system":
        return Message("system", "injected", "context", *about, blocks=_blocks(parts, "meta"))
    return unknown_message(row)


def _blocks(parts: list[Any], field: str) -> tuple[Block, ...]:
    return tuple(block for part in parts for block in _part_blocks(mapping(part), part, field))


def _part_blocks(part: Rec, found: Any, field: str) -> tuple[Block, ...]:
    kind, data = word(part.get("type")), mapping(part.get("data"))
    if kind == "text":
        return text_blocks(word(data.get("text")), field)
    if kind == "reasoning":
        return text_blocks(word(data.get("thinking")), "thinking", "thinking")
    if kind == "tool_call":
        name, given = word(data.get("name")), data.get("input")
        return (call_block(word(data.get("id")), name, given, found, _KINDS.get(name) or tool_kind(name)),)
    if kind == "tool_result":
        failed = True if data.get("is_error") is True else None
        return (result_block(word(data.get("tool_call_id")), word(data.get("content")), failed, found),)
    if kind in _ATTACHED:
        return (Block("document" if kind == "binary" else "image", word(data.get("Path")), "meta", data=found),)
    if kind == "finish":  # the reason is in every message; only a failure has words
        texts = [word(data.get(key)) for key in ("message", "details")]
        return text_blocks("\n".join(filter(None, texts)), "meta")
    return (unknown_block(found),)


class CrushReaderState(Struct, array_like=True):
    open_line: bool = False
    index: int = 0  # messages read


class CrushReader(LineReader[CrushReaderState]):
    """Reads the lines of one session."""

    kind = CrushReaderState

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        session = self._open_session()
        if "session" in record and "role" not in record:
            title = word(record.get("title"))
            session.learn(title=title, title_rank=1 if title else 0, workspace=word(record.get("workspace")))
            return "(head)", "known", ""
        message = _build(record)
        if message.origin == "human" and self._candidate.kind == "subagent":
            message = replace(message, origin="agent")
        identity = fingerprint(f"{self._name}/{message.native_id or self._state.index}", message_digest(message))
        self._state.index += 1
        message = replace(message, start=place.start, size=place.size, fingerprint=identity)
        add(self._gathering, session, message)
        is_known = message.kind != "unknown"
        return plain(record.get("role")) if is_known else "?", "message" if is_known else "unknown", ""
