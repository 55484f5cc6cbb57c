"""What the writers of native sessions share: ids that follow from the session's, tools by other names, pictures.

Nothing is lost on the way: a call whose kind the receiving agent has a tool for gets that tool's name and the names of its
arguments, what is left over stays beside them; any other call keeps the name and the arguments it had.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from everturn.model.conversation import Block, CallStart
from everturn.sources.foreign import word

#: What agents call the same argument.
_SAME = {
    "path": ("path", "file_path", "filePath", "absolute_path", "target_file"),
    "command": ("command", "cmd"),
    "old": ("old_string", "oldString", "old_str"),
    "new": ("new_string", "newString", "new_str"),
    "all": ("replace_all", "replaceAll", "allow_multiple"),
    "content": ("content", "contents", "file_text"),
    "url": ("url",),
}
_NEUTRAL = {name: neutral for neutral, names in _SAME.items() for name in names}

#: What a call of a kind must have been given to be told as a call of another agent's tool.
_NEEDED = {
    "shell": ("command",),
    "read": ("path",),
    "edit": ("path", "old", "new"),
    "create": ("path", "content"),
}
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,(.*)", re.DOTALL)


class NativeTool(NamedTuple):
    """A tool of an agent: its name, what it calls the neutral arguments, and what it wants besides."""

    name: str
    arguments: Mapping[str, str]
    besides: Mapping[str, Any] = {}


class NativePicture(NamedTuple):
    """An image: its type and its bytes in base64."""

    media: str
    data: str

    @property
    def address(self) -> str:
        """All of it as an address."""
        return f"data:{self.media};base64,{self.data}"


def uuid_of(*words: object) -> str:
    """A UUID that follows from these words."""
    return str(UUID(bytes=blake2b(repr(words).encode("utf-8", "replace"), digest_size=16).digest(), version=4))


def dashed_id(random: str, at: int) -> str:
    """`Native.name` of an agent whose ids are UUIDs."""
    return str(UUID(hex=random, version=4))


def tell_call(call: CallStart, tools: Mapping[str, NativeTool]) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a call, in the words of an agent with these tools (by kind)."""
    given = call.input if isinstance(call.input, dict) else {} if call.input is None else {"input": call.input}
    tool = tools.get(call.kind)
    if tool is None or call.name == tool.name:
        return fit_name(call.name), given
    known = {_NEUTRAL[name]: value for name, value in given.items() if name in _NEUTRAL}
    if call.kind == "shell" and call.command:
        known["command"] = call.command
    if any(not isinstance(known.get(name), str) for name in _NEEDED.get(call.kind, ())):
        return fit_name(call.name), given
    made = {tool.arguments[name]: value for name, value in known.items() if name in tool.arguments}
    left = {name: value for name, value in given.items() if _NEUTRAL.get(name) not in tool.arguments}
    return tool.name, {**tool.besides, **left, **made}


def fit_name(name: str) -> str:
    """A tool's name as all providers take it."""
    return _UNFIT.sub("_", name)[:64] or "tool"


def text(value: Any) -> str:
    """JSON of a value as text."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, RecursionError, TypeError):
        return "{}"


def line(record: Mapping[str, Any]) -> bytes:
    """A record as one line; what no JSON can say is told with a question mark."""
    try:
        return msgspec.json.encode(record) + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair
        import json

        return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def pictures(block: Block) -> Iterator[NativePicture | None]:
    """The images of a block: itself, or those in what a tool gave back. None for each whose bytes are not there."""
    if block.kind == "image":
        yield _picture(block.data)
    elif block.kind == "result":
        for part in _parts(block.data):
            if word(part.get("type")) in ("image", "input_image", "image_url", "file") or "inlineData" in part:
                yield _picture(part)


def _parts(data: Any) -> Iterator[dict[str, Any]]:
    """The parts of a result, in whichever of the known ways it holds them."""
    found = data if isinstance(data, dict) else {}
    state = found.get("state")
    places = [found.get("content"), found.get("output"), found.get("result")]
    places += [state.get("attachments")] if isinstance(state, dict) else []
    for place in places:
        yield from (part for part in place if isinstance(part, dict)) if isinstance(place, list) else ()


def _picture(data: Any) -> NativePicture | None:
    found = data if isinstance(data, dict) else {}
    for held in (found.get("source"), found.get("inlineData")):
        if isinstance(held, dict) and word(held.get("data")):
            return NativePicture(word(held.get("media_type")) or word(held.get("mimeType")), word(held.get("data")))
    address = found.get("image_url") or found.get("url")
    address = address.get("url") if isinstance(address, dict) else address
    whole = _DATA.fullmatch(word(address))
    return NativePicture(whole[1], whole[2]) if whole else None
