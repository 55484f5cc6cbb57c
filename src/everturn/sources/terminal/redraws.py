"""Find out what a screen that is drawn anew draws again, though it may be wrapped differently or have grown.

Drawings are compared by their letters, so that a line that was broken elsewhere, moved or framed is still the same text.
A line of few letters is only the same where it also looks the same, because words like "yes" stand everywhere.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from everturn.sources.terminal.transcript import DrawnSaying

_SIGNS = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")
_PROMPT_MARKS = ("> ", "❯ ", "› ", "❯\xa0")
_LONG = 12  # letters that do not stand elsewhere by chance
_SURE = 0.6  # of the letters of a line: it was drawn again
_FAR = 6_000  # letters that may have been left out at one place
_NEAR = 400  # letters left out that nothing has to confirm
_GROWN = 8  # lines looked at for one that grew
_STARTS = 4  # places tried at which a drawing may begin
_FIRST_LINES = 12  # of a drawing, one of which has to be known


class Redrawing(NamedTuple):
    """How new lines draw old ones again."""

    places: list[int]  # for each new line the old line it begins in, or -1
    drawn: list[bool]  # for each old line whether it was drawn again

    @property
    def share(self) -> int:
        """Return how many old lines were drawn again."""
        return sum(self.drawn)


@lru_cache(maxsize=8192)
def letters(text: str) -> str:
    """Return the letters and digits of a line."""
    return _SIGNS.sub("", text)


def is_prompt(text: str) -> bool:
    """Return whether a line begins with the mark of a prompt."""
    return text.lstrip()[:2] in _PROMPT_MARKS


def is_alike(old: str, new: str) -> bool:
    """Return whether a line went on, was taken back, or shows other numbers or another sign in front."""
    before, after = letters(old), letters(new)
    if not before or not after:
        return False
    if before.startswith(after) or after.startswith(before):
        return True
    return _DIGITS.sub("", before) == _DIGITS.sub("", after)


def covers_rows(whole: str, text: str) -> bool:
    """Return whether the rows of a text come in `whole`, which has no white space: the first at its beginning, with gaps."""
    rows = [row for row in map(_squash, text.split("\n")) if row]
    return bool(rows) and whole.startswith(rows[0]) and holds_in_order(whole, rows)


def holds_in_order(whole: str, parts: Iterable[str]) -> bool:
    """Return whether the parts are in `whole`, one after the other."""
    place = 0
    for part in parts:
        place = whole.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def find_redrawn(said: Sequence[DrawnSaying], emptied: Sequence[int]) -> set[int]:
    """Return which prompts of a talk were only drawn again: they repeat an earlier one, and nothing was sent since.

    Nobody sends a prompt without a text leaving the input field; `emptied` says when one did. A full-screen client draws the
    prompt after that. Where the field was not seen to become empty before the other prompts, it is no witness, and every
    prompt counts.
    """
    prompts: list[int] = []
    redrawn: set[int] = set()
    for number, item in enumerate(said):
        if not item.starts_turn or not item.text:
            continue
        copied = next((place for place in reversed(range(len(prompts))) if _repeats(item, said[prompts[place]])), None)
        if copied is not None and _was_not_sent(item, [said[one] for one in prompts], copied, emptied):
            redrawn.add(number)
        else:
            prompts.append(number)
    return redrawn


def _repeats(item: DrawnSaying, earlier: DrawnSaying) -> bool:
    """Return whether a prompt has the words of an earlier one; of one with gaps, each row."""
    if item.time_text != earlier.time_text:
        return False
    whole, rows = _squash(earlier.text), [_squash(row) for row in item.text.split("\n")]
    return holds_in_order(whole, rows) if item.fidelity == "partial" else whole == "".join(rows)


def _was_not_sent(item: DrawnSaying, before: Sequence[DrawnSaying], copied: int, emptied: Sequence[int]) -> bool:
    """Return whether no text was left for a prompt: those that left the field since the copied one are other prompts."""
    pairs = [(before[0].bytes[1] + 1, 0), *((b.bytes[1] + 1, a.bytes[0] + 1) for a, b in pairwise(before))]
    if not all(bisect_left(emptied, start) < bisect_left(emptied, end) for end, start in pairs):
        return False
    left = bisect_right(emptied, item.bytes[1]) - bisect_right(emptied, before[copied].bytes[1])
    return left <= len(before) - copied - 1


def _squash(text: str) -> str:
    return "".join(text.split())


def compare_drawings(old: Sequence[str], new: Sequence[str], anywhere: bool = False) -> Redrawing:
    """Return which old lines the new ones draw again, in order; the new drawing may begin `anywhere` in the old one."""
    text = _OldText(old)
    said = [letters(line) for line in new]
    if not anywhere:
        return text.walk(new, said, 0)
    found = [text.walk(new, said, start) for start in text.find_starts(said)]
    return max(found, key=lambda one: one.share, default=Redrawing([-1] * len(new), [False] * len(old)))


class _OldText:
    """The letters of old lines in one string, and where each line begins in it."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.parts = [letters(line) for line in lines]
        self.text = "".join(self.parts)
        self.starts: list[int] = []
        self.covered = [0] * len(lines)
        place = 0
        for part in self.parts:
            self.starts.append(place)
            place += len(part)

    def find_starts(self, said: Sequence[str]) -> list[int]:
        """Return where in the old text a drawing may begin; the likeliest place, which lets both end together, first."""
        expected = len(self.text) - sum(map(len, said))
        skipped = 0
        for part in [part for part in said if part][:_FIRST_LINES]:
            if len(part) >= _LONG and (found := self._find_all(part)):
                return sorted(found, key=lambda place: abs(place - skipped - expected))[:_STARTS]
            skipped += len(part)
        return [0]

    def _find_all(self, part: str) -> list[int]:
        found: list[int] = []
        place = self.text.find(part)
        while place >= 0 and len(found) < 64:
            found.append(place)
            place = self.text.find(part, place + 1)
        return found

    def walk(self, new: Sequence[str], said: Sequence[str], start: int) -> Redrawing:
        """Follow the new lines through the old text from `start` on."""
        self.covered = [0] * len(self.lines)
        places, cursor = [-1] * len(new), start
        for number, part in enumerate(said):
            if not part:
                continue
            place, length = self._find(new[number].strip(), part, cursor, said[number + 1 : number + 4])
            if place >= 0:
                places[number] = self._line_at(place)
                self._cover(place, length)
                cursor = place + length
        drawn = [
            bool(part) and covered >= _SURE * len(part) for part, covered in zip(self.parts, self.covered, strict=True)
        ]
        return Redrawing(places, drawn)

    def _find(self, line: str, part: str, cursor: int, following: Sequence[str]) -> tuple[int, int]:
        """Return where the letters of a new line stand from `cursor` on and how many of them do; (-1, 0): nowhere."""
        if self.text.startswith(part, cursor) and (len(part) >= _LONG or self._is_there(line, part, cursor)):
            return cursor, len(part)
        place = self.text.find(part, cursor, cursor + _FAR + len(part))
        while place >= 0:
            if len(part) >= _LONG or self._is_there(line, part, place):
                after = next(filter(None, following), "")
                if place - cursor <= _NEAR or not after or self.text.startswith(after, place + len(part)):
                    return place, len(part)
                break
            place = self.text.find(part, place + 1, cursor + _FAR + len(part))
        return self._find_grown(part, cursor)

    def _is_there(self, line: str, part: str, place: int) -> bool:
        """Return whether few letters go on inside an old line, or are the whole of one with the same mark."""
        number = self._line_at(place)
        if self.starts[number] < place:
            return self.covered[number] > 0
        return self.parts[number] == part and is_prompt(self.lines[number]) == is_prompt(line)

    def _find_grown(self, part: str, cursor: int) -> tuple[int, int]:
        """Return the place of an old line that the new one goes on with, or takes back."""
        first = self._line_at(cursor) if cursor < len(self.text) else len(self.parts)
        for number in range(first, min(first + _GROWN, len(self.parts))):
            place = max(self.starts[number], cursor)
            rest = self.parts[number][place - self.starts[number] :]
            if rest and part.startswith(rest) and (number == first or len(rest) >= _LONG // 2):
                return place, len(rest)
        return -1, 0

    def _line_at(self, place: int) -> int:
        """Return the line that has the letter at `place`."""
        return bisect_right(self.starts, place) - 1

    def _cover(self, place: int, length: int) -> None:
        number, end = self._line_at(place), place + length
        while number < len(self.parts) and self.starts[number] < end:
            stop = self.starts[number] + len(self.parts[number])
            self.covered[number] += max(0, min(end, stop) - max(place, self.starts[number]))
            number += 1
