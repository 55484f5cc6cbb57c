"""The numbered steps that bring an archive to the schema of this version: forward only, none half applied.

Each engine has a folder of `NNNN_name.sql`. What was applied is noted in `schema_migrations` with a checksum: a file
changed after it was applied, or a number we do not know, means the archive is not ours to touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from everturn.errors import NewerArchive, NotAnArchive

#: Rows `(number, name, checksum)` of `schema_migrations`, in order.
Applied = Sequence[tuple[int, str, str]]

NOTE = "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)"
NOTED = "SELECT number, name, checksum FROM schema_migrations ORDER BY number"


class Migration(Struct, frozen=True):
    """One step of the schema."""

    number: int
    name: str
    sql: str
    checksum: str


@cache
def known_migrations(engine: str) -> tuple[Migration, ...]:
    """Every step this version knows for an engine, in order."""
    # Not importlib.resources: it takes 8 ms to load, at the start of every command.
    files = sorted(Path(__file__).with_name(engine).glob("*.sql"))
    return tuple(_migration(file.name, file.read_text(encoding="utf-8")) for file in files)


def pending_migrations(url: str, steps: Sequence[Migration], applied: Applied) -> list[Migration]:
    """The steps that are still to be done. Raises NewerArchive or NotAnArchive, before anything is changed."""
    newest = max((number for number, _, _ in applied), default=0)
    if newest > steps[-1].number:
        raise NewerArchive(url, newest, steps[-1].number)
    for (number, name, checksum), step in zip(applied, steps, strict=False):
        if (number, checksum) != (step.number, step.checksum):
            raise NotAnArchive(url, f"its schema step {number} ({name}) is not the one this everturn knows")
    return list(steps[len(applied) :])


def _migration(name: str, sql: str) -> Migration:
    number, _, rest = name.removesuffix(".sql").partition("_")
    checksum = sha256(sql.replace("\r\n", "\n").encode()).hexdigest()
    return Migration(int(number), rest, sql, checksum)
