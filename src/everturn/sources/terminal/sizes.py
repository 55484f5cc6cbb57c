"""How large the screen was. Most recordings say it; for the others it is guessed from where the program wrote."""

from __future__ import annotations

import re
from typing import Final

from everturn.sources.terminal.screen import LARGEST, SMALLEST, TerminalScreen

#: What terminals have when nobody says otherwise.
DEFAULT: Final = (80, 24)

_LOOKED_AT = 512 << 10  # bytes that are looked at for a guess
_FIRST_SCREENS = 128 << 10  # a program that fills the screen does so at once
_TALLEST, _WIDEST = 300, 600  # cells: more is a way to say "the very last one"
_ROW = re.compile(rb"\x1b\[(\d{1,4})(?:;\d{0,4})?[Hfd]|\x1b\[\d*;(\d{1,4})r|\x1b\[(\d{1,4})A")
_OTHER_SCREEN = b"\x1b[?1049h"


def sensible_size(columns: int | str, rows: int | str) -> tuple[int, int] | None:
    """Both as numbers when a terminal can have them."""
    try:
        width, height = int(columns), int(rows)
    except ValueError:
        return None
    return (width, height) if SMALLEST <= width <= LARGEST and SMALLEST <= height <= LARGEST else None


def guess_size(data: bytes) -> tuple[int, int]:
    """Columns and rows: as far right and down as anything was written.

    A program that fills the screen comes first: what the shell before it printed says nothing of the screen's size.
    """
    begin = data.find(_OTHER_SCREEN)
    looked_at = data[:_LOOKED_AT] if begin < 0 else data[begin : begin + _FIRST_SCREENS]
    ruler = _Ruler(_WIDEST, _rows(looked_at))
    ruler.feed(looked_at)
    return max(ruler.widest, DEFAULT[0]), ruler.rows


def _rows(data: bytes) -> int:
    rows = DEFAULT[1]
    for absolute, region, upward in _ROW.findall(data):
        row = int(absolute or region or 0) or int(upward or 0) + 1
        if rows < row <= _TALLEST:
            rows = row
    return rows


class _Ruler(TerminalScreen):
    """A very wide terminal that remembers how far right it was written."""

    widest = 0

    def put(self, cells: str) -> None:
        super().put(cells)
        self.widest = max(self.widest, self.x)
