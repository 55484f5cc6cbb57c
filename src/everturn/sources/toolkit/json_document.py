"""JSON documents read like lines: element by element, in any pieces, whatever happened to the file.

An agent that rewrites one JSON file may be caught in the middle of it: what was written so far is read, and when the file
turns out to be longer the reading goes on there. So a document is walked like a stream. `Walk.split` promises:

- Every element of the array (the document itself, or the value of one key of it) is given once with its byte range, and so
  is every other value of the outer object.
- What is not complete yet is left for later. Reading in pieces gives the same as reading at once.
- Where the structure is broken the rest of the file is one stretch of damage; what stands before it was given.
- Nothing here raises on content.

Elements are found by their brackets and not decoded. `decode_item` does that, as forgivingly as it can.

JSON documents as if they were lines: finds the elements of arrays and objects with their byte ranges.

Agents that rewrite one big JSON file have no lines to point at. `elements` gives every element of an array or object with
where it begins and how long it is, so that evidence and `view` work as they do for lines. It works on bytes without
decoding them (the structure of JSON is ASCII in any UTF-8 text) and does not look inside elements. What stands before a
damage is given; then `Damage` is raised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from everturn.model.conversation import Problem
from everturn.sources.toolkit.json_lines import FORGIVING, storable
from everturn.sources.toolkit.line_reader import ReadTally

_TORN = "the document breaks off here (it may still be written)"

#: Over strings and everything else that is no bracket, to the next bracket (or to nothing: a string without an end).
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}]?)', re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\[\]{}\":]++")
_SPACE = re.compile(rb"[ \t\r\n]*+")
_SEPARATORS = re.compile(rb"[ \t\r\n,]*+")
_COLON = re.compile(rb"[ \t\r\n]*+(:?)[ \t\r\n]*+")
_MARK = b"\xef\xbb\xbf"
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class DocumentItem(NamedTuple):
    """One element of the array (key is "") or one value of the outer object, with where it begins in the file."""

    key: str
    start: int
    raw: bytes


class _MoreNeeded(Exception):
    """More bytes are needed to tell."""


class _NotJson(Exception):
    """This is not JSON."""


class DocumentWalk:
    """Walks one document. `stage` is all that a later one needs: the brackets that are open, `.` after the end, `!` broken."""

    def __init__(self, key: str = "messages", stage: str = "") -> None:
        self.key = key  # of the array, where the document is an object
        self.stage = stage
        self.consumed = 0
        self.tail: tuple[int, int, str] | None = None  # start, size and trouble of what was left at the end of a file
        self.broken: tuple[int, int, str] | None = None  # the same of what can never be read

    def split(self, data: bytes, base: int, last: bool) -> Iterator[DocumentItem]:
        """The items of a piece that starts at offset `base`; when done, the attributes say what became of it."""
        self.consumed, self.tail, self.broken = 0, None, None
        whole = _split_whole(data, self.key) if last and not self.stage else None
        if whole is not None:
            items, self.consumed = whole
            self.stage = "."
            yield from (item._replace(start=base + item.start) for item in items) if base else items
        try:
            while self.stage not in (".", "!"):
                item = self._next(data)
                if item is not None:
                    yield item._replace(start=base + item.start)
        except _MoreNeeded:
            if last and (self.stage or data.strip()):
                self.tail = base + self.consumed, len(data) - self.consumed, "torn_tail"
        except _NotJson:
            self.stage = "!"
        if self.stage in (".", "!"):
            self._after(data, base, last)

    def _next(self, data: bytes) -> DocumentItem | None:
        if not self.stage:
            self._open(data)
            return None
        return self._element(data) if self.stage.endswith("[") else self._value(data)

    def _open(self, data: bytes) -> None:
        if len(data) < len(_MARK) and _MARK.startswith(data):
            raise _MoreNeeded
        at = _skip(_SPACE, data, len(_MARK) if data.startswith(_MARK) else 0)
        if at == len(data):
            raise _MoreNeeded
        if data[at] not in b"[{":
            raise _NotJson
        self.stage, self.consumed = chr(data[at]), at + 1

    def _element(self, data: bytes) -> DocumentItem | None:
        """The next element of the array, or its end."""
        at = _skip(_SEPARATORS, data, self.consumed)
        if data[at : at + 1] == b"]":
            self.stage, self.consumed = self.stage[:-1] or ".", at + 1
            return None
        end = self.consumed = _end(data, at)
        return DocumentItem("", at, data[at:end])

    def _value(self, data: bytes) -> DocumentItem | None:
        """The next value of the outer object, or its end. The array itself is entered."""
        at = _skip(_SEPARATORS, data, self.consumed)
        if data[at : at + 1] == b"}":
            self.stage, self.consumed = ".", at + 1
            return None
        start, key = self._key(data, at)
        if key == self.key and data[start : start + 1] == b"[":
            self.stage, self.consumed = "{[", start + 1
            return None
        end = self.consumed = _end(data, start)
        return DocumentItem(key, start, data[start:end])

    def _key(self, data: bytes, at: int) -> tuple[int, str]:
        """Where the value begins whose key begins at `at`, and that key."""
        if at == len(data):
            raise _MoreNeeded
        if data[at : at + 1] != b'"':
            raise _NotJson
        found = _STRING.match(data, at)
        colon = _COLON.match(data, found.end()) if found else None
        if found is None or colon is None or colon.end() == len(data):
            raise _MoreNeeded
        if not colon[1]:
            raise _NotJson
        key, _ = decode_item(found[0])
        return colon.end(), key if isinstance(key, str) else ""

    def _after(self, data: bytes, base: int, last: bool) -> None:
        """White space may follow a document; anything else is damage, told once all of it is there."""
        if self.stage == ".":
            self.consumed = _skip(_SPACE, data, self.consumed)
        if last and self.consumed < len(data):
            self.broken = base + self.consumed, len(data) - self.consumed, "invalid_json"
            self.consumed, self.stage = len(data), "!"


def decode_item(raw: bytes) -> tuple[Any, str]:
    """The value of some JSON and what was wrong with it ("" when nothing): None with a trouble when it cannot be had."""
    try:
        return msgspec.json.decode(raw), ""
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    except RecursionError:
        return None, "too_deep"
    text = raw.decode("utf-8", "surrogateescape")
    try:
        value = storable(FORGIVING.decode(text))
    except RecursionError:
        return None, "too_deep"
    except ValueError:
        return None, "invalid_json"
    return value, "" if text.isascii() or not any("\udc80" <= char <= "\udcff" for char in text) else "invalid_utf8"


def value_of(item: DocumentItem) -> tuple[Any, str]:
    """The value of an item and what is wrong with it, as `decode_item` has it. An element of the array must be an object."""
    value, trouble = decode_item(item.raw)
    if item.key or isinstance(value, dict) or (value is None and trouble):
        return value, trouble
    return None, "not_an_object"


def settle(walk: DocumentWalk, gathering: ReadTally) -> None:
    """Note what a walk could not read, once it is done with a piece."""
    if walk.broken is not None:
        gathering.trouble(walk.broken[2], *walk.broken[:2])
    if walk.tail is not None:
        start, size, trouble = walk.tail
        gathering.problems.append(Problem(trouble, _TORN, start, size, provisional=True))


def record(value: Any) -> dict[str, Any]:
    """A JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def entries(value: Any) -> list[Any]:
    """A JSON array; an empty one for anything else."""
    return value if isinstance(value, list) else []


