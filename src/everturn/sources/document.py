"""JSON documents as if they were lines: finds the elements of arrays and objects with their byte ranges.

Agents that rewrite one big JSON file have no lines to point at. `elements` gives every element of an array or object with
where it begins and how long it is, so that evidence and `view` work as they do for lines. It works on bytes without
decoding them (the structure of JSON is ASCII in any UTF-8 text) and does not look inside elements. What stands before a
damage is given; then `Damage` is raised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from msgspec import Struct

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{},:]', re.DOTALL)
_ELEMENT_SPACE = re.compile(rb"[ \t\r\n]*+")
_OPEN, _CLOSE = b"[{", b"]}"
_STOPS = b"[{]},:"


class Element(Struct, frozen=True):
    """One element of an array (key is "") or one value of an object."""

    key: str
    start: int
    size: int

    def cut(self, data: bytes) -> bytes:
        """Its bytes."""
        return data[self.start : self.start + self.size]


class Damage(Exception):
    """The document breaks off, or is not JSON; `at` is the byte up to which it was read."""

    def __init__(self, at: int) -> None:
        super().__init__(f"the JSON is damaged at byte {at}")
        self.at = at


def document_start(data: bytes) -> int:
    """Where the document begins: the offset of its first `[` or `{`. Raises Damage when it begins otherwise."""
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    match = _ELEMENT_SPACE.match(data, start)
    at = match.end() if match else start
    if data[at : at + 1] not in (b"[", b"{"):
        raise Damage(at)
    return at


def elements(data: bytes, at: int) -> Iterator[Element]:
    """The elements of the array or object that begins at `at`, in order."""
    depth, mark, key, done = 0, at, "", at
    for match in _TOKEN.finditer(data, at):
        token = match.group()
        if token == b'"':  # a string that never ends
            break
        depth += token in _OPEN
        if depth == 1 and token in _STOPS:
            if token == b":":
                key = _key(data[mark : match.start()])
            elif token not in _OPEN:
                element = _trim_element(data, key, mark, match.start())
                if element.size:
                    yield element
                key, done = "", match.end()
            mark = match.end()
        depth -= token in _CLOSE
        if depth == 0:
            return
    raise Damage(done)


def follow_keys(data: bytes, at: int, *keys: str) -> Element | None:
    """The value found by following keys into objects; None when it is not there. Raises Damage like `elements`."""
    found: Element | None = None
    for key in keys:
        if data[at : at + 1] != b"{":
            return None
        found = next((element for element in elements(data, at) if element.key == key), None)
        if found is None:
            return None
        at = found.start
    return found


def _trim_element(data: bytes, key: str, start: int, end: int) -> Element:
    match = _ELEMENT_SPACE.match(data, start, end)
    start = match.end() if match else start
    while end > start and data[end - 1] in b" \t\r\n":
        end -= 1
    return Element(key, start, end - start)


def _key(raw: bytes) -> str:
    try:
        key = json.loads(raw)
    except ValueError:
        return ""
    return key if isinstance(key, str) else ""
