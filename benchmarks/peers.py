"""Other archivers beside ours, over the same files, in the same run: `python -m benchmarks.peers`.

Each is installed into an environment that is thrown away and runs in a home of its own, without a network where the
system can take it away. A peer that cannot be installed or does not work is told about and left out; nothing fails.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import corpora
from benchmarks.figures import Figure, say, show
from benchmarks.processes import MB, Cost, Failed, Place, everturn, median_cpu, run

_RUNS = 3


@dataclass(frozen=True)
class Peer:
    """A program that takes in the same history. `words` is its command line; `{claude}` and `{home}` stand for folders."""

    name: str
    package: str  # for the installer: tried first
    words: tuple[str, ...]
    keeps: str  # what it does with the files, to be read beside the number
    env: Mapping[str, str] = field(default_factory=dict)
    made: tuple[str, ...] = ()  # what it leaves behind, below its home: removed before each run


PEERS = (
    Peer(
        "agentsview",
        "agentsview==0.46.*",
        ("agentsview", "sync"),
        "messages and calls in SQLite; full text of messages only; no raw bytes",
        {
            "AGENTSVIEW_NO_DAEMON": "1",
            "AGENTSVIEW_TELEMETRY_ENABLED": "0",
            "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
            "DO_NOT_TRACK": "1",
        },
        (".agentsview",),
    ),
    Peer(
        "claude-code-log",
        "claude-code-log",
        ("claude-code-log", "{claude}/projects", "--all-projects", "--output", "{home}/pages"),
        "HTML pages and a cache in SQLite; no full text",
        made=("pages", ".cache", ".claude-code-log"),
    ),
)


def main() -> int:
    """Print MB per CPU-second of each, and ours as a multiple of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument("--copies", type=int, default=2, help="how often the real corpus is repeated (default 2)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="everturn-peers-") as folder:
        for figure in compare(Path(folder), options.copies):
            show(figure, options.json)
    return 0


def compare(folder: Path, copies: int):  # type: ignore[no-untyped-def]
    raise NotImplementedError
