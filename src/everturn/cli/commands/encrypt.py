"""Encrypt the archive, its vectors and its backups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from everturn.cli import encryption_options, frame
from everturn.errors import UsageError
from everturn.text.printable import plural

if TYPE_CHECKING:
    from everturn.store.cipher import KeySource


@frame.command(
    "everturn encrypt --key file:~/.everturn-key           a new random key in a file of yours",
    "everturn encrypt --key keyring:everturn               a new random key in the system keyring",
    "everturn encrypt --key 'command:pass show everturn'   what a password manager prints",
    "everturn encrypt --key passphrase                     asked for at every command",
)
@encryption_options.key_option
@click.option("--keep-chats", is_flag=True, help="Leave the Markdown files of `everturn chat`.")
@encryption_options.backups_option
@encryption_options.yes_option
def command(cx: frame.CommandContext, source: str, keep_chats: bool, no_backups: bool, yes: bool) -> int:
    """Encrypt the archive with its log, its vectors, the copies beside it and the backups it knows of.

    SOURCE says where the key is kept. A file or keyring entry that does not exist is created with a random key. SOURCE is
    written into the config file; without the key nobody can read the archive, so keep a copy of it elsewhere. Close other
    programs that have the archive open first. If this is interrupted the archive is whole, encrypted or not: run it again.
    """
    from everturn.maintenance.encryption import convert_archive, prepared_files
    from everturn.store.cipher import is_encrypted

    archive = encryption_options.archive_file(cx)
    text = source or cx.settings.encryption.key
    chosen = encryption_options.chosen_source(cx, text)
    if is_encrypted(archive) and source and str(chosen) != cx.settings.encryption.key:
        raise UsageError("the archive is encrypted already; `everturn rekey` changes its key")
    others = encryption_options.files_of_archive(cx, no_backups)
    chats, foreign = ([], []) if keep_chats else _saved_chats(cx)
    copies = [*prepared_files(cx.settings.data, cx.settings.state), *chats]
    _confirm(cx, chosen, others, chats, yes)
    secret = encryption_options.new_secret(cx, chosen)
    if source:
        encryption_options.save_sources(cx, str(chosen), cx.settings.encryption.previous)
    cx.close_store()
    encryption_options.use_secrets(cx, (chosen, secret))
    report = convert_archive(archive, others, secret)
    for path in copies:
        path.unlink(missing_ok=True)
        report.removed.append(str(path))
    report.left += [(str(path), "not a conversation of this archive") for path in foreign]
    return encryption_options.report_conversion(cx, report, "encrypted", key=str(chosen))


def _confirm(cx: frame.CommandContext, source: KeySource, others: list[Path], chats: list[Path], yes: bool) -> None:
    cx.out.say(f"{cx.settings.db} and {plural(len(others), 'other database')}, with the key from {source}")
    if chats:
        cx.out.say(
            f"{plural(len(chats), 'saved chat')} in {chats[0].parent} will be deleted; they are in the archive, "
            "and `everturn export --as markdown` writes them again (--keep-chats leaves them)"
        )
    if not yes and not click.confirm("Encrypt?", err=True):
        raise click.Abort


def _saved_chats(cx: frame.CommandContext) -> tuple[list[Path], list[Path]]:
    """Return the saved conversations that are in the archive, and the files that are something else."""
    from everturn.chat.earlier_sessions import saved_files

    return saved_files(cx.settings.data / "chats", cx.store())
