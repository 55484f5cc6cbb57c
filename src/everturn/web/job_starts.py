"""How the archive is: what can be told at once, and what is found out by work of its own (`doctor`, `verify_archive`).

Restoring a session as a job: without a model, or with one that is configured and was confirmed.
"""

from __future__ import annotations

from dataclasses import asdict
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

EXAMINE, VERIFY = "examine", "verify"


def health_now(asked: WebRequest) -> HealthReport:
    """What can be told without writing; looked up once in a while, for it looks at every file of the agents."""
    site = asked.site
    return site.for_a_while("health", lambda: look_at_roots(asked.store, safe_roots(asked), asked.now))


def safe_roots(asked: WebRequest) -> list[SourceRoot]:
    """The agents' folders and how much of each is in the archive."""
    site = asked.site
    return site.for_a_while("roots", lambda: roots(asked.store, site.sources, site.places, site.machine, asked.now))


def start_examining(site: Site) -> WebJob:
    """Begin to prove health by writing, reading and searching."""

    def work(step: Step) -> Any:
        step(0, 1)
        found = site.archive.run_separately(
            lambda store: examine_archive(store, site.sources, site.places, site.machine, site.folder, site.clock)
        )
        site.forget("health", "roots")
        return {"worst": found.worst, "checks": [asdict(check) for check in found.checks]}

    return site.jobs.start(EXAMINE, "", work)


def start_verifying(site: Site) -> WebJob:
    """Begin to hash everything again."""

    def work(step: Step) -> Any:
        def check(store: Store) -> Any:
            return asdict(verify_archive(store, site.machine, lambda done, total, path: step(done, total)))

        return site.archive.run_separately(check)

    return site.jobs.start(VERIFY, "", work)


RESTORE = "restore"


def start_restore_job(asked: WebRequest, session: Session, wanted: RestoreOptionsJson) -> WebJob:
    """Begin; the same session is not restored twice at the same time. Raises Usage."""
    site = asked.site
    if wanted.model and (wanted.model not in site.models or site.open_model is None):
        raise UsageError(f"no model {wanted.model[:60]!r} is configured; see `everturn config --help`")
    if wanted.model and not wanted.confirmed:
        raise UsageError("a model sees the words of this session, and may cost money: that must be confirmed")
    if wanted.max_turns is not None and wanted.max_turns < 1:
        raise UsageError("max_turns is at least 1")

    def work(step: Step) -> Any:
        return site.archive.run_separately(lambda store: _make_document(site, store, session, wanted, step))

    return site.jobs.start(RESTORE, str(session.id), work)


def last_restore_job(site: Site, session: int) -> WebJob | None:
    """The newest restoring of a session in this run."""
    return site.jobs.last(RESTORE, str(session))


def _make_document(
    site: Site, store: Store, session: Session, wanted: RestoreOptionsJson, step: Step
) -> dict[str, Any]:
    from everturn.restore.job import RestoreOptions, RestoreTarget, restore_session
    from everturn.restore.markdown import document_json

    asker = site.open_model(store, session, wanted.model) if wanted.model and site.open_model is not None else None
    options = RestoreOptions(max_turns=wanted.max_turns)
    document = restore_session(RestoreTarget(store, session), site.sources, options, asker, step, site.clock)
    return document_json(document, archive_cleaner(store), 0)
