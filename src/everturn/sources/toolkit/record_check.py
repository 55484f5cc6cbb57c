"""Parts shared by the checks of a file's records: splitting a file into records, flaws, torn JSON, duplicates and order.

A check of a format (`Source.check`) gets the records of one file in file order and returns those that make up the session,
in the right order, with the flaws it found. It never raises on content and never invents text: a torn record is kept as far
as it goes, with a mark where it breaks off. `close_json` closes a torn object: the last string may be cut in the middle,
any other incomplete value is left out, and nothing is added but the lost brackets and quote.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from everturn.sources.contract import CheckedRecord, FileCheck, Flaw
from everturn.sources.toolkit.json_lines import BLANK, FORGIVING, storable
from everturn.sources.toolkit.line_reader import Rec, walker

#: A whole string, a bracket or a comma; or the quote of a string without an end.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],]|"', re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_PAIR = {"{": "}", "[": "]"}

#: How many values at the end may be dropped until the rest can be decoded.
_TRIES = 8
_LONGEST = 8 << 20
_LONGEST_PREFIX = 500
#: How often stretches are joined, and how many beginnings of records are tried for each end.
_JOIN_TRIES, _BEGUN = 2000, 4
#: A valid escape, or a backslash that begins none.
_BAD_ESCAPE = re.compile(rb'(\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\')


def close_json(raw: bytes) -> dict[str, Any] | None:
    """Return the part of a torn object that is there; None if nothing is, or if it is damaged rather than torn."""
    if len(raw) > _LONGEST:
        return None
    text = raw.decode("utf-8", "ignore").lstrip("\ufeff \t\r\n").rstrip("\r\n\0")
    if not text.startswith('{"') or "\0" in text:
        return None
    candidates = _closed_texts(text)
    for candidate in reversed(candidates[-_TRIES:]):
        try:
            value = FORGIVING.decode(candidate)
        except (ValueError, RecursionError):
            continue
        return storable(value) if isinstance(value, dict) and value else None
    return None


def _closed_texts(text: str) -> list[str]:
    """Return ways to close a text, the most complete one last; none if it is closed or its brackets do not match."""
    brackets: list[str] = []
    stops: list[tuple[int, str]] = []
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign == '"':  # never closed
            return [*_closings(text, stops), _HALF_ESCAPE.sub("", text) + '"' + _closers(brackets)]
        if sign == ",":
            stops.append((token.start(), _closers(brackets)))
        elif sign in _PAIR:
            brackets.append(_PAIR[sign])
        elif sign in ("}", "]") and (not brackets or brackets.pop() != sign or not brackets):
            return []
    return [*_closings(text, stops), text + _closers(brackets)]


def _closings(text: str, stops: list[tuple[int, str]]) -> list[str]:
    return [text[:place] + closers for place, closers in stops[-_TRIES:]]


def _closers(brackets: list[str]) -> str:
    return "".join(reversed(brackets))


#: Marks the end of the text of a torn record.
BROKEN_OFF = "\n[The rest of this is lost: its record was torn.]"

#: The kinds of flaws, as shown to users.
KINDS = {
    "byte_order_mark": "a byte order mark",
    "line_ends": "line ends of another system",
    "compressed": "compressed: the positions of other findings are those in its content",
    "utf16": "saved as UTF-16: read as UTF-8, the positions of other findings are those in it",
    "cp1252": "saved in a one-byte encoding (Windows-1252): read as UTF-8, the positions of other findings are those in it",
    "entities": "quotes as HTML entities: the positions of other findings are those without them",
    "quoted": "each record inside of a string or of a record of a log: the positions of other findings are those of the records",
    "python": "literals of Python instead of JSON: the positions of other findings are those of the records",
    "commas": "commas behind the records",
    "pretty_printed": "records over several lines: read as one line each, the positions of other findings are those of these lines",
    "array": "one JSON array instead of lines: its items are read as lines, the positions of other findings are those of these lines",
    "prefix": "words before the record on a line, as logs have them",
    "escape": "backslashes that are not escaped",
    "glued": "two records on one line",
    "line_break": "a line break within a record",
    "interleaved": "a record within another one, as two programs that write at once leave it",
    "foreign_line": "a line that is no record",
    "torn": "a record that breaks off",
    "damaged": "a stretch that cannot be read",
    "nul_block": "NUL bytes, as a crash of the machine leaves them",
    "invalid_utf8": "bytes that are no UTF-8",
    "half_character": "half a character",
    "missing": "records that the file no longer has",
    "gone": "the file itself is gone",
    "duplicate": "records written twice",
    "same_id": "one id for different records",
    "dangling_parent": "a parent that is nowhere",
    "cycle": "records that are each other's parents",
    "out_of_order": "records in the wrong order",
    "wrong_session": "the id of another session",
    "other_session": "records of another session",
    "no_header": "no record that says which session this is",
    "empty_block": "empty content, which no provider takes",
    "open_call": "a tool call without a result",
    "stray_result": "a result without its tool call",
    "same_call_id": "one id for several tool calls",
    "bad_call_id": "an id of a tool call that providers refuse",
    "bad_image": "a picture that providers refuse",
}

_MARK = b"\xef\xbb\xbf"
_BEGINNING = re.compile(rb'\{"\w{1,40}":')
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def make_flaw(kind: str, piece: CheckedRecord, note: str = "", lost: bool = False) -> Flaw:
    return Flaw(kind, note or KINDS[kind], piece.start, piece.size, piece.copy, lost)


def with_value(piece: CheckedRecord, value: Rec) -> CheckedRecord:
    return msgspec.structs.replace(piece, value=value, raw=_encode(value))


def split(data: bytes, copy: int = 0) -> FileCheck:
    """Split a file of lines into records and flaws, whatever happened to it."""
    pieces: list[CheckedRecord] = []
    flaws = list(_find_form_flaws(data, copy))
    joiner = _StretchJoiner(data, copy)
    end, walk, prefixes = 0, walker(), _Prefixes(data, copy)
    for start, raw, value, trouble in walk.split(data, 0, last=True):
        if trouble == BLANK:
            continue
        if value is not None:
            is_behind = end > 0 and b"\n" not in data[end:start] and not data[end:start].strip(b" \t\r\0")
            if pieces and is_behind and not prefixes.ends_at(end):
                flaws.append(Flaw("glued", KINDS["glued"], start, len(raw), copy))
            _add_whole_record(CheckedRecord(value, bytes(raw), start, len(raw), copy), trouble, pieces, flaws)
        elif not prefixes.take(bytes(raw), start):
            joiner.take(_BrokenStretch(start, bytes(raw), trouble))
        end = start + len(raw)
    if walk.tail is not None:
        start, size, trouble = walk.tail
        joiner.take(_BrokenStretch(start, data[start : start + size], trouble))
    for one in joiner.left():
        _add_broken_record(one.raw, one.start, copy, one.trouble, pieces, flaws)
    pieces += joiner.check.pieces
    flaws += joiner.check.flaws
    pieces.sort(key=lambda piece: piece.start)
    return FileCheck(pieces, flaws + prefixes.flaws(len(pieces)))


class _BrokenStretch(NamedTuple):
    """Bytes between whole records."""

    start: int
    raw: bytes
    trouble: str

    @property
    def end(self) -> int:
        return self.start + len(self.raw)


class _StretchJoiner:
    """Joins records that were broken in two, by line breaks or by another record, and leaves out lines of other programs."""

    def __init__(self, data: bytes, copy: int) -> None:
        self._data, self._copy = data, copy
        self._tries = _JOIN_TRIES
        self._begun: list[list[_BrokenStretch]] = []  # may be beginnings of records, with lines that may continue them
        self._left: list[_BrokenStretch] = []
        self.check = FileCheck([], [])  # what was joined or left out

    def take(self, one: _BrokenStretch) -> None:
        """Take the next stretch of the file."""
        if one.trouble == "nul_block":
            self._left.append(one)
        elif _BEGINNING.match(one.raw):
            self._begun.append([one])
        elif any(self._join(parts, one) for parts in reversed(self._begun[-_BEGUN:])):
            return
        elif self._begun and self._is_next_line(self._begun[-1][-1], one):
            self._begun[-1].append(one)
        else:
            self._left.append(one)

    def left(self) -> list[_BrokenStretch]:
        """Return the stretches that could not be joined, in order; note lines of other programs."""
        found = []
        for one in sorted([*self._left, *(one for parts in self._begun for one in parts)]):
            if _is_foreign(self._data, one):
                flaw = Flaw("foreign_line", KINDS["foreign_line"], one.start, len(one.raw), self._copy)
                self.check.flaws.append(flaw)
            else:
                found.append(one)
        return found

    def _join(self, parts: list[_BrokenStretch], second: _BrokenStretch) -> bool:
        first = parts[0]
        self._tries -= 1
        if self._tries < 0 or second.end - first.start > _LONGEST:
            return False
        is_next_line = self._is_next_line(parts[-1], second)
        value = _decode_record(self._data[first.start : second.end]) if is_next_line else None
        value = _decode_record(first.raw + second.raw) if value is None and len(parts) == 1 else value
        if value is None:
            return False
        self._begun.remove(parts)
        piece = CheckedRecord(value, _encode(value), first.start, len(first.raw), self._copy)
        self.check.pieces.append(piece)
        self.check.flaws.append(make_flaw("line_break" if is_next_line else "interleaved", piece))
        return True

    def _is_next_line(self, first: _BrokenStretch, second: _BrokenStretch) -> bool:
        return not self._data[first.end : second.start].strip(b" \t\r\n")


def _decode_record(raw: bytes) -> dict[str, Any] | None:
    try:
        value = FORGIVING.decode(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return storable(value) if isinstance(value, dict) and value else None


def _is_foreign(data: bytes, one: _BrokenStretch) -> bool:
    """Whether a stretch is a whole line and no part of a record: these have quotes and brackets."""
    end = one.start + len(one.raw)
    is_line = data[max(0, one.start - 1) : one.start] in (b"", b"\n") and data[end : end + 1] in (b"", b"\r", b"\n")
    return is_line and not any(sign in one.raw for sign in b'"{}\\\0') and _is_text(one.raw)


def _is_text(raw: bytes) -> bool:
    try:
        return raw.decode().isprintable()
    except UnicodeDecodeError:
        return False


class _Prefixes:
    """The text before records on their lines. If most lines have it, it belongs to a log; else it may be part of a record."""

    def __init__(self, data: bytes, copy: int) -> None:
        self._data, self._copy = data, copy
        self._found: list[tuple[int, int]] = []

    def take(self, raw: bytes, start: int) -> bool:
        """Take a stretch without quotes or brackets at the beginning of a line, if a record follows it."""
        is_first = start == 0 or self._data[start - 1 : start] == b"\n"
        if not is_first or len(raw) > _LONGEST_PREFIX or any(sign in raw for sign in b'"{}\n\0'):
            return False
        if self._data[start + len(raw) : start + len(raw) + 1] != b"{":
            return False
        self._found.append((start, len(raw)))
        return True

    def ends_at(self, place: int) -> bool:
        return bool(self._found) and sum(self._found[-1]) == place

    def flaws(self, records: int) -> list[Flaw]:
        """Return one flaw for the prefixes of a log, or one for each stretch."""
        if len(self._found) > 1 and 2 * len(self._found) >= records:
            note = f"{len(self._found):,} lines have words before the record, as logs do"
            return [Flaw("prefix", note, self._found[0][0], self._found[0][1], self._copy)]
        return [Flaw("damaged", KINDS["damaged"], start, size, self._copy, lost=True) for start, size in self._found]


def _add_whole_record(piece: CheckedRecord, trouble: str, pieces: list[CheckedRecord], flaws: list[Flaw]) -> None:
    if trouble:
        flaws.append(make_flaw("invalid_utf8", piece, "bytes that are no UTF-8: told as question marks", lost=True))
        piece = with_value(piece, piece.value)
    elif _HALF.search(piece.raw) and not _is_decodable(piece.raw):
        flaws.append(make_flaw("half_character", piece, "half a character: told as a question mark", lost=True))
        piece = with_value(piece, piece.value)
    pieces.append(piece)


def _add_broken_record(
    raw: bytes, start: int, copy: int, trouble: str, pieces: list[CheckedRecord], flaws: list[Flaw]
) -> None:
    if trouble == "nul_block":
        note = f"{len(raw):,} NUL bytes: what stood there, if anything, is not in the file"
        flaws.append(Flaw("nul_block", note, start, len(raw), copy, lost=True))
        return
    if (whole := mend_escapes(raw)) is not None:
        piece = CheckedRecord(whole, _encode(whole), start, len(raw), copy)
        pieces.append(piece)
        flaws.append(make_flaw("escape", piece))
        return
    for at, part in _split_torn_records(raw):
        if (value := close_json(part)) is None:
            flaws.append(Flaw("damaged", KINDS["damaged"], start + at, len(part), copy, lost=True))
        else:  # `judge_records` decides whether it can be used
            pieces.append(CheckedRecord(value, _encode(value), start + at, len(part), copy, is_torn=True))


def mend_escapes(raw: bytes) -> dict[str, Any] | None:
    """Return an object whose backslashes were not escaped, as in `C:\\Users`; None if that is not what is wrong with it."""
    if b"\\" not in raw or len(raw) > _LONGEST:
        return None
    return _decode_record(_BAD_ESCAPE.sub(_twice, raw))


def _twice(found: re.Match[bytes]) -> bytes:
    return found[0] if found[1] else b"\\\\"


def _split_torn_records(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Split torn records that follow each other: each begins like the first, for quotes within a string are escaped."""
    begins = _BEGINNING.match(raw)
    starts = [found.start() for found in re.finditer(re.escape(begins[0]), raw)][1:] if begins else []
    for start, end in pairwise([0, *starts, len(raw)]):
        yield start, raw[start:end]


