"""Conversations of a program that has its own loop: every message is appended to the archive at once.

An appended message is durable when the call returns, and can be searched, shown, exported and resumed like any session. The
log takes messages in any order, from any number of processes; it does not enforce the rules of providers. `turn_number` is
the number of the message in its session: unique, without gaps, from 1.

Rows are dicts with the columns of the SQL views `conversation_turns` and `cowork_sessions`. The system prompt, the model and
the session's own state are kept beside the conversation (`kept`). A result whose call is unknown, or already has a result,
is written as a note: a journal is resumed by its records, and such a result belongs to no call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from everturn.capture import policy as user_rules
from everturn.capture.policy import Policy
from everturn.clock import Clock, new_id, now
from everturn.errors import Busy, Conflict, SessionNotFound, UsageError
from everturn.llm.protocol import ChatMessage, ChatPart, Reply, ReplyTokens, decode_arguments
from everturn.loop import leases, records
from everturn.loop.conversation import call_arguments_json
from everturn.loop.journal_state import AGENT, JournalEnd, Mask, find_journal
from everturn.loop.records import Record
from everturn.model.archive import KeptRow, Session, SessionText
from everturn.model.conversation import prepared
from everturn.model.vocabulary import CALL_KINDS
from everturn.retrieval.query import parse_query
from everturn.retrieval.scope import SearchFilters
from everturn.retrieval.search import search
from everturn.sessions.lookup import best_match
from everturn.sessions.messages import Records
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store

ROLES = ("user", "assistant", "tool", "system")
_STATED = re.compile(
    r"(?im)^\W{0,3}(?:(?:process|command) )?(?:exit(?:ed)?(?: with)?(?: code| status)?|exit_code|returncode)[:=]? ?(-?\d{1,9})\b"
)
_NOTE = "turn"


@dataclass(frozen=True)
class LoggedTurn:
    """A message to append."""

    role: str
    content: str | None = None
    tool_calls: Sequence[Mapping[str, Any]] | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    token_count: int = 0
    is_error: bool | None = None  # of a result; None: a shell that says it ended with another status than 0 has failed


class _User(records.UserRecord, tag_field="type", tag="user", kw_only=True, omit_defaults=True):
    tokens: int = 0


class _Response(records.ResponseRecord, tag_field="type", tag="response", kw_only=True, omit_defaults=True):
    tokens: int = 0
    kinds: dict[str, str] = {}  # kinds of the tools that its program registered, by name


class _Result(records.ResultRecord, tag_field="type", tag="result", kw_only=True, omit_defaults=True):
    tokens: int = 0


class _Note(records.NoteRecord, tag_field="type", tag="note", kw_only=True, omit_defaults=True):
    tokens: int = 0


class _TokenCount(Struct):
    """The token count that a record of the log adds."""

    tokens: int = 0


def turn_record(turn: LoggedTurn, kinds: Mapping[str, str] = {}) -> Record:
    """Return the record of a message, unless it is the result of an open call. `kinds` are registered kinds of tools."""
    if turn.role not in ROLES:
        raise UsageError(f"unknown role {turn.role!r}; use one of {', '.join(ROLES)}")
    if turn.role == "user":
        return _User(parts=(ChatPart("text", turn.content or ""),), tokens=turn.token_count)
    if turn.role == "assistant":
        return _response(turn, kinds)
    data = {"role": turn.role, "tool_call_id": turn.tool_call_id, "tool_name": turn.tool_name}
    return _Note(kind=_NOTE, text=turn.content or "", data=data, tokens=turn.token_count)


def result_record(turn: LoggedTurn, response: int, called: str, kind: str = "") -> Record:
    """Return the record of the result of a call that a certain response made."""
    name, text = turn.tool_name or called, turn.content or ""
    return _Result(
        of=response, call_id=turn.tool_call_id or "", name=name, text=text, tokens=turn.token_count,
        is_error=turn.is_error if turn.is_error is not None else kind == "shell" and states_failure(text),
    )  # fmt: skip


def states_failure(text: str) -> bool:
    """Whether the output of a command says that it ended with another status than 0."""
    found = _STATED.search(text[:400]) or _STATED.search(text[-400:])
    return found is not None and int(found[1]) != 0


def read_rows(store: Store, session: Session, first: int, last: int) -> Iterator[dict[str, Any]]:
    """Yield the messages of a session as rows, both ends included, counted from 0."""
    read = Records(store, all_sources(), session, until=None if last > first else 0)
    for row in store.messages(session.id, first, last):
        shown = {
            "id": session.id << 24 | row.seq, "session_id": session.native_id, "turn_number": row.seq + 1,
            "role": row.role, "content": "", "tool_calls": None, "tool_call_id": None, "tool_name": None,
            "token_count": 0, "is_error": False, "created_at": iso(row.at) if row.at is not None else None,
        }  # fmt: skip
        raw = read.record(row)
        yield {**shown, **(_record_row(raw, session.native_id) if raw.strip() else {})}  # blank if forgotten


def iso(ms: int) -> str:
    """Return a time in ms UTC as text, with its zone."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _response(turn: LoggedTurn, kinds: Mapping[str, str]) -> Record:
    calls = tuple(_read_call(one) for one in turn.tool_calls or ())
    words = (ChatPart("text", turn.content or ""),) if turn.content or not calls else ()
    usage = ReplyTokens(output=turn.token_count, source="estimate")
    reply = Reply(ChatMessage("assistant", words + calls), "calls" if calls else "end", usage)
    known = {one.name: kinds[one.name] for one in calls if one.name in kinds}
    return _Response(reply=reply, tokens=turn.token_count, foreign=True, kinds=known)


