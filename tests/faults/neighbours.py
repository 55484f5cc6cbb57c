"""Programs that work on the same history at the same time: one that writes it, and some that take it in.

python -m tests.faults.neighbours write PLAN STOP          append to files as the plan says, then make the file STOP
python -m tests.faults.neighbours sync ARCHIVE ROOT STOP   sync again and again until STOP is there, and once more
python -m tests.faults.neighbours look ARCHIVE ROOT STOP   the same with reading and verifying
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from everturn.capture.sync import sync_all
from everturn.clock import now
from everturn.errors import Busy, EverturnError
from everturn.maintenance.verify import verify_archive
from everturn.store.contract import Store, open_store
from tests.faults.scenes import job_at, shrink_pieces


class Stroke(msgspec.Struct):
    """Some bytes to be added to a file in one write, and how long to wait afterwards."""

    path: str
    data: bytes
    pause: float = 0.0


def write(plan: str, stop: str) -> None:
    """Append as an agent does: open files, one write after the other."""
    files: dict[str, int] = {}
    for stroke in msgspec.json.decode(Path(plan).read_bytes(), type=list[Stroke]):
        if stroke.path not in files:
            files[stroke.path] = os.open(stroke.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(files[stroke.path], stroke.data)
        time.sleep(stroke.pause)
    Path(stop).touch()


def take_in(archive: str, root: str, stop: str) -> None:
    """Sync with a new connection each time, so that opening is tried as often as writing."""

    def work(store: Store) -> list[str]:
        return [why for _, why in sync_all(job_at(store, Path(root), now), retry=True).failed]

    _until(stop, archive, work)


def look(archive: str, root: str, stop: str) -> None:
    """Read what there is, as `verify_archive`, `show` and `export` do."""

    def work(store: Store) -> list[str]:
        seen = verify_archive(store, "box", lambda *numbers: None)
        for _, version in store.files():
            data = store.read_raw(version.id, 0, version.size)
            if len(data) != version.size:
                seen.wrong.append("bytes are missing")
        return seen.wrong + seen.differs

    _until(stop, archive, work)


def _until(stop: str, archive: str, work: Callable[[Store], list[str]]) -> None:
    """Say `ready`, work until the file is there and once more, tell how often it went well and what was said."""
    print("ready", flush=True)
    said: Counter[str] = Counter()
    done = False
    while not done:
        done = Path(stop).exists()
        try:
            store = open_store(archive)
            try:
                said.update(["done", *work(store)])
            finally:
                store.close()
        except EverturnError as error:
            said[type(error).__name__ if isinstance(error, Busy) else str(error)] += 1
        except Exception as error:
            said[repr(error)] += 1
    print(json.dumps(said))


PROGRAMS: dict[str, Callable[..., None]] = {"write": write, "sync": take_in, "look": look}

if __name__ == "__main__":
    shrink_pieces(setattr)
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
