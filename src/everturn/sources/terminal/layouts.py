"""How one program divides its screen: the conversation, the input field, and what is drawn around and over them.

A reader of screens that knows the program's screen says so with a `ScreenLayout`. Where no reader does, `chrome` works the
division out from what stays while the rest scrolls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from everturn.sources.terminal.frames import PaintedRow
from everturn.sources.terminal.rows import cut, width

BAR = "┃"
_LEFTMOST = 8  # cells: a toast begins further right
_LOGO = re.compile(r" {2,}[█▀▄░]{2,}[█▀▄░ ]*[█▀▄░]{2,}")
_ROWS_OF_LOGO = 2


class ScreenLayout(NamedTuple):
    """One frame of a known program, divided."""

    program: str  # the dialect: boxes | panels | codex
    rows: Sequence[PaintedRow] = ()  # of the conversation, as high as its part of the screen
    state: str = "talk"  # talk; home: no conversation is open; covered: a menu or a dialog hides the conversation
    title: str = ""
    footer: str = ""
    typed: str | None = None  # the text in the input field; None where the field is not shown
    top: int = 0  # rows of the screen above those of the conversation


def shows_logo(rows: Sequence[PaintedRow]) -> bool:
    """Return whether rows show the name of a program in big letters, as its home screen does, on a screen of any width."""
    return sum(row.text[:2] == "  " and _LOGO.match(row.text) is not None for row in rows) >= _ROWS_OF_LOGO


def uncover(rows: Sequence[PaintedRow], first: int, right: int) -> list[PaintedRow]:
    """Take toasts off: boxes at the right edge, near row `first` or below one another. `right` is the width of the rows.

    Rows that are covered already may lie between those of a toast.
    """
    edges = [_edges(row.text, right) for row in rows]
    kept = list(rows)
    may_begin = first
    start = 0
    while start < min(may_begin + 1, len(rows)):
        end = start
        while end < len(rows) and edges[start] and (edges[end] == edges[start] or rows[end].covered):
            end += 1
        if end - start > 1:
            for number in range(start, end):
                if (edge := edges[number]) is not None:
                    kept[number] = cut_row(rows[number], edge[0])
            may_begin = end + 1
        may_begin += rows[start].covered
        start = max(end, start + 1)
    return kept


def uncover_all(rows: Sequence[PaintedRow], right: int) -> list[PaintedRow]:
    """Take toasts off a program of which nothing else ends with a bar at cell `right`: also single rows that are left of one."""
    edges = [_edges(row.text, right) for row in rows]
    return [row if edge is None else cut_row(row, edge[0]) for row, edge in zip(rows, edges, strict=True)]


def cut_row(row: PaintedRow, cell: int) -> PaintedRow:
    """Return a row of which everything from a cell on is hidden."""
    return PaintedRow(cut(row.text, cell)[0].rstrip(), row.cells[:cell], row.inks[:cell], covered=True)


def _edges(text: str, right: int) -> tuple[int, int] | None:
    """Return the cells of the last two bars of a row that ends with one at cell `right`."""
    if not text.endswith(BAR) or width(text) != right:
        return None
    left = width(text[: text.rfind(BAR, 0, -1)])
    return (left, right) if left > _LEFTMOST else None
