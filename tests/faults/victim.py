"""A program to do harm to: it does one piece of work per request, each time in a fresh process.

Run under strace by `injection`. Requests come as one JSON object per line on stdin, outcomes go out the same way. Each
request forks, so that imports are paid for once. strace counts the calls of each process by itself and hits the same
number in all of them: to be hit at call n, a process first makes harmless calls of that kind until n are left.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from everturn.capture import writer
from everturn.capture.sync import sync_all
from everturn.capture.writer import ArchiveWriter
from everturn.errors import EverturnError
from everturn.store.cipher import KeySource, KeySources, use_key_sources
from everturn.store.contract import Store, open_store
from everturn.store.conversion import convert_file
from tests.faults.forked import outcome
from tests.faults.scenes import job_at, shrink_pieces

KEY = "5e" * 32


def main() -> None:
    """Answer requests until there are no more."""
    shrink_pieces(setattr)
    for line in sys.stdin:
        print(json.dumps(outcome(json.loads(line), _work)), flush=True)


def _work(request: dict[str, Any]) -> dict[str, Any]:
    """Sync, rebuild or convert, from opening the archive to closing it."""
    try:
        if request["work"] in ("encrypt", "decrypt"):
            return {"done": {"changed": convert(Path(request["archive"]), request["work"] == "encrypt")}}
        store = open_store(request["archive"])
        try:
            done = _WORKS[request["work"]](store, Path(request["history"]))
        finally:
            store.close()
    except EverturnError as error:
        return {"error": type(error).__name__, "sentence": str(error)}
    except BaseException as error:
        return {"error": "unexpected", "sentence": repr(error)}
    return {"done": done}


def convert(archive: Path, to_encrypted: bool) -> bool:
    """Rewrite the archive with the key of the tests, or without one."""
    use_test_key()
    return convert_file(archive, KEY if to_encrypted else None)


def use_test_key() -> None:
    """Open encrypted archives with the key of the tests."""
    sources = KeySources()
    sources.add(KeySource("file", "of the tests"), KEY)
    use_key_sources(sources)


def _sync(store: Store, history: Path) -> dict[str, Any]:
    report = sync_all(job_at(store, history))
    return {"messages": report.messages, "failed": report.failed}


def _rebuild(store: Store, history: Path) -> dict[str, Any]:
    job = job_at(store, history)
    desk = ArchiveWriter(store, job.machine, job.owner, job.clock())
    return {"versions": writer.rebuild_archive(desk, job.sources, lambda *numbers: None)}


_WORKS = {"sync": _sync, "rebuild": _rebuild}

if __name__ == "__main__":
    main()
