"""Regular expressions over text of any length, line by line, with an end to the work.

`compile_pattern` takes a pattern of at most 200 characters (`derive.pattern` says what is understood) and raises Usage for one
that cannot be used. Matching takes one pass over the text whatever the pattern is, and ends when the `Effort` given is
used up (the pattern's own, for all its searches together, or one that is given): `effort.spent` says whether it is. A match never spans lines. Lines that cannot match are passed over
at memory speed where the pattern has a literal part.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from everturn.derive.automaton import Effort, EffortExhausted, Finder, Span
from everturn.derive.pattern import literals, parse_regex

__all__ = ["EFFORT", "Effort", "LinearPattern", "MatchedLine", "compile_pattern"]

#: For one request: about a second and a half of one processor.
EFFORT = 16_000_000
_SKIPPED = 64  # characters passed over for one unit


class MatchedLine(Struct, frozen=True):
    """A line that matches."""

    number: int  # 0-based
    start: int  # where it begins in the text
    text: str  # without its line end
    spans: tuple[Span, ...]  # of the matches in it; a match of no characters has none


class LinearPattern:
    """A pattern ready to be looked for, and the work it may take. Not shared between threads."""

    def __init__(self, source: str) -> None:
        node = parse_regex(source)
        self.source = source
        self.literals = literals(node)  # text every match holds, in lower case
        self.effort = Effort(EFFORT)  # of those searches that are not given another
        self._longest = max(self.literals, key=len, default="")
        self._finder = Finder(node)

    def search_lines(self, text: str, effort: Effort | None = None) -> Iterator[MatchedLine]:
        """The lines that match, in order, until the effort is used up."""
        budget = effort or self.effort
        try:
            for number, start, line in self._possible_lines(text, budget):
                if self._finder.has(line, budget):
                    yield MatchedLine(number, start, line, tuple(self._finder.spans(line, budget)))
        except EffortExhausted:
            return

    def matches(self, text: str, effort: Effort | None = None) -> bool:
        """Whether any line matches."""
        return next(self.search_lines(text, effort), None) is not None

    def _possible_lines(self, text: str, effort: Effort) -> Iterator[tuple[int, int, str]]:
        """Number, start and text of the lines that hold the longest literal part."""
        held = self._longest
        lower = text.lower() if held else ""
        if held and len(lower) != len(text):  # a few letters grow: places would no longer be the same
            held, lower = "", ""
        number = at = 0
        while at <= len(text):
            found = lower.find(held, at) if held else at
            effort.take(1 + (max(found, at) - at) // _SKIPPED)
            if found < 0:
                return
            start = text.rfind("\n", at, found) + 1 or at
            number += text.count("\n", at, start)
            end = text.find("\n", found)
            end = len(text) if end < 0 else end
            yield number, start, text[start:end].removesuffix("\r")
            number, at = number + 1, end + 1


def compile_pattern(pattern: str) -> LinearPattern:
    """The pattern, ready. Raises Usage and says what is wrong with it."""
    return LinearPattern(pattern)
