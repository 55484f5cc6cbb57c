"""One line → one message, without knowing the lines around it: used by the reader and by `view` alike.

Calls and their results stand in one message. Few have ids; a result without one is of the call before it.
"""

from __future__ import annotations

from typing import Any

from everturn.model.conversation import Block, Message, fingerprint
from everturn.sources.apiblocks import blocks_of, call_block, result_block
from everturn.sources.foreign import milliseconds, strings, word
from everturn.sources.linewise import Rec, listing, mapping, single_record

#: Content without words for anybody.
_SILENT = frozenset(("token_budget", "flag"))
_TIMES = ("start_timestamp", "stop_timestamp", "type", "uuid", "flags", "citations")


def view(record: bytes) -> Message | None:
    """The message of a line, judged by itself; None when it holds none."""
    found = single_record(record)
    return build(found) if found is not None else None


def build(record: Rec) -> Message | None:
    """The message of a line; None when it is known to hold none."""
    if isinstance(record.get("conversation"), dict):
        return _conversation_message(record["conversation"])
    message = record.get("message")
    if isinstance(message, dict) and message.get("sender") == "human":
        return _prompt(message)
    if isinstance(message, dict) and message.get("sender") == "assistant":
        return _message(message, "assistant", "model", _answer(message))
    text = "\n".join(strings(record, "uuid"))
    return Message("system", "system", "unknown", blocks=(Block("unknown", text, "meta"),) if text else ())


def _prompt(message: Rec) -> Message:
    content = [part for part in listing(message.get("content")) if word(mapping(part).get("type")) not in _SILENT]
    blocks = blocks_of(content, "prompt") or blocks_of(message.get("text"), "prompt")
    blocks = [block for block in blocks if block.text or block.kind != "text"]
    for attached in listing(message.get("attachments")):
        words = "\n".join(strings([mapping(attached).get("file_name"), mapping(attached).get("extracted_content")]))
        blocks.append(Block("document", words, "meta", data=attached))
    for file in listing(message.get("files")) + listing(message.get("files_v2")):
        blocks.append(Block("document", word(mapping(file).get("file_name")), "meta", data=file))
    return _message(message, "user", "human", blocks)


def _answer(message: Rec) -> list[Block]:
    found: list[Block] = []
    waiting: list[str] = []
    for place, part in enumerate(listing(message.get("content"))):
        kind = word(mapping(part).get("type"))
        if kind == "tool_use":
            call = word(part.get("id")) or f"{word(message.get('uuid'))}/{place}"
            waiting.append(call)
            found.append(call_block(call, word(part.get("name")), part.get("input"), part))
        elif kind == "tool_result":
            found.append(_tool_result(message, part, place, waiting))
        elif kind not in _SILENT:
            found += [block for block in blocks_of(part, "answer") if block.text or block.kind != "text"]
    return found or blocks_of(message.get("text"), "answer")


def _tool_result(message: Rec, part: Rec, place: int, waiting: list[str]) -> Block:
    told = word(part.get("tool_use_id"))
    call = told or (waiting[0] if waiting else f"{word(message.get('uuid'))}/{place}")
    if call in waiting:
        waiting.remove(call)
    failed = part.get("is_error")
    return result_block(call, _content_text(part.get("content")), failed if isinstance(failed, bool) else None, part)


def _content_text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(strings(content, *_TIMES))


def _conversation_message(conversation: Rec) -> Message:
    at, precision = milliseconds(conversation.get("created_at"))
    text = "\n".join(strings(conversation, "uuid", "account", "created_at", "summary"))
    summary = word(conversation.get("summary"))
    blocks = [Block("text", words, field) for words, field in ((text, "meta"), (summary, "summary")) if words]
    prints = fingerprint(f"about {word(conversation.get('uuid'))}", word(conversation.get("created_at")))
    return Message("system", "system", "notice", at, precision, blocks=tuple(blocks), fingerprint=prints)


def _message(message: Rec, role: str, origin: str, blocks: list[Block]) -> Message:
    at, precision = milliseconds(message.get("created_at"))
    name = word(message.get("uuid"))
    return Message(
        role, origin, "text", at, precision, name, name if origin == "model" else "", word(message.get("model")),
        tuple(blocks), starts_turn=origin == "human",
        fingerprint=fingerprint(name, word(message.get("created_at"))) if name else None,
    )  # fmt: skip
