"""Restore a session: the one path of the command line, the web, the MCP server and the browser.

A target is a session of the archive or a file. A file that the archive holds unchanged is the session it was read into.
Any other file is read into an archive in memory, which goes away afterwards: nothing is written to the user's archive. If
a file holds several sessions, the newest is restored, and `notes` say so.

A document that a model wrote is kept with its model, prompts, cost and the turns it covers. It is stale as soon as the
session has a message it does not cover. Its text holds no secrets, and `forget` erases it with its session.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from everturn import clock
from everturn.capture.intake import SyncJob, SyncReport
from everturn.capture.scan import is_unchanged, look_at_file
from everturn.capture.sync import add_paths
from everturn.errors import MissingPath, NothingFound, UnknownSession, Unreadable, UsageError
from everturn.model.archive import KeptRow, Session, SourceFile
from everturn.model.conversation import prepared
from everturn.restore.document import Document
from everturn.sessions.lookup import resolve_session
from everturn.sessions.messages import Sources
from everturn.sessions.secrets import archive_cleaner
from everturn.sources.contract import SourceCandidate
from everturn.store.contract import SessionFilter, Store, open_store

if TYPE_CHECKING:  # a document without a model needs none of these
    from everturn.llm.asker import Asker
    from everturn.llm.protocol import Backend
    from everturn.restore.mechanical import Progress
    from everturn.restore.summaries import ModelRestoreOptions
    from everturn.restore.turns import TurnReports

#: Kind of the kept rows that hold one summary each.
SUMMARY_KIND = "summary"

#: How often a model may search the session, unless the caller says otherwise.
MAX_SEARCHES = 8

_MEMORY = "memory:"
_SESSION_KINDS = ("main", "subagent", "sidechain")


class RestoreTarget(Struct, frozen=True):
    """A session and the archive that holds it. The caller closes a `temporary` archive, which is in memory."""

    store: Store
    session: Session
    notes: tuple[str, ...] = ()
    temporary: bool = False


class RestoreOptions(Struct, frozen=True):
    """Options of a caller. All but `max_turns` matter only with a model."""

    max_turns: int | None = None  # only the first so many
    skip_evidence: bool = False
    max_searches: int = MAX_SEARCHES
    prompt_folder: str = ""  # the user's own prompts; "" for the bundled ones
    workspace: str = ""  # the folder whose files the model may search and read, if the user agreed; "" for none


class KeptSummary(Struct, frozen=True):
    model: str = ""
    prompt_version: str = ""
    turns: int = 0  # it covers the first so many turns
    last_seq: int = -1  # up to this message
    text: str = ""
    receipts: list[Any] = []
    at: int = 0  # ms UTC


_DEFAULTS = RestoreOptions()


# --- the job ---


def restore_session(
    target: RestoreTarget,
    sources: Sources,
    options: RestoreOptions = _DEFAULTS,
    asker: Asker | None = None,
    progress: Progress = lambda done, total: None,
    now: Callable[[], int] = clock.now,
) -> Document:
    """Return the document of a session, written by a model if there is an asker. A model's document is kept."""
    store, session = target.store, target.session
    if asker is None:
        from everturn.restore.mechanical import build_document

        return build_document(store, sources, session, _last_turn(options), progress)
    from everturn.restore.markdown import document_markdown
    from everturn.restore.synthesis import restore_with_model

    document = restore_with_model(store, sources, session, asker, _model_options(store, options, now), progress)
    if document.model and not target.temporary:
        keep_summary(store, session, document, document_markdown(document, archive_cleaner(store), 0), now())
    return document


def restore_turns(
    target: RestoreTarget,
    sources: Sources,
    options: RestoreOptions = _DEFAULTS,
    asker: Asker | None = None,
    progress: Progress = lambda done, total: None,
    now: Callable[[], int] = clock.now,
) -> TurnReports:
    """Return the turns of a session one by one, summarised by a model if there is an asker."""
    store, session = target.store, target.session
    if asker is None:
        from everturn.restore.turns import report_turns

        return report_turns(store, sources, session, _last_turn(options))
    from everturn.restore.synthesis import report_turns_with_model

    return report_turns_with_model(store, sources, session, asker, _model_options(store, options, now), progress)


def open_asker(store: Store, session: Session, backend: Backend, searches: int = MAX_SEARCHES) -> Asker:
    """Return an asker for a session that allows a few requests for each turn and search, and masks secrets."""
    from everturn.llm.asker import AskBudget, Asker

    most = 3 * session.n_turns + 2 * searches + 10
    return Asker(backend, AskBudget(requests=most), archive_cleaner(store), clock.now)


def _last_turn(options: RestoreOptions) -> int | None:
    """The last turn to read, 0-based; None for all."""
    return options.max_turns - 1 if options.max_turns else None


def _model_options(store: Store, options: RestoreOptions, now: Callable[[], int]) -> ModelRestoreOptions:
    from everturn.restore.prompts import load_prompts, own_prompts
    from everturn.restore.summaries import ModelRestoreOptions

    return ModelRestoreOptions(
        max_turns=options.max_turns,
        skip_evidence=options.skip_evidence,
        max_searches=options.max_searches,
        workspace=options.workspace,
        prompts=load_prompts(options.prompt_folder) if options.prompt_folder else own_prompts(),
        clean=archive_cleaner(store),
        now=now(),
    )


# --- kept summaries ---


