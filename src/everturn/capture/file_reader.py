"""Reads what is new in one file, piece by piece, and says what each piece means. Writes nothing.

A piece is at most a few megabytes, or one line if that is longer, so memory follows the longest line. Bytes before the
cursor are not read again when a file has only grown: a hash of its first and of its last kilobyte before the cursor tells
a grown file from a rewritten one. In every doubtful case (another inode, same size, smaller) the whole file is compared.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import BinaryIO

from everturn.capture.scan import FileCandidate, stat_columns
from everturn.model.archive import Version
from everturn.model.conversation import ReadResult
from everturn.sources.contract import Source, SourceCandidate, SourceReader
from everturn.store.contract import Store

BATCH = 4 << 20
PROBE = 1024

#: `Version.parser` while its rows are being made from stored bytes.
UNFINISHED = -2

#: Makes one line fit to be stored, for mode `redacted`.
Redact = Callable[[bytes], bytes]


@dataclass
class FilePiece:
    """Some new bytes of one file, read but not yet written."""

    intake: ReaderStart
    stored: bytes  # to be appended to the raw layer
    at: int  # where in the stored stream
    reading: ReadResult
    offset: int  # cursor before
    changes: dict[str, int | bytes]  # columns of the version afterwards
    last: bool
    failed: str = ""  # the reader broke on it: keep the bytes only


@dataclass
class ReaderStart:
    """The reading of one file. `version` is filled in by the writer once the row exists."""

    candidate: FileCandidate
    mode: str
    version: Version
    reason: str = ""  # why a new version starts; "" to go on with the one there is
    shared: int = 0  # bytes that the new version has in common with the old one
    old_version: int = 0
    pieces_written: int = 0
    blanked: bool = False  # forgotten messages were taken out of it
    in_forgotten: bool = False  # the last piece ended in a forgotten stretch


def start_reader(store: Store, candidate: FileCandidate, mode: str, file: BinaryIO) -> ReaderStart:
    """Decide whether the file goes on where the cursor is, or starts a new version."""
    version, known = candidate.version, candidate.known
    if version is None or known is None or version.id == 0:
        return ReaderStart(candidate, mode, _next_version(0), reason="first")
    if known.mode != mode:
        return ReaderStart(candidate, mode, _next_version(version.number), reason="mode", old_version=version.id)
    reason, common = _compare(store, version, mode, file)
    if not reason:
        return ReaderStart(candidate, mode, version)
    return ReaderStart(
        candidate, mode, _next_version(version.number), reason, common if mode == "full" else 0, version.id
    )


def read_pieces(store: Store, intake: ReaderStart, file: BinaryIO, redact: Redact | None = None) -> Iterator[FilePiece]:
    """Every piece up to the size the file has now. Each must be written before the next is asked for."""
    info = os.fstat(file.fileno())
    version, source, whole = intake.version, intake.candidate.source, intake.mode == "full"
    if intake.shared:
        yield _shared_piece(intake, file)
    reader = _start_reader(intake)
    parsed, size, offset, last = version.parsed, version.size, version.offset, False
    unread = store.read_raw(version.id, parsed, size - parsed) if whole and version.id and reader is not None else b""
    batch, state = BATCH, version.state
    while not last:
        file.seek(offset)
        taken = _read_batch(file, info.st_size - offset, batch)
        last = offset + len(taken) >= info.st_size or not taken
        if not (whole or last):
            taken = taken[: taken.rfind(b"\n") + 1]
        stored = _redact_lines(taken, redact)
        data = unread + stored if unread else stored
        reading, failed = _feed_reader(reader, data, parsed, last)
        reader = None if failed else reader
        advance = len(taken)
        if not whole and reader is not None and reading.consumed < len(data):
            if not last:  # a record longer than a piece, in a mode that keeps no half ones: all the rest at once
                batch, reader = info.st_size, reader_for(source, intake.candidate.found, state)
                continue
            # Half a line of a file that is being written: only mode `full` stores it before it is whole.
            stored = data = data[: reading.consumed]
            advance = _source_length(taken, reading.consumed, redact)
        state = reader.state() if reader is not None else version.state
        before, offset = offset, offset + advance
        parsed, unread = parsed + reading.consumed, data[reading.consumed :] if reader is not None else b""
        at, size = size, size + len(stored)
        changes: dict[str, int | bytes] = {
            "offset": offset,
            "size": size,
            "parsed": parsed,
            "parser": -1 if failed else source.parser if reader is not None else version.parser,
            "state": state,
            **probes(file, offset),
            **((intake.candidate.columns or stat_columns(info)) if last else {"mtime_ns": 0}),
        }
        yield FilePiece(intake, stored, at, reading, before, changes, last, failed)


def _shared_piece(intake: ReaderStart, file: BinaryIO) -> FilePiece:
    """The first piece of a version that begins like the one before: no bytes, and rows to be made once all are there."""
    size = intake.shared
    changes: dict[str, int | bytes] = {
        "offset": size, "size": size, "parsed": 0, "parser": UNFINISHED, "mtime_ns": 0, **probes(file, size),
    }  # fmt: skip
    return FilePiece(intake, b"", 0, empty_result(), 0, changes, last=False)


def is_read(intake: ReaderStart, file: BinaryIO) -> bool:
    """Is there nothing in the file that was not taken in before?"""
    version, source = intake.version, intake.candidate.source
    same = not intake.reason and version.parser == source.parser
    return same and os.fstat(file.fileno()).st_size == version.offset


def probes(file: BinaryIO, offset: int) -> dict[str, bytes]:
    """Hashes of the first and the last bytes before the cursor."""
    here = file.tell()
    file.seek(0)
    head = file.read(min(PROBE, offset))
    file.seek(max(offset - PROBE, 0))
    tail = file.read(min(PROBE, offset))
    file.seek(here)
    return {"head": _hash(head), "tail": _hash(tail)}


def common_bytes(store: Store, version: int, file: BinaryIO) -> int:
    """How many bytes, in whole chunks, the file has in common with what is stored."""
    same = 0
    file.seek(0)
    for chunk in store.chunks(version):
        if sha256(file.read(chunk.size)).digest() != chunk.digest:
            break
        same += chunk.size
    return same


def reader_for(source: Source, found: SourceCandidate, state: bytes) -> SourceReader:
    """The reader of a file. A container is only kept: what is in it is read from its members."""
    return OpaqueReader() if found.kind == "container" else source.reader(found, state)


class OpaqueReader:
    """Reads nothing."""

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        return empty_result(len(data))

    def state(self) -> bytes:
        """See `sources.Reader`."""
        return b""


def empty_result(consumed: int = 0) -> ReadResult:
    """A reading that found nothing."""
    return ReadResult(consumed, [], [], [])


def _next_version(number: int) -> Version:
    return Version(number=number + 1)


def _compare(store: Store, version: Version, mode: str, file: BinaryIO) -> tuple[str, int]:
    """("", …) when the file still begins with what was taken in; else the reason and the bytes in common."""
    info = os.fstat(file.fileno())
    columns = stat_columns(info)
    same_file = (columns["device"], columns["inode"]) == (version.device, version.inode)
    if info.st_size >= version.offset and _probes_fit(version, file):
        if (same_file and info.st_size > version.offset) or mode != "full" or version.erased:
            return "", 0
        common = common_bytes(store, version.id, file)
        return ("", 0) if common == version.size else ("rewritten", common)
    reason = "truncated" if info.st_size < version.offset else "rewritten"
    return reason, common_bytes(store, version.id, file) if mode == "full" else 0


def _probes_fit(version: Version, file: BinaryIO) -> bool:
    return probes(file, version.offset) == {"head": version.head, "tail": version.tail}


def _start_reader(intake: ReaderStart) -> SourceReader | None:
    """None when the rows there are come from another parser, or none could be made: `deriving` makes them all again."""
    version, source = intake.version, intake.candidate.source
    if version.id and version.parser != source.parser and intake.mode != "structure":
        return None
    return reader_for(source, intake.candidate.found, version.state)


def _feed_reader(reader: SourceReader | None, data: bytes, base: int, last: bool) -> tuple[ReadResult, str]:
    if reader is None:
        return empty_result(), ""
    try:
        return reader.feed(data, base, last), ""
    except Exception as failure:  # a defect of ours must not cost the user their bytes
        return empty_result(), f"the reader failed with {type(failure).__name__} after byte {base}"


def _read_batch(file: BinaryIO, limit: int, batch: int) -> bytes:
    """A batch, lengthened to the next line end."""
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
    return b"".join(redact(line) for line in data.splitlines(keepends=True))


def _source_length(taken: bytes, consumed: int, redact: Redact | None) -> int:
    """How many bytes of the source the reader has dealt with, when it stopped in the last line."""
    if redact is None:
        return consumed
    line = taken.rfind(b"\n") + 1
    rest = consumed - len(_redact_lines(taken[:line], redact))
    if rest <= 0:
        return line
    cut = taken.find(b"}", line) + 1
    while cut:
        if len(redact(taken[line:cut])) == rest:
            return cut
        cut = taken.find(b"}", cut) + 1
    return len(taken)


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
