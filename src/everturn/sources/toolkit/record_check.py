"""What checks of a file's records share: the records as pieces, what is wrong with them, and the bytes between them.

A check of a format (`Source.check`) is given the pieces of one file in the order they stand in and says which of them make
up the conversation, in which order, and what it found wrong on the way. It never raises on content, and it never invents
words: a record that was torn is kept as far as it goes, with a mark where it breaks off.

A JSON object whose end is missing, closed where it breaks off.

The last string may be cut in the middle; anything else that is not complete is left out. Nothing is added but the
brackets and the quote that were lost.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from everturn.sources.contract import CheckedRecord, FileCheck, Flaw
from everturn.sources.toolkit.json_lines import BLANK, FORGIVING, storable
from everturn.sources.toolkit.line_reader import Rec, walker

#: A whole string, a bracket or a comma; or a quote whose string never ends.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],]|"', re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_PAIR = {"{": "}", "[": "]"}

#: How many values at the end may be given up until the rest makes sense.
_TRIES = 8
_LONGEST = 8 << 20


def close_json(raw: bytes) -> dict[str, Any] | None:
    """What there is of the object that starts here; None where there is none, or it did not break off but is damaged."""
    if len(raw) > _LONGEST:
        return None
    text = raw.decode("utf-8", "ignore").lstrip("\ufeff \t\r\n").rstrip("\r\n\0")
    if not text.startswith('{"') or "\0" in text:
        return None
    ends = _ends(text)
    for end in reversed(ends[-_TRIES:]):
        try:
            value = FORGIVING.decode(end)
        except (ValueError, RecursionError):
            continue
        return storable(value) if isinstance(value, dict) and value else None
    return None


def _ends(text: str) -> list[str]:
    """Ways to close it, the one that keeps most last. Empty when it is closed, or its brackets do not fit."""
    open_: list[str] = []
    stops: list[tuple[int, str]] = []
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign == '"':  # never closed
            whole = _HALF_ESCAPE.sub("", text)
            return [*_closings(text, stops), whole + '"' + _closers(open_)]
        if sign == ",":
            stops.append((token.start(), _closers(open_)))
        elif sign in _PAIR:
            open_.append(_PAIR[sign])
        elif sign in ("}", "]") and (not open_ or open_.pop() != sign or not open_):
            return []
    return [*_closings(text, stops), text + _closers(open_)]


def _closings(text: str, stops: list[tuple[int, str]]) -> list[str]:
    return [text[:place] + closers for place, closers in stops[-_TRIES:]]


def _closers(open_: list[str]) -> str:
    return "".join(reversed(open_))


#: Stands behind the words of a record that breaks off.
BROKEN_OFF = "\n[The rest of this is lost: its record was torn.]"

#: What can be wrong, in words.
KINDS = {
    "byte_order_mark": "a byte order mark",
    "line_ends": "line ends of another system",
    "glued": "two records on one line",
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
}

_MARK = b"\xef\xbb\xbf"
_BEGINNING = re.compile(rb'\{"\w{1,40}":')
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def make_flaw(kind: str, piece: CheckedRecord, note: str = "", lost: bool = False) -> Flaw:
    """What is wrong with a piece."""
    return Flaw(kind, note or KINDS[kind], piece.start, piece.size, piece.copy, lost)


def with_value(piece: CheckedRecord, value: Rec) -> CheckedRecord:
    """The piece with another value."""
    return msgspec.structs.replace(piece, value=value, raw=_encode(value))


def split(data: bytes, copy: int = 0) -> FileCheck:
    """The records of a file of lines, whatever happened to it."""
    pieces: list[CheckedRecord] = []
    flaws = list(_find_form_flaws(data, copy))
    end, walk = 0, walker()
    for start, raw, value, trouble in walk.split(data, 0, last=True):
        if trouble == BLANK:
            continue
        if value is not None:
            if pieces and b"\n" not in data[end:start] and not data[end:start].strip(b" \t\r\0"):
                flaws.append(Flaw("glued", KINDS["glued"], start, len(raw), copy))
            _add_whole_record(CheckedRecord(value, bytes(raw), start, len(raw), copy), trouble, pieces, flaws)
        else:
            _add_broken_record(bytes(raw), start, copy, trouble, pieces, flaws)
        end = start + len(raw)
    if walk.tail is not None:
        start, size, trouble = walk.tail
        _add_broken_record(data[start : start + size], start, copy, trouble, pieces, flaws)
    return FileCheck(pieces, flaws)


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
    for at, part in _split_torn_records(raw):
        value = close_json(part)
        if value is None:
            flaws.append(Flaw("damaged", KINDS["damaged"], start + at, len(part), copy, lost=True))
        else:  # what it is worth is told when it is judged
            pieces.append(CheckedRecord(value, _encode(value), start + at, len(part), copy, is_torn=True))


def _split_torn_records(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Records that break off one after the other: each begins like the first. Within a string its quotes would be escaped."""
    begins = _BEGINNING.match(raw)
    ends = [found.start() for found in re.finditer(re.escape(begins[0]), raw)][1:] if begins else []
    for start, end in pairwise([0, *ends, len(raw)]):
        yield start, raw[start:end]


def _find_form_flaws(data: bytes, copy: int) -> Iterator[Flaw]:
    """What is unusual about the bytes as a whole."""
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


# what formats share ---------------------------------------------------------------------------------------------------
def judge_records(
    pieces: Sequence[CheckedRecord], keep: Callable[[CheckedRecord], tuple[Rec, bool] | None], flaws: list[Flaw]
) -> list[CheckedRecord]:
    """Torn records as far as they can be used: `keep` gives what to make of one and whether nothing is missing from it."""
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
    """Each record once: written twice it is a duplicate; one id for different ones is a collision, where both stay.

    Of the same record in two copies of the file, that of the newer copy stays. `name` gives an id or None, `same` what
    makes two records of one id the same.
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
    """Each piece behind the one that `before` names by its place; otherwise as they stand. Cycles are cut open."""
    waiting: dict[int, list[int]] = {}
    ready: list[int] = []
    for place, piece in enumerate(pieces):
        first = before(place)
        if first is None:
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
