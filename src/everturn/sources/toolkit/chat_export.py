"""Exports of chat services: one `conversations.json`, mostly inside a zip file.

`members` walks the export session by session, so memory follows the longest one, and writes each out as lines: first the
facts about the session, then the messages on the live path. What was written before an edit or a retry is a branch of its
own. Unreadable parts are kept as damage. `ExportReader` reads these lines: a format's `Dialect` converts a line to a message
and reads the facts of the first line; damage, links to the session a branch left, and counting are the same for all.

A zip file that expands out of proportion, or a conversation that is too large to be held in memory, is not unpacked any
further: that is an OSError with the reason. The bytes of the export are stored all the same.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message
from everturn.sources.contract import HEAD, Member, SourceCandidate
from everturn.sources.contract import read_beginning as first_bytes
from everturn.sources.toolkit.json_document import DocumentWalk, decode_item
from everturn.sources.toolkit.line_reader import Counted, LineReader, Rec, RecordPlace, SessionTally, add, mapping
from everturn.sources.toolkit.values import digest

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

K = TypeVar("K", bound=Hashable)

_PIECE = 4 << 20
#: A member may expand to this size, or to so many times its packed size. JSON of conversations shrinks to a tenth.
_EXPANDED = 64 << 20
_MOST_TIMES = 100
#: A conversation may have so many bytes; all conversations of a zip file so many members.
LARGEST_CONVERSATION = 32 << 20
_MOST_MEMBERS = 1000
_ZIP = b"PK\x03\x04"
_SPACE = b" \t\r\n"
_MARK = b"\xef\xbb\xbf"


def read_export_head(path: Path, head: bytes) -> bytes:
    """Return the first bytes of the conversations: of the file itself, or of the one inside a zip; else nothing."""
    if not head.startswith(_ZIP):
        return head if head.removeprefix(_MARK).lstrip(_SPACE)[:1] in (b"[", b"{") else b""
    return next((_read(file, len(head)) for file in _documents(path, is_whole=False)), b"")


def find_exports(sniff: Callable[[Path, bytes], SourceCandidate | None], root: Path) -> Iterator[SourceCandidate]:
    """Yield the exports below a folder that one format recognizes."""
    for pattern in ("*.zip", "conversations*.json"):
        for path in sorted(root.rglob(pattern)):
            is_plain = path.is_file() and not path.is_symlink()
            if is_plain and (found := sniff(path, first_bytes(path, HEAD))) is not None:
                yield found


def members(
    path: Path, inside: str, shape: type, split_conversation: Callable[[Rec], Iterator[Member]]
) -> Iterator[Member]:
    """Yield every session of an export once; its messages are under the key `inside`. Other values are kept as is."""
    damages = 0
    seen: set[str] = set()
    for value, broken in conversations(path):
        if not isinstance(mapping(value).get(inside), shape):
            damages += 1
            lines = [damage(broken) if value is None else line({"other": value})]
            yield Member(f"(unread-{damages})", iter(lines), native_id=f"unread-{digest(str(lines[0]))}")
            continue
        parts = split_conversation(value)
        first = next(parts)
        if first.name not in seen:  # an export in several parts may repeat a session
            seen.add(first.name)
            yield first
            yield from parts


def conversations(path: Path) -> Iterator[tuple[Any, bytes]]:
    """Yield every conversation of an export; for an unreadable one None and its bytes."""
    for file in _documents(path):
        yield from _elements(file)


def line(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value) + b"\n"
    except (OverflowError, UnicodeEncodeError, ValueError):  # numbers of any length
        return json.dumps(value).encode() + b"\n"
    except RecursionError:  # nested too deeply to be written; the container has its bytes
        return b'{"other":"nested too deeply to be shown"}\n'


def damage(raw: bytes) -> bytes:
    """Return the line that keeps unreadable bytes."""
    return line({"damaged": raw.decode("utf-8", "replace")})


def threads(parents: Mapping[K, K | None], leaf: K | None) -> tuple[list[K], list[list[K]]]:
    """Return the path from a root to the leaf, and the other branches, each in the order of its messages."""
    path: dict[K, None] = {}
    while leaf is not None and leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    branches: dict[K, list[K]] = {}
    start: dict[K, K] = {}
    for one in parents:
        if one not in path:
            branches.setdefault(_start(one, parents, path, start), []).append(one)
    return list(reversed(path)), list(branches.values())


def _start(one: K, parents: Mapping[K, K | None], path: Mapping[K, None], known: dict[K, K]) -> K:
    """Return the first message of the branch that a message is on."""
    passed: dict[K, None] = {}
    while one not in known:
        passed[one] = None
        if (above := parents[one]) is None or above in path or above not in parents or above in passed:
            known[one] = one
        else:
            one = above
    for step in passed:
        known[step] = known[one]
    return known[one]


def _documents(path: Path, is_whole: bool = True) -> Iterator[BinaryIO]:
    """Yield the files that hold conversations. If they are read as a whole, they must not expand out of proportion."""
    from zipfile import BadZipFile, ZipFile

    with path.open("rb") as file:
        if file.read(len(_ZIP)) != _ZIP:
            file.seek(0)
            yield file
            return
        try:
            with ZipFile(file) as archive:
                for member in _conversation_members(archive, path, is_whole):
                    with archive.open(member) as inside:
                        yield cast(BinaryIO, inside)
        except (BadZipFile, NotImplementedError, RuntimeError, ValueError, struct.error) as failure:
            raise OSError(None, "the zip file is damaged, or locked with a password", str(path)) from failure


def _conversation_members(archive: ZipFile, path: Path, is_whole: bool) -> list[ZipInfo]:
    """Return the members that hold conversations. Raises OSError if they would expand out of proportion."""
    members = [one for one in archive.infolist() if PurePosixPath(one.filename).match("conversations*.json")]
    if is_whole and len(members) > _MOST_MEMBERS:
        raise OSError(
            None, f"the zip file holds {len(members):,} files of conversations, too many to be an export", str(path)
        )
    for one in members if is_whole else ():
        if one.file_size > max(_EXPANDED, _MOST_TIMES * one.compress_size):
            size = f"{one.compress_size:,} bytes expand to {one.file_size:,}"
            raise OSError(None, f"the zip file is not unpacked: {size}", str(path))
    return sorted(members, key=lambda one: one.filename)


def _elements(file: BinaryIO) -> Iterator[tuple[Any, bytes]]:
    walk, unread, base, last = DocumentWalk("conversations"), b"", 0, False
    while not last:
        more = _read(file, _PIECE)
        last, data = not more, unread + more
        if not base and data.removeprefix(_MARK).lstrip(_SPACE)[:1] == b"{":
            data += _read(file, LARGEST_CONVERSATION)
            _check_size(data)
            yield from _read_single(data)
            return
        for item in walk.split(data, base, last):
            yield _decode_conversation(item.raw)
        unread, base = data[walk.consumed :], base + walk.consumed
        _check_size(unread)
        stretch = walk.broken or walk.tail
        if last and stretch is not None and data[-stretch[1] :].strip():
            yield None, data[-stretch[1] :]


def _check_size(data: bytes) -> None:
    if len(data) > LARGEST_CONVERSATION:
        raise OSError(
            None, f"a conversation in it is larger than {LARGEST_CONVERSATION >> 20} MB; it is not unpacked further"
        )


def _read(file: BinaryIO, size: int) -> bytes:
    from zipfile import BadZipFile
    from zlib import error

    try:
        return file.read(size)
    except (BadZipFile, error, EOFError) as failure:
        raise OSError(None, "the zip file is damaged") from failure


def _read_single(raw: bytes) -> Iterator[tuple[Any, bytes]]:
    """Yield the conversations of a file that is one conversation, or an object around several."""
    value, broken = _decode_conversation(raw)
    inside = value.get("conversations") if isinstance(value, dict) else None
    if isinstance(inside, list):
        yield from ((one, b"") for one in inside)
    else:
        yield value, broken


def _decode_conversation(raw: bytes) -> tuple[Any, bytes]:
    value, _ = decode_item(raw)
    return (None, raw) if value is None else (value, b"")


class ExportReaderState(Struct):
    """Everything a later reader needs."""

    note: str = ""  # the format's own memory from one message to the next
    linked: bool = False
    open_line: bool = False


class Dialect(NamedTuple):
    """The parts of an export reader that differ by format."""

    build: Callable[[Rec], Message | None]  # the message of a line
    counted: Callable[[Rec], str]  # its type, fit to be counted
    about: Callable[[Rec, SessionTally, ExportReaderState], None]  # reads the facts about the session
    placed: Callable[[Message, ExportReaderState], Message]  # the message with what earlier ones state


class ExportReader(LineReader[ExportReaderState]):
    kind = ExportReaderState

    def __init__(self, dialect: Dialect, found: SourceCandidate, state: bytes) -> None:
        super().__init__(found, state)
        self._dialect = dialect

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        if isinstance(record.get("damaged"), str):
            self._gathering.trouble("invalid_json", place.start, place.size, is_record=False)
            return "(damaged)", "problem", ""
        session = self._session()
        about = record.get("conversation")
        if isinstance(about, dict):
            self._dialect.about(about, session, self._state)
        message = self._dialect.build(record)
        counted = self._dialect.counted(record)
        if message is None or (isinstance(about, dict) and self._candidate.parent):
            return counted, "known", ""
        message = self._dialect.placed(message, self._state)
        add(self._gathering, session, replace(message, start=place.start, size=place.size))
        return counted, "unknown" if message.kind == "unknown" else "message", ""

    def _session(self) -> SessionTally:
        session, parent = self._open_session(), self._candidate.parent
        if parent and not self._state.linked:
            self._state.linked = True
            session.links.append(Link("forked_from", parent))
        return session
