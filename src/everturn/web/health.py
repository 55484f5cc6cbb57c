"""How the archive is: what can be told at once, and what is found out by work of its own (`doctor`, `verify_archive`)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from everturn.capture.health import HealthReport, SourceRoot, examine_archive, look_at_roots, roots
from everturn.capture.verify import verify_archive
from everturn.store import Store
from everturn.web.asking import WebRequest
from everturn.web.jobs import Step, WebJob
from everturn.web.site import Site

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
        found = site.archive.aside(
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

        return site.archive.aside(check)

    return site.jobs.start(VERIFY, "", work)
