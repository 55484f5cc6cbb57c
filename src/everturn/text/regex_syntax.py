"""The syntax of regular expressions: a pattern becomes a tree of characters, sequences, choices, repeats and edges.

What people write every day is understood as Python does: literals, `.`, classes, `\\d \\w \\s \\b`, groups, `|`, `* + ? {m,n}`
(also lazy), `^ $`, `(?i)` in front. What cannot be matched in one pass over the text (look-around, back references,
possessive and conditional groups) is refused with a sentence, and so is what is too long or nested too deeply.
"""

from __future__ import annotations

import re

from msgspec import Struct

from everturn.errors import UsageError

#: Longest pattern that is taken.
LONGEST = 200
_DEEPEST = 30
_MOST_TIMES = 1000
_KINDS = "dDwWsS"
_EDGES = {"b": "b", "B": "B", "A": "^", "Z": "$"}
_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_FLAGS = re.compile(r"\(\?([imsu]+)\)")
_TIMES = re.compile(r"\{(?:(\d{1,5})(,(\d{0,5}))?|,(\d{1,5}))\}")
_HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(00[0-9a-fA-F]{6})")


class Chars(Struct, frozen=True):
    """One character out of a set."""

    single: frozenset[str] = frozenset()
    ranges: tuple[tuple[str, str], ...] = ()
    kinds: str = ""  # of dDwWsS
    negated: bool = False
    any_case: bool = False

    def holds(self, char: str) -> bool:
        """Whether the character is one of them."""
        forms = (char, char.lower(), char.upper()) if self.any_case else (char,)
        return any(map(self._lists, forms)) is not self.negated

    def _lists(self, char: str) -> bool:
        return (
            char in self.single
            or any(first <= char <= last for first, last in self.ranges)
            or any(_is_of_kind(char, kind) for kind in self.kinds)
        )


class RegexEdge(Struct, frozen=True):
    """A place between two characters: `^ $ b B`."""

    kind: str


class RegexSequence(Struct, frozen=True):
    """One after the other."""

    parts: tuple[Node, ...]


class RegexChoice(Struct, frozen=True):
    """One of these."""

    parts: tuple[Node, ...]


class Repeat(Struct, frozen=True):
    """The same again and again; no `most` is without end."""

    part: Node
    least: int
    most: int | None


Node = Chars | RegexEdge | RegexSequence | RegexChoice | Repeat


def is_word(char: str) -> bool:
    """Whether `\\w` matches it."""
    return char == "_" or char.isalnum()


def parse_regex(pattern: str) -> Node:
    """The tree of a pattern. Raises Usage and says what is wrong with it."""
    length = len(pattern.removeprefix("(?i)"))
    if length > LONGEST:
        raise UsageError(f"the pattern has {length} characters; at most {LONGEST} are taken, so shorten it")
    return _RegexParser(pattern).whole()


def literals(node: Node) -> list[str]:
    """Pieces of text that every match holds, in lower case."""
    runs = [""]
    _collect_literals(node, runs)
    return [run for run in runs if run]


def _collect_literals(node: Node, runs: list[str]) -> None:
    if isinstance(node, RegexSequence):
        for part in node.parts:
            _collect_literals(part, runs)
    elif (char := _single_character(node)) is not None:
        runs[-1] += char
    elif isinstance(node, Repeat) and node.least:
        # What is repeated is there once at least, but nobody knows what stands beside it.
        runs.append("")
        _collect_literals(node.part, runs)
        runs.append("")
    elif not isinstance(node, RegexEdge):
        runs.append("")


def _single_character(node: Node) -> str | None:
    if not isinstance(node, Chars) or node.ranges or node.kinds or node.negated or len(node.single) != 1:
        return None
    lower = next(iter(node.single)).lower()
    # A character with capitals beyond ASCII may have more than two forms, or change its length: no literal.
    return lower if lower.isascii() or lower == lower.upper() else None


def _is_of_kind(char: str, kind: str) -> bool:
    found = {"d": char.isdecimal, "s": char.isspace}.get(kind.lower())
    return (found() if found else is_word(char)) is kind.islower()


