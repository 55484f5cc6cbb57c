"""A new session for Gemini CLI: a file of lines among the chats of the workspace, as its own resume reads it.

The client keeps the chats of a workspace in a folder with a short name, which its registry or a mark in the folder tells.
A workspace that it has not seen gets a folder with a mark, which it takes for its own: its registry is not touched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from everturn.derive.times import iso
from everturn.model.conversation import Block, Message
from everturn.sources import NewSession, SearchPlaces
from everturn.sources.foreign import decode_value
from everturn.sources.native import NativeTool, line, pictures, tell_call, uuid_of

TOOLS = {
    "shell": NativeTool("run_shell_command", {"command": "command"}),
    "read": NativeTool("read_file", {"path": "file_path"}),
    "edit": NativeTool(
        "replace", {"path": "file_path", "old": "old_string", "new": "new_string", "all": "allow_multiple"}
    ),
    "create": NativeTool("write_file", {"path": "file_path", "content": "content"}),
}
_MARK = ".project_root"
_UNFIT = re.compile(r"[^a-z0-9]+")
Rec = dict[str, Any]


def place(places: SearchPlaces, new: NewSession) -> Path:
    """See `Native`."""
    minute = datetime.fromtimestamp(new.at / 1000, UTC).strftime("%Y-%m-%dT%H-%M")
    return _project(places, new.workspace) / "chats" / f"session-{minute}-{new.id[:8]}.jsonl"


def marks(places: SearchPlaces, new: NewSession) -> Mapping[Path, bytes]:
    """See `Native`."""
    return {_project(places, new.workspace) / _MARK: new.workspace.encode("utf-8", "surrogateescape")}


def write(places: SearchPlaces, new: NewSession, messages: Sequence[Message]) -> bytes:
    """See `Native`."""
    header = {
        "sessionId": new.id,
        "projectHash": sha256(new.workspace.encode("utf-8", "surrogateescape")).hexdigest(),
        "startTime": iso(new.at),
        "lastUpdated": iso(new.at),
        "kind": "main",
        **({"summary": new.title} if new.title else {}),
    }
    return b"".join(map(line, [header, *_records(new, messages)]))


def begin(prompt: str) -> list[str]:
    """See `Native`."""
    return ["gemini", "--prompt-interactive", prompt]


def _project(places: SearchPlaces, workspace: str) -> Path:
    """The folder of a workspace: in the registry, by its mark, or a new one."""
    moved = places.env.get("GEMINI_CLI_HOME", "").strip()
    home = (Path(moved) if moved else places.home) / ".gemini"
    known = decode_value(_read(home / "projects.json"))
    names = known.get("projects") if isinstance(known, dict) else None
    name = names.get(workspace) if isinstance(names, dict) else None
    if isinstance(name, str) and name and _owner(home / "tmp" / name) in ("", workspace):
        return home / "tmp" / name
    taken = set(names.values()) if isinstance(names, dict) else set()
    return home / "tmp" / _find_free_name(home / "tmp", workspace, {one for one in taken if isinstance(one, str)})


def _find_free_name(folder: Path, workspace: str, taken: set[str]) -> str:
    try:
        marked = [one.name for one in folder.iterdir() if _owner(one) == workspace]
    except OSError:
        marked = []
    if marked:
        return min(marked)
    short = _UNFIT.sub("-", os.path.basename(workspace).lower()).strip("-") or "project"
    name, number = short, 0
    while name in taken or (folder / name).exists():
        number += 1
        name = f"{short}-{number}"
    return name


def _owner(folder: Path) -> str:
    return _read(folder / _MARK).decode("utf-8", "surrogateescape").strip()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _records(new: NewSession, messages: Sequence[Message]) -> Iterator[Rec]:
    results = {one.result.call_id: one for message in messages for one in message.blocks if one.result is not None}
    for number, message in enumerate(messages):
        envelope = {"id": uuid_of(new.id, number), "timestamp": iso(message.at or new.at)}
        if message.role == "user":
            yield {
                **envelope,
                "type": "user",
                "content": [one for block in message.blocks for one in _content_parts(block)],
            }
        elif message.role == "assistant":
            yield {**envelope, **_answer(new, message, results)}


def _answer(new: NewSession, message: Message, results: Mapping[str, Block]) -> Rec:
    words = [{"text": block.text} for block in message.blocks if block.kind == "text"]
    calls = [_call(block, results, message.at or new.at) for block in message.blocks if block.call is not None]
    answer: Rec = {"type": "gemini", "content": words or "", "thoughts": [], "model": message.model or new.model}
    return {**answer, "toolCalls": calls} if calls else answer


def _call(block: Block, results: Mapping[str, Block], at: int) -> Rec:
    assert block.call is not None
    name, given = tell_call(block.call, TOOLS)
    call_id, found = block.call.call_id, results.get(block.call.call_id)
    is_error = found is None or found.result is None or found.result.is_error
    said = found.text if found is not None else ""
    response = {"id": call_id, "name": name, "response": {"error" if is_error else "output": said}}
    images = [
        _inline_data(one.media, one.data) for one in (pictures(found) if found is not None else ()) if one is not None
    ]
    return {
        "id": call_id,
        "name": name,
        "args": given,
        "result": [{"functionResponse": response}, *images],
        "status": "error" if is_error else "success",
        "timestamp": iso(at),
        "resultDisplay": said,
        "displayName": name,
        "description": block.call.command or block.call.path,
        "renderOutputAsMarkdown": False,
    }


def _content_parts(block: Block) -> Iterator[Rec]:
    if block.kind != "image":
        yield {"text": block.text}
    yield from (_inline_data(one.media, one.data) for one in pictures(block) if one is not None)


def _inline_data(media: str, data: str) -> Rec:
    return {"inlineData": {"mimeType": media, "data": data}}
