"""Find, unpack and read the threads of Zed.

    <data>/zed/threads/threads.db     table `threads`: id, summary, updated_at, data_type (`json` or `zstd`), data

The data of a thread is one document with `messages`. Since version 0.3 a message is `{"User": …}`, `{"Agent": …}` or
`"Resume"`; before, it had a role with `segments`, `tool_uses` and `tool_results`. The results of an answer's calls are in the
answer. `unpack` writes a head with facts that never change, then the messages as they are, each with the tokens of the request
it answers. Messages have no times: the thread has the time of its last change, which changes and is therefore not in the head.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from everturn.model.conversation import Block, Message, TokenUsage
from everturn.sources.contract import Member, SourceCandidate
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.json_document import decode_item
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.message_reader import Facts, RecordFormat
from everturn.sources.toolkit.sqlite_file import select_list, sniff_database, unpacked_snapshot
from everturn.sources.toolkit.values import (
    call_block,
    counted_usage,
    result_block,
    strings,
    text_blocks,
    unknown_block,
    unknown_message,
    word,
)
from everturn.sources.toolkit.zstd_data import unpack_zstd

_SCHEMA = (b"TABLE", b"threads", b"data_type", b"summary")
_LARGEST = 32 << 20
_TOKENS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_COLUMNS = ("id", "parent_id", "summary", "folder_paths")


# --- files ---
def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    return sniff_database(path, head, *_SCHEMA)


find = finder(sniff, "threads.db", deepest=2)


# --- the database ---
def unpack(candidate: SourceCandidate, path: Path) -> Iterator[Member]:
    with unpacked_snapshot(path) as database:
        columns = set(database.columns("threads"))
        if not {"id", "data"} <= columns:
            database.problems.append("its table of threads cannot be read")
            return
        known = [name for name in _COLUMNS if name in columns]
        for row in list(database.rows(f"SELECT {select_list(known)} FROM threads ORDER BY rowid")):
            facts = {name: value.decode("utf-8", "replace") for name, value in row.items() if isinstance(value, bytes)}
            name, parent = facts.get("id", ""), facts.get("parent_id", "")
            for data in database.rows("SELECT data FROM threads WHERE CAST(id AS BLOB)=?", name.encode()):
                document = _document(data["data"])
                if document is None:
                    database.problems.append("the data of a thread is damaged or too large; only its name is read")
                kind = "subagent" if parent else "main"
                yield Member(name, _lines(facts, document or {}), kind, name, parent)


def _document(data: Any) -> Rec | None:
    """Return the document of a thread; None if it cannot be decoded."""
    raw = data if isinstance(data, bytes) else word(data).encode("utf-8", "replace")
    if raw[:1] not in (b"{", b"["):
        raw = unpack_zstd(raw, _LARGEST) or b""
    value, _ = decode_item(raw)
    return value if isinstance(value, dict) else None


def _lines(facts: dict[str, str], thread: Rec) -> Iterator[bytes]:
    model = mapping(thread.get("model"))
    folder = facts.get("folder_paths", "").split("\n")[0]
    yield msgspec.json.encode({"thread": facts.get("id", ""), "workspace": folder or _snapshot_folder(thread)}) + b"\n"
    usage, asked = mapping(thread.get("request_token_usage")), ""
    for message in listing(thread.get("messages")):
        user = mapping(mapping(message).get("User"))
        asked = word(user.get("id")) or asked
        more: Rec = {}
        if "Agent" in mapping(message) and mapping(usage.get(asked)):
            more = {"tokens": usage[asked], "response": asked}
        if not user and word(model.get("model")):
            more["model"] = model["model"]
        yield msgspec.json.encode({"message": message, **more}) + b"\n"
    yield msgspec.json.encode({"title": thread.get("title") or thread.get("summary") or facts.get("summary")}) + b"\n"


def _snapshot_folder(thread: Rec) -> str:
    trees = listing(mapping(thread.get("initial_project_snapshot")).get("worktree_snapshots"))
    return next((path for tree in trees if (path := word(mapping(tree).get("worktree_path")))), "")


# --- messages ---
def build(record: Rec) -> Message | None:
    """Return the message of a line."""
    if "thread" in record or ("title" in record and "message" not in record) or record.get("message") == "Resume":
        return None
    found = mapping(record.get("message"))
    if isinstance(found.get("User"), dict):
        return _user(found["User"])
    if isinstance(found.get("Agent"), dict):
        return _agent(found["Agent"], record)
    if "role" in found:
        return _old(found, word(record.get("model")))
    return unknown_message(record)


def _name(record: Rec) -> str:
    found = record.get("message")
    if not isinstance(found, dict):
        return word(found) or "head"
    return word(found.get("role")) or next(iter(found), "")


def _facts(record: Rec) -> Facts:
    title = word(record.get("title"))
    return {"title": title, "title_rank": 1 if title else 0, "workspace": word(record.get("workspace"))}


_FORMAT = RecordFormat(build, _name, _facts)
reader, view = _FORMAT.reader, _FORMAT.view


def _user(user: Rec) -> Message:
    blocks = tuple(block for part in listing(user.get("content")) for block in _user_part(part))
    return Message("user", "human", native_id=word(user.get("id")), blocks=blocks, starts_turn=True)


def _user_part(part: Any) -> tuple[Block, ...]:
    one = mapping(part)
    if isinstance(one.get("Text"), str):
        return text_blocks(one["Text"], "prompt")
    if "Mention" in one:
        return (Block("document", "\n".join(strings(one["Mention"])), "meta", data=part),)
    return (Block("image", data=part),) if "Image" in one else (unknown_block(part),)


def _agent(agent: Rec, record: Rec) -> Message:
    """Return an answer with its calls and their results."""
    results = mapping(agent.get("tool_results"))
    blocks: list[Block] = []
    for part in listing(agent.get("content")):
        blocks += _agent_part(part)
    for block in list(blocks):
        if block.call is not None and isinstance(results.get(block.call.call_id), dict):
            blocks.append(_result(block.call.call_id, results[block.call.call_id]))
    usage = counted_usage(record.get("tokens"), *_TOKENS)
    name = word(record.get("response")) if usage is not None else ""
    return _response(tuple(blocks), word(record.get("model")), usage, name)


def _response(blocks: tuple[Block, ...], model: str, usage: TokenUsage | None = None, name: str = "") -> Message:
    return Message("assistant", "model", provider_id=name, model=model, blocks=blocks, usage=usage)


def _agent_part(part: Any) -> tuple[Block, ...]:
    one = mapping(part)
    if isinstance(one.get("Text"), str):
        return text_blocks(one["Text"], "answer")
    if "Thinking" in one or "RedactedThinking" in one:
        return text_blocks(word(mapping(one.get("Thinking")).get("text")), "thinking", "thinking")
    if isinstance(one.get("ToolUse"), dict):
        return (_call(one["ToolUse"]),)
    return (unknown_block(part),)


def _call(use: Rec) -> Block:
    given = use.get("input")
    return call_block(word(use.get("id")), word(use.get("name")), given or word(use.get("raw_input")), use)


def _result(call_id: str, end: Rec) -> Block:
    text = "\n".join(strings(end.get("content")))
    return result_block(call_id, text, True if end.get("is_error") is True else None, end)


def _old(message: Rec, model: str) -> Message:
    """Return the message of a thread from before version 0.3."""
    role, name = word(message.get("role")), str(message.get("id", ""))
    field = {"user": "prompt", "assistant": "answer"}.get(role, "meta")
    blocks: list[Block] = []
    for part in map(mapping, listing(message.get("segments"))):
        is_thought = part.get("type") == "thinking"
        blocks += text_blocks(
            word(part.get("text")), "thinking" if is_thought else field, "thinking" if is_thought else "text"
        )
    calls = [_call(use) for use in map(mapping, listing(message.get("tool_uses")))]
    ends = [_result(word(end.get("tool_use_id")), end) for end in map(mapping, listing(message.get("tool_results")))]
    if role == "assistant":
        return replace(_response((*blocks, *calls, *ends), model), native_id=name)
    if role == "user":
        context = text_blocks(word(message.get("context")), "meta")
        is_typed = bool(blocks)
        if not is_typed and ends:
            return Message("tool", "tool", "result", native_id=name, blocks=tuple(ends))
        said = (*ends, *blocks, *context)
        return Message("user", "human", native_id=name, blocks=said, starts_turn=is_typed)
    return Message("system", "injected", "context", native_id=name, blocks=tuple(blocks))
