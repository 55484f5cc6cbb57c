"""JSON documents read like lines: elements with their byte ranges, so that evidence and `view` work as for lines.

An agent that rewrites one JSON file may be caught in the middle of it: the part written so far is read, and reading goes on
there when the file has grown. So `DocumentWalk` walks a document like a stream. `DocumentWalk.split` promises:

- Every element of the array (the document itself, or the value of one of its keys) is yielded once with its byte range, and
  so is every other value of the outer object.
- Incomplete elements are left for later. Reading in pieces gives the same as reading at once.
- Where the structure is broken, the rest of the file is one range of damage; everything before it is yielded.
- Nothing raises on content.

Elements are found by their brackets and not decoded; `decode_item` decodes them as forgivingly as it can.

`elements` and `follow_keys` work on a document that is at hand as a whole, at any depth. They look at bytes only (the
structure of JSON is ASCII in any UTF-8 text) and not inside elements. Elements before damage are yielded; then `Damage` is
raised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Message, Problem, ReadResult, fingerprint
from everturn.sources.contract import SourceCandidate, read_beginning
from everturn.sources.toolkit.json_lines import FORGIVING, storable
from everturn.sources.toolkit.line_reader import ReadTally, SessionTally
from everturn.sources.toolkit.values import state_of

_TORN = "the document breaks off here (it may still be written)"

#: Matches strings and all else up to the next bracket; group 1 is empty at a string without an end.
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
    """One element of the array (key is "") or one value of the outer object, with its offset in the file."""

    key: str
    start: int
    raw: bytes


class _MoreNeeded(Exception):
    """More bytes are needed to decide."""


class _NotJson(Exception):
    """The bytes are not JSON."""


class DocumentWalk:
    """Walks one document. `stage` is all a later walk needs: the open brackets, `.` after the end, `!` when broken."""

    def __init__(self, key: str = "messages", stage: str = "") -> None:
        self.key = key  # of the array, where the document is an object
        self.stage = stage
        self.consumed = 0
        self.tail: tuple[int, int, str] | None = None  # start, size and trouble of the unread end of a file
        self.broken: tuple[int, int, str] | None = None  # the same for a range that can never be read

    def split(self, data: bytes, base: int, last: bool) -> Iterator[DocumentItem]:
        """Yield the items of a piece that starts at offset `base`; afterwards the attributes describe the result."""
        self.consumed, self.tail, self.broken = 0, None, None
        whole = _split_whole(data, self.key) if last and not self.stage else None
        if whole is not None:
            items, self.consumed = whole
            self.stage = "."
            yield from (item._replace(start=base + item.start) for item in items) if base else items
        try:
            while self.stage not in (".", "!"):
                if (item := self._next(data)) is not None:
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
        """Return the next element of the array; None at its end."""
        at = _skip(_SEPARATORS, data, self.consumed)
        if data[at : at + 1] == b"]":
            self.stage, self.consumed = self.stage[:-1] or ".", at + 1
            return None
        end = self.consumed = _end(data, at)
        return DocumentItem("", at, data[at:end])

    def _value(self, data: bytes) -> DocumentItem | None:
        """Return the next value of the outer object; None at its end, and where the walk enters the array."""
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
        """Return where the value starts whose key starts at `at`, and the key."""
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
        """Skip white space after the document; anything else is damage, reported once all of it is there."""
        if self.stage == ".":
            self.consumed = _skip(_SPACE, data, self.consumed)
        if last and self.consumed < len(data):
            self.broken = base + self.consumed, len(data) - self.consumed, "invalid_json"
            self.consumed, self.stage = len(data), "!"


#: Of a longer text the values are counted before it is decoded: a list of empty lists takes thirty times its size.
_LONG = 1 << 20
_MOST_VALUES = 2_000_000
_LARGEST_OBJECT = 4 << 20


def decode_item(raw: bytes) -> tuple[Any, str]:
    """Decode JSON as forgivingly as possible; return the value and the trouble, "" when there is none."""
    if len(raw) > _LONG and raw.count(b",") + raw.count(b"[") + raw.count(b"{") > _MOST_VALUES:
        return None, "too_many"
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
    """Decode an item as `decode_item` does. An element of the array must be an object."""
    value, trouble = decode_item(item.raw)
    if item.key or isinstance(value, dict) or (value is None and trouble):
        return value, trouble
    return None, "not_an_object"


def read_document(
    tally: ReadTally, walk: DocumentWalk, data: bytes, base: int, last: bool, take: Callable[[DocumentItem, Any], None]
) -> ReadResult:
    """Walk a piece; `take` gets each item that can be decoded, with its value."""
    for item in walk.split(data, base, last):
        value, trouble = value_of(item)
        if trouble:
            tally.trouble(trouble, item.start, len(item.raw), is_record=value is None)
        if not trouble or value is not None:
            take(item, value)
    settle(walk, tally)
    return tally.reading(walk.consumed)


def settle(walk: DocumentWalk, tally: ReadTally) -> None:
    """Add the problems of a walk to the tally once it has walked a piece."""
    if walk.broken is not None:
        tally.trouble(walk.broken[2], *walk.broken[:2])
    if walk.tail is not None:
        start, size, trouble = walk.tail
        tally.problems.append(Problem(trouble, _TORN, start, size, provisional=True))


class DocumentState(Struct, array_like=True):
    """The state of a `DocumentReader`. A format adds fields of its own."""

    stage: str = ""  # of the walk
    index: int = 0  # elements read, as the format counts them


class _HasStage(Protocol):
    stage: str


StateT = TypeVar("StateT", bound=_HasStage)


class DocumentReader(Generic[StateT]):
    """A reader of one document, whose elements are below one `key`, as one session. A format implements `_read_item`."""

    key: str
    kind: type[StateT]  # of its state

    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        self._candidate, self._state = candidate, state_of(state, self.kind)
        self._name = candidate.native_id or candidate.path.stem
        self._walk = DocumentWalk(self.key, self._state.stage)
        self._tally = ReadTally()

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `SourceReader`."""
        self._tally = ReadTally()
        return read_document(self._tally, self._walk, data, base, last, self._read_item)

    def state(self) -> bytes:
        """See `SourceReader`."""
        self._state.stage = self._walk.stage
        return msgspec.msgpack.encode(self._state)

    def _open_session(self) -> SessionTally:
        """Return the session of the file."""
        return self._tally.session(self._name, self._candidate.kind, self._candidate.parent)

    def _read_item(self, item: DocumentItem, value: Any) -> None:
        """Read an element, or another value of the document, which has a key."""
        raise NotImplementedError

    def _identify(self, message: Message, item: DocumentItem, name: str) -> Message:
        """Return a message with the byte range of its element, and a fingerprint of this name and these bytes."""
        mark = blake2b(item.raw, digest_size=8).hexdigest()
        identity = fingerprint(f"{self._name}/{name}", mark)
        return replace(message, start=item.start, size=len(item.raw), fingerprint=identity)


