"""Shared by `encrypt`, `decrypt` and `rekey`: the files of the archive, the config file, and the report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from everturn.cli import frame
from everturn.cli.meaning_options import vectors_path
from everturn.errors import BadConfig, NoArchive, UsageError
from everturn.text.printable import plural

if TYPE_CHECKING:
    from everturn.maintenance.encryption import ConversionReport
    from everturn.store.cipher import KeySource, KeySources

#: The passphrase that `encrypt` and `rekey` set, where nobody can be asked.
NEW_PASSPHRASE = "EVERTURN_NEW_PASSPHRASE"  # noqa: S105 -- the name of a variable

key_option = click.option(
    "--key", "source", default="", metavar="SOURCE", help="file:PATH, command:LINE, keyring:NAME or passphrase."
)
backups_option = click.option("--no-backups", is_flag=True, help="Leave the backups that the archive knows of.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def archive_file(cx: frame.CommandContext) -> Path:
    """Return the archive as a file. Raises UsageError for a server, NoArchive without one."""
    from everturn.store.cipher import check_available

    if cx.settings.db.startswith(("postgres", "memory:")):
        raise UsageError("only an archive in a file can be encrypted; a database server encrypts its own disk")
    if cx.settings.is_missing:
        raise NoArchive(cx.settings.db)
    check_available()
    return Path(cx.settings.db)


def files_of_archive(cx: frame.CommandContext, no_backups: bool) -> list[Path]:
    """Return the other databases of the archive. Empties the spool of the hooks."""
    from everturn.capture.spool import drain_spool
    from everturn.maintenance.encryption import databases_beside

    store = cx.store()
    drain_spool(store, cx.settings.state / "spool")
    backups = [] if no_backups else [row.key for row in store.kept("backup")]
    return databases_beside(Path(cx.settings.db), vectors_path(cx, store), backups)


def chosen_source(cx: frame.CommandContext, text: str) -> KeySource:
    """Return a source from the command line. Raises UsageError without one."""
    from everturn.store.cipher import KeySource, parse_key_source

    if not text:
        raise UsageError("say where the key is kept, such as --key file:~/.everturn-key or --key keyring:everturn")
    try:
        source = parse_key_source(text)
    except BadConfig:
        raise UsageError(f"{text!r} is none of file:PATH, command:LINE, keyring:NAME and passphrase") from None
    if source.kind != "file":
        return source
    path = Path(os.path.abspath(os.path.expanduser(source.name)))
    if path.resolve().parent == Path(cx.settings.db).resolve().parent:
        cx.out.warn("the key lies beside the archive: who copies the folder has both")
    return KeySource("file", str(path))


def new_secret(cx: frame.CommandContext, source: KeySource) -> str:
    """Return the secret of a source, created if there is none. A new passphrase is asked for twice."""
    from everturn.store.cipher import make_secret

    def ask() -> str:
        given = os.environ.get(NEW_PASSPHRASE) or cx.settings.encryption.passphrase
        return given or cx.ask_passphrase("New passphrase", confirm=True)

    return make_secret(source, ask)


def save_sources(cx: frame.CommandContext, key: str, previous: str = "") -> None:
    """Write where keys come from into the config file, the previous one first: it is needed for what is not rewritten."""
    from everturn.config_file import change_config, read_config

    now = read_config(cx.settings.config).encryption
    for name, old, new in (("previous", now.previous, previous), ("key", now.key, key)):
        if (old or "") != new:
            change_config(cx.settings.config, f"encryption.{name}", new)


def use_secrets(cx: frame.CommandContext, *pairs: tuple[KeySource | None, str]) -> KeySources:
    """Open files with these secrets from now on."""
    from everturn.store.cipher import KeySources, use_key_sources

    sources = KeySources()
    for source, secret in pairs:
        if source is not None:
            sources.add(source, secret)
    use_key_sources(sources)
    return sources


def report_conversion(cx: frame.CommandContext, report: ConversionReport, done: str, **more: Any) -> int:
    """Print what was rewritten; return the exit code."""
    if cx.json:
        left = [{"path": path, "why": why} for path, why in report.left]
        name = click.get_current_context().info_name or ""
        cx.out.emit_json(name, report.files, removed=report.removed, left=left, **more)
    else:
        for path in report.files:
            cx.out.emit(f"{done} {cx.out.text(path)}")
        if not report.files:
            cx.out.emit("nothing was left to do")
        if report.removed:
            cx.out.emit(f"deleted {plural(len(report.removed), 'file')} beside it that held words of it in plain text")
        for path, why in report.left:
            cx.out.warn(f"left as it is: {cx.out.text(path)}: {cx.out.text(why)}")
    return 4 if report.left else 0
