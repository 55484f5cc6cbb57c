"""The parts of a message → blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everturn.model.conversation import Block
from everturn.sources.foreign import strings, word
from everturn.sources.linewise import Rec, listing, mapping
from everturn.sources.opencode.calls import file_block, tool_blocks

#: Envelope of a part: says nothing to a reader.
_ENVELOPE = ("type", "id", "sessionID", "messageID")


def blocks_of(parts: list[Any], field: str) -> tuple[list[Block], str]:
    """The blocks of some parts, whose own words go under `field`; and a type of part that is not known, or ""."""
    blocks: list[Block] = []
    strange = ""
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        made = _PART_BUILDERS.get(kind) if isinstance(kind, str) else None
        if made is None:
            blocks.append(Block("unknown", "\n".join(strings(part, *_ENVELOPE)), "meta", data=part))
            strange = strange or (kind if isinstance(kind, str) and kind else "?")
        else:
            blocks += made(part, field)
    return blocks, strange


def is_own(part: Any) -> bool:
    """Is this what the speaker said, and not what the client put beside it?"""
    if not isinstance(part, dict) or part.get("type") not in ("text", "file", "subtask"):
        return False
    return not (part.get("synthetic") is True or part.get("ignored") is True)


def _text(part: Rec, field: str) -> list[Block]:
    text = part.get("text")
    if not isinstance(text, str):
        return [Block("unknown", "\n".join(strings(part, *_ENVELOPE)), "meta", data=part)]
    own = field == "summary" or is_own(part)
    return [Block("text", text, field if own else "meta", data=part)] if text else []


def _reasoning(part: Rec, field: str) -> list[Block]:
    text = part.get("text")
    return [Block("thinking", text if isinstance(text, str) else "", "thinking", data=part)]


def _subtask(part: Rec, field: str) -> list[Block]:
    """A command that the human gave to a subagent."""
    about = "\n".join(filter(None, (word(part.get(key)) for key in ("command", "description", "agent"))))
    blocks = [Block("text", word(part.get("prompt")), field, data=part), Block("text", about, "meta")]
    return [block for block in blocks if block.text]


def _patch(part: Rec, field: str) -> list[Block]:
    """Files that changed while the step ran, whoever changed them."""
    files = "\n".join(word(path) for path in listing(part.get("files")) if isinstance(path, str))
    return [Block("text", files, "meta", data=part)] if files else []


def _note_blocks(part: Rec, field: str) -> list[Block]:
    """A mention of an agent, a try that failed: words of the client."""
    text = word(part.get("name")) or "\n".join(strings(mapping(part.get("error")), "name", "responseHeaders"))
    return [Block("text", text, "meta", data=part)] if text else []


def _no_blocks(part: Rec, field: str) -> list[Block]:
    return []


_PART_BUILDERS: dict[str, Callable[[Rec, str], list[Block]]] = {
    "text": _text,
    "reasoning": _reasoning,
    "tool": lambda part, field: tool_blocks(part),
    "file": lambda part, field: [file_block(part)],
    "subtask": _subtask,
    "patch": _patch,
    "agent": _note_blocks,
    "retry": _note_blocks,
    **dict.fromkeys(("step-start", "step-finish", "snapshot", "compaction"), _no_blocks),
}
