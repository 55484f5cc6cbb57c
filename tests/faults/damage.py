"""What happens to files: bits that flip, lines that are cut, swapped or doubled, blocks of nothing, foreign bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

Dice = random.Random
Damage = Callable[[bytes, Dice], bytes]


def flip(data: bytes, dice: Dice) -> bytes:
    """A few bits are the other way round."""
    damaged = bytearray(data)
    for _ in range(dice.randint(1, 8)):
        damaged[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(damaged)


def cut_line(data: bytes, dice: Dice) -> bytes:
    """A line ends somewhere in its middle; its end, with or without the line end, is lost."""
    lines = data.splitlines(keepends=True)
    n = dice.randrange(len(lines))
    lines[n] = lines[n][: dice.randrange(len(lines[n]))] + dice.choice([b"", b"\n"])
    return b"".join(lines)


def cut_file(data: bytes, dice: Dice) -> bytes:
    """The end is lost."""
    return data[: dice.randrange(len(data))]


def swap(data: bytes, dice: Dice) -> bytes:
    """Two lines are in each other's place."""
    lines = data.splitlines(keepends=True)
    one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def double(data: bytes, dice: Dice) -> bytes:
    """Some lines are there twice."""
    lines = data.splitlines(keepends=True)
    first = dice.randrange(len(lines))
    some = lines[first : first + dice.randint(1, 5)]
    at = dice.randrange(len(lines))
    return b"".join([*lines[:at], *some, *lines[at:]])


def zeros(data: bytes, dice: Dice) -> bytes:
    """A block of NUL, put between or over what was there."""
    at, size = dice.randrange(len(data)), dice.choice([1, 7, 512, 4096])
    return data[:at] + b"\0" * size + data[at + dice.choice([0, size]) :]


def foreign(data: bytes, dice: Dice) -> bytes:
    """Bytes that are no UTF-8, or no JSON, in the middle of something."""
    strange = [
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\xc3",
        b"\x1b[31m",
        b"\xef\xbb\xbf",
        b"\r",
        b"\x0b",
        b"\xc2\x85",
        b"}{",
        b'"',
    ]
    at = dice.randrange(len(data))
    return data[:at] + dice.choice([*strange, dice.randbytes(dice.randint(1, 40))]) + data[at:]


def carriage(data: bytes, dice: Dice) -> bytes:
    """Line ends of another system, on all lines or on one."""
    return data.replace(b"\n", b"\r\n", dice.choice([-1, 1]))


def glue(data: bytes, dice: Dice) -> bytes:
    """A line end is missing."""
    lines = data.split(b"\n")
    n = dice.randrange(len(lines))
    return b"\n".join(lines[:n]) + b"\n".join(lines[n:])


def blank(data: bytes, dice: Dice) -> bytes:
    """Lines with nothing in them."""
    lines = data.splitlines(keepends=True)
    lines.insert(dice.randrange(len(lines)), dice.choice([b"\n", b"   \n", b"\r\n", b"\n\n\n", b"\t\n"]))
    return b"".join(lines)


def nest(data: bytes, dice: Dice) -> bytes:
    """A line nested deeper than anything can follow."""
    depth = dice.choice([50, 600, 20_000])
    inside = dice.choice(['{"a":' * depth + "1" + "}" * depth, "[" * depth + "]" * depth, "[" * depth])
    line = dice.choice(['{"type":"user","message":%s}', '{"type":"x","uuid":"u","y":%s}', "%s"]) % inside
    lines = data.splitlines(keepends=True)
    lines.insert(dice.randrange(len(lines)), line.encode() + b"\n")
    return b"".join(lines)


def stretch(data: bytes, dice: Dice) -> bytes:
    """A very long value, or a number that fits no column."""
    value = dice.choice(['"' + "long words " * 30_000 + '"', "9" * 5000, "-1e999", "NaN", '"\\ud83d"', '"\\u0000"'])
    lines = data.splitlines(keepends=True)
    lines.insert(dice.randrange(len(lines)), b'{"type":"user","uuid":"u1","timestamp":%s}\n' % value.encode())
    return b"".join(lines)


def retype(data: bytes, dice: Dice) -> bytes:
    """A value is of another kind than it ever was."""
    lines = data.splitlines(keepends=True)
    n = dice.randrange(len(lines))
    try:
        record = json.loads(lines[n])
    except (ValueError, RecursionError):
        return data
    if not isinstance(record, dict) or not record:
        return data
    holder = record
    if isinstance(record.get("message"), dict) and record["message"] and dice.random() < 0.5:
        holder = record["message"]
    odd: list[Any] = [
        None,
        True,
        -1,
        1e300,
        1 << 70,
        "",
        "\0",
        [],
        [[]],
        {},
        {"type": []},
        ["text", None, {"type": "tool_use"}],
    ]
    holder[dice.choice(list(holder))] = dice.choice(odd)
    lines[n] = json.dumps(record).encode() + b"\n"
    return b"".join(lines)


DAMAGES: tuple[Damage, ...] = (
    flip, cut_line, cut_file, swap, double, zeros, foreign, carriage, glue, blank, nest, stretch, retype,
)  # fmt: skip
