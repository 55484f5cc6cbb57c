"""Copy the archive into one file while it is in use."""

from __future__ import annotations

from pathlib import Path

import click

from everturn import clock
from everturn.cli import frame
from everturn.cli.meaning_options import say_if_there


@frame.command("everturn backup ~/backups/everturn-2026-11-15.db")
@click.argument("path", type=click.Path(path_type=Path))
def command(cx: frame.CommandContext, path: Path) -> None:
    """Write a complete, checked copy of the archive to PATH, readable by you alone.

    Others may keep writing meanwhile. `everturn --db PATH sessions` reads it; `everturn merge PATH` brings it back. Vectors
    are not part of it: `everturn sync --meaning` makes them again.
    """
    from everturn.model.archive import KeptRow

    store = cx.store()
    target = path.expanduser().absolute()
    store.backup(str(target))
    with store.write():
        store.keep(KeptRow("backup", "", "", str(target), "{}", clock.now()))
    size = target.stat().st_size
    cx.out.emit_result("backup", f"{target}: {size / 1e6:,.1f} MB, checked", path=str(target), bytes=size)
    say_if_there(cx, store, "vectors are not part of a backup; `everturn sync --meaning` makes them again")
