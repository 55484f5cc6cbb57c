"""The form of a file of records as a whole: its encoding, and whether each record is one line.

Editors, shells, logs and scripts save transcripts as UTF-16, compressed, pretty-printed, as one JSON array, or each record inside
of another value. No record is lost by that, but no program opens the file. `read_form` returns the same records as lines of
UTF-8, and what was wrong. Positions in what it returns are those of the new lines.
"""

from __future__ import annotations

import ast
import codecs
import json
import re
import zlib
from collections.abc import Callable
from html import unescape
from typing import Any, NamedTuple

_UTF16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_UTF32 = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
_GZIP = b"\x1f\x8b\x08"
_BLANK = b"\xef\xbb\xbf \t\r\n"
_BETWEEN = " \t\r\n,"
_MOST_BYTES = 256 << 20
_LOOKED_AT = 64 << 10
_LONGEST_LITERAL = 1 << 20
_HIGH = re.compile(rb"[\x80-\xff]+")
_NOT_IN_CP1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")
#: Members of a log's records that hold what a program has written.
_LOGGED = ("log", "message", "msg", "line", "MESSAGE")


class FileForm(NamedTuple):
    """The records as lines, and the kinds of `record_check.KINDS` that were mended for it."""

    data: bytes
    flaws: tuple[str, ...] = ()


def read_form(data: bytes) -> FileForm:
    """Return the records of a file as lines of UTF-8. A file that has this form, or none at all, is returned as it is."""
    if len(data) > _MOST_BYTES:
        return FileForm(data)
    flaws: list[str] = []
    for kind, mend in _MENDS:
        made = mend(data)
        if made is not None:
            flaws.append(kind)
            data = made
    lines = _records_as_lines(data)
    if lines is not None:
        flaws.append("array" if data.lstrip(_BLANK)[:1] == b"[" else "pretty_printed")
        data = lines
    return FileForm(data, tuple(flaws))


def is_document(data: bytes, name: str) -> bool:
    """Whether a file is one JSON object, as some clients save a whole session, or a text.

    A JSON object is one by the name of the file, or because it spans lines.
    """
    if data[:64].lstrip(_BLANK).startswith(b"# "):
        return True
    if data[:64].lstrip(_BLANK)[:1] != b"{":
        return False
    if name.lower().endswith(".json"):
        return True
    text = data.decode("utf-8", "replace").strip("\ufeff \t\r\n")
    if text[1:64].lstrip(" \t")[:1] not in ("\r", "\n"):
        return False
    try:
        return json.JSONDecoder(strict=False).raw_decode(text)[1] == len(text)
    except (ValueError, RecursionError):
        return False


# --- bytes ---
def _unpack(data: bytes) -> bytes | None:
    """Return the content of a file compressed by gzip, as far as it can be read."""
    if not data.startswith(_GZIP):
        return None
    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        return stream.decompress(data, _MOST_BYTES)
    except zlib.error:
        return None


def _from_wide(data: bytes) -> bytes | None:
    encoding = _UTF32.get(data[:4]) or _UTF16.get(data[:2]) or _without_mark(data)
    return data.decode(encoding, "replace").encode("utf-8", "replace") if encoding else None


def _without_mark(data: bytes) -> str:
    """Return the encoding of UTF-16 without a byte order mark; "" for anything else."""
    head = data[:2000]
    pairs = [
        (one, two) for one, two in zip(head[::2], head[1::2], strict=False) if one or two
    ]  # a block of zeros says nothing
    for encoding, zeros in (("utf-16-le", [two for _, two in pairs]), ("utf-16-be", [one for one, _ in pairs])):
        if len(zeros) > 20 and zeros.count(0) > 0.9 * len(zeros):
            return encoding
    return ""


def _from_cp1252(data: bytes) -> bytes | None:
    """Return text of the usual one-byte encoding: its letters stand alone between those of ASCII, unlike any of UTF-8."""
    runs = _HIGH.findall(data)
    if len(runs) < 2 or not _NOT_IN_CP1252.isdisjoint(b"".join(runs)):
        return None
    alone = sum(len(run) == 1 for run in runs)
    return data.decode("cp1252").encode() if alone > 0.9 * len(runs) else None


def _with_line_ends(data: bytes) -> bytes | None:
    """Return the lines of a file whose line ends are carriage returns alone."""
    if b"\n" in data or data.count(b"}\r") < 2:
        return None
    return data.replace(b"}\r", b"}\n")


# --- lines ---
def _each_line(change: Callable[[bytes], bytes | None]) -> Callable[[bytes], bytes | None]:
    """Return a function that changes every line of a file, if the first record needs it; others stay as they are."""

    def mend(data: bytes) -> bytes | None:
        first = next((line for line in data[:_LOOKED_AT].split(b"\n") if line.strip()), b"").strip()
        if not first or first == data.strip() or _try_change(change, first) is None:
            return None
        return b"".join(
            (_try_change(change, line.strip()) or line) + b"\n" for line in data.split(b"\n") if line.strip()
        )

    return mend


def _try_change(change: Callable[[bytes], bytes | None], line: bytes) -> bytes | None:
    try:
        made = change(line)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return made if made is not None and made[:2] == b'{"' and b"\n" not in made else None


def _without_comma(line: bytes) -> bytes | None:
    return line[:-1] if line.startswith(b'{"') and line.endswith(b"},") else None


def _without_entities(line: bytes) -> bytes | None:
    return unescape(line.decode("utf-8", "replace")).encode() if line.startswith(b"{&quot;") else None


def _unquote_record(line: bytes) -> bytes | None:
    """Return the record in a line that is a JSON string, or the record of a log."""
    if line[:1] not in (b'"', b"{"):
        return None
    value: Any = json.loads(line)
    if isinstance(value, dict):
        value = next((text for name in _LOGGED if isinstance(text := value.get(name), str)), None)
    return value.strip().encode("utf-8", "replace") if isinstance(value, str) else None


def _of_python(line: bytes) -> bytes | None:
    """Return the record of a line that is a literal of Python."""
    if not line.startswith(b"{'") or len(line) > _LONGEST_LITERAL:
        return None
    value = ast.literal_eval(line.decode("utf-8", "replace"))
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") if isinstance(value, dict) else None


#: Kinds of flaws, in the order in which they are mended.
_MENDS: tuple[tuple[str, Callable[[bytes], bytes | None]], ...] = (
    ("compressed", _unpack),
    ("utf16", _from_wide),
    ("cp1252", _from_cp1252),
    ("line_ends", _with_line_ends),
    ("entities", _each_line(_without_entities)),
    ("quoted", _each_line(_unquote_record)),
    ("python", _each_line(_of_python)),
    ("commas", _each_line(_without_comma)),
)


def _records_as_lines(data: bytes) -> bytes | None:
    """Return the objects of an array, or of a file in which they span lines, one per line; None if it is neither."""
    start = data.lstrip(_BLANK)[:64]
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
