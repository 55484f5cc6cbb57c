"""Change the key of an encrypted archive."""

from __future__ import annotations

from everturn.cli import encryption_options, frame
from everturn.errors import UsageError


@frame.command(
    "everturn rekey --key file:~/.everturn-key-2      a new random key",
    "everturn rekey --key passphrase",
    "everturn rekey                                   complete an interrupted one",
)
@encryption_options.key_option
@encryption_options.backups_option
def command(cx: frame.CommandContext, source: str, no_backups: bool) -> int:
    """Encrypt the archive, its vectors, the copies beside it and the backups it knows of with another key.

    A file or keyring entry that does not exist is created with a random key. If this is interrupted, the config file names
    both keys, so that everything can be read; run it again without --key to complete it.
    """
    from everturn.maintenance.encryption import convert_archive
    from everturn.store.cipher import is_encrypted, key_sources

    archive = encryption_options.archive_file(cx)
    if not is_encrypted(archive):
        raise UsageError("the archive is not encrypted; `everturn encrypt` does that")
    others = encryption_options.files_of_archive(cx, no_backups)
    known = cx.settings.encryption
    old = key_sources()
    chosen = encryption_options.chosen_source(cx, source or (known.key if known.previous else ""))
    if source and str(chosen) == known.key and chosen.kind != "passphrase":
        raise UsageError(f"{chosen} is the key in use; name another file or entry, and a new key is created there")
    pairs = [(one, old.secret(number)) for number, one in enumerate(old.sources)]
    secret = encryption_options.new_secret(cx, chosen) if source else pairs[0][1]
    if source:
        encryption_options.save_sources(cx, str(chosen), known.key if str(chosen) != known.key else "")
    cx.close_store()
    encryption_options.use_secrets(cx, (chosen, secret), *pairs)
    report = convert_archive(archive, others, secret)
    if not report.left:
        encryption_options.save_sources(cx, str(chosen))
    return encryption_options.report_conversion(cx, report, "encrypted again", key=str(chosen))
