"""Which lines of two texts correspond, and in which forms lines are compared.

`equal_pairs` cuts off the common beginning and end first. What is left is compared by `difflib`; very long rests are split
at lines that occur once in both (patience), so that the work stays bounded.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

#: Product of the two lengths up to which `difflib` compares.
_MOST = 4_000_000
_LOOSE = re.compile(r"[\s'\"`,;()\[\]{}\\]+")
_WORDY = re.compile(r"\w", re.UNICODE)
_LEAST_WORD = 5
_SURE = 12  # characters of a text that is found again after a gap
#: Lines that occur in many files and say nothing alone.
_COMMON = re.compile(
    r"(?:return(?: (?:nil|null|none|true|false|err|0))?|else:?|try:?|pass|break|continue|end|fi|done|esac|import|finally:?|default:?|"
    r"endif|endfor|begin|const|public:|private:|use strict|@override|err != nil|if err != nil|\.\.\.)",
    re.IGNORECASE,
)


def loose_form(line: str) -> str:
    """Return a line without what formatters change: white space, quotes, commas, semicolons and brackets."""
    return _LOOSE.sub("", line)


def is_trivial(line: str) -> bool:
    """Whether a line says nothing alone: a bracket, `return nil`, a blank line."""
    bare = line.strip().strip("{}()[];,:").strip()
    return len(_WORDY.findall(bare)) < _LEAST_WORD or _COMMON.fullmatch(bare) is not None


def equal_pairs(one: Sequence[str], two: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of corresponding lines, in order."""
    first, last = 0, 0
    most = min(len(one), len(two))
    while first < most and one[first] == two[first]:
        yield first, first
        first += 1
    while last < most - first and one[-1 - last] == two[-1 - last]:
        last += 1
    yield from _rest_pairs(one, two, first, len(one) - last, first, len(two) - last)
    yield from ((len(one) - number, len(two) - number) for number in range(last, 0, -1))


def reflowed_pairs(one: Sequence[str], two: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of lines that correspond apart from their format, also where a line was wrapped or joined."""
    left, right = [loose_form(line) for line in one], [loose_form(line) for line in two]
    last = (-1, -1)
    for pair in [*equal_pairs(left, right), (len(one), len(two))]:
        (a, c), (b, d) = last, pair
        if b - a > 1 and d - c > 1:
            yield from _wrapped_pairs(left, right, range(a + 1, b), range(c + 1, d))
        if b < len(one):
            yield pair
        last = pair


def formatted_pairs(one: Sequence[str], two: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of lines that are equal, or differ only in format as everything around them does.

    A formatter changes nothing but format. So between two equal lines that say something, either all text is the same but for
    its format, or somebody edited there; then only equal lines correspond.
    """
    left, right = [line.rstrip() for line in one], [line.rstrip() for line in two]
    last, inside = (-1, -1), list[tuple[int, int]]()
    for pair in [*equal_pairs(left, right), (len(one), len(two))]:
        if pair[0] < len(one) and is_trivial(left[pair[0]]):
            inside.append(pair)
            continue
        old, new = range(last[0] + 1, pair[0]), range(last[1] + 1, pair[1])
        if len(inside) < max(len(old), len(new)) and _is_same_text(left, right, old, new):
            inside = [(old[a], new[b]) for a, b in reflowed_pairs(one[old.start : old.stop], two[new.start : new.stop])]
        yield from inside
        if pair[0] < len(one):
            yield pair
        last, inside = pair, []


def _is_same_text(left: Sequence[str], right: Sequence[str], old: range, new: range) -> bool:
    text = loose_form("".join(left[number] for number in old))
    return bool(text) and text == loose_form("".join(right[number] for number in new))


def _wrapped_pairs(left: Sequence[str], right: Sequence[str], old: range, new: range) -> Iterator[tuple[int, int]]:
    """Yield pairs of lines in a gap whose joined texts are the same, as far as they are."""
    text = "".join(left[number] for number in old)
    owners = [number for number in old for _ in left[number]]
    at, before = 0, -1
    for number in new:
        form = right[number]
        found = text.find(form, at) if form else -1
        if form and (found == at or (found > at and len(form) >= _SURE)):
            before, at = owners[found], found + len(form)
            yield before, number
        elif not form and before >= 0:
            yield before, number


def _rest_pairs(one: Sequence[str], two: Sequence[str], a: int, b: int, c: int, d: int) -> Iterator[tuple[int, int]]:
    if a == b or c == d:
        return
    if (b - a) * (d - c) <= _MOST:
        matcher = SequenceMatcher(None, one[a:b], two[c:d], autojunk=False)
        for block in matcher.get_matching_blocks():
            yield from ((a + block.a + n, c + block.b + n) for n in range(block.size))
        return
    anchors = anchor_pairs(one, two, a, b, c, d)
    if not anchors:
        return
    for x, y in [*anchors, (b, d)]:
        if (x - a) * (y - c) <= _MOST:
            yield from _rest_pairs(one, two, a, x, c, y)
        if x < b:
            yield x, y
        a, c = x + 1, y + 1


def anchor_pairs(one: Sequence[T], two: Sequence[T], a: int, b: int, c: int, d: int) -> list[tuple[int, int]]:
    """Return pairs of lines that occur once in both, from `a` to `b` and from `c` to `d`, in the longest common order."""
    left, right = Counter(one[a:b]), Counter(two[c:d])
    places = {two[y]: y for y in range(c, d) if right[two[y]] == 1}
    pairs = [(x, places[one[x]]) for x in range(a, b) if left[one[x]] == 1 and one[x] in places]
    tails: list[int] = []
    chain: list[int] = []
    before: list[int] = []
    for number, (_, y) in enumerate(pairs):
        at = bisect_left(tails, y)
        before.append(chain[at - 1] if at else -1)
        tails[at : at + 1] = [y]
        chain[at : at + 1] = [number]
    found, number = [], chain[-1] if chain else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]
