"""Fuzz the readers: `python -m tests.fuzz --seconds 600 --reader NAME --save FOLDER`, or all of them without `--reader`.

Ends with status 1 when something was found. What was found is in the folder, with the command that does it again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzz.checks import prepared, readers
from tests.fuzz.child import attempt
from tests.fuzz.watching import fuzz


def main() -> int:
    """Read the words, fuzz, show what came of it."""
    words = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Random damage for every reader.")
    words.add_argument("--seconds", type=float, default=600, help="for each reader")
    words.add_argument("--inputs", type=int, default=0, help="at most so many for each reader")
    words.add_argument("--reader", action="append", metavar="NAME", help=f"one of: {', '.join(readers())}")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--save", type=Path, default=Path("fuzz-found"), metavar="FOLDER", help="for what was found")
    words.add_argument("--limit", type=int, default=20, help="CPU seconds for one input")
    words.add_argument("--only", type=int, metavar="NUMBER", help="read this one input, here, and show the trace")
    given = words.parse_args()
    names = given.reader or readers()
    if given.only is not None:
        return max(_again(name, given.seed, given.only) for name in names)
    found = 0
    for name in names:
        outcome = fuzz(name, given.seed, given.seconds, given.inputs, given.save, given.limit)
        found += len(outcome.failures)
        state = "; ".join(failure.what for failure in outcome.failures) or "nothing found"
        print(
            f"{name:16} {outcome.inputs:8} inputs {outcome.seconds:7.1f} s {outcome.cpu:7.1f} CPU s  {state}",
            flush=True,
        )
    return 1 if found else 0


def _again(reader: str, seed: int, number: int) -> int:
    seeds, check = prepared(reader)
    with tempfile.TemporaryDirectory() as folder:
        failure = attempt(reader, seed, number, seeds, check, Path(folder) / "in")
    print(failure.trace if failure else f"{reader}: input {number} of seed {seed} is read")
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
