"""How one program divides its screen: the conversation, the input field, and what is drawn around and over them.

A reader of screens that knows the program's screen says so with a `ScreenLayout`. Where no reader does, `chrome` works the
division out from what stays while the rest scrolls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from everturn.sources.terminal.frames import PaintedRow
from everturn.sources.terminal.rows import cut, width

BAR = "┃"
_LEFTMOST = 8  # cells: a toast begins further right


class ScreenLayout(NamedTuple):
    """One frame of a known program, divided."""

    program: str  # the dialect: boxes | panels | codex
    rows: Sequence[PaintedRow] = ()  # of the conversation, as high as its part of the screen
    state: str = "talk"  # talk; home: no conversation is open; covered: a menu or a dialog hides the conversation
    title: str = ""
    footer: str = ""
    typed: str | None = None  # the text in the input field; None where the field is not shown
    top: int = 0  # rows of the screen above those of the conversation


def uncover(rows: Sequence[PaintedRow], first: int, right: int = 0) -> list[PaintedRow]:
    """Take toasts off: boxes at the right edge, near row `first` or below one another. `right` is the width of the rows."""
    edges = [_edges(row.text, right) for row in rows]
    kept = list(rows)
    may_begin = first
    start = 0
    while start < min(may_begin + 1, len(rows)):
        end = start
        while end < len(rows) and edges[end] is not None and edges[end] == edges[start]:
            end += 1
        if end - start > 1:
            kept[start:end] = [cut_row(row, (edges[start] or (0, 0))[0]) for row in rows[start:end]]
            may_begin = end + 1
        start = max(end, start + 1)
    return kept


def cut_row(row: PaintedRow, cell: int) -> PaintedRow:
    """Return a row of which everything from a cell on is hidden."""
    return PaintedRow(cut(row.text, cell)[0].rstrip(), row.cells[:cell], row.inks[:cell], covered=True)


def _edges(text: str, right: int) -> tuple[int, int] | None:
    """Return the cells of the last two bars of a row, if it ends with one."""
    if not text.endswith(BAR) or (right and width(text) != right):
        return None
    left = width(text[: text.rfind(BAR, 0, -1)])
    return (left, width(text)) if left > _LEFTMOST else None
