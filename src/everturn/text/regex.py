"""Regular expressions over text of any length, line by line, in time that grows with the text only.

Python's matcher backtracks: for some short patterns it needs longer than anyone waits, and it cannot be interrupted.
RE2 follows all paths at once. This module translates a pattern from Python's syntax to RE2's, so that `\\d`, `\\w`, `\\s`,
`\\b` and `{,n}` keep the meaning they have in `re`, and refuses with a sentence what RE2 cannot match (look-around,
back references) and what is too long or too large.

Work is counted, not timed: a search stops when its `Effort` is used up, so the same search stops at the same line on
every machine. A match never spans lines. Lines without the longest literal of the pattern are skipped at memory speed.

RE2 is imported when the first pattern is compiled: most commands never compile one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from everturn.errors import UsageError
from everturn.text.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from typing import Any

__all__ = ["EFFORT", "Effort", "LinearPattern", "MatchedLine", "compile_pattern"]

Span = tuple[int, int]

#: Work allowed for one request.
EFFORT = 16_000_000
#: Longest pattern accepted, without `(?i)`.
MAX_LENGTH = 200
_MAX_DEPTH = 30
_MAX_REPEATS = 1000
_MAX_SPANS = 10  # matches marked in one line
_BLOCK = 1024  # characters searched at once
_SKIPPED = 64  # characters skipped for one unit of work
_MAX_SIZE = 2000  # items of a pattern with its repeats written out
_ITEMS = 16  # of them cost one unit a byte: RE2's slowest matcher may visit all of them
_WORD_SIZE = 4  # items that `\\w` counts for: hundreds of ranges of characters


class EffortExhausted(Exception):
    """The effort is used up."""


class Effort:
    """The work that may still be done: one unit for each byte scanned, more if the pattern is large."""

    def __init__(self, units: int) -> None:
        self.left = units

    @property
    def is_spent(self) -> bool:
        """Whether the search stopped because of this."""
        return self.left <= 0

    def take(self, units: int) -> None:
        """Use that much; raise EffortExhausted when nothing is left afterwards."""
        self.left -= units
        if self.left <= 0:
            raise EffortExhausted


class MatchedLine(Struct, frozen=True):
    number: int  # 0-based
    start: int  # where it begins in the text
    text: str  # without its line end
    spans: tuple[Span, ...]  # of the first matches in it; an empty match has none


class LinearPattern:
    """A compiled pattern, and the work its searches may take together. Not shared between threads."""

    def __init__(self, source: str) -> None:
        translation = _Translation(source)
        self.source = source
        self.literals = translation.literals  # text every match contains, in lower case
        self.effort = Effort(EFFORT)  # for searches without one of their own
        self._longest = max(self.literals, key=len, default="")
        self._translation = translation
        self._compiled = _compile_re2(translation.pattern)
        self._cost = 1 + translation.size // _ITEMS  # units for one byte

    def search_lines(self, text: str, effort: Effort | None = None) -> Iterator[MatchedLine]:
        """Yield the lines that match, in order, until the effort is used up."""
        budget = effort or self.effort
        try:
            for number, start, line in self._possible_lines(text, budget):
                if matches := list(islice(self._find_matches(line, budget), _MAX_SPANS)):
                    yield MatchedLine(number, start, line, tuple(span for span in matches if span[0] < span[1]))
        except EffortExhausted:
            return

    def matches(self, text: str, effort: Effort | None = None) -> bool:
        return next(self.search_lines(text, effort), None) is not None

    def _possible_lines(self, text: str, effort: Effort) -> Iterator[tuple[int, int, str]]:
        """Yield number, start and text of the lines worth a search."""
        lower = text.lower() if len(self._longest) > 2 else ""
        # A few letters grow when lowered: offsets would no longer be the same.
        if lower and len(lower) == len(text):
            return self._lines_with_literal(text, lower, effort)
        return self._lines_in_blocks(text, effort)

    def _lines_with_literal(self, text: str, lower: str, effort: Effort) -> Iterator[tuple[int, int, str]]:
        number = at = 0
        while at <= len(text):
            found = lower.find(self._longest, at)
            effort.take(1 + (max(found, at) - at) // _SKIPPED)
            if found < 0:
                return
            start = text.rfind("\n", at, found) + 1 or at
            number += text.count("\n", at, start)
            end = text.find("\n", found)
            end = len(text) if end < 0 else end
            yield number, start, text[start:end].removesuffix("\r")
            number, at = number + 1, end + 1

    def _lines_in_blocks(self, text: str, effort: Effort) -> Iterator[tuple[int, int, str]]:
        """Yield the lines of those blocks of lines in which something matches: one search a block is cheaper than one a line."""
        number = start = 0
        while start <= len(text):
            end = text.find("\n", start + _BLOCK)
            block = text[start : end if end >= 0 else len(text)].encode("utf-8", "replace")
            cost = self._cost * (len(block) + 1)
            lines = block.decode().split("\n")
            if cost < effort.left and not self._loose.search(block):
                effort.take(cost)
                number, start = number + len(lines), start + len(block.decode()) + 1
                continue
            for line in lines:
                yield number, start, text[start : start + len(line)].removesuffix("\r")
                number, start = number + 1, start + len(line) + 1

    def _find_matches(self, line: str, effort: Effort) -> Iterator[Span]:
        """Yield the spans of the matches in a line, empty ones too."""
        data = line.encode("utf-8", "replace")  # half of a surrogate pair becomes a question mark
        effort.take(self._cost * (len(data) + 1))
        spans: Iterator[Span]
        if self._translation.has_word_edges and len(data) > len(line):
            spans = self._find_framed(data.decode()) if self._loose.search(data) else iter(())
        else:
            subject = data if len(data) == len(line) else data.decode()
            spans = (match.span() for match in self._compiled.finditer(subject))
        for start, end in spans:
            yield start, end
            effort.take(self._cost * (len(line) - end + 1))

    def _find_framed(self, line: str) -> Iterator[Span]:
        """Yield the matches of a pattern with `\\b` in a line with letters beyond ASCII.

        RE2 knows word edges between ASCII characters only. So each character is framed by two that say whether it
        belongs to a word: between frames RE2 sees the edges that Python sees.
        """
        framed = "".join([f"_{char}_" if char == "_" or char.isalnum() else f" {char} " for char in line])
        at = 0
        while at <= len(framed) and (match := self._framed_pattern.match(framed, at)):
            start, end = match.span(1)
            yield start // 3, end // 3
            at = max(end, start + 3)

    @cached_property
    def _loose(self) -> Any:
        """Finds every match in many lines at once, and more: a match may span lines, and word edges do not count."""
        return _compile_re2(self._translation.loose_pattern)

    @cached_property
    def _framed_pattern(self) -> Any:
        return _compile_re2(f"(?s:...)*?({self._translation.framed_pattern})")


def compile_pattern(pattern: str) -> LinearPattern:
    """Compile a pattern. Raises UsageError that says what is wrong with it."""
    return LinearPattern(pattern)


def _compile_re2(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:  # the syntax was checked: what is left is its size
        raise UsageError(_TOO_LARGE) from None


# --- from Python's syntax to RE2's ---
_TOO_LARGE = "the pattern is too large with its repeats written out; repeat fewer times"
_TOKEN = lazy_pattern(
    r"""(?P<repeat> (?: [*+?] | \{ (?: (?P<least>\d{1,5}) (?P<open>,(?P<most>\d{0,5}))? | ,(?P<only>\d{1,5}) ) \} ) \?? )
      | (?P<group> \( (?: \?: | \?P<\w+> )? )
      | (?P<close> \) )
      | (?P<choice> \| )
      | (?P<edge> [\^$] | \\[bBAZ] )
      | (?P<set> \[ \^? \]? (?: \\. | [^\\\]] )* \] )
      | (?P<char> \\ (?: x[\da-fA-F]{2} | u[\da-fA-F]{4} | U00[\da-fA-F]{6} | . ) | . )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_MEMBER = lazy_pattern(r"\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|U00[\da-fA-F]{6}|.)|.", re.DOTALL | re.ASCII)
