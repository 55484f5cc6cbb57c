"""Secrets out of a request before it is sent: every text in it, also in what is kept verbatim.

A block that is signed or sealed by its provider cannot be changed in part: one in which a secret stands is left out whole.
Names, ids and signatures stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec import structs

from everturn.llm import ChatMessage, ChatPart, ModelRequest, ToolSpec
from everturn.llm.wire import drop_lone_surrogates

Clean = Callable[[str], str]

#: Members of a provider's block that are no texts; below the block itself everything is.
_NO_TEXTS = {"type", "id", "name", "call_id", "tool_use_id", "tool_call_id", "signature", "data", "encrypted_content"}


def clean_request(request: ModelRequest, clean: Clean) -> ModelRequest:
    """The request as it may be sent."""
    clean = _without_lone_surrogates(clean)
    return structs.replace(
        request,
        messages=tuple(_clean_message(message, clean) for message in request.messages),
        system=clean(request.system),
        tools=tuple(_clean_tool(tool, clean) for tool in request.tools),
        extra=_clean_deep(request.extra, clean),
    )


def _clean_message(message: ChatMessage, clean: Clean) -> ChatMessage:
    parts = tuple(made for part in message.parts if (made := _clean_part(part, clean)) is not None)
    raw = _clean_block(message.raw, clean) if isinstance(message.raw, dict) else message.raw
    return structs.replace(message, parts=parts, raw=raw)


def _clean_tool(tool: ToolSpec, clean: Clean) -> ToolSpec:
    return ToolSpec(tool.name, clean(tool.description), _clean_deep(tool.parameters, clean))


def _clean_part(part: ChatPart, clean: Clean) -> ChatPart | None:
    text, raw = clean(part.text), _clean_block(part.raw, clean)
    if part.kind == "call":
        return _clean_call(part, clean)
    if text == part.text and raw == part.raw:
        return part
    if part.kind in ("thinking", "opaque") and part.raw is not None and not isinstance(part.raw, str):
        return None
    return structs.replace(part, text=text, raw=raw)


def _clean_call(part: ChatPart, clean: Clean) -> ChatPart:
    """A call whose arguments hold a secret is written anew from them: its own text might no longer be JSON."""
    given = _clean_arguments(part.arguments, clean)
    if given == part.arguments:
        return part
    return structs.replace(part, arguments=given, raw=None)


def _clean_arguments(given: Any, clean: Clean) -> Any:
    """Each text by itself, since line ends are escaped in the whole; then the whole, since names tell secrets too."""
    values = _clean_deep(given, clean)
    if isinstance(values, str) or values is None:
        return values
    try:
        return json.loads(clean(json.dumps(values, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return values


def _without_lone_surrogates(clean: Clean) -> Clean:
    """Halves of surrogate pairs, which transcripts do hold, cannot be sent either."""
    return lambda text: clean(text if text.isascii() else drop_lone_surrogates(text))


def _clean_block(raw: Any, clean: Clean) -> Any:
    if not isinstance(raw, dict):
        return _clean_deep(raw, clean)
    return {name: value if name in _NO_TEXTS else _clean_deep(value, clean) for name, value in raw.items()}


def _clean_deep(value: Any, clean: Clean) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name) if isinstance(name, str) else name: _clean_deep(one, clean) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_deep(one, clean) for one in value]
    return value
