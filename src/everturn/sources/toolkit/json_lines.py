"""Splits a file of one JSON object per line into records, whatever happened to the file.

Shared by all formats that are written this way. `JsonLines.split` promises:

- Every line gives at least one record, and every record has its own byte range. A record is an object, or a range that
  cannot be read: then `trouble` gives the reason, without quoting a byte of it.
- Two objects glued onto one line are two records; so are an object and the damage before or after it.
- A piece that ends in the middle of a line may be followed by more at any time. Objects complete by then are records
  already; the rest is left for later. Reading in pieces gives the same records as reading at once.
- Nothing here raises on content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import DecodeError

T = TypeVar("T")

#: One record: start (counted from the start of the file), bytes, value (None when unreadable), trouble ("" when fine).
#: A value *with* a trouble was read, but parts of it were invalid.
Record: TypeAlias = tuple[int, bytes | memoryview, T | None, str]

BLANK = "blank"

#: The troubles a record can have, as shown to users.
REASONS = {
    "torn_tail": "the last line is not complete (yet)",
    "invalid_json": "not valid JSON",
    "invalid_utf8": "not valid UTF-8: the bytes in question are shown as replacement characters",
    "nul_block": "NUL bytes, as a crash of the machine leaves them",
    "not_an_object": "valid JSON, but not an object",
    "too_deep": "nested too deeply",
    "too_many": "too many values in one record",
    "indexed_in_part": "a very long line: only the beginning of each block is in the index",
}

_OPENING, _CLOSING = b"{}"

#: Lines longer than this are not copied before they are decoded.
_LONG = 1 << 20

#: Longer lines are not searched for objects among the damage: that would take unbounded memory.
_RESCUE_LIMIT = 32 << 20

#: How often a damaged line is tried for the start of an object: each try may read the rest of the line.
_TRIES = 64

_FIRST_FIELD = re.compile(rb'\{\s{0,99}"')
_FEWEST_OBJECTS = 0.1  # of the lines that are not blank
_NUL = re.compile(rb"\0+")
_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_INT = 4000


class JsonLines(Generic[T]):
    """Walks the lines of one file, piece by piece.

    `decode` turns the bytes of one object into a value and may raise what msgspec raises; `revive` converts a decoded
    dict that `decode` refused, and must not raise.
    """

    def __init__(
        self, decode: Callable[[bytes | memoryview], T], revive: Callable[[dict[str, Any]], T], open_line: bool = False
    ) -> None:
        self._decode = decode
        self._revive = revive
        self.open_line = open_line  # the last record read has no line end yet
        self.consumed = self.lines = self.glued = 0
        self.tail: tuple[int, int, str] | None = None  # start, size and trouble of the unread end of a file

    def split(self, data: bytes, base: int, last: bool) -> Iterator[Record[T]]:
        """Yield the records of a piece that starts at offset `base`; afterwards the attributes describe the result."""
        self.consumed, self.lines, self.glued, self.tail = 0, 0, 0, None
        pos, find, decode, view = 0, data.find, self._decode, memoryview(data)
        while (end := find(b"\n", pos)) >= 0:
            if data[pos] != _OPENING or data[end - 1] != _CLOSING or self.open_line:
                yield from self._rescue_line(data[pos:end], base + pos)
            else:
                line = data[pos:end] if end - pos < _LONG else view[pos:end]
                try:
                    value = decode(line)
                except (DecodeError, UnicodeDecodeError, RecursionError):
                    yield from self._rescue_line(line, base + pos)
                else:
                    self.lines += 1
                    yield base + pos, line, value, ""
            pos = self.consumed = end + 1
        if last and pos < len(data):
            yield from self._read_unended(data[pos:], base + pos)

    # --- whole lines ---
    def _rescue_line(self, line: bytes | memoryview, start: int) -> Iterator[Record[T]]:
        if not (records := list(self._split_at_nul(bytes(line), start))) and not self.open_line:
            records = [(start, b"", None, BLANK)]
        self._count(len(records))
        self.open_line = False
        yield from records

    def _count(self, records: int) -> None:
        if self.open_line:
            self.glued += records
        else:
            self.lines += 1
            self.glued += records - 1

    def _split_at_nul(self, line: bytes, start: int) -> Iterator[Record[T]]:
        """Yield runs of NUL as records, and the records between them."""
        pos = 0
        for run in _NUL.finditer(line):
            yield from self._split_objects(line[pos : run.start()], start + pos)
            yield start + run.start(), run[0], None, "nul_block"
            pos = run.end()
        yield from self._split_objects(line[pos:], start + pos)

    def _split_objects(self, raw_range: bytes, start: int) -> Iterator[Record[T]]:
        """Yield objects that follow each other, and the damage between them."""
        if len(raw_range) > _RESCUE_LIMIT:
            yield start, raw_range, *self._decode_large(raw_range)
            return
        text = _Text(raw_range)
        pos = text.skip(0)
        while pos < len(text.chars):
            value, end = text.object_at(pos)
            if value is None:
                trouble, end = text.damage_at(pos)
                first, raw = text.cut(pos, end)
                yield start + first, raw, None, trouble
            else:
                first, raw = text.cut(pos, end)
                yield start + first, raw, *self._decode_object(raw, value)
            pos = text.skip(end)

    def _decode_object(self, raw: bytes, value: dict[str, Any]) -> tuple[T | None, str]:
        try:
            return self._decode(raw), ""
        except (DecodeError, UnicodeDecodeError, RecursionError):
            pass
        try:
            return self._revive(storable(value)), "" if _is_utf8(raw) else "invalid_utf8"
        except RecursionError:
            return None, "too_deep"

    def _decode_large(self, raw_range: bytes) -> tuple[T | None, str]:
        """Decode a range too large to be searched: one object, or nothing."""
        try:
            return self._decode(raw_range), ""
        except (DecodeError, UnicodeDecodeError, RecursionError):
            pass
        try:
            value = msgspec.json.decode(raw_range)
            return (self._revive(value), "") if isinstance(value, dict) else (None, "not_an_object")
        except (DecodeError, UnicodeDecodeError):
            return None, "invalid_json"
        except RecursionError:
            return None, "too_deep"

    # --- a line without an end ---
    def _read_unended(self, rest: bytes, start: int) -> Iterator[Record[T]]:
        """Yield the complete records of the last line; the first incomplete one and all after it are left."""
        records = list(self._complete_records(rest, start))
        while records and records[-1][2] is None:
            records.pop()  # NUL bytes before something incomplete are left together with it
        done = 0
        for at, raw, value, trouble in records:
            self._count(1)
            self.open_line = True
            done = at + len(raw) - start
            yield at, raw, value, trouble
        self.consumed += done
        if rest[done:].strip():
            trouble = "nul_block" if not rest[done:].strip(b"\0") else "torn_tail"
            self.tail = start + done, len(rest) - done, trouble

    def _complete_records(self, rest: bytes, start: int) -> Iterator[Record[T]]:
        pos, run = 0, _NUL.search(rest)
        while run is not None and not rest[pos : run.start()].strip():
            yield start + run.start(), run[0], None, "nul_block"
            pos = run.end()
            run = _NUL.search(rest, pos)
        for record in self._split_objects(rest[pos : run.start() if run else None], start + pos):
            if record[2] is None:
                break
            yield record


def object_lines(head: bytes) -> bytes:
    """Return the lines in the first bytes of a file that can hold an object with a field: all that sniffing needs.

    Where nearly all lines hold none, the file is a document that quotes records, and the result is empty.
    """
    lines = [line for line in head.split(b"\n") if line.strip()]
    found = [line for line in lines if _FIRST_FIELD.search(line)]
    return b"\n".join(found) if len(found) >= _FEWEST_OBJECTS * len(lines) else b""


class _Text:
    """A byte range as text that maps positions back to byte offsets."""

    def __init__(self, raw_range: bytes) -> None:
        self._bytes = raw_range
        self.chars = raw_range.decode("utf-8", "surrogateescape")
        self._here = 0, 0  # the last position and its offset: calls come in rising order, so no text is counted twice

    def offset(self, pos: int) -> int:
        """Return the byte offset of a position."""
        near, offset = self._here
        if pos < near:
            near, offset = 0, 0
        offset += len(self.chars[near:pos].encode("utf-8", "surrogateescape"))
        self._here = pos, offset
        return offset

    def cut(self, pos: int, end: int) -> tuple[int, bytes]:
        """Return the byte offset and the bytes of a text range."""
        first = self.offset(pos)
        return first, self._bytes[first : self.offset(end)]

    def skip(self, pos: int) -> int:
        """Skip white space; a byte order mark counts as such."""
        return found.end() if (found := _SPACE.match(self.chars, pos)) else pos

    def object_at(self, pos: int) -> tuple[dict[str, Any] | None, int]:
        """Return the object that starts here, or None, and where it ends."""
        if not self.chars.startswith("{", pos):
            return None, pos
        try:
            value, end = FORGIVING.raw_decode(self.chars, pos)
        except (ValueError, RecursionError):
            return None, pos
        return value, end

    def damage_at(self, pos: int) -> tuple[str, int]:
        """Return what is wrong here, and where the next whole object starts."""
        try:
            _, end = FORGIVING.raw_decode(self.chars, pos)
            if self.skip(end) == len(self.chars):
                return "not_an_object", end
        except RecursionError:
            return "too_deep", len(self.chars)
        except ValueError:
            pass
        found = pos
        for _ in range(_TRIES):
            found = self.chars.find('{"', found + 1)
            if found < 0:
                break
            value, end = self.object_at(found)
            if value is not None and self._is_whole(end):
                return "invalid_json", found
        return "invalid_json", len(self.chars)

    def _is_whole(self, end: int) -> bool:
        """Return whether an object is not inside another one, where a comma or a bracket would follow."""
        after = self.skip(end)
        return after == len(self.chars) or self.chars[after] == "{"


def storable(value: Any) -> Any:
    """Replace lone surrogates, which no database takes. Raises RecursionError when nested too deeply."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


#: Decodes JSON that msgspec refuses: lone surrogates, control characters, NaN and numbers of any length.
FORGIVING = json.JSONDecoder(
    strict=False, parse_int=lambda digits: int(digits) if len(digits) < _LONGEST_INT else digits
)
