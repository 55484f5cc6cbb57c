"""Find and read the sessions of Kiro.

    ~/.kiro/sessions/cli/<session>.jsonl                   CLI: one record per line, `{"version", "kind", "data"}`
    ~/.kiro/sessions/cli/<session>.json                    its facts: `cwd`, `title`; the folder is read
    <storage>/workspace-sessions/<folder>/<session>.json   editor: a document with a `history`
    <storage>/workspace-sessions/<folder>/sessions.json    a list of all sessions; it holds no conversation

A record of the CLI is a `Prompt`, an `AssistantMessage` or `ToolResults`; its content is a list of `{"kind", "data"}`. An
answer of the editor may hold no more than a reference to a log of its execution: its words are then those of its prompt log.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from everturn.model.conversation import Block, Message, ReadResult
from everturn.sources.contract import SourceCandidate, SourceReader
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.json_document import first_object, read_object
from everturn.sources.toolkit.line_reader import ReadTally, Rec, listing, mapping, records
from everturn.sources.toolkit.message_reader import Facts, MessageElements, MessageLines, RecordFormat, view_element
from everturn.sources.toolkit.values import (
    blocks_of,
    call_block,
    milliseconds,
    result_block,
    strings,
    text_blocks,
    tool_kind,
    unknown_block,
    unknown_message,
    word,
)

_KINDS = frozenset(("Prompt", "AssistantMessage", "ToolResults"))
_LINE = re.compile(rb'"kind"\s*:\s*"(?:Prompt|AssistantMessage|ToolResults)"')
_HISTORY = re.compile(rb'"history"\s*:\s*\[')
_EDITOR = re.compile(rb'"(?:executionId|autonomyMode|selectedModel|selectedProfileId)"\s*:')
_FOLDER = "workspaceDirectory"
_WRAPPED = re.compile(r"</?kiro-ide-message>\s*")
#: Kinds of the CLI's tools whose names the toolkit does not know.
_TOOLS = {"fs_read": "read", "fs_write": "edit", "execute_bash": "shell", "use_aws": "shell", "introspect": "read"}


# --- files ---
def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{"):
        return None
    if _LINE.search(start):
        lines = records(head[: head.find(b"\n") + 1] or head)
        is_own = any(word(line.get("kind")) in _KINDS and isinstance(line.get("data"), dict) for line in lines)
        return SourceCandidate(path, "main", path.stem) if is_own else None
    if not (_HISTORY.search(start) and _EDITOR.search(start)):
        return None
    name = word(first_object(head).get("sessionId"))
    return SourceCandidate(path, "main", name or path.stem)


find = finder(sniff, "*.jsonl", "*.json", without="sessions.json", deepest=4)


def workspace(head: bytes) -> str:
    return word(first_object(head).get(_FOLDER))


def folder_of(path: Path) -> str:
    """Return the working folder that the file of facts beside a session of the CLI names."""
    return word(read_object(path.with_suffix(".json")).get("cwd"))


# --- messages ---
_LINES, _DOCUMENT = b"l", b"d"


def _shape_of(data: bytes, last: bool) -> bytes:
    """Return the shape that the first line shows or, where that is damaged, the second one; b"" if that is still to come."""
    line, end, rest = data.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    is_whole = line.startswith(b"{") and line.rstrip().endswith(b"}")
    if _HISTORY.search(line):
        return _DOCUMENT
    if _LINE.search(line) and (end or is_whole):
        return _LINES
    if not end or is_whole:
        return _LINES if end else b""
    second, end, _ = rest.lstrip().partition(b"\n")
    if not (end or last):
        return b""
    return _LINES if _LINE.search(second) else _DOCUMENT


class KiroReader:
    """Reads lines or a document: its first lines show which."""

    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        self._candidate = candidate
        self._shape = state[:1] if state[:1] in (_LINES, _DOCUMENT) else b""
        self._inner = self._open(state[1:]) if self._shape else None

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        if self._inner is None:
            if not (shape := _shape_of(data, last)):
                return ReadTally().defer_read(data, base, last)
            self._shape = shape
            self._inner = self._open(b"")
        return self._inner.feed(data, base, last)

    def state(self) -> bytes:
        return self._shape + self._inner.state() if self._inner is not None else b""

    def _open(self, state: bytes) -> SourceReader:
        form = RecordFormat(build, _name)
        if self._shape == _LINES:
            return MessageLines(form, self._candidate, state)
        return MessageElements(form, "history", self._candidate, state, _about)


def build(record: Rec) -> Message | None:
    """Return the message of a line of the CLI, or of an item of a history."""
    if "message" in record and "kind" not in record:
        return _history_message(record)
    kind, data = word(record.get("kind")), mapping(record.get("data"))
    at, precision = milliseconds(mapping(data.get("meta")).get("timestamp"))
    about = (at, precision, word(data.get("message_id")))
    content = data.get("content")
    if kind == "Prompt":
        blocks = _blocks(content, "prompt")
        return Message("user", "human", "text", *about, blocks=blocks, starts_turn=True)
    if kind == "AssistantMessage":
        return Message("assistant", "model", "text", *about, blocks=_blocks(content, "answer"))
    if kind == "ToolResults":
        return Message("tool", "tool", "result", *about, blocks=_blocks(content, "meta"))
    return unknown_message(record, "version", "kind")


view = partial(view_element, build)


def _name(record: Rec) -> str:
    return word(record.get("kind")) or word(mapping(record.get("message")).get("role"))


def _about(key: str, value: Any) -> Facts:
    if key == "title" and word(value):
        return {"title": word(value), "title_rank": 1}
    return {"workspace": word(value)} if key == _FOLDER else {}


def _blocks(content: Any, field: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return text_blocks(content, field)
    return tuple(block for part in listing(content) for block in _part(mapping(part), part, field))


def _part(part: Rec, found: Any, field: str) -> tuple[Block, ...]:
    kind, data = word(part.get("kind")), part.get("data")
    if kind == "text" and isinstance(data, str):
        return text_blocks(data, field)
    if kind == "toolUse":
        use = mapping(data)
        name, given = word(use.get("name")), use.get("input")
        return (call_block(word(use.get("toolUseId")), name, given, found, _tool_kind(name, given)),)
    if kind == "toolResult":
        end = mapping(data)
        text = "\n".join(_result_texts(end.get("content")))
        failed = True if word(end.get("status")).lower() == "error" else None
        return (result_block(word(end.get("toolUseId")), text, failed, found),)
    if kind in ("image", "document"):
        return (Block(kind, data=found),)
    return (unknown_block(found),)


def _tool_kind(name: str, given: Any) -> str:
    if name in ("write", "fs_write"):
        return "create" if mapping(given).get("command") == "create" else "edit"
    return _TOOLS.get(name) or tool_kind(name)


def _result_texts(content: Any) -> list[str]:
    return [text for part in listing(content) for text in strings(mapping(part).get("data", part), "kind")]


def _history_message(item: Rec) -> Message:
    """Return the message of an item of the editor's history."""
    message = mapping(item.get("message"))
    role, content = word(message.get("role")), message.get("content")
    name = word(message.get("id"))
    if role == "user":
        blocks = tuple(
            Block(block.kind, _WRAPPED.sub("", block.text), block.field, data=block.data)
            for block in blocks_of(content, "prompt")
        )
        return Message("user", "human", "text", native_id=name, blocks=blocks, starts_turn=True)
    if role == "assistant":
        logs = [mapping(log) for log in listing(item.get("promptLogs"))]
        said = [text for log in logs if (text := word(log.get("completion")))]
        blocks = text_blocks("\n\n".join(said), "answer") or tuple(blocks_of(content, "answer"))
        model = next((text for log in logs if (text := word(log.get("modelTitle")))), "")
        return Message("assistant", "model", "text", native_id=name, model=model, blocks=blocks)
    if role == "tool":
        return Message("tool", "tool", "output", native_id=name, blocks=tuple(blocks_of(content, "tool_output")))
    if role == "system":
        return Message("system", "injected", "context", native_id=name, blocks=tuple(blocks_of(content, "meta")))
    return unknown_message(item)
