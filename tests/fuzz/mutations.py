"""What may happen to a file: bytes flipped, cut, doubled, spliced, nested deep, made huge; values of any other shape.

`mutated` takes sound bytes and dice and gives broken ones: the same for the same dice, so that a number is all that is
needed to have an input again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from random import Random

from tests.sources.goldens import ODD_VALUES, STRAY, with_odd_value

LARGEST = 192 << 10

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_ESCAPE = re.compile(rb"\x1b[\[\]P()][^\x1b\x07]{0,20}")

NUMBERS = (b"0", b"-1", b"1e999", b"-1e999", b"NaN", b"1" * 30, b"9" * 5000, b"18446744073709551616", b"1.5e-7", b"007")
ODD_BYTES = (
    b"\0", b"\0" * 700, b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80\xa8", b"\x85", b"\r", b"\x1a",
    b"\\u0000", b"\\ud800", b"\\udc00\\ud800", b"\xef\xbb\xbf", b'"""', b"```", b"\n\n---\n", b"\n# ", b"\n> ", b"\n**",
)  # fmt: skip
ESCAPES = (
    b"\x1b", b"\x1b[", b"\x1b]", b"\x1b]52;c;", b"\x1bP", b"\x1b[99999999999999999999b", b"\x1b[;;;;m", b"\x1b[2;1r", b"\x1b[0;0H",
    b"\x1b[65535;65535H", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?2026h", b"\x1b[?2026l", b"\x1b[2J", b"\x1b[3J", b"\x1bc", b"\x1b7",
    b"\x1b8", b"\x1b[r", b"\x1b[9999L", b"\x1b[9999M", b"\x1b[9999@", b"\x1b[9999P", b"\x1b[9999S", b"\x1b[9999T", b"\x1b[38;2;", b"\x9b",
    b"\x1b(0", b"\x0e", b"\x0f", b"\x1b[8;1;1t", b"\x1b[8;9999;9999t", b"\x1b#8", b"\x1b[4h", b"\x1b[20h", b"\x08" * 300, b"\x1b[?7l",
    b"\x1b[?6h", b"\x1b[?69h", b"\x1b[1;2s", b"\xcc\x81" * 40, b"\xe4\xbc\x9a", b"\xf0\x9f\x91\xa8\xe2\x80\x8d", b"\xef\xb8\x8f", b"\x18",
)  # fmt: skip
NESTS = ((b"[", b"]"), (b'{"a":', b"}"), (b'{"content":[', b"]}"), (b"> ", b""), (b"<details>", b"</details>"))


def mutated(data: bytes, others: Sequence[bytes], dice: Random) -> bytes:
    """One to five things happen to the data; `others` is what it may be mixed with."""
    for _ in range(dice.choice((1, 1, 1, 2, 2, 3, 5))):
        harm = dice.choice(HARMS)
        data = (harm(data, dice) if harm is not _splice else _splice(data, dice, others))[:LARGEST]
    return data


def _place(data: bytes, dice: Random) -> int:
    return dice.randrange(len(data) + 1)


def _span(data: bytes, dice: Random) -> tuple[int, int]:
    start = _place(data, dice)
    return start, min(len(data), start + dice.choice((1, 2, 8, 40, 200, 1000, 8000)))


def _flip(data: bytes, dice: Random) -> bytes:
    broken = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8, 64)) if broken else 0):
        broken[dice.randrange(len(broken))] ^= 1 << dice.randrange(8)
    return bytes(broken)


def _end(data: bytes, dice: Random) -> bytes:
    return data[: _place(data, dice)]


def _begin(data: bytes, dice: Random) -> bytes:
    return data[_place(data, dice) :]


def _cut(data: bytes, dice: Random) -> bytes:
    start, end = _span(data, dice)
    return data[:start] + data[end:]


def _double(data: bytes, dice: Random) -> bytes:
    start, end = _span(data, dice)
    return data[:start] + data[start:end] * dice.choice((2, 3, 20)) + data[end:]


def _blank(data: bytes, dice: Random) -> bytes:
    start, end = _span(data, dice)
    return data[:start] + bytes(end - start) + data[end:]


def _insert(data: bytes, dice: Random) -> bytes:
    at = _place(data, dice)
    return data[:at] + dice.choice((*STRAY, *ODD_BYTES)) + data[at:]


def _escape(data: bytes, dice: Random) -> bytes:
    for _ in range(dice.choice((1, 3, 20))):
        at = _place(data, dice)
        piece = dice.choice(ESCAPES)
        data = data[:at] + piece[: dice.randint(1, len(piece))] + data[at:]
    return data


def _torn_escape(data: bytes, dice: Random) -> bytes:
    found = list(_ESCAPE.finditer(data, 0, 64 << 10))
    if not found:
        return _escape(data, dice)
    one = dice.choice(found)
    return data[: dice.randint(one.start(), one.end())] + data[one.end() :]


def _number(data: bytes, dice: Random) -> bytes:
    found = list(_NUMBER.finditer(data, 0, 64 << 10))
    if not found:
        return _insert(data, dice)
    one = dice.choice(found)
    return data[: one.start()] + dice.choice(NUMBERS) + data[one.end() :]


def _nest(data: bytes, dice: Random) -> bytes:
    start, end = _span(data, dice)
    opening, closing = dice.choice(NESTS)
    depth = dice.choice((3, 90, 1200, 9000))
    return data[:start] + opening * depth + data[start:end] + closing * (depth - dice.choice((0, 0, 1))) + data[end:]


def _lines(data: bytes, dice: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    for _ in range(dice.randint(1, 4) if len(lines) > 1 else 0):
        at, to = dice.randrange(len(lines)), dice.randrange(len(lines))
        what = dice.choice(("swap", "drop", "again", "glue"))
        if what == "swap":
            lines[at], lines[to] = lines[to], lines[at]
        elif what == "again":
            lines.insert(to, lines[at])
        elif what == "glue":
            lines[at] = lines[at].rstrip(b"\r\n")
        elif len(lines) > 2:
            del lines[at]
    return b"".join(lines)


def _odd_value(data: bytes, dice: Random) -> bytes:
    """A value of a JSON line or document is another: sound JSON of a shape nobody expects."""
    lines = data.splitlines(keepends=True)
    sound = [number for number, line in enumerate(lines) if line[:1] in b"{[" and line.rstrip()[-1:] in (b"}", b"]")]
    if len(lines) > 1 and sound:
        at = dice.choice(sound)
        lines[at] = _with_odd(lines[at], dice) + b"\n"
        return b"".join(lines)
    return _with_odd(data, dice)


def _with_odd(text: bytes, dice: Random) -> bytes:
    try:
        value = json.loads(text)
        for _ in range(dice.choice((1, 1, 2, 6))):
            value = with_odd_value(value, dice.choice(ODD_VALUES), dice)
        return json.dumps(value, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return _flip(text, dice)


def _splice(data: bytes, dice: Random, others: Sequence[bytes]) -> bytes:
    other = dice.choice(others)
    start, end = _span(other, dice)
    at = _place(data, dice)
    return data[:at] + other[start:end] + (data[at:] if dice.random() < 0.7 else b"")


HARMS: tuple[Callable[..., bytes], ...] = (
    _flip, _flip, _end, _begin, _cut, _double, _blank, _insert, _insert, _escape, _torn_escape, _number, _number, _nest, _lines,
    _lines, _odd_value, _odd_value, _odd_value, _odd_value, _splice, _splice,
)  # fmt: skip
