"""Look after an archive that a team shares."""

from __future__ import annotations

import click

from everturn.cli import frame


@frame.command(
    "everturn admin init --db postgresql://everturn@db.example.com/everturn",
    "everturn admin migrate --db postgresql://everturn@db.example.com/everturn",
    make=click.group,
    json=False,
)
def command(cx: frame.CommandContext) -> None:
    """Look after an archive that a team shares: mark it as shared, upgrade its schema.

    These commands use the database itself, so they are for those who may log in there. docs/team.md is the runbook.
    """


@frame.command("everturn admin init --db postgresql://everturn@db.example.com/everturn", make=command.command)
def init(cx: frame.CommandContext) -> None:
    """Create the archive if there is none, and mark it as shared.

    From then on no everturn upgrades the schema by itself: `everturn admin migrate` does.
    """
    store = cx.store(create=True)
    with store.write():
        store.set_setting("shared", "yes")
    if cx.json:
        cx.out.emit_json("admin", [], shared=True, schema=store.check(quick=True).schema)
    else:
        cx.out.say(f"{cx.out.text(store.url)} is shared; only `everturn admin migrate` upgrades its schema now")


@frame.command("everturn admin migrate --db postgresql://everturn@db.example.com/everturn", make=command.command)
def migrate(cx: frame.CommandContext) -> None:
    """Upgrade the schema to the one of this everturn, also of a shared archive.

    Make a backup first (`pg_dump`), upgrade the server, then the clients: an older everturn does not open a newer archive.
    """
    from contextlib import closing

    from everturn.store.contract import migrate_store

    with closing(migrate_store(cx.settings.db)) as store:
        health = store.check(quick=True)
        if cx.json:
            cx.out.emit_json("admin", [], schema=health.schema, engine=health.engine)
        else:
            cx.out.say(f"{cx.out.text(store.url)} has schema {health.schema}")
