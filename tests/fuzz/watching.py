"""Runs a reader in child processes and says what happened: also of an input that a child died of, or never came back from."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tests.fuzz.checks import prepared
from tests.fuzz.child import Done, Failure, Order, input_of

ROOT = Path(__file__).parents[2]

#: Different failures of one reader that are kept; the same one is kept once.
MOST_KEPT = 20


class _Line(msgspec.Struct):
    failure: Failure | None = None
    done: Done | None = None


@dataclass
class Outcome:
    """How a reader did."""

    reader: str
    inputs: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    failures: list[Failure] = field(default_factory=list)
    saved: list[Path] = field(default_factory=list)


def fuzz(
    reader: str,
    seed: int,
    seconds: float,
    inputs: int = 0,
    save: Path | None = None,
    limit: int = 20,
    memory: int = 1024,
) -> Outcome:
    """Fuzz one reader for some time, or with so many inputs."""
    outcome = Outcome(reader)
    began, before = time.monotonic(), os.times()
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "progress"
        while (left := seconds - (time.monotonic() - began)) > 0 and not (inputs and outcome.inputs >= inputs):
            progress.write_bytes(b"%020d" % outcome.inputs)
            first, more = outcome.inputs, inputs - outcome.inputs if inputs else 0
            _run(outcome, Order(reader, seed, first, more, left, limit, memory, str(progress)))
            if len(outcome.failures) >= MOST_KEPT:
                break
    after = os.times()
    outcome.seconds = time.monotonic() - began
    outcome.cpu = after.children_user + after.children_system - before.children_user - before.children_system
    if save is not None and outcome.failures:
        _save(outcome, seed, save)
    return outcome


def _run(outcome: Outcome, order: Order) -> None:
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.child", msgspec.json.encode(order).decode()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    try:
        out, err = child.communicate(timeout=order.seconds + 20 * order.limit)
    except subprocess.TimeoutExpired:  # asleep: its CPU time does not run out
        child.send_signal(signal.SIGPROF)
        out, err = child.communicate()
    said = [msgspec.json.decode(line, type=_Line) for line in out.splitlines()]
    for line in said:
        if line.failure is not None:
            _note(outcome, line.failure)
    if said and said[-1].done is not None:
        outcome.inputs += said[-1].done.inputs
        return
    number = int(Path(order.progress).read_bytes() or b"0")
    outcome.inputs = number + 1
    _note(outcome, Failure(number, _death(child.returncode, err, order), err.decode("utf-8", "replace")[-6000:]))


def _death(code: int, err: bytes, order: Order) -> str:
    if code == -signal.SIGPROF:
        return f"does not end: more than {order.limit} CPU seconds in {_where(err)}"
    return f"died of signal {-code}" if code < 0 else f"ended with status {code}"


def _where(err: bytes) -> str:
    places = [line.strip() for line in err.decode("utf-8", "replace").splitlines() if line.startswith("  File")]
    return places[0] if places else "?"


def _note(outcome: Outcome, failure: Failure) -> None:
    if failure.what not in {other.what for other in outcome.failures} and len(outcome.failures) < MOST_KEPT:
        outcome.failures.append(failure)


def _save(outcome: Outcome, seed: int, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    seeds, _ = prepared(outcome.reader)
    for failure in outcome.failures:
        chosen, data, _ = input_of(outcome.reader, seed, failure.number, seeds)
        name = folder / f"{outcome.reader}-{seed}-{failure.number}-{Path(chosen.path).name}"
        name.write_bytes(data)
        again = f"python -m tests.fuzz --reader {outcome.reader} --seed {seed} --only {failure.number}"
        name.with_name(f"{name.name}.txt").write_text(f"{again}\n{failure.what}\n\n{failure.trace}", encoding="utf-8")
        outcome.saved.append(name)
