"""Sessions written in a standard and read back: what came back differently, and what an outside package says of the file.

    python -m benchmarks.interchange [ARCHIVE] [--most N]

Without an archive, a generated history is used. `atif` from PyPI validates the trajectories where it is installed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths, sync_all
from everturn.export.interchange import as_standard
from everturn.model.archive import Session
from everturn.sessions.messages import read_messages
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, Store, open_store
from tests.transcripts import write_history

STANDARDS = ("atif", "otel")


def differences(store: Store, session: Session, name: str) -> list[str]:
    """Return what is different after a session was written in a standard and read back."""
    data = b"".join(as_standard(store, all_sources(), session, name))
    with tempfile.TemporaryDirectory() as folder, closing(open_store("memory:")) as other:
        path = Path(folder) / "session.json"
        path.write_bytes(data)
        places = SearchPlaces(Path(folder), {}, "linux")
        report = add_paths(SyncJob(other, all_sources(), places, Policy(), "box", "ann", lambda: 1), [path])
        if report.skipped or report.failed:
            return [f"not taken in: {report.skipped or report.failed}"]
        found = other.sessions_of(name, session.native_id)
        if len(found) != 1:
            return [f"{len(found)} sessions came back"]
        before, after = facts(store, session), facts(other, found[0])
    wrong = [key for key in before if before[key] != after[key]]
    return wrong + (_refused(data) if name == "atif" else [])


def facts(store: Store, session: Session) -> dict[str, Any]:
    """Return what a standard must hold of a session."""
    texts: Counter[str] = Counter()
    for _, message in read_messages(store, all_sources(), session):
        for block in message.blocks:
            if block.field in ("prompt", "answer", "thinking", "tool_output") and block.kind not in (
                "image",
                "document",
            ):
                texts[block.field] += len(block.text.replace("\n", "").replace(" ", ""))
    calls = [call for call in store.calls(session.id) if call.status != "orphan"]
    steps = store.steps(session.id)
    return {
        "turns": session.n_turns,
        "steps": session.n_steps,
        "prompts": session.n_prompts,
        "calls": [(call.call_id, call.name, call.kind) for call in calls],
        "outcomes": [(call.call_id, call.status, call.error_class, call.exit_status) for call in calls],
        "batches": [(call.call_id, call.position) for call in calls],
        "tokens": [
            sum(getattr(step, f"tokens_{kind}") for step in steps)
            for kind in ("in", "out", "cache_read", "cache_write")
        ],
        "compactions": sum(turn.compacted for turn in store.turns(session.id)),
        **{f"characters of {field}": texts[field] for field in ("prompt", "answer", "thinking", "tool_output")},
    }


def _refused(data: bytes) -> list[str]:
    if find_spec("atif") is None:
        return []
    from atif import Trajectory  # type: ignore[import-not-found,unused-ignore]

    try:
        Trajectory.model_validate(json.loads(data))
    except ValueError as failure:
        return [f"refused by atif: {str(failure).splitlines()[0]}"]
    return []


def sessions(store: Store, most: int) -> Iterator[Session]:
    rows, _ = store.sessions(SessionFilter(kinds=("main", "subagent")), most)
    yield from (row for row, _ in rows if row.n_messages)


def main() -> None:
    """Print, for each standard, how many sessions came back the same, and what differed in the others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("archive", nargs="?", default="")
    parser.add_argument("--most", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(given.archive or str(Path(folder) / "archive.db"))
        if not given.archive:
            truth = write_history(Path(folder) / "history", seed=7, sessions=60)
            places = SearchPlaces(Path(folder) / "home", {}, "linux", {"claude_code": (truth.root,)})
            sync_all(SyncJob(store, all_sources(), places, Policy(), "box", "ann", lambda: 1))
        chosen = list(sessions(store, given.most))
        checked = "validated by atif" if find_spec("atif") is not None else "atif is not installed: not validated"
        for name in STANDARDS:
            found = Counter(wrong for session in chosen for wrong in differences(store, session, name))
            same = sum(not differences(store, session, name) for session in chosen)
            print(f"{name}: {same} of {len(chosen)} sessions the same ({checked if name == 'atif' else 'JSON'})")
            for wrong, n in found.most_common():
                print(f"    {n} × {wrong}")
        store.close()


if __name__ == "__main__":
    main()
