"""Give the calls that hooks have heard of their place in a turn."""

from __future__ import annotations

from pathlib import Path

import click

from everturn.cli import frame
from everturn.cli.commands.sync import make_sync_job, sync_progress


@frame.command("everturn enrich --transcript ~/sessions/3f2a9c11.jsonl", "everturn enrich --json")
@click.option(
    "--transcript", "paths", multiple=True, type=click.Path(path_type=Path), metavar="PATH",
    help="Take in this transcript first; may be given several times.",
)  # fmt: skip
def command(cx: frame.CommandContext, paths: tuple[Path, ...]) -> int:
    """Match the calls that `everturn-hook` has recorded with those of transcripts, by session and call id.

    A call that is found has its turn, its place in it and its parallel batch from then on (the view `invocations`). `sync`
    does the same by itself; this is for a transcript from elsewhere, or for now.
    """
    from everturn.capture.spool import drain_spool, enrich_calls
    from everturn.capture.sync import add_paths
    from everturn.errors import MissingPath

    for path in paths:
        if not path.exists():
            raise MissingPath(str(path))
    store = cx.store(create=True)
    job = make_sync_job(cx, store, cx.places(), sync_progress(cx, "enrich"))
    report = add_paths(job, paths) if paths else None
    drained = drain_spool(store, cx.settings.state / "spool", job.policy)
    done = enrich_calls(store)
    cx.update_counts(store)  # it names the turns
    if cx.json:
        cx.out.emit_json("enrich", [], found=done.found, left=done.left, heard=drained.rows)
    else:
        cx.out.emit(f"calls found in transcripts: {done.found:,}; only heard of by the hook: {done.left:,}")
    for where, why in (*((*report.skipped, *report.failed) if report else ()), *drained.problems):
        cx.out.warn(f"{where}: {why}" if why else f"left out {where}")
    if report is not None and report.failed:
        return 4
    return 0 if done.found or done.left else 3
