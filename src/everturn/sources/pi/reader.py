"""Reads a session piece by piece.

One entry → one message, without knowing the entries around it: used by the reader and by `view` alike.

Finds sessions on disk, and knows them by their content wherever else they lie.

    <agent>/sessions/--<working folder>--/<time>_<session>.jsonl

`<agent>` is PI_CODING_AGENT_DIR or `~/.pi/agent`. Folders behind symbolic links are not entered, except `sessions` itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, Link, Message, TokenUsage, fingerprint
from everturn.sources.contract import SearchPlaces, SourceCandidate, existing_folders, read_beginning
from everturn.sources.toolkit import blocks
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
from everturn.sources.toolkit.values import count, digest, milliseconds, plain, state_of, strings, word

#: Entries about the session, not of it.
SILENT = frozenset(
    "session session_info model_change thinking_level_change label custom context_transform ephemeral".split()
)
_EXITED = re.compile(r"Command exited with code (-?\d{1,9})\s*\Z")
_STOPPED = re.compile(r"(?:Command (timed out)|(?:Command|Operation|Request)(?: was)? aborted)[^\n]{0,80}\Z")
_ENVELOPE = ("type", "id", "parentId", "timestamp", "role")


def build(record: Rec, place: RecordPlace) -> Message | None:
    """The message of an entry; None when it is known to hold none."""
    kind = word(record.get("type"))
    if kind in SILENT:
        return None
    if kind == "message":
        return _ROLES.get(word(mapping(record.get("message")).get("role")), unknown)(record, place)
    return _ENTRIES.get(kind, unknown)(record, place)


def view(raw: bytes) -> Message | None:
    """The message of an entry's bytes, judged by itself."""
    record = single_record(raw)
    return build(record, RecordPlace(0, len(raw))) if record is not None else None


def entry_kind(record: Rec) -> tuple[str, bool]:
    """The type of an entry, with its role where it has one, and whether this version knows it."""
    kind, role = word(record.get("type")), word(mapping(record.get("message")).get("role"))
    if kind == "message":
        return f"{kind}/{role}", role in _ROLES
    return kind, kind in SILENT or kind in _ENTRIES


def unknown(record: Rec, place: RecordPlace) -> Message:
    """A message of a kind this version does not know: its words are kept, shown and indexed."""
    text = "\n".join(strings(record, *_ENVELOPE))
    return _message(record, place, "system", "system", _text(text, "meta", "unknown"), "unknown")


# messages -----------------------------------------------------------------------------------------------------------
def _user(record: Rec, place: RecordPlace) -> Message:
    blocks = _blocks(mapping(record.get("message")).get("content"), "prompt")
    return replace(_message(record, place, "user", "human", blocks), starts_turn=True)


def _assistant(record: Rec, place: RecordPlace) -> Message:
    said = mapping(record.get("message"))
    blocks = _blocks(said.get("content"), "answer")
    failure, stopped = word(said.get("errorMessage")), said.get("stopReason")
    if stopped in ("error", "aborted") and not blocks:
        kind = "interrupt" if stopped == "aborted" else "notice"
        message = _message(record, place, "assistant", "system", _text(failure, "meta"), kind)
    else:
        message = _message(record, place, "assistant", "model", blocks + _text(failure, "meta"))
    name = word(said.get("responseId")) or word(record.get("id")) or f"@{place.start}"
    return replace(message, provider_id=name, model=word(said.get("model")), usage=_usage(said.get("usage")))


def _usage(tokens: Any) -> TokenUsage | None:
    found = mapping(tokens)
    counted = [count(found.get(key)) or 0 for key in ("input", "output", "cacheRead", "cacheWrite")]
    return TokenUsage(*counted) if any(counted) else None


def _result(record: Rec, place: RecordPlace) -> Message:
    said = mapping(record.get("message"))
    text = "\n".join(block.text or f"[{block.kind}]" for block in _blocks(said.get("content"), "tool_output"))
    failed, exited, stopped = said.get("isError") is True, _EXITED.search(text), _STOPPED.search(text)
    status = int(exited[1]) if exited else None
    if failed and stopped:
        why = "timeout" if stopped[1] else "interrupted"
    else:
        why = "exit_status" if status else blocks.error_class(text) if failed else ""
    end = CallEnd(word(said.get("toolCallId")), failed, why if failed else "", status)
    block = Block("result", text, "tool_output", result=end, data=said)
    return _message(record, place, "tool", "tool", (block,), "result")


def _shell(record: Rec, place: RecordPlace) -> Message:
    """What the human ran with `!`, and what it printed."""
    said = mapping(record.get("message"))
    blocks = _text(word(said.get("command")), "prompt") + _text(word(said.get("output")), "tool_output")
    return replace(_message(record, place, "user", "human", blocks, "shell"), starts_turn=True)


def _injected_message(record: Rec, place: RecordPlace) -> Message:
    content = mapping(record.get("message")).get("content", record.get("content"))
    return _message(record, place, "user", "injected", _blocks(content, "meta"), "context")


def _summary(record: Rec, place: RecordPlace) -> Message:
    text = word(record.get("summary")) or word(mapping(record.get("message")).get("summary"))
    return _message(record, place, "system", "injected", _text(text, "summary"), "summary")


def _compaction(record: Rec, place: RecordPlace) -> Message:
    blocks = _text(word(record.get("summary")), "summary")
    return _message(record, place, "system", "system", blocks, "compaction")


_Builder = Callable[[Rec, RecordPlace], Message]
_ROLES: dict[str, _Builder] = {
    "user": _user,
    "assistant": _assistant,
    "toolResult": _result,
    "bashExecution": _shell,
    "custom": _injected_message,
    "hookMessage": _injected_message,
    "branchSummary": _summary,
    "compactionSummary": _summary,
}
_ENTRIES: dict[str, _Builder] = {
    "custom_message": _injected_message,
    "branch_summary": _summary,
    "compaction": _compaction,
}


