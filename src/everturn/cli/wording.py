"""Words of the archive as the reading commands put them on a terminal: on one line, cut, in colour.

Everything goes through `Output.text` first and is cut afterwards: a secret cut in half would not be known as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from everturn.derive.printable import cut_cells

if TYPE_CHECKING:
    from everturn.cli.output import Output
    from everturn.model.archive import Session

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "match": "1;33"}


class Pen:
    """Colours where they are wanted: on a terminal, unless NO_COLOR says otherwise."""

    def __init__(self, out: Output) -> None:
        self.on = out.fancy and not out.env.get("NO_COLOR")

    def __call__(self, style: str, text: str) -> str:
        """The text in that style; it must be fit to be shown already."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.on and text else text


def in_one_line(out: Output, text: str, width: int) -> str:
    """The beginning of the text on one line of at most `width` cells."""
    return cut_cells(" ".join(out.text(text, "\n\t").split()), width)


def first_lines(out: Output, text: str, most: int) -> tuple[Iterator[str], int]:
    """The first lines of the text and how many there are beyond; `most` 0 is all of them."""
    shown = out.text(text, "\n\t").strip("\n")
    beyond = shown.count("\n") + 1 - most
    if not most:
        return _iterate_lines(shown, shown.count("\n") + 1), 0
    if beyond <= 1:  # a word about one more line would take as much room as the line
        most, beyond = most + 1, 0
    return (
        line if len(line) <= _LONG_LINE else f"{line[:_LONG_LINE]}…" for line in _iterate_lines(shown, most)
    ), beyond


_LONG_LINE = 2000


def _iterate_lines(text: str, most: int) -> Iterator[str]:
    """Line by line: a list of the lines of a long output would take many times its size."""
    start = 0
    for _ in range(most):
        end = text.find("\n", start)
        yield text[start:] if end < 0 else text[start:end]
        if end < 0:
            return
        start = end + 1


def folder_text(workspace: str) -> str:
    """The last two parts of a path, which is what people know their projects by."""
    parts = [part for part in re.split(r"[/\\]", workspace) if part]
    return "/".join(parts[-2:])


def sort_of(session: Session) -> str:
    """What a session is, for lists that hold more than current main ones."""
    return session.kind if session.state == "current" else f"{session.kind}, older"
