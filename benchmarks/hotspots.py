"""Where the CPU time of an ingest goes: `python -m benchmarks.hotspots FOLDER`, an agent's config folder.

Prints the functions that cost most of their own, in milliseconds per MB of source, and what the profiler itself adds. Time
inside SQLite, zstd and the JSON decoder shows as the call into them.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.processes import MB
from everturn import clock
from everturn.capture.intake import SyncJob, SyncReport
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all
from everturn.secrets.redaction import redact_bytes
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import open_store


def main() -> None:
    """Ingest once for the time, once more under the profiler."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hotspots", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder with `projects` in it")
    parser.add_argument("--top", type=int, default=15, help="how many functions")
    parser.add_argument(
        "--by", choices=("tottime", "cumtime"), default="tottime", help="own time, or with what it calls"
    )
    options = parser.parse_args()
    begun = time.process_time()
    size = _ingest(options.folder).bytes_read / MB
    plain = time.process_time() - begun
    profile = cProfile.Profile()
    begun = time.process_time()
    profile.runcall(_ingest, options.folder)
    slowed = (time.process_time() - begun) / plain
    print(f"{size:.1f} MB, {plain:.2f} CPU-s, {size / plain:.1f} MB/CPU-s; under the profiler {slowed:.2f} × as long")
    print(f"{'ms/MB':>8}{'share':>8}{'calls/MB':>10}  function")
    _print(profile, size, options.by, options.top)


def _ingest(folder: Path) -> SyncReport:
    with tempfile.TemporaryDirectory() as home:
        store = open_store(f"{home}/archive.db")
        places = SearchPlaces(Path(home), {"CLAUDE_CONFIG_DIR": str(folder)}, sys.platform)
        report = sync_all(SyncJob(store, all_sources(), places, Policy(redact=redact_bytes), "here", "me", clock.now))
        store.close()
        return report


def _print(profile: cProfile.Profile, size: float, by: str, top: int) -> None:
    column = 2 if by == "tottime" else 3
    found = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(row[2] for row in found.values())
    for (file, line, name), row in sorted(found.items(), key=lambda item: -item[1][column])[:top]:
        where = f"{'/'.join(Path(file).parts[-2:])}:{line} {name}" if line else name
        print(f"{row[column] * 1000 / size:8.2f}{row[column] / total:8.1%}{row[1] / size:10.1f}  {where}")


if __name__ == "__main__":
    main()
