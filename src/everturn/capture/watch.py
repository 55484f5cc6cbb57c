"""Follows the sources while they are written: a sync whenever something changed, and a full look now and then.

File events come late, twice or not at all on some systems, so they only say *when* to look; a sync says what changed.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from everturn.capture.sync import Report, Sync, sync

RESCAN_MS = 30_000
DEBOUNCE_MS = 200


def watch(job: Sync, stop: Event, tell: Callable[[Report], None], rescan_ms: int = RESCAN_MS) -> None:
    """Sync until `stop` is set; `tell` gets the report of every sync that did something."""
    from watchfiles import watch as file_events

    _round(job, tell)
    while not stop.is_set():
        roots = [str(root) for source in job.sources.values() for root in source.roots(job.places)]
        if not roots:
            stop.wait(rescan_ms / 1000)
            _round(job, tell)
            continue
        events = file_events(
            *roots, stop_event=stop, debounce=DEBOUNCE_MS, step=50, rust_timeout=rescan_ms, yield_on_timeout=True,
            raise_interrupt=True,
        )  # fmt: skip
        for _ in events:
            _round(job, tell)
            if [str(root) for source in job.sources.values() for root in source.roots(job.places)] != roots:
                break


def _round(job: Sync, tell: Callable[[Report], None]) -> None:
    report = sync(job)
    if report.files or report.gone or report.moved or report.rederived:
        tell(report)