def _read_call(given: Mapping[str, Any]) -> ChatPart:
    """Read a call in any common form; the original is kept."""
    function = given.get("function")
    inner = function if isinstance(function, Mapping) else given
    arguments = inner.get("arguments", inner.get("input", {}))
    call_id, name = given.get("id") or given.get("call_id"), inner.get("name")
    return ChatPart(
        "call", "", str(call_id or ""), str(name or ""), decode_arguments(arguments) if isinstance(arguments, str) else arguments,
        raw=dict(given),
    )  # fmt: skip


def _record_row(raw: bytes, session: str) -> dict[str, Any]:
    """Return the content and the tokens of a record."""
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
        return {"content": record.text, **named, "token_count": tokens, "is_error": record.is_error}
    if isinstance(record, records.SetupRecord):
        return {"content": record.system}
    if isinstance(record, records.StateRecord):
        return {"content": json.dumps(record.data, ensure_ascii=False)}
    if isinstance(record, records.NoteRecord) and record.kind == _NOTE and isinstance(record.data, dict):
        return {"content": record.text, **record.data, "token_count": tokens}
    return {"content": getattr(record, "text", "")}


def _tokens(raw: bytes) -> int:
    try:
        return msgspec.json.decode(raw, type=prepared(_TokenCount)).tokens
    except (msgspec.DecodeError, UnicodeError):  # not quite Unicode, see `records.parse_record`
        return msgspec.convert(json.loads(raw), prepared(_TokenCount)).tokens


def _call_json(part: ChatPart) -> dict[str, Any]:
    """Return a call as it was given, or in the common form."""
    if isinstance(part.raw, dict):
        return part.raw
    function = {"name": part.name, "arguments": call_arguments_json(part)}
    return {"id": part.call_id, "type": "function", "function": function}


# --- the log ---
KIND = "conversation"
MOST = 1000  # turns or sessions in one answer
MOST_FOUND = 200
RECENT = 50

_TRIES = 50


