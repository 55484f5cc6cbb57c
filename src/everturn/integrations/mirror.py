"""Conversations of frameworks as sessions of the archive: searchable, shown, masked, counted, exported, forgotten.

A framework keeps its data in its own form (items, checkpoints, entries), which it gets back unchanged. The same messages are
also appended to a session, in the same transaction, with the name of the framework as its client. What a framework removes
later (a popped item, a pruned checkpoint) stays in the session; deleting the whole conversation deletes the session. The
session refers to the framework's data (kept rows of kind `framework`), so that `everturn forget` erases both. A session that
was forgotten is not begun again.

A run of the OpenAI Agents SDK with a `ToolJournal` has a session already: the journal. Then nothing is added here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from everturn.capture.policy import Policy
from everturn.clock import Clock
from everturn.integrations.archive import as_store
from everturn.loop import leases, records
from everturn.loop.journal_state import AGENT, journal_path
from everturn.loop.turn_log import LoggedTurn, TurnLog
from everturn.model.archive import FRAMEWORK, FrameworkData, KeptRow
from everturn.store.sql_store import SqlStore


@dataclass(frozen=True)
class Mirror:
    """The sessions of one framework."""

    client: str
    suffix: str = ""  # of session ids, where the framework's own ids are not unique enough
    clock: Clock = lambda: 0

    def session(self, name: str) -> str:
        """Return the id of the session for a conversation of the framework."""
        return f"{name}{self.suffix}"

    def add(self, store: SqlStore, name: str, turns: Iterable[LoggedTurn], *data: FrameworkData) -> None:
        """Append messages, inside a write transaction. `data` are the rows to erase when the session is forgotten."""
        # The archive of a framework holds only what the user's rules let in.
        log, session = _MirrorLog(as_store(store), self.clock, policy=Policy()), self.session(name)
        for one in data:
            row = KeptRow(
                FRAMEWORK,
                AGENT,
                session,
                f"{one.family}/{one.owner}/{one.key}",
                msgspec.json.encode(one).decode(),
                self.clock(),
            )
            store.keep(row)
        if log.is_writable(session):
            log.take(session, self.client, turns)

    def delete(self, store: SqlStore, name: str) -> None:
        """Delete the session of a conversation, inside a write transaction. It may begin again later."""
        session = self.session(name)
        for row in store.sessions_of(AGENT, session):
            file, _ = store.file_by_id(store.version(row.version).source)
            if file.path == journal_path(session):
                store.delete_file(file.id)
        store.drop_kept(AGENT, session)


class _MirrorLog(TurnLog):
    def is_writable(self, session: str) -> bool:
        """Whether messages belong here: the session is not forgotten, and no loop or journal of ours writes it."""
        buried = ((row.kind, row.agent, row.key) == ("session", AGENT, session) for row in self.store.tombstones())
        return not leases.current_lease(self.store, session).token and not any(buried)

    def take(self, session: str, client: str, turns: Iterable[LoggedTurn]) -> None:
        for turn in turns:
            if self._session(session) is None:
                begin = records.SessionRecord(journal=records.FORMAT, id=session, client=client)
                self._append(self._end(session), begin, 0)
            self.append_turn(session, turn)


# --- messages of the frameworks ---
def text_of(content: Any) -> str:
    """Return the words of a content: a text, a block, or a list of them. Other blocks are shown as JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list | tuple):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, Mapping):
        for name in ("text", "refusal", "content"):
            if isinstance(content.get(name), str):
                return str(content[name])
        if content.get("type") in ("reasoning", "thinking", "redacted_thinking"):
            return ""
    try:
        return json.dumps(content, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return str(content)


def call_json(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """Return a call in the common form."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return {"id": str(call_id or ""), "type": "function", "function": {"name": str(name or ""), "arguments": given}}


def item_turns(items: Sequence[Any]) -> list[LoggedTurn]:
    """Return the messages of items of the Responses interface. What the model said in a row is one message."""
    turns: list[LoggedTurn] = []
    texts: list[str] = []
    calls: list[dict[str, Any]] = []

    def flush() -> None:
        if texts or calls:
            turns.append(LoggedTurn("assistant", "\n".join(texts), tuple(calls)))
        texts.clear()
        calls.clear()

    for item in items:
        turn = _item_message(item)
        if turn.role != "assistant":
            flush()
            turns.append(turn)
        else:
            texts += filter(None, [turn.content])
            calls += map(dict, turn.tool_calls or ())
    flush()
    return turns


def _item_message(item: Any) -> LoggedTurn:
    kind, role = (item.get("type"), item.get("role")) if isinstance(item, Mapping) else ("", "")
    if kind == "function_call":
        call = call_json(item.get("call_id"), item.get("name"), item.get("arguments"))
        return LoggedTurn("assistant", "", (call,))
    if isinstance(kind, str) and kind.endswith("_output"):
        return LoggedTurn("tool", text_of(item.get("output")), tool_call_id=str(item.get("call_id") or ""))
    if role in ("user", "system", "developer"):
        return LoggedTurn("user" if role == "user" else "system", text_of(item.get("content")))
    if kind == "reasoning":
        return LoggedTurn("assistant", text_of(item.get("summary")))
    return LoggedTurn("assistant", text_of(item.get("content") if role == "assistant" else item))


_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
}


def graph_turn(message: Any) -> LoggedTurn | None:
    """Return a message of a graph's state (an object or a dict); None for another value."""
    get = message.get if isinstance(message, Mapping) else lambda name, default=None: getattr(message, name, default)
    role = _ROLES.get(str(get("type", "")).removesuffix("MessageChunk").lower()) or _ROLES.get(str(get("role", "")))
    if role is None or get("content") is None:
        return None
    calls = [
        call_json(one.get("id"), one.get("name"), one.get("args"))
        for one in get("tool_calls") or ()
        if isinstance(one, Mapping)
    ]
    return LoggedTurn(role, text_of(get("content")), calls or None, get("tool_call_id"), get("name"))


def model_turns(message: Any) -> list[LoggedTurn]:
    """Return the messages of a Pydantic AI message: its parts have a `part_kind`."""
    turns: list[LoggedTurn] = []
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        kind = part.part_kind
        if kind == "tool-call":
            calls.append(call_json(part.tool_call_id, part.tool_name, part.args))
        elif kind in ("tool-return", "retry-prompt") and getattr(part, "tool_name", None):
            turns.append(LoggedTurn("tool", text_of(part.content), None, part.tool_call_id, part.tool_name))
        elif message.kind == "request":
            role = "system" if kind == "system-prompt" else "user"
            turns.append(LoggedTurn(role, text_of(getattr(part, "content", ""))))
        else:
            texts += filter(None, [text_of(getattr(part, "content", ""))])
    return [*turns, LoggedTurn("assistant", "\n".join(texts), calls or None)] if texts or calls else turns


def event_turns(data: bytes) -> list[LoggedTurn]:
    """Return the message of an event of an MCP server: the words of its result, else the whole."""
    event = json.loads(data)
    result = event.get("result") if isinstance(event, dict) else None
    content = result.get("content") if isinstance(result, dict) else None
    return [LoggedTurn("tool", text_of(content) if content else text_of(event))]
