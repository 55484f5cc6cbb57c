"""Restoring a session as a job: without a model, or with one that is configured and was confirmed."""

from __future__ import annotations

from typing import Any

from everturn.errors import UsageError
from everturn.model.archive import Session
from everturn.recall.secrets import archive_cleaner
from everturn.restore import Document
from everturn.store import Store
from everturn.web.asking import WebRequest
from everturn.web.jobs import Step, WebJob
from everturn.web.schemas import RestoreOptionsJson
from everturn.web.site import Site

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
        return site.archive.aside(lambda store: _make_document(site, store, session, wanted, step))

    return site.jobs.start(RESTORE, str(session.id), work)


def last_restore_job(site: Site, session: int) -> WebJob | None:
    """The newest restoring of a session in this run."""
    return site.jobs.last(RESTORE, str(session))


def _make_document(
    site: Site, store: Store, session: Session, wanted: RestoreOptionsJson, step: Step
) -> dict[str, Any]:
    from everturn.restore.document import build_document
    from everturn.restore.writing import document_json

    if wanted.model:
        document = _restore_by_model(site, store, session, wanted, step)
    else:
        last = wanted.max_turns - 1 if wanted.max_turns else None
        document = build_document(store, site.sources, session, last, step)
    return document_json(document, archive_cleaner(store), 0)


def _restore_by_model(site: Site, store: Store, session: Session, wanted: RestoreOptionsJson, step: Step) -> Document:
    from everturn.restore.prompts import own_prompts
    from everturn.restore.stored import keep_summary
    from everturn.restore.summaries import RestoreOptions
    from everturn.restore.synthesis import restore_with_model
    from everturn.restore.writing import document_markdown

    assert site.open_model is not None
    clean, now = archive_cleaner(store), site.clock()
    options = RestoreOptions(max_turns=wanted.max_turns, prompts=own_prompts(), clean=clean, now=now)
    document = restore_with_model(
        store, site.sources, session, site.open_model(store, session, wanted.model), options, step
    )
    if document.model:
        keep_summary(store, session, document, document_markdown(document, clean, 0), now)
    return document
