"""The process that reads the inputs: it may die of any of them, and the file of its progress tells of which.

`input_of` makes an input from its number alone, here and in the process that watches.
"""

from __future__ import annotations

import faulthandler
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec

from tests.fuzz.checks import emptied, prepared
from tests.fuzz.mutations import mutated
from tests.fuzz.seeds import Seed


class Order(msgspec.Struct):
    """What a child is to do."""

    reader: str
    seed: int
    first: int  # number of the first input
    inputs: int  # how many; 0 for as many as there is time
    seconds: float
    limit: int  # CPU seconds for one input
    memory: int  # MB
    progress: str  # the file that holds the number of the input at work


class Failure(msgspec.Struct):
    """An input that something went wrong with."""

    number: int
    what: str  # the last line of the trace
    trace: str


class Done(msgspec.Struct):
    """What a child has to say in the end."""

    inputs: int


def input_of(reader: str, seed: int, number: int, seeds: Sequence[Seed]) -> tuple[Seed, bytes, Random]:
    """One input: what it was made from, its bytes, and the dice for what is checked."""
    dice = Random(f"{reader}/{seed}/{number}")
    chosen = dice.choice(seeds)
    return chosen, mutated(chosen.data, [other.data for other in seeds], dice), dice


def work(order: Order) -> None:
    """Read input after input; failures and the end are lines of JSON on standard output."""
    seeds, check = prepared(order.reader)
    _limit_memory(order.memory)
    faulthandler.register(signal.SIGPROF, chain=True)  # then SIGPROF ends the process, as it does by itself
    number, end = order.first, time.monotonic() + order.seconds
    with tempfile.TemporaryDirectory() as folder, open(order.progress, "r+b", buffering=0) as progress:
        while time.monotonic() < end and (not order.inputs or number < order.first + order.inputs):
            progress.seek(0)
            progress.write(b"%020d" % number)
            signal.setitimer(signal.ITIMER_PROF, order.limit)
            failure = attempt(order.reader, order.seed, number, seeds, check, Path(folder) / "in")
            signal.setitimer(signal.ITIMER_PROF, 0)
            if failure is not None:
                _say(failure)
            number += 1
    _say(Done(number - order.first))


def attempt(reader: str, seed: int, number: int, seeds: Sequence[Seed], check: object, folder: Path) -> Failure | None:
    """Read one input; None when all is well."""
    assert callable(check)
    chosen, data, dice = input_of(reader, seed, number, seeds)
    try:
        check(chosen, data, emptied(folder), dice)
    except Exception as failure:
        place = traceback.extract_tb(failure.__traceback__)[-1]
        what = f"{type(failure).__name__} at {Path(place.filename).name}:{place.lineno}"
        return Failure(number, what, f"{chosen.path}\n{traceback.format_exc()[-6000:]}")
    return None


def _limit_memory(megabytes: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if _has_statm() else 0
    most = used + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _has_statm() -> bool:
    return Path("/proc/self/statm").exists()


def _say(thing: Failure | Done) -> None:
    kind = "failure" if isinstance(thing, Failure) else "done"
    sys.stdout.buffer.write(msgspec.json.encode({kind: thing}) + b"\n")
    sys.stdout.flush()


if __name__ == "__main__":
    work(msgspec.json.decode(sys.argv[1], type=Order))
