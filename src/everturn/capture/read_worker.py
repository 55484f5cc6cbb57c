"""The program of a worker process: reads new files and prepares them for the one process that writes.

It does all that needs no archive: reads the file, derives its rows, folds the text for the index, cuts and packs the bytes.
Requests arrive on standard input, answers leave on standard output, both as frames of msgpack. The worker ends when its
input ends, so it does not outlive the process that started it, however that ends.

A file that it must not or cannot prepare is given back, and read by the other process as if there were no workers.
"""

from __future__ import annotations

import gc
import os
import signal
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import IO, BinaryIO, NamedTuple

import msgspec
from msgspec import Raw, Struct

from everturn.capture.file_reader import (
    BATCH,
    FileCandidate,
    FilePiece,
    PreparedPart,
    PreparedPiece,
    is_own_question,
    names_itself,
    read_pieces,
    start_first,
)
from everturn.capture.writer import grow_part
from everturn.model.archive import Call, JournalTail, MessageRow
from everturn.model.conversation import CallStart, SessionPart
from everturn.sources.contract import HEAD, Source, SourceCandidate, all_sources
from everturn.store.index import fold_row
from everturn.store.raw import ChunkPacker

#: A longer piece is a very long line, which is given back: two processes would hold it.
_LONGEST = 4 * BATCH
_HEADER = struct.Struct("<I?Q")  # number of the file, whether this is the last answer about it, length of the answer

_encode = msgspec.msgpack.Encoder().encode


class FileRequest(Struct, frozen=True):
    """A file to prepare. Its path is in bytes, because it need not be text."""

    number: int
    source: str
    path: bytes
    kind: str
    native_id: str
    parent: str
    columns: dict[str, int]


class Frame(NamedTuple):
    """A part of the conversation between the two processes."""

    number: int = 0  # of the file
    is_last: bool = False  # about this file
    data: bytes = b""


_REQUESTS = msgspec.msgpack.Decoder(list[FileRequest])


def serve_requests(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process decides when to end
    gc.set_threshold(100_000, 20, 20)  # as every command does (`cli.main`)
    waiting: SimpleQueue[Frame | None] = SimpleQueue()
    Thread(target=_receive_requests, args=(requests, waiting), daemon=True).start()
    try:
        while (request := waiting.get()) is not None:
            for file in _REQUESTS.decode(request.data):
                for frame in prepare_frames(file):
                    write_frame(answers, frame)
    except BrokenPipeError:
        os._exit(1)


def _receive_requests(requests: IO[bytes], waiting: SimpleQueue[Frame | None]) -> None:
    """Receive requests as they come, also while an answer waits to be read: a full pipe must not stop both sides."""
    while (request := read_frame(requests)) is not None:
        waiting.put(request)
    waiting.put(None)


def prepare_frames(request: FileRequest) -> Iterator[Frame]:
    """Yield the answers about a file, one for each piece."""
    try:
        for piece in prepare_file(request):
            yield Frame(request.number, piece is None or piece.last, _encode(piece))
    except (ValueError, OverflowError):  # text or a number that cannot be encoded
        yield Frame(request.number, True, _encode(None))


def write_frame(stream: IO[bytes], frame: Frame) -> None:
    """Write one frame. Raises OSError."""
    stream.write(_HEADER.pack(frame.number, frame.is_last, len(frame.data)))
    stream.write(frame.data)
    stream.flush()


def read_frame(stream: IO[bytes]) -> Frame | None:
    """Return the next frame; None at the end, even in the middle of one."""
    if len(header := stream.read(_HEADER.size)) < _HEADER.size:
        return None
    number, is_last, size = _HEADER.unpack(header)
    return Frame(number, is_last, data) if len(data := stream.read(size)) == size else None


def prepare_file(request: FileRequest) -> Iterator[PreparedPiece | None]:
    """Yield the pieces of a file; None, as the last one, gives it back."""
    path = Path(os.fsdecode(request.path))
    try:
        source = all_sources()[request.source]
        found = SourceCandidate(path, request.kind, request.native_id, request.parent)
        candidate = FileCandidate(source, found, None, None, None, columns=request.columns)
        with path.open("rb") as file:
            head = file.read(HEAD)
            if is_own_question(candidate, head) or not names_itself(found, head):
                yield None
                return
            preparation = _Preparation(source, file)
            for piece in read_pieces(None, start_first(candidate, "full"), file):
                if len(piece.stored) > _LONGEST:
                    yield None
                    return
                yield preparation.prepare(piece)
    except Exception:  # the other process finds it too, and reports it
        yield None


class _Preparation:
    """The preparation of one file, piece by piece."""

    def __init__(self, source: Source, file: BinaryIO) -> None:
        self._source, self._file = source, file
        self._packer = ChunkPacker()
        self._tails: dict[str, JournalTail] = {}
        self._records: dict[tuple[str, int], bytes] = {}  # of messages of earlier pieces with open calls

    def prepare(self, piece: FilePiece) -> PreparedPiece:
        parts = [self._prepare_part(part, piece.last) for part in piece.reading.parts]
        reading = msgspec.structs.replace(piece.reading, parts=[])
        chunks = self._packer.pack(piece.stored)
        return PreparedPiece(
            len(piece.stored), chunks, parts, reading, piece.at, piece.offset, piece.changes, piece.last, piece.failed
        )

    def _prepare_part(self, part: SessionPart, is_last: bool) -> PreparedPart:
        name = part.native_id
        tail = self._tails.get(name) or JournalTail()
        growth, tail = grow_part(self._source, part, tail, partial(self._call_start, name))
        if not is_last:
            self._tails[name] = tail
            self._keep_open_calls(name, tail, growth.messages)
        growth.index = [fold_row(row) for row in growth.index]
        return PreparedPart(name, part.facts, Raw(_encode(growth)))

    def _keep_open_calls(self, name: str, tail: JournalTail, messages: list[MessageRow]) -> None:
        """Keep the records that a result in a later piece will need."""
        wanted = {call.seq for calls in tail.open_calls.values() for call in calls if call.status == "open"}
        self._records = {key: data for key, data in self._records.items() if key[0] != name or key[1] in wanted}
        here = self._file.tell()
        for row in messages:
            if row.seq in wanted:
                self._file.seek(row.start)
                self._records[name, row.seq] = self._file.read(row.size)
        self._file.seek(here)

    def _call_start(self, name: str, call: Call) -> CallStart | None:
        """Read the start of a call of an earlier piece, as `capture.writer` reads it from the archive."""
        record = self._records.get((name, call.seq))
        message = self._source.view(record) if record is not None else None
        return message.blocks[call.idx].call if message is not None and call.idx < len(message.blocks) else None
