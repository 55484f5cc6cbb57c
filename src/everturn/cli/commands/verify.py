"""Prove that the archive is whole and equal to the live files."""

from __future__ import annotations

from dataclasses import asdict

import click

from everturn.cli import frame
from everturn.text.printable import plural


@frame.command("everturn verify", "everturn verify --no-live    without reading the agents' own files")
@click.option(
    "--live/--no-live", default=True, help="Also compare with the agents' files on this machine, byte by byte."
)
def command(cx: frame.CommandContext, live: bool) -> int:
    """Hash every stored byte again, account for every record, and compare with the live sources.

    Exit code 1 if anything in the archive is wrong, 4 if only live files differ from it.
    """
    from everturn.maintenance.verify import verify_archive

    with cx.out.progress("verify") as step:
        found = verify_archive(cx.store(), cx.settings.machine, lambda done, total, path: step(done, path, total), live)
    if cx.json:
        cx.out.emit_json("verify", found.wrong + found.differs, findings=asdict(found))
    else:
        cx.out.emit(
            f"{plural(found.files, 'file')}, {plural(found.versions, 'version')}, {found.bytes / 1e6:,.1f} MB in {plural(found.chunks, 'chunk')}"
        )
        cx.out.emit(
            f"{plural(found.records, 'record')} accounted for, of them {found.problems:,} could not be read and are kept as they are"
        )
        if live:
            cx.out.emit(
                f"{found.compared:,} live files compared ({found.grown:,} have grown since the last sync), "
                f"{found.gone:,} are only here any more"
            )
        for line in found.wrong:
            cx.out.emit(f"WRONG {cx.out.text(line)}")
        for line in found.differs:
            cx.out.emit(f"differs {cx.out.text(line)}")
        if not found.wrong:
            cx.out.emit("the archive is whole")
    if found.wrong:
        cx.out.warn(
            "the archive is damaged; restore a backup, or `everturn sync` after moving it away takes in what is still on disk"
        )
        return 1
    return 4 if found.differs else 0
