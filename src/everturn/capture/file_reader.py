"""Reads the new bytes of one file in pieces, without writing anything.

A piece has at most a few megabytes, or one line if that is longer, so memory is bounded by the longest line. Hashes of the
first kilobyte of a file and of the last one before the cursor tell a grown file from a rewritten one. A file that has grown
is also compared with the stored bytes, because it may have been edited in place before: only its last megabytes if it is
large, so that the work stays bounded. In every doubtful case (another inode, same size, smaller) the whole file is compared.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from typing import BinaryIO

from msgspec import Raw, Struct

from everturn.model.archive import PackedChunk, SourceFile, Version
from everturn.model.conversation import ReadResult, SessionFacts
from everturn.model.vocabulary import ASKING, BACKUP
from everturn.sources.contract import (
    Source,
    SourceCandidate,
    SourceReader,
    no_candidates,
    no_folders,
    no_workspace,
)
from everturn.store.contract import Store

BATCH = 4 << 20
PROBE = 1024
#: Bytes before the cursor that are compared with the stored ones when a file has grown.
COMPARED = 16 << 20

#: `Version.parser` while its rows are derived from stored bytes.
UNFINISHED = -2

#: Redacts a line of JSON or lines of text, for mode `redacted`.
Redact = Callable[[bytes], bytes]


class PreparedPart(Struct, frozen=True):
    """A `SessionPart` whose rows are derived."""

    native_id: str
    facts: SessionFacts
    growth: Raw  # a `SessionGrowth`, decoded anew for every attempt to write it, because writing changes it


class PreparedPiece(Struct, frozen=True):
    """What another process made of a piece of a new file. The fields are those of `FilePiece` and `ReadResult`."""

    size: int
    chunks: list[PackedChunk]
    parts: list[PreparedPart]
    reading: ReadResult  # without its parts
    at: int
    offset: int
    changes: dict[str, int | bytes]
    last: bool
    failed: str


@dataclass
class FileCandidate:
    """A file on disk to take in, with its row if known, and its stat (None if that failed)."""

    source: Source
    found: SourceCandidate
    known: SourceFile | None
    version: Version | None
    stat: os.stat_result | None
    error: str = ""
    container: int = 0  # id of the source file that holds it
    columns: dict[str, int] = field(default_factory=dict)  # of `Version`, where the stat is not enough

    @property
    def path(self) -> str:
        """The absolute path, as stored."""
        return str(self.found.path)


@dataclass
class FilePiece:
    """New bytes of one file, read but not yet written."""

    start: ReaderStart
    stored: bytes  # to append to the raw layer
    at: int  # offset in the stored bytes
    reading: ReadResult
    offset: int  # cursor before
    changes: dict[str, int | bytes]  # new values of the version's columns
    last: bool
    failed: str = ""  # why the reader failed; only the bytes are stored then
    prepared: PreparedPiece | None = None  # bytes and rows, in place of `stored` and the parts of `reading`

    @property
    def size(self) -> int:
        """The number of bytes to store."""
        return self.prepared.size if self.prepared is not None else len(self.stored)


@dataclass
class ReaderStart:
    """Where and why the reading of one file starts. The writer fills in `version` once its row exists."""

    candidate: FileCandidate
    mode: str
    version: Version
    reason: str = ""  # for a new version; "" to continue the current one
    shared: int = 0  # bytes that the new version shares with the old one
    old_version: int = 0
    pieces_written: int = 0
    blanked: bool = False  # forgotten messages were blanked in it
    in_forgotten: bool = False  # the last piece ended inside a forgotten range


def start_reader(store: Store, candidate: FileCandidate, mode: str, file: BinaryIO) -> ReaderStart:
    """Decide whether the file continues at the cursor or starts a new version."""
    version, known = candidate.version, candidate.known
    if version is None or known is None or version.id == 0:
        return start_first(candidate, mode)
    if known.mode != mode:
        return ReaderStart(candidate, mode, _next_version(version.number), reason="mode", old_version=version.id)
    reason, common = _compare(store, version, mode, file)
    if not reason:
        return ReaderStart(candidate, mode, version)
    return ReaderStart(
        candidate, mode, _next_version(version.number), reason, common if mode == "full" else 0, version.id
    )


def start_first(candidate: FileCandidate, mode: str) -> ReaderStart:
    """Return the start of a file that has no version yet."""
    return ReaderStart(candidate, mode, _next_version(0), reason="first")


def names_itself(found: SourceCandidate, head: bytes) -> bool:
    """Whether the id of a file is more than its name: `full.jsonl` may be the name of another file too."""
    name = found.native_id
    return name != found.path.stem or name.encode("utf-8", "surrogateescape") in head


def is_own_question(candidate: FileCandidate, head: bytes) -> bool:
    """Whether a file is our own question, by its folder. A conversation that only mentions such a folder is not."""
    return ASKING in candidate.path or (ASKING.encode() in head and ASKING in candidate.source.workspace(head))


def read_pieces(
    store: Store | None, start: ReaderStart, file: BinaryIO, redact: Redact | None = None
) -> Iterator[FilePiece]:
    """Yield pieces up to the current size of the file. Write each one before requesting the next.

    A file that the archive does not know yet is read without a store.
    """
    info = os.fstat(file.fileno())
    version, source, whole = start.version, start.candidate.source, start.mode == "full"
    if start.shared:
        yield _shared_piece(start, file)
    reader = _start_reader(start)
    parsed, size, offset, last = version.parsed, version.size, version.offset, False
    unread = b""
    if store is not None and whole and version.id and reader is not None:
        unread = store.read_raw(version.id, parsed, size - parsed)
    batch, state = BATCH, version.state
    while not last:
        file.seek(offset)
        batch_bytes = _read_batch(file, info.st_size - offset, batch)
        last = offset + len(batch_bytes) >= info.st_size or not batch_bytes
        if not (whole or last):
            batch_bytes = batch_bytes[: batch_bytes.rfind(b"\n") + 1]
        batch_bytes = _without_open_key(batch_bytes, redact, last)
        stored = _redact_lines(batch_bytes, redact)
        data = unread + stored if unread else stored
        reading, failed = _feed_reader(reader, data, parsed, last)
        reader = None if failed else reader
        advance = len(batch_bytes)
        if not whole and reader is not None and reading.consumed < len(data):
            if not last:  # a record longer than a piece, in a mode without partial ones: read all the rest
                batch, reader = info.st_size, reader_for(source, start.candidate.found, state)
                continue
            # A partial line of a file that is being written: only mode `full` stores it.
            stored = data = data[: reading.consumed]
            advance = _source_length(batch_bytes, reading.consumed, redact)
        state = reader.state() if reader is not None else version.state
        before, offset = offset, offset + advance
        parsed, unread = parsed + reading.consumed, data[reading.consumed :] if reader is not None else b""
        at, size = size, size + len(stored)
        changes: dict[str, int | bytes] = {
            "offset": offset, "size": size, "parsed": parsed,
            "parser": -1 if failed else source.parser if reader is not None else version.parser, "state": state,
            **probes(file, offset), **((start.candidate.columns or stat_columns(info)) if last else {"mtime_ns": 0}),
        }  # fmt: skip
        yield FilePiece(start, stored, at, reading, before, changes, last, failed)


def _shared_piece(start: ReaderStart, file: BinaryIO) -> FilePiece:
    """Return the first piece of a version that begins like the one before: no bytes, and rows are derived later."""
    size = start.shared
    changes: dict[str, int | bytes] = {
        "offset": size, "size": size, "parsed": 0, "parser": UNFINISHED, "mtime_ns": 0, **probes(file, size),
    }  # fmt: skip
    return FilePiece(start, b"", 0, empty_result(), 0, changes, last=False)


def is_read(start: ReaderStart, file: BinaryIO) -> bool:
    version, source = start.version, start.candidate.source
    same = not start.reason and version.parser == source.parser
    return same and os.fstat(file.fileno()).st_size == version.offset


def probes(file: BinaryIO, offset: int) -> dict[str, bytes]:
    """Return hashes of the first and the last bytes before the cursor."""
    here = file.tell()
    file.seek(0)
    head = file.read(min(PROBE, offset))
    file.seek(max(offset - PROBE, 0))
    tail = file.read(min(PROBE, offset))
    file.seek(here)
    return {"head": _hash(head), "tail": _hash(tail)}


def common_bytes(store: Store, version: int, file: BinaryIO) -> int:
    """Return how many bytes, in whole chunks, the file shares with a stored version."""
    same = 0
    file.seek(0)
    for chunk in store.chunks(version):
        if sha256(file.read(chunk.size)).digest() != chunk.digest:
            break
        same += chunk.size
    return same


def reader_for(source: Source, found: SourceCandidate, state: bytes) -> SourceReader:
    """Return the reader of a file. A container has none: its members are read instead. A backup is only kept."""
    return OpaqueReader() if found.kind in ("container", BACKUP) else source.reader(found, state)


class OpaqueReader:
    """A reader that consumes bytes and returns nothing."""

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        return empty_result(len(data))

    def state(self) -> bytes:
        return b""


def opaque_source(name: str, title: str) -> Source:
    """Return a format of files that are kept and not read. It is not registered, so nothing finds them."""
    return Source(
        name=name, title=title, parser=0, roots=no_folders, find=no_candidates, sniff=lambda path, head: None,
        reader=lambda found, state: OpaqueReader(), view=lambda record: None, workspace=no_workspace,
    )  # fmt: skip


def empty_result(consumed: int = 0) -> ReadResult:
    return ReadResult(consumed, [], [], [])


def _next_version(number: int) -> Version:
    return Version(number=number + 1)


def _compare(store: Store, version: Version, mode: str, file: BinaryIO) -> tuple[str, int]:
    """Return ("", 0) if the file still begins with the stored bytes; otherwise the reason and the shared bytes."""
    info = os.fstat(file.fileno())
    columns = stat_columns(info)
    same_file = (columns["device"], columns["inode"]) == (version.device, version.inode)
    if info.st_size >= version.offset and probes(file, version.offset) == {"head": version.head, "tail": version.tail}:
        if mode != "full" or version.erased:
            return "", 0
        if same_file and info.st_size > version.offset and _keeps_last_bytes(store, version, file):
            return "", 0
        common = common_bytes(store, version.id, file)
        return ("", 0) if common == version.size else ("rewritten", common)
    reason = "truncated" if info.st_size < version.offset else "rewritten"
    return reason, common_bytes(store, version.id, file) if mode == "full" else 0


def _keeps_last_bytes(store: Store, version: Version, file: BinaryIO) -> bool:
    """Return whether the last megabytes before the cursor are still the stored ones."""
    for chunk in store.chunks(version.id):
        if chunk.start + chunk.size > version.size - COMPARED:
            file.seek(chunk.start)
            if sha256(file.read(chunk.size)).digest() != chunk.digest:
                return False
    return True


def _start_reader(start: ReaderStart) -> SourceReader | None:
    """Return the reader, or None if the existing rows are of another parser or missing: then all are derived again."""
    version, source = start.version, start.candidate.source
    if version.id and version.parser != source.parser and start.mode != "structure":
        return None
    return reader_for(source, start.candidate.found, version.state)


def _feed_reader(reader: SourceReader | None, data: bytes, base: int, last: bool) -> tuple[ReadResult, str]:
    if reader is None:
        return empty_result(), ""
    try:
        return reader.feed(data, base, last), ""
    except Exception as failure:  # our defect must not cost the user their bytes
        return empty_result(), f"the reader failed with {type(failure).__name__} after byte {base}"


def _read_batch(file: BinaryIO, limit: int, batch: int) -> bytes:
    """Read a batch, extended to the next line end."""
    data = file.read(min(batch, limit))
    if len(data) >= limit or b"\n" in data:
        return data
    parts = [data]
    left = limit - len(data)
    while left > 0:
        more = file.read(min(BATCH, left))
        parts.append(more)
        left -= len(more)
        if not more or b"\n" in more:
            break
    return b"".join(parts)


def _redact_lines(data: bytes, redact: Redact | None) -> bytes:
    if redact is None:
        return data
    from everturn.secrets.redaction import line_parts  # its rules take a while to compile

    return b"".join(map(redact, line_parts(data)))


def _without_open_key(data: bytes, redact: Redact | None, last: bool) -> bytes:
    """Return the data up to a private key that is not all there: it can only be masked as a whole, once it is."""
    if redact is None:
        return data
    from everturn.secrets.rules import open_key_start

    kept = data[: open_key_start(data)]
    return kept if kept or last else data  # a piece is longer than a key


def _source_length(data: bytes, consumed: int, redact: Redact | None) -> int:
    """Return how many bytes of the source the reader consumed if it stopped in the last line."""
    if redact is None:
        return consumed
    line = data.rfind(b"\n") + 1
    rest = consumed - len(_redact_lines(data[:line], redact))
    if rest <= 0:
        return line
    cut = data.find(b"}", line) + 1
    while cut:
        if len(redact(data[line:cut])) == rest:
            return cut
        cut = data.find(b"}", cut) + 1
    return len(data)


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def stat_columns(info: os.stat_result) -> dict[str, int]:
    """Return the columns of `Version` that a later scan compares."""
    return {
        "device": as_signed(info.st_dev),
        "inode": as_signed(info.st_ino),
        "file_size": info.st_size,
        "mtime_ns": info.st_mtime_ns,
    }


def as_signed(number: int) -> int:
    """Convert an unsigned 64-bit inode or device number to a signed one, as databases store it."""
    return number - (1 << 64) if number >= 1 << 63 else number
