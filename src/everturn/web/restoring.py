"""Restoring a session as a job: without a model, or with one that is configured and was confirmed."""

from __future__ import annotations

from typing import Any

from everturn.errors import Usage
from everturn.model.archive import Session
from everturn.recall.secrets import cleaner
from everturn.restore import Document
from everturn.store import Store
from everturn.web.asking import Asked
from everturn.web.jobs import Job, Step
from everturn.web.schemas import Wanted
from everturn.web.site import Site

RESTORE = "restore"


def start_restoring(asked: Asked, session: Session, wanted: Wanted) -> Job:
    """Begin; the same session is not restored twice at the same time. Raises Usage."""
    site = asked.site
    if wanted.model and (wanted.model not in site.models or site.open_model is None):
        raise Usage(f"no model {wanted.model[:60]!r} is configured; see `everturn config --help`")
    if wanted.model and not wanted.confirmed:
        raise Usage("a model sees the words of this session, and may cost money: that must be confirmed")
    if wanted.max_turns is not None and wanted.max_turns < 1:
        raise Usage("max_turns is at least 1")

    def work(step: Step) -> Any:
        return site.archive.aside(lambda store: _made(site, store, session, wanted, step))

    return site.jobs.start(RESTORE, str(session.id), work)


def restored_for(site: Site, session: int) -> Job | None:
    """The newest restoring of a session in this run."""
    return site.jobs.last(RESTORE, str(session))


def _made(site: Site, store: Store, session: Session, wanted: Wanted, step: Step) -> dict[str, Any]:
    from everturn.restore.document import mechanical
    from everturn.restore.writing import as_json

    if wanted.model:
        document = _by_model(site, store, session, wanted, step)
    else:
        last = wanted.max_turns - 1 if wanted.max_turns else None
        document = mechanical(store, site.sources, session, last, step)
    return as_json(document, cleaner(store), 0)


def _by_model(site: Site, store: Store, session: Session, wanted: Wanted, step: Step) -> Document:
    from everturn.restore.prompts import own_prompts
    from everturn.restore.stored import keep
    from everturn.restore.summaries import Options
    from everturn.restore.synthesis import restored
    from everturn.restore.writing import markdown

    assert site.open_model is not None
    clean, now = cleaner(store), site.clock()
    options = Options(max_turns=wanted.max_turns, prompts=own_prompts(), clean=clean, now=now)
    document = restored(store, site.sources, session, site.open_model(store, session, wanted.model), options, step)
    if document.model:
        keep(store, session, document, markdown(document, clean, 0), now)
    return document
