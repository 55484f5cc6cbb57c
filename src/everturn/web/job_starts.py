"""The jobs of the web pages: examine and verify the archive, and restore a session; and the health that needs no job."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from everturn.errors import UsageError
from everturn.maintenance.doctor import HealthReport, SourceRoot, examine_archive, look_at_roots, roots
from everturn.maintenance.verify import verify_archive
from everturn.model.archive import Session
from everturn.sessions.secrets import archive_cleaner
from everturn.store.contract import Store
from everturn.web.request import WebRequest
from everturn.web.schemas import RestoreOptionsJson
from everturn.web.site import Site, Step, WebJob

EXAMINE, VERIFY, SYNC = "examine", "verify", "sync"


def health_now(request: WebRequest) -> HealthReport:
    """Return the health that can be found without writing. Cached for a while, because it reads every file of the agents."""
    site = request.site
    return site.for_a_while("health", lambda: look_at_roots(request.store, safe_roots(request), request.now))


def safe_roots(request: WebRequest) -> list[SourceRoot]:
    """Return the agents' folders and how much of each is in the archive."""
    site = request.site
    return site.for_a_while("roots", lambda: roots(request.store, site.sources, site.places, site.machine, request.now))


def start_examining(site: Site) -> WebJob:
    """Start a job that proves health by writing, reading and searching."""

    def work(step: Step) -> Any:
        step(0, 1)
        found = site.archive.run_separately(
            lambda store: examine_archive(store, site.sources, site.places, site.machine, site.folder, site.clock)
        )
        site.forget("health", "roots")
        return {"worst": found.worst, "checks": [asdict(check) for check in found.checks]}

    return site.jobs.start(EXAMINE, "", work)


def start_sync(site: Site) -> WebJob:
    """Start to take in what is new. Raises UsageError where the server only shows the archive."""
    sync = site.sync
    if sync is None:
        raise UsageError("this server does not sync; start it without --no-sync")

    def work(step: Step) -> Any:
        done = site.archive.run_separately(lambda store: sync(store, step))
        site.forget()
        site.live.publish()
        return done

    return site.jobs.start(SYNC, "", work)


def start_verifying(site: Site) -> WebJob:
    def work(step: Step) -> Any:
        def check(store: Store) -> Any:
            return asdict(verify_archive(store, site.machine, lambda done, total, path: step(done, total)))

        return site.archive.run_separately(check)

    return site.jobs.start(VERIFY, "", work)


RESTORE = "restore"


def start_restore_job(request: WebRequest, session: Session, options: RestoreOptionsJson) -> WebJob:
    """Start to restore a session, unless it is being restored already. Raises UsageError."""
    site = request.site
    if options.model and (options.model not in site.models or site.open_model is None):
        raise UsageError(f"no model {options.model[:60]!r} is configured; see `everturn config --help`")
    if options.model and not options.confirmed:
        raise UsageError("a model receives the text of this session and may cost money; this must be confirmed")
    if options.workspace and not options.model:
        raise UsageError("workspace needs a model; name one")
    if options.workspace and options.workspace != readable_workspace(request, session):
        raise UsageError("a model may read the working folder of the session itself, if it is there, and no other")
    if options.max_turns is not None and options.max_turns < 1:
        raise UsageError("max_turns must be at least 1")

    def work(step: Step) -> Any:
        return site.archive.run_separately(lambda store: _make_document(site, store, session, options, step))

    return site.jobs.start(RESTORE, str(session.id), work)


def readable_workspace(request: WebRequest, session: Session) -> str:
    """Return the working folder of a session if it is a folder of this machine, else ""."""
    folder = request.store.session(session.id)[1].workspace
    return folder if folder and Path(folder).is_absolute() and Path(folder).is_dir() else ""


def last_restore_job(site: Site, session: int) -> WebJob | None:
    return site.jobs.last(RESTORE, str(session))


def _make_document(site: Site, store: Store, session: Session, given: RestoreOptionsJson, step: Step) -> dict[str, Any]:
    from everturn.restore.job import RestoreOptions, RestoreTarget, restore_session
    from everturn.restore.markdown import document_json

    asker = site.open_model(store, session, given.model) if given.model and site.open_model is not None else None
    options = RestoreOptions(max_turns=given.max_turns, workspace=given.workspace)
    document = restore_session(RestoreTarget(store, session), site.sources, options, asker, step, site.clock)
    return document_json(document, archive_cleaner(store), 0)
