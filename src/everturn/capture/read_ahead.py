"""Worker processes that read new files ahead, while this process writes them in order.

The archive has one writer, and reading takes most of the time of a first sync. So worker processes (`capture.read_worker`)
read and prepare the next files, and the writer takes what they made in the order of the files. While the next one is not
ready, the writer prepares a file itself, so that no core waits for another. The archive is the same,
byte for byte, as one that a single process made. Only new files in mode `full` are read ahead. A file that a worker gives
back, or had when it was lost, is read here.

A few megabytes per process wait at most: a worker that is further ahead has to wait. Workers are plain programs with pipes,
which works the same on every system and whatever program imports everturn.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from types import TracebackType
from typing import Self

import msgspec

import everturn
from everturn.capture.file_reader import FileCandidate, FilePiece, PreparedPiece, start_first
from everturn.capture.intake import SyncJob, is_container
from everturn.capture.read_worker import FileRequest, Frame, prepare_frames, read_frame, write_frame
from everturn.capture.writer import ArchiveWriter
from everturn.sources.contract import all_sources

#: Fewer new bytes are read by this process alone: workers take a tenth of a second to start.
LEAST = 24 << 20
#: A further worker needs so many more.
LEAST_EACH = 24 << 20
MOST_WORKERS = 3  # more would wait for the writer
#: Answers of a process that may wait.
_WAITING = 16 << 20
#: Files that a worker gets at once.
_BATCH_BYTES = 1 << 20
_BATCH_FILES = 64
#: The writer prepares no longer file: its answers would wait too long for it.
_SPARE_BYTES = 4 << 20
_PIPE = 1 << 20

#: Nothing else may write among the answers, so standard output leads elsewhere.
_PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from everturn.capture import read_worker
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
read_worker.serve_requests(sys.stdin.buffer, answers)
"""
_PIECE: msgspec.msgpack.Decoder[PreparedPiece | None] = msgspec.msgpack.Decoder(PreparedPiece | None)


class ReadAhead:
    """The workers of one sync. A context: leaving it ends them."""

    def __init__(self, job: SyncJob, writer: ArchiveWriter, candidates: Sequence[FileCandidate]) -> None:
        self._candidates = candidates
        self._waiting = deque(number for number, one in enumerate(candidates) if _may_prepare(job, writer, one))
        size = sum(_size(candidates[number]) for number in self._waiting)
        many = min(job.processes - 1, MOST_WORKERS, 1 + max(0, size - LEAST) // LEAST_EACH) if size >= LEAST else 0
        has_python = sys.executable and not getattr(sys, "frozen", False)  # a packed program runs no scripts
        self._many = many if len(self._waiting) > 1 and has_python else 0
        self._ahead: frozenset[int] = frozenset()  # files that are read ahead
        self._changed = Condition()
        self._owners: dict[int, _Answers] = {}
        self._workers: list[_Worker] = []
        self._here = _Answers()  # of this process
        self._here.is_done = True  # what it has is all there is
        self._is_closed = False

    def __enter__(self) -> Self:
        for _ in range(self._many):
            with suppress(OSError):
                self._workers.append(_Worker())
        if self._workers:
            self._ahead = frozenset(self._waiting)
        for worker in self._workers:
            worker.thread = Thread(target=self._serve, args=(worker,), daemon=True)
            worker.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, at: TracebackType | None
    ) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.end()

    def pieces(self, number: int) -> Iterator[FilePiece | None] | None:
        """Return the pieces of a candidate as they arrive, where None says to go on alone; None if no worker reads it."""
        if number not in self._ahead or (first := self._next_piece(number)) is None:
            return None
        return self._follow(number, first)

    def _follow(self, number: int, piece: PreparedPiece | None) -> Iterator[FilePiece | None]:
        start = start_first(self._candidates[number], "full")
        while piece is not None:
            yield FilePiece(
                start, b"", piece.at, piece.reading, piece.offset, piece.changes, piece.last, piece.failed, piece
            )
            if piece.last:
                return
            piece = self._next_piece(number)
        yield None

    def _next_piece(self, number: int) -> PreparedPiece | None:
        """Return the next piece of a file, as soon as it is there; None if its worker gave it back or is lost."""
        while True:
            with self._changed:
                while (frame := self._next_frame(number)) is None and (spare := self._spare_file()) is None:
                    owner = self._owners.get(number)
                    if owner.is_done if owner is not None else all(worker.is_done for worker in self._workers):
                        return None
                    self._changed.wait()
            if frame is not None:
                return _PIECE.decode(frame.data)
            assert spare is not None
            self._here.keep(*prepare_frames(_request(spare, self._candidates[spare])))

    def _spare_file(self) -> int | None:
        """Take a file for this process to prepare while it has nothing to write; None if there is none."""
        has_room = self._here.size <= _WAITING and not all(worker.is_done for worker in self._workers)
        if not (self._waiting and has_room and _size(self._candidates[self._waiting[0]]) <= _SPARE_BYTES):
            return None
        number = self._waiting.popleft()
        self._owners[number] = self._here
        return number

    def _next_frame(self, number: int) -> Frame | None:
        """Return the next answer about a file if there is one, and drop the rest of files that were started again."""
        owner = self._owners.get(number)
        while owner is not None and (frame := owner.next()) is not None:
            self._changed.notify_all()
            if frame.number == number:
                return frame
        return None

    # --- the threads that talk to the workers ---
    def _serve(self, worker: _Worker) -> None:
        """Give files to a worker and keep its answers, until there are no more files or the worker is lost."""
        with suppress(OSError, ValueError):
            asked = self._ask(worker)
            while asked:
                following = self._ask(worker)  # before the answers, so that the worker never waits for a request
                if not self._keep_answers(worker, asked):
                    break
                asked = following
        with self._changed:
            worker.is_done = True
            self._changed.notify_all()

    def _ask(self, worker: _Worker) -> int:
        """Give the next files to a worker; return how many."""
        if batch := self._next_batch(worker):
            worker.ask([_request(number, self._candidates[number]) for number in batch])
        return len(batch)

    def _next_batch(self, worker: _Worker) -> list[int]:
        with self._changed:
            batch: list[int] = []
            size = 0
            while self._waiting and len(batch) < _BATCH_FILES and size < _BATCH_BYTES:
                batch.append(self._waiting.popleft())
                size += _size(self._candidates[batch[-1]])
            self._owners.update(dict.fromkeys(batch, worker))
            self._changed.notify_all()
            return batch

    def _keep_answers(self, worker: _Worker, files: int) -> bool:
        """Keep the answers about so many files as there is room for them; return False if they are no longer wanted."""
        while files:
            if (frame := worker.receive()) is None:
                return False
            files -= frame.is_last
            with self._changed:
                while worker.size > _WAITING and not self._is_closed:
                    self._changed.wait()
                if self._is_closed:
                    return False
                worker.keep(frame)
                self._changed.notify_all()
        return True


