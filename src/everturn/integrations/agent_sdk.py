"""Transcripts of the Agent SDK in the archive: `session_store=TranscriptStore("archive.db", fold_session_summary)`.

Each entry is one line of the session, searchable at once, and is returned when the SDK resumes. An entry with a uuid is
stored once, however often it is sent. The SDK is not imported: it needs methods, not a class, and its
`fold_session_summary` is passed in. Lines from memory are taken in like a growing file. Until the first lines show the
format, the bytes are kept unread; then they are read from the beginning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

from everturn.capture.file_reader import FileCandidate, FilePiece, ReaderStart, empty_result, opaque_source
from everturn.capture.writer import ArchiveWriter, derive_pending, write_piece
from everturn.errors import NotAnArchive
from everturn.integrations.archive import Archive, as_archive, as_store
from everturn.model.archive import SourceFile, Version
from everturn.sources.contract import (
    HEAD,
    Source,
    SourceCandidate,
    all_sources,
)
from everturn.sources.recognition import weigh_claims
from everturn.store.contract import Store
from everturn.store.kept import ItemOwner
from everturn.store.sql_store import SqlStore

#: The format of lines that no source recognises yet.
UNREAD = opaque_source("unread transcript", "Lines of a format that has not shown yet")


def append(writer: ArchiveWriter, path: str, data: bytes) -> None:
    """Append whole lines to a transcript, inside a write transaction."""
    known = writer.store.file(writer.machine, path)
    if known is None:
        source, found = recognise(path, data) or (UNREAD, SourceCandidate(Path(path)))
        _write_data(writer, FileCandidate(source, found, None, None, None), Version(number=1), data, "first")
        return
    file, version = known
    found = SourceCandidate(Path(file.path), file.kind, file.native_id, file.parent)
    source = all_sources().get(file.format, UNREAD)
    if source is not UNREAD:
        derive_pending(writer, source, file, version)
    _write_data(writer, FileCandidate(source, found, file, version, None), version, data, "")
    if source is UNREAD:
        _read_recognised(writer, file, version)


def read(store: Store, machine: str, path: str) -> bytes | None:
    """Return all lines of a transcript; None if there is none of that name."""
    known = store.file(machine, path)
    return store.read_raw(known[1].id, 0, known[1].size) if known is not None else None


def delete(store: Store, machine: str, path: str) -> None:
    """Delete a transcript and everything derived from it, inside a write transaction."""
    known = store.file(machine, path)
    if known is not None:
        store.delete_file(known[0].id)


def recognise(path: str, head: bytes) -> tuple[Source, SourceCandidate] | None:
    """Return the source that recognises these lines as one conversation."""
    claims = weigh_claims(list(all_sources().values()), Path(path), head[:HEAD])
    fitting = [claim for claim in claims if claim.found.kind not in ("container", "bundle")]
    return (fitting[0].source, fitting[0].found) if fitting else None


def _write_data(writer: ArchiveWriter, candidate: FileCandidate, version: Version, data: bytes, reason: str) -> None:
    write_piece(writer, _make_piece(writer.store, ReaderStart(candidate, "full", version, reason), data))


def _make_piece(store: Store, intake: ReaderStart, data: bytes) -> FilePiece:
    version, source = intake.version, intake.candidate.source
    reading, state, parser, failed = empty_result(), version.state, version.parser, ""
    if not version.id or parser == source.parser:
        waiting = store.read_raw(version.id, version.parsed, version.size - version.parsed) if version.id else b""
        try:
            reader = source.reader(intake.candidate.found, state)
            reading = reader.feed(waiting + data, version.parsed, True)
            state, parser = reader.state(), source.parser
        except Exception as failure:  # a defect of ours must not lose lines
            reading, parser = empty_result(), -1
            failed = f"rows could not be made ({type(failure).__name__}) after byte {version.parsed}"
    end = version.size + len(data)
    changes: dict[str, int | bytes] = {
        "offset": end, "size": end, "file_size": end, "parsed": version.parsed + reading.consumed,
        "parser": parser, "state": state,
    }  # fmt: skip
    return FilePiece(intake, data, version.size, reading, version.offset, changes, last=True, failed=failed)


def _read_recognised(writer: ArchiveWriter, file: SourceFile, version: Version) -> None:
    """Read everything from the beginning once the format is known."""
    claim = recognise(file.path, writer.store.read_raw(version.id, 0, min(HEAD, version.size)))
    if claim is None:
        return
    source, found = claim
    writer.store.set_file(file.id, format=source.name, kind=found.kind, native_id=found.native_id, parent=found.parent)
    file.format, file.kind, file.native_id, file.parent = source.name, found.kind, found.native_id, found.parent
    derive_pending(writer, source, file, version)


FAMILY = "transcripts"

#: (summary so far or None, key, new entries) → summary
Fold = Callable[[Any, Any, Any], Any]


class TranscriptStore:
    """A `SessionStore`. A key is a dict with `project_key`, `session_id` and perhaps `subpath`."""

    def __init__(self, archive: Archive | str | PathLike[str], fold: Fold, machine: str = "", owner: str = "") -> None:
        self.archive = as_archive(archive)
        self.fold, self.machine, self.owner = fold, machine, owner

    async def append(self, key: Any, entries: Sequence[Any]) -> None:
        """Append entries, all of them or none."""
        if entries:
            await self.archive.ado(self._append, key, entries)

    async def load(self, key: Any) -> list[Any] | None:
        """Return every entry in order; None for a key that was never written."""
        return await self.archive.ado(self._load, key)

    async def list_sessions(self, project_key: str) -> list[Any]:
        """Return ids and times of the last change, in ms."""
        rows = await self.archive.ado(SqlStore.item_owners, FAMILY, quote(project_key, safe=""))
        return [{"session_id": row.revision, "mtime": row.at} for row in rows]

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        """Return the SDK's summary of each session."""
        rows = await self.archive.ado(SqlStore.item_owners, FAMILY, quote(project_key, safe=""))
        return [json.loads(row.data) for row in rows]

    async def delete(self, key: Any) -> None:
        """Delete a session with its subagents, or one subagent."""
        await self.archive.ado(self._delete, key)

    async def list_subkeys(self, key: Any) -> list[str]:
        """Return the subpaths of a session."""
        rows = await self.archive.ado(SqlStore.item_owners, FAMILY, _session_scope(key))
        return [row.revision for row in rows]

    # --- in the archive's thread ---
    def _append(self, store: SqlStore, key: Any, entries: Sequence[Any]) -> None:
        path = _transcript_path(key)
        with store.write():
            fresh = _new_entries(store, path, entries)
            before = store.item_owner(FAMILY, path)
            at = max(self.archive.clock(), before.at + 1 if before else 0)
            if fresh:
                append(self._writer(store, at), path, b"".join(map(_entry_line, fresh)))
                store.add_items(FAMILY, path, [(uuid, b"") for entry in fresh if (uuid := _entry_uuid(entry))], at)
                store.set_item_owner(self._row(key, before, fresh, at))

    def _row(self, key: Any, before: ItemOwner | None, fresh: Sequence[Any], at: int) -> ItemOwner:
        if key.get("subpath"):
            return ItemOwner(FAMILY, _transcript_path(key), key["subpath"], _session_scope(key), b"", at)
        summary = self.fold(json.loads(before.data) if before else None, key, fresh)
        data = json.dumps({**summary, "mtime": at}).encode()
        return ItemOwner(FAMILY, _transcript_path(key), key["session_id"], quote(key["project_key"], safe=""), data, at)

    def _load(self, store: SqlStore, key: Any) -> list[Any] | None:
        with store.reading():
            data = read(as_store(store), self.machine, _transcript_path(key))
        if data is None:
            return None
        try:
            return [json.loads(line) for line in data.split(b"\n") if line.strip()]  # blank: forgotten
        except ValueError as failure:
            raise NotAnArchive(_transcript_path(key), "a line of it is damaged") from failure

    def _delete(self, store: SqlStore, key: Any) -> None:
        with store.write():
            paths = [_transcript_path(key)]
            if not key.get("subpath"):
                paths += [row.owner for row in store.item_owners(FAMILY, _session_scope(key))]
            for path in paths:
                delete(as_store(store), self.machine, path)
                store.drop_lists(path)

    def _writer(self, store: SqlStore, at: int) -> ArchiveWriter:
        buried = store.tombstones()
        sessions = frozenset((row.agent, row.key) for row in buried if row.kind == "session")
        messages = frozenset(int(row.key) for row in buried if row.kind == "message")
        return ArchiveWriter(as_store(store), self.machine, self.owner, at, sessions, messages)


def _new_entries(store: SqlStore, path: str, entries: Sequence[Any]) -> list[Any]:
    """Return the entries that are not stored yet, each uuid once."""
    seen = set(store.items_by_key(FAMILY, path, [uuid for entry in entries if (uuid := _entry_uuid(entry))]))
    fresh = []
    for entry in entries:
        uuid = _entry_uuid(entry)
        if not uuid or uuid not in seen:
            fresh.append(entry)
            seen.add(uuid)
    return fresh


def _entry_uuid(entry: Any) -> str:
    uuid = entry.get("uuid")
    return uuid if isinstance(uuid, str) else ""


def _entry_line(entry: Any) -> bytes:
    """Encode an entry as the agent writes it; lone surrogates are escaped."""
    try:
        return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _transcript_path(key: Any) -> str:
    """Return the name of a transcript among the files of the archive. No file on disk has such a name."""
    subpath = key.get("subpath")
    return f"transcript:{_session_scope(key)}{'/' + quote(subpath, safe='/') if subpath else ''}.jsonl"


def _session_scope(key: Any) -> str:
    """Return the scope that lists the subagents of a session."""
    return f"{quote(key['project_key'], safe='')}/{quote(key['session_id'], safe='')}"
