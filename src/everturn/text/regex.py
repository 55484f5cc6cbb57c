"""Matching a pattern in time that grows with the text only, whatever the pattern is.

Python's own matcher tries one way after the other, and there are short patterns and short texts for which that takes
longer than anyone lives; it cannot be stopped either. Here all ways are followed at once: sets of places in the pattern
are the states of an automaton that is built while the text is read, so that each character is one look into a dict.

Work is counted, not timed: an `Effort` is given along, and when it is used up the search ends wherever it is. The same
request therefore ends at the same place on every machine.

Regular expressions over text of any length, line by line, with an end to the work.

`compile_pattern` takes a pattern of at most 200 characters (`derive.pattern` says what is understood) and raises Usage for one
that cannot be used. Matching takes one pass over the text whatever the pattern is, and ends when the `Effort` given is
used up (the pattern's own, for all its searches together, or one that is given): `effort.spent` says whether it is. A match never spans lines. Lines that cannot match are passed over
at memory speed where the pattern has a literal part.

Patterns that are compiled when first used: most of what a program could look for, it never meets.

`everturn-hook` uses this module while an agent waits, so `typing` is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from everturn.errors import UsageError
from everturn.text.regex_syntax import (
    Chars,
    Node,
    RegexChoice,
    RegexEdge,
    RegexSequence,
    Repeat,
    is_word,
    literals,
    parse_regex,
)

__all__ = ["EFFORT", "Effort", "LinearPattern", "MatchedLine", "compile_pattern"]


Span = tuple[int, int]

#: Places in a pattern with its counted repeats written out.
_MOST_PLACES = 2000
#: Followed paths that were remembered before all are forgotten.
_MOST_PATHS = 20_000
_EDGE, _WORD, _OTHER = 0, 1, 2


class EffortExhausted(Exception):
    """The effort is used up."""


class Effort:
    """How much work may still be done: about one unit for each character, 16 million to the second."""

    def __init__(self, units: int) -> None:
        self.left = units

    @property
    def spent(self) -> bool:
        """Whether the search was ended by this."""
        return self.left <= 0

    def take(self, units: int) -> None:
        """Do that much; raises Spent when there is nothing left afterwards."""
        self.left -= units
        if self.left <= 0:
            raise EffortExhausted


class Finder:
    """Finds a pattern in a line: the match that ends first, as far to both sides as it reaches."""

    def __init__(self, node: Node) -> None:
        self._ahead = _Machine(node, floating=True)
        self._anchored = _Machine(node)
        self._backward = _Machine(node, reverse=True)

    def has(self, line: str, effort: Effort) -> bool:
        """Whether there is a match at all."""
        return self._end(line, 0, effort) is not None

    def spans(self, line: str, effort: Effort, most: int = 10) -> Iterator[Span]:
        """The matches one after the other. A match of no characters is not among them."""
        at = 0
        for _ in range(most):
            end = self._end(line, at, effort)
            if end is None:
                return
            start = self._backward.longest_match(line, end, at, effort)
            start = end if start is None else start
            last = self._anchored.longest_match(line, start, len(line), effort)
            end = max(end, last or 0)
            if end > start:
                yield start, end
            at = max(end, start + 1)
            if at > len(line):
                return

    def _end(self, line: str, start: int, effort: Effort) -> int | None:
        """Where the first match ends."""
        effort.take(len(line) - start + 1)
        state = self._ahead.beginning(line, start, effort)
        for at, char in enumerate(line[start:] if start else line, start):
            state = state[char]
            if state.hit:
                return at
        return len(line) if self._ahead.ends(state, _EDGE) else None


class _State(dict[str, "_State"]):
    """Where one may be in the pattern; by character, where one is after it. `hit`: a match ended before the last one."""

    __slots__ = ("before", "hit", "machine", "places")

    def __init__(self, machine: _Machine, places: frozenset[int], before: int, hit: bool) -> None:
        super().__init__()
        self.machine = machine
        self.places = places
        self.before = before
        self.hit = hit

    def __missing__(self, char: str) -> _State:
        return self.machine.follow(self, char)


class _Machine:
    """A pattern as an automaton. A floating one may start anywhere, a reverse one reads from right to left."""

    def __init__(self, node: Node, floating: bool = False, reverse: bool = False) -> None:
        self._step = -1 if reverse else 1
        places = _PlaceTable(reverse)
        self._entry = places.enter(node, places.add(None))
        self._places = places.all
        self._minds_words = places.minds_words
        self._start = frozenset((self._entry,))
        self._floating = self._start if floating else frozenset()
        self._states: dict[tuple[frozenset[int], int, bool], _State] = {}
        self._paths = 0
        self._effort = Effort(0)

    def beginning(self, line: str, at: int, effort: Effort) -> _State:
        """The state before the character at this place; in a reverse one, before the character left of it."""
        self._effort = effort
        beside = at - 1 if self._step > 0 else at
        return self._state(self._start, self._kind(line, beside), False)

    def longest_match(self, line: str, at: int, limit: int, effort: Effort) -> int | None:
        """How far the longest match that begins here goes, up to a limit."""
        state = self.beginning(line, at, effort)
        begun, found = at, None
        while at != limit and state.places:
            state = state[line[at] if self._step > 0 else line[at - 1]]
            if state.hit:
                found = at
            at += self._step
        effort.take(2 * abs(at - begun) + 1)
        if state.places and self.ends(state, self._kind(line, at if self._step > 0 else at - 1)):
            found = at
        return found

    def ends(self, state: _State, after: int) -> bool:
        """Whether a match ends here, before a character of that kind or the edge."""
        return self._open(state.places, state.before, after)[1]

    def follow(self, state: _State, char: str) -> _State:
        """Where one is after a character; remembered in the state."""
        kind = _kind_of(char) if self._minds_words else _OTHER
        waiting, hit = self._open(state.places, state.before, kind)
        held = {id(chars): chars for chars, _ in waiting}  # a repeat written out waits for the same set many times
        fitting = {number for number, chars in held.items() if chars.holds(char)}
        places = frozenset(after for chars, after in waiting if id(chars) in fitting) | self._floating
        self._effort.take(40 + 30 * len(held) + 8 * len(waiting))
        self._paths += 1
        if self._paths > _MOST_PATHS:
            self._forget()
        found = state[char] = self._state(places, kind, hit)
        return found

    def _open(self, places: frozenset[int], before: int, after: int) -> tuple[list[tuple[Chars, int]], bool]:
        """The characters one waits for in these places, and whether one of them is the end."""
        waiting: list[tuple[Chars, int]] = []
        hit = False
        seen = set(places)
        todo = list(places)
        while todo:
            place = self._places[todo.pop()]
            if place is None:
                hit = True
            elif isinstance(place[0], Chars):
                waiting.append((place[0], place[1][0]))
            elif place[0] is None or _is_edge(place[0].kind, before, after):
                fresh = [one for one in place[1] if one not in seen]
                seen.update(fresh)
                todo += fresh
        self._effort.take(4 * len(seen))
        return waiting, hit

    def _state(self, places: frozenset[int], before: int, hit: bool) -> _State:
        key = (places, before, hit)
        if key not in self._states:
            self._states[key] = _State(self, *key)
        return self._states[key]

    def _forget(self) -> None:
        for state in self._states.values():
            state.clear()
        self._states.clear()
        self._paths = 0

    def _kind(self, line: str, at: int) -> int:
        if not 0 <= at < len(line):
            return _EDGE
        return _kind_of(line[at]) if self._minds_words else _OTHER


#: What is waited for, if anything, and where one may go then.
_Place = tuple[Chars | RegexEdge | None, tuple[int, ...]]


class _PlaceTable:
    """The places of a pattern, by number; None is the end."""

    def __init__(self, reverse: bool) -> None:
        self.all: list[_Place | None] = []
        self.minds_words = False
        self._reverse = reverse
        self._entered = 0

    def add(self, place: _Place | None) -> int:
        """A new place; gives its number."""
        self.all.append(place)
        return len(self.all) - 1

    def enter(self, node: Node, after: int) -> int:
        """The place where a part of the pattern begins that goes on with `after`."""
        self._entered += 1
        if self._entered > 4 * _MOST_PLACES or len(self.all) > _MOST_PLACES:
            raise UsageError("the pattern is too large with its repeats written out; repeat fewer times")
        if isinstance(node, Chars):
            return self.add((node, (after,)))
        if isinstance(node, RegexEdge):
            return self._edge(node, after)
        if isinstance(node, RegexSequence):
            for part in node.parts if self._reverse else reversed(node.parts):
                after = self.enter(part, after)
            return after
        if isinstance(node, RegexChoice):
            return self.add((None, tuple(self.enter(part, after) for part in node.parts)))
        return self._repeat(node, after)

    def _edge(self, node: RegexEdge, after: int) -> int:
        self.minds_words = self.minds_words or node.kind in "bB"
        kind = {"^": "$", "$": "^"}.get(node.kind, node.kind) if self._reverse else node.kind
        return self.add((RegexEdge(kind), (after,)))

    def _repeat(self, node: Repeat, after: int) -> int:
        if node.most is None:
            again = self.add(None)
            self.all[again] = (None, (self.enter(node.part, again), after))
            after = again
        else:
            out = after
            for _ in range(node.most - node.least):
                after = self.add((None, (self.enter(node.part, after), out)))
        for _ in range(node.least):
            after = self.enter(node.part, after)
        return after


def _kind_of(char: str) -> int:
    return _WORD if is_word(char) else _OTHER


def _is_edge(kind: str, before: int, after: int) -> bool:
    if kind == "^":
        return before == _EDGE
    if kind == "$":
        return after == _EDGE
    return ((before == _WORD) is not (after == _WORD)) is (kind == "b")


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
