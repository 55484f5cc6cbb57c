"""The bytes of a source exactly as captured: any version, also of a source that is gone.

A session in its agent's own format with secrets masked, to pass on and to open in the agent.

Only secrets differ from the file: the records, their order and every other byte stay. Masking keeps JSON valid, in lines as in one
document over many lines, and equal secrets get equal placeholders, so that references between records still fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from msgspec import Struct

from everturn.errors import NothingFound
from everturn.model.archive import Session, SourceFile, Version
from everturn.secrets.redaction import Cleaner, is_json
from everturn.sessions.messages import has_words
from everturn.store.contract import Store


class Original(Struct, frozen=True):
    """A version of a source, and notes on its bytes."""

    file: SourceFile
    version: Version
    notes: list[str]


def read_original(store: Store, session: Session, number: int | None = None) -> Original:
    """Return the version a session was read from, or another one of its source. Raises NothingFound."""
    version = store.version(session.version)
    file, current = store.file_by_id(version.source)
    if number is not None and number != version.number:
        versions = {one.number: one for one in store.versions(version.source)}
        if number not in versions:
            raise NothingFound(_missing_version_text(session, number, list(versions.values())))
        version = versions[number]
    inside = store.sessions_in(version.id)
    if inside and not any(map(has_words, inside)):
        raise NothingFound(
            f"the bytes of session {session.native_id} were never kept: its workspace is in mode `structure`; "
            "`everturn show` tells what is known"
        )
    return Original(file, version, _version_notes(file, version, current, inside))


def raw_bytes(store: Store, version: int) -> Iterator[bytes]:
    """Yield the bytes of a version chunk by chunk. Raises NotAnArchive if one is damaged."""
    for chunk in store.chunks(version):
        yield store.read_chunk(chunk.digest)[: chunk.size]


def _missing_version_text(session: Session, number: int, versions: list[Version]) -> str:
    listed = ", ".join(f"{one.number} ({one.reason}, {one.size} bytes)" for one in versions)
    return f"session {session.native_id} has no version {number}; there are: {listed}"


def _version_notes(file: SourceFile, version: Version, current: Version, inside: list[Session]) -> list[str]:
    notes = []
    if version.id != current.id:
        notes.append(f"version {version.number} of {current.number}: the file was {current.reason} since")
    if file.state == "gone":
        notes.append("the source itself is gone; these bytes are what the archive kept")
    if len(inside) > 1:
        notes.append(f"the file holds {len(inside)} sessions; this is the whole file")
    if any(one.mode == "redacted" for one in inside):
        notes.append("secrets were taken out before it was stored (mode `redacted`): not identical to the source")
    if version.erased:
        notes.append(f"{version.erased} bytes were erased by `forget` and are blank")
    return notes


# --- A session in its agent's own format with secrets masked, to pass on and to open in the agent ---
_PEEK = 20  # lines that tell records in lines from one document
_LARGEST = 256 << 20  # bytes of a document that are masked as a whole


def masked_copy(pieces: Iterable[bytes], clean: Cleaner) -> Iterator[bytes]:
    """Yield the bytes of a file with secrets masked: line by line if its lines are records, else as a whole."""
    lines = _lines(pieces)
    first = list(islice(lines, _PEEK))
    if any(line.lstrip().startswith(b"{") and is_json(line) for line in first):
        yield from map(clean.line, chain(first, lines))
        return
    part: list[bytes] = []
    size = 0
    for line in chain(first, lines):
        part.append(line)
        size += len(line)
        if size > _LARGEST:
            yield clean.document(b"".join(part))
            part, size = [], 0
    yield clean.document(b"".join(part))


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    for piece in pieces:
        for line in piece.splitlines(keepends=True):
            rest.append(line)
            if line.endswith(b"\n"):
                yield b"".join(rest)
                rest = []
    if rest:
        yield b"".join(rest)
