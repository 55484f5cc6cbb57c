"""Takes in candidates one after another: reads their pieces and writes them, small files together.

Small files share a transaction, big ones have one per piece. If another process moved the cursor of a file meanwhile, the
file is started again; a file whose rows cannot be derived is stored as bytes; an unreadable one goes into quarantine. No
file holds up the others.

A container (database, zip archive, recording, folder of small files) holds conversations. Its own bytes are stored like
those of any file (a database through a copy made by its engine), and each conversation in it becomes a source file of its
own at `CONTAINER#NAME`, written out as lines, that grows, changes and is read like any other. The container's bytes are
not stored where they must not be stored unchanged: under rules for workspaces, after something in it was forgotten, or
if it is very large.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import msgspec

from everturn.capture.file_reader import (
    FileCandidate,
    FilePiece,
    empty_result,
    is_own_question,
    is_read,
    names_itself,
    read_pieces,
    start_reader,
    stat_columns,
)
from everturn.capture.policy import Policy
from everturn.capture.scan import is_unchanged, look_at_file
from everturn.capture.writer import ArchiveWriter, derive_pending, is_buried, note_failure, write_piece
from everturn.errors import Conflict, EverturnError
from everturn.model.archive import SourceFile, Version
from everturn.model.vocabulary import BACKUP
from everturn.sources.contract import Member, PartlyUnread, SearchPlaces, Source, SourceCandidate, read_beginning
from everturn.sources.toolkit.sqlite_file import is_sqlite, snapshot
from everturn.store.contract import Store

#: Files share a transaction until their new bytes, or their number, reach this.
GROUP = 8 << 20
GROUP_FILES = 256
HEAD = 64 << 10
_FURTHER = 4 << 20  # bytes after the head that are searched for a workspace
_TRIES = 4


@dataclass
class SyncReport:
    """The result of a sync. `failed` are (path, reason) of files in quarantine, `skipped` of those that were not read."""

    files: int = 0
    unchanged: int = 0
    waiting: int = 0
    new: int = 0
    grown: int = 0
    rewritten: int = 0
    moved: int = 0
    gone: int = 0
    off: int = 0
    forgotten: int = 0
    rederived: int = 0
    bytes_read: int = 0
    bytes_stored: int = 0
    sessions: int = 0  # that lists did not have before; without subagents
    subagents: int = 0
    turns: int = 0
    messages: int = 0
    problems: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    other: list[str] = field(default_factory=list)  # files below a given folder that are no transcripts
    doubts: list[tuple[str, str]] = field(default_factory=list)  # readings that are not sure
    unknown: list[str] = field(default_factory=list)  # files left out because their workspace is unknown


#: Called with (files done, files to do, bytes done, bytes to do, current path).
Progress = Callable[[int, int, int, int, str], None]


@dataclass
class SyncJob:
    """Everything a sync needs, from a surface."""

    store: Store
    sources: Mapping[str, Source]
    places: SearchPlaces
    policy: Policy
    machine: str
    owner: str
    clock: Callable[[], int]
    progress: Progress = lambda *numbers: None
    spool: Path | None = None  # folder of the hook's spool, if any
    processes: int = 1  # that may read new files, if there are many


class Intake:
    def __init__(self, job: SyncJob, writer: ArchiveWriter, report: SyncReport, once: bool = False) -> None:
        self._once = once
        self.job, self.writer, self.report = job, writer, report
        self._group: list[FilePiece] = []
        self._grouped = 0

    def take(self, candidate: FileCandidate) -> None:
        """Read one file and write it, at once or with the next ones."""
        self.report.files += 1
        if candidate.stat is None:
            self.fail(candidate, candidate.error)
            return
        try:
            with candidate.found.path.open("rb") as file:
                candidate.found = self._name_apart(candidate, file)
                self.take_open(candidate, file, self.mode(candidate, file))
        except OSError as failure:
            self.fail(candidate, failure.strerror or "cannot be read")

    def take_open(self, candidate: FileCandidate, file: BinaryIO, mode: str) -> None:
        """Read an open file, wherever its bytes come from."""
        if mode == "off" or self._is_forgotten(candidate):
            self.report.off += mode == "off"
            self.report.forgotten += mode != "off"
            return
        start = start_reader(self.job.store, candidate, mode, file)
        if candidate.container and is_read(start, file):
            self.report.unchanged += 1
            return
        self._count(candidate, start.reason)
        redact = self.job.policy.redact if mode == "redacted" else None
        for piece in read_pieces(self.job.store, start, file, redact):
            if is_buried(self.writer, candidate.source.name, piece.reading):
                self.report.bytes_read += piece.size
                self.report.forgotten += 1
                return
            if not self._take_piece(piece):
                return

    def take_prepared(self, candidate: FileCandidate, pieces: Iterable[FilePiece | None]) -> None:
        """Write a new file that another process reads. None: that process gave up, so go on from the last piece."""
        self.report.files += 1
        self._count(candidate, "first")
        for piece in pieces:
            if piece is None:
                self.flush()
                self._take_again(candidate)
                return
            if not self._take_piece(piece):
                return

    def _take_piece(self, piece: FilePiece) -> bool:
        """Write a piece, at once or with the next ones; return False if the file was started again instead."""
        self.report.bytes_read += piece.size
        if not (piece.last and piece.start.pieces_written == 0 and piece.size < GROUP):
            return self.flush(piece)
        self._group.append(piece)
        self._grouped += piece.size
        if self._grouped >= GROUP or len(self._group) >= GROUP_FILES:
            self.flush()
        return True

    def flush(self, *more: FilePiece) -> bool:
        """Write the waiting pieces."""
        group, self._group, self._grouped = [*self._group, *more], [], 0
        return not group or self._write(group)

    def fail(self, candidate: FileCandidate, why: str) -> None:
        """Put an unreadable file into quarantine."""
        self.report.failed.append((candidate.path, why))
        known = candidate.known or self.register(candidate)
        with self.job.store.write():
            note_failure(self.writer, known, why)

    def register(self, candidate: FileCandidate) -> SourceFile:
        """Insert the row of a file that has no version yet."""
        found = candidate.found
        known = SourceFile(
            0, candidate.source.name, self.job.machine, self.job.owner, candidate.path, found.kind, found.native_id,
            found.parent, container=candidate.container,
        )  # fmt: skip
        with self.job.store.write():
            if (row := self.job.store.file(self.job.machine, candidate.path)) is not None:
                known = row[0]
            else:
                known.id = self.job.store.add_file(known)
        candidate.known = known
        return known

    def mode(self, candidate: FileCandidate, file: BinaryIO) -> str:
        """Return the mode for a file. Our own questions to a program used as a model are not history."""
        policy, is_new = self.job.policy, candidate.version is None
        if policy.is_simple and not is_new:
            return policy.mode
        head = file.read(HEAD)
        if is_new and is_own_question(candidate, head):
            return "off"
        if policy.is_simple:
            return policy.mode
        workspace = self._workspace(candidate, file, head)
        decision = policy.decide(workspace, candidate.path, candidate.source.is_placeless)
        if decision.is_unknown:
            self.report.unknown.append(candidate.path)
        return decision.mode

    # --- helpers ---
    def _name_apart(self, candidate: FileCandidate, file: BinaryIO) -> SourceCandidate:
        """Return the file with an id of its own if another file has the same id but not the same content.

        Only an id that comes from the name of the file can be such a coincidence: `full.jsonl` in two folders.
        """
        found, source, known = _with_owner(candidate), candidate.source, candidate.known
        name = found.native_id
        if known is not None:
            return (
                msgspec.structs.replace(found, native_id=known.native_id)
                if known.native_id.startswith(f"{name}-")
                else found
            )
        head = file.read(HEAD)
        file.seek(0)
        if names_itself(found, head):
            return found
        if any(piece.start.candidate.found.native_id == name for piece in self._group):
            self.flush()
        beginnings = [
            self.job.store.read_raw(session.version, 0, len(head))
            for session in self.job.store.sessions_of(source.name, name)
            if session.mode == "full"
        ]
        if not beginnings or any(head.startswith(old) or old.startswith(head) for old in beginnings):
            return found
        mark = sha256(head.partition(b"\n")[0]).hexdigest()[:8]
        return msgspec.structs.replace(found, native_id=f"{name}-{mark}")

    def _workspace(self, candidate: FileCandidate, file: BinaryIO, head: bytes) -> str:
        """Return the workspace that a file names, or the files around it, or the session it belongs to."""
        source, found = candidate.source, ""
        if candidate.found.kind != BACKUP:  # whose words are the user's, not the agent's
            found = source.workspace(head) or (source.folder_of(candidate.found.path) if source.folder_of else "")
            if not found and len(head) == HEAD:
                found = source.workspace(head + file.read(_FURTHER))
        if found or not candidate.found.parent:
            return found
        self.flush()  # the session it belongs to may be among the waiting ones
        rows = self.job.store.sessions_of(source.name, candidate.found.parent)
        return next((text for row in rows if (text := self.job.store.session(row.id)[1].workspace)), "")

    def _is_forgotten(self, candidate: FileCandidate) -> bool:
        name, found, buried = candidate.source.name, candidate.found, self.writer.buried_sessions
        return (name, found.native_id) in buried or (name, found.parent) in buried

    def _count(self, candidate: FileCandidate, reason: str) -> None:
        if candidate.version is None or candidate.version.id == 0:
            self.report.new += 1
        elif reason:
            self.report.rewritten += 1
        elif not is_unchanged(candidate):  # else its rows are of an older parser or index; `rederived` counts these
            self.report.grown += 1

    def _write(self, group: list[FilePiece]) -> bool:
        """Write pieces together or, if that fails, one by one, so that one bad file does not hold up the others."""
        try:
            self._commit(group)
            return True
        except Conflict:
            if self._once:
                raise
            for piece in group:
                self._take_again(piece.start.candidate)
            return False
        except EverturnError:
            raise
        except Exception as failure:
            if len(group) > 1:
                for piece in group:
                    self._write([piece])
            else:
                self._keep_bytes_only(group[0], failure)
            return True

    def _commit(self, group: list[FilePiece]) -> None:
        before, opened = dict(self.writer.written), len(self.writer.opened)
        saved = [(p.start, copy(p.start), copy(p.start.version), p.start.candidate.known) for p in group]
        try:
            with self.job.store.write():
                for piece in group:
                    write_piece(self.writer, piece)
        except BaseException:  # the rows are rolled back, so our notes must be too
            self.writer.written.update(before)
            del self.writer.opened[opened:]
            for start, old, version, known in saved:
                start.__dict__.update(old.__dict__, version=version)
                start.candidate.known = known
            raise
        for piece in group:
            self.report.bytes_stored += piece.size
            if piece.failed:
                self.report.failed.append((piece.start.candidate.path, piece.failed))
            elif piece.last:
                self._derive_rest(piece)

    def _derive_rest(self, piece: FilePiece) -> None:
        """Derive rows of an older parser again, and retry what could not be parsed when it is due."""
        known, version = piece.start.candidate.known, piece.start.version
        if known is not None and derive_pending(self.writer, piece.start.candidate.source, known, version):
            self.report.rederived += 1

    def _take_again(self, old: FileCandidate) -> None:
        """Read a file again from its cursor, which another process may have moved."""
        if old.container:
            return  # the next sync finds its container changed
        for _ in range(_TRIES):
            candidate = look_at_file(old.source, old.found, self.job.store.file(self.job.machine, old.path))
            if is_unchanged(candidate):
                return
            alone = Intake(self.job, self.writer, self.report, once=True)
            try:
                alone.take(candidate)
                group, alone._group = alone._group, []
                if group:
                    alone._commit(group)
            except Conflict:
                continue
            return
        self.report.waiting += 1  # the other process is taking it in

    def _keep_bytes_only(self, piece: FilePiece, failure: Exception) -> None:
        """Store only the bytes of a piece whose rows could not be derived, a defect of ours, for a later retry."""
        piece.failed = f"rows could not be made ({type(failure).__name__}) after byte {piece.at}"
        piece.reading = empty_result()
        if piece.prepared is not None:
            piece.prepared = msgspec.structs.replace(piece.prepared, parts=[])
        piece.changes |= {"parsed": piece.start.version.parsed, "parser": -1}
        self._commit([piece])


def _with_owner(candidate: FileCandidate) -> SourceCandidate:
    """Return a side file with the session that it belongs to: the one it was archived with, or that its source finds."""
    found, known, find_owner = candidate.found, candidate.known, candidate.source.owner_of
    if found.parent or found.kind != "meta" or find_owner is None:
        return found
    return msgspec.structs.replace(found, parent=known.parent if known is not None else find_owner(found.path))


# --- containers ---
#: The bytes of larger containers are not stored; their conversations are.
LARGEST = 256 << 20


def is_container(candidate: FileCandidate) -> bool:
    return candidate.source.unpack is not None and candidate.found.kind in ("container", "bundle")


def take_container(intake: Intake, candidate: FileCandidate) -> None:
    policy = intake.job.policy
    if policy.is_off or (policy.mode_for("", candidate.path) == "off" != policy.mode):
        intake.report.files += 1
        intake.report.off += 1
        return
    if candidate.stat is None:
        intake.report.files += 1
        intake.fail(candidate, candidate.error)
        return
    candidate.columns = candidate.columns or stat_columns(candidate.stat)
    try:
        with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
            path = _readable_copy(candidate, Path(folder))
            _take_members(intake, candidate, path, Path(folder))
            _take_bytes(intake, candidate, path, Path(folder))
    except OSError as failure:
        _keep_damaged(intake, candidate)
        intake.fail(candidate, failure.strerror or "cannot be read")


def _keep_damaged(intake: Intake, candidate: FileCandidate) -> None:
    """Store the bytes of a container that cannot be unpacked, except a database, which only its engine can copy."""
    if candidate.found.kind != "container" or (candidate.source.is_database and _is_database(candidate.found.path)):
        return
    with suppress(OSError), tempfile.TemporaryDirectory(prefix="everturn-") as folder:
        _take_bytes(intake, candidate, candidate.found.path, Path(folder))
        intake.flush()


def _is_database(path: Path) -> bool:
    """Return whether a container is a database: a source of databases may also read exports."""
    return is_sqlite(read_beginning(path, HEAD))


def _readable_copy(candidate: FileCandidate, folder: Path) -> Path:
    if candidate.found.kind == "bundle" or not (candidate.source.is_database and _is_database(candidate.found.path)):
        return candidate.found.path
    copy = folder / "copy.db"
    snapshot(candidate.found.path, copy, candidate.source.private)
    return copy


def _take_bytes(intake: Intake, candidate: FileCandidate, path: Path, folder: Path) -> None:
    """Take in the container itself, last: its cursor says that everything in it has been read."""
    intake.report.files += 1
    mode = _container_mode(intake, candidate, path)
    if mode == "structure":
        path = folder / "nothing"
        path.touch()
    with path.open("rb") as file:
        intake.take_open(candidate, file, mode)


def _container_mode(intake: Intake, candidate: FileCandidate, path: Path) -> str:
    policy, buried = intake.job.policy, intake.writer.buried_sessions
    forgotten = any(agent == candidate.source.name for agent, _ in buried)
    is_unrestricted = (
        policy.is_simple and policy.mode == "full" and not forgotten and candidate.found.kind == "container"
    )
    return "full" if is_unrestricted and path.stat().st_size <= LARGEST else "structure"


def _take_members(intake: Intake, candidate: FileCandidate, path: Path, folder: Path) -> None:
    store, unpack = intake.job.store, candidate.source.unpack
    assert unpack is not None
    container = (candidate.known or intake.register(candidate)).id  # its members refer to it
    before = {file.path: file for file, _ in store.files(intake.job.machine) if file.container == container}
    for number, member in enumerate(_tell_unread(intake, candidate, unpack(candidate.found, path))):
        one = _member_candidate(intake, candidate, member, container)
        before.pop(one.path, None)
        intake.report.files += 1
        lines = folder / f"member-{number}"
        with lines.open("wb") as output:
            output.writelines(member.lines)
        one.stat = os.stat(lines)
        one.columns = {
            "device": 0, "inode": 0, "file_size": one.stat.st_size, "mtime_ns": candidate.columns["mtime_ns"],
        }  # fmt: skip
        with lines.open("rb") as file:
            intake.take_open(one, file, intake.mode(one, file))
        lines.unlink()
    gone = [file for file in before.values() if file.state == "live"]
    intake.report.gone += len(gone)
    if gone:
        with store.write():
            for lost in gone:
                store.set_file(lost.id, state="gone")


def _tell_unread(intake: Intake, candidate: FileCandidate, members: Iterator[Member]) -> Iterator[Member]:
    """Yield the members; note what could not be read of the container."""
    try:
        yield from members
    except PartlyUnread as failure:
        intake.writer.doubts.append((candidate.path, failure.strerror or ""))


def _member_candidate(intake: Intake, candidate: FileCandidate, member: Member, container: int) -> FileCandidate:
    found = SourceCandidate(Path(f"{candidate.path}#{member.name}"), member.kind, member.native_id, member.parent)
    row = intake.job.store.file(intake.job.machine, str(found.path)) or _adopt_packed_file(
        intake, candidate, found, container
    )
    known, version = row if row is not None else (None, None)
    return FileCandidate(candidate.source, found, known, version, None, container=container)


def _adopt_packed_file(
    intake: Intake, candidate: FileCandidate, member: SourceCandidate, container: int
) -> tuple[SourceFile, Version] | None:
    """Return the row of a file that was packed into this container and deleted: it continues as the member's."""
    store, machine = intake.job.store, intake.job.machine
    plain = candidate.found.path.with_name(member.path.name.rpartition("#")[2])
    row = store.file(machine, str(plain))
    if row is None or row[0].native_id != member.native_id or row[0].format != candidate.source.name or plain.exists():
        return None
    with store.write():
        store.set_file(row[0].id, path=str(member.path), container=container, state="live")
    return store.file(machine, str(member.path))
