"""A bundle: the raw layer of some sessions in one zip file, with a manifest. docs/format.md describes it.

    manifest.json          files, their versions, and the chunks of each version
    chunks/<sha256>        the bytes of a chunk, each once

The same sessions give the same bytes: nothing in a bundle depends on the time or the machine that wrote it. Nothing is
masked: a bundle is for moving and keeping sessions, not for showing them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from everturn.model.archive import Session, SourceFile, Version
from everturn.store.contract import Store

FORMAT = "everturn-bundle@1"
_IN_MEMORY = 16 << 20
_PIECE = 1 << 20
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def as_bundle(store: Store, sessions: Sequence[Session]) -> Iterator[bytes]:
    """Yield the bytes of a bundle with all versions of the files of these sessions, and of what belongs to them."""
    files = _files(store, sessions)
    with SpooledTemporaryFile(max_size=_IN_MEMORY) as target:
        with ZipFile(target, "w", ZIP_DEFLATED) as archive:
            written: set[str] = set()
            listed = [_file_facts(store, file, archive, written) for file in files]
            manifest = {"format": FORMAT, "files": listed}
            _add(archive, "manifest.json", json.dumps(manifest, indent=1, ensure_ascii=False).encode() + b"\n")
        target.seek(0)
        while piece := target.read(_PIECE):
            yield piece


def _files(store: Store, sessions: Sequence[Session]) -> list[SourceFile]:
    """Return the files of the sessions, those that name one of them as their parent, and the containers of all."""
    wanted = {store.version(session.version).source for session in sessions}
    names = {(session.agent, session.native_id) for session in sessions}
    every = [file for file, _ in store.files()]
    chosen = [file for file in every if file.id in wanted or (file.format, file.parent) in names]
    return sorted(chosen, key=lambda file: (file.machine, file.path))


def _file_facts(store: Store, file: SourceFile, archive: ZipFile, written: set[str]) -> dict[str, Any]:
    return {
        **{name: getattr(file, name) for name in ("path", "machine", "format", "kind", "native_id", "parent")},
        "versions": [_version_facts(store, version, archive, written) for version in store.versions(file.id)],
    }


def _version_facts(store: Store, version: Version, archive: ZipFile, written: set[str]) -> dict[str, Any]:
    whole, chunks = sha256(), []
    for chunk in store.chunks(version.id):
        data, name = store.read_chunk(chunk.digest), chunk.digest.hex()
        whole.update(data)
        chunks.append({"start": chunk.start, "size": chunk.size, "sha256": name})
        if name not in written:
            written.add(name)
            _add(archive, f"chunks/{name}", data)
    return {
        **{name: getattr(version, name) for name in ("number", "reason", "mode", "size", "erased")},
        "sha256": whole.hexdigest(),
        "chunks": chunks,
    }


def _add(archive: ZipFile, name: str, data: bytes) -> None:
    info = ZipInfo(name, _LONG_AGO)
    info.compress_type = ZIP_DEFLATED
    info.external_attr = 0o600 << 16
    archive.writestr(info, data)
