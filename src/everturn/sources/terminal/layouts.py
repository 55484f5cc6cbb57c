"""How one program divides its screen: the conversation, the input field, and what is drawn around and over them.

A reader of screens that knows the program's screen says so with a `ScreenLayout`. Where no reader does, `chrome` works the
division out from what stays while the rest scrolls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from everturn.sources.terminal.frames import PaintedRow


class ScreenLayout(NamedTuple):
    """One frame of a known program, divided."""

    program: str  # the dialect: boxes | panels | codex
    rows: Sequence[PaintedRow] = ()  # of the conversation, as high as its part of the screen
    state: str = "talk"  # talk; home: no conversation is open; covered: a menu or a dialog hides the conversation
    title: str = ""
    footer: str = ""
    typed: str | None = None  # the text in the input field; None where the field is not shown
    top: int = 0  # rows of the screen above those of the conversation
