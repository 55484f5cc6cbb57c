"""Find, unpack and read the conversations of Amazon Q CLI and of Kiro CLI.

    <data>/amazon-q/data.sqlite3, <data>/kiro-cli/data.sqlite3    tables `conversations` and `conversations_v2`
    any .json file                                                what `/save` wrote: the same value

A conversation is one JSON value. Its `history` has pairs of what was sent (`user`: a prompt, or results of tools) and what
came back (`assistant`: a `Response` or a `ToolUse`); old versions wrote a pair as a list of two. `unpack` writes a head with
the facts that never change, then one line for each half of a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from everturn.model.conversation import Block, Message
from everturn.sources.contract import Member, PartlyUnread, SourceCandidate, read_beginning
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.json_document import decode_item, first_object
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.message_reader import Facts, RecordFormat
from everturn.sources.toolkit.sqlite_file import (
    DatabaseSnapshot,
    beginnings,
    is_sqlite,
    select_list,
    stamp,
    unpacked_snapshot,
)
from everturn.sources.toolkit.values import (
    call_block,
    digest,
    milliseconds,
    result_block,
    strings,
    text_blocks,
    tool_kind,
    unknown_message,
    word,
)

_TABLES = ("conversations_v2", "conversations")
_LARGEST = 32 << 20
#: Kinds of tools whose names the toolkit does not know.
_KINDS = {"fs_read": "read", "fs_write": "edit", "use_aws": "shell", "thinking": "plan", "todo_list": "plan"}


# --- files ---
def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if is_sqlite(head):
        schema = beginnings(path, head)
        is_own = b"TABLE conversations" in schema and (b"auth_kv" in schema or b"conversation_id" in schema)
        return SourceCandidate(path, "container", stamp=stamp(path)) if is_own else None
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{") or b'"conversation_id"' not in start or b'"history"' not in start:
        return None
    first = first_object(head)
    is_own = bool(word(first.get("conversation_id"))) and any(
        mark in start for mark in (b'"env_context"', b'"tool_use_results"', b'"next_message"', b'"valid_history_range"')
    )
    return SourceCandidate(path, "container", word(first.get("conversation_id"))) if is_own else None


find = finder(sniff, "data.sqlite3", deepest=3)


# --- conversations ---
def unpack(candidate: SourceCandidate, path: Path) -> Iterator[Member]:
    if not is_sqlite(read_beginning(path, 16)):
        if path.stat().st_size > _LARGEST:
            raise OSError(None, f"an export of more than {_LARGEST >> 20} MB is not unpacked")
        problems: list[str] = []
        yield from _member(path.read_bytes(), "", problems)
        if problems:
            raise PartlyUnread(problems)
        return
    with unpacked_snapshot(path) as database:
        seen: set[str] = set()
        for row in _rows(database):
            for member in _member(row["value"], str(row["key"]), database.problems):
                if member.name not in seen:
                    seen.add(member.name)
                    yield member


def _rows(database: DatabaseSnapshot) -> Iterator[dict[str, Any]]:
    for table in _TABLES:
        if {"key", "value"} <= set(database.columns(table)):
            yield from database.rows(f"SELECT key, {select_list(['value'])} FROM {table} ORDER BY rowid")


def _member(raw: Any, workspace: str, problems: list[str]) -> Iterator[Member]:
    """Yield the conversation of a value, if it is one."""
    value, _ = decode_item(raw) if isinstance(raw, bytes) else (None, "")
    if not isinstance(value, dict):
        problems.append("a conversation in it is damaged or too large, and is not read")
        return
    history = listing(value.get("history"))
    if not history:
        return
    name = word(value.get("conversation_id")) or digest(workspace, str(raw[:200]))
    folder = workspace or next(filter(None, map(_working_folder, history)), "")
    head = {"conversation": name, **({"workspace": folder} if folder else {})}
    yield Member(name, _lines(head, history), native_id=name)


def _working_folder(entry: Any) -> str:
    """Return the folder in which a prompt was typed; "" if it does not say."""
    user = mapping(mapping(entry).get("user"))
    return word(mapping(mapping(user.get("env_context")).get("env_state")).get("current_working_directory"))


def _lines(head: Rec, history: list[Any]) -> Iterator[bytes]:
    yield msgspec.json.encode(head) + b"\n"
    for entry in history:
        pair = mapping(entry) or dict(zip(("user", "assistant"), listing(entry), strict=False)) or {"other": entry}
        about = pair.get("request_metadata")
        if "user" in pair:
            yield msgspec.json.encode({"user": pair["user"]}) + b"\n"
        if "assistant" in pair:
            more = {"request_metadata": about} if about is not None else {}
            yield msgspec.json.encode({"assistant": pair["assistant"], **more}) + b"\n"
        if not pair.keys() & {"user", "assistant"}:
            yield msgspec.json.encode(pair) + b"\n"


# --- messages ---
def build(record: Rec) -> Message | None:
    """Return the message of a line."""
    if "conversation" in record:
        return None
    if isinstance(record.get("user"), dict):
        return _user(record["user"])
    if isinstance(record.get("assistant"), dict):
        return _assistant(record["assistant"], mapping(record.get("request_metadata")))
    return unknown_message(record)


def _facts(record: Rec) -> Facts:
    return {"workspace": word(record.get("workspace"))} if "conversation" in record else {}


def _name(record: Rec) -> str:
    if "conversation" in record:
        return "head"
    half = "user" if "user" in record else "assistant"
    about = mapping(record.get(half))
    return f"{half}/{next(iter(mapping(about.get('content')) or about), '')}"


_FORMAT = RecordFormat(build, _name, _facts)
reader, view = _FORMAT.reader, _FORMAT.view


def _user(user: Rec) -> Message:
    content = mapping(user.get("content"))
    at, precision = milliseconds(user.get("timestamp"))
    context = text_blocks(word(user.get("additional_context")), "meta")
    if isinstance(prompt := mapping(content.get("Prompt")).get("prompt"), str):
        blocks = (*text_blocks(prompt, "prompt"), *context)
        return Message("user", "human", "text", at, precision, blocks=blocks, starts_turn=True)
    for kind in ("ToolUseResults", "CancelledToolUses"):
        if isinstance(content.get(kind), dict):
            return _results(content[kind], at, precision, kind == "CancelledToolUses")
    return unknown_message(user)


def _results(told: Rec, at: int | None, precision: str, is_cancelled: bool) -> Message:
    blocks: list[Block] = []
    for one in map(mapping, listing(told.get("tool_use_results"))):
        failed = True if is_cancelled or one.get("status") == "Error" else None
        text = "\n".join(strings(one.get("content")))
        blocks.append(result_block(word(one.get("tool_use_id")), text, failed, one))
    prompt = word(told.get("prompt"))
    if not prompt:
        return Message("tool", "tool", "result", at, precision, blocks=tuple(blocks))
    said = (*blocks, *text_blocks(prompt, "prompt"))
    return Message("user", "human", "text", at, precision, blocks=said, starts_turn=True)


def _assistant(answer: Rec, about: Rec) -> Message:
    at, precision = milliseconds(about.get("stream_end_timestamp_ms") or about.get("request_start_timestamp_ms"))
    model = word(about.get("model_id"))
    response, use = mapping(answer.get("Response")), mapping(answer.get("ToolUse"))
    said = response or use
    if not said:
        return unknown_message(answer)
    calls = [
        call_block(word(one.get("id")), name, one.get("args"), one, _tool_kind(name, one.get("args")))
        for one in map(mapping, listing(use.get("tool_uses")))
        for name in [word(one.get("orig_name")) or word(one.get("name"))]
    ]
    blocks = (*text_blocks(word(said.get("content")), "answer"), *calls)
    name = word(said.get("message_id"))
    return Message("assistant", "model", "text", at, precision, name, name, model, blocks)


def _tool_kind(name: str, given: Any) -> str:
    if name == "fs_write":
        return "create" if mapping(given).get("command") == "create" else "edit"
    return _KINDS.get(name) or tool_kind(name)
