"""Recognise, unpack and read ChatGPT exports.

`unpack` writes each conversation as lines: `{"conversation": …}` first, then `{"node": …}` for each message of the live path.
`view` converts one line into a message, independently of the lines around it.

A conversation is a tree: an edit or a retry starts a branch, and `current_node` is the end of the live path. Other branches
become sessions of their own, `<id>/branch-1` and so on. Fields that change whenever a conversation grows (`children`,
`current_node`, `update_time`) are left out, so that lines are only appended; the archive keeps the export beside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

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
    call_block,
    digest,
    milliseconds,
    result_block,
    strings,
    text_blocks,
    unknown_block,
    unknown_message,
    word,
)

_MAPPING = re.compile(rb'"mapping"\s*:\s*\{\s*"[^"]{1,200}"\s*:\s*\{')
_NODE = re.compile(rb'"(?:children|parent)"\s*:')
_CONTEXTS = frozenset(("user_editable_context", "model_editable_context"))
_THOUGHTS = frozenset(("thoughts", "reasoning_recap"))
_TRACEBACK = "Traceback (most recent call last)"
_CHANGING = ("mapping", "current_node", "update_time")


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    try:
        start = read_export_head(path, head)
    except OSError:
        return None
    match = _MAPPING.search(start)
    return SourceCandidate(path, "container") if match and _NODE.search(start, match.start()) else None


find = partial(find_exports, sniff)


def reader(candidate: SourceCandidate, state: bytes) -> ExportReader:
    return ExportReader(Dialect(_build, _record_type, _learn_conversation, _join_response), candidate, state)


def view(record: bytes) -> Message | None:
    return _build(value) if (value := single_record(record)) is not None else None


# --- messages ---
def _build(record: Rec) -> Message | None:
    if isinstance(record.get("conversation"), dict):
        return _conversation_message(record["conversation"])
    node = record.get("node")
    if not isinstance(node, dict):
        return _unknown(record)
    if (message := node.get("message")) is None:
        return None
    if not isinstance(message, dict):
        return _unknown(node)
    return _node_message(node, message, word(record.get("call")))


def _role(message: Any) -> str:
    return word(mapping(mapping(message).get("author")).get("role"))


def _is_call(message: Any) -> bool:
    return _role(message) == "assistant" and word(mapping(message).get("recipient")) not in ("", "all")


def _node_message(node: Rec, message: Rec, call: str) -> Message | None:
    role, content = _role(message), mapping(message.get("content"))
    kind = word(content.get("content_type"))
    if _is_call(message):
        arguments = "\n".join(_texts(content))
        blocks = [call_block(word(node.get("id")), word(message.get("recipient")), arguments, content)]
        return _message(node, message, "assistant", "model", "text", blocks)
    if role == "assistant":
        return _message(node, message, role, "model", "text", _blocks(content, "answer"))
    if role == "tool":
        blocks = _result_blocks(message, content, call)
        return _message(node, message, role, "tool", "result" if call else "output", blocks)
    if role == "user" and not (_is_hidden(message) or kind in _CONTEXTS):
        return _message(node, message, role, "human", "text", _blocks(content, "prompt"))
    if role in ("user", "system"):
        blocks = _blocks(content, "meta")
        return _message(node, message, role, "injected", "context", blocks) if any(b.text for b in blocks) else None
    return _unknown(node)


def _result_blocks(message: Rec, content: Rec, call: str) -> list[Block]:
    if not call:
        return _blocks(content, "tool_output")
    text = "\n".join(_texts(content))
    status = word(mapping(mapping(message.get("metadata")).get("aggregate_result")).get("status"))
    failed = content.get("content_type") == "system_error" or status.startswith("fail") or _TRACEBACK in text
    pictures = [block for block in _blocks(content, "") if block.kind in ("image", "document")]
    return [result_block(call, text, failed or None, content), *pictures]


def _is_hidden(message: Rec) -> bool:
    metadata = mapping(message.get("metadata"))
    return bool(metadata.get("is_visually_hidden_from_conversation") or metadata.get("is_user_system_message"))


def _conversation_message(conversation: Rec) -> Message:
    at, precision = milliseconds(conversation.get("create_time"))
    blocks = text_blocks("\n".join(strings(conversation, "id", "conversation_id")), "meta")
    name = word(conversation.get("conversation_id")) or word(conversation.get("id"))
    identity = fingerprint(f"about {name}", str(conversation.get("create_time")))
    return Message("system", "system", "notice", at, precision, blocks=blocks, fingerprint=identity)


def _unknown(record: Rec) -> Message:
    return unknown_message(record, "id", "parent")


def _message(node: Rec, message: Rec, role: str, origin: str, kind: str, blocks: list[Block]) -> Message:
    at, precision = milliseconds(message.get("create_time"))
    name = word(node.get("id"))
    model = word(mapping(message.get("metadata")).get("model_slug")) if origin == "model" else ""
    return Message(
        role, origin, kind, at, precision, name, name if origin == "model" else "", model, tuple(blocks),
        starts_turn=origin == "human" and bool(blocks),
        fingerprint=fingerprint(name, str(message.get("create_time"))) if name else None,
    )  # fmt: skip


def _blocks(content: Rec, field: str) -> list[Block]:
    kind = word(content.get("content_type"))
    if kind in ("text", "multimodal_text"):
        return [block for part in listing(content.get("parts")) if (block := _part(part, field)) is not None]
    if kind in _THOUGHTS:
        text = "\n".join(_texts(content))
        return [Block("thinking", text, "thinking", data=content)] if text else []
    if kind in _TEXTS:
        text = "\n".join(_texts(content))
        return [Block("text", text, field, data=content)] if text else []
    return [unknown_block(content)] if content else []


def _part(part: Any, field: str) -> Block | None:
    if isinstance(part, str):
        return Block("text", part, field) if part else None
    kind = word(mapping(part).get("content_type"))
    if kind == "image_asset_pointer":
        return Block("image", data=part)
    if kind == "audio_transcription":
        return Block("text", word(part.get("text")), field, data=part)
    return Block("document", data=part) if kind.endswith("_asset_pointer") else unknown_block(part)


def _texts(content: Rec) -> list[str]:
    extract = _TEXTS.get(word(content.get("content_type")))
    return extract(content) if extract else strings(content, "content_type")


def _texts_under(*keys: str) -> Callable[[Rec], list[str]]:
    return lambda content: [text for key in keys for text in strings(content.get(key), "content_type")]


_TEXTS: dict[str, Callable[[Rec], list[str]]] = {
    "text": _texts_under("parts"),
    "multimodal_text": lambda content: [
        text for part in listing(content.get("parts")) for text in (strings(part) if isinstance(part, str) else [])
    ],
    "code": _texts_under("text"),
    "execution_output": _texts_under("text"),
    "system_error": _texts_under("name", "text"),
    "tether_browsing_display": _texts_under("summary", "result"),
    "tether_quote": _texts_under("title", "url", "text"),
    "thoughts": _texts_under("thoughts"),
    "reasoning_recap": _texts_under("content"),
    "user_editable_context": _texts_under("user_profile", "user_instructions"),
    "model_editable_context": _texts_under("model_set_context"),
}


def _learn_conversation(head: Rec, session: SessionTally, state: ExportReaderState) -> None:
    session.learn(title=word(head.get("title")), title_rank=2 if head.get("title") else 0)


def _join_response(message: Message, state: ExportReaderState) -> Message:
    """Join consecutive nodes of the model into one response: its thinking, its calls and its answer."""
    state.note = (state.note or message.provider_id) if message.origin == "model" else ""
    return replace(message, provider_id=state.note) if state.note else message


def _record_type(record: Rec) -> str:
    if isinstance(record.get("conversation"), dict):
        return "conversation"
    message = mapping(mapping(record.get("node")).get("message"))
    kind = word(mapping(message.get("content")).get("content_type"))
    return "node" if not message else f"node/{_countable(_role(message))}/{_countable(kind)}"


def _countable(text: str) -> str:
    return text if len(text) <= 40 and text.replace("_", "").isalnum() and text.isascii() else "?"


# --- unpacking ---
def unpack(candidate: SourceCandidate, path: Path) -> Iterator[Member]:
    return members(path, "mapping", dict, _split_conversation)


def _split_conversation(conversation: Rec) -> Iterator[Member]:
    nodes = {key: mapping(node) for key, node in conversation["mapping"].items()}
    name = word(conversation.get("conversation_id")) or word(conversation.get("id"))
    name = name or digest(str(conversation.get("create_time")), next(iter(nodes), ""))
    parents = {key: node.get("parent") if isinstance(node.get("parent"), str) else None for key, node in nodes.items()}
    path, branches = threads(parents, _find_leaf(conversation, nodes))
    head = {key: value for key, value in conversation.items() if key not in _CHANGING}
    yield Member(name, _lines(head, path, nodes), native_id=name)
    for number, branch in enumerate(branches, 1):
        if any(nodes[key].get("message") for key in branch):
            head = {"title": conversation.get("title"), "branch": number}
            child = f"{name}/branch-{number}"
            yield Member(child, _lines(head, branch, nodes), "sidechain", child, name)


def _find_leaf(conversation: Rec, nodes: dict[str, Rec]) -> str | None:
    current = conversation.get("current_node")
    if isinstance(current, str) and current in nodes:
        return current
    above = {node.get("parent") for node in nodes.values() if isinstance(node.get("parent"), str)}
    return next((key for key in reversed(nodes) if key not in above), None)


def _lines(head: Rec, path: list[str], nodes: dict[str, Rec]) -> Iterator[bytes]:
    yield line({"conversation": head})
    open_call = ""  # the call that waits for its result: there are no call ids
    for key in path:
        message = nodes[key].get("message")
        record: Rec = {"node": {"id": key, "parent": nodes[key].get("parent"), "message": message}}
        if _is_call(message):
            open_call = key
        elif _role(message) == "tool" and open_call:
            record["call"], open_call = open_call, ""
        yield line(record)
