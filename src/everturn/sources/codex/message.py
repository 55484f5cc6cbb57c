"""Builds the message of one record without the records around it, for the reader and for `view`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, Message
from everturn.sources.codex.calls import (
    CONTEXT,
    NOTIFICATION,
    PROMPT,
    call_start,
    guess_speaker,
    patch_of_script,
    prompt_blocks,
    provider_call,
    read_output,
)
from everturn.sources.codex.records import (
    CALLS,
    DONE_BY_PROVIDER,
    ENDS,
    EVENT,
    ITEM,
    NOTICES,
    OUTPUTS,
    CodexRecord,
    is_silent,
)
from everturn.sources.toolkit.line_reader import Rec, RecordPlace, listing, mapping
from everturn.sources.toolkit.values import (
    MessageSpeaker,
    call_text,
    count,
    milliseconds,
    strings,
    text_blocks,
    unknown_block,
    word,
)

_UNKNOWN = MessageSpeaker("system", "unknown", False, "meta")
_NOTICE = MessageSpeaker("system", "notice", False, "meta")
_ANSWER = MessageSpeaker("model", "text", False, "answer")
_TEXTS = frozenset(("input_text", "output_text", "text", "summary_text", "reasoning_text"))

#: Fields of a notice that mean nothing to a reader.
_SKIPPED_FIELDS = ("type", "turn_id", "id", "thread_id", "codex_error_info", "encrypted_content")


def build(record: CodexRecord, place: RecordPlace) -> Message | None:
    """Return the message of a record; None when its type is known to hold none."""
    if not record.is_known:
        return unknown(record, place)
    if is_silent(record):
        return None
    if record.outer == ITEM:
        return _item(record, place)
    if record.outer == EVENT:
        return _event(record, place)
    if record.outer == "compacted":
        blocks = text_blocks(word(record.item.get("message")), "summary")
        return _message(record, place, "system", MessageSpeaker("system", "compaction", False, "summary"), blocks)
    return _letter(record, place)


def unknown(record: CodexRecord, place: RecordPlace) -> Message:
    """Return the message of a record of unknown type: its text is kept, shown and indexed."""
    text = "\n".join(strings(record.item, "type", "timestamp", "id"))
    blocks = (Block("unknown", text, "meta"),) if text else ()
    return _message(record, place, "system", _UNKNOWN, blocks)


def texts_in(item: Rec) -> list[str]:
    """Return the texts of an item's content, or of a reasoning's summary and content."""
    return [text for part in (item.get("summary"), item.get("content")) for text in _texts(part)]


# --- items ---
def _item(record: CodexRecord, place: RecordPlace) -> Message:
    kind, item = record.kind, record.item
    if kind == "message":
        return _ROLES[item["role"]](record, place)
    if kind == "reasoning":
        texts = "\n\n".join(texts_in(item))
        return _message(record, place, "assistant", _ANSWER, (Block("thinking", texts, "thinking", data=item),))
    if kind in CALLS:
        start = call_start(kind, item)
        block = Block("call", call_text(start), "tool_input", call=start, data=item)
        return _message(record, place, "assistant", _ANSWER, (block,))
    if kind in DONE_BY_PROVIDER:
        return _message(record, place, "assistant", _ANSWER, _provider_call_blocks(record, place))
    if kind in OUTPUTS:
        text, end = read_output(item)
        result = Block("result", text, "tool_output", result=end, data=item)
        return _message(record, place, "tool", MessageSpeaker("tool", "result", False, "tool_output"), (result,))
    return _letter(record, place)


def _provider_call_blocks(record: CodexRecord, place: RecordPlace) -> tuple[Block, ...]:
    item = record.item
    call_id = word(item.get("call_id")) or word(item.get("id")) or f"{record.kind}@{place.start}"
    start = provider_call(record.kind, item, call_id)
    call = Block("call", call_text(start), "tool_input", call=start, data=_without_result(item))
    status = word(item.get("status"))
    if status not in ("completed", "failed", "incomplete"):
        return (call,)
    failed = status != "completed"
    return call, Block("result", "", "tool_output", result=CallEnd(call_id, failed, "other" if failed else ""))


def _without_result(item: Rec) -> Rec:
    """Leave an image in its record: it may be megabytes of base64."""
    return {key: value for key, value in item.items() if key != "result"}


def _user(record: CodexRecord, place: RecordPlace) -> Message:
    content = record.item.get("content")
    speakers = [guess_speaker(text) for text in _texts(content)]
    speaker = next((one for one in speakers if one.origin == "human"), speakers[0] if speakers else None)
    if speaker is None:
        speaker = PROMPT if listing(content) else CONTEXT  # an image without text
    blocks = tuple(block for part in _parts(content) for block in _user_blocks(part, speaker))
    return _message(record, place, "user", speaker, blocks)


def _user_blocks(part: Any, found: MessageSpeaker) -> tuple[Block, ...]:
    if (text := _text_of(part)) is None:
        return (_wordless_block(part),)
    own = guess_speaker(text)
    return prompt_blocks(text, own if found.origin == "human" else found)


def _assistant(record: CodexRecord, place: RecordPlace) -> Message:
    return _message(record, place, "assistant", _ANSWER, _blocks(record.item.get("content"), "answer"))


def _developer(record: CodexRecord, place: RecordPlace) -> Message:
    return _message(record, place, "system", CONTEXT, _blocks(record.item.get("content"), "meta"))


_ROLES: dict[str, Callable[[CodexRecord, RecordPlace], Message]] = {
    "user": _user, "assistant": _assistant, "developer": _developer, "system": _developer,
}  # fmt: skip


def _letter(record: CodexRecord, place: RecordPlace) -> Message:
    """Return the message that another agent sent."""
    text = "\n".join(strings(record.item.get("content"), "type"))
    return _message(record, place, "user", NOTIFICATION, text_blocks(text, "meta"))


# --- events ---
def _event(record: CodexRecord, place: RecordPlace) -> Message | None:
    kind, item = record.kind, record.item
    if kind == "token_count":
        return _message(record, place, "assistant", MessageSpeaker("model", "notice", False, "meta"), ())
    if kind == "turn_aborted":
        interrupt = MessageSpeaker("system", "interrupt", False, "meta")
        return _message(
            record, place, "system", interrupt, text_blocks(word(item.get("reason")), "meta"), _duration(item)
        )
    if kind in ENDS:
        lasted = _duration(item)
        return _message(record, place, "system", _NOTICE, (), lasted) if lasted is not None else None
    if kind in NOTICES:
        return _notice(record, place)
    if kind == "patch_apply_end":
        return _message(record, place, "assistant", _ANSWER, _patch_blocks(item))
    return _mirror(record, place)


def _patch_blocks(item: Rec) -> tuple[Block, ...]:
    start, end = patch_of_script(item)
    said = "\n".join(text for name in ("stdout", "stderr") if (text := word(item.get(name))))
    return (
        Block("call", call_text(start), "tool_input", call=start),
        Block("result", said, "tool_output", result=end, data=item),
    )


def _notice(record: CodexRecord, place: RecordPlace) -> Message:
    if record.kind == "item_completed":
        text = "\n".join(strings(record.item.get("item"), *_SKIPPED_FIELDS))
        return _message(record, place, "assistant", _ANSWER, text_blocks(text, "answer"))
    text = "\n".join(strings(record.item, *_SKIPPED_FIELDS))
    if record.kind == "thread_rolled_back":
        n = count(record.item.get("num_turns")) or 0
        message = _message(record, place, "system", _NOTICE, text_blocks(f"{n} turns rolled back", "meta"))
        return replace(message, takes_back=n)
    return _message(
        record, place, "assistant" if record.kind == "error" else "system", _NOTICE, text_blocks(text, "meta")
    )


def _mirror(record: CodexRecord, place: RecordPlace) -> Message:
    """Return the message of an event that repeats an item, in case the item was never written."""
    if record.kind == "user_message":
        text = word(record.item.get("message"))
        speaker = guess_speaker(text)
        return _message(record, place, "user", speaker, prompt_blocks(text, speaker))
    if record.kind == "agent_message":
        return _message(record, place, "assistant", _ANSWER, text_blocks(word(record.item.get("message")), "answer"))
    thought = Block("thinking", word(record.item.get("text")), "thinking")
    return _message(record, place, "assistant", _ANSWER, (thought,))


def _duration(item: Rec) -> int | None:
    return count(item.get("duration_ms"))


# blocks -------------------------------------------------------------------------------------------------------------
def _parts(content: Any) -> list[Any]:
    return [content] if isinstance(content, str) else listing(content)


def _text_of(part: Any) -> str | None:
    if isinstance(part, dict):
        part = part.get("text") if word(part.get("type")) in _TEXTS else None
    return part if isinstance(part, str) else None


def _texts(content: Any) -> list[str]:
    return [text for part in _parts(content) if (text := _text_of(part))]


def _blocks(content: Any, field: str) -> tuple[Block, ...]:
    blocks = []
    for part in _parts(content):
        text = _text_of(part)
        blocks.append(_wordless_block(part) if text is None else Block("text", text, field))
    return tuple(blocks)


def _wordless_block(part: Any) -> Block:
    kind = mapping(part).get("type")
    if kind in ("input_image", "image"):
        return Block("image", data=part)
    if kind == "input_file":
        return Block("document", data=part)
    return unknown_block(part)


def _message(
    record: CodexRecord,
    place: RecordPlace,
    role: str,
    speaker: MessageSpeaker,
    blocks: tuple[Block, ...],
    lasted: int | None = None,
) -> Message:
    at, precision = milliseconds(record.at)
    return Message(
        role, speaker.origin, speaker.kind, at, precision, word(record.item.get("id")) if record.outer == ITEM else "",
        blocks=blocks, starts_turn=speaker.starts_turn, start=place.start, size=place.size, reported_ms=lasted,
    )  # fmt: skip
