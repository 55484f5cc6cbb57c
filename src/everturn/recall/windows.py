"""Windows: the lines of a text around the words of a query.

    words = QueryWords(["redis", "ttl"], counts={"ttl": 3})
    words.windows(text, size=400, most=2)      spans of the text, the best first

A window holds whole lines; the line that matches is never cut, unless it is longer than `LONG_LINE`: then it is cut between
words, around the match. The best window holds the rarest words of the query. Further windows are for words that the ones
before do not hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from everturn.store.index import stem_word
from everturn.text.terms import terms
from everturn.text.time_phrases import lower_case

TextSpan = tuple[int, int]
_Match = tuple[int, int, int]  # start, end, number of the word

#: Characters of a line that are shown on each side of a match, if the line is longer than that.
LONG_LINE = 200
#: Two windows that are closer than this are joined.
_NEAR = 60
_WORDS = 24  # of a query
_MATCHES = 150  # of one word
_NEARBY = 24  # matches that may belong to one core
_SEARCHED = 1_000_000  # characters
_KNOWN = 100  # entries up to which the store counts a word
_SHORTEST_STEM = 4


class QueryWords:
    """The words to look for, each with a weight: the rarer it is in the archive, the more."""

    def __init__(self, words: Iterable[str], counts: Mapping[str, int] | None = None) -> None:
        self.words = tuple(dict.fromkeys(word.lower() for word in words if word.strip()))[:_WORDS]
        self._patterns = [re.compile(_word_pattern(word)) for word in self.words]
        known = counts or {}
        self.weights = [math.log(2 + _KNOWN / max(known.get(word, _KNOWN), 1)) for word in self.words]
        self._matches: dict[str, list[_Match]] = {}  # by text: a quotation grows in steps over the same texts

    def matches(self, text: str) -> list[_Match]:
        """Return where the words are, in order."""
        if text in self._matches:
            return self._matches[text]
        lower = lower_case(text[:_SEARCHED])
        found: list[_Match] = []
        for number, pattern in enumerate(self._patterns):
            spots = zip(pattern.finditer(lower), range(_MATCHES), strict=False)
            found += [(spot.start(), spot.end(), number) for spot, _ in spots]
        self._matches[text] = sorted(found)
        return self._matches[text]

    def find_words(self, text: str) -> set[int]:
        """Return the numbers of the words that a text holds."""
        lower = lower_case(text[:_SEARCHED])
        return {number for number, pattern in enumerate(self._patterns) if pattern.search(lower)}

    def weigh(self, numbers: Iterable[int]) -> float:
        return sum(self.weights[number] for number in set(numbers))

    def windows(self, text: str, size: int, most: int = 1) -> list[TextSpan]:
        """Return up to `most` windows, the best first; without any match the beginning of the text."""
        found = self.matches(text)
        spans: list[TextSpan] = []
        held: set[int] = set()
        while len(spans) < most and (core := self._best_core(found, held)):
            spans.append(_grow_span(text, _whole_lines(text, core), size))
            held |= {number for start, end, number in found if spans[-1][0] <= start and end <= spans[-1][1]}
        return spans or [_grow_span(text, (0, 0), size)]

    def _best_core(self, found: Sequence[_Match], held: set[int]) -> TextSpan | None:
        """Return the span of close matches with the most weight that is not held yet."""
        best, most, weights = None, 0.0, self.weights
        whole = self.weigh({number for _, _, number in found} - held)
        for number, (start, _, _) in enumerate(found):
            if most * 1.001 >= whole:  # nothing can be better
                break
            last, seen, weight = 0, set(held), 0.0
            for begin, end, other in found[number : number + _NEARBY]:
                if begin - start > LONG_LINE:
                    break
                if end - start > LONG_LINE:
                    continue
                last = max(last, end)
                if other not in seen:
                    seen.add(other)
                    weight += weights[other]
            if weight > most * 1.001:
                best, most = (start, last), weight
        return best


def merge_spans(spans: Iterable[TextSpan]) -> list[TextSpan]:
    """Return the spans in order; close ones are joined."""
    merged: list[TextSpan] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + _NEAR:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def show_spans(text: str, spans: Iterable[TextSpan]) -> str:
    """Return the parts of a text with `…` where something is left out."""
    parts = []
    shown = merge_spans(spans)
    for number, (start, end) in enumerate(shown):
        part = text[start:end].strip("\n")
        head = "… " if text[:start].strip() and (not number or start) else ""
        parts.append(f"{head}{part}")
    is_cut = bool(shown) and bool(text[shown[-1][1] :].strip())
    return "\n".join(parts) + (" …" if is_cut else "")


def start_span(text: str, size: int) -> TextSpan:
    """Return the beginning of a text, cut between words."""
    return _grow_span(text, (0, 0), size)


def _word_pattern(word: str) -> str:
    """Return a pattern for a word and its other forms. Short words match as a whole only."""
    found = terms(word)
    if len(found) != 1 or not word.isascii():
        return r"[\W_]{0,3}".join(map(re.escape, found)) if found else re.escape(word)
    stem = stem_word(found[0])
    if len(stem) >= _SHORTEST_STEM and found[0].startswith(stem):
        return re.escape(stem)
    if len(found[0]) > _SHORTEST_STEM:
        return re.escape(found[0][:-1])
    return rf"(?<![^\W_]){re.escape(found[0])}s?(?![^\W_])"


def _whole_lines(text: str, core: TextSpan) -> TextSpan:
    """Return the span with the rest of its first and last line, as far as these are not too long."""
    start, end = core
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    if start - line_start > LONG_LINE:
        line_start = _word_start(text, start - LONG_LINE, start)
    if line_end - end > LONG_LINE:
        line_end = _word_end(text, end, end + LONG_LINE)
    return line_start, line_end


def _grow_span(text: str, span: TextSpan, size: int) -> TextSpan:
    """Return the span with the text around it, up to `size` characters: one part before it, two behind it."""
    start, end = span
    room = size - (end - start)
    if room <= 0:
        return span
    before = min(start, max(room // 3, room - (len(text) - end)))
    behind = min(len(text) - end, room - before)
    first, last = start - before, end + behind
    first = 0 if first == 0 else _line_after(text, first, start)
    last = len(text) if last == len(text) else _line_before(text, end, last)
    return first, last


def _line_after(text: str, first: int, start: int) -> int:
    """Return the start of the first whole line from `first` on; of the first word, if a line has most of the room."""
    line = text.find("\n", first - 1, start) + 1
    return line if line and line - first <= (start - first) // 2 else _word_start(text, first, start)


def _line_before(text: str, end: int, last: int) -> int:
    line = text.rfind("\n", end, last + 1)
    return line if line >= 0 and last - line <= (last - end) // 2 else _word_end(text, end, last)


def _word_start(text: str, first: int, start: int) -> int:
    spaces = (place for place in range(first, min(start, first + 40)) if text[place].isspace())
    return next((place + 1 for place in spaces), first)


def _word_end(text: str, end: int, last: int) -> int:
    for place in range(last, max(end, last - 40), -1):
        if text[place].isspace():
            return place
    return last
