"""Lines of styled text, wrapped and cut by the terminal cells they take.

Widths come from the library that draws, so that it does not wrap a line again. The styles use only the sixteen colours of
the terminal and its attributes; with NO_COLOR the attributes still tell things apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.cells import cell_len, get_character_cell_size
from rich.segment import Segment
from rich.style import Style

Span = tuple[str, str]  # text, name of a style
Line = tuple[Span, ...]

STYLES = {
    "": Style.null(),
    "bold": Style(bold=True),
    "dim": Style(dim=True),
    "head": Style(color="cyan", bold=True),
    "ok": Style(color="green"),
    "error": Style(color="red", bold=True),
    "warn": Style(color="yellow"),
    "added": Style(color="green"),
    "removed": Style(color="red"),
    "hunk": Style(color="cyan"),
    "link": Style(color="blue", underline=True),
    "match": Style(reverse=True, bold=True),
}
SELECTED = Style(reverse=True)
_SELECTED_MATCH = Style(reverse=True, bold=True, underline=True)
_LONGEST = 20_000  # characters of one line that are drawn: beyond is data


def plain_line(text: str, style: str = "") -> Line:
    return ((text, style),)


def width_of(line: Line) -> int:
    return sum(cell_len(text) for text, _ in line)


def cut(line: Line, width: int) -> Line:
    """Return the line, cut to `width` cells with a `…`."""
    if width_of(line) <= width:
        return line
    kept, left = list[Span](), width - 1
    for text, style in line:
        end = _fitting_end(text, 0, left)
        kept.append((text[:end], style))
        left -= cell_len(text[:end])
        if end < len(text):
            break
    return (*kept, ("…", "dim")) if width > 0 else ()


def break_lines(text: str, width: int) -> Iterator[str]:
    """Wrap one line of text to `width` cells, between words where possible."""
    text = text.expandtabs(4)
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text) - _LONGEST:,} more characters)"
    start = 0
    while True:
        end = _fitting_end(text, start, max(width, 2))
        if end >= len(text):
            yield text[start:]
            return
        space = text.rfind(" ", start + (end - start) // 2, end + 1)
        if space > start:
            yield text[start:space]
            start = space + 1
        else:
            yield text[start:end]
            start = end


def block(text: str, width: int, margin: str = "", style: str = "", beside: str = "") -> list[Line]:
    """Wrap a text, with a margin before each line; `beside` is the style of the margin."""
    room = width - cell_len(margin)
    return [((margin, beside or style), (part, style)) for line in text.split("\n") for part in break_lines(line, room)]


def mark_spans(line: Line, words: Iterable[str]) -> Line:
    """Return the line with these words highlighted, ignoring case."""
    spans = list(line)
    for word in filter(None, words):
        spans = [piece for span in spans for piece in _mark_word(span, word.lower())]
    return tuple(spans)


def segments(line: Line, selected: bool = False) -> list[Segment]:
    """Return the segments of a line; a selected one is drawn in reverse."""
    if selected:
        return [Segment(text, _SELECTED_MATCH if style == "match" else SELECTED) for text, style in line]
    return [Segment(text, STYLES[style]) for text, style in line]


def _mark_word(span: Span, word: str) -> Iterator[Span]:
    text, style = span
    lower = text.lower()
    if style == "match" or len(lower) != len(text):  # some letters change their length with their case
        yield span
        return
    start = 0
    while (found := lower.find(word, start)) >= 0:
        if found > start:
            yield text[start:found], style
        yield text[found : found + len(word)], "match"
        start = found + len(word)
    if start < len(text):
        yield text[start:], style


def _fitting_end(text: str, start: int, width: int) -> int:
    """Return the end of the part from `start` that fits into `width` cells: at least one character if there is room."""
    ahead = text[start : start + width + 1]
    if ahead.isascii():
        return min(start + width, len(text))
    used = 0
    for index in range(start, len(text)):
        used += get_character_cell_size(text[index])
        if used > width:
            return max(index, start + 1) if width > 1 else index
    return len(text)
