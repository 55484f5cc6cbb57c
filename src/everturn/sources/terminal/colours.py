"""Foreground colours: what a Select Graphic Rendition sequence does to them, as 0xRRGGBB.

Only the foreground is followed. Screens of full-screen programs are told apart by it (the border of a box), while
backgrounds and attributes say nothing a transcript needs.
"""

from __future__ import annotations

from typing import Final

from everturn.sources.terminal.transcript import Colour

#: The sixteen named colours, as xterm shows them.
_NAMED = (
    *(0x000000, 0xCD0000, 0x00CD00, 0xCDCD00, 0x0000EE, 0xCD00CD, 0x00CDCD, 0xE5E5E5),
    *(0x7F7F7F, 0xFF0000, 0x00FF00, 0xFFFF00, 0x5C5CFF, 0xFF00FF, 0x00FFFF, 0xFFFFFF),
)
_LEVELS = (0, 95, 135, 175, 215, 255)

#: RGB of the 256 palette colours.
PALETTE: Final = (
    *_NAMED,
    *(red << 16 | green << 8 | blue for red in _LEVELS for green in _LEVELS for blue in _LEVELS),
    *(level * 0x10101 for level in range(8, 248, 10)),
)

#: The sequence leaves the foreground alone.
UNCHANGED: Final = -1

_FOREGROUND, _DEFAULT = 38, 39
_INDEXED, _DIRECT = 5, 2
_WITH_ARGUMENTS = (38, 48, 58)


def foreground(parameters: str) -> Colour:
    """The colour that `CSI parameters m` sets; None for the default one, `UNCHANGED` when it says nothing of it."""
    colour: Colour = UNCHANGED
    fields = parameters.split(";")
    place = 0
    while place < len(fields):
        code, *parts = [int(part[:9]) if part else 0 for part in fields[place].split(":")]
        place += 1
        if code in _WITH_ARGUMENTS and not parts:
            parts, place = _arguments(fields, place)
        colour = _apply_code(colour, code, parts)
    return colour


def _arguments(fields: list[str], place: int) -> tuple[list[int], int]:
    """`5;n` or `2;r;g;b` behind a 38 written with semicolons, and where to go on."""
    kind = fields[place] if place < len(fields) else ""
    length = {"5": 2, "2": 4}.get(kind, 1)
    taken = fields[place : place + length]
    return [int(part[:9]) if part.isdigit() else 0 for part in taken], place + length


def _apply_code(colour: Colour, code: int, parts: list[int]) -> Colour:
    if code in (0, _DEFAULT):
        return None
    if 30 <= code <= 37:
        return PALETTE[code - 30]
    if 90 <= code <= 97:
        return PALETTE[code - 82]
    if code == _FOREGROUND and parts:
        chosen = _extended_colour(parts)
        return colour if chosen is None else chosen
    return colour


def _extended_colour(parts: list[int]) -> int | None:
    """Of `5:n`, `2:r:g:b` and `2:space:r:g:b`; None when out of range."""
    kind, *values = parts
    if kind == _INDEXED and values and values[0] < len(PALETTE):
        return PALETTE[values[0]]
    if kind == _DIRECT and len(values) >= 3:
        red, green, blue = values[-3:] if len(values) == 3 else values[1:4]
        if max(red, green, blue) < 256:
            return red << 16 | green << 8 | blue
    return None
