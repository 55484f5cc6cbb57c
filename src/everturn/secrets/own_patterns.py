"""The user's own patterns of secrets, from `[secrets] patterns` in the config file.

A process has one config file, so the patterns are set once for the process, by whoever loads the settings, and every text that
is masked afterwards is masked with them. They are in RE2's syntax and cost linear time for each match.

In a raw line of JSON a pattern is matched with the content of each string, unescaped, so that a match never spans strings.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from everturn.errors import BadConfig

#: The kind of these secrets.
OWN_KIND = "user_pattern"
MOST_PATTERNS = 50
LONGEST_PATTERN = 500  # characters
_MEMORY = 8 << 20  # bytes for a compiled pattern
_KEY = "secrets.patterns"
_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_ESCAPE = re.compile(
    rb"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[\"\\/bfnrt])"
)
_PLAIN = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}

_in_use: dict[str, tuple[Any, ...]] = {"patterns": ()}


def use_own_patterns(patterns: Iterable[str]) -> None:
    """Mask these patterns from now on. Raises BadConfig that names the pattern that cannot be used."""
    _in_use["patterns"] = compile_own_patterns(tuple(patterns))


def has_own_patterns() -> bool:
    """Whether patterns are in use."""
    return bool(_in_use["patterns"])


def compile_own_patterns(patterns: tuple[str, ...]) -> tuple[Any, ...]:
    """Compile patterns. Raises BadConfig that names the one that cannot be used."""
    if len(patterns) > MOST_PATTERNS:
        raise BadConfig(_KEY, f"{len(patterns)} patterns are too many, the limit is {MOST_PATTERNS}")
    return tuple(map(_compile, patterns))


def own_spans(data: bytes, raw: bool) -> Iterator[tuple[str, int, int]]:
    """Yield the matches of the user's patterns in UTF-8 data. `raw` is JSON."""
    if patterns := _in_use["patterns"]:
        for part in _strings(data) if raw else (_Part(data, 0),):
            for pattern in patterns:
                for match in pattern.finditer(part.data):
                    if match.end() > match.start():
                        yield OWN_KIND, part.original(match.start()), part.original(match.end())


def _compile(pattern: str) -> Any:
    import re2

    shown = pattern if len(pattern) <= 60 else pattern[:59] + "…"
    if len(pattern) > LONGEST_PATTERN:
        raise BadConfig(_KEY, f"{shown!r} has {len(pattern)} characters, the limit is {LONGEST_PATTERN}")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        compiled = re2.compile(pattern.encode("utf-8"), options)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0] if error.args else "cannot be compiled"
        text = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise BadConfig(_KEY, f"{shown!r} is not a pattern in RE2 syntax ({text})") from None
    if compiled.search(b""):
        raise BadConfig(_KEY, f"{shown!r} matches empty text")
    return compiled


class _Part:
    """A part of the data, with escapes replaced, and the way back to the positions before."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data, self._edges = data, [(0, start)]

    def original(self, at: int) -> int:
        """Return the position in the data that the part was taken from."""
        edge = bisect_right(self._edges, at, key=lambda edge: edge[0]) - 1
        return self._edges[edge][1] + at - self._edges[edge][0]


class _String(_Part):
    def __init__(self, data: bytes, start: int, end: int) -> None:
        super().__init__(b"", start)
        parts: list[bytes] = []
        size, at = 0, start
        for escape in _ESCAPE.finditer(data, start, end):
            parts += data[at : escape.start()], _unescape(escape[0])
            size += len(parts[-2]) + len(parts[-1])
            at = escape.end()
            self._edges.append((size - len(parts[-1]), escape.start()))
            self._edges.append((size, at))
        self.data = b"".join((*parts, data[at:end]))


def _strings(data: bytes) -> Iterator[_Part]:
    """Yield what is between the quotes of JSON: its strings, and numbers and signs."""
    at = 0
    while at < len(data):
        match = _STRING.match(data, at)
        end = max(match.end() if match else at, at)
        if end > at:
            yield _String(data, at, end) if b"\\" in data[at:end] else _Part(data[at:end], at)
        at = end + 1


def _unescape(escape: bytes) -> bytes:
    if escape[1:2] != b"u":
        return _PLAIN.get(escape[1:2], escape[1:2])
    units = b"".join(bytes.fromhex(escape[n : n + 4].decode()) for n in range(2, len(escape), 6))
    return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
