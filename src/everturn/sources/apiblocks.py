"""Content blocks in the shapes that model providers' interfaces have, with what each holds to be shown and indexed.

Shared by the formats that keep messages as they went to or came from a provider: text, thinking, images and documents,
tool calls and their results. A block of any other shape is kept as unknown with all its words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everturn.model.conversation import Block, CallEnd, TokenUsage
from everturn.sources.foreign import count, strings, word
from everturn.sources.tools import call_start, call_text, error_class, exit_status

_CALLS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))
_PICTURES = frozenset(("image", "image_url", "input_image"))
_PAPERS = frozenset(("document", "file", "input_file", "input_audio", "audio"))


def blocks_of(content: Any, field: str) -> list[Block]:
    """The blocks of a content: a text, a block or a list of these. Plain text goes to the index under `field`."""
    if isinstance(content, str):
        return [Block("text", content, field)] if content else []
    if not isinstance(content, list):
        return [] if content is None else [_block(content, field)]
    return [_block(one, field) for one in content if one != ""]


def has_results(content: Any) -> bool:
    """Whether a content answers tool calls."""
    return isinstance(content, list) and any(map(_is_result, content))


def texts_in(content: Any) -> list[str]:
    """The plain texts of a content."""
    return [block.text for block in blocks_of(content, "meta") if block.kind == "text"]


def call_block(call_id: str, name: str, given: Any, data: Any = None) -> Block:
    """A tool call."""
    start = call_start(call_id, name, given)
    return Block("call", call_text(start), "tool_input", call=start, data=data)


def function_calls(calls: Any) -> list[Block]:
    """The calls in `tool_calls`: `{id, function: {name, arguments}}`."""
    found = []
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            found.append(call_block(word(call.get("id")), word(function.get("name")), function.get("arguments"), call))
        else:
            found.append(unknown_block(call))
    return found


def result_block(call_id: str, content: Any, failed: bool | None = None, data: Any = None) -> Block:
    """What a tool gave back. Where nothing says whether it failed, a stated exit status does."""
    text = content if isinstance(content, str) else "\n".join(_result_texts(content))
    status = exit_status(text)
    failed = bool(status) if failed is None else failed
    end = CallEnd(call_id, failed, error_class(text) if failed else "", status)
    return Block("result", text, "tool_output", result=end, data=data)


def unknown_block(block: Any) -> Block:
    """A block of a shape this version does not know: its words are kept, shown and indexed."""
    return Block("unknown", "\n".join(strings(block, "type")), "meta", data=block)


def usage_of(tokens: Any) -> TokenUsage | None:
    """The tokens of a response, in either provider's words; what was read from a cache is no input of its own."""
    if not isinstance(tokens, dict):
        return None

    def told(*names: str) -> int:
        return next((number for name in names if (number := count(tokens.get(name))) is not None), 0)

    details = tokens.get("prompt_tokens_details")
    cached = count(details.get("cached_tokens")) or 0 if isinstance(details, dict) else 0
    given = told("input_tokens", "prompt_tokens")
    return TokenUsage(
        max(given - cached, 0),
        told("output_tokens", "completion_tokens"),
        told("cache_read_input_tokens") or cached,
        told("cache_creation_input_tokens"),
    )


def _block(block: Any, field: str) -> Block:
    if isinstance(block, str):
        return Block("text", block, field)
    if not isinstance(block, dict):
        return unknown_block(block)
    kind = word(block.get("type"))
    if kind in _CALLS:
        return call_block(word(block.get("id")), word(block.get("name")), block.get("input"), block)
    if _is_result(block):
        failed = block.get("is_error")
        return result_block(
            word(block.get("tool_use_id")), block.get("content"), failed if isinstance(failed, bool) else None, block
        )
    made = _WORDS.get(kind)
    return made(block, field) if made else unknown_block(block)


def _is_result(block: Any) -> bool:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind == "tool_result" or (isinstance(kind, str) and kind.endswith("_tool_result"))


def _result_texts(content: Any) -> list[str]:
    found: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, dict) else ""
        picture = isinstance(kind, str) and kind in _PICTURES | _PAPERS
        found += [f"[{kind}]"] if picture else strings(part, "type")
    return found


def _text(block: dict[str, Any], field: str) -> Block:
    text = block.get("text")
    return Block("text", text, field, data=block) if isinstance(text, str) else unknown_block(block)


def _refusal(block: dict[str, Any], field: str) -> Block:
    return Block("text", word(block.get("refusal")), field, data=block)


def _thinking(block: dict[str, Any], field: str) -> Block:
    words = block.get("thinking", block.get("text", block.get("summary", block.get("content"))))
    return Block(
        "thinking", words if isinstance(words, str) else "\n".join(strings(words, "type")), "thinking", data=block
    )


def _picture(block: dict[str, Any], field: str) -> Block:
    return Block("image", data=block)


def _paper(block: dict[str, Any], field: str) -> Block:
    return Block("document", data=block)


_WORDS: dict[str, Callable[[dict[str, Any], str], Block]] = {
    **dict.fromkeys(("text", "input_text", "output_text"), _text),
    "refusal": _refusal,
    **dict.fromkeys(("thinking", "reasoning", "redacted_thinking"), _thinking),
    **dict.fromkeys(_PICTURES, _picture),
    **dict.fromkeys(_PAPERS, _paper),
}
