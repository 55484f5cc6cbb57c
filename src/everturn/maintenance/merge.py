"""Merges one archive into another, on any engines: bytes are copied, rows are derived again.

What both have is stored once: a version that is the beginning of the other archive's is continued, a different one is
added. Sessions without content have no bytes; their rows are copied. The other archive is not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from everturn.capture.policy import MODES, Policy
from everturn.capture.writer import ArchiveWriter, derive_pending, derive_version
from everturn.model.archive import Session, SessionGrowth, SourceFile, Version
from everturn.sources.contract import Source
from everturn.store.contract import Store

SLICE = 1 << 20


@dataclass
class MergeReport:
    files: int = 0
    added: int = 0  # versions
    continued: int = 0
    same: int = 0
    forgotten: int = 0  # left out: forgotten here
    off: int = 0  # left out by the capture rules
    kept: int = 0
    bytes: int = 0


def merge_archive(
    writer: ArchiveWriter,
    other: Store,
    sources: Mapping[str, Source],
    progress: Callable[[int, int, str], None],
    policy: Policy = Policy(),  # noqa: B008 -- frozen
) -> MergeReport:
    """Merge `other` into the archive of `writer`, except what the capture rules do not allow here."""
    report = MergeReport()
    files = other.files()
    left_out: set[str] = set()
    for number, (file, _) in enumerate(files):
        progress(number, len(files), file.path)
        report.files += 1
        if {(file.format, file.native_id), (file.format, file.parent)} & writer.buried_sessions:
            report.forgotten += 1
            continue
        if not _is_allowed(other, file, sources.get(file.format), policy):
            report.off += 1
            left_out.add(file.native_id)
            left_out.update(row.native_id for v in other.versions(file.id) for row in other.sessions_in(v.id))
            continue
        _merge_file(writer, other, file, sources.get(file.format), report)
    with writer.store.write():
        for row in other.kept(""):
            if row.subject not in left_out - {""}:
                writer.store.keep(row)
                report.kept += 1
        writer.store.bury(other.tombstones())
        buried = {row.key for row in writer.store.tombstones() if row.kind == "session"}
        writer.store.add_hook_events(
            msgspec.structs.replace(row, own=None)
            for row in other.hook_events()
            if row.session not in buried | left_out
        )
    return report


def _is_allowed(other: Store, file: SourceFile, source: Source | None, policy: Policy) -> bool:
    """Whether the rules allow a file as the other archive has it. Its bytes are copied unchanged, so they cannot be masked."""
    for version in other.versions(file.id):
        rows = other.sessions_in(version.id)
        workspace = next((text for row in rows if (text := other.session(row.id)[1].workspace)), "")
        mode = policy.decide(workspace, file.path, source is not None and source.is_placeless).mode
        if mode == "off" or MODES.index(version.mode) > MODES.index(mode):
            return False
    return True


def _merge_file(
    writer: ArchiveWriter, other: Store, file: SourceFile, source: Source | None, report: MergeReport
) -> None:
    mine = writer.store.file(file.machine, file.path)
    versions = writer.store.versions(mine[0].id) if mine is not None else []
    for theirs in other.versions(file.id):
        match = next((own for own in versions if _is_same_beginning(writer.store, own, other, theirs)), None)
        if match is not None and match.size >= theirs.size:
            report.same += 1
        elif match is not None:
            report.continued += 1
            start = match.size
            with writer.store.write():
                writer.store.move_cursor(match.id, match.offset, offset=theirs.offset, size=theirs.size, mtime_ns=0)
                for at in range(start, theirs.size, SLICE):
                    writer.store.append_raw(match.id, at, other.read_raw(theirs.id, at, min(SLICE, theirs.size - at)))
            match.size, match.offset = theirs.size, theirs.offset
            report.bytes += theirs.size - start
            if source is not None:
                derive_version(writer, source, file, match)
        else:
            report.added += 1
            versions.append(_add_version(writer, other, file, theirs, source, report))


def _is_same_beginning(store: Store, own: Version, other: Store, theirs: Version) -> bool:
    if own.mode != theirs.mode or own.mode == "structure":
        return own.mode == theirs.mode and (own.offset, own.head) == (theirs.offset, theirs.head)
    common = min(own.size, theirs.size)
    return all(
        store.read_raw(own.id, at, min(SLICE, common - at)) == other.read_raw(theirs.id, at, min(SLICE, common - at))
        for at in range(0, common, SLICE)
    ) and (common > 0 or own.size == theirs.size)


def _add_version(
    writer: ArchiveWriter, other: Store, file: SourceFile, theirs: Version, source: Source | None, report: MergeReport
) -> Version:
    store = writer.store
    with store.write():
        mine = store.file(file.machine, file.path)
        source_id = mine[0].id if mine is not None else store.add_file(msgspec.structs.replace(file, id=0, version=0))
        number = max((version.number for version in store.versions(source_id)), default=0) + 1
        version = msgspec.structs.replace(
            theirs, id=0, source=source_id, number=number, parsed=0, parser=0, state=b"", lines=0, glued=0
        )
        version.id = store.add_version(version)
        for at in range(0, theirs.size if theirs.mode != "structure" else 0, SLICE):
            store.append_raw(version.id, at, other.read_raw(theirs.id, at, min(SLICE, theirs.size - at)))
        if theirs.mode == "structure":
            _copy_rows(store, other, theirs, version)
    report.bytes += theirs.size
    if source is not None:
        derive_pending(writer, source, file, version)
    return version


def _copy_rows(store: Store, other: Store, theirs: Version, mine: Version) -> None:
    """Copy the structure of sessions without content."""
    for session in other.sessions_in(theirs.id):
        own = store.open_session(
            Session(
                0, session.agent, session.native_id, mine.id, session.kind, session.parent, session.mode,
                machine=session.machine, owner=session.owner, client=session.client, workspace_key=session.workspace_key,
            )
        )  # fmt: skip
        growth = SessionGrowth(
            list(other.messages(session.id)), other.turns(session.id), other.steps(session.id), other.calls(session.id),
            [], other.links(session.id), [], [], model=session.model, started=session.started, ended=session.ended,
            n_prompts=session.n_prompts,
        )  # fmt: skip
        store.append(own.id, growth)
    store.set_version(mine.id, parser=theirs.parser, parsed=theirs.parsed, lines=theirs.lines, glued=theirs.glued)
    store.add_census([msgspec.structs.replace(row, version=mine.id) for row in other.census(theirs.id)])
