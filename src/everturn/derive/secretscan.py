"""Where secrets stand in UTF-8 data: the rules run, their findings put in order.

Colours and invisible characters are looked through: a token whose head was coloured by a search is still one, and would be
whole again on a screen. What stands in for a secret is never taken for one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from everturn.derive.cutting import CutBytes
from everturn.derive.late import lazy_pattern
from everturn.derive.secretrules import Span, token_spans
from everturn.derive.secretwords import word_spans

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
