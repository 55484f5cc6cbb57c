"""Builds the message of one record without the records around it, for the reader and for `view`, which shows any record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import DecodeError, Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, Message, TokenUsage, fingerprint
from everturn.sources.claude_code.blocks import (
    CONTEXT,
    NOTICE,
    NOTIFICATION,
    PROMPT,
    QUEUED,
    UNKNOWN,
    ClaudeBlockPlace,
    blocks_of,
    find_speaker,
    guess_speaker,
    is_helper,
    origin_kind,
    text_blocks,
    texts_of,
)
from everturn.sources.claude_code.records import (
    KNOWN,
    OPERATIONS,
    PROGRESS,
    PROMPTS,
    ClaudeBody,
    ClaudeRecord,
    ClaudeTokens,
    all_fields,
    attachment_kind,
    body,
    decode,
    nested_record,
    revive,
    text_without_envelope,
)
from everturn.sources.toolkit.json_document import decode_item
from everturn.sources.toolkit.json_lines import JsonLines
from everturn.sources.toolkit.line_reader import listing, mapping
from everturn.sources.toolkit.values import MessageSpeaker, count, has_results, milliseconds, plain, strings, word


class ClaudeRecordPlace(Struct, gc=False):
    """The bytes of a record, their offset, and what the file tells about it."""

    raw: bytes | memoryview
    start: int = 0
    session: str = ""  # that subagents belong to
    helper: bool = False  # the record is of an agent that works for another one


_SYSTEM = {
    "away_summary": MessageSpeaker("system", "summary", False, "summary"),
    "compact_boundary": MessageSpeaker("system", "compaction", False, "meta"),
}
_ANSWER = MessageSpeaker("model", "text", False, "answer")
_RESULT = MessageSpeaker("tool", "result", False, "tool_output")
_TITLE = MessageSpeaker("system", "summary", False, "meta")


def build(record: ClaudeRecord, place: ClaudeRecordPlace) -> Message | None:
    """Return the message of a record; None when its type is known to hold none."""
    kind = record.type or ""
    if kind in KNOWN:
        return None
    made = _BUILDERS.get(kind)
    return made(record, place) if made else unknown(record, place)


def unknown(record: ClaudeRecord, place: ClaudeRecordPlace) -> Message:
    """Return the message of a record of unknown type: its text is kept, shown and indexed."""
    text = text_without_envelope(all_fields(record, place.raw))
    return _message(record, place, "system", UNKNOWN, (Block("unknown", text, "meta"),) if text else ())


def queued_message(record: ClaudeRecord, place: ClaudeRecordPlace) -> Message | None:
    """Return the message of a queued prompt that was put into the running turn; None without text."""
    content = record.content
    texts = texts_in(content)
    if not any(texts):
        return None
    speaker = _queued_speaker(texts, None)
    return _message(record, place, "user", speaker, _content_blocks(content, ClaudeBlockPlace(speaker.field)))


def queued_texts(attachment: Any) -> list[str]:
    """Return the texts of a `queued_command` attachment."""
    return texts_in(attachment.get("prompt")) if isinstance(attachment, dict) else []


def texts_in(content: Any) -> list[str]:
    """Return the texts of a content: a string or a list of blocks."""
    return [content] if isinstance(content, str) else texts_of(content) if isinstance(content, list) else []


# --- one builder per record type ---
def _assistant(record: ClaudeRecord, place: ClaudeRecordPlace) -> Message:
    message = body(record)
    content = message.content
    if not isinstance(content, (str, list)):
        return unknown(record, place)
    speaker = NOTICE if message.model == "<synthetic>" or record.is_api_error_message else _ANSWER
    blocks = _content_blocks(content, ClaudeBlockPlace(speaker.field, message=record.uuid or ""))
    return _message(record, place, "assistant", speaker, blocks, message)


def _user(record: ClaudeRecord, place: ClaudeRecordPlace) -> Message:
    content = body(record).content
    helper = place.helper or is_helper(record)
    if isinstance(content, str):
        speaker = find_speaker(record, [content], helper) if content else CONTEXT
        return _message(record, place, "user", speaker, text_blocks(content, speaker.field))
    if not isinstance(content, list):
        return unknown(record, place)
    if has_results(content):
        caller = record.source_tool_assistant_uuid or ""
        where = ClaudeBlockPlace("meta", True, record.tool_use_result, place.session, caller)
        return _message(record, place, "tool", _RESULT, blocks_of(content, where))
    texts = texts_of(content)
    speaker = find_speaker(record, texts, helper) if content else CONTEXT
    mixed = len(texts) > 1 and speaker.field == "prompt"
    return _message(record, place, "user", speaker, blocks_of(content, ClaudeBlockPlace(speaker.field, mixed)))


def _system(record: ClaudeRecord, place: ClaudeRecordPlace) -> Message:
    speaker = _SYSTEM.get(record.subtype or "", NOTICE)
    text = record.content if isinstance(record.content, str) else text_without_envelope(all_fields(record, place.raw))
    if record.subtype in _DETAILS:
        text = "\n".join(filter(None, (text, _DETAILS[record.subtype](all_fields(record, place.raw)))))
    if record.subtype == "local_command":
        guess = guess_speaker(text)
        speaker = guess if guess is not PROMPT else speaker
    return _message(record, place, "system", speaker, text_blocks(text, speaker.field))


def _compaction_details(fields: dict[str, Any]) -> str:
    """Return what started a compaction and how many tokens the context had, as a line."""
    noted = mapping(fields.get("compactMetadata"))
    trigger, tokens = plain(noted.get("trigger")), count(noted.get("preTokens"))
    told = [f"trigger: {trigger}" if trigger != "?" else "", f"tokens before: {tokens:,}" if tokens is not None else ""]
    return ", ".join(filter(None, told))


def _hook_details(fields: dict[str, Any]) -> str:
    """Return how many hooks ran and failed at the end of a turn, and whether they kept it going, as a line."""
    hooks, errors = count(fields.get("hookCount")), len(listing(fields.get("hookErrors")))
    kept = fields.get("preventedContinuation") is True
    return ", ".join(
        [f"hooks: {hooks}"] * (hooks is not None)
        + [f"failed: {errors}"] * bool(errors)
        + ["the hooks prevented the agent from going on"] * kept
    )


_DETAILS = {"compact_boundary": _compaction_details, "stop_hook_summary": _hook_details}


def _attachment(record: ClaudeRecord, place: ClaudeRecordPlace) -> Message:
    kind = attachment_kind(record)
    if kind == "queued_command":
        texts = queued_texts(record.attachment)
        speaker = _queued_speaker(texts, record.attachment)
        if speaker.origin == "human" and (place.helper or is_helper(record)):
            speaker = speaker._replace(origin="agent")
        blocks = _content_blocks(record.attachment.get("prompt"), ClaudeBlockPlace(speaker.field))
        return _message(record, place, "user", speaker, blocks)
    reports = "hook" in kind and kind != "hook_additional_context"
    text = "\n".join(strings(record.attachment, "type", "toolUseID"))
    role, speaker = ("system", NOTICE) if reports else ("user", CONTEXT)
    return _message(record, place, role, speaker, text_blocks(text, "meta"))


def _summary(record: ClaudeRecord, place: ClaudeRecordPlace) -> Message:
    return _message(record, place, "system", _TITLE, text_blocks(record.summary or "", "meta"))


def _progress(record: ClaudeRecord, place: ClaudeRecordPlace) -> Message | None:
    progress = record.data
    if progress is None or progress.type not in PROGRESS:
        return unknown(record, place)
    if progress.type != "agent_progress":
        return None
    nested = nested_record(progress)
    if nested is None or nested.type not in ("user", "assistant"):
        return None
    return build(nested, replace(place, helper=True))


_BUILDERS: dict[str, Callable[[ClaudeRecord, ClaudeRecordPlace], Message | None]] = {
    "user": _user,
    "assistant": _assistant,
    "system": _system,
    "attachment": _attachment,
    "summary": _summary,
    "progress": _progress,
}


def _queued_speaker(texts: list[str], attachment: Any) -> MessageSpeaker:
    mode = attachment.get("commandMode") if isinstance(attachment, dict) else None
    kind = origin_kind(attachment.get("origin")) if isinstance(attachment, dict) else ""
    speaker = guess_speaker(texts[0]) if texts else PROMPT
    if mode == "task-notification" or kind not in ("", "human"):
        return NOTIFICATION
    return QUEUED if speaker.origin == "human" or kind == "human" else speaker


def _content_blocks(content: Any, where: ClaudeBlockPlace) -> tuple[Block, ...]:
    if isinstance(content, str):
        return text_blocks(content, where.field)
    return blocks_of(content, where) if isinstance(content, list) else ()


def _message(
    record: ClaudeRecord,
    place: ClaudeRecordPlace,
    role: str,
    speaker: MessageSpeaker,
    blocks: tuple[Block, ...],
    answer: ClaudeBody | None = None,
) -> Message:
    at, precision = milliseconds(record.timestamp)
    uuid = record.uuid or ""
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
        fingerprint(uuid, str(record.timestamp or "")) if uuid else None,
        count(record.duration_ms) if record.subtype == "turn_duration" else None,
    )


def _usage(tokens: ClaudeTokens | None) -> TokenUsage | None:
    if tokens is None:
        return None
    writes = tokens.cache_creation
    return TokenUsage(
        count(tokens.input_tokens) or 0,
        count(tokens.output_tokens) or 0,
        count(tokens.cache_read_input_tokens) or 0,
        count(tokens.cache_creation_input_tokens) or 0,
        count(writes.ephemeral_1h_input_tokens) or 0 if writes is not None else 0,
    )


# --- any record by itself ---


def view(record: bytes) -> Message | None:
    """Return the message of a record by itself; None when it holds none. Anything but a record is a tool's output."""
    if record.startswith(PROMPTS):
        return _prompts(record)
    decoded = _decode_any(record)
    if decoded is None:
        return output(record)
    if decoded.type == "queue-operation":
        of_operation = queued_message if decoded.operation in OPERATIONS else unknown
        return of_operation(decoded, ClaudeRecordPlace(record))
    if decoded.type is None and "agentType" in all_fields(decoded, record):
        return about_agent(record)
    return build(decoded, ClaudeRecordPlace(record, session=decoded.session_id or ""))


