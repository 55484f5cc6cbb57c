"""Find sessions and read them entry by entry; `view` converts one entry, independently of the others.

    <agent>/sessions/--<working folder>--/<time>_<session>.jsonl

`<agent>` is PI_CODING_AGENT_DIR or `~/.pi/agent`. Folders behind symbolic links are not entered, except `sessions` itself.
Sessions elsewhere are recognised by their content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, Link, Message, fingerprint
from everturn.sources.contract import SourceCandidate, read_beginning
from everturn.sources.toolkit.file_search import find_files
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    Rec,
    RecordPlace,
    add,
    listing,
    mapping,
    records,
    view_placed,
)
from everturn.sources.toolkit.values import (
    call_block,
    count,
    counted_usage,
    digest,
    error_class,
    milliseconds,
    plain,
    strings,
    text_blocks,
    unknown_block,
    word,
)

#: Entries that hold no messages.
SILENT = frozenset(
    "session session_info model_change thinking_level_change label custom context_transform ephemeral".split()
)
_EXITED = re.compile(r"Command exited with code (-?\d{1,9})\s*\Z")
_STOPPED = re.compile(r"(?:Command (timed out)|(?:Command|Operation|Request)(?: was)? aborted)[^\n]{0,80}\Z")
_ENVELOPE = ("type", "id", "parentId", "timestamp", "role")


def _build(record: Rec, place: RecordPlace) -> Message | None:
    kind = word(record.get("type"))
    if kind in SILENT:
        return None
    if kind == "message":
        return _ROLES.get(word(mapping(record.get("message")).get("role")), _unknown)(record, place)
    return _ENTRIES.get(kind, _unknown)(record, place)


view = partial(view_placed, _build)


def _entry_kind(record: Rec) -> tuple[str, bool]:
    """Return the type of an entry, with its role where it has one, and whether it is known."""
    kind, role = word(record.get("type")), word(mapping(record.get("message")).get("role"))
    if kind == "message":
        return f"{kind}/{role}", role in _ROLES
    return kind, kind in SILENT or kind in _ENTRIES


def _unknown(record: Rec, place: RecordPlace) -> Message:
    text = "\n".join(strings(record, *_ENVELOPE))
    return _message(record, place, "system", "system", text_blocks(text, "meta", "unknown"), "unknown")


def _user(record: Rec, place: RecordPlace) -> Message:
    blocks = _blocks(mapping(record.get("message")).get("content"), "prompt")
    return replace(_message(record, place, "user", "human", blocks), starts_turn=True)


def _assistant(record: Rec, place: RecordPlace) -> Message:
    answer = mapping(record.get("message"))
    blocks = _blocks(answer.get("content"), "answer")
    failure, stop_reason = word(answer.get("errorMessage")), answer.get("stopReason")
    if stop_reason in ("error", "aborted") and not blocks:
        kind = "interrupt" if stop_reason == "aborted" else "notice"
        message = _message(record, place, "assistant", "system", text_blocks(failure, "meta"), kind)
    else:
        message = _message(record, place, "assistant", "model", blocks + text_blocks(failure, "meta"))
    name = word(answer.get("responseId")) or word(record.get("id")) or f"@{place.start}"
    usage = counted_usage(answer.get("usage"), "input", "output", "cacheRead", "cacheWrite")
    return replace(message, provider_id=name, model=word(answer.get("model")), usage=usage)


def _result(record: Rec, place: RecordPlace) -> Message:
    result = mapping(record.get("message"))
    text = "\n".join(block.text or f"[{block.kind}]" for block in _blocks(result.get("content"), "tool_output"))
    failed, exited, stopped = result.get("isError") is True, _EXITED.search(text), _STOPPED.search(text)
    status = int(exited[1]) if exited else None
    if failed and stopped:
        reason = "timeout" if stopped[1] else "interrupted"
    else:
        reason = "exit_status" if status else error_class(text)
    end = CallEnd(word(result.get("toolCallId")), failed, reason if failed else "", status)
    block = Block("result", text, "tool_output", result=end, data=result)
    return _message(record, place, "tool", "tool", (block,), "result")


def _shell(record: Rec, place: RecordPlace) -> Message:
    """Return a command that the human ran with `!`, and its output."""
    execution = mapping(record.get("message"))
    blocks = text_blocks(word(execution.get("command")), "prompt") + text_blocks(
        word(execution.get("output")), "tool_output"
    )
    return replace(_message(record, place, "user", "human", blocks, "shell"), starts_turn=True)


def _injected_message(record: Rec, place: RecordPlace) -> Message:
    content = mapping(record.get("message")).get("content", record.get("content"))
    return _message(record, place, "user", "injected", _blocks(content, "meta"), "context")


def _summary(record: Rec, place: RecordPlace) -> Message:
    text = word(record.get("summary")) or word(mapping(record.get("message")).get("summary"))
    return _message(record, place, "system", "injected", text_blocks(text, "summary"), "summary")


def _compaction(record: Rec, place: RecordPlace) -> Message:
    blocks = text_blocks(word(record.get("summary")), "summary")
    return _message(record, place, "system", "system", blocks, "compaction")


_Builder = Callable[[Rec, RecordPlace], Message]
_ROLES: dict[str, _Builder] = {
    "user": _user, "assistant": _assistant, "toolResult": _result, "bashExecution": _shell, "custom": _injected_message,
    "hookMessage": _injected_message, "branchSummary": _summary, "compactionSummary": _summary,
}  # fmt: skip
_ENTRIES: dict[str, _Builder] = {
    "custom_message": _injected_message, "branch_summary": _summary, "compaction": _compaction,
}  # fmt: skip


def _blocks(content: Any, field: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return text_blocks(content, field)
    return tuple(_block(part, field) for part in listing(content))


def _block(part: Any, field: str) -> Block:
    block = mapping(part)
    kind = block.get("type")
    if kind == "text":
        return Block("text", word(block.get("text")), field)
    if kind == "thinking":
        return Block("thinking", word(block.get("thinking")), "thinking", data=part)
    if kind == "toolCall":
        return call_block(word(block.get("id")), word(block.get("name")), block.get("arguments"), part)
    return Block("image", data=part) if kind == "image" else unknown_block(part)


def _message(
    record: Rec, place: RecordPlace, role: str, origin: str, blocks: tuple[Block, ...], kind: str = "text"
) -> Message:
    at, precision = milliseconds(record.get("timestamp"))
    name, when = word(record.get("id")), word(record.get("timestamp"))
    # The first version had no ids.
    mark = digest(role, *(block.text for block in blocks)) if not name and when else name
    return Message(
        role, origin, kind, at, precision, name, blocks=blocks, start=place.start, size=place.size,
        fingerprint=fingerprint(mark, when) if mark else None,
    )  # fmt: skip


# --- files ---

_SESSIONS = "sessions"
_NAMED = re.compile(
    r".*[_-]([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl", re.IGNORECASE | re.DOTALL
)


def find(root: Path) -> Iterator[SourceCandidate]:
    """Yield the sessions below a root: the client's folder, its `sessions`, or any folder with sessions."""
    sessions = root / _SESSIONS
    return find_files(sessions, _pick_by_name) if sessions.is_dir() else find_files(root, _pick_by_content)


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    header = _parse_header(head)
    return SourceCandidate(path, "main", header["id"]) if header is not None else None


