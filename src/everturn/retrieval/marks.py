"""Find the words of a query in a text, to mark them: whole words, and words with the same stem.

    rate                rate, rates, rated; never rather or separate
    rat*                the beginning of rate and rather
    parse json line     parse_json_line, parseJsonLine, parse json lines
    JsonParser          JsonParser, json_parser
    json                the part of parse_json and of parseJson
    会话                 anywhere: these scripts have no spaces

A phrase has several patterns, the strictest first; the first one that finds something counts. Each begins with literal
text, which is fast to find. The patterns search folded text: lower case without accents, position by position.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, pairwise

from msgspec import Struct

from everturn.store.index import stem_word
from everturn.text.terms import humps, terms

Span = tuple[int, int]

_TRIED = 1000  # matches of one pattern in one part of a text
_LONGEST_WORD = 60
_GAP = r"[\W_]{%d,40}"
_END = r"(?![^\W_])"


class MarkPattern(Struct, frozen=True):
    """A regular expression over folded text, and what else must hold."""

    regex: str
    stems: tuple[str, ...] = ()  # of its groups
    edges: str = ""  # `start`: begins at the edge of a word or of a part of a camelCase name; `both`: ends there too
    part: str = ""  # the stem of the part of a name that begins there, up to its end
    literal: str = ""  # what every match holds: without it there is nothing to search


MarkPatterns = tuple[MarkPattern, ...]


def find_marks(text: str, folded: str, patterns: MarkPatterns, most: int) -> list[Span]:
    """Return up to `most` spans of the first pattern that is found; `folded` is the folded text."""
    for pattern in patterns:
        if pattern.literal not in folded:
            continue
        tried = islice(re.finditer(pattern.regex, folded), _TRIED if pattern.edges or pattern.part else None)
        spans = (span for match in tried if (span := _checked_span(text, folded, pattern, match)))
        if found := list(islice(spans, most)):
            return found
    return []


def _checked_span(text: str, folded: str, pattern: MarkPattern, match: re.Match[str]) -> Span | None:
    start, end = match.span()
    if pattern.stems and tuple(map(_stem, match.groups())) != pattern.stems:
        return None
    if pattern.part:
        end = _part_end(text, start) if _is_edge(text, start) else start
        return (start, end) if end > start and _stem(folded[start:end]) == pattern.part else None
    if pattern.edges and not _is_edge(text, start):
        return None
    return None if pattern.edges == "both" and not _is_edge(text, end) else (start, end)


def _is_edge(text: str, at: int) -> bool:
    """Whether a word, or a part of a camelCase name, begins or ends there."""
    if not 0 < at < len(text) or not text[at - 1].isalnum() or not text[at].isalnum():
        return True
    before, here = text[at - 1], text[at]
    if here.isupper():
        return not before.isupper() or (at + 1 < len(text) and text[at + 1].islower())
    return before.isdigit() and here.isalpha()


def _part_end(text: str, start: int) -> int:
    last = min(start + _LONGEST_WORD, len(text))
    return next((at for at in range(start + 1, last + 1) if _is_edge(text, at)), start)


_stem = lru_cache(4096)(stem_word)


# --- patterns ---


@lru_cache(256)
def literal_patterns(phrase: str) -> MarkPatterns:
    """Return the pattern of the characters themselves, also within words."""
    literal = re.escape(fold_text(phrase.strip()))
    return (MarkPattern(literal),) if literal else ()


@lru_cache(256)
def mark_patterns(phrase: str) -> MarkPatterns:
    """Return the patterns of a phrase. One that ends in `*` matches the beginning of a word."""
    words = terms(phrase)
    if not words:
        return literal_patterns(phrase)
    if phrase.rstrip().endswith("*"):
        first, joined = _words_regex(words, True), _joined_regex(words, 0)
        return MarkPattern(first, literal=words[0]), MarkPattern(joined, edges="start", literal=words[0])
    if len(words) == 1:
        return _word_patterns(words[0], humps(phrase.strip()))
    if all(map(_is_single_character, words)):
        pairs = "|".join(re.escape(one + two) for one, two in pairwise(words))
        return MarkPattern(_words_regex(words, False)), MarkPattern(pairs)
    found = [MarkPattern(_words_regex(words, False), literal=words[0])]
    if not any(map(_is_single_character, words)):
        rooted = (_GAP % 1).join(f"({re.escape(_root(word))}[^\\W_]*)" for word in words)
        found.append(MarkPattern(rooted, tuple(map(_stem, words)), edges="start", literal=_root(words[0])))
    return (*found, MarkPattern(_joined_regex(words, 0), edges="both", literal=words[0]))


def _word_patterns(word: str, parts: tuple[str, ...]) -> MarkPatterns:
    if _is_single_character(word):
        return (MarkPattern(re.escape(word)),)
    literal, stem = _root(word), _stem(word)
    root = re.escape(literal)
    found = [
        MarkPattern(rf"({root}(?<![^\W_]{root})[^\W_]*)", (stem,), literal=literal),
        MarkPattern(root, part=stem, literal=literal),
    ]
    if parts:
        found.append(MarkPattern(_joined_regex(parts, 0), edges="both", literal=parts[0]))
    return tuple(found)


def _words_regex(words: list[str], by_prefix: bool) -> str:
    first = re.escape(words[0])
    pattern = first if _is_single_character(words[0]) else rf"{first}(?<![^\W_]{first})"
    for before, word in pairwise(words):
        gap = 0 if _is_single_character(before) or _is_single_character(word) else 1
        pattern += _GAP % gap + re.escape(word)
    return pattern if by_prefix or _is_single_character(words[-1]) else pattern + _END


def _joined_regex(words: list[str] | tuple[str, ...], gap: int) -> str:
    return (_GAP % gap).join(map(re.escape, words))


def _root(word: str) -> str:
    """Return how all words with the same stem begin: `rat` of rate and rating, `part` of party and parties."""
    stem = _stem(word)
    shared = next((at for at, pair in enumerate(zip(word, stem, strict=False)) if pair[0] != pair[1]), len(stem))
    root = word[:shared] or word
    return root[:-1] if len(root) > 3 and word.isascii() and word.isalpha() else root


def _is_single_character(word: str) -> bool:
    """Whether the word is one character of a script written without spaces."""
    return len(word) == 1 and ord(word) >= 0x2E80


# --- folded text ---


def fold_text(text: str) -> str:
    """Lower the case and drop accents, character by character, so that positions stay."""
    return text.lower() if text.isascii() else text.translate(_FOLDED)


class _FoldingTable(dict[int, str]):
    def __missing__(self, point: int) -> str:
        char = chr(point)
        plain = unicodedata.normalize("NFKD", char.lower())
        base = "".join(part for part in plain if not unicodedata.combining(part))
        folded = self[point] = base if len(base) == 1 else char
        return folded


_FOLDED = _FoldingTable()


def each_mark(text: str, folded: str, phrases: list[MarkPatterns], most: int) -> Iterator[tuple[int, int, int]]:
    """Yield the marks of several phrases: start, end and the number of the phrase."""
    for number, patterns in enumerate(phrases):
        for start, end in find_marks(text, folded, patterns, most):
            yield start, end, number
