"""One entry → one message, without knowing the entries around it: used by the reader and by `view` alike."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, Message, TokenUsage, fingerprint
from everturn.sources import tools
from everturn.sources.foreign import count, digest, milliseconds, strings, word
from everturn.sources.linewise import Rec, RecordPlace, listing, mapping, single_record

#: Entries about the session, not of it.
SILENT = frozenset(
    "session session_info model_change thinking_level_change label custom context_transform ephemeral".split()
)
_EXITED = re.compile(r"Command exited with code (-?\d{1,9})\s*\Z")
_STOPPED = re.compile(r"(?:Command (timed out)|(?:Command|Operation|Request)(?: was)? aborted)[^\n]{0,80}\Z")
_ENVELOPE = ("type", "id", "parentId", "timestamp", "role")


def build(record: Rec, place: RecordPlace) -> Message | None:
    """The message of an entry; None when it is known to hold none."""
    kind = word(record.get("type"))
    if kind in SILENT:
        return None
    if kind == "message":
        return _ROLES.get(word(mapping(record.get("message")).get("role")), unknown)(record, place)
    return _ENTRIES.get(kind, unknown)(record, place)


def view(raw: bytes) -> Message | None:
    """The message of an entry's bytes, judged by itself."""
    record = single_record(raw)
    return build(record, RecordPlace(0, len(raw))) if record is not None else None


def entry_kind(record: Rec) -> tuple[str, bool]:
    """The type of an entry, with its role where it has one, and whether this version knows it."""
    kind, role = word(record.get("type")), word(mapping(record.get("message")).get("role"))
    if kind == "message":
        return f"{kind}/{role}", role in _ROLES
    return kind, kind in SILENT or kind in _ENTRIES


def unknown(record: Rec, place: RecordPlace) -> Message:
    """A message of a kind this version does not know: its words are kept, shown and indexed."""
    text = "\n".join(strings(record, *_ENVELOPE))
    return _message(record, place, "system", "system", _text(text, "meta", "unknown"), "unknown")


# messages -----------------------------------------------------------------------------------------------------------
def _user(record: Rec, place: RecordPlace) -> Message:
    blocks = _blocks(mapping(record.get("message")).get("content"), "prompt")
    return replace(_message(record, place, "user", "human", blocks), starts_turn=True)


def _assistant(record: Rec, place: RecordPlace) -> Message:
    said = mapping(record.get("message"))
    blocks = _blocks(said.get("content"), "answer")
    failure, stopped = word(said.get("errorMessage")), said.get("stopReason")
    if stopped in ("error", "aborted") and not blocks:
        kind = "interrupt" if stopped == "aborted" else "notice"
        message = _message(record, place, "assistant", "system", _text(failure, "meta"), kind)
    else:
        message = _message(record, place, "assistant", "model", blocks + _text(failure, "meta"))
    name = word(said.get("responseId")) or word(record.get("id")) or f"@{place.start}"
    return replace(message, provider_id=name, model=word(said.get("model")), usage=_usage(said.get("usage")))


def _usage(tokens: Any) -> TokenUsage | None:
    found = mapping(tokens)
    counted = [count(found.get(key)) or 0 for key in ("input", "output", "cacheRead", "cacheWrite")]
    return TokenUsage(*counted) if any(counted) else None


def _result(record: Rec, place: RecordPlace) -> Message:
    said = mapping(record.get("message"))
    text = "\n".join(block.text or f"[{block.kind}]" for block in _blocks(said.get("content"), "tool_output"))
    failed, exited, stopped = said.get("isError") is True, _EXITED.search(text), _STOPPED.search(text)
    status = int(exited[1]) if exited else None
    if failed and stopped:
        why = "timeout" if stopped[1] else "interrupted"
    else:
        why = "exit_status" if status else tools.error_class(text) if failed else ""
    end = CallEnd(word(said.get("toolCallId")), failed, why if failed else "", status)
    block = Block("result", text, "tool_output", result=end, data=said)
    return _message(record, place, "tool", "tool", (block,), "result")


def _shell(record: Rec, place: RecordPlace) -> Message:
    """What the human ran with `!`, and what it printed."""
    said = mapping(record.get("message"))
    blocks = _text(word(said.get("command")), "prompt") + _text(word(said.get("output")), "tool_output")
    return replace(_message(record, place, "user", "human", blocks, "shell"), starts_turn=True)


def _injected_message(record: Rec, place: RecordPlace) -> Message:
    content = mapping(record.get("message")).get("content", record.get("content"))
    return _message(record, place, "user", "injected", _blocks(content, "meta"), "context")


def _summary(record: Rec, place: RecordPlace) -> Message:
    text = word(record.get("summary")) or word(mapping(record.get("message")).get("summary"))
    return _message(record, place, "system", "injected", _text(text, "summary"), "summary")


def _compaction(record: Rec, place: RecordPlace) -> Message:
    blocks = _text(word(record.get("summary")), "summary")
    return _message(record, place, "system", "system", blocks, "compaction")


_Builder = Callable[[Rec, RecordPlace], Message]
_ROLES: dict[str, _Builder] = {
    "user": _user,
    "assistant": _assistant,
    "toolResult": _result,
    "bashExecution": _shell,
    "custom": _injected_message,
    "hookMessage": _injected_message,
    "branchSummary": _summary,
    "compactionSummary": _summary,
}
_ENTRIES: dict[str, _Builder] = {
    "custom_message": _injected_message,
    "branch_summary": _summary,
    "compaction": _compaction,
}


# blocks -------------------------------------------------------------------------------------------------------------
def _blocks(content: Any, field: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return _text(content, field)
    return tuple(_block(part, field) for part in listing(content))


def _block(part: Any, field: str) -> Block:
    found = mapping(part)
    kind = found.get("type")
    if kind == "text":
        return Block("text", word(found.get("text")), field)
    if kind == "thinking":
        return Block("thinking", word(found.get("thinking")), "thinking", data=part)
    if kind == "toolCall":
        start = tools.call_start(word(found.get("id")), word(found.get("name")), found.get("arguments"))
        return Block("call", tools.call_text(start), "tool_input", call=start, data=part)
    if kind == "image":
        return Block("image", data=part)
    return Block("unknown", "\n".join(strings(part, "type")), "meta", data=part)


def _text(text: str, field: str, kind: str = "text") -> tuple[Block, ...]:
    return (Block(kind, text, field),) if text else ()


def _message(
    record: Rec, place: RecordPlace, role: str, origin: str, blocks: tuple[Block, ...], kind: str = "text"
) -> Message:
    at, precision = milliseconds(record.get("timestamp"))
    name, when = word(record.get("id")), word(record.get("timestamp"))
    if not name and when:  # the first version had no ids
        mark = digest(role, *(block.text for block in blocks))
    else:
        mark = name
    return Message(
        role,
        origin,
        kind,
        at,
        precision,
        name,
        blocks=blocks,
        start=place.start,
        size=place.size,
        fingerprint=fingerprint(mark, when) if mark else None,
    )