class _RegexParser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        flags = _FLAGS.match(pattern)
        self._any_case = flags is not None and "i" in flags[1]
        self._text = pattern
        self._at = flags.end() if flags else 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._choice()
        if self._at < len(self._text):
            raise self._pattern_error("there is a ) too many")
        return node

    def _choice(self) -> Node:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else RegexChoice(tuple(parts))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            parts.append(self._parse_repeat(self._item()))
        return RegexSequence(tuple(parts))

    def _item(self) -> Node:
        char = self._next()
        if char == "(":
            return self._group()
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        if char in "*+?":
            raise self._pattern_error(f"{char} repeats nothing; write \\{char} for the sign itself")
        if char in "^$":
            return RegexEdge(char)
        return Chars(frozenset("\n"), negated=True) if char == "." else self._literal(char)

    def _group(self) -> Node:
        if self._take("?") and not self._take(":"):
            named = re.compile(r"P<\w+>").match(self._text, self._at)
            if not named:
                raise self._pattern_error(
                    "groups with (? are (?:…) and (?P<name>…); there is no look-around here, leave it out"
                )
            self._at = named.end()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._pattern_error("its groups are nested too deeply")
        node = self._choice()
        self._depth -= 1
        if not self._take(")"):
            raise self._pattern_error("a ( is not closed; write \\( for the sign itself")
        return node

    def _parse_repeat(self, node: Node) -> Node:
        times = self._times()
        if times is None:
            return node
        if isinstance(node, RegexEdge):
            raise self._pattern_error("a place between characters cannot be repeated")
        self._take("?")  # lazy or not, the same lines match
        if self._at < len(self._text) and (self._text[self._at] in "*+?" or _TIMES.match(self._text, self._at)):
            raise self._pattern_error("two repeats stand side by side; put the first one into a group")
        return Repeat(node, *times)

    def _times(self) -> tuple[int, int | None] | None:
        for sign, times in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return times
        found = _TIMES.match(self._text, self._at)
        if not found:
            return None
        self._at = found.end()
        least = int(found[1] or 0)
        most = least if found[1] and not found[2] else int(found[3] or found[4] or -1)
        if most > _MOST_TIMES or least > _MOST_TIMES or 0 <= most < least:
            raise self._pattern_error(
                f"{found[0]} cannot be counted; at most {_MOST_TIMES} times, the smaller number first"
            )
        return least, None if most < 0 else most

    def _escape(self) -> Node:
        if self._at < len(self._text) and self._text[self._at] in _EDGES:
            return RegexEdge(_EDGES[self._next()])
        found = self._escaped_character()
        return Chars(kinds=found[1]) if len(found) > 1 else self._literal(found)

    def _escaped_character(self) -> str:
        """The character after a backslash; of a kind, two of them: `\\d`."""
        if coded := _HEX.match(self._text, self._at):
            self._at = coded.end()
            return self._character(int(coded[coded.lastindex or 1], 16))
        char = self._next()
        if char in _KINDS:
            return "\\" + char
        if char in _SIGNS:
            return _SIGNS[char]
        if char.isdecimal():
            raise self._pattern_error("there are no back references here; write the text out")
        if char.isalpha() and char.isascii():
            raise self._pattern_error(f"\\{char} means nothing here")
        return char

    def _class(self) -> Node:
        negated = self._take("^")
        single: set[str] = set()
        ranges: list[tuple[str, str]] = []
        kinds = ""
        first = True
        while first or not self._take("]"):
            first = False
            low = self._member()
            if len(low) > 1:
                kinds += low[1]
            elif self._text[self._at : self._at + 1] == "-" and self._text[self._at + 1 : self._at + 2] not in (
                "]",
                "",
            ):
                self._at += 1
                ranges.append(self._range(low, self._member()))
            else:
                single.add(low)
        return Chars(frozenset(single), tuple(ranges), kinds, negated, self._any_case)

    def _member(self) -> str:
        if self._at >= len(self._text):
            raise self._pattern_error("a [ is not closed; write \\[ for the sign itself")
        char = self._next()
        if char == "\\" and self._take("b"):
            return "\b"
        return self._escaped_character() if char == "\\" else char

    def _range(self, low: str, high: str) -> tuple[str, str]:
        if len(high) > 1 or high < low:
            raise self._pattern_error(f"{low}-{high} is not a range; write \\- for the sign itself")
        return low, high

    def _literal(self, char: str) -> Chars:
        return Chars(frozenset(char), any_case=self._any_case)

    def _character(self, number: int) -> str:
        if number > 0x10FFFF:
            raise self._pattern_error("there is no character with that number")
        return chr(number)

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise self._pattern_error("it ends after a backslash; write \\\\ for the sign itself")
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True

    def _pattern_error(self, why: str) -> UsageError:
        return UsageError(f"the pattern /{self._text}/ cannot be used: {why}")
