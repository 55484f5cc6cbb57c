"""Secrets found in text and taken out of it.

`find_secrets` says where they are, `redact_text` and `redact_bytes` put `[REDACTED:kind]` in their place, or with a key
`[REDACTED:kind:hmac8]`, so that equal secrets stay equal without being told. A `Cleaner` is both with the key of one
archive: what surfaces hand to everything that gives words out. `redact_bytes` works on raw JSON lines and promises that
valid JSON stays valid. Doing it twice changes nothing more. Time is linear in the text, whatever is in it.

The rules are in `derive.secretrules` and `derive.secretwords`. Everything runs on UTF-8: one scan for text and for raw lines, lower-casing that
keeps positions, and searches that run at memory speed.
"""

from __future__ import annotations

import hmac
import json
import re
from bisect import bisect_left

import msgspec
from msgspec import Struct

from everturn.derive.secretrules import Span
from everturn.derive.secretscan import PLACEHOLDER, find_spans

_KEY_FREE = b""
_QUOTE_OR_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)|\"")


class Secret(Struct, frozen=True):
    """Where a secret stands in a text, and what it is."""

    kind: str
    start: int
    end: int


class Cleaner(Struct, frozen=True):
    """Takes secrets out of words, and out of lines of JSON, under one key."""

    key: bytes = _KEY_FREE

    def __call__(self, text: str) -> str:
        """The text without its secrets."""
        return redact_text(text, self.key)

    def line(self, line: bytes) -> bytes:
        """A line of JSON without its secrets, still JSON."""
        return redact_bytes(line, self.key)


def find_secrets(text: str) -> list[Secret]:
    """The secrets of a text, in order, without overlaps."""
    data = _encode_text(text)
    found, at, chars = [], 0, 0
    for kind, start, end in find_spans(data):
        chars += _text_length(data[at:start])
        size = _text_length(data[start:end])
        found.append(Secret(kind, chars, chars + size))
        at, chars = end, chars + size
    return found


def redact_text(text: str, key: bytes = _KEY_FREE) -> str:
    """The text without its secrets; a text without any comes back as it is."""
    data = _encode_text(text)
    spans = find_spans(data)
    return _replace_spans(data, spans, key).decode("utf-8", "surrogatepass") if spans else text


def redact_bytes(line: bytes, key: bytes = _KEY_FREE) -> bytes:
    """One raw JSON line, or several whole ones, without their secrets."""
    spans = find_spans(line, raw=True)
    if not spans:
        return line
    if line.find(b"\n", 0, -1) >= 0:
        return b"".join(redact_bytes(one, key) for one in line.splitlines(keepends=True))
    new = _replace_spans(line, spans, key)
    if _is_json(new) or not _is_json(line):
        return new
    return _replace_spans(line, _spans_within_strings(line, spans), key)


def digest(secret: bytes, key: bytes) -> str:
    """Eight digits that are equal for equal secrets, and tell nothing to who has not the key."""
    # Escapes and line ends differ between a raw line and its text; the secret is the same.
    plain = secret.replace(b"\\r", b"").replace(b"\\n", b"").replace(b"\\", b"")
    return hmac.new(key, b"".join(plain.split()), "sha256").hexdigest()[:8]


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text_length(part: bytes) -> int:
    return len(part) if part.isascii() else len(part.decode("utf-8", "surrogatepass"))


def _replace_spans(data: bytes, spans: list[Span], key: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    for kind, start, end in spans:
        parts += data[at:start], _placeholder_for(kind, data[start:end], key)
        at = end
    return b"".join((*parts, data[at:]))


def _placeholder_for(kind: str, secret: bytes, key: bytes) -> bytes:
    if not key:
        return b"%s%s]" % (PLACEHOLDER, kind.encode())
    return b"%s%s:%s]" % (PLACEHOLDER, kind.encode(), digest(secret, key).encode())


def _is_json(line: bytes) -> bool:
    """By either of two readers: the fast one does not take halves of surrogate pairs, which transcripts do hold."""
    for decode in (msgspec.json.decode, json.loads):
        try:
            decode(line)
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue
        return True
    return False


def _spans_within_strings(line: bytes, spans: list[Span]) -> list[Span]:
    """The spans that can be replaced in valid JSON: within one string, and no escape cut in two.

    Others are numbers behind a telling name, or begin with the letter of an escape: `\\npm_` is a line end and `pm_`.
    """
    quotes: list[int] = []
    escapes: list[tuple[int, int]] = []
    for found in _QUOTE_OR_ESCAPE.finditer(line):
        if found[0] == b'"':
            quotes.append(found.start())
        else:
            escapes.append(found.span())
    kept = []
    for span in spans:
        before = bisect_left(quotes, span[1])
        is_in_string = before % 2 == 1 and before == bisect_left(quotes, span[2])
        if is_in_string and not any(_is_cutting_escape(escapes, edge) for edge in span[1:]):
            kept.append(span)
    return kept


def _is_cutting_escape(escapes: list[tuple[int, int]], edge: int) -> bool:
    before = bisect_left(escapes, (edge, 0)) - 1
    return before >= 0 and escapes[before][1] > edge
