"""One record's bytes → its message, for whoever shows or exports it."""

from __future__ import annotations

from msgspec import DecodeError

from everturn.model.conversation import Message
from everturn.sources.claude_code.events import ClaudeRecord, all_fields, decode, revive
from everturn.sources.claude_code.kinds import OPERATIONS
from everturn.sources.claude_code.loglines import event_of
from everturn.sources.claude_code.message import ClaudeRecordPlace, build, queued_message, unknown
from everturn.sources.claude_code.whole import about_agent, output
from everturn.sources.jsonl import JsonLines


def view(record: bytes) -> Message | None:
    """The message of a record, judged by itself; None when it holds none. What is no record is a tool's output."""
    event = _event(record)
    if event is None:
        return output(record)
    if event.type == "queue-operation":
        return (
            queued_message(event, ClaudeRecordPlace(record))
            if event.operation in OPERATIONS
            else unknown(event, ClaudeRecordPlace(record))
        )
    if event.type is None and "agentType" in all_fields(event, record):
        return about_agent(record)
    return build(event, ClaudeRecordPlace(record, session=event.session_id or ""))


def _event(record: bytes) -> ClaudeRecord | None:
    if b"\n" in record.rstrip():
        return _element(record)
    try:
        return decode(record)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        pass
    found = [value for _, _, value, _ in JsonLines(decode, revive).split(record, 0, last=True)]
    return found[0] if len(found) == 1 else None


def _element(record: bytes) -> ClaudeRecord | None:
    """A record that is spread over lines, as in a document; any other such text is what a tool printed."""
    event, _ = event_of(record)
    return event if event is not None and event.type is not None and event.timestamp is not None else None
