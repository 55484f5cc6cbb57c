r"""Reads a session: lines of a file, or of the database taken apart. The first says where and about what.

What a message holds: words, thoughts, calls and their results, notices.

Finds sessions on disk, and knows them by their content wherever else they lie.

    <data>/sessions/sessions.db      all sessions, since version 1.10
    <data>/sessions/<name>.jsonl     one session

`<data>` is `~/.local/share/goose` on Linux and macOS, `%APPDATA%\Block\goose\data` on Windows.

Takes the database apart: each session becomes lines, a head and then its messages in order.

The head holds what does not change as a session goes on, so that its lines only grow. Counters of tokens, which change with
every message and cannot be told apart by response, are in the database itself, which is kept beside.
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

from everturn.model.conversation import Block, CallEnd, CallStart, Message, ReadResult, fingerprint
from everturn.sources.contract import (
    Member,
    SearchPlaces,
    SourceCandidate,
    SourceReader,
    existing_folders,
    read_beginning,
)
from everturn.sources.toolkit.blocks import call_start, call_text, error_class, exit_status
from everturn.sources.toolkit.json_document import decode_item, entries, record
from everturn.sources.toolkit.json_lines import JsonLines
from everturn.sources.toolkit.line_reader import ReadTally, SessionTally
from everturn.sources.toolkit.sqlite_file import DatabaseSnapshot, Row, beginnings, is_sqlite, open_snapshot, stamp
from everturn.sources.toolkit.values import digest, milliseconds, plain, strings, word

_EDITOR = {
    "view": "read",
    "write": "create",
    "str_replace": "edit",
    "insert": "edit",
    "diff": "edit",
    "edit_file": "edit",
}
_TASKS = ("subagent__", "dynamic_task__", "delegate")
_TODO = ("todo__", "todo_write")
_NOTICES = ("systemNotification", "contextLengthExceeded", "actionRequired", "toolConfirmationRequest")
_COMPACTED = ("conversationCompacted", "summarizationRequested")


def message(found: dict[str, Any]) -> Message:
    """The message of a line."""
    content = found.get("content")
    if isinstance(content, str) and content.startswith("["):
        content, _ = decode_item(content.encode("utf-8", "replace"))
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else entries(content)
    role, origin, kind = _speaker(word(found.get("role")), parts, _metadata(found))
    field = {"human": "prompt", "model": "answer"}.get(origin, "summary" if kind == "summary" else "meta")
    blocks = tuple(block for part in parts for block in _blocks(part, field))
    if kind == "unknown" and not blocks:
        text = "\n".join(strings(found, "role"))
        blocks = (Block("unknown", text, "meta"),) if text else ()
    at, precision = milliseconds(found.get("created_timestamp", found.get("created")))
    name = word(found.get("message_id")) or word(found.get("id"))
    return Message(
        role, origin, kind, at, precision, name, name if origin == "model" else "", blocks=blocks, starts_turn=origin == "human",
        fingerprint=fingerprint(name, str(at)) if name else None,
    )  # fmt: skip


def _speaker(role: str, parts: list[Any], metadata: dict[str, Any]) -> tuple[str, str, str]:
    """Role, origin and kind, judged by what is in it."""
    kinds = {word(record(part).get("type")) for part in parts}
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


def _metadata(found: dict[str, Any]) -> dict[str, Any]:
    noted = found.get("metadata")
    return record(decode_item(noted.encode("utf-8", "replace"))[0]) if isinstance(noted, str) else record(noted)


# parts ------------------------------------------------------------------------------------------------------------------
def _blocks(part: Any, field: str) -> list[Block]:
    made = _PARTS.get(word(record(part).get("type")))
    return made(part, field) if made else [_unknown_block(part)]


def _text(part: dict[str, Any], field: str) -> list[Block]:
    text = part.get("text")
    return [Block("text", text, field, data=part)] if isinstance(text, str) else [_unknown_block(part)]


def _thinking(part: dict[str, Any], field: str) -> list[Block]:
    return [Block("thinking", word(part.get("thinking")), "thinking", data=part)]


def _image(part: dict[str, Any], field: str) -> list[Block]:
    return [Block("image", data=part)]


def _notice(part: dict[str, Any], field: str) -> list[Block]:
    text = "\n".join(strings(part, "type", "notificationType", "id", "actionType"))
    return [Block("text", text, "meta", data=part)] if text else []


def _call(part: dict[str, Any], field: str) -> list[Block]:
    outcome = record(part.get("toolCall"))
    value = record(outcome.get("value"))
    start = _neutral_call(call_start(word(part.get("id")), word(value.get("name")), value.get("arguments")))
    text = call_text(start) if value else "\n".join(strings(outcome, "status"))
    return [Block("call", text, "tool_input", call=start, data=part)]


def _neutral_call(start: CallStart) -> CallStart:
    """Names of this agent's own tools."""
    if start.name.endswith("text_editor"):
        return replace(start, kind=_EDITOR.get(word(record(start.input).get("command")), "edit"), command="")
    if start.name.startswith(_TASKS):
        return replace(start, kind="task", prompt="\n".join(strings(start.input)))
    return replace(start, kind="plan") if start.name.startswith(_TODO) else start


