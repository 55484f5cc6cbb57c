"""Find sessions and read them entry by entry; `view` converts one entry, independently of the others.

    ~/.factory/sessions/<working folder>/<session>.jsonl            one per session, subagents' too
    ~/.factory/sessions/<working folder>/<session>.settings.json    settings and totals, not read

The first line is the header of the session. Folders behind symbolic links are not entered.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, Link, Message
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    Rec,
    RecordPlace,
    SessionTally,
    add,
    mapping,
    records,
    view_placed,
)
from everturn.sources.toolkit.message_reader import record_message as _message
from everturn.sources.toolkit.values import blocks_of, call_block, count, plain, strings, text_blocks, word

#: Entries that hold no messages, or repeat what other entries say.
SILENT = frozenset("session_start session_end session_settings todo_state agent_turn_outcome".split())
_KINDS = {"Execute": "shell", "ExitSpecMode": "plan"}
_PATCHED = re.compile(r"^\*\*\* (Update|Add|Delete) File: (\S[^\n]{0,4000})$", re.MULTILINE)
_PATCHES = {"Update": "edit", "Add": "create", "Delete": "delete"}
_REMINDER = re.compile(r"\s*<system-reminder>")
_ENVELOPE = ("type", "id", "parentId", "timestamp")
_FIRST_TITLE, _MODEL_TITLE, _HUMAN_TITLE = 1, 2, 3


def _build(record: Rec, place: RecordPlace) -> Message | None:
    kind = word(record.get("type"))
    if kind in SILENT:
        return None
    if kind == "message":
        return _ROLES.get(word(mapping(record.get("message")).get("role")), _unknown)(record, place)
    return _compaction(record, place) if kind == "compaction_state" else _unknown(record, place)


view = partial(view_placed, _build)


def _entry_kind(record: Rec) -> tuple[str, bool]:
    """Return the type of an entry, with its role where it has one, and whether it is known."""
    kind, role = word(record.get("type")), word(mapping(record.get("message")).get("role"))
    if kind == "message":
        return f"{kind}/{role}", role in _ROLES
    return kind, kind in SILENT or kind == "compaction_state"


def _unknown(record: Rec, place: RecordPlace) -> Message:
    text = "\n".join(strings(record, *_ENVELOPE))
    return _message(record, place, "system", "system", text_blocks(text, "meta", "unknown"), "unknown")


def _user(record: Rec, place: RecordPlace) -> Message:
    """Return a prompt, results of calls, or what the client put between: reminders, and notices for the human only."""
    message = mapping(record.get("message"))
    blocks = _blocks(message.get("content"), "prompt")
    if any(block.result is not None for block in blocks):
        return _message(record, place, "tool", "tool", _without_prompt(blocks), "result")
    if message.get("visibility") == "user_only":
        return _message(record, place, "system", "system", _without_prompt(blocks), "notice")
    is_typed = any(block.field == "prompt" or block.kind in ("image", "document") for block in blocks)
    if not is_typed or message.get("visibility") == "llm_only":
        return _message(record, place, "user", "injected", _without_prompt(blocks), "context")
    return replace(_message(record, place, "user", "human", blocks), starts_turn=True)


def _assistant(record: Rec, place: RecordPlace) -> Message:
    answer = mapping(record.get("message"))
    message = _message(record, place, "assistant", "model", _blocks(answer.get("content"), "answer"))
    return replace(message, provider_id=message.native_id or f"@{place.start}", model=word(answer.get("model")))


def _system(record: Rec, place: RecordPlace) -> Message:
    blocks = _blocks(mapping(record.get("message")).get("content"), "meta")
    return _message(record, place, "system", "injected", blocks, "context")


def _compaction(record: Rec, place: RecordPlace) -> Message:
    blocks = text_blocks(word(record.get("summaryText")), "summary")
    return _message(record, place, "system", "system", blocks, "compaction")


_ROLES: dict[str, Callable[[Rec, RecordPlace], Message]] = {"user": _user, "assistant": _assistant, "system": _system}


def _blocks(content: Any, field: str) -> tuple[Block, ...]:
    """Return the blocks of a content: those of Anthropic, with the tools of this client."""
    return tuple(map(_own_block, blocks_of(content, field)))


def _own_block(block: Block) -> Block:
    if block.field == "prompt" and _REMINDER.match(block.text):
        return replace(block, field="meta")
    if block.call is None:
        return block
    call = block.call
    if (kind := _KINDS.get(call.name)) is not None:
        return call_block(call.call_id, call.name, call.input, block.data, kind)
    if call.name == "ApplyPatch" and (found := _PATCHED.search("\n".join(strings(call.input)))) is not None:
        patched = replace(call, kind=_PATCHES[found[1]], path=found[2].strip())
        return replace(block, call=patched)
    return block


def _without_prompt(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(replace(block, field="meta") if block.field == "prompt" else block for block in blocks)


# --- files ---
def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    header = _parse_header(head)
    if header is None:
        return None
    parent = word(header.get("callingSessionId"))
    return SourceCandidate(path, "subagent" if parent else "main", word(header.get("id")), parent)


find = finder(sniff, "*.jsonl", below="sessions")


def workspace(head: bytes) -> str:
    return word((_parse_header(head) or {}).get("cwd"))


def _parse_header(head: bytes) -> Rec | None:
    """Return the first line of a session; None when it is no such line."""
    if head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")[:1] != b"{":
        return None
    first = next(iter(records(head[: head.find(b"\n") + 1] or head) or records(head)), {})
    is_header = first.get("type") == "session_start" and word(first.get("id"))
    has_facts = any(word(first.get(key)) for key in ("cwd", "title", "sessionTitle"))
    return first if is_header and has_facts else None


# --- the reader ---
class DroidReaderState(Struct, array_like=True):
    """The state from which a later reader continues."""

    open_line: bool = False
    version: str = ""  # of the format: the client does not record its own


class DroidReader(LineReader[DroidReaderState]):
    """Reads one session, or one subagent."""

    kind = DroidReaderState

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        session = self._open_session()
        if record.get("type") == "session_start":
            self._learn(session, record)
        message = _build(record, place)
        if message is not None:
            if self._candidate.kind == "subagent" and message.origin == "human":
                message = replace(message, origin="agent")
            add(self._gathering, session, message)
        name, is_known = _entry_kind(record)
        disposition = "unknown" if not is_known else "known" if message is None else "message"
        return "/".join(map(plain, name.split("/", 1))), disposition, self._state.version

    def _learn(self, session: SessionTally, header: Rec) -> None:
        self._state.version = f"v{count(header.get('version')) or 1}"
        given, first = word(header.get("sessionTitle")), word(header.get("title"))
        is_human = header.get("isSessionTitleManuallySet") is True
        rank = _HUMAN_TITLE if is_human else _MODEL_TITLE if given else _FIRST_TITLE
        session.learn(workspace=word(header.get("cwd")), title=given or first, title_rank=rank if given or first else 0)
        if parent := word(header.get("callingSessionId")):
            session.links.append(Link("subagent_of", parent, word(header.get("callingToolUseId"))))
