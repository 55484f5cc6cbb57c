"""Reads a journal piece by piece. What a later reader needs is a handful of bytes, however long the journal is.

One record → one message, without knowing the records around it: used by the reader and by `view` alike.

session setup                 how it began: who, where, with which system prompt and tools
user response result          what was said, verbatim; one result for each call
intent lease pause decision   what the program did: kept, counted, no part of the conversation (a decision's words are)
interrupt partial note state  what happened beside it

How an exported journal is known: by its first line, which says that it is one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, Link, Message, TokenUsage, fingerprint
from everturn.sources.contract import SourceCandidate, read_beginning
from everturn.sources.toolkit import blocks
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    Rec,
    RecordPlace,
    SessionTally,
    add,
    listing,
    mapping,
    single_record,
)
from everturn.sources.toolkit.values import count, milliseconds, plain, state_of, strings, word

#: Records about the session, not of it.
SILENT = frozenset(("session", "intent", "lease", "pause"))
_ENVELOPE = ("type", "n", "at", "of")
#: Members of a provider's block that are no words: what only the provider itself can read.
_SEALED = ("type", "id", "data", "signature", "encrypted_content")
_OUTCOMES = {
    "denied": "rejected",
    "interrupted": "interrupted",
    "in_doubt": "interrupted",
    "not_started": "cancelled",
    "timeout": "timeout",
    "unknown_tool": "unknown_tool",
    "invalid": "invalid_input",
}


def build(record: Rec, place: RecordPlace) -> Message | None:
    """The message of a record; None when it is known to hold none."""
    kind = word(record.get("type"))
    return None if kind in SILENT else _RECORDS.get(kind, unknown)(record, place)


def view(raw: bytes) -> Message | None:
    """The message of a record's bytes, judged by itself."""
    record = single_record(raw)
    return build(record, RecordPlace(0, len(raw))) if record is not None else None


def is_known(kind: str) -> bool:
    """Whether this version knows the type."""
    return kind in SILENT or kind in _RECORDS


def unknown(record: Rec, place: RecordPlace) -> Message:
    """A message of a kind this version does not know: its words are kept, shown and indexed."""
    blocks = _text("\n".join(strings(record, *_ENVELOPE)), "meta", "unknown")
    return _message(record, place, "system", "system", blocks, "unknown")


def _setup(record: Rec, place: RecordPlace) -> Message:
    return _message(record, place, "system", "system", _text(word(record.get("system")), "meta"), "context")


def _user(record: Rec, place: RecordPlace) -> Message:
    blocks = tuple(_block(part, "prompt") for part in listing(record.get("parts")))
    return replace(_message(record, place, "user", "human", blocks), starts_turn=True)


def _response(record: Rec, place: RecordPlace) -> Message:
    reply = mapping(record.get("reply"))
    said = mapping(reply.get("message"))
    blocks = tuple(_block(part, "answer") for part in listing(said.get("parts")))
    message = _message(record, place, "assistant", "model", blocks)
    name = word(said.get("id")) or f"@{count(record.get('n')) or 0}"
    return replace(message, provider_id=name, model=word(reply.get("model")), usage=_usage(reply.get("usage")))


def _partial(record: Rec, place: RecordPlace) -> Message:
    """The beginning of a response that broke off: shown, but no part of the history."""
    blocks = _text(word(record.get("text")), "answer")
    return _message(record, place, "assistant", "system", blocks, "notice")


def _result(record: Rec, place: RecordPlace) -> Message:
    text, failed, outcome = word(record.get("text")), record.get("is_error") is True, word(record.get("outcome"))
    why = (_OUTCOMES.get(outcome) or blocks.error_class(text)) if failed else ""
    status = blocks.exit_status(text) if failed else None
    end = CallEnd(word(record.get("call_id")), failed, why, status, count(record.get("ms")))
    block = Block("result", text, "tool_output", result=end, data=record)
    return _message(record, place, "tool", "tool", (block,), "result")


def _decision(record: Rec, place: RecordPlace) -> Message:
    words = " ".join(filter(None, (word(record.get("verdict")), word(record.get("call_id")), word(record.get("text")))))
    return _message(record, place, "system", "system", _text(words, "meta"), "notice")


def _interrupt(record: Rec, place: RecordPlace) -> Message:
    return _message(record, place, "user", "human", _text(word(record.get("text")), "meta"), "interrupt")


def _note(record: Rec, place: RecordPlace) -> Message:
    blocks = _text("\n".join(strings(record, *_ENVELOPE, "kind")), "meta")
    return _message(record, place, "system", "system", blocks, "notice")


