"""Rewrite an encrypted archive without encryption."""

from __future__ import annotations

import click

from everturn.cli import encryption_options, frame


@frame.command("everturn decrypt", "everturn decrypt --no-backups --yes")
@encryption_options.backups_option
@encryption_options.yes_option
def command(cx: frame.CommandContext, no_backups: bool, yes: bool) -> int:
    """Rewrite the archive, its vectors, the copies beside it and the backups it knows of without encryption.

    The key is left where it is, and the config file no longer names it. If this is interrupted, run it again.
    """
    from everturn.maintenance.encryption import convert_archive

    archive = encryption_options.archive_file(cx)
    others = encryption_options.files_of_archive(cx, no_backups)
    if not yes and not click.confirm(f"Write {cx.settings.db} in plain text?", err=True):
        raise click.Abort
    cx.close_store()
    report = convert_archive(archive, others, None)
    if not report.left:  # else the key is still needed
        encryption_options.save_sources(cx, "")
    return encryption_options.report_conversion(cx, report, "decrypted")
