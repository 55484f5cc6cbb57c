"""Relations with two sides in statements: what comes before what, what is preferred to what, and what something is restricted to.

The words of "try the cache first, then the database" are those of "try the database first, then the cache". Only their order tells
them apart, so each side is compared with both sides of the same relation in the record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from everturn.restore.grounds import all_stems, stems
from everturn.text.statement_words import FIRST_AND_SECOND, RESTRICTED, SEQUENCE

_LEAST_SIDE = 0.5  # share of the words of a side that the other side of the record must have
_LEAST_ABOUT = 0.35  # share of the words of a restriction that a sentence about the same thing has
_NAME = re.compile(r"[A-Za-z][\w/-]{1,60}\.[A-Za-z]{1,6}(?![\w])", re.ASCII)  # of a file
_MARKS = re.compile(r"[*_`'\"“”„«»「」『』]")


class Relation(Struct, frozen=True):
    """What comes first and what second."""

    kind: str
    first: frozenset[str]
    second: frozenset[str]


def find_exchanged(text: str, sentences: Sequence[str]) -> str:
    """Return the sentence of the record in which the two sides of a relation stand the other way round; "" if none does."""
    said, order = list(_relations(text)), _order(text)
    for sentence in sentences if said or order else ():
        if len(order) > 1 and _is_reversed(order, _order(sentence)):
            return sentence
        for there in _relations(sentence):
            if any(one.kind == there.kind and _is_exchanged(one, there) for one in said):
                return sentence
    return ""


def _order(text: str) -> list[str]:
    """Return the names in a text that tells of things in their order."""
    return list(dict.fromkeys(_NAME.findall(text))) if SEQUENCE.search(text) else []


def _is_reversed(order: list[str], there: list[str]) -> bool:
    common = [one for one in order if one in there]
    return len(common) > 1 and common == sorted(common, key=there.index, reverse=True)


def _is_exchanged(one: Relation, other: Relation) -> bool:
    """Whether each side is mostly that of the other relation's other side, but for what both begin or end with."""
    first, second = one.first - other.first, one.second - other.second
    return _is_like(first, other.second - one.second) and _is_like(second, other.first - one.first)


def _is_like(side: frozenset[str], there: frozenset[str]) -> bool:
    return bool(side) and len(side & there) >= _LEAST_SIDE * len(side)


def _relations(text: str) -> Iterator[Relation]:
    bare = _MARKS.sub("", text)
    for kind, patterns in FIRST_AND_SECOND.items():
        for pattern in patterns:
            for match in pattern.finditer(bare):
                first, second = all_stems(match["first"]), all_stems(match["second"])
                if first - second and second - first:
                    yield Relation(kind, first - second, second - first)


# --- what something is restricted to ---
def find_other_restriction(text: str, sentences: Sequence[str]) -> str:
    """Return the sentence of the record that restricts the same thing to something else; "" if none does.

    "Only the German edition has it" against "only the English edition has it, the German one lacks it".
    """
    said = frozenset(_restricted_to(text))
    if not said:
        return ""
    about = stems(text) - {one.lower() for one in said}
    for sentence in sentences:
        there = frozenset(_restricted_to(sentence))
        if there and said.isdisjoint(there) and len(about & stems(sentence)) >= max(1, _LEAST_ABOUT * len(about)):
            return sentence
    return ""


def _restricted_to(text: str) -> Iterator[str]:
    for match in RESTRICTED.finditer(_MARKS.sub("", text)):
        yield next(filter(None, match.groups())).lower()
