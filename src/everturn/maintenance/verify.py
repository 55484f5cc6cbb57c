"""Verifies an archive: every chunk re-hashed, every record accounted for, every live source compared.

Read-only, except for a mark that makes the next sync compare a differing file in full.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from everturn.capture.file_reader import common_bytes
from everturn.capture.scan import is_place
from everturn.errors import NotAnArchive, NothingFound
from everturn.model.archive import SourceFile, Version
from everturn.store.contract import Store


@dataclass
class VerifyReport:
    """The result of a verification. `differs` are sources that a later sync takes in as a new version."""

    files: int = 0
    versions: int = 0
    chunks: int = 0
    bytes: int = 0
    compared: int = 0  # live sources compared byte by byte
    grown: int = 0  # of those, longer than the stored version
    gone: int = 0
    records: int = 0
    problems: int = 0  # records that could not be read; stored unchanged
    wrong: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)


def verify_archive(
    store: Store, machine: str, progress: Callable[[int, int, str], None], live: bool = True
) -> VerifyReport:
    """Verify everything; with `live`, also compare with the sources of this machine."""
    report = VerifyReport(wrong=[f"database: {problem}" for problem in store.check().problems])
    files = store.files()
    for number, (file, _) in enumerate(files):
        progress(number, len(files), file.path)
        report.files += 1
        with store.reading():  # others may write meanwhile
            differs = _check_file(store, file.id, machine if live else "", report)
        if differs:
            with store.write():
                store.set_version(differs, inode=0, mtime_ns=0)
    return report


def _check_file(store: Store, number: int, machine: str, report: VerifyReport) -> int:
    """Verify one file; return the version that its live source differs from, or 0."""
    try:
        file, current = store.file_by_id(number)
    except NothingFound:  # forgotten meanwhile
        return 0
    for version in store.versions(file.id):
        _check_version(store, file, version, report)
    # Containers and their members are stored as copies; journals exist in the archive only.
    is_file = not file.container and file.kind != "container" and is_place(file.path)
    if is_file and file.machine == machine and current.id and current.mode == "full":
        return _compare_with_source(store, file, current, report)
    return 0


def _check_version(store: Store, file: SourceFile, version: Version, report: VerifyReport) -> None:
    report.versions += 1
    where = f"{file.path} version {version.number}"
    if version.mode in ("full", "redacted"):
        end = 0
        for chunk in store.chunks(version.id):
            report.chunks += 1
            if chunk.start != end:
                report.wrong.append(f"{where}: bytes {end}–{chunk.start} are missing")
            end = chunk.start + chunk.size
            try:
                report.bytes += len(store.read_chunk(chunk.digest))
            except NotAnArchive as failure:
                report.wrong.append(f"{where}: bytes {chunk.start}–{end}: {failure}")
        if end != version.size:
            report.wrong.append(f"{where}: {end} bytes are stored, {version.size} should be")
    if version.parser > 0:
        census = store.census(version.id)
        records = sum(row.n for row in census)
        report.records += records
        report.problems += sum(row.n for row in census if row.disposition == "problem")
        if records != version.lines + version.glued:
            report.wrong.append(
                f"{where}: {version.lines + version.glued} records were read, {records} are accounted for"
            )


def _compare_with_source(store: Store, file: SourceFile, version: Version, report: VerifyReport) -> int:
    try:
        with Path(file.path).open("rb") as live:
            size = os.fstat(live.fileno()).st_size
            same = version.erased or common_bytes(store, version.id, live) == version.size
    except FileNotFoundError:
        report.gone += 1
        return 0
    except OSError as failure:
        report.differs.append(f"{file.path}: cannot be read ({failure.strerror})")
        return 0
    report.compared += 1
    report.grown += size > version.offset
    if same:
        return 0
    report.differs.append(f"{file.path}: differs from the archived version; `everturn sync` keeps both versions")
    return version.id
