"""The drain that a hook starts: takes in what agents told, and what they were still writing when they told it.

One at a time, by a lock that ends with its process. Whoever finds it taken may go: its holder looks for new lines once more
after it has let go. A transcript may grow a little after the last event of its session, so the drain stays for a moment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from everturn.capture.spool import drain
from everturn.capture.sync import Sync, sync
from everturn.hook import LOCK, SPOOL

#: Seconds between two looks, and how many of them find nothing before it ends.
PAUSE = 0.1
QUIET = 8


#: Called after each sync with the folders that sessions were said to work in.
Settled = Callable[[Mapping[str, str]], None]


def drain_alone(job: Sync, sleep: Callable[[float], None], settled: Settled = lambda folders: None) -> int:
    """Drain until nothing comes any more; how many syncs that took, 0 when another drain is at work."""
    rounds = 0
    assert job.spool is not None
    while True:
        with _lock(job.spool / LOCK) as is_ours:
            if not is_ours:
                return rounds
            rounds += _rounds(job, sleep, settled)
        if not (job.spool / SPOOL).exists():
            return rounds


def _rounds(job: Sync, sleep: Callable[[float], None], settled: Settled) -> int:
    assert job.spool is not None
    rounds, quiet, told = 0, 0, set[str]()
    sizes: dict[str, int] = {}
    folders: dict[str, str] = {}
    while quiet < QUIET:
        if rounds:
            sleep(PAUSE)
        heard = drain(job.store, job.spool, job.policy)
        told.update(heard.paths)
        folders |= heard.folders
        before, sizes = sizes, _sizes(told)
        # An agent that names no file keeps its sessions elsewhere, so the last look is at everything.
        last = quiet == QUIET - 1 and bool(rounds) and not told
        if heard.lines or sizes != before or not rounds or last:
            sync(job)
            settled(folders)
            rounds += 1
            quiet = QUIET if last else 0
        else:
            quiet += 1
    return rounds


def _sizes(paths: set[str]) -> dict[str, int]:
    found = {}
    for path in paths:
        try:
            found[path] = os.stat(path).st_size
        except OSError:
            pass
    return found


@contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Whether the lock is ours; it is given back at the end, also at that of the process."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield _try_to_lock(file)
    finally:
        os.close(file)


def _try_to_lock(file: int) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
