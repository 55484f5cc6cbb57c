"""The job that brings the archive up to date: scan, read what is new, write it, mark what is gone.

Small files share a transaction, big ones have one per piece; each moves its own cursor in it, so that an interruption at
any point leaves every file at a whole piece and the next run goes on from there. Several processes may sync at once: the
one that finds a cursor moved by another starts that file again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from everturn.capture.deriving import catch_up, upgrade
from everturn.capture.pieces import Piece, begin, nothing, pieces
from everturn.capture.policy import Policy
from everturn.capture.scan import Candidate, Scan, is_unchanged, look, scan
from everturn.capture.writing import Desk, is_buried, note_failure, write_piece
from everturn.errors import Conflict, EverturnError, MissingPath
from everturn.model.archive import SourceFile
from everturn.sources import Found, Places, Source
from everturn.store import Store

#: Files are written together until their new bytes reach this.
GROUP = 4 << 20
GROUP_FILES = 256
HEAD = 64 << 10
_TRIES = 4


@dataclass
class Report:
    """What a sync did. `failed` are (path, why) of files that are in quarantine now."""

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
    sessions: int = 0
    turns: int = 0
    messages: int = 0
    problems: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


#: Called with (files done, files to do, bytes done, bytes to do, current path).
Progress = Callable[[int, int, int, int, str], None]


@dataclass
class Sync:
    """Everything a sync needs, given by a surface."""

    store: Store
    sources: dict[str, Source]
    places: Places
    policy: Policy
    machine: str
    owner: str
    clock: Callable[[], int]
    progress: Progress = lambda *numbers: None


def sync(job: Sync, retry: bool = False) -> Report:
    """Bring everything that the sources find up to date."""
    desk = desk_for(job)
    found = scan(job.store, job.sources, job.places, job.machine, desk.now, retry)
    report = Report(unchanged=found.unchanged, waiting=found.waiting)
    report.skipped += [(problem, "") for problem in found.problems]
    _mark_moves_and_gone(job, found, report)
    _take_in(job, desk, found.changed, report, found.bytes_to_read)
    report.rederived += upgrade(desk, job.sources, found.behind, lambda *numbers: None)
    return _finish(desk, report)


def add(job: Sync, paths: Iterable[Path], source_name: str = "") -> Report:
    """Take in given files, or every transcript below given folders, wherever they lie."""
    desk = desk_for(job)
    report = Report()
    candidates: dict[str, Candidate] = {}
    for path in paths:
        if not path.exists():
            raise MissingPath(str(path))
        for source, found in _recognised(job, path.resolve(), source_name, report):
            candidate = look(source, found, job.store.file(job.machine, str(found.path)))
            if is_unchanged(candidate):
                report.unchanged += 1
            else:
                candidates.setdefault(candidate.path, candidate)
    todo = list(candidates.values())
    _take_in(job, desk, todo, report, sum(c.stat.st_size for c in todo if c.stat is not None))
    return _finish(desk, report)


def desk_for(job: Sync) -> Desk:
    """A desk with today's date and the list of what must not come back."""
    buried = job.store.tombstones()
    return Desk(
        job.store,
        job.machine,
        job.owner,
        job.clock(),
        frozenset((row.agent, row.key) for row in buried if row.kind == "session"),
        frozenset(int(row.key) for row in buried if row.kind == "message"),
    )


def _recognised(job: Sync, path: Path, source_name: str, report: Report) -> Iterable[tuple[Source, Found]]:
    """The files at or below `path` that a source knows as its own."""
    if path.is_dir():
        yield from _below(job, path, source_name)
        return
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as failure:
        report.failed.append((str(path), failure.strerror or "cannot be read"))
        return
    for source in _wanted(job, source_name):
        found = source.sniff(path, head)
        if found is not None:
            yield source, found
            return
    report.skipped.append((str(path), "no source knows this format; `everturn sources` lists what can be read"))


def _below(job: Sync, folder: Path, source_name: str) -> Iterable[tuple[Source, Found]]:
    for source in _wanted(job, source_name):
        seen: set[Path] = set()
        for found in source.find(folder):
            seen.add(found.path)
            yield source, found
        for path in sorted(folder.rglob("*")):
            if path not in seen and path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    sniffed = source.sniff(path, file.read(HEAD))
                if sniffed is not None:
                    yield source, sniffed


def _wanted(job: Sync, source_name: str) -> list[Source]:
    return [source for name, source in job.sources.items() if source_name in ("", name)]


def _mark_moves_and_gone(job: Sync, found: Scan, report: Report) -> None:
    store = job.store
    if not (found.moved or found.gone):
        return
    with store.write():
        for file, candidate in found.moved:
            store.set_file(file.id, path=candidate.path, state="live")
        for file in found.gone:
            store.set_file(file.id, state="gone")
    for _, candidate in found.moved:
        row = store.file(job.machine, candidate.path)
        if row is not None:
            candidate.known, candidate.version = row
        found.changed.append(candidate)
    report.moved, report.gone = len(found.moved), len(found.gone)


def _take_in(job: Sync, desk: Desk, candidates: list[Candidate], report: Report, total: int) -> None:
    group: list[Piece] = []
    read_before = 0
    for number, candidate in enumerate(candidates):
        job.progress(number, len(candidates), report.bytes_read, total, candidate.path)
        group = _one_file(job, desk, candidate, group, report)
        if report.bytes_read - read_before >= GROUP or len(group) >= GROUP_FILES:
            _write_group(job, desk, group, report)
            group, read_before = [], report.bytes_read
    _write_group(job, desk, group, report)
    job.progress(len(candidates), len(candidates), report.bytes_read, total, "")