# --- a sound document, as nearly all are: its elements are found without looking at every bracket ---
def _split_whole(data: bytes, key: str) -> tuple[list[DocumentItem], int] | None:
    """Return the items of a document and its end; None when it has to be walked."""
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
            if (inner := _array_items(data, start, _array(value))) is None:
                return None
            items += inner[0]
            end = inner[1]
        elif data.startswith(value, start):
            items.append(DocumentItem(name, start, value))
            end = start + len(value)
        else:
            return None  # a duplicate key
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


# --- any document, bracket by bracket ---
def _skip(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    return found.end() if (found := pattern.match(data, at)) else at


def _end(data: bytes, at: int) -> int:
    """Return where the value ends that starts at `at`."""
    if at >= len(data):
        raise _MoreNeeded
    if data[at] in b"[{":
        return _find_close(data, at)
    found = (_STRING if data[at : at + 1] == b'"' else _SCALAR).match(data, at)
    if found is None:
        raise _MoreNeeded if data[at : at + 1] == b'"' else _NotJson
    if found.end() == len(data):
        raise _MoreNeeded  # a number may continue
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


# --- elements of a whole document ---
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{},:]', re.DOTALL)
_OPEN, _CLOSE = b"[{", b"]}"
_STOPS = b"[{]},:"


class Element(Struct, frozen=True):
    """One element of an array (key is "") or one value of an object."""

    key: str
    start: int
    size: int

    def cut(self, data: bytes) -> bytes:
        return data[self.start : self.start + self.size]


class Damage(Exception):
    """The document breaks off or is not JSON; `at` is the byte up to which it was read."""

    def __init__(self, at: int) -> None:
        super().__init__(f"the JSON is damaged at byte {at}")
        self.at = at


def document_start(data: bytes) -> int:
    """Return the offset of the document's first `[` or `{`. Raises Damage when it starts otherwise."""
    at = _skip(_SPACE, data, len(_MARK) if data.startswith(_MARK) else 0)
    if data[at : at + 1] not in (b"[", b"{"):
        raise Damage(at)
    return at


def elements(data: bytes, at: int) -> Iterator[Element]:
    """Yield the elements of the array or object that starts at `at`, in order."""
    depth, mark, key, done = 0, at, "", at
    for match in _TOKEN.finditer(data, at):
        token = match.group()
        if token == b'"':  # a string without an end
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


def first_object(data: bytes) -> dict[str, Any]:
    """Return the first object of a list or of lines, or the document itself; of one that breaks off, its complete members.

    The order of its members does not matter, so this recognises what another program has written again.
    """
    try:
        at = document_start(data)
    except Damage:
        return {}
    if data[at : at + 1] == b"[":
        at = _skip(_SPACE, data, at + 1)
        if data[at : at + 1] != b"{":
            return {}
    members: dict[str, Any] = {}
    try:
        for element in elements(data, at):
            members[element.key] = decode_item(element.cut(data))[0]
    except Damage:
        pass
    return members


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a small file of an agent; an empty one for a file without one."""
    value, _ = decode_item(read_beginning(path, _LARGEST_OBJECT))
    return value if isinstance(value, dict) else {}


def workspace(head: bytes) -> str:
    """Return the folder that the first line of an unpacked conversation names as its `workspace`."""
    value, _ = decode_item(head.partition(b"\n")[0])
    folder = value.get("workspace") if isinstance(value, dict) else ""
    return folder if isinstance(folder, str) else ""


def follow_keys(data: bytes, at: int, *keys: str) -> Element | None:
    """Return the value under a path of keys; None when there is none. Raises Damage like `elements`."""
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
    match = _SPACE.match(data, start, end)
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
