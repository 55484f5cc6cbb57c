"""Find and read the sessions of Grok Build.

    ~/.grok/sessions/<working folder, quoted>/<session>/chat_history.jsonl    the conversation
    …                                                  /summary.json          title, folder, branch, parent: the folder is read
    …                                                  /updates.jsonl         the same in pieces, with times; not read

A line has a `type`: `system`, `user` (with a `synthetic_reason` where the client wrote it), `reasoning`, `assistant` with
`tool_calls`, `backend_tool_call` (a search on the server) or `tool_result`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from everturn.model.conversation import Block, Message
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.json_document import read_object
from everturn.sources.toolkit.line_reader import Rec, listing, mapping, records
from everturn.sources.toolkit.message_reader import RecordFormat
from everturn.sources.toolkit.values import (
    blocks_of,
    call_block,
    function_calls,
    milliseconds,
    result_block,
    strings,
    text_blocks,
    unknown_message,
    word,
)

_FILE = "chat_history.jsonl"
_TYPES = frozenset(("system", "user", "reasoning", "assistant", "backend_tool_call", "tool_result"))
_TYPED = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_INSERTED = re.compile(r"\s*<(?:user_info|system-reminder|environment|skills|project_layout|git_status)\b")


# --- files ---
def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] != b"{":
        return None
    lines = records(head[: head.rfind(b"\n") + 1] or head)[:20]
    known = [line for line in lines if word(line.get("type")) in _TYPES and "uuid" not in line]
    is_history = bool(lines) and lines[0] in known and 2 * len(known) > len(lines)
    has_words = any(line["type"] in ("user", "assistant") and "content" in line for line in known)
    is_own = path.name == _FILE or any(line.keys() & {"model_id", "synthetic_reason"} for line in lines)
    if not (is_history and has_words and is_own and not any("message" in line for line in lines)):
        return None
    return SourceCandidate(path, "main", path.parent.name if path.name == _FILE else path.stem)


find = finder(sniff, _FILE, deepest=5)


def folder_of(path: Path) -> str:
    """Return the working folder: as the summary beside the file says, else as the name of the folder above says."""
    about = read_object(path.parent / "summary.json")
    told = next((word(about.get(key)) for key in ("cwd", "git_root_dir", "gitRootDir") if about.get(key)), "")
    named = unquote(path.parent.parent.name)
    return told or (named if named.startswith("/") else "")


# --- messages ---
def build(record: Rec) -> Message | None:
    """Return the message of a line."""
    kind, content = word(record.get("type")), record.get("content")
    at, precision = milliseconds(record.get("timestamp"))
    about = (at, precision, word(record.get("id")))
    if kind == "system":
        return Message("system", "injected", "context", *about, blocks=tuple(blocks_of(content, "meta")))
    if kind == "user":
        return _user(record, about)
    if kind == "reasoning":
        texts = [*strings(record.get("summary"), "type"), *strings(content, "type")]
        blocks = text_blocks("\n".join(texts), "thinking", "thinking")
        return Message("assistant", "model", "text", *about, blocks=blocks)
    if kind == "assistant":
        thought = text_blocks(word(record.get("reasoning_content")), "thinking", "thinking")
        blocks = (*thought, *blocks_of(content, "answer"), *_calls(record.get("tool_calls")))
        return Message("assistant", "model", "text", *about, model=word(record.get("model_id")), blocks=blocks)
    if kind == "backend_tool_call":
        call = mapping(record.get("tool_call")) or record
        block = call_block(word(call.get("id")), word(call.get("name")) or kind, call.get("arguments"), record)
        return Message("assistant", "model", "text", *about, blocks=(block,))
    if kind == "tool_result":
        block = result_block(word(record.get("tool_call_id")), content, _has_failed(record), record)
        return Message("tool", "tool", "result", *about, blocks=(block,))
    return unknown_message(record, "type")


_FORMAT = RecordFormat(build, lambda record: word(record.get("type")))
reader, view = _FORMAT.reader, _FORMAT.view


def _user(record: Rec, about: tuple[int | None, str, str]) -> Message:
    """Return what a person typed, or what the client put in its place."""
    blocks = blocks_of(record.get("content"), "prompt")
    reason = word(record.get("synthetic_reason"))
    is_client = reason not in ("", "interjection")
    shown = tuple(one for block in blocks for one in _prompt_blocks(block, is_client))
    if is_client or not any(block.field == "prompt" or block.kind == "image" for block in shown):
        return Message("user", "injected", "context", *about, blocks=shown)
    kind = "queued" if reason else "text"
    return Message("user", "human", kind, *about, blocks=shown, starts_turn=not reason)


def _prompt_blocks(block: Block, is_client: bool) -> tuple[Block, ...]:
    if block.field != "prompt":
        return (block,)
    if is_client or _INSERTED.match(block.text):
        return text_blocks(block.text, "meta")
    if typed := _TYPED.search(block.text):
        around = (block.text[: typed.start()] + block.text[typed.end() :]).strip()
        return (*text_blocks(around, "meta"), *text_blocks(typed[1], "prompt"))
    return (block,)


def _calls(calls: Any) -> list[Block]:
    """Return the calls of an answer: `{id, name, arguments}`, or with a `function` around the last two."""
    found: list[Block] = []
    for call in listing(calls):
        one = mapping(call)
        if "function" in one:
            found += function_calls([call])
        else:
            found.append(call_block(word(one.get("id")), word(one.get("name")), one.get("arguments"), call))
    return found


def _has_failed(record: Rec) -> bool | None:
    return True if record.get("is_error") is True or record.get("status") == "failed" else None