def _result(part: dict[str, Any], field: str) -> list[Block]:
    outcome = record(part.get("toolResult"))
    value = outcome.get("value")
    failed = word(outcome.get("status")) == "error" or record(value).get("isError") is True
    text = "\n".join(_result_texts(value)) if "value" in outcome else "\n".join(strings(outcome, "status"))
    status = exit_status(text) if failed else None
    end = CallEnd(word(part.get("id")), failed, error_class(text) if failed else "", status)
    return [Block("result", text, "tool_output", result=end, data=part)]


def _result_texts(value: Any) -> list[str]:
    """The words of a result. The same is often there twice, for the model and for the human: the model's are taken."""
    items = value if isinstance(value, list) else record(value).get("content", value)
    if not isinstance(items, list):
        return strings(items)
    told = [item for item in items if "assistant" in entries(record(record(item).get("annotations")).get("audience"))]
    texts: list[str] = []
    for item in told or items:
        one = record(item)
        texts += ["[image]"] if one.get("type") == "image" else strings(item, "type", "annotations", "mimeType")
    return texts


def _unknown_block(part: Any) -> Block:
    return Block("unknown", "\n".join(strings(part, "type")), "meta", data=part)


_PARTS: dict[str, Callable[[dict[str, Any], str], list[Block]]] = {
    "text": _text,
    "thinking": _thinking,
    "redactedThinking": lambda part, field: [Block("thinking", data=part)],
    "image": _image,
    "toolRequest": _call,
    "frontendToolRequest": _call,
    "toolResponse": _result,
    **dict.fromkeys((*_NOTICES, *_COMPACTED), _notice),
}


