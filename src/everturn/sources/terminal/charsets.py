"""The DEC line-drawing set: what the bytes `_` to `~` stand for after `ESC ( 0` or shift-out."""

from __future__ import annotations

from typing import Final

_GRAPHICS = " ◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"

#: For `str.translate`.
LINE_DRAWING: Final = {ord("_") + place: graphic for place, graphic in enumerate(_GRAPHICS)}
