"""Makes derived rows from the raw layer: after a parser upgrade, after an interruption, or because the user asks.

Works in slices, each a transaction that moves `parsed`, so that it can stop anywhere and go on later. While a version's
rows are being made its `parser` is UNFINISHED.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from everturn.capture.file_reader import UNFINISHED, reader_for
from everturn.capture.writer import ArchiveWriter, SourceOrigin, note_failure, write_reading
from everturn.model.archive import SourceFile, Version
from everturn.sources.contract import Source, SourceCandidate

SLICE = 4 << 20


def rebuild_archive(
    desk: ArchiveWriter, sources: Mapping[str, Source], progress: Callable[[int, int, str], None]
) -> int:
    """Drop and remake the rows of every version there are bytes for; how many versions that were."""
    todo = []
    for file, _ in desk.store.files():
        source = sources.get(file.format)
        if source is not None:
            todo += [(source, file, version) for version in desk.store.versions(file.id) if has_bytes(version)]
    todo.sort(key=lambda item: item[2].id)
    with desk.store.write():
        desk.store.set_setting("parsers", "")  # if this is interrupted, the next sync looks at every version
    for _, _, version in reversed(todo):  # the newest first, so that little changes its owner on the way
        with desk.store.write():
            _start_over(desk, version)
    for number, (source, file, version) in enumerate(todo):
        progress(number, len(todo), file.path)
        derive_version(desk, source, file, version)
    upgrade_derived(desk, sources, [], progress)
    return len(todo)


def upgrade_derived(
    desk: ArchiveWriter,
    sources: Mapping[str, Source],
    behind: list[tuple[SourceFile, Version]],
    progress: Callable[[int, int, str], None],
) -> int:
    """Make rows again of files that are gone and, once after a parser changed, of all older versions too."""
    wanted = ",".join(f"{name}={source.parser}" for name, source in sorted(sources.items()))
    todo = list(behind)
    if desk.store.setting("parsers") != wanted:
        todo += [
            (file, version) for file, current in desk.store.files() for version in _older_versions(desk, file, current)
        ]
    done = 0
    for number, (file, version) in enumerate(todo):
        progress(number, len(todo), file.path)
        done += file.format in sources and derive_pending(desk, sources[file.format], file, version)
    if desk.store.setting("parsers") != wanted:
        with desk.store.write():
            desk.store.set_setting("parsers", wanted)
    return done


def derive_pending(desk: ArchiveWriter, source: Source, file: SourceFile, version: Version) -> bool:
    """Make the rows of one version again if its parser is old or its last attempt failed; False if they are fine."""
    if version.parser == source.parser or not has_bytes(version):
        return False
    if version.parser == -1 and file.retry_at > desk.now:
        return False
    if version.parser != UNFINISHED:
        with desk.store.write():
            _start_over(desk, version)
    derive_version(desk, source, file, version)
    return True


def derive_version(desk: ArchiveWriter, source: Source, file: SourceFile, version: Version) -> None:
    """Go on making rows from `version.parsed` to the end of what is stored."""
    store = desk.store
    reader = reader_for(source, SourceCandidate(Path(file.path), file.kind, file.native_id, file.parent), version.state)
    origin = SourceOrigin(source, file, version)
    unread, read_to = b"", version.parsed
    while True:
        data = unread + store.read_raw(version.id, read_to, min(SLICE, version.size - read_to))
        read_to += len(data) - len(unread)
        last = read_to >= version.size
        try:
            reading = reader.feed(data, version.parsed, last)
        except Exception as failure:
            _mark_unparseable(
                desk, file, version, f"the reader failed with {type(failure).__name__} after byte {version.parsed}"
            )
            return
        unread = data[reading.consumed :]
        with store.write():
            parsed, parser = version.parsed + reading.consumed, source.parser if last else UNFINISHED
            state = reader.state()
            store.set_version(version.id, parsed=parsed, parser=parser, state=state)
            write_reading(desk, origin, reading)
            if last and file.fail_reason:
                store.set_file(file.id, fail_reason="", fail_count=0, retry_at=0)
        version.parsed, version.parser, version.state = parsed, parser, state
        if last:
            return


def has_bytes(version: Version) -> bool:
    """Is there a raw layer to derive from?"""
    return version.id != 0 and version.mode in ("full", "redacted")


def _older_versions(desk: ArchiveWriter, file: SourceFile, current: Version) -> list[Version]:
    if current.number <= 1:
        return []
    return [version for version in desk.store.versions(file.id) if version.id != current.id]


def _start_over(desk: ArchiveWriter, version: Version) -> None:
    desk.store.drop_derived(version.id)
    version.parsed, version.parser, version.state, version.lines, version.glued = 0, UNFINISHED, b"", 0, 0
    desk.store.set_version(version.id, parsed=0, parser=UNFINISHED, state=b"", lines=0, glued=0)


def _mark_unparseable(desk: ArchiveWriter, file: SourceFile, version: Version, reason: str) -> None:
    version.parser = -1
    with desk.store.write():
        desk.store.set_version(version.id, parser=-1)
        note_failure(desk, file, reason)
