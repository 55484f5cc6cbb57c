"""A session as updates of the Agent Client Protocol, in the order in which things happened.

Prompts, answers, thoughts, calls and their results have updates of their own. What the client put in by itself, notices and
compactions have none in version 1 and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from everturn.model.archive import Call, Session
from everturn.model.conversation import Block
from everturn.sessions.messages import Sources, read_messages
from everturn.store.contract import Store

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
    for row, message in read_messages(store, sources, session):
        speaker = "user" if row.role == "user" and row.origin in ("human", "agent") else "agent"
        for idx, block in enumerate(message.blocks):
            call = calls.get((row.seq, idx)) if block.call is not None else None
            if call is not None:
                yield _call_update(call, block, clean)
            elif block.result is not None:
                if (ended := answered.get((row.seq, block.result.call_id))) is not None:
                    yield _result_update(ended, block, clean)
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
        "rawInput": _cleaned(start.input, clean), "locations": [{"path": clean(start.path)}] if start.path else [],
    }  # fmt: skip


def _result_update(call: Call, block: Block, clean: Clean) -> Update:
    content = {"type": "content", "content": {"type": "text", "text": clean(block.text)}}
    return {
        "sessionUpdate": "tool_call_update", "toolCallId": _call_name(call), "status": _STATES[call.status],
        "content": [content] if block.text else [],
    }  # fmt: skip


def _call_name(call: Call) -> str:
    """Return an id that no other call of the session has: ids of agents repeat."""
    return f"{call.call_id or call.name}#{call.seq + 1}.{call.idx + 1}"


def _cleaned(value: Any, clean: Clean) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(one, clean) for one in value]
    return {clean(str(key)): _cleaned(one, clean) for key, one in value.items()} if isinstance(value, dict) else value
