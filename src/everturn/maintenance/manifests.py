"""Tamper evidence: an append-only chain of signed manifests over the raw layer, in a file beside the archive.

A manifest states the size and SHA-256 of every stored version at one time, names the manifest before it by its hash, and is
signed with ed25519. The key is in a file of its own, so that who can change the archive cannot sign it anew unless they
can also read the key. `check_manifests` compares the archive with every manifest: bytes that are missing or differ are
wrong, unless the archive says that they were erased; that is listed too. A version that has grown is compared up to the
size it had.

Keep the public key, and the hash of the last manifest, elsewhere: who has the key could sign a whole new chain.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from everturn.capture.writer import has_bytes
from everturn.errors import EverturnError
from everturn.model.archive import SourceFile, Version
from everturn.model.conversation import prepared
from everturn.store.contract import Store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_SLICE = 4 << 20


class SignedVersion(Struct, frozen=True):
    """A version as a manifest states it. `erased`: bytes that had been erased in it by then."""

    machine: str
    path: str
    number: int
    size: int
    sha256: str
    erased: int = 0


class Manifest(Struct, frozen=True):
    """The signed part of a line: `previous` is the hash of the line before, "" for the first."""

    n: int
    at: int
    previous: str
    key: str  # public
    versions: tuple[SignedVersion, ...]


class ManifestLine(Struct, frozen=True):
    manifest: msgspec.Raw
    signature: str


@dataclass
class ManifestReport:
    manifests: int = 0
    versions: int = 0
    last: str = ""  # hash of the last line
    key: str = ""
    wrong: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)


def sign_archive(store: Store, chain: Path, key_file: Path, now: int) -> ManifestReport:
    """Append a manifest of the archive as it is now. Raises EverturnError if the chain is broken already."""
    key = _load_key(key_file)
    lines = _lines(chain)
    versions = tuple(_state(store, file, version) for file, version in _versions(store))
    public = key.public_key().public_bytes_raw().hex()
    manifest = msgspec.json.encode(
        Manifest(len(lines) + 1, now, sha256(lines[-1]).hexdigest() if lines else "", public, versions)
    )
    line = msgspec.json.encode(ManifestLine(msgspec.Raw(manifest), key.sign(manifest).hex()))
    with open(os.open(chain, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return ManifestReport(len(lines) + 1, len(versions), sha256(line).hexdigest(), public)


def check_manifests(store: Store, chain: Path, public: str = "") -> ManifestReport:
    """Verify the chain, and the archive against every manifest of it. `public`: the key that must have signed all."""
    report = ManifestReport()
    lines = _lines(chain)
    if not lines:
        raise EverturnError(f"{chain} does not exist or is empty; `everturn verify --sign` starts it")
    now = {(file.machine, file.path, version.number): version for file, version in _versions(store)}
    stated: dict[SignedVersion, int] = {}
    before = b""
    for number, line in enumerate(lines, 1):
        manifest = _check_line(line, number, before, public or report.key, report)
        if manifest is not None:
            report.key = report.key or manifest.key
            stated |= {one: number for one in manifest.versions if one not in stated}
        before = line
    report.manifests, report.last, report.versions = len(lines), sha256(before).hexdigest(), len(stated)
    buried = {row.key for row in store.tombstones() if row.kind == "session"}
    for one, number in stated.items():
        _check_version(store, one, number, now.get((one.machine, one.path, one.number)), buried, report)
    return report


def _check_line(line: bytes, number: int, before: bytes, public: str, report: ManifestReport) -> Manifest | None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        outer = msgspec.json.decode(line, type=prepared(ManifestLine))
        manifest = msgspec.json.decode(outer.manifest, type=prepared(Manifest))
        signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(manifest.key))
        signer.verify(bytes.fromhex(outer.signature), bytes(outer.manifest))
    except (msgspec.DecodeError, ValueError, InvalidSignature):
        report.wrong.append(f"manifest {number}: its signature is not valid")
        return None
    if public and manifest.key != public:
        report.wrong.append(f"manifest {number}: it was signed with another key")
    if manifest.n != number or manifest.previous != (sha256(before).hexdigest() if before else ""):
        report.wrong.append(f"manifest {number}: it does not follow the one before; a manifest was removed or changed")
    return manifest


def _check_version(
    store: Store, one: SignedVersion, number: int, version: Version | None, buried: set[str], report: ManifestReport
) -> None:
    where = f"{one.path} version {one.number} (manifest {number})"
    if version is None:
        is_erased = any(name and name in one.path for name in buried)
        (report.erased if is_erased else report.wrong).append(f"{where}: it is no longer in the archive")
    elif version.erased > one.erased:
        report.erased.append(f"{where}: messages were erased in it")
    elif version.size < one.size or _hash(store, version.id, one.size) != one.sha256:
        report.wrong.append(f"{where}: its bytes were changed")


def _versions(store: Store) -> Iterator[tuple[SourceFile, Version]]:
    for file, _ in store.files():
        yield from ((file, version) for version in store.versions(file.id) if has_bytes(version))


def _state(store: Store, file: SourceFile, version: Version) -> SignedVersion:
    digest = _hash(store, version.id, version.size)
    return SignedVersion(file.machine, file.path, version.number, version.size, digest, version.erased)


def _hash(store: Store, version: int, size: int) -> str:
    total = sha256()
    for at in range(0, size, _SLICE):
        total.update(store.read_raw(version, at, min(_SLICE, size - at)))
    return total.hexdigest()


def _lines(chain: Path) -> list[bytes]:
    with suppress(FileNotFoundError):
        return chain.read_bytes().splitlines()
    return []


def _load_key(path: Path) -> Ed25519PrivateKey:
    """Load the signing key; the first time, make it, readable by its owner alone."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ModuleNotFoundError:
        raise EverturnError(
            "signing needs a package that is not installed; run: pip install 'everturn[signed]'"
        ) from None
    with suppress(FileNotFoundError):
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text("ascii").strip()))
    key = Ed25519PrivateKey.generate()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(key.private_bytes_raw().hex() + "\n")
    return key