def keep_summary(store: Store, session: Session, document: Document, text: str, at: int) -> None:
    """Keep a document that a model wrote. It replaces one of the same model and prompts over the same turns."""
    value = KeptSummary(
        document.model, document.prompt_version, document.turns, document.last_seq, text,
        msgspec.to_builtins(list(document.receipts)), at,
    )  # fmt: skip
    key = f"{document.model}/{document.prompt_version}/{document.last_seq}"
    row = KeptRow(SUMMARY_KIND, session.agent, session.native_id, key, msgspec.json.encode(value).decode(), at)
    with store.write():
        store.keep(row)


def kept_summaries(store: Store, session: Session) -> list[KeptSummary]:
    """Return the kept summaries of a session, newest first. Unreadable ones are left out."""
    summaries = []
    for row in store.kept(SUMMARY_KIND, session.native_id):
        if row.agent == session.agent:
            try:
                summaries.append(msgspec.json.decode(row.value, type=prepared(KeptSummary)))
            except msgspec.DecodeError:
                continue
    return sorted(summaries, key=lambda one: (-one.at, -one.last_seq))


def is_stale(session: Session, summary: KeptSummary) -> bool:
    """Whether the session has messages that the summary does not cover."""
    return session.n_messages - 1 > summary.last_seq


# --- the target ---


def find_target(name: str, store: Store | None, job: Callable[[Store], SyncJob]) -> RestoreTarget:
    """Return the session that `name` means: a file, a session id, the beginning of one, or `@last`.

    `store` is the user's archive, None if there is none. `job` makes the job that reads files into a given archive.
    Raises UnknownSession, AmbiguousSession, MissingPath, Unreadable, NothingFound, UsageError.
    """
    if not name.strip():
        raise UsageError("name a session or a file; @last is the newest session")
    path = Path(name)
    kind = _path_kind(path)
    if kind == "file":
        return _target_of_file(path.resolve(), store, job)
    if kind == "folder":
        raise UsageError(f"{name} is a folder; name a file in it, or archive it with `everturn add` and name a session")
    if kind:
        raise Unreadable(name, "not a regular file; name a file or a session")
    if store is None:
        raise MissingPath(name) if _looks_like_path(name) else UnknownSession(name)
    try:
        return RestoreTarget(store, resolve_session(store, name))
    except UnknownSession:
        if _looks_like_path(name):
            raise MissingPath(name) from None
        raise


def _target_of_file(path: Path, store: Store | None, job: Callable[[Store], SyncJob]) -> RestoreTarget:
    note = "read directly from the file; the file was not archived"
    if store is not None:
        archived = _find_archived(path, store, job(store))
        if isinstance(archived, RestoreTarget):
            return archived
        note = archived or note
    memory = open_store(_MEMORY)
    try:
        report = add_paths(job(memory), [path])
        rows, _ = memory.sessions(SessionFilter(kinds=_SESSION_KINDS), limit=10_000)
        session, several = _choose_newest([session for session, _ in rows], path, report)
    except BaseException:
        memory.close()
        raise
    return RestoreTarget(memory, session, (note, *several), temporary=True)


def _find_archived(path: Path, store: Store, job: SyncJob) -> RestoreTarget | str:
    """Return the session that the archive made of a file; else why the file must be read, "" if it is not archived."""
    row = store.file(job.machine, str(path))
    if row is None:
        return ""
    file, _ = row
    source = job.sources.get(file.format)
    if source is None:
        return ""
    candidate = SourceCandidate(path, file.kind, file.native_id, file.parent)
    if not is_unchanged(look_at_file(source, candidate, row)):
        return "read directly from the file, which has changed since it was archived; run `everturn sync` to archive it"
    sessions = [one for part in _file_parts(store, job, file) for one in store.sessions_in(part.version)]
    if not any(one.n_turns for one in sessions):
        return ""
    session, several = _choose_newest(sessions, path, SyncReport())
    return RestoreTarget(store, session, several)


def _file_parts(store: Store, job: SyncJob, file: SourceFile) -> list[SourceFile]:
    """Return the file, and the conversations that were taken out of it."""
    if file.kind not in ("container", "bundle"):
        return [file]
    return [file, *(one for one, _ in store.files(job.machine) if one.container == file.id)]


def _choose_newest(sessions: list[Session], path: Path, report: SyncReport) -> tuple[Session, tuple[str, ...]]:
    """Return the newest session, the longest of equally new ones, and a note if there are others."""
    candidates = [one for one in sessions if one.n_messages]
    if not candidates:
        for where, why in (*report.failed, *report.skipped):
            raise Unreadable(str(path), why or f"left out {where}")
        raise NothingFound(f"no conversation was found in {path}; `everturn sources` lists the supported formats")
    best = max(candidates, key=lambda one: (one.kind == "main", one.ended or 0, one.n_messages, one.id))
    others = sum(one.kind == best.kind for one in candidates) - 1
    if not others:
        return best, ()
    return best, (f"{path.name} contains {others + 1} sessions; this is the newest, {best.native_id}",)


def _looks_like_path(name: str) -> bool:
    return not name.startswith("@") and (any(sign in name for sign in "/\\") or bool(Path(name).suffix))


def _path_kind(path: Path) -> str:
    """Return "file", "folder", "other", or "" if there is nothing at the path."""
    try:
        if path.is_file():
            return "file"
        if path.is_dir():
            return "folder"
        return "other" if path.exists() else ""
    except (OSError, ValueError):  # a name too long, or with a NUL in it
        return ""
