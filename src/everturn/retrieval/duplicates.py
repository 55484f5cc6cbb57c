"""Collapse hits with the same text on a page: the best of them is shown, the others are counted under it.

Two texts are the same if they differ in white space only; tool input and tool output also in numbers, since a command that
ran again differs in times and counts. What people and models wrote keeps its numbers: they may be the answer.

A page takes hits until it shows `limit` different ones. Every hit it takes is shown or counted under a shown one, and the next
page continues after the last one taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

_SPACE = re.compile(r"\s+")
_NUMBER = re.compile(r"[0-9]+")
_COUNTED = ("tool_input", "tool_output", "meta")  # fields in which numbers do not count
_TAKEN = 10  # times the limit: most hits a page takes


class HitGroups(NamedTuple, Generic[T]):
    """The hits of a page: groups of hits with the same text, each with its best first."""

    groups: list[list[T]]
    last: T | None  # the last hit taken
    has_more: bool


def collect_groups(hits: Iterator[T], limit: int, key: Callable[[T], object] | None) -> HitGroups[T]:
    """Take hits for a page of `limit` groups; without a `key` every hit is a group."""
    groups: dict[object, list[T]] = {}
    last: T | None = None
    for number, hit in enumerate(hits):
        same = key(hit) if key else number
        if (same not in groups and len(groups) == limit) or number >= _TAKEN * limit:
            return HitGroups(list(groups.values()), last, has_more=True)
        groups.setdefault(same, []).append(hit)
        last = hit
    return HitGroups(list(groups.values()), last, has_more=False)


def text_key(texts: Iterable[tuple[str, str]]) -> bytes:
    """Return a digest that is equal for texts that count as the same. `texts` are fields and their texts."""
    digest = blake2b(digest_size=16)
    for field, text in texts:
        plain = _SPACE.sub(" ", text).strip()
        plain = _NUMBER.sub("0", plain) if field in _COUNTED else plain
        digest.update(f"{field}\0{plain}\0".encode("utf-8", "surrogatepass"))
    return digest.digest()
