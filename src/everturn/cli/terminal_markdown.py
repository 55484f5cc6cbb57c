"""Markdown of an answer for a terminal: headings, emphasis, code and lists in styles instead of signs.

Only the signs that a reader does not need are taken away; every word stays, in its order. Without colours nothing changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from everturn.cli.output import Pen

_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_BULLET = re.compile(r"(\s*)[-*+]\s+(.*)$")
_INLINE = re.compile(r"(?P<code>`[^`\n]{1,400}`)|\*\*(?P<strong>[^*\s](?:[^*\n]{0,400}[^*\s])?)\*\*")


def render_lines(lines: Iterable[str], pen: Pen) -> Iterator[str]:
    """Yield cleaned lines of Markdown in styles."""
    in_code = False
    for line in lines:
        if _FENCE.match(line):
            in_code = not in_code
            yield pen("dim", line) if pen.on else line
        elif not pen.on:
            yield line
        elif in_code:
            yield pen("cyan", line)
        elif found := _HEADING.match(line):
            yield pen("bold", found[2])
        elif found := _BULLET.match(line):
            yield f"{found[1]}• {_style_inline(found[2], pen)}"
        else:
            yield _style_inline(line, pen)


def _style_inline(text: str, pen: Pen) -> str:
    return _INLINE.sub(
        lambda found: pen("cyan", found["code"][1:-1]) if found["code"] else pen("bold", found["strong"]), text
    )