class TurnLog:
    """The conversations of one archive. Belongs to one thread, as its store does."""

    def __init__(
        self,
        store: Store,
        clock: Clock = now,
        machine: str = "",
        policy: Policy | None = None,
        kinds: dict[str, str] | None = None,
    ) -> None:
        self.store, self._clock = store, clock
        self._holder = leases.this_process(machine)
        self.kinds = kinds if kinds is not None else {}  # of tools that the program registered, by name
        self._policy = policy if policy is not None else user_rules.user_policy()
        self._masks: dict[str, Mask | None] = {}  # by session
        self._in_memory: TurnLog | None = None  # holds the sessions that the user's rules keep out of the archive

    @property
    def is_usable(self) -> bool:
        """Whether the connection can still be used: not after a write that could not be undone."""
        return not getattr(getattr(self.store, "driver", None), "unusable", "")

    def create_session(self, workspace: str, model: str, system_prompt: str = "") -> str:
        """Begin a conversation and return its id."""
        mode = user_rules.live_mode(self._policy, self.store.url, workspace)
        if mode == "off":
            self._in_memory = self._in_memory or TurnLog(
                user_rules.memory_store(), self._clock, self._holder.machine, Policy()
            )
            return self._in_memory.create_session(workspace, model, system_prompt)
        session = new_id()
        self._masks[session] = self._policy.redact if mode == "redacted" else None
        with self.store.write():
            first = records.SessionRecord(
                journal=records.FORMAT, id=session, workspace=workspace, model=model, client="everturn"
            )
            self._append(self._end(session), first, 0)
            self._keep_value(session, "model", model)
            self._keep_value(session, "system_prompt", system_prompt)
        return session

    def append_turn(self, session_id: str, turn: LoggedTurn) -> int:
        """Write one message and return its number.

        Raise SessionNotFound, Busy while a loop runs the session, and any error that prevents the write.
        """
        if (log := self._log_of(session_id)) is not self:
            return log.append_turn(session_id, turn)
        for _ in range(_TRIES):
            session, end = self._require_writable(session_id), self._end(session_id)
            try:
                with self.store.write():
                    record = self._make_record(session, turn)
                    self._append(end, record, self.store.version(session.version).lines)
                    self._add_tokens(session_id, turn.token_count)
                    return self.store.session(session.id)[0].n_messages
            except Conflict:  # another process was faster: retry
                continue
        raise Busy(f"session {session_id}")

    def register_tool(self, name: str, kind: str) -> None:
        """Say of which kind a tool is. It holds for calls that are appended from here on, and stays with them."""
        if kind not in CALL_KINDS:
            raise UsageError(f"unknown kind of tool {kind!r}; use one of {', '.join(CALL_KINDS)}")
        self.kinds[name] = kind

    def set_active(self, session_id: str, is_active: bool) -> None:
        """Say whether a conversation is still in use. Raise SessionNotFound."""
        if (log := self._log_of(session_id)) is not self:
            log.set_active(session_id, is_active)
            return
        if self._session(session_id) is None:
            raise SessionNotFound(session_id)
        with self.store.write():
            self._keep_value(session_id, "is_active", int(is_active))

    def update_session_state(self, session_id: str, state: Mapping[str, Any]) -> None:
        """Keep the program's own state of a conversation, and the turn it is valid through."""
        if (log := self._log_of(session_id)) is not self:
            log.update_session_state(session_id, state)
            return
        session = self._require_writable(session_id)
        with self.store.write():
            self._keep_value(session_id, "session_state", dict(state))
            self._keep_value(session_id, "session_state_through_turn", self.store.session(session.id)[0].n_messages)

    # --- reading ---
    def get_turns(self, session_id: str, offset: int = 0, limit: int = RECENT) -> list[dict[str, Any]]:
        """Return messages in order, from number `offset` + 1 on, at most 1,000."""
        if (log := self._log_of(session_id)) is not self:
            return log.get_turns(session_id, offset, limit)
        session = self._session(session_id)
        wanted = min(limit, MOST)
        if session is None or wanted <= 0:
            return []
        first = max(offset, 0)
        return list(read_rows(self.store, session, first, first + wanted - 1))

    def search_turns(self, session_id: str, query: str, limit: int = 20) -> list[dict[str, Any]]:
        """Return the messages that match a typed query, best first, at most 200."""
        if (log := self._log_of(session_id)) is not self:
            return log.search_turns(session_id, query, limit)
        if (session := self._session(session_id)) is None or not query.strip():
            return []
        limit, parsed = max(1, min(limit, MOST_FOUND)), parse_query(query)
        if not parsed.wanted_phrases and not parsed.regex:
            return self._scan_messages(session, query.strip(), limit)
        found = search(self.store, all_sources(), query, SearchFilters(session=session), limit, now=self._clock())
        seqs = [one.row.seq for one in found.items if one.row is not None]
        return [row for seq in seqs for row in read_rows(self.store, session, seq, seq)]

    def _scan_messages(self, session: Session, text: str, limit: int) -> list[dict[str, Any]]:
        """Return the newest messages that contain these characters: signs without a word are not in the index."""
        rows = list(read_rows(self.store, session, max(0, session.n_messages - MOST), session.n_messages - 1))
        return [row for row in reversed(rows) if text in (row["content"] or "")][:limit]

    def get_turn_count(self, session_id: str) -> int:
        session = self._log_of(session_id)._session(session_id)
        return session.n_messages if session is not None else 0

    def get_session(self, session_id: str) -> dict[str, Any] | None:
        """Return the facts about a conversation, or None."""
        if (log := self._log_of(session_id)) is not self:
            return log.get_session(session_id)
        session = self._session(session_id)
        return self._session_row(*self.store.session(session.id)) if session is not None else None

    def list_sessions(self, workspace: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """Return the conversations of a workspace, or all, newest first, at most 1,000."""
        found: list[dict[str, Any]] = self._in_memory.list_sessions(workspace, limit) if self._in_memory else []
        for session, text in self._iterate_sessions(workspace or ""):
            if len(found) >= min(limit, MOST):
                break
            if workspace is None or text.workspace == workspace:
                found.append(self._session_row(session, text))
        return found

    def resume_session(self, session_id: str, limit: int = RECENT) -> list[dict[str, Any]]:
        """Return the last messages, oldest first. They never begin with a result whose call is missing."""
        if (log := self._log_of(session_id)) is not self:
            return log.resume_session(session_id, limit)
        if (session := self._session(session_id)) is None:
            raise SessionNotFound(session_id)
        first = max(0, session.n_messages - max(1, min(limit, MOST)))
        rows = list(read_rows(self.store, session, first, session.n_messages - 1))
        while rows and rows[0]["role"] == "tool" and first > 0 and len(rows) < 2 * MOST:
            first -= 1
            rows[:0] = read_rows(self.store, session, first, first)
        return rows

    # --- one session ---
    def _log_of(self, session_id: str) -> TurnLog:
        """Return the log that holds a session: this one, or the one in memory."""
        other = self._in_memory
        return other if other is not None and other._session(session_id) is not None else self

    def _mask_of(self, session_id: str) -> Mask | None:
        if session_id not in self._masks:
            mode = user_rules.session_mode(self.store, AGENT, session_id, "", self._policy)
            self._masks[session_id] = self._policy.redact if mode == "redacted" else None
        return self._masks[session_id]

    def _session(self, session_id: str) -> Session | None:
        return best_match(rows) if (rows := self.store.sessions_of(AGENT, session_id)) else None

    def _iterate_sessions(self, workspace: str) -> Iterator[tuple[Session, SessionText]]:
        cursor = ""
        while True:
            rows, cursor = self.store.sessions(SessionFilter(agent=AGENT, workspace=workspace), 200, cursor)
            yield from rows
            if not cursor:
                return

    def _session_row(self, session: Session, text: SessionText) -> dict[str, Any]:
        kept = {row.key: row.value for row in self.store.kept(KIND, session.native_id) if row.agent == session.agent}
        opened = self.store.version(session.version).opened_at
        started, ended = session.started or opened, session.ended or session.started or opened
        counted = session.tokens_in + session.tokens_out + session.tokens_cache_read + session.tokens_cache_write
        return {
            "id": session.native_id, "workspace_path": text.workspace,
            "model_name": json.loads(kept.get("model", '""')) or session.model,
            "system_prompt": json.loads(kept.get("system_prompt", "null")), "started_at": iso(started),
            "last_active_at": iso(ended), "total_tokens": int(kept.get("total_tokens", counted)),
            "turn_count": session.n_messages, "session_state": kept.get("session_state"),
            "session_state_through_turn": int(kept.get("session_state_through_turn", 0)),
            "is_active": int(kept.get("is_active", 1)),
        }  # fmt: skip

    def _require_writable(self, session_id: str) -> Session:
        if (session := self._session(session_id)) is None:
            raise SessionNotFound(session_id)
        lease = leases.current_lease(self.store, session_id)
        if leases.is_held(lease, self._holder, self._clock()):
            raise Busy(f"session {session_id}")
        return session

    def _end(self, session_id: str) -> JournalEnd:
        machine = self._holder.machine
        return JournalEnd(
            self.store, session_id, find_journal(self.store, session_id, machine), (machine, ""), self._clock,
            self._mask_of(session_id),
        )  # fmt: skip

    def _append(self, end: JournalEnd, record: Record, number: int) -> None:
        record.n, record.at = number, self._clock()
        end.append(records.record_line(record))

    def _make_record(self, session: Session, turn: LoggedTurn) -> Record:
        """Return the record of a message: a result goes to its call, if that is open."""
        calls = self.store.tail(session.id).open_calls.get(turn.tool_call_id or "", ()) if turn.role == "tool" else ()
        call = next((one for one in reversed(calls) if one.status == "open"), None)
        if call is None:
            return turn_record(turn, self.kinds)
        row = next(self.store.messages(session.id, call.seq, call.seq))
        parsed = records.parse_record(self.store.read_raw(session.version, row.start, row.size), session.native_id)
        return result_record(turn, parsed.n, call.name, call.kind)

    def _keep_value(self, session: str, key: str, value: Any) -> None:
        text, mask = _json(key, value), self._mask_of(session)
        text = mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass") if mask else text
        self.store.keep(KeptRow(KIND, AGENT, session, key, text, self._clock()))

    def _add_tokens(self, session: str, tokens: int) -> None:
        if tokens:
            rows = [row for row in self.store.kept(KIND, session) if row.key == "total_tokens" and row.agent == AGENT]
            self._keep_value(session, "total_tokens", sum(int(row.value) for row in rows) + tokens)


def _json(key: str, value: Any) -> str:
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
        return text
    except UnicodeEncodeError:  # a lone surrogate: kept as an escape
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as failure:
        raise UsageError(f"{key} cannot be kept as JSON: {failure}") from failure
