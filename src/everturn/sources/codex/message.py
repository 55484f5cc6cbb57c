"""One record → one message, without knowing the records around it: used by the reader and by `view` alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, Message
from everturn.sources.codex.calls import (
    CONTEXT,
    NOTIFICATION,
    PROMPT,
    CodexSpeaker,
    call_start,
    call_text,
    guess_speaker,
    output,
    provided_call,
    text_blocks,
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
from everturn.sources.toolkit.values import count, milliseconds, strings, word

_UNKNOWN = CodexSpeaker("system", "unknown", False, "meta")
_NOTICE = CodexSpeaker("system", "notice", False, "meta")
_ANSWER = CodexSpeaker("model", "text", False, "answer")
_TEXTS = frozenset(("input_text", "output_text", "text", "summary_text", "reasoning_text"))

#: What says nothing to a reader of a notice.
_NOT_WORDS = ("type", "turn_id", "id", "thread_id", "codex_error_info", "encrypted_content")


def build(event: CodexRecord, place: RecordPlace) -> Message | None:
    """The message of a record; None when it is known to hold none."""
    if not event.is_known:
        return unknown(event, place)
    if is_silent(event):
        return None
    if event.outer == ITEM:
        return _item(event, place)
    if event.outer == EVENT:
        return _event(event, place)
    if event.outer == "compacted":
        blocks = _text(word(event.item.get("message")), "summary")
        return _message(event, place, "system", CodexSpeaker("system", "compaction", False, "summary"), blocks)
    return _letter(event, place)


def unknown(event: CodexRecord, place: RecordPlace) -> Message:
    """A message of a kind this version does not know: its words are kept, shown and indexed."""
    text = "\n".join(strings(event.item, "type", "timestamp", "id"))
    blocks = (Block("unknown", text, "meta"),) if text else ()
    return _message(event, place, "system", _UNKNOWN, blocks)


def texts_in(item: Rec) -> list[str]:
    """The texts of an item's content, or of a reasoning's summary and content."""
    return [text for part in (item.get("summary"), item.get("content")) for text in _texts(part)]


# items --------------------------------------------------------------------------------------------------------------
def _item(event: CodexRecord, place: RecordPlace) -> Message:
    kind, item = event.kind, event.item
    if kind == "message":
        return _ROLES[item["role"]](event, place)
    if kind == "reasoning":
        texts = "\n\n".join(texts_in(item))
        return _message(event, place, "assistant", _ANSWER, (Block("thinking", texts, "thinking", data=item),))
    if kind in CALLS:
        start = call_start(kind, item)
        block = Block("call", call_text(start), "tool_input", call=start, data=item)
        return _message(event, place, "assistant", _ANSWER, (block,))
    if kind in DONE_BY_PROVIDER:
        return _message(event, place, "assistant", _ANSWER, _provider_call_blocks(event, place))
    if kind in OUTPUTS:
        text, end = output(item)
        result = Block("result", text, "tool_output", result=end, data=item)
        return _message(event, place, "tool", CodexSpeaker("tool", "result", False, "tool_output"), (result,))
    return _letter(event, place)


def _provider_call_blocks(event: CodexRecord, place: RecordPlace) -> tuple[Block, ...]:
    item = event.item
    call_id = word(item.get("call_id")) or word(item.get("id")) or f"{event.kind}@{place.start}"
    start = provided_call(event.kind, item, call_id)
    call = Block("call", call_text(start), "tool_input", call=start, data=_without_result(item))
    status = word(item.get("status"))
    if status not in ("completed", "failed", "incomplete"):
        return (call,)
    failed = status != "completed"
    return call, Block("result", "", "tool_output", result=CallEnd(call_id, failed, "other" if failed else ""))


def _without_result(item: Rec) -> Rec:
    """An image stays in its record: it may be megabytes of letters."""
    return {key: value for key, value in item.items() if key != "result"}


def _user(event: CodexRecord, place: RecordPlace) -> Message:
    content = event.item.get("content")
    speakers = [guess_speaker(text) for text in _texts(content)]
    found = next((one for one in speakers if one.origin == "human"), speakers[0] if speakers else None)
    if found is None:
        found = PROMPT if listing(content) else CONTEXT  # an image without a word
    blocks = tuple(block for part in _parts(content) for block in _user_blocks(part, found))
    return _message(event, place, "user", found, blocks)


def _user_blocks(part: Any, found: CodexSpeaker) -> tuple[Block, ...]:
    text = _text_of(part)
    if text is None:
        return (_wordless_block(part),)
    own = guess_speaker(text)
    return text_blocks(text, own if found.origin == "human" else found)


def _assistant(event: CodexRecord, place: RecordPlace) -> Message:
    return _message(event, place, "assistant", _ANSWER, _blocks(event.item.get("content"), "answer"))


def _developer(event: CodexRecord, place: RecordPlace) -> Message:
    return _message(event, place, "system", CONTEXT, _blocks(event.item.get("content"), "meta"))


_ROLES: dict[str, Callable[[CodexRecord, RecordPlace], Message]] = {
    "user": _user,
    "assistant": _assistant,
    "developer": _developer,
    "system": _developer,
}


def _letter(event: CodexRecord, place: RecordPlace) -> Message:
    """What another agent sent."""
    text = "\n".join(strings(event.item.get("content"), "type"))
    return _message(event, place, "user", NOTIFICATION, _text(text, "meta"))


# events -------------------------------------------------------------------------------------------------------------
def _event(event: CodexRecord, place: RecordPlace) -> Message | None:
    kind, item = event.kind, event.item
    if kind == "token_count":
        return _message(event, place, "assistant", CodexSpeaker("model", "notice", False, "meta"), ())
    if kind == "turn_aborted":
        interrupt = CodexSpeaker("system", "interrupt", False, "meta")
        return _message(event, place, "system", interrupt, _text(word(item.get("reason")), "meta"), _duration(item))
    if kind in ENDS:
        lasted = _duration(item)
        return _message(event, place, "system", _NOTICE, (), lasted) if lasted is not None else None
    if kind in NOTICES:
        return _notice(event, place)
    return _mirror(event, place)


def _notice(event: CodexRecord, place: RecordPlace) -> Message:
    if event.kind == "item_completed":
        text = "\n".join(strings(event.item.get("item"), *_NOT_WORDS))
        return _message(event, place, "assistant", _ANSWER, _text(text, "answer"))
    text = "\n".join(strings(event.item, *_NOT_WORDS))
    if event.kind == "thread_rolled_back":
        n = count(event.item.get("num_turns")) or 0
        message = _message(event, place, "system", _NOTICE, _text(f"{n} turns rolled back", "meta"))
        return replace(message, takes_back=n)
    return _message(event, place, "assistant" if event.kind == "error" else "system", _NOTICE, _text(text, "meta"))


def _mirror(event: CodexRecord, place: RecordPlace) -> Message:
    """The message of an event that repeats an item, for the case that the item was never written."""
    if event.kind == "user_message":
        text = word(event.item.get("message"))
        found = guess_speaker(text)
        return _message(event, place, "user", found, text_blocks(text, found))
    if event.kind == "agent_message":
        return _message(event, place, "assistant", _ANSWER, _text(word(event.item.get("message")), "answer"))
    thought = Block("thinking", word(event.item.get("text")), "thinking")
    return _message(event, place, "assistant", _ANSWER, (thought,))


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
    return Block("unknown", "\n".join(strings(part, "type")), "meta", data=part)


def _text(text: str, field: str) -> tuple[Block, ...]:
    return (Block("text", text, field),) if text else ()


def _message(
    event: CodexRecord,
    place: RecordPlace,
    role: str,
    speaker: CodexSpeaker,
    blocks: tuple[Block, ...],
    lasted: int | None = None,
) -> Message:
    at, precision = milliseconds(event.at)
    return Message(
        role,
        speaker.origin,
        speaker.kind,
        at,
        precision,
        word(event.item.get("id")) if event.outer == ITEM else "",
        blocks=blocks,
        starts_turn=speaker.starts_turn,
        start=place.start,
        size=place.size,
        reported_ms=lasted,
    )