_EDGES = {r"\A": "^", r"\Z": "$"}
_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
#: Members of a set in RE2's syntax; its own `\w` and `\s` know ASCII only.
_KINDS = {"d": r"\p{Nd}", "D": r"\P{Nd}", "w": r"\p{L}\p{N}_", "s": r"\t-\r\x1c-\x20\x{85}\p{Z}"}


class _Item:
    """A character, set or group: its size, and the runs of text that every match contains, in lower case."""

    def __init__(self) -> None:
        self.runs = [""]
        self.size = 0
        self.has_choice = False

    def add(self, item: _Item) -> None:
        """Append an item. Its first run continues the last one here."""
        self.runs[-1] += item.runs[0]
        self.runs += item.runs[1:]
        self.size += item.size


class _Translation:
    """A pattern in RE2's syntax, with the literals found on the way."""

    def __init__(self, pattern: str) -> None:
        length = len(pattern.removeprefix("(?i)"))
        if length > MAX_LENGTH:
            raise UsageError(f"the pattern has {length} characters; at most {MAX_LENGTH} are taken, so shorten it")
        self._text = pattern
        self._groups = [_Item()]
        self._last = _Item()  # not yet in its group: a repeat may follow
        self._kind = ""  # of that item
        self._parts: list[tuple[str, str]] = []
        flags = re.match(r"\(\?([imsu]+)\)", pattern)
        self._flags = "(?i)" if flags and "i" in flags[1] else ""
        for token in _TOKEN.finditer(pattern, flags.end() if flags else 0):
            kind = next(name for name in ("repeat", "group", "close", "choice", "edge", "set", "char") if token[name])
            getattr(self, f"_read_{kind}")(token)
        if len(self._groups) > 1:
            raise self._error("a ( is not closed; write \\( for the sign itself")
        self._end_item()
        self.size = self._groups[0].size
        if self.size > _MAX_SIZE:
            raise UsageError(_TOO_LARGE)

    @property
    def pattern(self) -> str:
        return self._flags + "".join(text for _, text in self._parts)

    @property
    def framed_pattern(self) -> str:
        """The same for text whose characters are framed."""
        return self._flags + "".join(f"(?:[_ ]{text}[_ ])" if kind == "char" else text for kind, text in self._parts)

    @property
    def loose_pattern(self) -> str:
        """A pattern that matches wherever this one matches in a line of a longer text."""
        edges = {"^": "^", "$": "(?:\\r?$)", r"\b": "", r"\B": ""}
        return f"(?m){self._flags}" + "".join(edges[text] if kind == "edge" else text for kind, text in self._parts)

    @property
    def has_word_edges(self) -> bool:
        """Whether it asks for `\\b` or `\\B`."""
        return ("edge", r"\b") in self._parts or ("edge", r"\B") in self._parts

    @property
    def literals(self) -> list[str]:
        """Text that every match contains, in lower case."""
        whole = self._groups[0]
        return [] if whole.has_choice else [run for run in whole.runs if run]

    def _read_repeat(self, token: re.Match[str]) -> None:
        sign = token["repeat"]
        if self._kind == "repeat":
            raise self._error("two repeats stand side by side; put the first one into a group")
        if self._kind == "edge":
            raise self._error("a place between characters cannot be repeated")
        if not self._kind and sign[0] == "{":
            for char in sign:
                self._add_char(char)
            return
        if not self._kind:
            raise self._error(f"{sign[0]} repeats nothing; write \\{sign[0]} for the sign itself")
        if sign[0] == "{":
            sign = self._check_counts(token)
            self._last.size *= max(map(int, re.findall(r"[1-9]\d*", sign)), default=1)
        if sign[0] in "*?" or sign.startswith("{0"):
            self._last.runs = ["", ""]
        else:  # once at least, but its neighbours are not known
            self._last.runs = ["", *self._last.runs, ""]
        self._parts.append(("repeat", sign))
        self._kind = "repeat"

    def _check_counts(self, token: re.Match[str]) -> str:
        least = int(token["least"] or 0)
        most = token["most"] or token["only"] or ""
        if max(least, int(most or 0)) > _MAX_REPEATS or (most and int(most) < least):
            counts = token["repeat"].removesuffix("?")
            raise self._error(f"{counts} cannot be counted; at most {_MAX_REPEATS} times, the smaller number first")
        is_exact = token["least"] and not token["open"]
        return f"{{{least}}}" if is_exact else f"{{{least},{most}}}"

    def _read_group(self, token: re.Match[str]) -> None:
        if self._text[token.end() : token.end() + 1] == "?":
            raise self._error("groups with (? are (?:…) and (?P<name>…); there is no look-around here, leave it out")
        self._end_item()
        self._groups.append(_Item())
        if len(self._groups) > _MAX_DEPTH + 1:
            raise self._error("its groups are nested too deeply")
        self._parts.append(("group", "(?:"))

    def _read_close(self, _: re.Match[str]) -> None:
        if len(self._groups) == 1:
            raise self._error("there is a ) too many")
        self._end_item()
        self._last = self._groups.pop()
        if self._last.has_choice:
            self._last.runs = ["", ""]
        self._parts.append(("close", ")"))
        self._kind = "close"

    def _read_choice(self, _: re.Match[str]) -> None:
        self._end_item()
        self._groups[-1].has_choice = True
        self._parts.append(("choice", "|"))

    def _read_edge(self, token: re.Match[str]) -> None:
        self._end_item()
        self._parts.append(("edge", _EDGES.get(token[0], token[0])))
        self._kind = "edge"

    def _read_char(self, token: re.Match[str]) -> None:
        if token[0] == "[":
            raise self._error("a [ is not closed; write \\[ for the sign itself")
        char = self._unescape(token[0])
        if token[0] == ".":
            self._add_item(".", "")
        elif len(char) > 1:
            kind = char[1].lower()
            text = f"[^{_KINDS[kind]}]" if char[1].isupper() else f"[{_KINDS[kind]}]"
            self._add_item(text, "", _WORD_SIZE if kind == "w" else 1)
        else:
            self._add_char(char)

    def _add_char(self, char: str) -> None:
        self._add_item(_quote(char), _literal(char))

    def _read_set(self, token: re.Match[str]) -> None:
        is_negated = token[0].startswith("[^")
        members = _MEMBER.findall(token[0][1 + is_negated : -1])
        parts, at = [], 0
        while at < len(members):
            low = self._unescape(members[at], in_set=True)
            if len(low) == 1 and members[at + 1 : at + 2] == ["-"] and at + 2 < len(members):
                parts.append(self._translate_range(low, self._unescape(members[at + 2], in_set=True)))
                at += 3
            else:
                parts.append(_quote(low) if len(low) == 1 else _KINDS.get(low[1]) or _complement_ranges(low[1]))
                at += 1
        is_single = not is_negated and len(members) == 1 and len(low) == 1
        size = _WORD_SIZE if "\\w" in members or "\\W" in members else 1
        self._add_item(f"[{'^' * is_negated}{''.join(parts)}]", _literal(low) if is_single else "", size)

    def _translate_range(self, low: str, high: str) -> str:
        if len(high) > 1 or high < low:
            raise self._error(f"{low}-{high} is not a range; write \\- for the sign itself")
        return f"{_quote(low)}-{_quote(high)}"

    def _unescape(self, written: str, in_set: bool = False) -> str:
        """Return the character that is written so; `\\d` and the like as they are."""
        if written == "\\":
            raise self._error("it ends after a backslash; write \\\\ for the sign itself")
        if written[0] != "\\":
            return written
        char = written[1]
        if len(written) > 2:
            return self._decode_hex(written[2:])
        if char in "dDwWsS":
            return written
        if char in _SIGNS or (in_set and char == "b"):
            return _SIGNS.get(char, "\b")
        if char.isdecimal():
            raise self._error("there are no back references here; write the text out")
        if char.isalpha() and char.isascii():
            raise self._error(f"\\{char} means nothing here")
        return char

    def _decode_hex(self, digits: str) -> str:
        if int(digits, 16) > 0x10FFFF:
            raise self._error("there is no character with that number")
        return chr(int(digits, 16))

    def _add_item(self, text: str, literal: str, size: int = 1) -> None:
        """Add one character or set, with its literal if it has one."""
        self._end_item()
        self._last.size = size
        self._last.runs = [literal] if literal else ["", ""]
        self._parts.append(("char", text))
        self._kind = "char"

    def _end_item(self) -> None:
        """Put the last item into its group."""
        self._groups[-1].add(self._last)
        self._last = _Item()
        self._kind = ""

    def _error(self, why: str) -> UsageError:
        return UsageError(f"the pattern /{self._text}/ cannot be used: {why}")


def _literal(char: str) -> str:
    # A character with capitals beyond ASCII may have more than two forms, or change its length: no literal.
    lower = char.lower()
    return lower if lower.isascii() or lower == lower.upper() else ""


def _quote(char: str) -> str:
    return char if char.isascii() and char.isalnum() else f"\\x{{{ord(char):x}}}"


@cache
def _complement_ranges(kind: str) -> str:
    """Return the characters of `\\W` or `\\S` as ranges: inside a set, RE2 has no other way to write them."""
    everything = "".join(map(chr, range(0x110000)))
    found = re.finditer(rf"\{kind}+", everything)
    return "".join(rf"\x{{{match.start():x}}}-\x{{{match.end() - 1:x}}}" for match in found)
