"""The drain that a hook starts: takes in the spool, and the transcripts that agents are still writing.

One drain runs at a time, by a lock that ends with its process. Another one that finds the lock taken may exit: the holder
checks for new lines once more after it has released the lock. A transcript may grow a little after the last event of its
session, so the drain stays for a moment.

The transcripts that agents name are taken in at once. Everything else is scanned afterwards, under a lock of its own, because a
first scan may take minutes: meanwhile another drain takes in what agents do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from everturn.capture.intake import SyncJob
from everturn.capture.process_lock import process_lock
from everturn.capture.spool import drain_spool
from everturn.capture.sync import sync_all, sync_named
from everturn.hook import LOCK, SPOOL

#: Seconds between two checks, and how many of them find nothing before the drain ends.
PAUSE = 0.1
QUIET = 8
#: Milliseconds after which everything is scanned again, not only the files that agents name.
WHILE = 10 * 60_000

#: Beside the spool, as the lock of the drain is.
SCAN_LOCK = "scan.lock"

#: Called after each sync with the working folders of sessions.
Settled = Callable[[Mapping[str, str]], None]


def drain_once(job: SyncJob, sleep: Callable[[float], None], settled: Settled = lambda folders: None) -> int:
    """Drain until nothing arrives any more; return the number of syncs, 0 if another drain is running."""
    assert job.spool is not None
    drain = _Drain(job, job.spool, sleep, settled)
    while True:
        with process_lock(job.spool / LOCK) as is_ours:
            if not is_ours:
                break
            drain.run_until_quiet()
        if not (job.spool / SPOOL).exists():
            break
    if drain.is_scan_due:
        with process_lock(job.spool / SCAN_LOCK) as is_ours:
            if is_ours:
                drain.scan_everything()
    return drain.rounds


class _Drain:
    def __init__(self, job: SyncJob, spool: Path, sleep: Callable[[float], None], settled: Settled) -> None:
        self._job, self._spool, self._sleep, self._settled = job, spool, sleep, settled
        self._folders: dict[str, str] = {}
        self.rounds = 0
        self.is_scan_due = False

    def run_until_quiet(self) -> None:
        """Take in what was named until nothing comes any more."""
        rounds, quiet, paths, nameless = 0, 0, set[str](), False
        sizes: dict[str, int] = {}
        while quiet < QUIET:
            if rounds:
                self._sleep(PAUSE)
            drained = drain_spool(self._job.store, self._spool, self._job.policy)
            paths.update(drained.paths)
            nameless = nameless or bool(drained.nameless)
            self._folders |= drained.folders
            before, sizes = sizes, _file_sizes(paths)
            # An agent that names no file stores its sessions elsewhere, so the last sync scans everything.
            last = quiet == QUIET - 1 and bool(rounds) and (nameless or not paths)
            if drained.lines or sizes != before or not rounds or last:
                self._sync(paths, nameless)
                rounds += 1
                quiet = QUIET if last else 0
            else:
                quiet += 1

    def _sync(self, paths: set[str], nameless: bool) -> None:
        """Sync the named files, if that is enough: with many sessions a scan of everything is most of the work.

        A new session, and any other once in a while, makes a scan due for what earlier ones have left.
        """
        if nameless or not paths:
            self.scan_everything()
            return
        job = self._job
        is_new = any(job.store.file(job.machine, path) is None for path in paths)
        is_late = not 0 <= job.clock() - int(job.store.setting(self._scanned) or 0) < WHILE
        self.is_scan_due = self.is_scan_due or is_new or is_late
        sync_named(job, paths)
        self._finish_round()

    def scan_everything(self) -> None:
        """Sync all files of all agents."""
        now = self._job.clock()
        sync_all(self._job)
        with self._job.store.write():
            self._job.store.set_setting(self._scanned, str(now))
        self.is_scan_due = False
        self._finish_round()

    def _finish_round(self) -> None:
        self._settled(self._folders)
        self.rounds += 1

    @property
    def _scanned(self) -> str:
        return f"looked at everything on {self._job.machine}"


def _file_sizes(paths: set[str]) -> dict[str, int]:
    sizes = {}
    for path in paths:
        with suppress(OSError):
            sizes[path] = os.stat(path).st_size
    return sizes