def _one_file(job: Sync, desk: Desk, candidate: Candidate, group: list[Piece], report: Report) -> list[Piece]:
    """Read one file. Its last piece, if it is the only one, is left for the group."""
    report.files += 1
    if candidate.stat is None:
        _fail(job, desk, candidate, candidate.error, report)
        return group
    try:
        with candidate.found.path.open("rb") as file:
            mode = _mode(job, candidate, file)
            if mode == "off" or _is_forgotten(desk, candidate):
                report.off += mode == "off"
                report.forgotten += mode != "off"
                return group
            intake = begin(job.store, candidate, mode, file)
            _count(report, candidate, intake.reason)
            redact = job.policy.redact if mode == "redacted" else None
            for piece in pieces(job.store, intake, file, redact):
                report.bytes_read += len(piece.stored)
                if is_buried(desk, candidate.source.name, piece.reading):
                    report.forgotten += 1
                    return group
                if piece.last and intake.pieces_written == 0 and len(piece.stored) < GROUP:
                    return [*group, piece]
                _write_group(job, desk, [*group, piece], report)
                group = []
    except OSError as failure:
        _fail(job, desk, candidate, failure.strerror or "cannot be read", report)
    return group


def _mode(job: Sync, candidate: Candidate, file: BinaryIO) -> str:
    if job.policy.is_simple:
        return job.policy.mode
    return job.policy.mode_for(candidate.source.workspace(file.read(HEAD)), candidate.path)


def _is_forgotten(desk: Desk, candidate: Candidate) -> bool:
    name, found = candidate.source.name, candidate.found
    return (name, found.native_id) in desk.buried_sessions or (name, found.parent) in desk.buried_sessions


def _count(report: Report, candidate: Candidate, reason: str) -> None:
    if candidate.version is None or candidate.version.id == 0:
        report.new += 1
    elif reason:
        report.rewritten += 1
    else:
        report.grown += 1


def _write_group(job: Sync, desk: Desk, group: list[Piece], report: Report) -> None:
    """Write pieces together; if that fails, one by one, so that one bad file does not hold up the others."""
    if not group:
        return
    try:
        _commit(job, desk, group, report)
    except Conflict:
        for piece in group:
            _again(job, desk, piece, report)
    except EverturnError:
        raise
    except Exception as failure:
        if len(group) > 1:
            for piece in group:
                _write_group(job, desk, [piece], report)
            return
        _keep_bytes_only(job, desk, group[0], failure, report)


def _commit(job: Sync, desk: Desk, group: list[Piece], report: Report) -> None:
    before = dict(desk.written)
    saved = [
        (piece.intake, copy(piece.intake), copy(piece.intake.version), piece.intake.candidate.known) for piece in group
    ]
    try:
        with job.store.write():
            for piece in group:
                write_piece(desk, piece)
    except BaseException:  # the rows are rolled back, so what was noted about them must be too
        desk.written.update(before)
        for intake, old, version, known in saved:
            intake.__dict__.update(old.__dict__, version=version)
            intake.candidate.known = known
        raise
    for piece in group:
        report.bytes_stored += len(piece.stored)
        if piece.failed:
            report.failed.append((piece.intake.candidate.path, piece.failed))
        if piece.last:
            _derive_rest(job, desk, piece, report)


def _derive_rest(job: Sync, desk: Desk, piece: Piece, report: Report) -> None:
    """Rows of an older parser are made again, and what could not be parsed is tried again when its time has come."""
    known, version = piece.intake.candidate.known, piece.intake.version
    if known is not None and not piece.failed and catch_up(desk, piece.intake.candidate.source, known, version):
        report.rederived += 1


def _again(job: Sync, desk: Desk, piece: Piece, report: Report) -> None:
    """Another process moved this file's cursor: look at it afresh."""
    old = piece.intake.candidate
    for _ in range(_TRIES):
        candidate = look(old.source, old.found, job.store.file(job.machine, old.path))
        if is_unchanged(candidate):
            return
        try:
            for one in _one_file(job, desk, candidate, [], report):
                _commit(job, desk, [one], report)
        except Conflict:
            continue
        return
    report.failed.append((old.path, "other processes kept changing it; run sync again"))


def _keep_bytes_only(job: Sync, desk: Desk, piece: Piece, failure: Exception, report: Report) -> None:
    """Rows could not be made of a piece: a defect of ours. Its bytes are kept and it is tried again later."""
    piece.failed = f"rows could not be made ({type(failure).__name__}) after byte {piece.at}"
    piece.reading = nothing()
    piece.changes |= {"parsed": piece.intake.version.parsed, "parser": -1}
    _commit(job, desk, [piece], report)


def _fail(job: Sync, desk: Desk, candidate: Candidate, why: str, report: Report) -> None:
    """A file that cannot be read goes into quarantine."""
    report.failed.append((candidate.path, why))
    with job.store.write():
        known = candidate.known
        if known is None:
            row = SourceFile(0, candidate.source.name, job.machine, job.owner, candidate.path, candidate.found.kind)
            row.native_id, row.parent = candidate.found.native_id, candidate.found.parent
            row.id = job.store.add_file(row)
            known = row
        note_failure(desk, known, why)


def _finish(desk: Desk, report: Report) -> Report:
    report.sessions, report.turns = desk.written["sessions"], desk.written["turns"]
    report.messages, report.problems = desk.written["messages"], desk.written["problems"]
    return report