# blocks -------------------------------------------------------------------------------------------------------------
def _blocks(content: Any, field: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return _text(content, field)
    return tuple(_block(part, field) for part in listing(content))


def _block(part: Any, field: str) -> Block:
    found = mapping(part)
    kind = found.get("type")
    if kind == "text":
        return Block("text", word(found.get("text")), field)
    if kind == "thinking":
        return Block("thinking", word(found.get("thinking")), "thinking", data=part)
    if kind == "toolCall":
        start = blocks.call_start(word(found.get("id")), word(found.get("name")), found.get("arguments"))
        return Block("call", blocks.call_text(start), "tool_input", call=start, data=part)
    if kind == "image":
        return Block("image", data=part)
    return Block("unknown", "\n".join(strings(part, "type")), "meta", data=part)


def _text(text: str, field: str, kind: str = "text") -> tuple[Block, ...]:
    return (Block(kind, text, field),) if text else ()


def _message(
    record: Rec, place: RecordPlace, role: str, origin: str, blocks: tuple[Block, ...], kind: str = "text"
) -> Message:
    at, precision = milliseconds(record.get("timestamp"))
    name, when = word(record.get("id")), word(record.get("timestamp"))
    if not name and when:  # the first version had no ids
        mark = digest(role, *(block.text for block in blocks))
    else:
        mark = name
    return Message(
        role,
        origin,
        kind,
        at,
        precision,
        name,
        blocks=blocks,
        start=place.start,
        size=place.size,
        fingerprint=fingerprint(mark, when) if mark else None,
    )


NAME = "pi"
HEAD = 64 << 10

_SESSIONS = "sessions"
_NAMED = re.compile(
    r".*[_-]([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl", re.IGNORECASE | re.DOTALL
)
_DEEPEST = 8


def roots(places: SearchPlaces) -> list[Path]:
    """Existing folders: named by the user, by the environment, and the usual one; each once, whatever leads to it."""
    wanted = [*places.extra.get(NAME, ())]
    named = places.env.get("PI_CODING_AGENT_DIR", "").strip()
    if named:
        wanted.append(places.home / named[2:] if named.startswith(("~/", "~\\")) else Path(named))
    return existing_folders([*wanted, places.home / ".pi" / "agent"])


def find(root: Path) -> Iterator[SourceCandidate]:
    """All sessions below a root: the client's folder, its `sessions`, or any folder with sessions."""
    sessions = root / _SESSIONS
    failures: list[OSError] = []
    yield from _walk(str(sessions if sessions.is_dir() else root), failures, 0, sure=sessions.is_dir())
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    header = _header(head)
    if header is None:
        return None
    named = _NAMED.fullmatch(path.name)
    return SourceCandidate(path, "main", header.get("id") or (named[1].lower() if named else path.stem))


def workspace(head: bytes) -> str:
    """The working folder that a file names; "" when its beginning names none."""
    return (_header(head) or {}).get("cwd", "")


def session_in(path: str) -> str:
    """The id of the session in a file, as far as the file's name tells."""
    named = _NAMED.fullmatch(path)
    return named[1].lower() if named else ""


def resume_command(native_id: str) -> list[str]:
    """The command that goes on with a session."""
    return ["pi", "--session", native_id]


def _header(head: bytes) -> dict[str, str] | None:
    """What the first line says; None when it is not the first line of a session."""
    if head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")[:1] != b"{":
        return None
    from everturn.sources.toolkit.line_reader import records
    from everturn.sources.toolkit.values import word

    found = records(head[: head.find(b"\n") + 1] or head) or records(head)
    first = found[0] if found else {}
    is_header = first.get("type") == "session" and all(word(first.get(key)) for key in ("id", "timestamp", "cwd"))
    return {key: word(first[key]) for key in ("id", "cwd")} if is_header else None


def _walk(folder: str, failures: list[OSError], depth: int, sure: bool) -> Iterator[SourceCandidate]:
    folders = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.endswith(".jsonl") and (found := _file(entry, sure)) is not None:
                    yield found
    except OSError as failure:
        failures.append(failure)
    if depth < _DEEPEST:
        for path in folders:
            yield from _walk(path, failures, depth + 1, sure)


def _file(entry: os.DirEntry[str], sure: bool) -> SourceCandidate | None:
    if entry.is_symlink() and not entry.is_file():
        return None
    name = session_in(entry.name) if sure else ""
    return (
        SourceCandidate(Path(entry.path), "main", name) if name else sniff(Path(entry.path), read_beginning(entry.path))
    )


_HUMAN_TITLE = 3


class PiReaderState(Struct, array_like=True):
    """Everything a later reader needs."""

    open_line: bool = False
    version: str = ""  # of the format: the client does not say its own


class PiReader(LineReader[PiReaderState]):
    """One session."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        super().__init__(state_of(state, PiReaderState))
        self._name = found.native_id or found.path.stem

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        kind = record.get("type")
        talk = self._gathering.session(self._name)
        if kind == "session":
            self._state.version = f"v{count(record.get('version')) or 1}"
            talk.learn(workspace=word(record.get("cwd")))
            origin = session_in(word(record.get("parentSession")) or word(record.get("branchedFrom")))
            if origin:
                talk.links.append(Link("forked_from", origin))
        elif kind == "session_info" and word(record.get("name")):
            talk.learn(title=word(record.get("name")), title_rank=_HUMAN_TITLE)
        message = build(record, place)
        if message is not None:
            add(self._gathering, talk, message)
        name, known = entry_kind(record)
        return plain(name), ("message" if message is not None else "known") if known else "unknown", self._state.version