def _find_form_flaws(data: bytes, copy: int) -> Iterator[Flaw]:
    """Yield flaws of the bytes as a whole."""
    if (marks := data.count(_MARK)) and (data.startswith(_MARK) or b"\n" + _MARK in data):
        yield Flaw("byte_order_mark", KINDS["byte_order_mark"], data.find(_MARK), 3 * marks, copy)
    if (ends := data.count(b"\r\n")) > 0:
        yield Flaw("line_ends", f"{ends:,} line ends of another system", data.find(b"\r\n"), 2, copy)


def _is_decodable(raw: bytes) -> bool:
    try:
        _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


# --- steps of a check ---
def judge_records(
    pieces: Sequence[CheckedRecord], keep: Callable[[CheckedRecord], tuple[Rec, bool] | None], flaws: list[Flaw]
) -> list[CheckedRecord]:
    """Keep torn records as far as they can be used: `keep` returns the value to use and whether it is complete."""
    found = []
    for piece in pieces:
        made = keep(piece) if piece.is_torn else (piece.value, True)
        if made is None:
            flaws.append(make_flaw("torn", piece, "it breaks off; nothing of it can be used", lost=True))
            continue
        if piece.is_torn:
            note = "it breaks off behind its words" if made[1] else "it breaks off; the beginning is kept"
            flaws.append(make_flaw("torn", piece, note, lost=not made[1]))
        found.append(with_value(piece, made[0]) if piece.is_torn else piece)
    return found