class _Answers:
    """The answers of one process that wait to be written, in the order of its files."""

    def __init__(self) -> None:
        self.size = 0
        self.is_done = False  # no more answers will come
        self._frames: deque[Frame] = deque()

    def keep(self, *frames: Frame) -> None:
        """Add answers."""
        self._frames += frames
        self.size += sum(len(frame.data) for frame in frames)

    def next(self) -> Frame | None:
        """Remove the next answer and return it, if there is one."""
        if not self._frames:
            return None
        self.size -= len(self._frames[0].data)
        return self._frames.popleft()


class _Worker(_Answers):
    """A worker process."""

    def __init__(self) -> None:
        super().__init__()
        folder = Path(everturn.__file__).parent.parent
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._results = self._process.stdin, self._process.stdout
        _widen_pipe(self._results.fileno())
        self.thread: Thread | None = None

    def ask(self, files: list[FileRequest]) -> None:
        """Give it files to prepare. Raises OSError."""
        write_frame(self._requests, Frame(data=msgspec.msgpack.encode(files)))

    def receive(self) -> Frame | None:
        """Wait for its next answer; None if it is lost."""
        return read_frame(self._results)

    def end(self) -> None:
        """End the process, whatever it is doing: nothing of its work is needed any more."""
        self._process.kill()
        self._process.wait()
        if self.thread is not None:
            self.thread.join()
        with suppress(OSError):
            self._requests.close()
        self._results.close()


def _may_prepare(job: SyncJob, writer: ArchiveWriter, candidate: FileCandidate) -> bool:
    """Whether a file is read the same without the archive: a new one, kept as it is."""
    is_plain = job.policy.is_simple and job.policy.mode == "full"
    is_new = candidate.known is None and candidate.stat is not None and not is_container(candidate)
    is_new = is_new and not (candidate.found.kind == "meta" and candidate.source.owner_of is not None)
    is_known_format = all_sources().get(candidate.source.name) is candidate.source
    return is_plain and is_new and is_known_format and not (writer.buried_sessions or writer.buried_messages)


def _request(number: int, candidate: FileCandidate) -> FileRequest:
    found = candidate.found
    return FileRequest(
        number, candidate.source.name, os.fsencode(found.path), found.kind, found.native_id, found.parent,
        candidate.columns,
    )  # fmt: skip


def _size(candidate: FileCandidate) -> int:
    return candidate.stat.st_size if candidate.stat is not None else 0


def _widen_pipe(handle: int) -> None:
    """Let a pipe hold more, where that is possible, so that both sides wait less often."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):
            fcntl.fcntl(handle, fcntl.F_SETPIPE_SZ, _PIPE)
