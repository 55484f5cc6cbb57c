"""Real processes, each in a home that is nobody's, and what they cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
PYTHON = (sys.executable,)
EVERTURN = (*PYTHON, "-m", "everturn")
MB = 1_000_000

_LAUNCH = (sys.executable, "-I", "-S", str(Path(__file__).with_name("launch.py")))
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")


class Failed(Exception):
    """A command that was to be measured did not work."""


@dataclass(frozen=True)
class Cost:
    """What one process used. `cpu` counts user and system time of the process and of those it waited for."""

    cpu: float
    wall: float
    peak: int  # bytes
    out: bytes

    @property
    def json(self) -> Any:
        """What it printed."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Place:
    """A home with agents' history in it and an archive beside it."""

    folder: Path

    @property
    def claude(self) -> Path:
        """Where the agent keeps its history."""
        return self.folder / "home" / ".claude"

    @property
    def archive(self) -> Path:
        """The folder of the archive."""
        return self.folder / "everturn"

    @property
    def db(self) -> Path:
        """The archive itself."""
        return self.archive / "archive.db"

    @property
    def env(self) -> dict[str, str]:
        """The environment of every process here."""
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return passed_on | {
            "HOME": str(self.folder / "home"),
            "EVERTURN_HOME": str(self.archive),
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
            "NO_COLOR": "1",
        }


def everturn(place: Place, *words: str, ok: Sequence[int] = (0,)) -> Cost:
    """Run one command of ours."""
    return run((*EVERTURN, *words), place.env, ok)


def run(command: Sequence[str], env: Mapping[str, str], ok: Sequence[int] = (0,), cwd: Path | None = None) -> Cost:
    """Run a command to its end. Raises Failed when it does not end as it should."""
    with tempfile.TemporaryDirectory() as folder:
        result, out, err = (Path(folder, name) for name in ("result", "out", "err"))
        begun = time.monotonic()
        with out.open("wb") as stdout, err.open("wb") as stderr:
            subprocess.run(
                [*_LAUNCH, str(result), *command], env=env, stdout=stdout, stderr=stderr, cwd=cwd, check=True
            )
        wall = time.monotonic() - begun
        cpu, peak, code = result.read_text().split()
        if int(code) not in ok:
            last = err.read_text("utf-8", "replace").strip().splitlines()[-1:]
            raise Failed(f"`{' '.join(command[-4:])}` ended with {code}: {' '.join(last)}")
        return Cost(float(cpu), wall, int(peak) * (1 if sys.platform == "darwin" else 1024), out.read_bytes())


def cpu_of(pid: int) -> float:
    """Seconds of processor a running process has used so far, all its threads together. Raises Failed."""
    try:
        # The scheduler counts in nanoseconds, for each thread; the usual place counts in hundredths of a second.
        tasks = f"/proc/{pid}/task"
        return sum(_first_number(f"{tasks}/{thread}/schedstat") for thread in os.listdir(tasks)) / 1e9
    except OSError as error:
        raise Failed(f"the processor time of a running process can only be read on Linux: {error}") from error


def peak_of(pid: int) -> int:
    """The most memory a running process has had, in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def _first_number(path: str) -> int:
    with open(path, encoding="ascii") as file:
        return int(file.read().split()[0])


def median_cpu(costs: Sequence[Cost]) -> float:
    """The middle one: shared machines have bad moments."""
    return median(cost.cpu for cost in costs)
