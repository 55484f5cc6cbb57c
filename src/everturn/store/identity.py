"""Which file an archive is, for those who keep it open for long: another may come to lie in its place."""

from __future__ import annotations

import os


def archive_identity(url: str) -> tuple[int, int] | None:
    """The same as long as it is the same file; None when it is not a file, or not there."""
    try:
        found = os.stat(url)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
