"""Knows a rollout, and what it says about itself, by its first bytes: also when the first line is longer than these."""

from __future__ import annotations

import re
from typing import NamedTuple

from everturn.sources.codex.events import HEADER, CodexRecord, open_record
from everturn.sources.codex.speaker import folder_in
from everturn.sources.foreign import decode_value, strings, word
from everturn.sources.linewise import Rec, mapping, records

#: The first line of a rollout that is cut off.
_BEGINNING = re.compile(rb'\s*\{"timestamp":"[^"]{10,40}","type":"session_meta","payload":\{')
_ID = re.compile(rb'"id":"([0-9a-fA-F-]{36})"')
_FOLDER = re.compile(rb'"cwd":("(?:[^"\\]|\\.){1,4096}")')
_WRAPPERS = frozenset(("response_item", "event_msg", "turn_context", "compacted"))


class CodexFileKind(NamedTuple):
    """What a file is."""

    native_id: str
    is_screen_log: bool = False


def file_kind(head: bytes) -> CodexFileKind | None:
    """What a file that begins like this is; None when it is not ours."""
    found = records(head)
    if not found:
        name = _ID.search(head)
        return CodexFileKind(name[1].decode().lower() if name else "") if _BEGINNING.match(head) else None
    if _is_screen_log(found[0]):
        return CodexFileKind(_configured_session(found), True)
    event = open_record(found[0])
    if event.outer == HEADER or (event.outer == "session_meta" and word(event.item.get("id"))):
        return CodexFileKind(word(event.item.get("id")).lower())
    return CodexFileKind("") if _is_wrapped(found[0]) else None


def sniff_workspace(head: bytes) -> str:
    """The working folder that a file names first; "" when its beginning names none."""
    for record in records(head):
        event = open_record(record)
        folder = word(event.item.get("cwd")) or _message_folder(event)
        if folder:
            return folder
    found = _FOLDER.search(head)
    return word(decode_value(found[1])) if found is not None else ""


def _message_folder(event: CodexRecord) -> str:
    if event.kind != "message" or event.item.get("role") != "user":
        return ""
    return next(filter(None, map(folder_in, strings(event.item.get("content")))), "")


def _is_wrapped(record: Rec) -> bool:
    """A rollout that has lost its first line."""
    return (
        word(record.get("type")) in _WRAPPERS
        and isinstance(record.get("payload"), dict)
        and bool(record.get("timestamp"))
    )


def _is_screen_log(record: Rec) -> bool:
    return record.get("dir") == "meta" and record.get("kind") == "session_start" and isinstance(record.get("ts"), str)


def _configured_session(found: list[Rec]) -> str:
    messages = (mapping(mapping(record.get("payload")).get("msg")) for record in found)
    return next((word(one.get("session_id")) for one in messages if one.get("type") == "session_configured"), "")
