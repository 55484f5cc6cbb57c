r"""Find, unpack and read Goose sessions.

    <data>/sessions/sessions.db      all sessions, since version 1.10
    <data>/sessions/<name>.jsonl     one session

`<data>` is `~/.local/share/goose` on Linux and macOS, `%APPDATA%\Block\goose\data` on Windows. Sessions elsewhere are
recognised by their content.

`unpack` writes each session of the database as lines: a head with the working folder and the title, then its messages in
order. The head holds only facts that never change, so that lines are only appended. Token counters, which change with every
message and cannot be assigned to responses, are left to the database, which the archive keeps beside the lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, CallStart, Message, fingerprint
from everturn.sources.contract import Member, SourceCandidate, read_beginning
from everturn.sources.toolkit.json_document import decode_item
from everturn.sources.toolkit.line_reader import Counted, LineReader, Rec, RecordPlace, SessionTally, listing, mapping
from everturn.sources.toolkit.sqlite_file import (
    DatabaseSnapshot,
    Row,
    decode_text,
    select_list,
    sniff_database,
    unpacked_snapshot,
)
from everturn.sources.toolkit.values import (
    call_start,
    call_text,
    error_class,
    exit_status,
    message_digest,
    milliseconds,
    plain,
    strings,
    unknown_block,
    unknown_message,
    word,
)

_EDITOR = {
    "view": "read", "write": "create", "str_replace": "edit", "insert": "edit", "diff": "edit", "edit_file": "edit",
}  # fmt: skip
_TASKS = ("subagent__", "dynamic_task__", "delegate")
_TODO = ("todo__", "todo_write")
_NOTICES = ("systemNotification", "contextLengthExceeded", "actionRequired", "toolConfirmationRequest")
_COMPACTED = ("conversationCompacted", "summarizationRequested")


# --- messages ---
def view(record_bytes: bytes) -> Message | None:
    value, _ = decode_item(record_bytes)
    return _build(value) if isinstance(value, dict) else None


def _build(row: Rec) -> Message:
    content = row.get("content")
    if isinstance(content, str) and content.startswith("["):
        content, _ = decode_item(content.encode("utf-8", "replace"))
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else listing(content)
    role, origin, kind = _classify(word(row.get("role")), parts, _metadata(row))
    field = {"human": "prompt", "model": "answer"}.get(origin, "summary" if kind == "summary" else "meta")
    blocks = tuple(block for part in parts for block in _blocks(part, field))
    if kind == "unknown" and not blocks:
        blocks = unknown_message(row, "role").blocks
    at, precision = milliseconds(row.get("created_timestamp", row.get("created")))
    name = word(row.get("message_id")) or word(row.get("id"))
    return Message(
        role, origin, kind, at, precision, name, name if origin == "model" else "", blocks=blocks, starts_turn=origin == "human",
        fingerprint=fingerprint(name, str(at)) if name else None,
    )  # fmt: skip


def _classify(role: str, parts: list[Any], metadata: Rec) -> tuple[str, str, str]:
    """Return role, origin and kind of a message, judged by its content."""
    kinds = {word(mapping(part).get("type")) for part in parts}
    if role not in ("user", "assistant") or not parts:
        return "system", "system", "unknown"
    if kinds <= {"toolResponse"}:
        return "tool", "tool", "result"
    if kinds <= set(_COMPACTED):
        return "system", "system", "compaction"
    if kinds <= set(_NOTICES):
        return "system", "system", "notice"
    if metadata.get("userVisible") is False and kinds <= {"text"}:
        return role, "injected", "summary"
    return (role, "human", "text") if role == "user" else (role, "model", "text")


def _metadata(row: Rec) -> Rec:
    metadata = row.get("metadata")
    if isinstance(metadata, str):
        metadata, _ = decode_item(metadata.encode("utf-8", "replace"))
    return mapping(metadata)


def _blocks(part: Any, field: str) -> list[Block]:
    build = _PARTS.get(word(mapping(part).get("type")))
    return build(part, field) if build else [unknown_block(part)]


def _text(part: Rec, field: str) -> list[Block]:
    text = part.get("text")
    return [Block("text", text, field, data=part)] if isinstance(text, str) else [unknown_block(part)]


def _notice(part: Rec, field: str) -> list[Block]:
    text = "\n".join(strings(part, "type", "notificationType", "id", "actionType"))
    return [Block("text", text, "meta", data=part)] if text else []


def _call(part: Rec, field: str) -> list[Block]:
    request = mapping(part.get("toolCall"))
    value = mapping(request.get("value"))
    start = _neutral_call(call_start(word(part.get("id")), word(value.get("name")), value.get("arguments")))
    text = call_text(start) if value else "\n".join(strings(request, "status"))
    return [Block("call", text, "tool_input", call=start, data=part)]


def _neutral_call(start: CallStart) -> CallStart:
    """Give calls of Goose's own tools their neutral kind."""
    if start.name.endswith("text_editor"):
        return replace(start, kind=_EDITOR.get(word(mapping(start.input).get("command")), "edit"), command="")
    if start.name.startswith(_TASKS):
        return replace(start, kind="task", prompt="\n".join(strings(start.input)))
    return replace(start, kind="plan") if start.name.startswith(_TODO) else start


