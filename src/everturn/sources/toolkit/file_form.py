"""The form of a file of records as a whole: its encoding, and whether each record is one line.

Editors and scripts save transcripts as UTF-16, pretty-printed or as one JSON array. No record is lost by that, but no program
opens the file. `read_form` returns the same records as lines of UTF-8, and what was wrong. Positions in what it returns are
those of the new lines.
"""

from __future__ import annotations

import codecs
import json
from typing import NamedTuple

_UTF16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BETWEEN = " \t\r\n,"
_MOST_BYTES = 256 << 20


class FileForm(NamedTuple):
    """The records as lines, and the kinds of `record_check.KINDS` that were mended for it."""

    data: bytes
    flaws: tuple[str, ...] = ()


def read_form(data: bytes) -> FileForm:
    """Return the records of a file as lines of UTF-8. A file that has this form, or none at all, is returned as it is."""
    if len(data) > _MOST_BYTES:
        return FileForm(data)
    flaws: list[str] = []
    encoding = _UTF16.get(data[:2]) or _without_mark(data)
    if encoding:
        data = data.decode(encoding, "replace").encode("utf-8", "replace")
        flaws.append("utf16")
    lines = _records_as_lines(data)
    if lines is not None:
        flaws.append("array" if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[" else "pretty_printed")
        data = lines
    return FileForm(data, tuple(flaws))


def _without_mark(data: bytes) -> str:
    """Return the encoding of UTF-16 without a byte order mark; "" for anything else."""
    head = data[:2000]
    for encoding, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
        if len(zeros) > 20 and zeros.count(0) > 0.9 * len(zeros) and not all(byte == 0 for byte in head):
            return encoding
    return ""


def _records_as_lines(data: bytes) -> bytes | None:
    """Return the objects of an array, or of a file in which they span lines, one per line; None if it is neither."""
    start = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:64]
    is_array = start[:1] == b"["
    is_pretty = start[:1] == b"{" and start[1:].lstrip(b" \t")[:1] in (b"\r", b"\n")
    if not (is_array or is_pretty):
        return None
    text = data.decode("utf-8", "replace").lstrip("\ufeff \t\r\n").removeprefix("[" if is_array else "")
    decoder, place, lines = json.JSONDecoder(strict=False), 0, list[bytes]()
    while True:
        while place < len(text) and text[place] in _BETWEEN:
            place += 1
        if place >= len(text) or text[place] == "]":
            return b"".join(lines) if lines else None
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            rest = text[place:].replace("\r", " ").replace("\n", " ")  # torn: what follows is judged as a record
            return b"".join([*lines, rest.encode("utf-8", "replace"), b"\n"]) if lines else None
        if not isinstance(value, dict):
            return None
        lines.append(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
