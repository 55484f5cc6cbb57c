"""Content blocks: what each holds to be shown and indexed, with the block itself kept as found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from everturn.model.conversation import Block
from everturn.sources.claude_code.calls import call_end, call_start, call_text, result_text
from everturn.sources.claude_code.events import word
from everturn.sources.claude_code.speaker import guess_speaker, unwrap
from everturn.sources.foreign import strings

#: Blocks without words, and what kind they are.
_WORDLESS = {"image": "image", "document": "document", "redacted_thinking": "thinking"}
_CALLS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))


class ClaudeBlockPlace(NamedTuple):
    """What blocks need to know of the record they stand in."""

    field: str  # the index field of plain text
    mixed: bool = False  # several texts, perhaps of several speakers
    outcome: Any = None  # the client's note on a result
    session: str = ""  # that subagents hang on


def text_blocks(text: str, field: str) -> tuple[Block, ...]:
    """The blocks of a text; what a program put in front of a prompt is a block of its own."""
    if field == "prompt":
        around, prompt = unwrap(text)
        if around:
            before = Block("text", around, "meta")
            return (before, Block("text", prompt, field)) if prompt else (before,)
    return (Block("text", text, field),) if text else ()


def is_result(block: Any) -> bool:
    """A tool_result, or one of its relatives."""
    if not isinstance(block, dict):
        return False
    kind = block.get("type")
    return kind == "tool_result" or (isinstance(kind, str) and kind.endswith("_tool_result"))


def texts_of(content: list[Any]) -> list[str]:
    """The texts of a list of blocks."""
    found = []
    for block in content:
        text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else block
        if isinstance(text, str):
            found.append(text)
    return found


def blocks_of(content: list[Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    """The blocks of a list."""
    found: list[Block] = []
    for block in content:
        if isinstance(block, dict):
            found += _block(block, where)
        elif isinstance(block, str):
            found += text_blocks(block, _field(block, where))
        else:
            found.append(_unknown_block(block))
    return tuple(found)


def _block(block: dict[str, Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    kind = word(block.get("type"))
    if kind in _CALLS:
        start = call_start(block)
        return (Block("call", call_text(start), "tool_input", call=start, data=block),)
    if kind == "tool_result" or is_result(block):
        text = result_text(block.get("content"), where.outcome)
        end = call_end(block, text, where.outcome, where.session)
        return (Block("result", text, "tool_output", result=end, data=block),)
    made = _WORDS.get(kind)
    return made(block, where) if made else (_unknown_block(block),)


def _text(block: dict[str, Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    text = block.get("text")
    if not isinstance(text, str):
        return (_unknown_block(block),)
    field = _field(text, where)
    if field == "prompt" and unwrap(text)[0]:
        return text_blocks(text, field)
    return (Block("text", text, field, data=block),)


def _thinking(block: dict[str, Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    text = block.get("thinking")
    return (Block("thinking", text if isinstance(text, str) else "", "thinking", data=block),)


def _wordless_block(block: dict[str, Any], where: ClaudeBlockPlace) -> tuple[Block, ...]:
    return (Block(_WORDLESS[block["type"]], data=block),)


def _unknown_block(block: Any) -> Block:
    return Block("unknown", "\n".join(strings(block, "type")), "meta", data=block)


def _field(text: str, where: ClaudeBlockPlace) -> str:
    """Among several texts only what is the human's is the prompt."""
    return guess_speaker(text).field if where.mixed else where.field


_WORDS: dict[str, Callable[[dict[str, Any], ClaudeBlockPlace], tuple[Block, ...]]] = {
    "text": _text,
    "thinking": _thinking,
    **dict.fromkeys(_WORDLESS, _wordless_block),
}
