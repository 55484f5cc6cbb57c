"""Put the files of a session back where its agent had them, byte for byte, under their own names.

A session whose file is gone needs no new form if the archive has all of its bytes: the file, those in the folder of the same
name (subagents, large results) and those that belong to it elsewhere (copies of files, lists of tasks) are written again. Only files that are missing are written. One that exists is never touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from everturn.model.archive import Session, SourceFile, Version
from everturn.sources.contract import NewSession, SearchPlaces, Source
from everturn.store.contract import Store

_PIECE = 4 << 20  # bytes read at a time


class OriginalFile(Struct, frozen=True):
    """A file that is gone, and the version of it that the archive has."""

    path: Path
    version: int
    size: int

    def pieces(self, store: Store) -> Iterator[bytes]:
        """Yield its bytes."""
        for start in range(0, self.size, _PIECE):
            yield store.read_raw(self.version, start, min(_PIECE, self.size - start))


def find_originals(store: Store, source: Source, session: Session, places: SearchPlaces) -> list[OriginalFile]:
    """Return the missing files of a session, its own first; none if the archive or its agent cannot give it back as it was."""
    file, version = store.file_by_id(store.version(session.version).source)
    if session.state != "current" or file.container or not is_whole(file, version):
        return []
    if not _is_where_agent_looks(store, source, session, Path(file.path), places) or os.path.lexists(file.path):
        return []
    beside = os.path.join(os.path.splitext(file.path)[0], "")
    others = [
        OriginalFile(Path(one.path), last.id, last.size)
        for one, last in store.files(file.machine)
        if (one.path.startswith(beside) or (one.format == file.format and one.parent == session.native_id))
        and not (one.container or os.path.lexists(one.path))
        and is_whole(one, last)
    ]
    return [OriginalFile(Path(file.path), version.id, version.size), *others]


def is_whole(file: SourceFile, version: Version) -> bool:
    """Whether the archive has every byte as it was: nothing masked, nothing erased."""
    return file.mode == version.mode == "full" and not version.erased and version.size == version.offset


def _is_where_agent_looks(store: Store, source: Source, session: Session, path: Path, places: SearchPlaces) -> bool:
    if any(path.is_relative_to(root) for root in source.roots(places)):
        return True
    if source.native is None:
        return False
    workspace = store.session(session.id)[1].workspace  # the folders of the agent may be gone with the file
    return source.native.place(places, NewSession(session.native_id, workspace, session.started or 0)) == path
