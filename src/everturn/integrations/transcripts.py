"""Lines that arrive in memory instead of in a file, taken into the archive like a file that grows.

The bytes are the truth, as for every source: rows and index text are made from them in the same transaction, by the source
that knows their format. Which one that is shows in the first lines; until it shows, the bytes are kept unread, and when it
does they are read from the beginning. `forget`, `export`, `verify` and `rebuild` treat such a transcript like any other.
"""

from __future__ import annotations

from pathlib import Path

from everturn.capture.deriving import derive_pending
from everturn.capture.pieces import FilePiece, OpaqueReader, ReaderStart, empty_result
from everturn.capture.scan import FileCandidate
from everturn.capture.writing import ArchiveWriter, write_piece
from everturn.model.archive import SourceFile, Version
from everturn.sources import HEAD, Source, SourceCandidate, all_sources, no_workspace
from everturn.store import Store

#: Format of what no source knows yet. It is in no list of sources, so nothing reads it.
UNREAD = Source(
    name="unread transcript",
    title="Lines of a format that has not shown yet",
    parser=0,
    roots=lambda places: [],
    find=lambda root: iter(()),
    sniff=lambda path, head: None,
    reader=lambda found, state: OpaqueReader(),
    view=lambda record: None,
    workspace=no_workspace,
)


def append(desk: ArchiveWriter, path: str, data: bytes) -> None:
    """Inside a write transaction: put whole lines at the end of the transcript of that name."""
    known = desk.store.file(desk.machine, path)
    if known is None:
        source, found = recognise(path, data) or (UNREAD, SourceCandidate(Path(path)))
        _write_data(desk, FileCandidate(source, found, None, None, None), Version(number=1), data, "first")
        return
    file, version = known
    found = SourceCandidate(Path(file.path), file.kind, file.native_id, file.parent)
    source = all_sources().get(file.format, UNREAD)
    if source is not UNREAD:
        derive_pending(desk, source, file, version)
    _write_data(desk, FileCandidate(source, found, file, version, None), version, data, "")
    if source is UNREAD:
        _read_recognised(desk, file, version)


def read(store: Store, machine: str, path: str) -> bytes | None:
    """All lines of a transcript; None when there is none of that name."""
    known = store.file(machine, path)
    return store.read_raw(known[1].id, 0, known[1].size) if known is not None else None


def delete(store: Store, machine: str, path: str) -> None:
    """Inside a write transaction: take a transcript out of the archive, with all that was made from it."""
    known = store.file(machine, path)
    if known is not None:
        store.delete_file(known[0].id)


def recognise(path: str, head: bytes) -> tuple[Source, SourceCandidate] | None:
    """The source that knows these lines as its own."""
    claims = [
        (source, found)
        for source in all_sources().values()
        if (found := source.sniff(Path(path), head[:HEAD])) is not None and source.unpack is None
    ]
    return max(claims, key=lambda claim: claim[0].rank, default=None)


def _write_data(desk: ArchiveWriter, candidate: FileCandidate, version: Version, data: bytes, reason: str) -> None:
    write_piece(desk, _make_piece(desk.store, ReaderStart(candidate, "full", version, reason), data))


def _make_piece(store: Store, intake: ReaderStart, data: bytes) -> FilePiece:
    version, source = intake.version, intake.candidate.source
    reading, state, parser, failed = empty_result(), version.state, version.parser, ""
    if not version.id or parser == source.parser:
        waiting = store.read_raw(version.id, version.parsed, version.size - version.parsed) if version.id else b""
        try:
            reader = source.reader(intake.candidate.found, state)
            reading = reader.feed(waiting + data, version.parsed, True)
            state, parser = reader.state(), source.parser
        except Exception as failure:  # a defect of ours must not cost what was said
            reading, parser = empty_result(), -1
            failed = f"rows could not be made ({type(failure).__name__}) after byte {version.parsed}"
    end = version.size + len(data)
    changes: dict[str, int | bytes] = {
        "offset": end, "size": end, "file_size": end, "parsed": version.parsed + reading.consumed,
        "parser": parser, "state": state,
    }  # fmt: skip
    return FilePiece(intake, data, version.size, reading, version.offset, changes, last=True, failed=failed)


def _read_recognised(desk: ArchiveWriter, file: SourceFile, version: Version) -> None:
    """If the format shows by now, read everything from the beginning."""
    claim = recognise(file.path, desk.store.read_raw(version.id, 0, min(HEAD, version.size)))
    if claim is None:
        return
    source, found = claim
    desk.store.set_file(file.id, format=source.name, kind=found.kind, native_id=found.native_id, parent=found.parent)
    file.format, file.kind, file.native_id, file.parent = source.name, found.kind, found.native_id, found.parent
    derive_pending(desk, source, file, version)
