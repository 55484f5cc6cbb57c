"""Give the calls that hooks have heard of their place in a turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from everturn.capture.spool import drain_spool, enrich_calls
from everturn.cli import frame
from everturn.cli.commands.sync import folder_options, make_sync_job, search_places, sync_progress
from everturn.errors import MissingPath


@frame.command(
    "everturn enrich",
    "everturn enrich --transcript ~/sessions/3f2a9c11.jsonl",
    "everturn enrich --json",
)
@click.option(
    "--transcript", "paths", multiple=True, type=click.Path(path_type=Path), metavar="PATH",
    help="Take in this transcript first; may be given several times.",
)  # fmt: skip
@folder_options
def command(cx: frame.CommandContext, paths: tuple[Path, ...], **folders: Any) -> int:
    """Match the calls that `everturn-hook` has recorded with those of transcripts, by session and call id.

    Transcripts of sessions that the hook has told about and that are not in the archive yet are looked for by their id, in
    the folders of the agents and in those given here. A call that is found has its turn, its place in it and its parallel
    batch from then on (the view `invocations`). `sync` does the same by itself; this is for a transcript from elsewhere, or
    for now.
    """
    from everturn.capture.sync import add_paths, find_transcripts

    for path in paths:
        if not path.exists():
            raise MissingPath(str(path))
    store = cx.store(create=True)
    job = make_sync_job(cx, store, search_places(cx, folders), sync_progress(cx, "enrich"))
    drained = drain_spool(store, cx.settings.state / "spool", job.policy)
    named = [*paths, *find_transcripts(job, store.unmatched_hook_calls())]
    report = add_paths(job, named) if named else None
    done = enrich_calls(store)
    cx.update_counts(store)  # it names the turns
    line = f"calls found in transcripts: {done.found:,}; only heard of by the hook: {done.left:,}"
    cx.out.emit_result("enrich", line, found=done.found, left=done.left, heard=drained.rows)
    for where, why in (*((*report.skipped, *report.failed) if report else ()), *drained.problems):
        cx.out.warn(f"{where}: {why}" if why else f"left out {where}")
    if report is not None and report.failed:
        return 4
    return 0 if done.found or done.left else 3
