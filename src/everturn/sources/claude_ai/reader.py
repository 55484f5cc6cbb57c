"""Reads the lines of one conversation, or of one of its branches.

One line → one message, without knowing the lines around it: used by the reader and by `view` alike.

Calls and their results stand in one message. Few have ids; a result without one is of the call before it.

Conversations as lines: `{"conversation": …}` first, then `{"message": …}` for each message of the live path.

Messages stand in the order in which they were written. Where they name their parents, an edit or a retry shows as a branch:
the path to the last message (or to the one that is named as current) is live, the others are sessions of their own,
`<id>/branch-1` and so on. What changes whenever a conversation grows is left out of the first line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Block, Message, fingerprint
from everturn.sources.contract import Member, SourceCandidate
from everturn.sources.toolkit.blocks import blocks_of, call_block, result_block
from everturn.sources.toolkit.chat_export import Dialect, ExportReader, ExportReaderState, line, members, threads
from everturn.sources.toolkit.line_reader import Rec, SessionTally, listing, mapping, single_record
from everturn.sources.toolkit.values import digest, milliseconds, strings, word

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


def reader(found: SourceCandidate, state: bytes) -> ExportReader:
    """A reader of one conversation."""
    return ExportReader(Dialect(build, _type, _learn_conversation, _fill_model), found, state)


def _learn_conversation(about: Rec, talk: SessionTally, state: ExportReaderState) -> None:
    title, summary = word(about.get("name")), word(about.get("summary"))
    talk.learn(title=title, title_rank=2 if title else 0, summary=summary)
    state.note = word(about.get("model"))


def _fill_model(message: Message, state: ExportReaderState) -> Message:
    """Where the conversation as a whole names a model, it is that of every answer."""
    return replace(message, model=state.note) if message.origin == "model" and not message.model else message


def _type(record: Rec) -> str:
    kind = next((key for key in ("conversation", "message") if key in record), "?")
    sender = word(mapping(record.get("message")).get("sender"))
    return f"message/{sender}" if sender in ("human", "assistant") else kind


_CHANGING = ("chat_messages", "updated_at", "current_leaf_message_uuid")


def unpack(found: SourceCandidate, path: Path) -> Iterator[Member]:
    """Every conversation of an export."""
    return members(path, "chat_messages", list, _members)


def _members(conversation: Rec) -> Iterator[Member]:
    messages = conversation["chat_messages"]
    name = word(conversation.get("uuid")) or digest(str(conversation.get("created_at")), str(conversation.get("name")))
    path, branches = _threads(conversation, [mapping(message) for message in messages])
    about = {key: value for key, value in conversation.items() if key not in _CHANGING}
    yield Member(name, _lines(about, path, messages), native_id=name)
    for number, branch in enumerate(branches, 1):
        child = f"{name}/branch-{number}"
        titled = {"name": conversation.get("name"), "branch": number}
        yield Member(child, _lines(titled, branch, messages), "sidechain", child, name)


def _threads(conversation: Rec, messages: list[Rec]) -> tuple[list[int], list[list[int]]]:
    """The places of the messages that are live, and of those on other branches."""
    places = {word(message.get("uuid")): place for place, message in enumerate(messages) if word(message.get("uuid"))}
    above = [word(message.get("parent_message_uuid")) for message in messages]
    if not any(parent in places for parent in above):
        return list(range(len(messages))), []
    parents = {place: places.get(parent) for place, parent in enumerate(above)}
    leaf = places.get(word(conversation.get("current_leaf_message_uuid")), len(messages) - 1)
    return threads(parents, leaf)


def _lines(about: Rec, path: list[int], messages: list[object]) -> Iterator[bytes]:
    yield line({"conversation": about})
    for place in path:
        yield line({"message": messages[place]})