def _decode_any(record: bytes) -> ClaudeRecord | None:
    if b"\n" in record.rstrip():
        return _decode_multiline(record)
    try:
        return decode(record)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        pass
    found = [value for _, _, value, _ in JsonLines(decode, revive).split(record, 0, last=True)]
    return found[0] if len(found) == 1 else None


def _decode_multiline(record: bytes) -> ClaudeRecord | None:
    """Decode a record that spans lines, as in a document; None for any other text, which a tool printed."""
    decoded, _ = decode_element(record)
    return decoded if decoded is not None and decoded.type is not None and decoded.timestamp is not None else None


def decode_element(raw: bytes) -> tuple[ClaudeRecord | None, str]:
    """Decode one element; return the record and what is wrong with it."""
    try:
        return decode(raw), ""
    except (DecodeError, UnicodeDecodeError, RecursionError):
        pass
    value, trouble = decode_item(raw)
    if isinstance(value, dict):
        try:
            return revive(value), trouble
        except RecursionError:
            return None, "too_deep"
    return None, trouble or "not_an_object"


def output(raw: bytes, start: int = 0) -> Message:
    """Return the message of a tool's output."""
    block = Block("text", raw.decode("utf-8", "replace"), "tool_output")
    return Message("tool", "tool", "output", blocks=(block,), start=start, size=len(raw))


def about_agent(raw: bytes, start: int = 0) -> Message:
    """Return the message of the client's notes on a subagent."""
    block = Block("text", _notes_text(raw), "meta")
    return Message("system", "system", "context", blocks=(block,), start=start, size=len(raw))


def _prompts(raw: bytes) -> Message:
    """Return the message of lines of the prompt history: what was typed and pasted."""
    texts: list[str] = []
    for line in raw.splitlines():
        entry = mapping(decode_item(line)[0])
        pasted = mapping(entry.get("pastedContents")).values()
        texts += [word(entry.get("display")), *(word(mapping(one).get("content")) for one in pasted)]
    block = Block("text", "\n".join(filter(None, texts)), "meta")
    return Message("system", "system", "context", blocks=(block,), size=len(raw))


def _notes_text(raw: bytes) -> str:
    try:
        found: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return raw.decode("utf-8", "replace")
    return "\n".join(strings(found))
