"""Compares the files on disk with the cursors in the archive: one listing, one query, one stat per file.

Nothing is read here. The cost of a scan in which nothing changed is that of the stats.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from everturn.model.archive import SourceFile, Version
from everturn.sources.contract import SearchPlaces, Source, SourceCandidate
from everturn.store.contract import Store


@dataclass
class FileCandidate:
    """A file to look into: found on disk, perhaps known, with its stat (None when it could not be had)."""

    source: Source
    found: SourceCandidate
    known: SourceFile | None
    version: Version | None
    stat: os.stat_result | None
    error: str = ""
    container: int = 0  # taken out of this source file
    columns: dict[str, int] = field(default_factory=dict)  # what to remember of it, where its stat does not tell

    @property
    def path(self) -> str:
        """Absolute path, as it is stored."""
        return str(self.found.path)


@dataclass
class ScanResult:
    """What a sync has to do."""

    changed: list[FileCandidate] = field(default_factory=list)
    unchanged: int = 0
    waiting: int = 0  # in quarantine until later
    gone: list[SourceFile] = field(default_factory=list)
    moved: list[tuple[SourceFile, FileCandidate]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    behind: list[tuple[SourceFile, Version]] = field(default_factory=list)  # rows still to be made from stored bytes

    @property
    def bytes_to_read(self) -> int:
        """New bytes, as far as a stat can tell."""
        return sum(_new_bytes(candidate) for candidate in self.changed)


def scan_sources(
    store: Store, sources: Mapping[str, Source], places: SearchPlaces, machine: str, now: int, retry: bool = False
) -> ScanResult:
    """Look at every root of every source, and at every known file elsewhere."""
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
    for source, found in _listing(sources, places, result):
        path = str(found.path)
        row = missing.pop(path, None)
        if row is None and path in known:
            continue  # two roots lead to the same file
        candidate = look_at_file(source, found, row)
        if row is None:
            fresh.append(candidate)
        else:
            sort_candidate(result, candidate, now, retry)
    for there in _look_for_missing(missing, sources, result, now, retry):
        missing.pop(there.path)
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
        return FileCandidate(source, found, known, version, None, "not an ordinary file")
    columns = stat_columns(info) | {"mtime_ns": max(info.st_mtime_ns, found.stamp)} if found.stamp else {}
    return FileCandidate(source, found, known, version, info, columns=columns)


def sort_candidate(result: ScanResult, candidate: FileCandidate, now: int, retry: bool) -> None:
    """Note what is to be done with a file that was looked at."""
    known = candidate.known
    if known is not None and known.fail_reason and known.retry_at > now and not retry:
        result.waiting += 1
    elif is_unchanged(candidate) and not (known is not None and known.fail_reason) and not _is_behind(candidate):
        result.unchanged += 1
    else:
        result.changed.append(candidate)


def is_unchanged(candidate: FileCandidate) -> bool:
    """Nothing in the stat differs from what was seen when the cursor was moved."""
    info, version, known = candidate.stat, candidate.version, candidate.known
    if info is None or version is None or known is None:
        return False
    now = candidate.columns or stat_columns(info)
    return known.state == "live" and all(getattr(version, name) == value for name, value in now.items())


def is_place(path: str) -> bool:
    """Is it a path on a disk? What the archive itself is the only place of (a journal) has a name that is not absolute."""
    return os.path.isabs(path)


def stat_columns(info: os.stat_result) -> dict[str, int]:
    """The columns of `Version` that a later scan compares."""
    return {
        "device": _as_signed(info.st_dev),
        "inode": _as_signed(info.st_ino),
        "file_size": info.st_size,
        "mtime_ns": info.st_mtime_ns,
    }


def _rows_on_disk(
    rows: Iterable[tuple[SourceFile, Version]], sources: Mapping[str, Source], result: ScanResult
) -> Iterable[tuple[SourceFile, Version]]:
    """Those that can be looked for; of the others only the rows may be behind."""
    for file, version in rows:
        if is_place(file.path):
            yield file, version
        else:
            _note_behind(result, sources, file, version)


def _listing(
    sources: Mapping[str, Source], places: SearchPlaces, result: ScanResult
) -> Iterable[tuple[Source, SourceCandidate]]:
    for source in sources.values():
        for root in source.roots(places):
            try:
                for found in source.find(root):
                    yield source, found
            except OSError as failure:
                result.problems.append(f"{failure.filename or root}: {failure.strerror}")


def _note_behind(result: ScanResult, sources: Mapping[str, Source], file: SourceFile, version: Version) -> None:
    """Rows still to be made from stored bytes, of a file that will not be looked at itself."""
    source = sources.get(file.format)
    if source is not None and version.id and version.parser not in (source.parser, -1):
        result.behind.append((file, version))


def _is_behind(candidate: FileCandidate) -> bool:
    """An older parser made the rows, or an interrupted rebuild left some to make. (-1: it could not be parsed.)"""
    return candidate.version is not None and candidate.version.parser not in (candidate.source.parser, -1)


def _look_for_missing(
    missing: dict[str, tuple[SourceFile, Version]],
    sources: Mapping[str, Source],
    result: ScanResult,
    now: int,
    retry: bool,
) -> list[SourceFile]:
    """Files that no root leads to any more: added by hand, or their root is not looked at this time."""
    there = []
    for file, version in list(missing.values()):
        source = sources.get(file.format)
        if source is None or not _may_exist(file.path):
            continue
        found = SourceCandidate(Path(file.path), file.kind, file.native_id, file.parent)
        sort_candidate(result, look_at_file(source, found, (file, version)), now, retry)
        there.append(file)
    return there


def _may_exist(path: str) -> bool:
    """False only when it is sure: a folder that cannot be entered today has not lost its files."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _match_moves(
    result: ScanResult,
    fresh: list[FileCandidate],
    lost: list[tuple[SourceFile, Version]],
    members: list[tuple[SourceFile, Version]],
) -> None:
    """A new file with the identity of one that vanished, or of a member of one, is the same file at another place."""
    without = {file.id for file, _ in lost}
    inside = [row for row in members if row[0].container in without]
    by_inode = {(version.device, version.inode): file for file, version in lost if version.inode}
    by_name = {
        (file.format, file.native_id, file.kind): (file, version)
        for file, version in [*inside, *lost]
        if file.native_id
    }
    taken: set[int] = set()
    for candidate in fresh:
        file = _find_moved_file(candidate, by_inode, by_name)
        if file is None or file.id in taken:
            result.changed.append(candidate)
        else:
            taken.add(file.id)
            result.moved.append((file, candidate))
    result.gone = [file for file, _ in lost if file.id not in taken]


def _find_moved_file(
    candidate: FileCandidate,
    by_inode: dict[tuple[int, int], SourceFile],
    by_name: dict[tuple[str, str, str], tuple[SourceFile, Version]],
) -> SourceFile | None:
    info = candidate.stat
    if info is None:
        return None
    identity = candidate.source.name, candidate.found.native_id, candidate.found.kind
    file = by_inode.get((_as_signed(info.st_dev), _as_signed(info.st_ino)))
    if file is not None and (file.format, file.native_id, file.kind) == identity:
        return file
    named = by_name.get(identity)
    if named is not None and info.st_size >= named[1].offset:
        return named[0]
    return None


def _new_bytes(candidate: FileCandidate) -> int:
    if candidate.stat is None:
        return 0
    done = candidate.version.offset if candidate.version is not None else 0
    return candidate.stat.st_size - done if candidate.stat.st_size >= done else candidate.stat.st_size


def _as_signed(number: int) -> int:
    """Inode and device numbers are unsigned 64 bit; databases have signed ones."""
    return number - (1 << 64) if number >= 1 << 63 else number