_decode: Callable[[bytes | memoryview], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode


class GooseReaderState(Struct, array_like=True):
    """What a later reader needs."""

    open_line: bool = False
    index: int = 0  # messages read
    model: str = ""


def reader(found: SourceCandidate, state: bytes) -> SourceReader:
    """The reader of a file."""
    try:
        known = msgspec.msgpack.decode(state, type=GooseReaderState) if state else GooseReaderState()
    except (msgspec.DecodeError, UnicodeDecodeError):
        known = GooseReaderState()
    return GooseReader(found, known)


def view(record_bytes: bytes) -> Message | None:
    """The message of a line; None when it is none."""
    value, _ = decode_item(record_bytes)
    return message(value) if isinstance(value, dict) else None


class GooseReader:
    """One session."""

    def __init__(self, found: SourceCandidate, state: GooseReaderState) -> None:
        self._found, self._state = found, state
        self._lines = JsonLines[dict[str, Any]](_decode, lambda value: value, state.open_line)
        self._gathering = ReadTally()

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        gathering, lines = ReadTally(), self._lines
        self._gathering = gathering
        for start, raw, found, trouble in lines.split(data, base, last):
            if trouble:
                gathering.trouble(trouble, start, len(raw), is_record=found is None)
            if found is None:
                continue
            if "working_dir" in found and "role" not in found:
                self._learn(found)
                gathering.count("(head)", "known")
            else:
                gathering.count(plain(found.get("role")), self._say(message(found), start, len(raw)))
        if lines.tail is not None:
            start, size, trouble = lines.tail
            gathering.trouble(trouble, start, size, is_record=False, provisional=True)
        return gathering.reading(lines.consumed, lines.lines, lines.glued)

    def state(self) -> bytes:
        """See `sources.Reader`."""
        self._state.open_line = self._lines.open_line
        return msgspec.msgpack.encode(self._state)

    def _learn(self, head: dict[str, Any]) -> None:
        self._state.model = word(record(head.get("model_config")).get("model_name"))
        self._talk().learn(workspace=word(head.get("working_dir")))
        title = word(head.get("description")) or word(head.get("name"))
        if title:
            self._talk().learn(title=title, title_rank=2)

    def _say(self, said: Message, start: int, size: int) -> str:
        talk, state = self._talk(), self._state
        if said.fingerprint is None:
            words = digest(said.role, *(block.text for block in said.blocks))  # marks of visibility change
            said = replace(said, fingerprint=fingerprint(f"{talk.native_id}/{state.index}", words))
        if said.origin == "human" and self._found.kind == "subagent":
            said = replace(said, origin="agent")
        if said.origin == "model":
            said = replace(said, model=state.model, provider_id=said.provider_id or f"{talk.native_id}/{state.index}")
        talk.messages.append(replace(said, start=start, size=size))
        state.index += 1
        return "unknown" if said.kind == "unknown" else "message"

    def _talk(self) -> SessionTally:
        found = self._found
        return self._gathering.session(found.native_id or found.path.stem, found.kind, found.parent)


NAME = "goose"
_HEAD_SIZE = 16 << 10
_SCHEMA = (b"CREATE TABLE sessions", b"CREATE TABLE messages", b"content_json", b"working_dir")

# Patterns are compiled when they are first needed: every start of the program imports this.
_FIRST = rb'\s*\{(?=[^\n]*"working_dir"\s*:)(?=[^\n]*"(?:message_count|description)"\s*:)(?![^\n]*"role"\s*:)'
_FOLDER = rb'"working_dir"\s*:\s*("(?:[^"\\]|\\.)*")'


def roots(places: SearchPlaces) -> list[Path]:
    """Existing folders: named by the user, by the environment, and the usual one; each once."""
    wanted = list(places.extra.get(NAME, ()))
    moved = places.env.get("GOOSE_PATH_ROOT", "").strip()
    wanted += [Path(moved) / "data" / "sessions"] if moved else []
    if places.platform == "win32":
        base = Path(places.env.get("APPDATA", "") or places.home / "AppData" / "Roaming") / "Block" / "goose" / "data"
    else:
        base = Path(places.env.get("XDG_DATA_HOME", "") or places.home / ".local" / "share") / "goose"
    wanted.append(base / "sessions")
    return existing_folders(wanted)


def find(root: Path) -> Iterator[SourceCandidate]:
    """The database and the files of lines in a folder, or in its `sessions`."""
    for folder in (root, root / "sessions"):
        if not folder.is_dir() or (folder != root and folder.is_symlink()):
            continue
        with os.scandir(folder) as entries:
            names = sorted(
                entry.path for entry in entries if entry.name.endswith((".jsonl", ".db")) and entry.is_file()
            )
        for name in names:
            found = sniff(Path(name), read_beginning(name))
            if found is not None:
                yield found


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    if is_sqlite(head):
        schema = beginnings(path, head)
        ours = all(words in schema for words in _SCHEMA)
        return SourceCandidate(path, "container", stamp=stamp(path)) if ours else None
    return SourceCandidate(path, "main", path.stem) if re.match(_FIRST, head) else None


def workspace(head: bytes) -> str:
    """The working folder that the first line names."""
    from everturn.sources.toolkit.json_document import decode_item

    found = re.search(_FOLDER, head.split(b"\n", 1)[0])
    value = decode_item(found[1])[0] if found else ""
    return value if isinstance(value, str) else ""


def resume_command(native_id: str) -> list[str]:
    """The command that goes on with a session."""
    return ["goose", "session", "--resume", "--session-id", native_id]


_HEAD_COLUMNS = (
    "id name description session_type working_dir created_at schedule_id recipe_json user_recipe_values_json provider_name "
    "model_config_json"
).split()
_MESSAGE = "id message_id role created_timestamp tokens content_json metadata_json".split()
_NUMBERS = ("id", "created_timestamp", "tokens")
_SUBAGENT = "sub_agent"


def unpack(found: SourceCandidate, path: Path) -> Iterator[Member]:
    """Every session in the database."""
    with open_snapshot(path) as database:
        head = [name for name in _HEAD_COLUMNS if name in database.columns("sessions")]
        message = [name for name in _MESSAGE if name in database.columns("messages")]
        if "id" not in head or "session_id" not in database.columns("messages"):
            return
        for row in list(database.rows(f"SELECT {_columns(head)} FROM sessions ORDER BY id")):
            name = str(row["id"])
            kind = "subagent" if _plain_text(row.get("session_type")) == _SUBAGENT else "main"
            yield Member(name, _lines(database, row, message), kind, name)


def _lines(database: DatabaseSnapshot, session: Row, columns: list[str]) -> Iterator[bytes]:
    yield _line({"session": session["id"], **session})
    sql = f"SELECT {_columns(columns)} FROM messages WHERE session_id=? ORDER BY id"
    for row in database.rows(sql, session["id"]):
        yield _line(row)


def _columns(names: list[str]) -> str:
    """Texts as bytes: one that is not UTF-8 would be refused."""
    return ",".join(name if name in _NUMBERS else f"CAST({name} AS BLOB) AS {name}" for name in names)


def _line(row: Row) -> bytes:
    """One row; what is JSON in it stays as it is."""
    value = {
        key.removesuffix("_json"): _raw_json(item) if key.endswith("_json") else _plain_text(item)
        for key, item in row.items()
    }
    return msgspec.json.encode({key: item for key, item in value.items() if item is not None}) + b"\n"


def _raw_json(raw: Any) -> Any:
    if not isinstance(raw, bytes) or b"\n" in raw:
        return _plain_text(raw)
    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _plain_text(raw)
    return msgspec.Raw(raw)


def _plain_text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
