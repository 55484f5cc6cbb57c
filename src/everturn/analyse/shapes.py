"""The shape of a turn: its tools in order, with repeats collapsed; and patterns of shapes as people write them.

Two or more calls of one tool in a row are one token, `Read{2+}`, however many there are: so turns that did the same with
more or fewer files have the same shape. A pattern is tokens joined by `→` (or `->`, `>`), and fits where its tokens stand
side by side:

    Read → Edit          a single Read, then a single Edit
    Read{1+} → Edit{1+}  one or more of each
    mcp__* → *           a tool by its beginning, then any one
    Grep → … → Edit      anything in between, or nothing
    ^Read → Edit$        the whole turn
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import groupby

from msgspec import Struct

from everturn.errors import UsageError
from everturn.model.analytics import ARROW

REPEATED = "{2+}"
_ANY_COUNT = "{1+}"
_GAP = ("…", "...", "**")
_JOINT = re.compile(r"\s*(?:→|->|>)\s*")
_REPEATS = re.compile(r"\{[^{}]*\}$")  # any other number of them: shapes do not tell it
_MOST = 20  # tokens of a pattern

Shape = tuple[str, ...]


class ShapePart(Struct, frozen=True):
    """What one place of a pattern asks for."""

    tool: str  # with wildcards; "" for a gap of any length
    repeats: str = ""  # MANY | _EITHER | ""


class ShapePattern(Struct, frozen=True):
    """A pattern to look for in shapes."""

    parts: tuple[ShapePart, ...]
    from_start: bool = False
    to_end: bool = False


def shape(tools: Iterable[str]) -> Shape:
    """Tools in order as tokens, repeats collapsed."""
    return tuple(tool + REPEATED * (sum(1 for _ in run) > 1) for tool, run in groupby(tools))


def write_shape(tokens: Sequence[str]) -> str:
    """A shape as people read it."""
    return ARROW.join(tokens)


def tool_of(token: str) -> str:
    """The tool of a token."""
    return token.removesuffix(REPEATED)


def read_pattern(text: str) -> ShapePattern:
    """A pattern as people write it. Raises Usage."""
    words = text.strip()
    from_start, to_end = words.startswith("^"), words.endswith("$")
    pieces = _JOINT.split(words.removeprefix("^").removesuffix("$").strip())
    parts = tuple(map(_parse_part, pieces))
    if not all(pieces) or len(pieces) > _MOST or any(_REPEATS.search(part.tool) for part in parts):
        like = "'Read → Edit', 'Grep -> * -> Edit{1+}', with {1+} and {2+} only"
        raise UsageError(f"{text!r} is not a pattern of tools; write it like {like}")
    return ShapePattern(parts, from_start, to_end)


def fits(pattern: ShapePattern, tokens: Sequence[str]) -> bool:
    """Whether the pattern stands in the shape."""
    reached = {0} if pattern.from_start else set(range(len(tokens) + 1))
    for part in pattern.parts:
        if not part.tool:
            reached = set(range(min(reached), len(tokens) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(tokens) and _is_match(part, tokens[at])}
    return len(tokens) in reached if pattern.to_end else bool(reached)


def matches_name(wanted: str, tool: str) -> bool:
    """Whether a tool is meant by a name with wildcards; capitals do not matter."""
    return fnmatchcase(tool.casefold(), wanted.casefold())


def _parse_part(piece: str) -> ShapePart:
    if piece in _GAP:
        return ShapePart("")
    for repeats in (REPEATED, _ANY_COUNT):
        if piece.endswith(repeats) and piece != repeats:
            return ShapePart(piece.removesuffix(repeats), repeats)
    return ShapePart(piece, _ANY_COUNT if piece == "*" else "")


def _is_match(part: ShapePart, token: str) -> bool:
    tool = tool_of(token)
    return matches_name(part.tool, tool) and (
        part.repeats == _ANY_COUNT or (part.repeats == REPEATED) == (tool != token)
    )
