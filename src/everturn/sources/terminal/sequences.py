"""Cuts a stream of terminal output into text, control characters and escape sequences, wherever the stream is split.

`TOKEN` finds all that is well-formed in one go. What is not (a sequence with control characters inside, one that never
ends, one that is not complete yet) is taken apart by `read_irregular`. Both look at bytes, so that places in the recording
are known exactly.

The DEC line-drawing set: what the bytes `_` to `~` stand for after `ESC ( 0` or shift-out.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_LONGEST_TITLE = 512

#: Longer than any sequence a program writes: beyond this it is noise, however the stream was split.
_LONGEST = 256

#: Groups: 1 CSI sequence and 2 the text behind it; 3 text; 4 control characters; 5 charset; 6 title; 7 one-letter escape;
#: 8 the start of something else. `lastindex` tells which.
TOKEN: Final = re.compile(
    rb"\x1b\[([0-?]{0,%d}[ -/]{0,4}[@-~])([ -~\x80-\xff]*)"
    rb"|([ -~\x80-\xff]+)"
    rb"|([\x00-\x1a\x1c-\x1f\x7f]+)"
    rb"|\x1b([()][ -~])"
    rb"|\x1b\]([^\x07\x18\x1a\x1b]{0,%d})(?:\x07|\x1b\\)"
    rb"|\x1b([0-9=>@-JL-OQ-WYZ\\`-jl-~])"
    rb"|(\x1b)" % (_LONGEST - 6, _LONGEST_TITLE)
)
CSI_AND_TEXT, TEXT, CONTROLS, CHARSET, COMMAND, ESCAPE, OTHER = range(2, 9)

#: How much of a string (an image, a clipboard) is swallowed while waiting for its end.
_LONGEST_STRING: Final = 8 << 20

_INCOMPLETE_CHARACTER = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")

#: What ends a string: most end at any escape, a device control string only at its terminator.
_END_OF_STRING = re.compile(rb"[\x07\x18\x1a\x1b]")
_END_OF_TEXT_STRING = re.compile(rb"[\x18\x1a\x1b]")
_END_OF_DEVICE_STRING = re.compile(rb"\x1b\\")
_STRINGS = {ord("]"): _END_OF_STRING, ord("P"): _END_OF_DEVICE_STRING, **dict.fromkeys(b"_^Xk", _END_OF_TEXT_STRING)}
_ESC, _CAN, _SUB = 0x1B, 0x18, 0x1A


class Irregular(NamedTuple):
    """The reading of an irregular stretch."""

    end: int  # where to go on; -1 when more bytes are needed to say
    controls: bytes = b""  # control characters found inside: they act at once
    sequence: bytes = b""  # the CSI sequence that was complete in the end
    string: re.Pattern[bytes] | None = None  # a string begins: this is what ends it


def read_irregular(data: bytes, start: int) -> Irregular:
    """Read an escape that no token matched."""
    if start + 1 >= len(data):
        return Irregular(-1)
    kind = data[start + 1]
    if kind == ord("]") and _may_be_title(data, start + 2):
        return Irregular(-1)
    if kind in _STRINGS:
        return Irregular(start + 2, string=_STRINGS[kind])
    if kind == ord("["):
        return _interrupted_sequence(data, start + 2)
    return _short_escape(data, start + 1)


def _may_be_title(data: bytes, start: int) -> bool:
    """Whether the end of a short string is still to come."""
    found = _END_OF_STRING.search(data, start)
    if found is None:
        return len(data) - start <= _LONGEST_TITLE
    return found[0][0] == _ESC and found.end() == len(data) and found.start() - start <= _LONGEST_TITLE


def _interrupted_sequence(data: bytes, place: int) -> Irregular:
    """A CSI sequence with control characters inside, or one that does not end."""
    controls, sequence = bytearray(), bytearray()
    for end in range(place, min(len(data), place + _LONGEST)):
        byte = data[end]
        if byte == _ESC:
            return Irregular(end, bytes(controls))
        if byte in (_CAN, _SUB):
            return Irregular(end + 1, bytes(controls))
        if byte < 0x20 or byte == 0x7F:
            controls.append(byte)
            continue
        sequence.append(byte)
        if 0x40 <= byte < 0x7F:
            return Irregular(end + 1, bytes(controls), bytes(sequence))
        if byte >= 0x80:
            return Irregular(end, bytes(controls))
    complete = len(data) >= place + _LONGEST
    return Irregular(place + _LONGEST, bytes(controls)) if complete else Irregular(-1)


def _short_escape(data: bytes, place: int) -> Irregular:
    """An escape with intermediate bytes (`ESC # 8` has a token of its own), or a lone one."""
    for end in range(place, min(len(data), place + _LONGEST)):
        if not 0x20 <= data[end] < 0x30:
            taken = end + (0x30 <= data[end] < 0x7F)
            return Irregular(taken, sequence=data[place - 1 : taken])
    return Irregular(place) if len(data) >= place + _LONGEST else Irregular(-1)


class StringSkipper:
    """Skips a string until its end comes."""

    def __init__(self, until: re.Pattern[bytes]) -> None:
        self._until = until
        self._left = _LONGEST_STRING
        self.done = False

    def skip(self, data: bytes, start: int) -> int:
        """Where to go on after the string; at the end of `data` when all of it belongs to the string.

        An escape at the very end is left alone: it may be the first half of the terminator.
        """
        limit = start + self._left
        found = self._until.search(data, start, limit)
        if found:
            self.done = True
            return found.start() if found[0] == b"\x1b" else found.end()
        end = min(len(data) - data.endswith(b"\x1b"), limit)
        self._left -= end - start
        self.done = self._left <= 0
        return end


def whole_characters(data: bytes) -> int:
    """Up to where `data` does not end in the middle of a character."""
    cut = _INCOMPLETE_CHARACTER.search(data, max(0, len(data) - 3))
    return cut.start() if cut else len(data)


_GRAPHICS = " ◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"

#: For `str.translate`.
LINE_DRAWING: Final = {ord("_") + place: graphic for place, graphic in enumerate(_GRAPHICS)}
