"""Import transcripts from anywhere: files or folders."""

from __future__ import annotations

from pathlib import Path

import click

from everturn.cli import frame
from everturn.cli.commands.sync import make_sync_job, print_sync_report, processes_option, sync_progress
from everturn.cli.meaning_options import make_new_vectors
from everturn.errors import MissingPath


@frame.command("everturn add ~/Downloads/session.jsonl", "everturn add old-laptop/projects backup.jsonl")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--as", "source", default="", metavar="SOURCE", help="Read them as this source (`everturn sources`).")
@processes_option
def command(cx: frame.CommandContext, paths: tuple[Path, ...], source: str, processes: int | None) -> int:
    """Import the given files, and every transcript below the given folders.

    The format of each file is recognised by its content. The files are not changed or moved.
    """
    from everturn.capture.sync import add_paths

    for path in paths:
        if not path.exists():
            raise MissingPath(str(path))
    if source and source not in cx.sources:
        raise click.UsageError(f"there is no source {source!r}; `everturn sources` lists them")
    store = cx.store(create=True)
    report = add_paths(make_sync_job(cx, store, cx.places(), sync_progress(cx, "add"), processes), paths, source)
    cx.update_counts(store, wait=False)
    code = print_sync_report(cx, report)
    make_new_vectors(cx, store)
    nothing = not (report.new or report.grown or report.rewritten or report.unchanged or report.off or report.forgotten)
    return code or (3 if nothing else 0)
