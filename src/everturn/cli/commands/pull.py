"""Bring your sessions of other machines from your team's server."""

from __future__ import annotations

from dataclasses import asdict

import click

from everturn.cli import frame
from everturn.cli.commands.sync import make_sync_job
from everturn.team.download import Pull
from everturn.text.printable import plural


@frame.command("everturn pull", "everturn pull --from laptop")
@click.option("--from", "machines", multiple=True, metavar="MACHINE", help="Only of this machine; may be repeated.")
def command(cx: frame.CommandContext, machines: tuple[str, ...]) -> int | None:
    """Bring your own sessions of other machines from your team's server (`everturn team login URL`) into this archive.

    They come as they were pushed, with secrets masked unless they were pushed in full. A pull continues where the last one stopped.
    Your capture rules hold, and what you have forgotten here stays forgotten. Sessions of other people are never pulled.
    """
    from everturn.capture.sync import writer_for
    from everturn.team.client import TeamClient, load_login

    client = TeamClient(load_login(cx.settings.state / "team.json"))
    job = make_sync_job(cx, cx.store(create=True), cx.places())
    with cx.out.progress("pull") as step:
        done = Pull(
            writer_for(job), client, job.policy, machines, lambda number, total, path: step(number, path, total)
        ).run()
    line = (
        f"{plural(done.files, 'file')}: {done.pulled:,} pulled, {done.same:,} already here, {done.left_out:,} left out by your "
        f"rules, {done.forgotten:,} because you forgot them here; {done.bytes / 1e6:,.1f} MB"
    )
    cx.out.emit_result("pull", line, report=asdict(done))
    for path, why in done.failed:
        cx.out.warn(f"not pulled {path}: {why}")
    return 4 if done.failed else None