def workspace(head: bytes) -> str:
    return (_parse_header(head) or {}).get("cwd", "")


def _session_in_name(path: str) -> str:
    return named[1].lower() if (named := _NAMED.fullmatch(path)) else ""


def _parse_header(head: bytes) -> dict[str, str] | None:
    """Return the facts in the first line of a session; None when it is no such line."""
    if head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")[:1] != b"{":
        return None
    first = next(iter(records(head[: head.find(b"\n") + 1] or head) or records(head)), {})
    is_header = first.get("type") == "session" and all(word(first.get(key)) for key in ("id", "timestamp", "cwd"))
    return {key: word(first[key]) for key in ("id", "cwd")} if is_header else None


def _pick_by_name(entry: os.DirEntry[str]) -> SourceCandidate | None:
    """Return the candidate for a file in the agent's own folder, where its name is enough."""
    name = _session_in_name(entry.name)
    return SourceCandidate(Path(entry.path), "main", name) if name and _is_file(entry) else _pick_by_content(entry)


def _pick_by_content(entry: os.DirEntry[str]) -> SourceCandidate | None:
    return sniff(Path(entry.path), read_beginning(entry.path)) if _is_file(entry) else None


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".jsonl") and (not entry.is_symlink() or entry.is_file())


# --- the reader ---
_HUMAN_TITLE = 3


class PiReaderState(Struct, array_like=True):
    open_line: bool = False
    version: str = ""  # of the format: the client does not record its own


class PiReader(LineReader[PiReaderState]):
    kind = PiReaderState

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        kind = record.get("type")
        session = self._open_session()
        if kind == "session":
            self._state.version = f"v{count(record.get('version')) or 1}"
            session.learn(workspace=word(record.get("cwd")))
            origin = _session_in_name(word(record.get("parentSession")) or word(record.get("branchedFrom")))
            if origin:
                session.links.append(Link("forked_from", origin))
        elif kind == "session_info" and word(record.get("name")):
            session.learn(title=word(record.get("name")), title_rank=_HUMAN_TITLE)
        if (message := _build(record, place)) is not None:
            add(self._gathering, session, message)
        name, is_known = _entry_kind(record)
        disposition = "unknown" if not is_known else "known" if message is None else "message"
        return plain(name), disposition, self._state.version
