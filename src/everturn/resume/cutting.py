"""Long texts cut in view: their beginning, their end, and a word about what is between.

Only what is sent is cut. Thoughts are never cut, since they are sealed; texts, results and arguments of calls are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import structs

from everturn.llm import ChatMessage, ChatPart

Count = Callable[[str], int]
_LEAST_CUT = 40  # tokens that a text keeps


def cut_text(text: str, most: int, count: Count) -> str:
    """The text in at most so many tokens: three quarters from its beginning, the rest from its end."""
    size = count(text)
    if size <= most:
        return text
    note = f"\n[… about {size - most} of {size} tokens are not shown here; the archive has the whole …]\n"
    room = max(0, most - count(note))
    length = int(len(text) * room / size)
    while length > 0:
        made = text[: length - length // 4] + note + text[len(text) - length // 4 :]
        if count(made) <= most:
            return made
        length = int(length * 0.85)
    return note.strip()


def shorten_middle(
    messages: Sequence[ChatMessage], most: int, size: Callable[[ChatPart], int], count: Count
) -> tuple[list[ChatMessage], int]:
    """The messages with their longest texts cut so that all fit into `most` tokens, and how many were cut.

    They may still be too long, when there is more in them than can be cut.
    """
    sizes = [size(part) if _can_cut(part) else 0 for message in messages for part in message.parts]
    whole = sum(size(part) for message in messages for part in message.parts) + 4 * len(messages)
    level = _cut_length(sizes, sum(sizes) - (whole - most))
    cuts = 0
    made: list[ChatMessage] = []
    for message in messages:
        parts = [
            _cut_part(part, level, count) if _can_cut(part) and size(part) > level else part for part in message.parts
        ]
        changed = sum(one is not part for one, part in zip(parts, message.parts, strict=True))
        made.append(_replace_parts(message, tuple(parts)) if changed else message)
        cuts += changed
    return made, cuts


def _cut_length(sizes: list[int], room: int) -> int:
    """The length to cut at, so that what is shorter stays whole and the rest shares what is left."""
    left, parts = max(0, room), len(sizes)
    for size in sorted(sizes):
        if size * parts > left:
            break
        left, parts = left - size, parts - 1
    return max(_LEAST_CUT, left // max(1, parts))


def _can_cut(part: ChatPart) -> bool:
    return part.kind in ("text", "result") or (part.kind == "call" and isinstance(part.arguments, dict))


def _cut_part(part: ChatPart, most: int, count: Count) -> ChatPart:
    if part.kind == "call":
        given = _cut_values(part.arguments, most, count)
        return structs.replace(part, arguments=given, raw=None)
    text = cut_text(part.text, most, count)
    return structs.replace(part, text=text, raw=text if isinstance(part.raw, str) else None)


def _cut_values(given: dict[str, Any], most: int, count: Count) -> dict[str, Any]:
    texts = sum(isinstance(value, str) for value in given.values())
    share = max(_LEAST_CUT, most // max(1, texts) - 4)
    return {name: cut_text(value, share, count) if isinstance(value, str) else value for name, value in given.items()}


def _replace_parts(message: ChatMessage, parts: tuple[ChatPart, ...]) -> ChatMessage:
    """A message of results is written anew; others keep what surrounds their parts."""
    if message.role == "tool":
        parts = tuple(structs.replace(part, raw=None) for part in parts)
        return ChatMessage("tool", parts, message.id)
    return structs.replace(message, parts=parts)
