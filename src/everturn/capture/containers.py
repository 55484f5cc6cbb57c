"""Files that hold conversations rather than being one: databases, archives, recordings, folders of small files.

The container's own bytes are kept like those of any file (a database through a copy made by its engine), and each
conversation in it becomes a source file of its own at `CONTAINER#NAME`, written out as lines, that grows, changes and is
read like any other. A container is kept without its bytes where they may not be kept as they are: under rules for
workspaces, after something in it was forgotten, or when it is very large.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from everturn.capture.intake import Intake
from everturn.capture.scan import FileCandidate, stat_columns
from everturn.model.archive import SourceFile, Version
from everturn.sources.contract import Member, SourceCandidate
from everturn.sources.toolkit.sqlite_file import snapshot

#: Bytes of larger containers are not kept; their conversations are.
LARGEST = 256 << 20
HEAD = 64 << 10


def is_container(candidate: FileCandidate) -> bool:
    """Must this file be taken apart?"""
    return candidate.source.unpack is not None and candidate.found.kind in ("container", "bundle")


def take_container(taking: Intake, candidate: FileCandidate) -> None:
    """Take in a container and every conversation in it."""
    if candidate.stat is None:
        taking.report.files += 1
        taking.fail(candidate, candidate.error)
        return
    candidate.columns = candidate.columns or stat_columns(candidate.stat)
    try:
        with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
            path = _readable_copy(candidate, Path(folder))
            _take_members(taking, candidate, path, Path(folder))
            _take_bytes(taking, candidate, path, Path(folder))
    except OSError as failure:
        _keep_damaged(taking, candidate)
        taking.fail(candidate, failure.strerror or "cannot be read")


def _keep_damaged(taking: Intake, candidate: FileCandidate) -> None:
    """The bytes of what cannot be taken apart: a repaired copy may never come. Of a database its engine must say which."""
    if candidate.source.is_database or candidate.found.kind != "container":
        return
    with suppress(OSError), tempfile.TemporaryDirectory(prefix="everturn-") as folder:
        _take_bytes(taking, candidate, candidate.found.path, Path(folder))
        taking.flush()


def _readable_copy(candidate: FileCandidate, folder: Path) -> Path:
    if not candidate.source.is_database or candidate.found.kind == "bundle":
        return candidate.found.path
    copy = folder / "copy.db"
    snapshot(candidate.found.path, copy, candidate.source.private)
    return copy


def _take_bytes(taking: Intake, candidate: FileCandidate, path: Path, folder: Path) -> None:
    """The container itself, last: its cursor says that everything in it has been seen."""
    taking.report.files += 1
    mode = _mode(taking, candidate, path)
    if mode == "structure":
        path = folder / "nothing"
        path.touch()
    with path.open("rb") as file:
        taking.take_open(candidate, file, mode)


def _mode(taking: Intake, candidate: FileCandidate, path: Path) -> str:
    policy, buried = taking.job.policy, taking.desk.buried_sessions
    forgotten = any(agent == candidate.source.name for agent, _ in buried)
    as_it_is = policy.is_simple and policy.mode == "full" and not forgotten and candidate.found.kind == "container"
    return "full" if as_it_is and path.stat().st_size <= LARGEST else "structure"


def _take_members(taking: Intake, candidate: FileCandidate, path: Path, folder: Path) -> None:
    store, unpack = taking.job.store, candidate.source.unpack
    assert unpack is not None
    container = _container_id(taking, candidate)
    before = {file.path: file for file, _ in store.files(taking.job.machine) if file.container == container}
    for number, member in enumerate(unpack(candidate.found, path)):
        one = _member_candidate(taking, candidate, member, container)
        before.pop(one.path, None)
        taking.report.files += 1
        lines = folder / f"member-{number}"
        _write_out(lines, member.lines)
        one.stat = os.stat(lines)
        one.columns = {
            "device": 0,
            "inode": 0,
            "file_size": one.stat.st_size,
            "mtime_ns": candidate.columns["mtime_ns"],
        }
        with lines.open("rb") as file:
            taking.take_open(one, file, taking.mode(one, file))
        lines.unlink()
    gone = [file for file in before.values() if file.state == "live"]
    taking.report.gone += len(gone)
    if gone:
        with store.write():
            for lost in gone:
                store.set_file(lost.id, state="gone")


def _container_id(taking: Intake, candidate: FileCandidate) -> int:
    """The container's row must be there before its members can point to it."""
    if candidate.known is None:
        taking.register(candidate)
    assert candidate.known is not None
    return candidate.known.id


def _member_candidate(taking: Intake, candidate: FileCandidate, member: Member, container: int) -> FileCandidate:
    found = SourceCandidate(Path(f"{candidate.path}#{member.name}"), member.kind, member.native_id, member.parent)
    row = taking.job.store.file(taking.job.machine, str(found.path)) or _adopt_packed_file(
        taking, candidate, found, container
    )
    known, version = row if row is not None else (None, None)
    return FileCandidate(candidate.source, found, known, version, None, container=container)


def _adopt_packed_file(
    taking: Intake, candidate: FileCandidate, member: SourceCandidate, container: int
) -> tuple[SourceFile, Version] | None:
    """The file that was packed into this container and is gone since: its row goes on as the member's."""
    store, machine = taking.job.store, taking.job.machine
    plain = candidate.found.path.with_name(member.path.name.rpartition("#")[2])
    row = store.file(machine, str(plain))
    if row is None or row[0].native_id != member.native_id or row[0].format != candidate.source.name or plain.exists():
        return None
    with store.write():
        store.set_file(row[0].id, path=str(member.path), container=container, state="live")
    return store.file(machine, str(member.path))


def _write_out(path: Path, lines: Iterator[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(lines)
