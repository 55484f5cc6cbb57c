"""One record → one message, without knowing the records around it: used by the reader and by `view` alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from everturn.model.conversation import Block, Message, TokenUsage, fingerprint
from everturn.sources.claude_code import blocks as who
from everturn.sources.claude_code.blocks import (
    ClaudeBlockPlace,
    ClaudeSpeaker,
    blocks_of,
    is_result,
    text_blocks,
    texts_of,
)
from everturn.sources.claude_code.records import (
    KNOWN,
    PROGRESS,
    ClaudeBody,
    ClaudeRecord,
    ClaudeTokens,
    all_fields,
    attachment_kind,
    body,
    count,
    milliseconds,
    nested_record,
    own_words,
    word,
)
from everturn.sources.toolkit.values import strings


class ClaudeRecordPlace(NamedTuple):
    """Where a record stands."""

    raw: bytes | memoryview
    start: int = 0
    session: str = ""  # that subagents hang on
    helper: bool = False  # the record is of an agent that takes its orders from another one


_SYSTEM = {
    "away_summary": ClaudeSpeaker("system", "summary", False, "summary"),
    "compact_boundary": ClaudeSpeaker("system", "compaction", False, "meta"),
}
_ANSWER = ClaudeSpeaker("model", "text", False, "answer")
_RESULT = ClaudeSpeaker("tool", "result", False, "tool_output")
_TITLE = ClaudeSpeaker("system", "summary", False, "meta")


def build(event: ClaudeRecord, place: ClaudeRecordPlace) -> Message | None:
    """The message of a record; None when it is known to hold none."""
    kind = event.type or ""
    if kind in KNOWN:
        return None
    made = _BUILDERS.get(kind)
    return made(event, place) if made else unknown(event, place)


def unknown(event: ClaudeRecord, place: ClaudeRecordPlace) -> Message:
    """A message of a kind this version does not know: its words are kept, shown and indexed."""
    text = own_words(all_fields(event, place.raw))
    return _message(event, place, "system", who.UNKNOWN, (Block("unknown", text, "meta"),) if text else ())


def queued_message(event: ClaudeRecord, place: ClaudeRecordPlace) -> Message | None:
    """The message of a queue record whose words were put into the running turn."""
    content = event.content
    texts = texts_in(content)
    if not any(texts):
        return None
    found = _queued_speaker(event, texts, None)
    return _message(event, place, "user", found, _content_blocks(content, ClaudeBlockPlace(found.field)))


def queued_texts(attachment: Any) -> list[str]:
    """The words of a `queued_command` attachment."""
    return texts_in(attachment.get("prompt")) if isinstance(attachment, dict) else []


def texts_in(content: Any) -> list[str]:
    """The texts of a content, which is a string or a list of blocks."""
    return [content] if isinstance(content, str) else texts_of(content) if isinstance(content, list) else []


# what each type becomes ---------------------------------------------------------------------------------------------
def _assistant(event: ClaudeRecord, place: ClaudeRecordPlace) -> Message:
    message = body(event)
    content = message.content
    if not isinstance(content, (str, list)):
        return unknown(event, place)
    speaker = who.NOTICE if message.model == "<synthetic>" or event.is_api_error_message else _ANSWER
    found = _content_blocks(content, ClaudeBlockPlace(speaker.field))
    return _message(event, place, "assistant", speaker, found, message)


def _user(event: ClaudeRecord, place: ClaudeRecordPlace) -> Message:
    content = body(event).content
    helper = place.helper or who.is_helper(event)
    if isinstance(content, str):
        found = who.speaker(event, [content], helper) if content else who.CONTEXT
        return _message(event, place, "user", found, text_blocks(content, found.field))
    if not isinstance(content, list):
        return unknown(event, place)
    if any(map(is_result, content)):
        where = ClaudeBlockPlace("meta", True, event.tool_use_result, place.session)
        return _message(event, place, "tool", _RESULT, blocks_of(content, where))
    texts = texts_of(content)
    found = who.speaker(event, texts, helper) if content else who.CONTEXT
    mixed = len(texts) > 1 and found.field == "prompt"
    return _message(event, place, "user", found, blocks_of(content, ClaudeBlockPlace(found.field, mixed)))


def _system(event: ClaudeRecord, place: ClaudeRecordPlace) -> Message:
    speaker = _SYSTEM.get(event.subtype or "", who.NOTICE)
    text = event.content if isinstance(event.content, str) else own_words(all_fields(event, place.raw))
    if event.subtype == "local_command":
        found = who.guess_speaker(text)
        speaker = found if found is not who.PROMPT else speaker
    return _message(event, place, "system", speaker, text_blocks(text, speaker.field))


def _attachment(event: ClaudeRecord, place: ClaudeRecordPlace) -> Message:
    kind = attachment_kind(event)
    if kind == "queued_command":
        texts = queued_texts(event.attachment)
        found = _queued_speaker(event, texts, event.attachment)
        if place.helper or who.is_helper(event):
            found = found._replace(origin="agent" if found.origin == "human" else found.origin)
        return _message(
            event, place, "user", found, _content_blocks(event.attachment.get("prompt"), ClaudeBlockPlace(found.field))
        )
    reports = "hook" in kind and kind != "hook_additional_context"
    text = "\n".join(strings(event.attachment, "type", "toolUseID"))
    return _message(
        event, place, "system" if reports else "user", who.NOTICE if reports else who.CONTEXT, text_blocks(text, "meta")
    )


def _summary(event: ClaudeRecord, place: ClaudeRecordPlace) -> Message:
    return _message(event, place, "system", _TITLE, text_blocks(event.summary or "", "meta"))


def _progress(event: ClaudeRecord, place: ClaudeRecordPlace) -> Message | None:
    progress = event.data
    if progress is None or progress.type not in PROGRESS:
        return unknown(event, place)
    if progress.type != "agent_progress":
        return None
    said_there = nested_record(progress)
    if said_there is None or said_there.type not in ("user", "assistant"):
        return None
    return build(said_there, place._replace(helper=True))


_BUILDERS: dict[str, Callable[[ClaudeRecord, ClaudeRecordPlace], Message | None]] = {
    "user": _user,
    "assistant": _assistant,
    "system": _system,
    "attachment": _attachment,
    "summary": _summary,
    "progress": _progress,
}


def _queued_speaker(event: ClaudeRecord, texts: list[str], attachment: Any) -> ClaudeSpeaker:
    mode = attachment.get("commandMode") if isinstance(attachment, dict) else None
    kind = who.origin_kind(attachment.get("origin")) if isinstance(attachment, dict) else ""
    found = who.guess_speaker(texts[0]) if texts else who.PROMPT
    if mode == "task-notification" or kind not in ("", "human"):
        return who.NOTIFICATION
    return who.QUEUED if found.origin == "human" or kind == "human" else found


def _content_blocks(content: Any, where: ClaudeBlockPlace) -> tuple[Block, ...]:
    if isinstance(content, str):
        return text_blocks(content, where.field)
    return blocks_of(content, where) if isinstance(content, list) else ()


def _message(
    event: ClaudeRecord,
    place: ClaudeRecordPlace,
    role: str,
    speaker: ClaudeSpeaker,
    blocks: tuple[Block, ...],
    answer: ClaudeBody | None = None,
) -> Message:
    at, precision = milliseconds(event.timestamp)
    uuid = event.uuid or ""
    return Message(
        role,
        speaker.origin,
        speaker.kind,
        at,
        precision,
        uuid,
        word(answer.id) if answer is not None else "",
        word(answer.model) if answer is not None else "",
        blocks,
        _usage(answer.usage) if answer is not None else None,
        speaker.starts_turn,
        place.start,
        len(place.raw),
        "exact",
        fingerprint(uuid, str(event.timestamp or "")) if uuid else None,
        count(event.duration_ms) if event.subtype == "turn_duration" else None,
        (event.parent_uuid or "") if speaker.starts_turn else "",
    )


def _usage(tokens: ClaudeTokens | None) -> TokenUsage | None:
    if tokens is None:
        return None
    kept = tokens.cache_creation
    return TokenUsage(
        count(tokens.input_tokens) or 0,
        count(tokens.output_tokens) or 0,
        count(tokens.cache_read_input_tokens) or 0,
        count(tokens.cache_creation_input_tokens) or 0,
        count(kept.ephemeral_1h_input_tokens) or 0 if kept is not None else 0,
    )
