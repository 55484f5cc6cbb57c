"""SQLite files as they lie on disk, without opening them: which they are, and when they last changed.

While a database is in use what is new stands in its log: a young one may have all its tables there and nowhere else.
"""

from __future__ import annotations

import os
from pathlib import Path

_MAGIC = b"SQLite format 3\0"
_LOG = "-wal"
_LOOKED_AT = 256 << 10


def is_sqlite(head: bytes) -> bool:
    """Whether a file that begins like this is a database."""
    return head.startswith(_MAGIC)


def beginnings(path: Path, head: bytes) -> bytes:
    """The first bytes of a database and of its log: the names of its tables and columns are in them."""
    try:
        with open(f"{path}{_LOG}", "rb") as log:
            return head + log.read(_LOOKED_AT)
    except OSError:
        return head


def stamp(path: Path) -> int:
    """The newest change of a database or its log, in nanoseconds."""
    times = []
    for name in (str(path), f"{path}{_LOG}"):
        try:
            times.append(os.stat(name).st_mtime_ns)
        except OSError:
            continue
    return max(times, default=0)
