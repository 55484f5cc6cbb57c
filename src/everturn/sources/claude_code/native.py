"""A new session for Claude Code: a transcript in the project folder of the workspace, as its own resume reads it."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from everturn.derive.times import iso
from everturn.model.conversation import Block, Message
from everturn.sources import NewSession, SearchPlaces
from everturn.sources.native import NativeTool, line, pictures, tell_call, uuid_of

TOOLS = {
    "shell": NativeTool("Bash", {"command": "command"}),
    "read": NativeTool("Read", {"path": "file_path"}),
    "edit": NativeTool("Edit", {"path": "file_path", "old": "old_string", "new": "new_string", "all": "replace_all"}),
    "create": NativeTool("Write", {"path": "file_path", "content": "content"}),
}
#: The version of the client whose form this is.
_VERSION = "2.1.197"
_KEPT = frozenset(string.ascii_letters + string.digits)
_LONGEST_SLUG = 200
_NO_TOKENS = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


def place(places: SearchPlaces, new: NewSession) -> Path:
    """See `Native`."""
    return _config(places) / "projects" / slug(new.workspace) / f"{new.id}.jsonl"


def slug(workspace: str) -> str:
    """The name of a workspace's folder, made as the client makes it: it counts in UTF-16."""
    name = unicodedata.normalize("NFC", workspace)
    found = "".join(one if one in _KEPT else "-" * (1 + (one > "\uffff")) for one in name)
    return found if len(found) <= _LONGEST_SLUG else f"{found[:_LONGEST_SLUG]}-{_short_hash(name)}"


def write(places: SearchPlaces, new: NewSession, messages: Sequence[Message]) -> bytes:
    """See `Native`."""
    return b"".join(map(line, _records(new, messages)))


def begin(prompt: str) -> list[str]:
    """See `Native`."""
    return ["claude", prompt]


def _records(new: NewSession, messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    parent: str | None = None
    for number, message in enumerate(messages):
        for part, body in enumerate(_bodies(new, message, number)):
            record = _record(new, message, body, parent, uuid_of(new.id, number, part))
            parent = record["uuid"]
            yield record
    if new.title:
        yield {"type": "custom-title", "customTitle": new.title, "sessionId": new.id}
    if parent is not None:
        prompt = next((_words(one) for one in reversed(messages) if one.role == "user"), "")
        yield {"type": "last-prompt", "lastPrompt": prompt[:200], "leafUuid": parent, "sessionId": new.id}


def _record(new: NewSession, message: Message, body: dict[str, Any], parent: str | None, name: str) -> dict[str, Any]:
    record: dict[str, Any] = {
        "parentUuid": parent,
        "isSidechain": False,
        "type": body["role"],
        "message": body,
        "uuid": name,
        "timestamp": iso(message.at or new.at),
        "userType": "external",
        "entrypoint": "cli",
        "cwd": new.workspace,
        "sessionId": new.id,
        "version": _VERSION,
    }
    if new.forked_from and message.native_id:
        record["forkedFrom"] = {"sessionId": new.forked_from, "messageUuid": message.native_id}
    return record


def _bodies(new: NewSession, message: Message, number: int) -> Iterator[dict[str, Any]]:
    """One record for each block of an answer and for each result, as the client has it; a prompt is one."""
    if message.role == "tool":
        for block in message.blocks:
            yield {"role": "user", "content": [_result(block)]}
    elif message.role == "assistant":
        calls = any(block.kind == "call" for block in message.blocks)
        for block in message.blocks:
            yield {
                "id": f"msg_{uuid_of(new.id, number).replace('-', '')[:24]}",
                "type": "message",
                "role": "assistant",
                "model": message.model or new.model or "unknown",
                "content": [_block(block)],
                "stop_reason": "tool_use" if calls else "end_turn",
                "stop_sequence": None,
                "usage": _NO_TOKENS,
            }
    else:
        yield {"role": "user", "content": _prompt(message)}


def _prompt(message: Message) -> str | list[dict[str, Any]]:
    if len(message.blocks) == 1 and message.blocks[0].kind == "text":
        return message.blocks[0].text
    return [one for block in message.blocks for one in _content_parts(block)]


def _content_parts(block: Block) -> Iterator[dict[str, Any]]:
    if block.kind != "image":
        yield {"type": "text", "text": block.text}
    yield from _images(block)


def _block(block: Block) -> dict[str, Any]:
    if block.call is not None:
        name, given = tell_call(block.call, TOOLS)
        return {"type": "tool_use", "id": block.call.call_id, "name": name, "input": given}
    if block.kind == "thinking":
        return dict(block.data)
    return {"type": "text", "text": block.text}


def _result(block: Block) -> dict[str, Any]:
    assert block.result is not None
    images = list(_images(block))
    words = [{"type": "text", "text": block.text}] if block.text else []  # a provider takes no empty text
    content: Any = [*words, *images] if images else block.text
    end = block.result
    return {"tool_use_id": end.call_id, "type": "tool_result", "content": content, "is_error": end.is_error}


def _images(block: Block) -> Iterator[dict[str, Any]]:
    for shown in pictures(block):
        if shown is not None:
            source = {"type": "base64", "media_type": shown.media, "data": shown.data}
            yield {"type": "image", "source": source}


def _words(message: Message) -> str:
    return " ".join(block.text for block in message.blocks if block.kind == "text")


def _config(places: SearchPlaces) -> Path:
    """The folder that the client itself uses: it takes the variable as one folder."""
    named = places.env.get("CLAUDE_CONFIG_DIR", "").strip()
    return Path(named) if named else places.home / ".claude"


def _short_hash(text: str) -> str:
    """What the client puts behind a name that is too long: a hash of 32 bits with a sign, in base 36."""
    value = 0
    units = text.encode("utf-16-le", "surrogatepass")
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (low | high << 8)) & 0xFFFFFFFF
    number, found = min(value, (1 << 32) - value), ""
    while number:
        number, digit = divmod(number, 36)
        found = (string.digits + string.ascii_lowercase)[digit] + found
    return found or "0"
