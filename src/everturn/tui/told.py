"""What a session is made of on the screen: headings of turns, words, what is folded away, links to other sessions.

Each item holds only text that is fit to be shown, and not more of it than is drawn: the beginning of what is long, or the
part around a match. The whole is read again when it is asked for.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from msgspec import Struct

from everturn.derive.diffs import style_of
from everturn.tui.lines import Line, block, cut, mark_spans

_LINES_BEFORE = 3  # lines before a match that are shown with it


class ExcerptItem(NamedTuple):
    """Some lines of a text, and how many there are around them."""

    text: str
    before: int = 0
    beyond: int = 0

    def lines(self, width: int, margin: str, style: str = "", beside: str = "") -> list[Line]:
        """How it is drawn."""
        drawn = block(self.text, width, margin, style, beside)
        if self.before:
            drawn.insert(0, ((f"{margin}… {self.before:,} lines before", "dim"),))
        if self.beyond:
            more = f"{margin}… {self.beyond:,} more line{'' if self.beyond == 1 else 's'} (v shows all)"
            drawn.append(cut(((more, "dim"),), width))
        return drawn


def excerpt(text: str, most: int, marks: tuple[str, ...] = ()) -> ExcerptItem:
    """The first lines of a text, or those around the first mark in it; 0 is all of them."""
    text = text.strip("\n")
    if not most:
        return ExcerptItem(text)
    at, lower = 0, text.lower() if marks else ""
    places = [place for mark in marks if (place := lower.find(mark.lower())) >= 0]
    if places:
        at = _line_before(text, min(places), _LINES_BEFORE)
    end = at
    for _ in range(most):
        end = text.find("\n", end) + 1
        if end == 0:
            break
    stop = end - 1 if end else len(text)
    return ExcerptItem(text[at:stop], text.count("\n", 0, at), text.count("\n", stop))


def _line_before(text: str, place: int, lines: int) -> int:
    """Where the line begins that stands so many before the one at `place`."""
    for _ in range(lines + 1):
        place = text.rfind("\n", 0, place)
        if place < 0:
            return 0
    return place + 1


class HeadingItem(Struct, frozen=True):
    """The head of the session, of a turn, or a mark between words."""

    key: Hashable
    text: Line
    turn: int = -1
    blank: bool = False  # a line of room before it

    def lines(self, width: int) -> list[Line]:
        """One line."""
        return [*([()] if self.blank else []), cut(self.text, width)]


class WordsItem(Struct, frozen=True):
    """What somebody said."""

    key: Hashable
    said: ExcerptItem
    margin: str = "  "
    style: str = ""
    beside: str = ""
    label: str = ""
    marks: tuple[str, ...] = ()

    def lines(self, width: int) -> list[Line]:
        """Its words, broken to the width."""
        first, rest = self.margin, " " * len(self.margin)
        drawn = self.said.lines(width, rest, self.style, self.beside)
        if first.strip() and drawn:
            drawn[0] = ((first, self.beside or self.style), *drawn[0][1:])
        if self.label:
            drawn.insert(0, ((f"[{self.label}]", "dim"),))
        return [mark_spans(line, self.marks) for line in drawn]


class FoldedPart(Struct, frozen=True):
    """Something that was folded away: a diff, or words with a margin."""

    said: ExcerptItem
    margin: str
    beside: str = "dim"
    is_diff: bool = False

    def lines(self, width: int) -> list[Line]:
        """How it is drawn."""
        if not self.is_diff:
            return self.said.lines(width, self.margin, "", self.beside)
        drawn = [
            line
            for text in self.said.text.split("\n")
            for line in block(text, width, self.margin, style_of(text), self.beside)
        ]
        return [*drawn, *ExcerptItem("", 0, self.said.beyond).lines(width, self.margin)[1:]]


class FoldedItem(Struct, frozen=True):
    """One line, and what is below it once it is opened. `parts` is None while it is closed."""

    key: Hashable
    text: Line
    parts: tuple[FoldedPart, ...] | None = None
    margin: str = ""
    marks: tuple[str, ...] = ()

    def lines(self, width: int) -> list[Line]:
        """Its line, and its parts when it is open."""
        sign = "▸ " if self.parts is None else "▾ "
        drawn = [cut(((self.margin + sign, "dim"), *self.text), width)]
        for part in self.parts or ():
            drawn += [mark_spans(line, self.marks) for line in part.lines(width)]
        if self.parts == ():
            drawn.append(((f"{self.margin}    (nothing)", "dim"),))
        return drawn


class LinkItem(Struct, frozen=True):
    """The way to another session; None when it is not in the archive."""

    key: Hashable
    text: str
    session: int | None
    margin: str = ""

    def lines(self, width: int) -> list[Line]:
        """One line."""
        said = (self.text, "link") if self.session is not None else (f"{self.text} (not in the archive)", "dim")
        return [cut(((f"{self.margin}↳ ", "dim"), said), width)]