def without_copies(
    pieces: Sequence[CheckedRecord],
    name: Callable[[CheckedRecord], str | None],
    flaws: list[Flaw],
    same: Callable[[CheckedRecord], Any],
) -> list[CheckedRecord]:
    """Remove duplicates. Records that share an id but differ are a collision, and both stay.

    Of the same record in two copies of the file, the newer one stays. `name` returns an id or None, `same` what makes
    two records with one id equal.
    """
    kept: dict[int, CheckedRecord] = {}
    seen: dict[str, list[int]] = {}
    for place, piece in enumerate(pieces):
        known = seen.setdefault(found, []) if (found := name(piece)) is not None else []
        other = next((one for one in known if same(kept[one]) == same(piece)), None)
        elder = next((one for one in known if kept[one].copy != piece.copy), None)
        if other is not None:
            flaws.append(make_flaw("duplicate", piece, f"written twice, first at byte {kept[other].start:,}"))
        elif elder is not None:
            kept[elder] = max(kept[elder], piece, key=lambda one: one.copy)
        else:
            if known:
                flaws.append(make_flaw("same_id", piece, f"the id of the record at byte {kept[known[0]].start:,}"))
            kept[place] = piece
            known.append(place)
    return [kept[place] for place in sorted(kept)]


def order_records(
    pieces: Sequence[CheckedRecord], before: Callable[[int], int | None], flaws: list[Flaw]
) -> list[CheckedRecord]:
    """Put each record after the one whose index `before` returns, else keep the order. Cycles are cut open."""
    waiting: dict[int, list[int]] = {}
    ready: list[int] = []
    for place, piece in enumerate(pieces):
        if (first := before(place)) is None:
            ready.append(place)
            continue
        waiting.setdefault(first, []).append(place)
        if first > place:
            flaws.append(make_flaw("out_of_order", piece, f"stands before its parent at byte {pieces[first].start:,}"))
    heapq.heapify(ready)
    found: list[CheckedRecord] = []
    done: set[int] = set()
    following = iter(range(len(pieces)))
    while len(done) < len(pieces):
        if not ready:
            opened = next(place for place in following if place not in done)
            flaws.append(make_flaw("cycle", pieces[opened], "it is among its own parents"))
            ready.append(opened)
        place = heapq.heappop(ready)
        if place in done:
            continue
        done.add(place)
        found.append(pieces[place])
        for child in waiting.pop(place, ()):
            heapq.heappush(ready, child)
    return found


