"""Follows the sources while they are written: a sync whenever something changed, and a full look now and then.

File events come late, twice or not at all on some systems, so they only say *when* to look; a sync says what changed.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from everturn.capture.sync import SyncJob, SyncReport, sync_all

TICK_MS = 500
RESCAN_TICKS = 60
DEBOUNCE_MS = 200


def watch_sources(job: SyncJob, stop: Event, tell: Callable[[SyncReport], None]) -> None:
    """Sync until `stop` is set; `tell` gets the report of every sync that did something."""
    from watchfiles import watch as file_events

    _sync_and_tell(job, tell)
    while not stop.is_set():
        roots = _roots(job)
        if not roots:
            stop.wait(TICK_MS / 1000)
            continue
        events = file_events(
            *roots, stop_event=stop, debounce=DEBOUNCE_MS, step=50, rust_timeout=TICK_MS, yield_on_timeout=True,
            raise_interrupt=True,
        )  # fmt: skip
        for tick, changes in enumerate(events):
            # The first tick looks at what was written between the last sync and the start of the watch.
            if changes or tick % RESCAN_TICKS == 0:
                _sync_and_tell(job, tell)
            if tick % RESCAN_TICKS == 0 and _roots(job) != roots:
                break


def _roots(job: SyncJob) -> list[str]:
    return [str(root) for source in job.sources.values() for root in source.roots(job.places)]


def _sync_and_tell(job: SyncJob, tell: Callable[[SyncReport], None]) -> None:
    report = sync_all(job)
    if report.files or report.gone or report.moved or report.rederived:
        tell(report)