def _result(part: Rec, field: str) -> list[Block]:
    result = mapping(part.get("toolResult"))
    value = result.get("value")
    failed = word(result.get("status")) == "error" or mapping(value).get("isError") is True
    text = "\n".join(_result_texts(value) if "value" in result else strings(result, "status"))
    status = exit_status(text) if failed else None
    end = CallEnd(word(part.get("id")), failed, error_class(text) if failed else "", status)
    return [Block("result", text, "tool_output", result=end, data=part)]


def _result_texts(value: Any) -> list[str]:
    """Return the texts of a result. Where it has texts for the model and for the human, the model's are used."""
    items = value if isinstance(value, list) else mapping(value).get("content", value)
    if not isinstance(items, list):
        return strings(items)
    own = [item for item in items if "assistant" in listing(mapping(mapping(item).get("annotations")).get("audience"))]
    texts: list[str] = []
    for item in own or items:
        is_image = mapping(item).get("type") == "image"
        texts += ["[image]"] if is_image else strings(item, "type", "annotations", "mimeType")
    return texts


_PARTS: dict[str, Callable[[Rec, str], list[Block]]] = {
    "text": _text,
    "thinking": lambda part, field: [Block("thinking", word(part.get("thinking")), "thinking", data=part)],
    "redactedThinking": lambda part, field: [Block("thinking", data=part)],
    "image": lambda part, field: [Block("image", data=part)], "toolRequest": _call, "frontendToolRequest": _call,
    "toolResponse": _result, **dict.fromkeys((*_NOTICES, *_COMPACTED), _notice),
}  # fmt: skip


class GooseReaderState(Struct, array_like=True):
    open_line: bool = False
    index: int = 0  # messages read
    model: str = ""


class GooseReader(LineReader[GooseReaderState]):
    kind = GooseReaderState

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        session = self._open_session()
        if "working_dir" in record and "role" not in record:
            self._learn(session, record)
            return "(head)", "known", ""
        message = self._add_context(_build(record))
        session.messages.append(replace(message, start=place.start, size=place.size))
        return plain(record.get("role")), "unknown" if message.kind == "unknown" else "message", ""

    def _learn(self, session: SessionTally, head: Rec) -> None:
        self._state.model = word(mapping(head.get("model_config")).get("model_name"))
        session.learn(workspace=word(head.get("working_dir")))
        title = word(head.get("description")) or word(head.get("name"))
        if title:
            session.learn(title=title, title_rank=2)

    def _add_context(self, message: Message) -> Message:
        """Return the message with its fingerprint, model and response; in a subagent, prompts come from an agent."""
        state, position = self._state, f"{self._name}/{self._state.index}"
        if message.fingerprint is None:  # of the text alone: marks of visibility change
            message = replace(message, fingerprint=fingerprint(position, message_digest(message)))
        if message.origin == "human" and self._candidate.kind == "subagent":
            message = replace(message, origin="agent")
        if message.origin == "model":
            message = replace(message, model=state.model, provider_id=message.provider_id or position)
        state.index += 1
        return message