def sort_records(
    records: Sequence[CheckedRecord],
    key_of: Callable[[CheckedRecord], Any],
    flaws: list[Flaw],
    note: str = "written earlier than the one before",
    is_again: Callable[[CheckedRecord], bool] = lambda record: False,
) -> list[CheckedRecord]:
    """Sort by time, or another key. A record without one stays behind the one before; one written again may have an old one."""
    latest, order, found = None, [], list[Flaw]()
    for index, record in enumerate(records):
        key = latest if (own := key_of(record)) is None else own
        if own is not None and latest is not None and own < latest and not is_again(record):
            found.append(make_flaw("out_of_order", record, note))
        order.append((key is not None, key, index))
        latest = key if latest is None else max(latest, key)
    flaws += found
    return [records[index] for *_, index in sorted(order)] if found else list(records)


def fill_times(
    records: Sequence[CheckedRecord],
    time_of: Callable[[CheckedRecord], int | None],
    needs_time: Callable[[CheckedRecord], object],
) -> list[CheckedRecord]:
    """Give a record that needs a time, and has none that can be read, the time of the one before."""
    found, latest = [], None
    for record in records:
        if time_of(record) is not None:
            latest = record.value["timestamp"]
        elif latest is not None and needs_time(record):
            record = with_value(record, {**record.value, "timestamp": latest})
        found.append(record)
    return found