# a document that is whole and sound, as nearly all are: its elements are found without looking at every bracket -----------
def _split_whole(data: bytes, key: str) -> tuple[list[DocumentItem], int] | None:
    """The items of a document and where it ends; None when it has to be walked."""
    at = _skip(_SPACE, data, len(_MARK) if data.startswith(_MARK) else 0)
    try:
        if data[at : at + 1] == b"[":
            return _array_items(data, at, _array(data[at:] if at else data))
        return _object_items(data, at, key) if data[at : at + 1] == b"{" else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _object_items(data: bytes, at: int, key: str) -> tuple[list[DocumentItem], int] | None:
    items: list[DocumentItem] = []
    end = at + 1
    for name, raw in _object(data[at:] if at else data).items():
        quoted = _STRING.match(data, _skip(_SEPARATORS, data, end))
        colon = _COLON.match(data, quoted.end()) if quoted else None
        if colon is None:
            return None
        start, value = colon.end(), bytes(raw)
        if name == key and value.startswith(b"["):
            inner = _array_items(data, start, _array(value))
            if inner is None:
                return None
            items += inner[0]
            end = inner[1]
        elif data.startswith(value, start):
            items.append(DocumentItem(name, start, value))
            end = start + len(value)
        else:
            return None  # a key that is there twice
    end = _skip(_SEPARATORS, data, end)
    return (items, end + 1) if data[end : end + 1] == b"}" else None


def _array_items(data: bytes, at: int, values: list[msgspec.Raw]) -> tuple[list[DocumentItem], int] | None:
    items: list[DocumentItem] = []
    end = at + 1
    for raw in values:
        start, value = _skip(_SEPARATORS, data, end), bytes(raw)
        if not data.startswith(value, start):
            return None
        items.append(DocumentItem("", start, value))
        end = start + len(value)
    end = _skip(_SEPARATORS, data, end)
    return (items, end + 1) if data[end : end + 1] == b"]" else None


# any document, bracket by bracket ------------------------------------------------------------------------------------------
def _skip(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    return found.end() if found else at


def _end(data: bytes, at: int) -> int:
    """Where the value ends that begins at `at`."""
    if at >= len(data):
        raise _MoreNeeded
    if data[at] in b"[{":
        return _find_close(data, at)
    found = (_STRING if data[at : at + 1] == b'"' else _SCALAR).match(data, at)
    if found is None:
        raise _MoreNeeded if data[at : at + 1] == b'"' else _NotJson
    if found.end() == len(data):
        raise _MoreNeeded  # a number may go on
    return found.end()


def _find_close(data: bytes, at: int) -> int:
    depth = 0
    for found in _TO_BRACKET.finditer(data, at):
        bracket = found[1]
        if bracket == b"{" or bracket == b"[":
            depth += 1
        elif not bracket:
            break
        else:
            depth -= 1
            if not depth:
                return found.end()
    raise _MoreNeeded


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