# --- files ---
_SCHEMA = (b"CREATE TABLE sessions", b"CREATE TABLE messages", b"content_json", b"working_dir")
_FIRST = rb'\s*\{(?=[^\n]*"working_dir"\s*:)(?=[^\n]*"(?:message_count|description)"\s*:)(?![^\n]*"role"\s*:)'
_FOLDER = rb'"working_dir"\s*:\s*("(?:[^"\\]|\\.)*")'


def find(root: Path) -> Iterator[SourceCandidate]:
    """Yield the database and the session files in a folder, or in its `sessions`."""
    for folder in (root, root / "sessions"):
        if not folder.is_dir() or (folder != root and folder.is_symlink()):
            continue
        with os.scandir(folder) as entries:
            names = sorted(
                entry.path for entry in entries if entry.name.endswith((".jsonl", ".db")) and entry.is_file()
            )
        for name in names:
            if (candidate := sniff(Path(name), read_beginning(name))) is not None:
                yield candidate


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    is_session = re.match(_FIRST, head) is not None
    return SourceCandidate(path, "main", path.stem) if is_session else sniff_database(path, head, *_SCHEMA)


def workspace(head: bytes) -> str:
    match = re.search(_FOLDER, head.split(b"\n", 1)[0])
    value = decode_item(match[1])[0] if match else ""
    return value if isinstance(value, str) else ""


# --- the database ---
_HEAD_COLUMNS = (
    "id name description session_type working_dir created_at schedule_id recipe_json user_recipe_values_json provider_name "
    "model_config_json"
).split()
_MESSAGE_COLUMNS = "id message_id role created_timestamp tokens content_json metadata_json".split()
_NUMBERS = ("id", "created_timestamp", "tokens")


def unpack(candidate: SourceCandidate, path: Path) -> Iterator[Member]:
    with unpacked_snapshot(path) as database:
        head = [name for name in _HEAD_COLUMNS if name in database.columns("sessions")]
        message = [name for name in _MESSAGE_COLUMNS if name in database.columns("messages")]
        if "id" not in head or "session_id" not in database.columns("messages"):
            return
        for row in list(database.rows(f"SELECT {select_list(head, _NUMBERS)} FROM sessions ORDER BY id")):
            name = str(row["id"])
            kind = "subagent" if decode_text(row.get("session_type")) == "sub_agent" else "main"
            yield Member(name, _lines(database, row, message), kind, name)


def _lines(database: DatabaseSnapshot, session: Row, columns: list[str]) -> Iterator[bytes]:
    yield _encode_row({"session": session["id"], **session})
    sql = f"SELECT {select_list(columns, _NUMBERS)} FROM messages WHERE session_id=? ORDER BY id"
    for row in database.rows(sql, session["id"]):
        yield _encode_row(row)


def _encode_row(row: Row) -> bytes:
    """Return a row as one line; JSON columns are copied unchanged."""
    value = {
        key.removesuffix("_json"): _raw_json(item) if key.endswith("_json") else decode_text(item)
        for key, item in row.items()
    }
    return msgspec.json.encode({key: item for key, item in value.items() if item is not None}) + b"\n"


def _raw_json(raw: Any) -> Any:
    if not isinstance(raw, bytes) or b"\n" in raw:
        return decode_text(raw)
    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decode_text(raw)
    return msgspec.Raw(raw)
