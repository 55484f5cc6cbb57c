"""One record → one message, without knowing the records around it: used by the reader and by `view` alike.

session setup                 how it began: who, where, with which system prompt and tools
user response result          what was said, verbatim; one result for each call
intent lease pause decision   what the program did: kept, counted, no part of the conversation (a decision's words are)
interrupt partial note state  what happened beside it
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, Message, TokenUsage
from everturn.sources import tools
from everturn.sources.foreign import count, milliseconds, strings, word
from everturn.sources.linewise import Rec, RecordPlace, listing, mapping, single_record

#: Records about the session, not of it.
SILENT = frozenset(("session", "intent", "lease", "pause"))
_ENVELOPE = ("type", "n", "at", "of")
#: Members of a provider's block that are no words: what only the provider itself can read.
_SEALED = ("type", "id", "data", "signature", "encrypted_content")
_OUTCOMES = {
    "denied": "rejected",
    "interrupted": "interrupted",
    "in_doubt": "interrupted",
    "not_started": "cancelled",
    "timeout": "timeout",
    "unknown_tool": "unknown_tool",
    "invalid": "invalid_input",
}


def build(record: Rec, place: RecordPlace) -> Message | None:
    """The message of a record; None when it is known to hold none."""
    kind = word(record.get("type"))
    return None if kind in SILENT else _RECORDS.get(kind, unknown)(record, place)


def view(raw: bytes) -> Message | None:
    """The message of a record's bytes, judged by itself."""
    record = single_record(raw)
    return build(record, RecordPlace(0, len(raw))) if record is not None else None


def is_known(kind: str) -> bool:
    """Whether this version knows the type."""
    return kind in SILENT or kind in _RECORDS


def unknown(record: Rec, place: RecordPlace) -> Message:
    """A message of a kind this version does not know: its words are kept, shown and indexed."""
    blocks = _text("\n".join(strings(record, *_ENVELOPE)), "meta", "unknown")
    return _message(record, place, "system", "system", blocks, "unknown")


def _setup(record: Rec, place: RecordPlace) -> Message:
    return _message(record, place, "system", "system", _text(word(record.get("system")), "meta"), "context")


def _user(record: Rec, place: RecordPlace) -> Message:
    blocks = tuple(_block(part, "prompt") for part in listing(record.get("parts")))
    return replace(_message(record, place, "user", "human", blocks), starts_turn=True)


def _response(record: Rec, place: RecordPlace) -> Message:
    reply = mapping(record.get("reply"))
    said = mapping(reply.get("message"))
    blocks = tuple(_block(part, "answer") for part in listing(said.get("parts")))
    message = _message(record, place, "assistant", "model", blocks)
    name = word(said.get("id")) or f"@{count(record.get('n')) or 0}"
    return replace(message, provider_id=name, model=word(reply.get("model")), usage=_usage(reply.get("usage")))


def _partial(record: Rec, place: RecordPlace) -> Message:
    """The beginning of a response that broke off: shown, but no part of the history."""
    blocks = _text(word(record.get("text")), "answer")
    return _message(record, place, "assistant", "system", blocks, "notice")


def _result(record: Rec, place: RecordPlace) -> Message:
    text, failed, outcome = word(record.get("text")), record.get("is_error") is True, word(record.get("outcome"))
    why = (_OUTCOMES.get(outcome) or tools.error_class(text)) if failed else ""
    status = tools.exit_status(text) if failed else None
    end = CallEnd(word(record.get("call_id")), failed, why, status, count(record.get("ms")))
    block = Block("result", text, "tool_output", result=end, data=record)
    return _message(record, place, "tool", "tool", (block,), "result")


def _decision(record: Rec, place: RecordPlace) -> Message:
    words = " ".join(filter(None, (word(record.get("verdict")), word(record.get("call_id")), word(record.get("text")))))
    return _message(record, place, "system", "system", _text(words, "meta"), "notice")


def _interrupt(record: Rec, place: RecordPlace) -> Message:
    return _message(record, place, "user", "human", _text(word(record.get("text")), "meta"), "interrupt")


def _note(record: Rec, place: RecordPlace) -> Message:
    blocks = _text("\n".join(strings(record, *_ENVELOPE, "kind")), "meta")
    return _message(record, place, "system", "system", blocks, "notice")


def _state(record: Rec, place: RecordPlace) -> Message:
    blocks = _text("\n".join(strings(record.get("data"))), "meta")
    return _message(record, place, "system", "injected", blocks, "context")


_RECORDS: dict[str, Callable[[Rec, RecordPlace], Message]] = {
    "setup": _setup,
    "user": _user,
    "response": _response,
    "partial": _partial,
    "result": _result,
    "decision": _decision,
    "interrupt": _interrupt,
    "note": _note,
    "state": _state,
}


def _block(part: Any, field: str) -> Block:
    found = mapping(part)
    kind, text = found.get("kind"), word(found.get("text"))
    if kind == "text":
        return Block("text", text, field, data=found.get("raw"))
    if kind == "thinking":
        return Block("thinking", text, "thinking", data=found.get("raw"))
    if kind == "call":
        start = tools.call_start(word(found.get("call_id")), word(found.get("name")), found.get("arguments"))
        return Block("call", tools.call_text(start), "tool_input", call=start, data=found.get("raw"))
    if kind == "image":
        return Block("image", text, field if text else "", data=found.get("raw"))
    return Block("unknown", text or "\n".join(strings(found.get("raw"), *_SEALED)), "meta", data=part)


def _usage(tokens: Any) -> TokenUsage | None:
    found = mapping(tokens)
    counted = [count(found.get(key)) or 0 for key in ("input", "output", "cache_read", "cache_write")]
    return TokenUsage(*counted) if any(counted) else None


def _text(text: str, field: str, kind: str = "text") -> tuple[Block, ...]:
    return (Block(kind, text, field),) if text else ()


def _message(
    record: Rec, place: RecordPlace, role: str, origin: str, blocks: tuple[Block, ...], kind: str = "text"
) -> Message:
    at, precision = milliseconds(record.get("at"))
    name = word(record.get("id"))  # of a copy: where it was first written
    return Message(role, origin, kind, at, precision, name, blocks=blocks, start=place.start, size=place.size)
