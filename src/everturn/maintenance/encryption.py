"""Encrypts an archive with everything that belongs to it, decrypts it, and changes its key.

To an archive belong its vectors, the copies made before migrations, and the backups it knows of. Each file is rewritten by
itself (`store.conversion`), the archive first. Interrupted, some files have the new key and others the old one: both can be opened
while the settings name both, and running the command again rewrites the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from everturn.errors import EverturnError
from everturn.store.cipher import is_encrypted
from everturn.store.conversion import convert_file
from everturn.store.sqlite import migration_copies


@dataclass
class ConversionReport:
    files: list[str] = field(default_factory=list)  # rewritten
    removed: list[str] = field(default_factory=list)  # copies that were deleted
    left: list[tuple[str, str]] = field(default_factory=list)  # path and reason of those that stay as they are


def convert_archive(archive: Path, others: Iterable[Path], secret: str | None) -> ConversionReport:
    """Rewrite an archive and other databases with this secret, or without encryption.

    Raises Busy, WrongKey or NoSpace if the archive cannot be rewritten; for other files the report says so.
    """
    report = ConversionReport()
    if convert_file(archive, secret):
        report.files.append(str(archive))
    for path in others:
        try:
            if convert_file(path, secret):
                report.files.append(str(path))
        except EverturnError as failure:
            report.left.append((str(path), str(failure)))
        except OSError as failure:
            report.left.append((str(path), failure.strerror or "cannot be rewritten"))
    return report


def databases_beside(archive: Path, vectors: Path | None, backups: Iterable[str]) -> list[Path]:
    """Return the other databases that hold words of an archive, as far as they exist."""
    for half in archive.parent.glob(f"{archive.name}.before-*.part*"):
        half.unlink(missing_ok=True)  # of a migration that was killed
    found = [*([vectors] if vectors is not None else []), *migration_copies(archive), *map(Path, backups)]
    return [path for path in dict.fromkeys(found) if path.is_file() and path.stat().st_size]


def plain_databases(archive: Path, vectors: Path | None, backups: Iterable[str]) -> list[Path]:
    """Return those of them that are not encrypted."""
    return [path for path in databases_beside(archive, vectors, backups) if not is_encrypted(path)]


def prepared_files(data: Path, state: Path) -> Iterator[Path]:
    """Yield the files beside an archive that hold words of it: answers for hooks, and sessions handed to agents."""
    for folder in (state / "context", data / "handed-over"):
        yield from (path for path in sorted(folder.glob("*")) if path.is_file())
