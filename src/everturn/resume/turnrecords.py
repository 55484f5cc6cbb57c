"""A row of a turn log and the record it becomes in the journal, there and back, verbatim.

A result whose call was never seen, or has its result already, is written as a note: a journal is resumed by its records,
and such a result belongs to no call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from everturn.errors import UsageError
from everturn.llm import ChatMessage, ChatPart, Reply
from everturn.llm import ReplyTokens as Tokens
from everturn.llm.wire import arguments
from everturn.model.archive import Session
from everturn.recall.reading import Records
from everturn.resume import records
from everturn.resume.conversation import arguments_of
from everturn.resume.records import Record
from everturn.sources import all_sources
from everturn.store import Store

ROLES = ("user", "assistant", "tool", "system")
_NOTE = "turn"


@dataclass(frozen=True)
class LoggedTurn:
    """What is appended."""

    role: str
    content: str | None = None
    tool_calls: Sequence[Mapping[str, Any]] | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    token_count: int = 0


class _User(records.UserRecord, tag_field="type", tag="user", kw_only=True, omit_defaults=True):
    tokens: int = 0


class _Response(records.ResponseRecord, tag_field="type", tag="response", kw_only=True, omit_defaults=True):
    tokens: int = 0


class _Result(records.ResultRecord, tag_field="type", tag="result", kw_only=True, omit_defaults=True):
    tokens: int = 0


class _Note(records.NoteRecord, tag_field="type", tag="note", kw_only=True, omit_defaults=True):
    tokens: int = 0


class _TokenCount(Struct):
    """What a record holds beside what a journal needs."""

    tokens: int = 0


def record_of(turn: LoggedTurn) -> Record:
    """The record of a message, unless it is the result of an open call."""
    if turn.role not in ROLES:
        raise UsageError(f"there is no role {turn.role!r}; say {', '.join(ROLES)}")
    if turn.role == "user":
        return _User(parts=(ChatPart("text", turn.content or ""),), tokens=turn.token_count)
    if turn.role == "assistant":
        return _response(turn)
    data = {"role": turn.role, "tool_call_id": turn.tool_call_id, "tool_name": turn.tool_name}
    return _Note(kind=_NOTE, text=turn.content or "", data=data, tokens=turn.token_count)


def result_of(turn: LoggedTurn, response: int, called: str) -> Record:
    """The record of the result of a call that a certain response made."""
    name = turn.tool_name or called
    return _Result(
        of=response, call_id=turn.tool_call_id or "", name=name, text=turn.content or "", tokens=turn.token_count
    )


def rows_of(store: Store, session: Session, first: int, last: int) -> Iterator[dict[str, Any]]:
    """The messages of a session as rows, both ends included, counted from 0."""
    read = Records(store, all_sources(), session, until=None if last > first else 0)
    for row in store.messages(session.id, first, last):
        shown = {
            "id": session.id << 24 | row.seq,
            "session_id": session.native_id,
            "turn_number": row.seq + 1,
            "role": row.role,
            "content": "",
            "tool_calls": None,
            "tool_call_id": None,
            "tool_name": None,
            "token_count": 0,
            "created_at": iso(row.at) if row.at is not None else None,
        }
        raw = read.record(row)
        yield {**shown, **(_record_row(raw, session.native_id) if raw.strip() else {})}  # blank where it was forgotten


def iso(ms: int) -> str:
    """A time of ours as text, with its zone."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _response(turn: LoggedTurn) -> Record:
    calls = tuple(_read_call(one) for one in turn.tool_calls or ())
    words = (ChatPart("text", turn.content or ""),) if turn.content or not calls else ()
    usage = Tokens(output=turn.token_count, source="estimate")
    reply = Reply(ChatMessage("assistant", words + calls), "calls" if calls else "end", usage)
    return _Response(reply=reply, tokens=turn.token_count, foreign=True)


def _read_call(given: Mapping[str, Any]) -> ChatPart:
    """A call in any of the usual forms; what was given is kept as it is."""
    function = given.get("function")
    inner = function if isinstance(function, Mapping) else given
    held = inner.get("arguments", inner.get("input", {}))
    call_id, name = given.get("id") or given.get("call_id"), inner.get("name")
    return ChatPart(
        "call", "", str(call_id or ""), str(name or ""), arguments(held) if isinstance(held, str) else held,
        raw=dict(given),
    )  # fmt: skip


def _record_row(raw: bytes, session: str) -> dict[str, Any]:
    """What a record says, and how many tokens that is."""
    record = records.parse_record(raw, session)
    tokens = _tokens(raw)
    if isinstance(record, records.ResponseRecord):
        parts = record.reply.message.parts
        texts, calls = (
            [one.text for one in parts if one.kind == "text"],
            [_call_json(one) for one in record.reply.calls],
        )
        words = "".join(texts) if texts else None if calls else ""
        return {"content": words, "tool_calls": calls or None, "token_count": tokens or record.reply.usage.output}
    if isinstance(record, records.UserRecord):
        return {"content": "\n".join(one.text for one in record.parts if one.kind == "text"), "token_count": tokens}
    if isinstance(record, records.ResultRecord):
        named = {"tool_call_id": record.call_id, "tool_name": record.name or None}
        return {"content": record.text, **named, "token_count": tokens}
    if isinstance(record, records.SetupRecord):
        return {"content": record.system}
    if isinstance(record, records.StateRecord):
        return {"content": json.dumps(record.data, ensure_ascii=False)}
    if isinstance(record, records.NoteRecord) and record.kind == _NOTE and isinstance(record.data, dict):
        return {"content": record.text, **record.data, "token_count": tokens}
    return {"content": getattr(record, "text", "")}


def _tokens(raw: bytes) -> int:
    try:
        return msgspec.json.decode(raw, type=_TokenCount).tokens
    except (msgspec.DecodeError, UnicodeError):  # not quite Unicode, as `records.parse` knows
        return msgspec.convert(json.loads(raw), _TokenCount).tokens


def _call_json(part: ChatPart) -> dict[str, Any]:
    """A call as it was given, or in the usual form."""
    if isinstance(part.raw, dict):
        return part.raw
    function = {"name": part.name, "arguments": arguments_of(part)}
    return {"id": part.call_id, "type": "function", "function": function}
