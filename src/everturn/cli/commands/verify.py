"""Prove that the archive is whole and equal to the live files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from everturn import clock
from everturn.cli import frame
from everturn.errors import UsageError
from everturn.text.printable import plural


@frame.command(
    "everturn verify",
    "everturn verify --no-live    without reading the agents' own files",
    "everturn verify --sign       append a signed manifest of everything stored",
    "everturn verify --signed     prove that nothing was removed or changed since",
)
@click.option(
    "--live/--no-live", default=True, help="Also compare with the agents' files on this machine, byte by byte."
)
@click.option("--sign", is_flag=True, help="Append a signed manifest to the chain beside the archive.")
@click.option("--signed", is_flag=True, help="Check the archive against every signed manifest.")
@click.option("--key", default="", metavar="HEX", help="For --signed: the public key that must have signed them all.")
def command(cx: frame.CommandContext, live: bool, sign: bool, signed: bool, key: str) -> int:
    """Hash every stored byte again, account for every record, and compare with the live sources.

    --sign appends a manifest to the file ARCHIVE.manifests, signed with ed25519; the key is `signing-key` in the data
    folder. --signed checks the signatures, the chain, and that every byte they state is still there; what was erased by
    `forget` is listed. Keep the public key and the last hash elsewhere. Needs cryptography: pip install 'everturn[signed]'.

    Exit code 1 if anything in the archive is wrong, 4 if only live files differ from it.
    """
    if sign or signed:
        return _check_chain(cx, sign, key)
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
                f"{found.gone:,} are only in the archive now"
            )
        for line in found.wrong:
            cx.out.emit(f"WRONG {cx.out.text(line)}")
        for line in found.differs:
            cx.out.emit(f"differs {cx.out.text(line)}")
        if not found.wrong:
            cx.out.emit("the archive is whole")
    if found.wrong:
        cx.out.warn(
            "the archive is damaged; restore a backup, or `everturn sync` after moving it away archives what is still on disk"
        )
        return 1
    return 4 if found.differs else 0


def _check_chain(cx: frame.CommandContext, sign: bool, key: str) -> int:
    """Append a manifest, or check them all."""
    from everturn.maintenance.manifests import check_manifests, sign_archive

    store = cx.store()
    if cx.settings.db.startswith(("postgres", "memory:")):
        raise UsageError("manifests are kept beside an archive that is a file; this one is not")
    chain = Path(f"{cx.settings.db}.manifests")
    if sign:
        found = sign_archive(store, chain, cx.settings.data / "signing-key", clock.now())
    else:
        found = check_manifests(store, chain, key)
    if cx.json:
        cx.out.emit_json("verify", found.wrong, signed=asdict(found))
    else:
        cx.out.emit(f"{plural(found.manifests, 'manifest')}, {plural(found.versions, 'version')}")
        cx.out.emit(f"public key {found.key}")
        cx.out.emit(f"last manifest {found.last}")
        for line in found.erased:
            cx.out.emit(f"erased {cx.out.text(line)}")
        for line in found.wrong:
            cx.out.emit(f"WRONG {cx.out.text(line)}")
        if not sign and not found.wrong:
            cx.out.emit("nothing was removed or changed since it was signed")
    return 1 if found.wrong else 0
