"""Answers the requests of an Agent Client Protocol client: one JSON-RPC message per line, version 1 of the protocol.

`session/list` lists the archive, `session/load` replays a session, `session/resume` opens it without a replay. A prompt is
answered with how to go on in the agent that the session belongs to: an archive has no model.

A session as updates of the Agent Client Protocol, in the order in which things happened.

Prompts, answers, thoughts, calls and their results have updates of their own. What the client put in by itself, notices and
compactions have none in version 1 and are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from everturn.errors import EverturnError
from everturn.model.archive import Call, Session
from everturn.model.conversation import Block
from everturn.sessions.lookup import list_sessions, resolve_session
from everturn.sessions.messages import Sources, read_messages
from everturn.store.contract import SessionFilter, Store
from everturn.text.times import iso

_PROTOCOL = 1
_PAGE = 50
_PARSE, _INVALID, _METHOD, _PARAMS, _FAILED = -32700, -32600, -32601, -32602, -32000

Answer = dict[str, Any]


class AcpServer:
    """Serves one client."""

    def __init__(self, store: Store, sources: Sources, clean: Clean, version: str) -> None:
        self._store, self._sources, self._clean, self._version = store, sources, clean, version
        self._methods: dict[str, Callable[[Answer], Iterator[Answer]]] = {
            "initialize": self._initialize,
            "authenticate": self._nothing,
            "session/list": self._list,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/close": self._nothing,
            "session/prompt": self._prompt,
        }

    def serve(self, lines: Iterable[bytes], write: Callable[[bytes], None]) -> None:
        """Answer every line until there are no more."""
        for line in lines:
            if line.strip():
                for message in self.answer(line):
                    write(
                        json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
                        + b"\n"
                    )

    def answer(self, line: bytes) -> Iterator[Answer]:
        """Yield the messages that answer one line: notifications first, then the response."""
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            yield _error(None, _PARSE, "the message is not JSON")
            return
        if not isinstance(request, dict) or not isinstance(request.get("method"), str):
            if not (isinstance(request, dict) and ("result" in request or "error" in request)):
                yield _error(None, _INVALID, "the message is no request")
            return
        number, params = request.get("id"), request.get("params")
        found = self._methods.get(request["method"])
        if number is None:  # a notification, such as session/cancel
            return
        if found is None:
            yield _error(number, _METHOD, f"{request['method']} is not served: an archive lists and replays sessions")
            return
        yield from self._respond(number, found, params if isinstance(params, dict) else {})

    def _respond(self, number: Any, method: Callable[[Answer], Iterator[Answer]], params: Answer) -> Iterator[Answer]:
        """Yield what a method sends; its last message is the result."""
        try:
            for message in method(params):
                if "result" in message:
                    yield {"jsonrpc": "2.0", "id": number, "result": message["result"]}
                else:
                    yield {"jsonrpc": "2.0", "method": "session/update", "params": message}
        except _BadParams as failure:
            yield _error(number, _PARAMS, str(failure))
        except EverturnError as failure:
            yield _error(number, _FAILED, self._clean(str(failure)))

    def _initialize(self, params: Answer) -> Iterator[Answer]:
        able = {
            "loadSession": True, "promptCapabilities": {}, "mcpCapabilities": {},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
        }  # fmt: skip
        about = {"name": "everturn", "title": "everturn", "version": self._version}
        yield {
            "result": {"protocolVersion": _PROTOCOL, "agentCapabilities": able, "agentInfo": about, "authMethods": []}
        }

    def _nothing(self, params: Answer) -> Iterator[Answer]:
        yield {"result": {}}

    def _list(self, params: Answer) -> Iterator[Answer]:
        folder, cursor = _text(params, "cwd"), _text(params, "cursor")
        page = list_sessions(self._store, SessionFilter(workspace=folder), _PAGE, cursor)
        sessions = [
            {
                "sessionId": one.session.native_id,
                "cwd": one.text.workspace or folder or "/",
                "title": self._clean(one.text.title or one.text.first_prompt or one.session.native_id),
                **({"updatedAt": iso(one.session.ended)} if one.session.ended is not None else {}),
                "_meta": {"everturn": {"agent": one.session.agent, "turns": one.session.n_turns}},
            }
            for one in page.items
        ]
        yield {"result": {"sessions": sessions, **({"nextCursor": page.next} if page.next else {})}}

    def _load(self, params: Answer) -> Iterator[Answer]:
        name, session = self._session(params)
        for update in session_updates(self._store, self._sources, session, self._clean):
            yield {"sessionId": name, "update": update}
        yield {"result": {}}

    def _resume(self, params: Answer) -> Iterator[Answer]:
        self._session(params)
        yield {"result": {}}

    def _prompt(self, params: Answer) -> Iterator[Answer]:
        name, session = self._session(params)
        text = (
            f"This session is archived, and an archive has no model. Go on with it: everturn resume {session.native_id}"
        )
        content = {"type": "text", "text": text}
        yield {"sessionId": name, "update": {"sessionUpdate": "agent_message_chunk", "content": content}}
        yield {"result": {"stopReason": "end_turn"}}

    def _session(self, params: Answer) -> tuple[str, Session]:
        """Return the name that the client gave, and the session that it means."""
        name = _text(params, "sessionId")
        if not name:
            raise _BadParams("sessionId is missing")
        return name, resolve_session(self._store, name)


class _BadParams(Exception):
    """Parameters that are missing or of the wrong type."""


def _text(params: Answer, key: str) -> str:
    value = params.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _BadParams(f"{key} must be a text")
    return value


def _error(number: Any, code: int, message: str) -> Answer:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


# --- A session as updates of the Agent Client Protocol, in the order in which things happened ---
Update = dict[str, Any]
Clean = Callable[[str], str]

_KINDS = {
    "read": "read", "edit": "edit", "create": "edit", "delete": "delete", "shell": "execute", "search": "search",
    "fetch": "fetch", "plan": "think",
}  # fmt: skip
_STATES = {"ok": "completed", "error": "failed", "open": "pending"}
_LONGEST_TITLE = 200


def session_updates(store: Store, sources: Sources, session: Session, clean: Clean) -> Iterator[Update]:
    """Yield the updates of a whole session; `clean` masks secrets in every text."""
    calls = {(call.seq, call.idx): call for call in store.calls(session.id) if call.status != "orphan"}
    answered = {(call.result_seq, call.call_id): call for call in calls.values() if call.result_seq is not None}
    early: dict[tuple[int, int], Block] = {}  # results that a file has before their calls
    for row, message in read_messages(store, sources, session):
        speaker = "user" if row.role == "user" and row.origin in ("human", "agent") else "agent"
        for idx, block in enumerate(message.blocks):
            call = calls.get((row.seq, idx)) if block.call is not None else None
            if call is not None:
                yield _call_update(call, block, clean)
                yield from _result_updates(call, early.pop((row.seq, idx), None), clean)
            elif block.result is not None:
                ended = answered.get((row.seq, block.result.call_id))
                if ended is not None and ended.seq > row.seq:
                    early[ended.seq, ended.idx] = block
                else:
                    yield from _result_updates(ended, block, clean)
            elif update := _text_update(speaker, row.seq, block, clean):
                yield update


def _text_update(speaker: str, seq: int, block: Block, clean: Clean) -> Update | None:
    kinds = {"prompt": "user_message_chunk", "answer": "agent_message_chunk", "thinking": "agent_thought_chunk"}
    kind = kinds.get(block.field, "")
    if not block.text or not kind or (kind == "user_message_chunk") != (speaker == "user"):
        return None
    return {"sessionUpdate": kind, "messageId": f"m{seq + 1}", "content": {"type": "text", "text": clean(block.text)}}


def _call_update(call: Call, block: Block, clean: Clean) -> Update:
    start = block.call
    assert start is not None
    about = start.command or start.path or start.prompt
    title = clean(f"{call.name}: {about}" if about else call.name).partition("\n")[0]
    return {
        "sessionUpdate": "tool_call", "toolCallId": _call_name(call), "title": title[:_LONGEST_TITLE],
        "kind": _KINDS.get(call.kind, "other"), "status": "pending" if call.status == "open" else "in_progress",
        "rawInput": _clean_value(start.input, clean), "locations": [{"path": clean(start.path)}] if start.path else [],
    }  # fmt: skip


def _result_updates(call: Call | None, block: Block | None, clean: Clean) -> Iterator[Update]:
    if call is None or block is None:
        return
    content = {"type": "content", "content": {"type": "text", "text": clean(block.text)}}
    yield {
        "sessionUpdate": "tool_call_update", "toolCallId": _call_name(call), "status": _STATES[call.status],
        "content": [content] if block.text else [],
    }  # fmt: skip


def _call_name(call: Call) -> str:
    """Return an id that no other call of the session has: ids of agents repeat."""
    return f"{call.call_id or call.name}#{call.seq + 1}.{call.idx + 1}"


def _clean_value(value: Any, clean: Clean) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_value(one, clean) for one in value]
    return (
        {clean(str(key)): _clean_value(one, clean) for key, one in value.items()} if isinstance(value, dict) else value
    )
