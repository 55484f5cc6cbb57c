"""The end of a journal in the archive: where it is, its lines, and how lines are added to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from everturn.capture.file_reader import FilePiece, ReaderStart, empty_result
from everturn.capture.scan import FileCandidate
from everturn.capture.writer import ArchiveWriter, derive_pending, write_piece
from everturn.clock import Clock
from everturn.errors import Conflict, EverturnError, NothingFound
from everturn.model.archive import SourceFile, Version
from everturn.sources.contract import SourceCandidate, all_sources
from everturn.store.contract import Store

AGENT = "journal"

#: Masks the secrets of one line.
Mask = Callable[[bytes], bytes]

_PIECE = 1 << 20  # bytes read at a time


@dataclass
class JournalPlace:
    """The location of a journal in the archive; without a file it does not exist yet."""

    file: SourceFile | None = None
    version: Version = field(default_factory=Version)


def journal_path(session: str) -> str:
    """Return the name of a journal among the files of the archive. No file on disk has such a name."""
    return f"{AGENT}:{session}"


def find_journal(store: Store, session: str, machine: str) -> JournalPlace:
    """Find the journal, on whichever machine it was begun."""
    for row in store.sessions_of(AGENT, session):
        file, version = store.file_by_id(store.version(row.version).source)
        if file.path == journal_path(session):
            return JournalPlace(file, version)
    found = store.file(machine, journal_path(session))
    return JournalPlace(*found) if found is not None else JournalPlace()


def journal_lines(store: Store, version: Version) -> Iterator[bytes]:
    """Yield the lines of a journal from the beginning, without their line ends. Memory holds one piece of it."""
    rest, start = b"", 0
    while start < version.size:
        piece = store.read_raw(version.id, start, min(_PIECE, version.size - start))
        if not piece:
            break
        start += len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    if rest:
        yield rest


class JournalEnd:
    """The end of one journal, as one process knows it. Rows of an older parser are made anew when it is opened."""

    def __init__(
        self,
        store: Store,
        session: str,
        place: JournalPlace,
        origin: tuple[str, str],
        clock: Clock,
        mask: Mask | None = None,
    ) -> None:
        self._store, self._session, self._clock, self._source = store, session, clock, all_sources()[AGENT]
        self._mask = mask
        self._candidate = SourceCandidate(Path(journal_path(session)), "main", session)
        file, version = place.file, place.version
        self._writer = ArchiveWriter(store, *((file.machine, file.owner) if file else origin), clock())
        if file is not None:
            derive_pending(self._writer, self._source, file, version)
        candidate = FileCandidate(self._source, self._candidate, file, version if file else None, None)
        self._intake = ReaderStart(candidate, "full", version, reason="" if file else "first")
        in_step = file is None or version.parser == self._source.parser
        self._reader = self._source.reader(self._candidate, version.state) if in_step else None
        self.commits = 0

    @property
    def is_masked(self) -> bool:
        return self._mask is not None

    @property
    def is_new(self) -> bool:
        return bool(self._intake.reason)

    @property
    def has_unread(self) -> bool:
        """Whether there are bytes without rows."""
        return self._intake.version.parsed < self._intake.version.size

    def lines(self) -> Iterator[bytes]:
        """Yield every line from the beginning."""
        return iter(()) if self.is_new else journal_lines(self._store, self._intake.version)

    def append(self, data: bytes) -> None:
        """Add lines, masked in mode `redacted`. Raise Conflict if this is no longer the end."""
        if self._mask is not None:
            data = b"".join(map(self._mask, data.splitlines(keepends=True)))
        self._writer.now = self._clock()
        try:
            with self._store.write():
                write_piece(self._writer, self._read_piece(data))
        except EverturnError:
            raise
        except Exception as failure:  # rows could not be made: a defect of ours must not lose the record
            self._reader = None
            with self._store.write():
                piece = self._read_piece(data)
                why = f"rows could not be made ({type(failure).__name__}) after byte {piece.at}"
                write_piece(self._writer, replace(piece, changes=piece.changes | {"parser": -1}, failed=why))
        self.commits += 1

    def _read_piece(self, data: bytes) -> FilePiece:
        """Read the new lines, with any that were stored while another process derived the rows again."""
        version = self._intake.version
        if version.id:
            self._refresh_version(version)
        reading, state, parser = empty_result(), version.state, version.parser
        if self._reader is not None:
            left = self._store.read_raw(version.id, version.parsed, version.size) if self.has_unread else b""
            reading = self._reader.feed(left + data, version.parsed, True)
            state, parser = self._reader.state(), self._source.parser
        end = version.offset + len(data)
        changes: dict[str, int | bytes] = {
            "offset": end, "size": end, "file_size": end, "parsed": version.parsed + reading.consumed,
            "parser": parser, "state": state,
        }  # fmt: skip
        return FilePiece(self._intake, data, version.size, reading, version.offset, changes, last=True)

    def _refresh_version(self, version: Version) -> None:
        """Pick up rows that another process has derived again (`rebuild`, an upgrade)."""
        try:
            row = self._store.version(version.id)
        except NothingFound as failure:
            raise Conflict(f"session {self._session}") from failure
        moved = (row.parsed, row.parser, row.state) != (version.parsed, version.parser, version.state)
        version.lines, version.glued = row.lines, row.glued
        if moved:
            version.parsed, version.parser, version.state = row.parsed, row.parser, row.state
            in_step = row.parser == self._source.parser
            self._reader = self._source.reader(self._candidate, row.state) if in_step else None
