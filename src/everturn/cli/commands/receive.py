"""Receive sessions that programs send over HTTP."""

from __future__ import annotations

import signal
from pathlib import Path
from threading import Event
from typing import Any

import click

from everturn.cli import frame
from everturn.cli.commands.sync import make_sync_job, print_sync_report
from everturn.errors import UsageError


@frame.command(
    "everturn receive",
    "everturn receive --port 4399",
    json=False,
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=4318, show_default=True, help="0 takes any that is free."
)
def command(cx: frame.CommandContext, port: int) -> None:
    """Receive spans over OTLP from programs on this machine, until Ctrl-C, and archive the conversations in them.

    It listens on 127.0.0.1 only, at /v1/traces, for OTLP over HTTP in protobuf (which needs a package of its own) or JSON. A
    request is answered when what it holds is in the archive. Spans that are not about a model are left out. The capture rules
    of your config apply.
    """
    from everturn.capture.receiver import receive

    store = cx.store(create=True)
    if cx.settings.db.startswith(("postgres", "memory:")):
        raise UsageError("sessions are received into an archive in a file; leave out --db")
    if cx.is_encrypted:
        raise UsageError("an encrypted archive receives nothing: for a while the spans would be readable beside it")
    folder = Path(cx.settings.db).absolute().parent / "received"
    stop = Event()
    signal.signal(signal.SIGTERM, lambda number, at: stop.set())

    def ready(address: str) -> None:
        cx.out.say(f"receiving at {address}; Ctrl-C ends")

    def tell(report: Any) -> None:
        print_sync_report(cx, report)
        cx.out.stdout.flush()

    try:
        receive(make_sync_job(cx, store, cx.places()), folder, port, ready, tell, stop)
    except KeyboardInterrupt:
        pass
    cx.update_counts(store, wait=False)
    cx.out.say("stopped; everything that was answered is in the archive")
