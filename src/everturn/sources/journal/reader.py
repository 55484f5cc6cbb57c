"""Recognise and read journals; `view` converts one record, independently of the others.

session setup                 the beginning: client, folder, system prompt and tools
user response result          the messages, verbatim; one result for each call
intent lease pause decision   actions of the program: archived and counted, but no messages (a decision is one)
interrupt partial note state  other events

The first line of an exported journal declares it as one. The reader state is a few bytes, however long the journal is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, Link, Message, fingerprint
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.file_search import sniff_files
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    Rec,
    RecordPlace,
    SessionTally,
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
    error_class,
    exit_status,
    milliseconds,
    plain,
    strings,
    text_blocks,
    word,
)

#: Records that hold no messages.
SILENT = frozenset(("session", "intent", "lease", "pause"))
_ENVELOPE = ("type", "n", "at", "of")
#: Members of a provider's block that are no text, or that only the provider can read.
_SEALED = ("type", "id", "data", "signature", "encrypted_content")
_OUTCOMES = {
    "denied": "rejected", "interrupted": "interrupted", "in_doubt": "interrupted", "not_started": "cancelled",
    "timeout": "timeout", "unknown_tool": "unknown_tool", "invalid": "invalid_input",
}  # fmt: skip


def is_known(kind: str) -> bool:
    return kind in SILENT or kind in _RECORDS


def _build(record: Rec, place: RecordPlace) -> Message | None:
    kind = word(record.get("type"))
    return None if kind in SILENT else _RECORDS.get(kind, _unknown)(record, place)


view = partial(view_placed, _build)


def _unknown(record: Rec, place: RecordPlace) -> Message:
    blocks = text_blocks("\n".join(strings(record, *_ENVELOPE)), "meta", "unknown")
    return _message(record, place, "system", "system", blocks, "unknown")


def _setup(record: Rec, place: RecordPlace) -> Message:
    return _message(record, place, "system", "system", text_blocks(word(record.get("system")), "meta"), "context")


def _user(record: Rec, place: RecordPlace) -> Message:
    blocks = tuple(_block(part, "prompt") for part in listing(record.get("parts")))
    return replace(_message(record, place, "user", "human", blocks), starts_turn=True)


def _words_only(text: str, record: Rec) -> tuple[Block, ...]:
    """Return the text of a note as a block that keeps its record."""
    return tuple(replace(block, data=record) for block in text_blocks(text, "meta"))


def _response(record: Rec, place: RecordPlace) -> Message:
    reply = mapping(record.get("reply"))
    answer = mapping(reply.get("message"))
    kinds = mapping(record.get("kinds"))
    blocks = tuple(_block(part, "answer", kinds) for part in listing(answer.get("parts")))
    message = _message(record, place, "assistant", "model", blocks)
    name = word(answer.get("id")) or f"@{count(record.get('n')) or 0}"
    usage = counted_usage(reply.get("usage"), "input", "output", "cache_read", "cache_write")
    speaker = word(reply.get("agent"))
    return replace(message, provider_id=name, model=word(reply.get("model")), usage=usage, speaker=speaker)


def _partial(record: Rec, place: RecordPlace) -> Message:
    """Return the beginning of a response that broke off: shown, but no part of the history."""
    blocks = text_blocks(word(record.get("text")), "answer")
    return _message(record, place, "assistant", "system", blocks, "notice")


def _result(record: Rec, place: RecordPlace) -> Message:
    text, failed, outcome = word(record.get("text")), record.get("is_error") is True, word(record.get("outcome"))
    reason = (_OUTCOMES.get(outcome) or error_class(text)) if failed else ""
    status = exit_status(text) if failed else None
    end = CallEnd(word(record.get("call_id")), failed, reason, status, count(record.get("ms")))
    block = Block("result", text, "tool_output", result=end, data=record)
    return _message(record, place, "tool", "tool", (block,), "result")


def _decision(record: Rec, place: RecordPlace) -> Message:
    text = " ".join(filter(None, (word(record.get(key)) for key in ("verdict", "call_id", "text"))))
    return _message(record, place, "system", "system", text_blocks(text, "meta"), "notice")


def _interrupt(record: Rec, place: RecordPlace) -> Message:
    return _message(record, place, "user", "human", text_blocks(word(record.get("text")), "meta"), "interrupt")


def _note(record: Rec, place: RecordPlace) -> Message:
    blocks = _words_only("\n".join(strings(record, *_ENVELOPE, "kind")), record)
    return _message(record, place, "system", "system", blocks, "notice")


def _state(record: Rec, place: RecordPlace) -> Message:
    blocks = text_blocks("\n".join(strings(record.get("data"))), "meta")
    return _message(record, place, "system", "injected", blocks, "context")


_RECORDS: dict[str, Callable[[Rec, RecordPlace], Message]] = {
    "setup": _setup, "user": _user, "response": _response, "partial": _partial, "result": _result,
    "decision": _decision, "interrupt": _interrupt, "note": _note, "state": _state,
}  # fmt: skip


def _block(part: Any, field: str, kinds: Rec | None = None) -> Block:
    value = mapping(part)
    kind, text, raw = value.get("kind"), word(value.get("text")), value.get("raw")
    if kind == "text":
        return Block("text", text, field, data=raw)
    if kind == "thinking":
        return Block("thinking", text, "thinking", data=raw)
    if kind == "call":
        name = word(value.get("name"))
        return call_block(word(value.get("call_id")), name, value.get("arguments"), raw, word((kinds or {}).get(name)))
    if kind == "image":
        return Block("image", text, field if text else "", data=raw)
    return Block("unknown", text or "\n".join(strings(raw, *_SEALED)), "meta", data=part)


def _message(
    record: Rec, place: RecordPlace, role: str, origin: str, blocks: tuple[Block, ...], kind: str = "text"
) -> Message:
    at, precision = milliseconds(record.get("at"))
    name = word(record.get("id"))  # a copied record keeps the id of its original
    return Message(
        role, origin, kind, at, precision, name, blocks=blocks, start=place.start, size=place.size,
        tokens=count(record.get("tokens")) or 0,
    )  # fmt: skip


# --- the reader ---
_HUMAN_TITLE = 3
_RELATIONS = ("forked_from", "subagent_of")


class JournalReaderState(Struct, array_like=True):
    open_line: bool = False
    client: str = ""


class JournalReader(LineReader[JournalReaderState]):
    kind = JournalReaderState

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        kind = word(record.get("type"))
        session = self._gathering.session(self._name)
        if kind == "session":
            self._begin_session(session, record)
        elif kind == "note" and word(record.get("kind")) == "title":
            session.learn(title=word(record.get("text")), title_rank=_HUMAN_TITLE)
        if (message := _build(record, place)) is not None:
            add(self._gathering, session, self._name_message(message, record))
        disposition = "unknown" if not is_known(kind) else "known" if message is None else "message"
        return plain(kind), disposition, self._state.client

    def _name_message(self, message: Message, record: Rec) -> Message:
        """Name a message after its record's number; one copied from another session keeps its original name."""
        number = count(record.get("n"))
        name = message.native_id or (f"{self._name}/{number}" if number is not None else "")
        return replace(message, fingerprint=fingerprint(name, str(message.at)), native_id=name) if name else message

    def _begin_session(self, session: SessionTally, record: Rec) -> None:
        client, workspace = word(record.get("client")), word(record.get("workspace"))
        self._state.client = plain(client) if client else ""
        session.learn(workspace=workspace, client=self._state.client, title=word(record.get("title")))
        parent, relation = word(record.get("parent")), word(record.get("relation"))
        if parent:
            session.links.append(Link(relation if relation in _RELATIONS else "continues", parent))
        session.links += [Link("continues", name) for one in listing(record.get("also")) if (name := word(one))]


# --- files ---
_MARK = b'"journal":'


def find(root: Path) -> Iterator[SourceCandidate]:
    failures: list[OSError] = []
    yield from sniff_files(root, sniff, ".jsonl", onerror=failures.append)
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    header = _parse_header(head)
    return SourceCandidate(path, "main", header["id"], header["parent"]) if header is not None else None


def workspace(head: bytes) -> str:
    return (_parse_header(head) or {}).get("workspace", "")


def _parse_header(head: bytes) -> dict[str, str] | None:
    line = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0]
    if _MARK not in line or not line.startswith(b"{"):
        return None
    first = next(iter(records(line)), {})
    if first.get("type") != "session" or not isinstance(first.get("journal"), int) or not word(first.get("id")):
        return None
    return {key: word(first.get(key)) for key in ("id", "parent", "workspace")}
