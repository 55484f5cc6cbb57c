"""`python -m benchmarks.restore`: how good a restored document is. Exits with 1 when a bar is missed.

Sessions that are not in the corpus have commands of their own: `benchmarks.restore.ends` and `benchmarks.restore.unseen`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import say, show
from benchmarks.restore import MISSING, PARTS, part_figures
from benchmarks.restore.cutting import CORPUS
from benchmarks.restore.labels import HALVES, READABLE, archive_labelled
from benchmarks.restore.sections import SECTIONS, misses


def main(arguments: list[str] | None = None) -> int:
    """Measure the parts asked for, or list what is wrong in a section."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore", description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this one; may be given several times")
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument(
        "--misses",
        choices=(*SECTIONS, "model"),
        metavar="SECTION",
        help=f"list what is wrong and missing in a section of the open half ({', '.join(SECTIONS)}), or under `model`",
    )
    parser.add_argument("--half", choices=HALVES, action="append", help="only this part of the labels")
    options = parser.parse_args(arguments)
    halves = tuple(options.half or (("open",) if options.misses else HALVES))
    if options.misses and not set(halves) <= set(READABLE):
        parser.error("this part is only measured; nobody looks at what is wrong in it")
    with tempfile.TemporaryDirectory(prefix="everturn-restore-") as folder:
        if options.misses:
            return _list_misses(options.misses, Path(folder), halves)
        begun = time.process_time()
        missed = 0
        for name in options.part or PARTS:
            say(f"measuring {name} …")  # the first figure may take a minute
            for figure in part_figures(name, Path(folder) / name, halves):
                show(figure, options.json)
                missed += figure.verdict == "FAIL"
    say(f"{time.process_time() - begun:.0f} CPU s; {missed or 'no'} bars missed")
    return 1 if missed else 0


def _list_misses(name: str, folder: Path, halves: tuple[str, ...]) -> int:
    if name == "model":
        from benchmarks.restore.trial import listed

        for line in listed():
            print(line)
        return 0
    if not CORPUS.is_dir():
        say(MISSING)
        return 1
    store = archive_labelled(folder, halves)
    try:
        for half in halves:
            for line in misses(store, name, half):
                print(line)
    finally:
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
