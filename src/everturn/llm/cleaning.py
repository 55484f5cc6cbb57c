"""Secrets out of a request before it is sent: every text in it, also in what is kept verbatim.

A block that is signed or sealed by its provider cannot be changed in part: one in which a secret stands is left out whole.
Names, ids and signatures stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec import structs

from everturn.llm import Message, Part, Request, Tool
from everturn.llm.wire import mended

Clean = Callable[[str], str]

#: Members of a provider's block that are no texts; below the block itself everything is.
_NO_TEXTS = {"type", "id", "name", "call_id", "tool_use_id", "tool_call_id", "signature", "data", "encrypted_content"}


def cleaned(request: Request, clean: Clean) -> Request:
    """The request as it may be sent."""
    clean = _whole(clean)
    return structs.replace(
        request,
        messages=tuple(_message(message, clean) for message in request.messages),
        system=clean(request.system),
        tools=tuple(_tool(tool, clean) for tool in request.tools),
        extra=_deep(request.extra, clean),
    )


def _message(message: Message, clean: Clean) -> Message:
    parts = tuple(made for part in message.parts if (made := _part(part, clean)) is not None)
    raw = _block(message.raw, clean) if isinstance(message.raw, dict) else message.raw
    return structs.replace(message, parts=parts, raw=raw)


def _tool(tool: Tool, clean: Clean) -> Tool:
    return Tool(tool.name, clean(tool.description), _deep(tool.parameters, clean))


def _part(part: Part, clean: Clean) -> Part | None:
    text, raw = clean(part.text), _block(part.raw, clean)
    if part.kind == "call":
        return _call(part, clean)
    if text == part.text and raw == part.raw:
        return part
    if part.kind in ("thinking", "opaque") and part.raw is not None and not isinstance(part.raw, str):
        return None
    return structs.replace(part, text=text, raw=raw)


def _call(part: Part, clean: Clean) -> Part:
    """A call whose arguments hold a secret is written anew from them: its own text might no longer be JSON."""
    given = _arguments(part.arguments, clean)
    if given == part.arguments:
        return part
    return structs.replace(part, arguments=given, raw=None)


def _arguments(given: Any, clean: Clean) -> Any:
    """Each text by itself, since line ends are escaped in the whole; then the whole, since names tell secrets too."""
    values = _deep(given, clean)
    if isinstance(values, str) or values is None:
        return values
    try:
        return json.loads(clean(json.dumps(values, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return values


def _whole(clean: Clean) -> Clean:
    """Halves of surrogate pairs, which transcripts do hold, cannot be sent either."""
    return lambda text: clean(text if text.isascii() else mended(text))


def _block(raw: Any, clean: Clean) -> Any:
    if not isinstance(raw, dict):
        return _deep(raw, clean)
    return {name: value if name in _NO_TEXTS else _deep(value, clean) for name, value in raw.items()}


def _deep(value: Any, clean: Clean) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name) if isinstance(name, str) else name: _deep(one, clean) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_deep(one, clean) for one in value]
    return value
