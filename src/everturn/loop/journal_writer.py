"""The end of a journal in the archive, where the next line goes: bytes, rows, index text and cursor in one transaction.

Lines are only ever added where their writer knows the end to be: when another process has added some meanwhile, that is a
Conflict, and nothing is written. Others may derive the rows again at any time; then the next line takes up what they did
not know. Rows that cannot be made are made later; the bytes are kept in any case.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from everturn.capture.file_reader import FilePiece, ReaderStart, empty_result
from everturn.capture.rebuild import derive_pending
from everturn.capture.scan import FileCandidate
from everturn.capture.writer import ArchiveWriter, write_piece
from everturn.clock import Clock
from everturn.errors import Conflict, EverturnError, NothingFound
from everturn.model.archive import SourceFile, Version
from everturn.sources.contract import SourceCandidate, all_sources
from everturn.store.contract import Store

AGENT = "journal"


@dataclass
class JournalPlace:
    """Where a journal is in the archive; without a file it is nowhere yet."""

    file: SourceFile | None = None
    version: Version = field(default_factory=Version)


def path_of(session: str) -> str:
    """The name of a journal among the files of the archive. No place on a disk has such a name."""
    return f"{AGENT}:{session}"


def place_of(store: Store, session: str, machine: str) -> JournalPlace:
    """Where the journal is, of whichever machine it was begun on."""
    for row in store.sessions_of(AGENT, session):
        file, version = store.file_by_id(store.version(row.version).source)
        if file.path == path_of(session):
            return JournalPlace(file, version)
    found = store.file(machine, path_of(session))
    return JournalPlace(*found) if found is not None else JournalPlace()


class JournalEnd:
    """The end of one journal, as one process knows it. Rows of an older parser are made anew when it is looked for."""

    def __init__(self, store: Store, session: str, place: JournalPlace, whose: tuple[str, str], clock: Clock) -> None:
        self._store, self._session, self._clock, self._source = store, session, clock, all_sources()[AGENT]
        self._found = SourceCandidate(Path(path_of(session)), "main", session)
        file, version = place.file, place.version
        self._desk = ArchiveWriter(store, *((file.machine, file.owner) if file else whose), clock())
        if file is not None:
            derive_pending(self._desk, self._source, file, version)
        candidate = FileCandidate(self._source, self._found, file, version if file else None, None)
        self._intake = ReaderStart(candidate, "full", version, reason="" if file else "first")
        in_step = file is None or version.parser == self._source.parser
        self._reader = self._source.reader(self._found, version.state) if in_step else None
        self.commits = 0

    @property
    def is_new(self) -> bool:
        """Is there no journal yet?"""
        return bool(self._intake.reason)

    @property
    def has_unread(self) -> bool:
        """Are there bytes without rows?"""
        return self._intake.version.parsed < self._intake.version.size

    def whole(self) -> bytes:
        """Every line from the beginning."""
        version = self._intake.version
        return b"" if self.is_new else self._store.read_raw(version.id, 0, version.size)

    def append(self, data: bytes) -> None:
        """Add lines. Raises Conflict when this is not the end any more."""
        self._desk.now = self._clock()
        try:
            with self._store.write():
                write_piece(self._desk, self._read_piece(data))
        except EverturnError:
            raise
        except Exception as failure:  # rows could not be made: a defect of ours must not cost what was said
            self._reader = None
            with self._store.write():
                piece = self._read_piece(data)
                why = f"rows could not be made ({type(failure).__name__}) after byte {piece.at}"
                write_piece(self._desk, replace(piece, changes=piece.changes | {"parser": -1}, failed=why))
        self.commits += 1

    def _read_piece(self, data: bytes) -> FilePiece:
        """What is new, read: with what was stored while somebody derived the rows again, if there is any."""
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
        """Another process may have derived the rows again, or be about to (`rebuild`, an upgrade)."""
        try:
            row = self._store.version(version.id)
        except NothingFound as failure:
            raise Conflict(f"session {self._session}") from failure
        moved = (row.parsed, row.parser, row.state) != (version.parsed, version.parser, version.state)
        version.lines, version.glued = row.lines, row.glued
        if moved:
            version.parsed, version.parser, version.state = row.parsed, row.parser, row.state
            in_step = row.parser == self._source.parser
            self._reader = self._source.reader(self._found, row.state) if in_step else None
