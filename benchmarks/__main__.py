"""`python -m benchmarks`: every figure with its bar. Exits with 1 when a bar is missed."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure, say, show
from benchmarks.processes import Failed

#: Modules of this folder with `figures(corpora)`, in the order they are run.
SECTIONS = (
    "ingest", "memory", "asking", "upkeep", "accounting", "terminal", "recall", "references", "restore", "latency",
    "serving", "redaction", "encryption", "erasure", "journal", "crash", "wires", "chat", "browse", "analyse", "hook", "page", "web", "why",
    "team",
)  # fmt: skip


def main() -> int:
    """Run the sections asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; all when none is named"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument("--big", action="store_true", help="also take in 5 GB (needs 10 GB of room and some minutes)")
    options = parser.parse_args()
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]}; there are {', '.join(SECTIONS)}")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="everturn-bench-") as folder:
        corpora = Corpora(Path(folder), options.big)
        missed = sum(_run(name, corpora, options.json) for name in options.sections or SECTIONS)
    say(f"{time.monotonic() - begun:.0f} s; {missed or 'no'} bars missed")
    return 1 if missed else 0


def _run(name: str, corpora: Corpora, as_json: bool) -> int:
    """Print a section; how many bars it missed."""
    missed = 0
    section = import_module(f"benchmarks.{name}")
    say(f"\n{name}: {section.__doc__}")
    figures: Iterator[Figure] = section.figures(corpora)
    try:
        for figure in figures:
            show(figure, as_json)
            missed += figure.verdict == "FAIL"
    except Failed as failure:
        show(Figure(name, None, note=str(failure)), as_json)
        missed += 1
    return missed


if __name__ == "__main__":
    sys.exit(main())
