"""A section run by itself, and where asked for the peers beside it: `python -m benchmarks.NAME [--peers | --only-peers]`."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure, show


def run(
    name: str,
    about: str | None,
    figures: Callable[[Corpora], Iterator[Figure]],
    peers: Callable[[Path], Iterator[Figure]],
) -> int:
    """Print the figures; 1 when a bar was missed."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=about)
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument(
        "--peers", action="store_true", help="install the peers into a throw-away environment, and run them too"
    )
    parser.add_argument("--only-peers", action="store_true", help="run the peers and nothing else")
    options = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(prefix=f"everturn-{name}-") as folder:
        for figure in () if options.only_peers else figures(Corpora(Path(folder))):
            show(figure, options.json)
            missed += figure.verdict == "FAIL"
        for figure in peers(Path(folder)) if options.peers or options.only_peers else ():
            show(figure, options.json)
    return 1 if missed else 0
