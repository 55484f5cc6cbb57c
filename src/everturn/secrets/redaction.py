"""Find secrets in text and mask them.

`find_secrets` returns their positions. `redact_text` and `redact_bytes` replace each by `[REDACTED:kind]`, or with a key by
`[REDACTED:kind:hmac8]`, so that equal secrets can be recognised without being shown. A `Cleaner` holds the key of one
archive; surfaces pass it to everything that emits text. `redact_bytes` works on raw JSON lines, and valid JSON stays
valid. Redaction is idempotent, and linear in the text.

Everything runs on UTF-8: one scan serves text and raw lines, lower-casing keeps positions, and searches run at memory
speed. Colours and invisible characters are ignored: a token with a highlighted prefix is still a token, and would be whole
again on a screen. A placeholder is never taken for a secret.
"""

from __future__ import annotations

import hmac
import json
import re
from bisect import bisect_left
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from everturn.secrets.families import Span
from everturn.secrets.own_patterns import OWN_KIND, own_spans
from everturn.secrets.phrases import word_spans
from everturn.secrets.rules import CutBytes, token_spans
from everturn.text.lazy_pattern import lazy_pattern

#: The beginning of a placeholder.
PLACEHOLDER = b"[REDACTED:"
_PLACEHOLDER_PATTERN = lazy_pattern(rb"\[REDACTED:[a-z0-9_]{1,40}(?::[0-9a-f]{8})?\]")

#: What `text.printable` removes: colours, raw or as JSON writes them, and invisible characters. One pattern for each
#: first byte, because only literal text is found fast.
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
_AROUND = 600  # bytes on both sides of hidden characters that are searched again


def find_spans(data: bytes, raw: bool = False) -> list[Span]:
    """Return the secrets in UTF-8 text, in order, merged where they overlap. `raw` is JSON: a secret ends with its string."""
    found = _plain_spans(data, raw)
    if hidden := _hidden_ranges(data):
        found += _spans_through_hidden(data, hidden, raw)
    if found and PLACEHOLDER in data:
        found = _outside_placeholders(found, [match.span() for match in _PLACEHOLDER_PATTERN.finditer(data)])
    return _join_spans(found) if found else found


def _plain_spans(data: bytes, raw: bool) -> list[Span]:
    return [*token_spans(data, raw), *word_spans(data), *own_spans(data, raw)]


def _hidden_ranges(data: bytes) -> list[tuple[int, int]]:
    """Return the ranges of colours and invisible characters, in order."""
    found = [match.span() for match in _COLOUR.finditer(data)] if b"\x1b" in data else []
    if b"\\u" in data:
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
    """Yield the secrets found once colours and invisible characters are left out, at their original positions."""
    group: list[tuple[int, int]] = []
    for span in hidden:
        if group and span[0] - group[-1][1] > 2 * _AROUND:
            yield from _spans_around_hidden(data, group, raw)
            group = []
        group.append(span)
    yield from _spans_around_hidden(data, group, raw)


def _spans_around_hidden(data: bytes, hidden: list[tuple[int, int]], raw: bool) -> Iterator[Span]:
    first = max(0, hidden[0][0] - _AROUND)
    first = max(0, data.find(b" ", first, hidden[0][0])) if first else 0  # not within a word, if possible
    edges = [first, *(edge for span in hidden for edge in span), min(len(data), hidden[-1][1] + _AROUND)]
    plain = CutBytes(data, list(zip(edges[::2], edges[1::2], strict=True)))
    for kind, start, end in _plain_spans(plain.data, raw):
        yield kind, *plain.original_range(start, end)


def _outside_placeholders(found: list[Span], placeholders: list[tuple[int, int]]) -> list[Span]:
    """Drop the spans within placeholders: the kind named there is a telling name itself.

    A match of the user's own patterns may hold a placeholder; a secret of another kind that would is none.
    """
    starts = [start for start, _ in placeholders]
    kept = []
    for span in found:
        before = bisect_left(starts, span[2]) - 1
        is_outside = before < 0 or placeholders[before][1] <= span[1]
        if is_outside or (span[0] == OWN_KIND and not _is_within(span, placeholders[before])):
            kept.append(span)
    return kept


def _is_within(span: Span, outer: tuple[int, int]) -> bool:
    return outer[0] <= span[1] and span[2] <= outer[1]


def _join_spans(found: list[Span]) -> list[Span]:
    """Sort the spans and merge overlapping ones, named by the one that begins first."""
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
    """The kind and position of a secret in a text."""

    kind: str
    start: int
    end: int


class Cleaner(Struct, frozen=True):
    """Masks secrets in text and in lines of JSON, with one key."""

    key: bytes = _KEY_FREE

    def __call__(self, text: str) -> str:
        """Return the text with its secrets masked."""
        return redact_text(text, self.key)

    def line(self, line: bytes) -> bytes:
        """Return a line of JSON with its secrets masked, still JSON."""
        return redact_bytes(line, self.key)


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets of a text, in order, without overlaps."""
    data = _encode_text(text)
    found, at, chars = [], 0, 0
    for kind, start, end in find_spans(data):
        chars += _text_length(data[at:start])
        size = _text_length(data[start:end])
        found.append(Secret(kind, chars, chars + size))
        at, chars = end, chars + size
    return found


def redact_text(text: str, key: bytes = _KEY_FREE) -> str:
    """Return the text with its secrets masked; a text without any is returned as it is."""
    data = _encode_text(text)
    spans = find_spans(data)
    return _replace_spans(data, spans, key).decode("utf-8", "surrogatepass") if spans else text


def redact_bytes(line: bytes, key: bytes = _KEY_FREE) -> bytes:
    """Return one or several raw JSON lines with their secrets masked."""
    if not (spans := find_spans(line, raw=True)):
        return line
    if line.find(b"\n", 0, -1) >= 0:
        return b"".join(redact_bytes(one, key) for one in line.splitlines(keepends=True))
    new = _replace_spans(line, spans, key)
    if _is_json(new) or not _is_json(line):
        return new
    return _replace_spans(line, _spans_within_strings(line, spans), key)


def digest(secret: bytes, key: bytes) -> str:
    """Return eight hex digits that are equal for equal secrets, and useless without the key."""
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
    """Whether either of two readers accepts it: the fast one rejects halves of surrogate pairs, which transcripts contain."""
    for decode in (msgspec.json.decode, json.loads):
        try:
            decode(line)
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue
        return True
    return False


def _spans_within_strings(line: bytes, spans: list[Span]) -> list[Span]:
    """Return the spans that can be replaced in valid JSON: within one string, and no escape cut in two.

    Others are numbers after a telling name, or begin with the letter of an escape: `\\npm_` is a line end and `pm_`.
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
