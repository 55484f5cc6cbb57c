"""Repair of a broken session: a new session that its agent can open.

The broken file is never changed, and the archive only records the origin of the new session. Copies of the file come from
the archive, whatever became of the file since; a file that the archive does not know is diagnosed by itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import structs

from everturn.errors import MissingPath, ResumeError, Unreadable, UsageError
from everturn.model.archive import Session, SourceFile, Version
from everturn.resume.diagnosis import BrokenSession, Diagnosis, SessionCopy
from everturn.resume.handoff import NativeOptions, NativePlan, plan_native
from everturn.sources.contract import HEAD, Source, SourceCandidate
from everturn.sources.recognition import describe_tie, tied, weigh_claims
from everturn.sources.toolkit.file_form import is_document, read_form
from everturn.sources.toolkit.record_check import split
from everturn.store.contract import Store

Sources = Mapping[str, Source]


def copies_of_session(store: Store, sources: Sources, session: Session, machine: str) -> BrokenSession:
    """Return the copies of an archived session. Raise UsageError if none has content."""
    if session.agent not in sources:
        raise UsageError(f"no source reads sessions of {session.agent}; `everturn sources` lists those there are")
    rows = [_file_row(store, one) for one in store.sessions_of(session.agent, session.native_id)]
    current, version = _file_row(store, session)
    others = sorted((row for row in rows if row[1].id != version.id), key=lambda row: (row[1].changed_at, row[1].id))
    kept = [row for row in [*others, (current, version)] if row[1].mode == "full"]
    kept = kept or [row for row in [*others, (current, version)] if row[1].mode == "redacted"]
    source = sources[session.agent]
    stored = [(f"version {one.number}", file.path, store.read_raw(one.id, 0, one.size)) for file, one in kept]
    copies = [_in_lines(source, SessionCopy(*copy)) for copy in stored]
    live = _live_copy(current, machine)
    live = _in_lines(source, live) if live is not None else None
    if live is not None and (not copies or copies[-1].data != live.data):
        copies.append(live)
    if not copies:
        raise UsageError(
            f"the words of session {session.native_id} were not kept (mode {session.mode}); nothing to repair"
        )
    found = SourceCandidate(Path(current.path), current.kind, current.native_id, current.parent)
    return BrokenSession(source, found, session.native_id, copies, _is_source_gone(store, current, machine))


def copies_of_file(sources: Sources, path: Path, source_name: str = "") -> BrokenSession:
    """Return a file that the archive does not know. Raise MissingPath, Unreadable, UsageError."""
    if not path.is_file():
        raise MissingPath(str(path))
    try:
        data = path.read_bytes()
    except OSError as failure:
        raise Unreadable(str(path), failure.strerror or "cannot be read") from failure
    source, found = _find_claim(sources, path.resolve(), data, source_name)
    copy = _in_lines(source, SessionCopy("file", str(found.path), data))
    return BrokenSession(source, found, found.native_id, [copy])


def _in_lines(source: Source, copy: SessionCopy) -> SessionCopy:
    """Return a copy whose records are lines of UTF-8, for a format that has lines."""
    if source.check is None or is_document(copy.data, os.path.basename(copy.path)):
        return copy
    made = read_form(copy.data)
    return structs.replace(copy, data=made.data, form=made.flaws) if made.flaws else copy


def copies_for_other_session(patient: BrokenSession, native_id: str) -> BrokenSession:
    """Return the same file for another session in it."""
    return structs.replace(patient, found=structs.replace(patient.found, native_id=native_id), native_id=native_id)


def session_in(store: Store, machine: str, path: Path) -> Session | None:
    """Return the session that the archive knows a file as."""
    row = store.file(machine, str(path.resolve()))
    sessions = store.sessions_in(row[1].id) if row is not None and row[1].id else []
    return next((one for one in sessions if row is not None and one.native_id == row[0].native_id), None)


def plan_repair(diagnosis: Diagnosis, sources: Sources, options: NativeOptions) -> NativePlan:
    """Plan the new session without writing it. Raise ResumeError if the old one cannot be repaired."""
    if diagnosis.refused or diagnosis.session is None:
        raise ResumeError(
            f"{diagnosis.patient.found.path} cannot be repaired: {diagnosis.refused}; look for a copy of it in a backup and "
            "`everturn repair` that"
        )
    return plan_native(diagnosis.store, sources, diagnosis.session, options)


def _file_row(store: Store, session: Session) -> tuple[SourceFile, Version]:
    version = store.version(session.version)
    return store.file_by_id(version.source)[0], version


def _live_copy(file: SourceFile, machine: str) -> SessionCopy | None:
    """Return the current file, if it is a plain file of this machine."""
    path = Path(file.path)
    if file.container or file.machine != machine or not path.is_absolute() or not path.is_file():
        return None
    try:
        return SessionCopy("file", file.path, path.read_bytes())
    except OSError:
        return None


def _is_source_gone(store: Store, file: SourceFile, machine: str) -> bool:
    holder = store.file_by_id(file.container)[0] if file.container else file
    return file.state == "gone" or (file.machine == machine and not os.path.exists(holder.path))


def _short_records(data: bytes) -> bytes:
    """Return the beginning of a file without damage and long records, such as pictures."""
    return b"\n".join(piece.raw for piece in split(data).pieces if len(piece.raw) < HEAD // 4)[:HEAD]


def _find_claim(sources: Sources, path: Path, data: bytes, source_name: str) -> tuple[Source, SourceCandidate]:
    """Return the source of a file by its readable records: damage at its beginning must not hide it."""
    if source_name and source_name not in sources:
        raise UsageError(f"there is no source {source_name!r}; `everturn sources` lists them")
    options = [source for name, source in sources.items() if source_name in ("", name)]
    for head in (data[:HEAD], _short_records(data), _short_records(read_form(data).data)):
        claims = weigh_claims(options, path, head)
        if tied(claims):
            raise UsageError(f"{path} {describe_tie(claims)}")
        if claims and claims[0].found.kind not in ("container", "bundle"):
            return claims[0].source, claims[0].found
        if claims:
            raise UsageError(
                f"{path} is not a file of lines; archive it with `everturn add`, then run `everturn repair SESSION`"
            )
    if source_name:
        return sources[source_name], SourceCandidate(path, "main", path.stem)
    raise ResumeError(
        f"{path} cannot be repaired: no record of any known format can be read in it; --as NAME says what it was"
    )
