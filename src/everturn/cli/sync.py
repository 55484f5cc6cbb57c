"""Bring the archive up to date with every agent's history."""

from __future__ import annotations

from threading import Event
from typing import Any

import click

from everturn.cli import capturing, frame


@click.command(
    epilog=frame.examples(
        "everturn sync",
        "everturn sync --watch              keep going, follow sessions as they are written",
        "everturn sync --retry              try files in quarantine again now",
    )
)
@click.option("--watch", is_flag=True, help="Go on until Ctrl-C, taking in what is written as it is written.")
@click.option("--retry", is_flag=True, help="Also try files again that failed before and are waiting.")
@capturing.folder_options
@frame.common
def command(cx: frame.Context, watch: bool, retry: bool, **folders: Any) -> int:
    """Find every agent's sessions on this machine and take in what is new.

    Only new bytes are read. It can be stopped and started at any time, and run beside another one.
    """
    from everturn.capture.sync import sync

    store = cx.store(create=True)
    job = capturing.job_for(cx, store, capturing.places_with(cx, folders), capturing.drawn(cx, "sync"))
    if not watch:
        return capturing.tell(cx, sync(job, retry=retry))
    return _watch(cx, job)


def _tell(cx: frame.Context, report: Any) -> None:
    capturing.tell(cx, report)
    cx.out.stdout.flush()


def _watch(cx: frame.Context, job: Any) -> int:
    from everturn.capture.watch import watch

    cx.out.say("watching; Ctrl-C ends it")
    try:
        watch(job, Event(), lambda report: _tell(cx, report))
    except KeyboardInterrupt:
        cx.out.say("stopped; everything seen so far is in the archive")
    return 0
