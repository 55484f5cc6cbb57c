"""The drain that a hook starts: takes in what agents told, and what they were still writing when they told it.

One at a time, by a lock that ends with its process. Whoever finds it taken may go: its holder looks for new lines once more
after it has let go. A transcript may grow a little after the last event of its session, so the drain stays for a moment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from everturn.capture.intake import SyncJob
from everturn.capture.process_lock import process_lock
from everturn.capture.spool import drain_spool
from everturn.capture.sync import sync_all, sync_named
from everturn.hook import LOCK, SPOOL

#: Seconds between two looks, and how many of them find nothing before it ends.
PAUSE = 0.1
QUIET = 8
#: Milliseconds after which everything is looked at again, not only what agents name.
WHILE = 10 * 60_000

#: Called after each sync with the folders that sessions were said to work in.
Settled = Callable[[Mapping[str, str]], None]


def drain_once(job: SyncJob, sleep: Callable[[float], None], settled: Settled = lambda folders: None) -> int:
    """Drain until nothing comes any more; how many syncs that took, 0 when another drain is at work."""
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
    rounds, quiet, told, nameless = 0, 0, set[str](), False
    sizes: dict[str, int] = {}
    folders: dict[str, str] = {}
    while quiet < QUIET:
        if rounds:
            sleep(PAUSE)
        heard = drain_spool(job.store, job.spool, job.policy)
        told.update(heard.paths)
        nameless = nameless or bool(heard.nameless)
        folders |= heard.folders
        before, sizes = sizes, _sizes(told)
        # An agent that names no file keeps its sessions elsewhere, so the last look is at everything.
        last = quiet == QUIET - 1 and bool(rounds) and (nameless or not told)
        if heard.lines or sizes != before or not rounds or last:
            _take_in(job, told, nameless)
            settled(folders)
            rounds += 1
            quiet = QUIET if last else 0
        else:
            quiet += 1
    return rounds


def _take_in(job: SyncJob, told: set[str], nameless: bool) -> None:
    """Only what was named, where that is enough: with many sessions a look at every file is most of the work.

    A session that begins is a time to look for what an earlier one has left, and so is any other once in a while.
    """
    store, key, now = job.store, f"looked at everything on {job.machine}", job.clock()
    is_known = bool(told) and all(store.file(job.machine, path) is not None for path in told)
    if is_known and not nameless and 0 <= now - int(store.setting(key) or 0) < WHILE:
        sync_named(job, told)
        return
    sync_all(job)
    with store.write():
        store.set_setting(key, str(now))


def _sizes(paths: set[str]) -> dict[str, int]:
    found = {}
    for path in paths:
        try:
            found[path] = os.stat(path).st_size
        except OSError:
            pass
    return found
