"""Health: what is safe and what is not, drift, disk, and the proofs one can ask for."""

from __future__ import annotations

import platform
from dataclasses import asdict

from everturn import __version__
from everturn.web.job_starts import EXAMINE, VERIFY, health_now
from everturn.web.request import PageReply, WebRequest


def draw(request: WebRequest) -> PageReply:
    site = request.site
    doctor = health_now(request)
    checks = [{name: request.line(value, 600) for name, value in asdict(check).items()} for check in doctor.checks]
    order = ("bad", "warn", "ok")
    values = {
        "checks": sorted(checks, key=lambda check: order.index(check["level"])),
        "worst": doctor.worst,
        "sizes": site.for_a_while("sizes", request.store.sizes),
        "url": request.line(site.archive.url, 400),
        "examined": site.jobs.last(EXAMINE, ""),
        "verified": site.jobs.last(VERIFY, ""),
        "versions": {"everturn": __version__, "Python": platform.python_version()},
        "machine": request.line(site.machine, 100),
    }
    return PageReply("health", values, "Health")
