"""One sync that counts its work instead of its time: `python -m benchmarks.counting`, in the home it is given.

Prints bytes read from sources (what the report says, and what was really asked of the files), rows changed in the archive
and pages written to its log. Counts are the same on every machine, so a growth with the archive cannot hide in noise.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from everturn import clock
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all
from everturn.secrets.redaction import redact_bytes
from everturn.settings import load
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.sqlite import open_sqlite


class CountedFile(io.FileIO):
    """A file that knows how many bytes were taken from all of its kind."""

    taken = 0

    def readinto(self, buffer: Any) -> int | None:
        """As usual, counted."""
        n = super().readinto(buffer)
        CountedFile.taken += n or 0
        return n


def main() -> None:
    """Sync once and print the counts as JSON."""
    settings = load()
    store = open_sqlite(settings.db)
    connection = store.driver.connection
    places = SearchPlaces(Path.home(), dict(os.environ), sys.platform)
    policy = Policy(redact=redact_bytes)
    job = SyncJob(store, all_sources(), places, policy, settings.machine, settings.owner, clock.now)
    connection.pragma("wal_autocheckpoint", 0)
    rows = connection.total_changes()
    with patch.object(Path, "open", _open):
        report = sync_all(job)
    counts = {
        "bytes_read": report.bytes_read,
        "bytes_asked_for": CountedFile.taken,
        "rows": connection.total_changes() - rows,
        "messages": report.messages,
        "log_pages": connection.execute("PRAGMA wal_checkpoint").fetchall()[0][1],
    }
    store.close()
    print(json.dumps(counts))


def _open(path: Path, mode: str = "r", *rest: Any, **named: Any) -> Any:
    return io.BufferedReader(CountedFile(path)) if mode == "rb" else open(path, mode, *rest, **named)


if __name__ == "__main__":
    main()
