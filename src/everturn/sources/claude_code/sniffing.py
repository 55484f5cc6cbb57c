"""Knows a transcript, and what it says about itself, by its first bytes: also when the first line is longer than these."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from everturn.sources.claude_code.events import ClaudeRecord, decode, revive, word
from everturn.sources.claude_code.kinds import KNOWN
from everturn.sources.claude_code.loglines import events_in, form_of
from everturn.sources.jsonl import JsonLines

#: In a line that is cut off: what the envelope of a record begins with.
_ENVELOPE = re.compile(rb'\s*\{"(?:parentUuid|isSidechain|logicalParentUuid)":')
_SESSION_FIELD = re.compile(rb'"sessionId":"([^"\\]{1,200})"')
_FOLDER = re.compile(rb'"cwd":("(?:[^"\\]|\\.){1,4096}")')


def is_transcript(head: bytes) -> bool:
    """Whether a file that begins like this is a transcript."""
    if form_of(head, last=True) == "document":
        return any(map(_is_message_record, events_in(head)))
    if any(map(_is_ours, _events(head))):
        return True
    return _ENVELOPE.match(head) is not None and _SESSION_FIELD.search(head) is not None


def session_ids(head: bytes) -> list[str]:
    """The session id of each record, as far as they have one."""
    found = [word(event.session_id) for event in _events(head) if event.session_id]
    return found or [match.decode("utf-8", "replace") for match in _SESSION_FIELD.findall(head)]


def workspace(head: bytes) -> str:
    """The working folder that a file names first; "" when its beginning names none."""
    for event in _events(head):
        if event.cwd:
            return word(event.cwd)
    found = _FOLDER.search(head)
    if found is None:
        return ""
    try:
        return word(msgspec.json.decode(found[1]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _events(head: bytes) -> Iterator[ClaudeRecord]:
    if form_of(head, last=True) == "document":
        yield from events_in(head)
        return
    for _, _, event, _ in JsonLines(decode, revive).split(head, 0, last=True):
        if event is not None:
            yield event


def _is_message_record(event: ClaudeRecord) -> bool:
    """In a document records may have lost all of their envelope but the time."""
    return event.type in ("user", "assistant") and event.message is not None and bool(event.timestamp)


def _is_ours(event: ClaudeRecord) -> bool:
    """A record of another format may share the type, but not the envelope."""
    if event.type in ("user", "assistant"):
        return event.message is not None and bool(event.session_id or (event.uuid and event.parent_uuid is not None))
    if event.type == "summary":
        return bool(event.leaf_uuid)
    if event.type in ("file-history-snapshot", "file-history-delta"):
        return True
    if event.type in ("system", "progress", "attachment"):
        return bool(event.session_id and event.uuid)
    return event.type in KNOWN and bool(event.session_id)
