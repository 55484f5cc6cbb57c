"""Summaries that a model wrote, kept with what one must know about them: model, prompts, cost, and what they cover.

They are artefacts beside the records and never in their place. A summary is stale as soon as the session has a message it
does not cover. The text is kept without secrets. `forget` erases them with their session.

What is to be restored: a session of the archive, or a file that need not be in it.

A file that the archive holds as it lies on the disk is the session it was read into. Any other is read into an archive in
memory, which goes away afterwards: nothing is written to the user's own. Where a file holds several sessions the newest is
meant, and `notes` say so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from everturn.capture.intake import SyncJob, SyncReport
from everturn.capture.scan import is_unchanged, look_at_file
from everturn.capture.sync import add_paths
from everturn.errors import MissingPath, NothingFound, UnknownSession, Unreadable, UsageError
from everturn.model.archive import KeptRow, Session, SourceFile
from everturn.restore.document import Document
from everturn.sessions.lookup import resolve_session
from everturn.sources.contract import SourceCandidate
from everturn.store.contract import SessionFilter, Store, open_store

KIND = "summary"


class KeptSummary(Struct, frozen=True):
    """A kept summary."""

    model: str = ""
    prompt_version: str = ""
    turns: int = 0  # it covers the first so many turns
    last_seq: int = -1  # up to this message
    text: str = ""
    receipts: list[Any] = []
    at: int = 0  # ms UTC


def keep_summary(store: Store, session: Session, document: Document, text: str, at: int) -> None:
    """Keep what a model made of a session; the same model and prompts over the same turns replace what they made before."""
    value = KeptSummary(
        document.model, document.prompt_version, document.turns, document.last_seq, text,
        msgspec.to_builtins(list(document.receipts)), at,
    )  # fmt: skip
    key = f"{document.model}/{document.prompt_version}/{document.last_seq}"
    row = KeptRow(KIND, session.agent, session.native_id, key, msgspec.json.encode(value).decode(), at)
    with store.write():
        store.keep(row)


def kept_summaries(store: Store, session: Session) -> list[KeptSummary]:
    """The kept summaries of a session, the newest first. What cannot be read is left out."""
    found = []
    for row in store.kept(KIND, session.native_id):
        if row.agent == session.agent:
            try:
                found.append(msgspec.json.decode(row.value, type=KeptSummary))
            except msgspec.DecodeError:
                continue
    return sorted(found, key=lambda one: (-one.at, -one.last_seq))


def is_stale(session: Session, one: KeptSummary) -> bool:
    """Whether the session has gone on since."""
    return session.n_messages - 1 > one.last_seq


MEMORY = "memory:"
_SESSION_KINDS = ("main", "subagent", "sidechain")


class RestoreTarget(Struct, frozen=True):
    """A session and the archive that holds it. `temporary`: the archive is in memory and is the caller's to close."""

    store: Store
    session: Session
    notes: tuple[str, ...] = ()
    temporary: bool = False


def find_target(wanted: str, store: Store | None, job: Callable[[Store], SyncJob]) -> RestoreTarget:
    """The session that `wanted` names: a file, an id, a beginning of one, `@last`.

    `store` is the user's archive, None when there is none; `job` says how files are taken into a given archive.
    Raises UnknownSession, AmbiguousSession, MissingPath, Unreadable, NothingFound, Usage.
    """
    if not wanted.strip():
        raise UsageError("no session or file is named; @last is the newest session")
    path = Path(wanted)
    if _is_file(path):
        return _target_of_file(path.resolve(), store, job)
    if _is_folder(path):
        raise UsageError(
            f"{wanted} is a folder; name a file in it, or take it in with `everturn add` and name a session"
        )
    if _is_existing(path):
        raise Unreadable(wanted, "not an ordinary file; name a file or a session")
    if store is None:
        raise MissingPath(wanted) if _looks_like_path(wanted) else UnknownSession(wanted)
    try:
        return RestoreTarget(store, resolve_session(store, wanted))
    except UnknownSession:
        if _looks_like_path(wanted):
            raise MissingPath(wanted) from None
        raise


def _target_of_file(path: Path, store: Store | None, job: Callable[[Store], SyncJob]) -> RestoreTarget:
    note = "read from the file itself; it is not in the archive and was not put there"
    if store is not None:
        held = _find_archived(path, store, job(store))
        if isinstance(held, RestoreTarget):
            return held
        note = held or note
    memory = open_store(MEMORY)
    try:
        report = add_paths(job(memory), [path])
        session, several = _choose_newest(_all_sessions(memory), path, report)
    except BaseException:
        memory.close()
        raise
    return RestoreTarget(memory, session, (note, *several), temporary=True)


def _find_archived(path: Path, store: Store, job: SyncJob) -> RestoreTarget | str:
    """The session that the archive made of the file; else why the file must be read, "" when it is not there at all."""
    row = store.file(job.machine, str(path))
    if row is None:
        return ""
    file, _ = row
    source = job.sources.get(file.format)
    if source is None:
        return ""
    found = SourceCandidate(path, file.kind, file.native_id, file.parent)
    if not is_unchanged(look_at_file(source, found, row)):
        return "read from the file itself, which has changed since it was archived; `everturn sync` brings it in"
    sessions = [one for part in _file_parts(store, job, file) for one in store.sessions_in(part.version)]
    if not any(one.n_turns for one in sessions):
        return ""
    session, several = _choose_newest(sessions, path, SyncReport())
    return RestoreTarget(store, session, several)


def _file_parts(store: Store, job: SyncJob, file: SourceFile) -> list[SourceFile]:
    """The file, and the conversations that were taken out of it."""
    if file.kind not in ("container", "bundle"):
        return [file]
    return [file, *(one for one, _ in store.files(job.machine) if one.container == file.id)]


def _all_sessions(store: Store) -> list[Session]:
    rows, _ = store.sessions(SessionFilter(kinds=_SESSION_KINDS), limit=10_000)
    return [session for session, _ in rows]


def _choose_newest(sessions: list[Session], path: Path, report: SyncReport) -> tuple[Session, tuple[str, ...]]:
    """The newest session, of those equally new the longest."""
    told = [one for one in sessions if one.n_messages]
    if not told:
        for where, why in (*report.failed, *report.skipped):
            raise Unreadable(str(path), why or f"left out {where}")
        raise NothingFound(f"there is no conversation in {path}; `everturn sources` lists what can be read")
    best = max(told, key=lambda one: (one.kind == "main", one.ended or 0, one.n_messages, one.id))
    others = sum(one.kind == best.kind for one in told) - 1
    if not others:
        return best, ()
    note = f"{path.name} holds {others + 1} sessions; this is the newest, {best.native_id}"
    return best, (note,)


def _looks_like_path(wanted: str) -> bool:
    return not wanted.startswith("@") and (any(sign in wanted for sign in "/\\") or bool(Path(wanted).suffix))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, or with a NUL in it
        return False


def _is_existing(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
