"""The CPU that restoring takes, beside that of taking the same files into an archive in the same run.

The ratio hardly depends on the machine, so it can be compared with the one that was measured before a change.
"""

from __future__ import annotations

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

#: The ratio before the sections were reworked, and how much more of it is allowed.
BEFORE = 3.9
_MOST = 1.2
_HALVES = ("open", "held")
_TIMES = 3  # the least of so many; the first also imports


def effort_figure(folder: Path) -> Figure:
    """Measure both, alternating."""
    reading, restoring, sessions = [], [], 0
    for number in range(_TIMES):
        begun = time.process_time()
        store = archive_labelled(folder / f"effort-{number}", _HALVES)
        taken = time.process_time()
        sessions = _restore_all(store)
        restoring.append(time.process_time() - taken)
        reading.append(taken - begun)
        store.close()
    ratio = min(restoring) / min(reading)
    each = min(restoring) * 1000 / max(1, sessions)
    note = f"{sessions} sessions, {each:.0f} ms of CPU each; {BEFORE:.2f} × before, of which 1.2 × is allowed"
    return Figure("CPU, restoring / taking in the same files", ratio, "×", BEFORE * _MOST, note=note)


def _restore_all(store: Store) -> int:
    rows, _ = store.sessions(SessionFilter(), limit=100_000)
    for session, _ in rows:
        document = restore_session(RestoreTarget(store, session), all_sources())
        document_markdown(document, archive_cleaner(store), BUDGET)
    return len(rows)
