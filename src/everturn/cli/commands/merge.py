"""Bring another archive into this one, also from SQLite into PostgreSQL."""

from __future__ import annotations

from dataclasses import asdict

import click

from everturn.cli import frame
from everturn.cli.commands.sync import make_sync_job
from everturn.cli.meaning_options import say_if_there
from everturn.errors import UsageError
from everturn.maintenance.merge import merge_archive
from everturn.store.contract import open_store
from everturn.text.printable import plural


@frame.command(
    "everturn merge laptop.db",
    "everturn --db postgresql://team@server/everturn merge ~/.local/share/everturn/archive.db",
)
@click.argument("other", metavar="ARCHIVE")
def command(cx: frame.CommandContext, other: str) -> None:
    """Take everything ARCHIVE holds into this archive (the one of --db).

    What both have is kept once. ARCHIVE is not changed. Running it again adds only what is new. Vectors of ARCHIVE are not
    taken: `everturn sync --meaning` makes them here.
    """
    from everturn.capture.sync import writer_for

    theirs = open_store(other, create=False)
    try:
        mine = cx.store(create=True)
        if theirs.url == mine.url:
            raise UsageError("an archive cannot be merged into itself; name the target with --db")
        job = make_sync_job(cx, mine, cx.places())
        desk = writer_for(job)
        with cx.out.progress("merge") as step:
            done = merge_archive(desk, theirs, cx.sources, lambda n, total, path: step(n, path, total), job.policy)
    finally:
        theirs.close()
    say_if_there(cx, mine, "what was added has no vectors here yet; `everturn sync --meaning` makes them")
    line = (
        f"{plural(done.files, 'file')}: {plural(done.added, 'version')} added, {done.continued:,} continued, {done.same:,} already here, "
        f"{done.forgotten:,} left out because they were forgotten here, {done.off:,} by your rules; "
        f"{done.bytes / 1e6:,.1f} MB"
    )
    cx.out.emit_result("merge", line, merged=asdict(done))
