"""The CPU that restoring takes, beside that of splitting the same files into words in the same run.

The ratio hardly depends on the machine, and nothing of ours is in what is divided by, so it can be compared with the one of an earlier
version. It used to be divided by the CPU of taking the files in, which was halved since.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.restore.labels import archive_labelled
from everturn.restore.document import BUDGET
from everturn.restore.job import RestoreTarget, restore_session
from everturn.restore.markdown import document_markdown
from everturn.sessions.secrets import archive_cleaner
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store

#: The ratio before the sections were reworked (commit 4af610ea, measured with this code), and how much more of it is allowed.
BEFORE = 6.3
_MOST = 1.2
_HALVES = ("open", "held")
_WORD = re.compile(rb"[A-Za-z]+|[0-9]+")
_TIMES = 3  # the least of so many; the first also imports


def effort_figure(folder: Path) -> Figure:
    """Measure both, alternating."""
    splitting, restoring, sessions = [], [], 0
    store = archive_labelled(folder / "effort", _HALVES)
    try:
        paths = sorted({file.path for file, _ in store.files()})
        for _ in range(_TIMES):
            begun = time.process_time()
            _split_all(paths)
            split = time.process_time()
            sessions = _restore_all(store)
            restoring.append(time.process_time() - split)
            splitting.append(split - begun)
    finally:
        store.close()
    ratio = min(restoring) / min(splitting)
    each = min(restoring) * 1000 / max(1, sessions)
    note = f"{sessions} sessions, {each:.0f} ms of CPU each; {BEFORE:.2f} × before, of which 1.2 × is allowed"
    return Figure("CPU, restoring / splitting the same files into words", ratio, "×", BEFORE * _MOST, note=note)


def _split_all(paths: list[str]) -> int:
    return sum(len(_WORD.findall(Path(path.partition("#")[0]).read_bytes())) for path in paths)


def _restore_all(store: Store) -> int:
    rows, _ = store.sessions(SessionFilter(), limit=100_000)
    for session, _ in rows:
        document = restore_session(RestoreTarget(store, session), all_sources())
        document_markdown(document, archive_cleaner(store), BUDGET)
    return len(rows)