def _state(record: Rec, place: RecordPlace) -> Message:
    blocks = _text("\n".join(strings(record.get("data"))), "meta")
    return _message(record, place, "system", "injected", blocks, "context")


_RECORDS: dict[str, Callable[[Rec, RecordPlace], Message]] = {
    "setup": _setup,
    "user": _user,
    "response": _response,
    "partial": _partial,
    "result": _result,
    "decision": _decision,
    "interrupt": _interrupt,
    "note": _note,
    "state": _state,
}


def _block(part: Any, field: str) -> Block:
    found = mapping(part)
    kind, text = found.get("kind"), word(found.get("text"))
    if kind == "text":
        return Block("text", text, field, data=found.get("raw"))
    if kind == "thinking":
        return Block("thinking", text, "thinking", data=found.get("raw"))
    if kind == "call":
        start = blocks.call_start(word(found.get("call_id")), word(found.get("name")), found.get("arguments"))
        return Block("call", blocks.call_text(start), "tool_input", call=start, data=found.get("raw"))
    if kind == "image":
        return Block("image", text, field if text else "", data=found.get("raw"))
    return Block("unknown", text or "\n".join(strings(found.get("raw"), *_SEALED)), "meta", data=part)


def _usage(tokens: Any) -> TokenUsage | None:
    found = mapping(tokens)
    counted = [count(found.get(key)) or 0 for key in ("input", "output", "cache_read", "cache_write")]
    return TokenUsage(*counted) if any(counted) else None


def _text(text: str, field: str, kind: str = "text") -> tuple[Block, ...]:
    return (Block(kind, text, field),) if text else ()


def _message(
    record: Rec, place: RecordPlace, role: str, origin: str, blocks: tuple[Block, ...], kind: str = "text"
) -> Message:
    at, precision = milliseconds(record.get("at"))
    name = word(record.get("id"))  # of a copy: where it was first written
    return Message(role, origin, kind, at, precision, name, blocks=blocks, start=place.start, size=place.size)


_HUMAN_TITLE = 3


class JournalReaderState(Struct, array_like=True):
    """Everything a later reader needs."""

    open_line: bool = False
    client: str = ""


class JournalReader(LineReader[JournalReaderState]):
    """One session."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        super().__init__(state_of(state, JournalReaderState))
        self._name = found.native_id or found.path.stem

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        kind = word(record.get("type"))
        talk = self._gathering.session(self._name)
        if kind == "session":
            self._begin(talk, record)
        elif kind == "note" and word(record.get("kind")) == "title":
            talk.learn(title=word(record.get("text")), title_rank=_HUMAN_TITLE)
        message = build(record, place)
        if message is not None:
            add(self._gathering, talk, self._name_message(message, record))
        known = is_known(kind)
        disposition = ("message" if message is not None else "known") if known else "unknown"
        return plain(kind), disposition, self._state.client

    def _name_message(self, message: Message, record: Rec) -> Message:
        """A record is known by its number; one that was copied from another session says which it was there."""
        number = count(record.get("n"))
        name = message.native_id or (f"{self._name}/{number}" if number is not None else "")
        return replace(message, fingerprint=fingerprint(name, str(message.at)), native_id=name) if name else message

    def _begin(self, talk: SessionTally, record: Rec) -> None:
        client = word(record.get("client"))
        self._state.client = plain(client) if client else ""
        talk.learn(workspace=word(record.get("workspace")), client=self._state.client, title=word(record.get("title")))
        parent, relation = word(record.get("parent")), word(record.get("relation"))
        if parent:
            talk.links.append(Link("forked_from" if relation == "forked_from" else "continues", parent))
        talk.links += [Link("continues", name) for one in listing(record.get("also")) if (name := word(one))]


NAME = "journal"
_MARK = b'"journal":'


def find(root: Path) -> Iterator[SourceCandidate]:
    """Exported journals in a folder and its folders."""
    failures: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=failures.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(".jsonl") and (found := sniff(path, read_beginning(path))) is not None:
                yield found
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    header = _header(head)
    return SourceCandidate(path, "main", header["id"], header["parent"]) if header is not None else None


def workspace(head: bytes) -> str:
    """The working folder that the first line names."""
    return (_header(head) or {}).get("workspace", "")


def _header(head: bytes) -> dict[str, str] | None:
    line = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0]
    if _MARK not in line or not line.startswith(b"{"):
        return None
    from everturn.sources.toolkit.line_reader import records
    from everturn.sources.toolkit.values import word

    found: list[dict[str, Any]] = records(line)
    first = found[0] if found else {}
    if first.get("type") != "session" or not isinstance(first.get("journal"), int) or not word(first.get("id")):
        return None
    return {key: word(first.get(key)) for key in ("id", "parent", "workspace")}
