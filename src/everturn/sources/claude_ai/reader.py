"""Recognise, unpack and read claude.ai exports.

`unpack` writes each conversation as lines: `{"conversation": …}` first, then `{"message": …}` for each message of the live
path. `view` converts one line into a message, independently of the lines around it. A message holds calls together with
their results. Few have ids; a result without one answers the call before it.

Messages are in the order in which they were written. Where they name their parents, an edit or a retry shows as a branch: the
path to the last message (or to the one named as current) is live, the others become sessions of their own, `<id>/branch-1`
and so on. Fields that change whenever a conversation grows are left out of the first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from everturn.model.conversation import Block, Message, fingerprint
from everturn.sources.contract import Member, SourceCandidate
from everturn.sources.toolkit.chat_export import (
    Dialect,
    ExportReader,
    ExportReaderState,
    find_exports,
    line,
    members,
    read_export_head,
    threads,
)
from everturn.sources.toolkit.line_reader import Rec, SessionTally, listing, mapping, single_record
from everturn.sources.toolkit.values import (
    blocks_of,
    call_block,
    digest,
    milliseconds,
    result_block,
    strings,
    text_blocks,
    unknown_message,
    word,
)

_MESSAGES = re.compile(rb'"chat_messages"\s*:\s*\[')
_SENDER = re.compile(rb'"sender"\s*:\s*"(?:human|assistant)"')
_EMPTY = re.compile(rb'"chat_messages"\s*:\s*\[\s*\]')
_CHANGING = ("chat_messages", "updated_at", "current_leaf_message_uuid")

#: Content blocks without text for human or model.
_SILENT = frozenset(("token_budget", "flag"))
_NOT_TEXT = ("start_timestamp", "stop_timestamp", "type", "uuid", "flags", "citations")


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    try:
        start = read_export_head(path, head)
    except OSError:
        return None
    match = _MESSAGES.search(start)
    is_export = match and (_SENDER.search(start, match.start()) or _EMPTY.match(start, match.start()))
    return SourceCandidate(path, "container") if is_export else None


find = partial(find_exports, sniff)


def reader(candidate: SourceCandidate, state: bytes) -> ExportReader:
    return ExportReader(Dialect(_build, _record_type, _learn_conversation, _fill_model), candidate, state)


def view(record: bytes) -> Message | None:
    return _build(value) if (value := single_record(record)) is not None else None


# --- messages ---
def _build(record: Rec) -> Message | None:
    if isinstance(record.get("conversation"), dict):
        return _conversation_message(record["conversation"])
    message = record.get("message")
    if isinstance(message, dict) and message.get("sender") == "human":
        return _message(message, "user", "human", _prompt_blocks(message))
    if isinstance(message, dict) and message.get("sender") == "assistant":
        return _message(message, "assistant", "model", _answer_blocks(message))
    return unknown_message(record, "uuid")


def _prompt_blocks(message: Rec) -> list[Block]:
    content = [part for part in listing(message.get("content")) if word(mapping(part).get("type")) not in _SILENT]
    blocks = blocks_of(content, "prompt") or blocks_of(message.get("text"), "prompt")
    blocks = [block for block in blocks if block.text or block.kind != "text"]
    for attachment in listing(message.get("attachments")):
        about = mapping(attachment)
        text = "\n".join(strings([about.get("file_name"), about.get("extracted_content")]))
        blocks.append(Block("document", text, "meta", data=attachment))
    for file in listing(message.get("files")) + listing(message.get("files_v2")):
        blocks.append(Block("document", word(mapping(file).get("file_name")), "meta", data=file))
    return blocks


def _answer_blocks(message: Rec) -> list[Block]:
    blocks: list[Block] = []
    waiting: list[str] = []
    for number, part in enumerate(listing(message.get("content"))):
        kind, default_id = word(mapping(part).get("type")), f"{word(message.get('uuid'))}/{number}"
        if kind == "tool_use":
            call = word(part.get("id")) or default_id
            waiting.append(call)
            blocks.append(call_block(call, word(part.get("name")), part.get("input"), part))
        elif kind == "tool_result":
            blocks.append(_tool_result(part, default_id, waiting))
        elif kind not in _SILENT:
            blocks += [block for block in blocks_of(part, "answer") if block.text or block.kind != "text"]
    return blocks or blocks_of(message.get("text"), "answer")


def _tool_result(part: Rec, default_id: str, waiting: list[str]) -> Block:
    call = word(part.get("tool_use_id")) or (waiting[0] if waiting else default_id)
    if call in waiting:
        waiting.remove(call)
    content, failed = part.get("content"), part.get("is_error")
    text = content if isinstance(content, str) else "\n".join(strings(content, *_NOT_TEXT))
    return result_block(call, text, failed if isinstance(failed, bool) else None, part)


def _conversation_message(conversation: Rec) -> Message:
    at, precision = milliseconds(conversation.get("created_at"))
    text = "\n".join(strings(conversation, "uuid", "account", "created_at", "summary"))
    blocks = text_blocks(text, "meta") + text_blocks(word(conversation.get("summary")), "summary")
    identity = fingerprint(f"about {word(conversation.get('uuid'))}", word(conversation.get("created_at")))
    return Message("system", "system", "notice", at, precision, blocks=blocks, fingerprint=identity)


def _message(message: Rec, role: str, origin: str, blocks: list[Block]) -> Message:
    at, precision = milliseconds(message.get("created_at"))
    name = word(message.get("uuid"))
    return Message(
        role, origin, "text", at, precision, name, name if origin == "model" else "", word(message.get("model")),
        tuple(blocks), starts_turn=origin == "human",
        fingerprint=fingerprint(name, word(message.get("created_at"))) if name else None,
    )  # fmt: skip


def _learn_conversation(head: Rec, session: SessionTally, state: ExportReaderState) -> None:
    title, summary = word(head.get("name")), word(head.get("summary"))
    session.learn(title=title, title_rank=2 if title else 0, summary=summary)
    state.note = word(head.get("model"))


def _fill_model(message: Message, state: ExportReaderState) -> Message:
    """Give an answer without a model the model of the conversation."""
    return replace(message, model=state.note) if message.origin == "model" and not message.model else message


def _record_type(record: Rec) -> str:
    kind = next((key for key in ("conversation", "message") if key in record), "?")
    sender = word(mapping(record.get("message")).get("sender"))
    return f"message/{sender}" if sender in ("human", "assistant") else kind


# --- unpacking ---
def unpack(candidate: SourceCandidate, path: Path) -> Iterator[Member]:
    return members(path, "chat_messages", list, _split_conversation)


def _split_conversation(conversation: Rec) -> Iterator[Member]:
    messages = conversation["chat_messages"]
    name = word(conversation.get("uuid")) or digest(str(conversation.get("created_at")), str(conversation.get("name")))
    path, branches = _find_threads(conversation, [mapping(message) for message in messages])
    head = {key: value for key, value in conversation.items() if key not in _CHANGING}
    yield Member(name, _lines(head, path, messages), native_id=name)
    for number, branch in enumerate(branches, 1):
        child = f"{name}/branch-{number}"
        head = {"name": conversation.get("name"), "branch": number}
        yield Member(child, _lines(head, branch, messages), "sidechain", child, name)


def _find_threads(conversation: Rec, messages: list[Rec]) -> tuple[list[int], list[list[int]]]:
    """Return the indexes of the messages on the live path, and of those on each other branch."""
    indexes = {uuid: index for index, message in enumerate(messages) if (uuid := word(message.get("uuid")))}
    above = [word(message.get("parent_message_uuid")) for message in messages]
    if not any(parent in indexes for parent in above):
        return list(range(len(messages))), []
    parents = {index: indexes.get(parent) for index, parent in enumerate(above)}
    return threads(parents, indexes.get(word(conversation.get("current_leaf_message_uuid")), len(messages) - 1))


def _lines(head: Rec, path: list[int], messages: list[object]) -> Iterator[bytes]:
    yield line({"conversation": head})
    for index in path:
        yield line({"message": messages[index]})
