"""Compares the files on disk with the cursors in the archive: one listing, one query, one stat per file.

Nothing is read here: a scan without changes costs the stats.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from everturn.capture.file_reader import FileCandidate, as_signed, stat_columns
from everturn.model.archive import SourceFile, Version
from everturn.sources.contract import SearchPlaces, Source, SourceCandidate
from everturn.store.contract import Store


@dataclass
class ScanResult:
    """The work of a sync."""

    changed: list[FileCandidate] = field(default_factory=list)
    unchanged: int = 0
    waiting: int = 0  # in quarantine
    gone: list[SourceFile] = field(default_factory=list)
    moved: list[tuple[SourceFile, FileCandidate]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    behind: list[tuple[SourceFile, Version]] = field(default_factory=list)  # rows to derive from stored bytes
    paths: set[str] = field(default_factory=set)  # of all known and found files

    @property
    def bytes_to_read(self) -> int:
        """The number of new bytes, according to the stats."""
        return sum(_new_bytes(candidate) for candidate in self.changed)


def scan_sources(
    store: Store, sources: Mapping[str, Source], places: SearchPlaces, machine: str, now: int, retry: bool = False
) -> ScanResult:
    """Scan every root of every source, and every known file elsewhere."""
    result = ScanResult()
    known: dict[str, tuple[SourceFile, Version]] = {}
    members: list[tuple[SourceFile, Version]] = []
    for file, version in _rows_on_disk(store.files(machine), sources, result):
        if file.container:
            members.append((file, version))
            _note_behind(result, sources, file, version)
        else:
            known[file.path] = file, version
    missing = dict(known)
    fresh: list[FileCandidate] = []
    for source, found in list_files(sources, places, result.problems):
        path = str(found.path)
        if (row := missing.pop(path, None)) is None and path in known:
            continue  # two roots lead to the same file
        candidate = look_at_file(source, found, row)
        if row is None:
            fresh.append(candidate)
        else:
            sort_candidate(result, candidate, now, retry)
    for file in _scan_unlisted(missing, sources, result, now, retry):
        missing.pop(file.path)
    result.paths = {*known, *(candidate.path for candidate in fresh)}
    _match_moves(result, fresh, [row for row in missing.values() if row[0].state == "live"], members)
    for file, version in missing.values():
        _note_behind(result, sources, file, version)
    return result


def look_at_file(source: Source, found: SourceCandidate, row: tuple[SourceFile, Version] | None) -> FileCandidate:
    """Stat one file."""
    known, version = row if row is not None else (None, None)
    try:
        info = os.stat(found.path)
    except OSError as failure:
        return FileCandidate(source, found, known, version, None, failure.strerror or "cannot be looked at")
    if not stat.S_ISREG(info.st_mode) and found.kind != "bundle":
        return FileCandidate(source, found, known, version, None, "not a regular file")
    columns = stat_columns(info) | {"mtime_ns": max(info.st_mtime_ns, found.stamp)} if found.stamp else {}
    return FileCandidate(source, found, known, version, info, columns=columns)


def sort_candidate(result: ScanResult, candidate: FileCandidate, now: int, retry: bool) -> None:
    """Add a file to the part of the result it belongs to."""
    known = candidate.known
    if known is not None and known.fail_reason and known.retry_at > now and not retry:
        result.waiting += 1
    elif is_unchanged(candidate) and not (known is not None and known.fail_reason) and not _is_behind(candidate):
        result.unchanged += 1
    else:
        result.changed.append(candidate)


def is_unchanged(candidate: FileCandidate) -> bool:
    """Whether the stat equals the one at the last move of the cursor."""
    info, version, known = candidate.stat, candidate.version, candidate.known
    if info is None or version is None or known is None:
        return False
    now = candidate.columns or stat_columns(info)
    return known.state == "live" and all(getattr(version, name) == value for name, value in now.items())


def is_place(path: str) -> bool:
    """Whether a name is a path on disk. A journal, stored in the archive alone, has a name that is not absolute."""
    return os.path.isabs(path)


def _rows_on_disk(
    rows: Iterable[tuple[SourceFile, Version]], sources: Mapping[str, Source], result: ScanResult
) -> Iterable[tuple[SourceFile, Version]]:
    """Yield the rows of files on disk; of the others, note those whose derived rows are out of date."""
    for file, version in rows:
        if is_place(file.path):
            yield file, version
        else:
            _note_behind(result, sources, file, version)


def list_files(
    sources: Mapping[str, Source], places: SearchPlaces, problems: list[str]
) -> Iterable[tuple[Source, SourceCandidate]]:
    """Yield all files that the sources find; note the folders that cannot be listed."""
    for source in sources.values():
        for root in source.roots(places):
            try:
                for found in source.find(root):
                    yield source, found
            except OSError as failure:
                problems.append(f"{failure.filename or root}: {failure.strerror}")


def _note_behind(result: ScanResult, sources: Mapping[str, Source], file: SourceFile, version: Version) -> None:
    """Note a file that is not scanned itself if its derived rows are out of date."""
    source = sources.get(file.format)
    if source is not None and version.id and version.parser not in (source.parser, -1):
        result.behind.append((file, version))


def _is_behind(candidate: FileCandidate) -> bool:
    """Whether the rows are of an older parser or an interrupted rebuild. (-1: it could not be parsed.)"""
    return candidate.version is not None and candidate.version.parser not in (candidate.source.parser, -1)


def _scan_unlisted(
    missing: dict[str, tuple[SourceFile, Version]],
    sources: Mapping[str, Source],
    result: ScanResult,
    now: int,
    retry: bool,
) -> list[SourceFile]:
    """Scan known files below no current root, such as files added by hand; return those that may exist."""
    present = []
    for file, version in list(missing.values()):
        if (source := sources.get(file.format)) is None or not _may_exist(file.path):
            continue
        found = SourceCandidate(Path(file.path), file.kind, file.native_id, file.parent)
        sort_candidate(result, look_at_file(source, found, (file, version)), now, retry)
        present.append(file)
    return present


def _may_exist(path: str) -> bool:
    """Return False only for certain: files below an unreadable folder may still exist."""
    try:
        os.lstat(path)
    except OSError as failure:
        return not isinstance(failure, FileNotFoundError | NotADirectoryError)
    return True


def _match_moves(
    result: ScanResult,
    fresh: list[FileCandidate],
    lost: list[tuple[SourceFile, Version]],
    members: list[tuple[SourceFile, Version]],
) -> None:
    """Recognise a new file with the identity of a vanished one, or of a member of one, as moved."""
    vanished = {file.id for file, _ in lost}
    inside = [row for row in members if row[0].container in vanished]
    by_inode = {(version.device, version.inode): file for file, version in lost if version.inode}
    by_name = {
        (file.format, file.native_id, file.kind): (file, version)
        for file, version in [*inside, *lost]
        if file.native_id
    }
    matched: set[int] = set()
    for candidate in fresh:
        if (file := _find_moved_file(candidate, by_inode, by_name)) is None or file.id in matched:
            result.changed.append(candidate)
        else:
            matched.add(file.id)
            result.moved.append((file, candidate))
    result.gone = [file for file, _ in lost if file.id not in matched]


def _find_moved_file(
    candidate: FileCandidate,
    by_inode: dict[tuple[int, int], SourceFile],
    by_name: dict[tuple[str, str, str], tuple[SourceFile, Version]],
) -> SourceFile | None:
    info = candidate.stat
    if info is None:
        return None
    identity = candidate.source.name, candidate.found.native_id, candidate.found.kind
    file = by_inode.get((as_signed(info.st_dev), as_signed(info.st_ino)))
    if file is not None and (file.format, file.native_id, file.kind) == identity:
        return file
    if (named := by_name.get(identity)) is not None and info.st_size >= named[1].offset:
        return named[0]
    return None


def _new_bytes(candidate: FileCandidate) -> int:
    if candidate.stat is None:
        return 0
    done = candidate.version.offset if candidate.version is not None else 0
    return candidate.stat.st_size - done if candidate.stat.st_size >= done else candidate.stat.st_size
