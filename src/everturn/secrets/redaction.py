"""Secrets found in text and taken out of it.

`find_secrets` says where they are, `redact_text` and `redact_bytes` put `[REDACTED:kind]` in their place, or with a key
`[REDACTED:kind:hmac8]`, so that equal secrets stay equal without being told. A `Cleaner` is both with the key of one
archive: what surfaces hand to everything that gives words out. `redact_bytes` works on raw JSON lines and promises that
valid JSON stays valid. Doing it twice changes nothing more. Time is linear in the text, whatever is in it.

The rules are in `derive.secretrules` and `derive.secretwords`. Everything runs on UTF-8: one scan for text and for raw lines, lower-casing that
keeps positions, and searches that run at memory speed.

Where secrets stand in UTF-8 data: the rules run, their findings put in order.

Colours and invisible characters are looked through: a token whose head was coloured by a search is still one, and would be
whole again on a screen. What stands in for a secret is never taken for one.
"""

from __future__ import annotations

import hmac
import json
import re
from bisect import bisect_left
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from everturn.secrets.assignments import word_spans
from everturn.secrets.rules import CutBytes, Span, token_spans
from everturn.text.lazy_pattern import lazy_pattern

#: How a stand-in begins.
PLACEHOLDER = b"[REDACTED:"
_STAND_IN = lazy_pattern(rb"\[REDACTED:[a-z0-9_]{1,40}(?::[0-9a-f]{8})?\]")

#: What `derive.printable` drops: colours, raw or as JSON writes them, and characters that cannot be seen. One pattern
#: for each beginning, because only literal text is found fast.
_COLOUR = lazy_pattern(rb"\x1b\[[0-9;:]{0,64}[mK]")
_ESCAPED = lazy_pattern(
    rb"\\u(?:001[bB]\\?\[[0-9;:]{0,64}[mK]|00[aA][dD]|115[fF]|1160|17[bB][45]|180[eE]|200[b-dB-D]|206[0-4]|3164|[fF][eE][fF][fF]"
    rb"|[fF][fF][aA]0|[dD][bB]40\\{1,7}u[dD][cC][0-7][0-9a-fA-F])"
)
_INVISIBLE = tuple(
    (lead, lazy_pattern(lead + rest))
    for lead, rest in (
        (b"\xc2\xad", rb""),
        (b"\xe1", rb"(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0\x8e)"),
        (b"\xe2\x80", rb"[\x8b-\x8d]"),
        (b"\xe2\x81", rb"[\xa0-\xa4]"),
        (b"\xe3\x85\xa4", rb""),
        (b"\xef", rb"(?:\xbb\xbf|\xbe\xa0)"),
        (b"\xf3\xa0", rb"[\x80\x81][\x80-\xbf]"),
    )
)
_BACKSLASH = ord("\\")
_AROUND = 600  # bytes on both sides of what is hidden that are looked at once more


def find_spans(data: bytes, raw: bool = False) -> list[Span]:
    """The secrets in UTF-8 text, in order, joined where they overlap. `raw` is JSON: a secret ends with its string."""
    found = _plain_spans(data, raw)
    hidden = _hidden_ranges(data)
    if hidden:
        found += _spans_through_hidden(data, hidden, raw)
    if found and PLACEHOLDER in data:
        found = _outside_placeholders(found, [match.span() for match in _STAND_IN.finditer(data)])
    return _join_spans(found) if found else found


def _plain_spans(data: bytes, raw: bool) -> list[Span]:
    return token_spans(data, raw) + word_spans(data)


def _hidden_ranges(data: bytes) -> list[tuple[int, int]]:
    """What is not to be seen on a screen, in order."""
    found = [match.span() for match in _COLOUR.finditer(data)] if b"\x1b" in data else []
    if b"\\" in data:
        # Escaped twice and more, they have further backslashes before them.
        found += [(_first_backslash(data, match.start()), match.end()) for match in _ESCAPED.finditer(data)]
    if not data.isascii():
        for lead, rule in _INVISIBLE:
            if lead[0] in data:
                found += [match.span() for match in rule.finditer(data)]
    return sorted(found)


def _first_backslash(data: bytes, at: int) -> int:
    while at and data[at - 1] == _BACKSLASH == data[at]:
        at -= 1
    return at


def _spans_through_hidden(data: bytes, hidden: list[tuple[int, int]], raw: bool) -> Iterator[Span]:
    """What is found once colours and invisible characters are left out, in its place."""
    group: list[tuple[int, int]] = []
    for span in hidden:
        if group and span[0] - group[-1][1] > 2 * _AROUND:
            yield from _spans_around_hidden(data, group, raw)
            group = []
        group.append(span)
    yield from _spans_around_hidden(data, group, raw)


def _spans_around_hidden(data: bytes, hidden: list[tuple[int, int]], raw: bool) -> Iterator[Span]:
    first = max(0, hidden[0][0] - _AROUND)
    first = max(0, data.find(b" ", first, hidden[0][0])) if first else 0  # not within a word, if that can be
    edges = [first, *(edge for span in hidden for edge in span), min(len(data), hidden[-1][1] + _AROUND)]
    plain = CutBytes(data, list(zip(edges[::2], edges[1::2], strict=True)))
    for kind, start, end in _plain_spans(plain.data, raw):
        yield kind, *plain.place(start, end)


def _outside_placeholders(found: list[Span], stand_ins: list[tuple[int, int]]) -> list[Span]:
    """A stand-in names its kind, which is a telling name itself."""
    starts = [start for start, _ in stand_ins]
    kept = []
    for span in found:
        before = bisect_left(starts, span[2]) - 1
        if before < 0 or stand_ins[before][1] <= span[1]:
            kept.append(span)
    return kept


def _join_spans(found: list[Span]) -> list[Span]:
    """In order; overlapping ones become one, named by the first rule that saw its beginning."""
    spans: list[Span] = []
    for kind, start, end in sorted(found, key=lambda span: span[1]):
        if spans and start < spans[-1][2]:
            name, begin, old_end = spans[-1]
            spans[-1] = (name, begin, max(end, old_end))
        else:
            spans.append((kind, start, end))
    return spans


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
