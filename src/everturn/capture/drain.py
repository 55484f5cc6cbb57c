"""The drain that a hook starts: takes in the spool, and the transcripts that agents are still writing.

One drain runs at a time, by a lock that ends with its process. Another one that finds the lock taken may exit: the holder
checks for new lines once more after it has released the lock. A transcript may grow a little after the last event of its
session, so the drain stays for a moment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress

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

#: Called after each sync with the working folders of sessions.
Settled = Callable[[Mapping[str, str]], None]


def drain_once(job: SyncJob, sleep: Callable[[float], None], settled: Settled = lambda folders: None) -> int:
    """Drain until nothing arrives any more; return the number of syncs, 0 if another drain is running."""
    rounds = 0
    assert job.spool is not None
    while True:
        with process_lock(job.spool / LOCK) as is_ours:
            if not is_ours:
                return rounds
            rounds += _drain_until_quiet(job, sleep, settled)
        if not (job.spool / SPOOL).exists():
            return rounds


def _drain_until_quiet(job: SyncJob, sleep: Callable[[float], None], settled: Settled) -> int:
    assert job.spool is not None
    rounds, quiet, paths, nameless = 0, 0, set[str](), False
    sizes: dict[str, int] = {}
    folders: dict[str, str] = {}
    while quiet < QUIET:
        if rounds:
            sleep(PAUSE)
        drained = drain_spool(job.store, job.spool, job.policy)
        paths.update(drained.paths)
        nameless = nameless or bool(drained.nameless)
        folders |= drained.folders
        before, sizes = sizes, _file_sizes(paths)
        # An agent that names no file stores its sessions elsewhere, so the last sync scans everything.
        last = quiet == QUIET - 1 and bool(rounds) and (nameless or not paths)
        if drained.lines or sizes != before or not rounds or last:
            _sync_paths(job, paths, nameless)
            settled(folders)
            rounds += 1
            quiet = QUIET if last else 0
        else:
            quiet += 1
    return rounds


def _sync_paths(job: SyncJob, paths: set[str], nameless: bool) -> None:
    """Sync the named files only, if that is enough: with many sessions a full scan is most of the work.

    A new session, and any other once in a while, triggers a full scan for what earlier ones have left.
    """
    store, key, now = job.store, f"looked at everything on {job.machine}", job.clock()
    is_known = bool(paths) and all(store.file(job.machine, path) is not None for path in paths)
    if is_known and not nameless and 0 <= now - int(store.setting(key) or 0) < WHILE:
        sync_named(job, paths)
        return
    sync_all(job)
    with store.write():
        store.set_setting(key, str(now))


def _file_sizes(paths: set[str]) -> dict[str, int]:
    sizes = {}
    for path in paths:
        with suppress(OSError):
            sizes[path] = os.stat(path).st_size
    return sizes
